"""Rows with labels, as pandas has them: data that belong together must have them in the same order.

Everything here goes by position. Where a target or weights are labelled like the rows of the data, but in another
order, or otherwise, going by position would pair the wrong rows; that is refused. The labels 0, 1, 2 and so on that
pandas gives to rows without any say nothing, unless the other labels are the same numbers in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeGuard

import numpy as np

from exactsel.errors import InputError
from exactsel.types import BoolArray

LIBRARIES = ("pandas", "modin", "cudf")
"""Libraries whose frames and series have labels of rows."""


class Labels(Protocol):
    """The labels of rows: an index of pandas, or of a library like it."""

    is_unique: bool

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[object]: ...
    def __getitem__(self, place: int, /) -> object: ...
    def equals(self, other: Labels) -> bool:
        """Whether both have the same labels in the same order."""
        ...

    def isin(self, values: Labels) -> BoolArray:
        """Which labels are among others."""
        ...


def labels_of_rows(values: object) -> Labels | None:
    """The labels of the rows, or None for data that have none; labels themselves are their own."""
    if _are_labels(values):
        return values
    index: Labels | None = getattr(values, "index", None) if _is_labelled(values) else None
    return None if index is None or callable(index) else index


def _are_labels(values: object) -> TypeGuard[Labels]:
    return _is_labelled(values) and type(values).__name__.endswith("Index")


def _is_labelled(values: object) -> bool:
    return type(values).__module__.partition(".")[0] in LIBRARIES


def check_rows(rows: object, **others: object) -> None:
    """Refuse data whose rows are labelled in another way than those of others they are to be used with.

    Parameters
    ----------
    rows : any
        The data that say which rows there are; anything without labels will do, and says nothing.
    **others : any
        By the names of their arguments; what has no labels goes by position.

    Raises
    ------
    InputError
        When labels differ.
    """
    pairs = [(name, labels) for name, value in others.items() if (labels := labels_of_rows(value)) is not None]
    first = labels_of_rows(rows)
    if first is not None:
        pairs.insert(0, ("the data", first))
    for name, labels in pairs[1:]:
        _check(pairs[0][0], pairs[0][1], name, labels)


def _check(first: str, expected: Labels, name: str, labels: Labels) -> None:
    """:class:`InputError` where two sets of labels do not pair the rows as their positions do."""
    if len(expected) != len(labels) or expected.equals(labels):
        return  # the check of row counts refuses other lengths
    way_on = f"give {name}.to_numpy() if rows go by their position"
    if _same_in_another_order(expected, labels):
        whose = "X.index" if first == "the data" else f"{first}.index"
        raise InputError(
            f"the rows of {name} have the same labels as those of {first}, but in another order; give "
            f"{name}.loc[{whose}], or {way_on[5:]}."
        )
    if not (_counts(expected) or _counts(labels)):
        raise InputError(
            f"the rows of {name} have other labels (such as {_shown(labels, expected)}) than those of {first} (such as "
            f"{_shown(expected, labels)}); choose the same rows of both, or {way_on}."
        )


def _same_in_another_order(one: Labels, other: Labels) -> bool:
    try:
        return bool(one.is_unique and other.is_unique and one.isin(other).all())
    except TypeError:  # of labels that cannot be looked up
        return False


def _counts(labels: Labels) -> bool:
    """Whether the labels are 0, 1, 2 and so on."""
    try:
        return bool(np.array_equal(np.asarray(labels), np.arange(len(labels))))
    except (TypeError, ValueError):
        return False


def _shown(labels: Labels, others: Labels) -> str:
    """A label of the first place at which two differ."""
    place = next(i for i, (one, other) in enumerate(zip(labels, others, strict=True)) if not _equal(one, other))
    text = repr(labels[place])
    return text if len(text) <= 40 else text[:40] + "…"


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        return False
