"""Targets of two classes: what logistic and squared hinge loss read as -1 and +1."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from exactsel.errors import warn_of_data
from exactsel.losses.base import CLASSES
from exactsel.types import FloatArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from exactsel.losses.base import Loss


Target = TypeVar("Target", bound=ArrayLike)


def labels_for(loss: str | Loss | None, y: Target) -> Target | FloatArray:
    """The target; where a loss of two classes (by name, or an object) is to fit 0 and 1, or two texts, -1 and +1 in
    their place, with a warning that says which is which. Any other target is returned as it is.
    """
    called = getattr(loss, "name", loss)
    if not isinstance(called, str) or called not in CLASSES:
        return y
    entries = np.asarray(y)
    if entries.dtype.kind in "biuf":
        if set(np.unique(entries).tolist()) != {0, 1}:
            return y
        warn_of_data(f"the target holds 0 and 1; {called} loss reads them as -1 and +1.")
        return 2.0 * entries.astype(np.float64) - 1.0
    texts = entries.tolist()
    if entries.ndim != 1 or not all(isinstance(text, str) for text in texts) or len(set(texts)) != 2:
        return y
    return labels_of(texts, "the target")


def labels_of(texts: Sequence[str], what: str) -> FloatArray:
    """-1 and +1 for two texts, in alphabetical order, with a warning; ``what`` is the column's name in it."""
    low, high = sorted(set(texts))
    warn_of_data(f"{what} is text; '{low}' is read as -1 and '{high}' as +1.")
    return np.array([1.0 if text == high else -1.0 for text in texts])
