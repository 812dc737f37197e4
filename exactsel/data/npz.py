"""Names of instance files, and what is written into them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.data.shipped import no_such_file
from exactsel.errors import InputError
from exactsel.problem.doubles import to_doubles

ZIP_START = b"PK"
"""How an archive begins."""


def npz_name(path: str | os.PathLike[str]) -> Path:
    """The path, found to end in ``.npz``; :class:`InputError` where it does not."""
    file = Path(path)
    if file.suffix.lower() != ".npz":
        raise InputError(f"the instance file {file} must have a name that ends in .npz; write {file.name}.npz instead.")
    return file


def check_readable(file: Path) -> None:
    """:class:`InputError` where there is no such file, or it is no archive."""
    if file.is_dir():
        raise InputError(f"{file} is a folder, but an instance is one .npz file; name a file inside it.")
    if not file.exists():
        raise no_such_file(file)
    if file.suffix.lower() != ".npz":
        raise InputError(
            f"{file} is not an .npz file (with arrays A and y inside); read it with exactsel.load, or write one with "
            f"{how_to_write(file.with_suffix('.npz'))}."
        )
    try:
        with file.open("rb") as stream:
            start = stream.read(len(ZIP_START))
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions.") from None
    if start != ZIP_START:
        raise InputError(f"{file} is not an .npz archive, despite its name; write one with {how_to_write(file)}.")


def how_to_write(file: Path) -> str:
    """What to type for such a file."""
    return f"numpy.savez({file.name!r}, A=A, y=y)"


def storable(name: str, value: object) -> NDArray[Any]:
    """A value as the array that a file keeps of it."""
    if isinstance(value, str | tuple):
        return np.array(value, dtype=np.str_)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"{name} holds entries of type {array.dtype}, but only real numbers can be stored; convert it with "
            f"astype(float)."
        )
    if name in ("k", "tall_rows"):
        return np.asarray(array, dtype="<i8", order="C")
    return np.asarray(to_doubles(array, name, refuse=name != "weights"), dtype="<f8", order="C")
