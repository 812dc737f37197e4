"""Files written whole or not at all, and small vectors read from files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from exactsel.arrays import read_numbers
from exactsel.errors import InputError
from exactsel.types import FloatArray


@contextmanager
def replacing(file: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary stream that becomes ``file`` when the block ends well, and leaves nothing behind when it does not.

    Raises
    ------
    InputError
        When the folder does not exist or cannot be written.
    """
    target = Path(file)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or Path("."))
    except OSError as error:
        raise InputError(
            f"{target} cannot be written ({error.strerror}); choose a folder that exists and is yours."
        ) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise InputError(f"{target} cannot be written ({error.strerror}); choose another file.") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_target(file: str | os.PathLike[str] | None) -> None:
    """:class:`InputError` now rather than after an hour's work when ``file`` cannot be written; None is no file."""
    if file is None:
        return
    target = Path(file)
    if target.is_dir():
        raise InputError(f"{target} is a folder, but a file was expected; name a file in it.")
    folder = target.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        why = "permission denied" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{target} cannot be written ({why}); choose a folder that exists and is yours.")


def write_bytes(file: str | os.PathLike[str], data: bytes) -> None:
    """Write ``file`` in one step (see :func:`replacing`)."""
    with replacing(file) as stream:
        stream.write(data)


def read_vector(file: str | os.PathLike[str]) -> FloatArray:
    """Numbers from a .npy file, or from a text file with one (or several) a line.

    Raises
    ------
    InputError
        When the file is missing or holds anything else.
    """
    path = Path(file)
    try:
        return read_numbers(path)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the file that holds the coefficients.") from None
    except Exception:  # damaged bytes make numpy, gzip and zlib raise nearly anything
        raise InputError(
            f"{path} does not hold plain numbers; give a .npy vector or text with one number a line."
        ) from None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file of this name; a name that no file can have is none's."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a NUL in it
        return False
