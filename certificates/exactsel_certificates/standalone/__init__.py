"""A second checker of proof files, from FORMAT.md alone: fractions and the standard library. For small instances.

It shares no line with the checker this folder lies in, and imports nothing from outside the folder but the standard
library: a copy of the folder, by itself, is the whole checker. (Hence imports that begin with a dot.)

    python -m exactsel_certificates.standalone PROOF INSTANCE.npz        where exactsel is installed
    python -m standalone PROOF INSTANCE.npz                              where a copy of this folder lies
"""

from __future__ import annotations

from .algebra import semidefinite
from .checking import check, problem_hash
from .file import Malformed
from .losses import LOSSES
from .regression import Regression
from .selections import Selections
from .work import Beyond, TooMuch

__all__ = [
    "LOSSES", "Beyond", "Malformed", "Regression", "Selections", "TooMuch", "check", "problem_hash", "semidefinite",
]  # fmt: skip
