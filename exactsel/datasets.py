"""The data that come with exactsel, as X and y.

    from exactsel import datasets, solve
    data = datasets.load("diabetes")
    print(solve(data.data, data.target, data.k))

``names()`` lists them, ``copy_to(folder)`` writes their files into a folder; ``exactsel data instances`` does both on
the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel.arguments import shown
from exactsel.data.instance import read_instance
from exactsel.data.shipped import Shipped, copy_to, shipped
from exactsel.errors import InputError, UnsupportedError, did_you_mean
from exactsel.to_plain import Readable
from exactsel.types import FloatArray

if TYPE_CHECKING:
    import pandas

__all__ = ["Dataset", "copy_to", "load", "names"]


@dataclass(frozen=True, repr=False)
class Dataset(Readable):
    """Data, and what they are there for; ``X, y = datasets.load("diabetes")`` does, too."""

    data: pandas.DataFrame | FloatArray = field(repr=False)
    """The candidate columns (n, d): a pandas frame, or an array where pandas is not installed."""
    target: pandas.Series | FloatArray | None = field(repr=False)
    """The target (n,); None where columns stand for all others."""
    feature_names: tuple[str, ...]
    """Names of the columns."""
    target_name: str
    description: str
    """What can be learned from them, where they come from and how they may be used."""
    file: Path
    k: int | None = None
    """The size of its problem, where there is one; likewise what follows."""
    loss: str | None = None
    lam: float | None = None

    def __iter__(self) -> Iterator[Any]:
        """``data`` and ``target``."""
        return iter((self.data, self.target))

    def as_dict(self) -> dict[str, Any]:
        """What is known of the data, without them."""
        skipped = ("data", "target", "file", "feature_names")
        plain = {name: value for name, value in vars(self).items() if name not in skipped}
        return {**plain, "file": str(self.file), "feature_names": list(self.feature_names)}

    def __str__(self) -> str:
        rows, columns = self.data.shape
        return f"{self.file.stem}: {rows} rows, {columns} columns\n{self.description}"


def names() -> list[str]:
    """What :func:`load` knows, the most worth a look first."""
    return [data_set.file.stem for data_set in shipped()]


def load(name: str) -> Dataset:
    """One of the data sets that come with exactsel.

    Parameters
    ----------
    name : str
        One of :func:`names`, such as ``"diabetes"`` or ``"cars"``.

    Raises
    ------
    InputError
        For a name nothing is called by.
    UnsupportedError
        For a table of text and numbers where pandas is not installed.
    """
    entries = {data_set.file.stem: data_set for data_set in shipped()}
    if not isinstance(name, str) or Path(name).stem not in entries:
        hint = did_you_mean(name, entries) if isinstance(name, str) else ""
        raise InputError(f"there is no data set {shown(name)}{hint}; those there are: {', '.join(entries)}.")
    entry = entries[Path(name).stem]
    return _table(entry) if entry.target is not None else _instance(entry)


def _instance(entry: Shipped) -> Dataset:
    """The data of an instance file."""
    held = read_instance(entry.file)
    called = held.feature_names or tuple(f"x{j}" for j in range(held.A.shape[1]))
    data, target, pandas = np.asarray(held.A), None if held.y is None else np.asarray(held.y), _pandas()
    if pandas is not None:
        data = pandas.DataFrame(data, columns=list(called))
        target = None if target is None else pandas.Series(target, name="y")
    loss = None if held.loss is None else str(held.loss)
    return Dataset(data, target, tuple(called), "y", entry.description, entry.file, held.k, loss, held.lam)


def _table(entry: Shipped) -> Dataset:
    """The data of a text file, as they are: with text, and with entries that are missing."""
    pandas = _pandas()
    if pandas is None:
        raise UnsupportedError(
            f"{entry.file.name} holds text and numbers, which needs pandas; run: pip install pandas."
        )
    frame = pandas.read_csv(entry.file)
    assert entry.target is not None
    target = frame.pop(entry.target)
    return Dataset(frame, target, tuple(frame.columns), entry.target, entry.description, entry.file)


def _pandas() -> ModuleType | None:
    """The library, or None."""
    try:
        return import_module("pandas")
    except ImportError:
        return None
