"""Files written whole or not at all, and none over another that is read or written.

A regular file is replaced in one step and keeps its permissions; a symbolic link stays and what it points to is
replaced. What is no regular file (a device, a FIFO, the process's own stdout) is written to.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from exactsel.errors import InputError, OutputError
from exactsel.interrupts import half_written

HELD = 64 * 2**20
"""Bytes for a special file that are kept in memory, before a temporary file takes them."""

LINKS = 40
"""Symbolic links followed, one to the next."""

_DESCRIPTOR = re.compile(r"(?:/dev/fd|/proc/(?:self|thread-self|\d+(?:/task/\d+)?)/fd)/(\d+)")

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)

_WRONG_NAME = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


@contextmanager
def replacing(file: str | os.PathLike[str], what: str = "") -> Iterator[IO[bytes]]:
    """A binary stream that becomes ``file`` when the block ends well, and leaves nothing behind when it does not.

    Errors call the file by its name, with ``what`` before it.

    Raises
    ------
    OutputError
        When the folder does not exist or is not the user's, or the disk is full, or anything else is in the way.
    """
    with _said_in_one_sentence(file, what):
        target = _place(file)
        if is_special(file):
            with tempfile.SpooledTemporaryFile(HELD) as held:
                yield held
                held.seek(0)
                with open_special(file) as stream:
                    shutil.copyfileobj(held, stream)
            return
        before = _state_of(target)
        temporary = temporary_name(file)
        with half_written(temporary):
            try:
                with open(temporary, "xb") as stream:
                    yield stream
                _take_over(before, temporary)
                os.replace(temporary, target)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise


@contextmanager
def _said_in_one_sentence(file: str | os.PathLike[str], what: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritten(file, error, what) from None


def unwritten(file: str | os.PathLike[str], error: OSError, what: str = "") -> OutputError:
    """The error to raise where ``file`` (``what`` says what it would have been) cannot be written."""
    name, why = f"{what}{Path(file)}", error.strerror or type(error).__name__
    if isinstance(error, _WRONG_NAME):
        return OutputError(f"{name} cannot be written ({why}); choose a folder that exists and is yours.", True)
    return OutputError(f"{name} cannot be written ({why}); make room for it, or choose another place.")


def full_disk(error: OSError) -> str | None:
    """A sentence about a temporary file for which there was no room; None where an error is about something else."""
    why = error.strerror or ""
    if error.errno not in _FULL and not why.startswith("No usable temporary directory"):
        return None
    return (
        f"a temporary file cannot be written ({why}); free space in the folder for temporary files, or let TMPDIR name "
        f"another one."
    )


def is_special(file: str | os.PathLike[str]) -> bool:
    """Whether ``file`` exists and is to be written to, not replaced: it is no regular file, or open in this process."""
    if own_descriptor(file) is not None:
        return True
    before = _state_of(Path(file))
    return before is not None and not stat.S_ISREG(before.st_mode) and not stat.S_ISDIR(before.st_mode)


def open_special(file: str | os.PathLike[str]) -> IO[bytes]:
    """A stream into a special file; into one that is open in this process it continues at its position."""
    descriptor = own_descriptor(file)
    if descriptor is None:
        return open(file, "wb")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return os.fdopen(os.dup(descriptor), "wb")


def own_descriptor(file: str | os.PathLike[str]) -> int | None:
    """The number of the descriptor of this process that ``file`` names, as /dev/stdout and /dev/fd/3 do."""
    path = os.path.abspath(file)
    for _ in range(LINKS):
        match = _DESCRIPTOR.fullmatch(path)
        if match is not None:
            other = re.match(r"/proc/(\d+)", path)
            return None if other is not None and int(other[1]) != os.getpid() else int(match[1])
        path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        match = _DESCRIPTOR.fullmatch(path)
        if match is None:
            try:
                path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
            except OSError:
                return None
    return None


def temporary_name(file: str | os.PathLike[str]) -> str:
    """A unique name for what is to become ``file``, beside it."""
    target = _place(file)
    return str(target.parent / f".{target.name[:60]}.{uuid.uuid4().hex[:12]}")


def _place(file: str | os.PathLike[str]) -> Path:
    """Where the bytes go: links are followed."""
    return Path(os.path.realpath(file))


def _state_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _take_over(before: os.stat_result | None, temporary: str) -> None:
    """Give a new file the permissions of the one it replaces, and its owner where that is allowed."""
    if before is None:
        return
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(temporary, before.st_uid, before.st_gid)
    os.chmod(temporary, stat.S_IMODE(before.st_mode))


def spool(file: str | os.PathLike[str]) -> IO[bytes]:
    """A nameless temporary file on the disk ``file`` will be on.

    Raises
    ------
    OutputError
        When its folder does not exist or cannot be written.
    """
    target = _place(file)
    with _said_in_one_sentence(file):
        if is_special(file):
            return tempfile.TemporaryFile()
        return tempfile.TemporaryFile(prefix=f".{target.name[:60]}.", dir=target.parent)


def check_target(file: str | os.PathLike[str] | None) -> None:
    """:class:`InputError` now rather than after an hour's work when ``file`` cannot be written; None is no file."""
    if file is None:
        return
    target = Path(file)
    if target.is_dir():
        raise InputError(f"{target} is a folder, but a file was expected; name a file in it.")
    with _said_in_one_sentence(file):
        special = is_special(file)
    if special:
        if own_descriptor(file) is None and not os.access(file, os.W_OK):
            raise InputError(f"{target} cannot be written (permission denied); choose a file that is yours.")
        return
    folder = _place(file).parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        why = "permission denied" if folder.is_dir() else "there is no such folder"
        raise InputError(f"{target} cannot be written ({why}); choose a folder that exists and is yours.")


def write_bytes(file: str | os.PathLike[str], data: bytes) -> None:
    """Write ``file`` in one step (see :func:`replacing`)."""
    with replacing(file) as stream:
        stream.write(data)


def move(temporary: str | os.PathLike[str], file: str | os.PathLike[str]) -> None:
    """Let a finished file on the same disk become ``file``, as :func:`replacing` would; ``temporary`` is gone then."""
    with _said_in_one_sentence(file):
        try:
            if is_special(file):
                with open(temporary, "rb") as finished, open_special(file) as stream:
                    shutil.copyfileobj(finished, stream)
            else:
                _take_over(_state_of(_place(file)), str(temporary))
                os.replace(temporary, _place(file))
        finally:
            Path(temporary).unlink(missing_ok=True)


class NamedFile(NamedTuple):
    """A file, and what people call the argument or option that names it."""

    label: str
    path: str | os.PathLike[str]


def named_files(**arguments: object) -> list[NamedFile]:
    """Those arguments that are paths."""
    return [NamedFile(name, path) for name, path in arguments.items() if isinstance(path, str | os.PathLike)]


def refuse_shared(outputs: Sequence[NamedFile], inputs: Iterable[NamedFile] = ()) -> None:
    """:class:`InputError` where a file to be written is one that is read, or another one, or that behind stdout."""
    for label, path in outputs:
        for other, read in inputs:
            if same_file(path, read):
                raise InputError(
                    f"{label} is {path}, but {other} is that file, too, and what it holds would be lost; name another "
                    f"file to write."
                )
        if own_descriptor(path) is None and _is_behind_stdout(path):
            raise InputError(f"{label} is {path}, to which stdout goes; name another file.")
    for place, (label, path) in enumerate(outputs):
        for other, also in outputs[:place]:
            if same_file(path, also) and None in (own_descriptor(path), own_descriptor(also)):
                raise InputError(f"{other} and {label} are both {path}; name a file for each.")


def same_file(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two names are those of one regular file, by links or by letters that the file system takes for the same;
    or would be, where there is no such file yet.
    """
    try:
        states = [_state_of(Path(path)) for path in (first, second)]
        if states[0] is None and states[1] is None:
            return _future(first) == _future(second)
    except (OSError, ValueError):  # a name that no file can have, or a folder without permission to read
        return False
    one, other = states
    return one is not None and other is not None and stat.S_ISREG(one.st_mode) and os.path.samestat(one, other)


def _is_behind_stdout(file: str | os.PathLike[str]) -> bool:
    try:
        state, stdout = os.stat(file), os.fstat(1)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(state.st_mode) and os.path.samestat(state, stdout)


def _future(file: str | os.PathLike[str]) -> tuple[object, str]:
    """The identity of a file that is not there yet: its folder, and its name as the folder has it."""
    place = _place(file)
    folder = _state_of(place.parent)
    folder_id: object = place.parent if folder is None else (folder.st_dev, folder.st_ino)
    return folder_id, place.name.casefold() if _ignores_case(place.parent) else place.name


def _ignores_case(folder: Path) -> bool:
    """Whether small letters stand for large ones in the names of files in a folder, judged by its own name."""
    for above in (folder, *folder.parents):
        other = above.with_name(above.name.swapcase()) if above.name else above
        if other != above:
            return other.exists() and other.samefile(above)
    return False


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file of this name; a name that no file can have is none's."""
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a NUL in it
        return False
