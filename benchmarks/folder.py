"""A folder of data sets: NAME.npz with an array A and, where there is a target, y; found by the names papers print."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import numpy as np

from exactsel.types import FloatArray

FOLDER = "EXACTSEL_DATA"
"""The environment variable that names the folder where no option does."""

EVERY = "all"
"""Stands for every file of the folder where names of data sets are asked for."""


class MissingData(Exception):
    """The data are not there, or not of a kind that serves; the text says what to do."""


def folder_option(name: str = "--folder") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option that names the folder; the environment variable does where it is not given."""
    path = click.Path(path_type=Path, file_okay=False)
    said = "Folder with NAME.npz (arrays A and y)."
    return click.option(name, "folder", type=path, envvar=FOLDER, show_envvar=True, help=said)


def key(name: str) -> str:
    """A name as it is compared: letters and digits only, in lower case ("Com Cri", com-cri and ComCri are one)."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def files(folder: Path | None = None) -> list[str]:
    """The names of all data sets of the folder, sorted; none where there is no folder."""
    place = _place(folder)
    return sorted(file.stem for file in place.glob("*.npz")) if place is not None and place.is_dir() else []


def chosen(asked: Iterable[str] | None, default: Iterable[str], folder: Path | None = None) -> tuple[str, ...]:
    """The names asked for, ``all`` replaced by every file of the folder; the default where none are."""
    if asked is None:
        return tuple(default)
    names = [name for word in asked for name in (files(folder) if word == EVERY else [word])]
    return tuple(dict.fromkeys(names))


def read(name: str, folder: Path | None = None, arrays: tuple[str, ...] = ("A", "y")) -> tuple[FloatArray, ...]:
    """The arrays of a data set as doubles.

    Parameters
    ----------
    name : str
        As the file is called or as a paper prints it, see :func:`key`.
    folder : Path, optional
        What the environment variable names, when None.
    arrays : tuple of str
        A is (n, d), y is (n,).

    Raises
    ------
    MissingData
        When there is no folder, no such file, no such array, or a number that is not finite.
    """
    wanted = "array A" if arrays == ("A",) else "arrays A and y"
    place = _place(folder)
    if place is None:
        raise MissingData(f"{name} is skipped: {FOLDER} does not name a folder with {name}.npz ({wanted}).")
    same = [stem for stem in files(place) if key(stem) == key(name)]
    file = place / f"{name if name in same or not same else same[0]}.npz"
    if not file.is_file():
        raise MissingData(f"{name} is skipped: there is no {file} ({wanted}).")
    with np.load(file, allow_pickle=False) as stored:
        if not set(arrays) <= set(stored.files):
            raise MissingData(f"{name} is skipped: {file} needs the {wanted}.")
        found = tuple(stored[array].astype(float) for array in arrays)
    if not all(np.all(np.isfinite(values)) for values in found):
        raise MissingData(f"{name} is skipped: {file} holds numbers that are not finite; fill them in.")
    return found


def _place(folder: Path | None) -> Path | None:
    named = os.environ.get(FOLDER)
    return folder if folder is not None else Path(named) if named else None
