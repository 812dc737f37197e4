"""What walks whole subtrees by itself: one of several kernels, by what is known of the columns."""

from __future__ import annotations

from typing import TypeAlias

from exactsel.walks.closed_form import SubtreeWalker
from exactsel.walks.either import EitherWalker
from exactsel.walks.reduced import ReducedWalker

Walker: TypeAlias = SubtreeWalker | EitherWalker | ReducedWalker
"""Each has a ``scope``, a ``curvature`` and ``explore``."""
