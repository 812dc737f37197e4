"""The folder in which compiled kernels are kept."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from exactsel._jit.versions import is_tested

PACKAGE = Path(__file__).resolve().parents[1]

KERNELS = "kernels"
"""The folder of compiled kernels in that of the user's caches."""

WARMED_UP = "warmed-up"
"""How the name of a file in the folder begins, once the user has had kernels compiled ahead; a hash of the sources
follows."""

MOST_LINKS = 40
"""Symbolic links on the way to a folder, at most."""


def hash_of(files: Iterable[Path]) -> str:
    """Of the names and contents of files."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _source_hash() -> str:
    folders = (PACKAGE / "_jit", PACKAGE / "kernels", PACKAGE / "losses")
    return hash_of(
        [PACKAGE / "rounding.py", *(path for folder in folders for path in sorted(folder.glob("*.py")))],
    )


def user_cache() -> Path | None:
    """Where the user's caches are, or None where the user has no home."""
    given = os.environ.get("EXACTSEL_CACHE_DIR")
    if given:
        return Path(given).absolute()
    if sys.platform == "win32":
        base, name = os.environ.get("LOCALAPPDATA") or "~", "exactsel/cache"
    elif sys.platform == "darwin":
        base, name = "~/Library/Caches", "exactsel"
    else:
        base, name = os.environ.get("XDG_CACHE_HOME") or "~/.cache", "exactsel"
    try:
        folder = Path(base).expanduser() / name
    except RuntimeError:  # no HOME, and no account of this user
        return None
    return folder if folder.is_absolute() else None


def trusted(path: Path) -> bool:
    """Whether only this user and root can put files into a folder, or another one in its place.

    What is cached is code that will be run. So the folder, every folder above it and every link on the way there must
    be this user's or root's, and neither others nor a group may write to them. Two exceptions: a folder above it may be
    one like /tmp, whose sticky bit keeps everybody from what is another's, and the group may be one that has the user's
    name and no other member, as systems make it that let a group write by default (umask 002).
    """
    if not hasattr(os, "getuid"):
        return True
    ours, left = (os.getuid(), 0), MOST_LINKS
    names, at = list(reversed(path.absolute().parts)), Path()
    while names:
        before, at = at, at / names.pop()
        state = at.lstat()
        if state.st_uid not in ours:
            return False
        if stat.S_ISLNK(state.st_mode):
            left -= 1
            if left < 0:
                return False
            names, at = [*names, *reversed(Path(os.readlink(at)).parts)], before
        elif _others_write(state) and not (names and state.st_mode & stat.S_ISVTX):
            return False
    return True


def _others_write(state: os.stat_result) -> bool:
    """Whether others than the owner of a folder may write to it."""
    by_group = state.st_mode & stat.S_IWGRP and not _is_private_group(state.st_gid)
    return bool(state.st_mode & stat.S_IWOTH or by_group)


def _is_private_group(number: int) -> bool:
    """Whether a group is the one of this user's name, without other members."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return user.pw_gid == number and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def writable_cache() -> str | None:
    """The folder of compiled kernels, or None where nothing can be written, or this numba's kernels are not kept."""
    folder = _kernels() if is_tested() else None
    if folder is None:
        return None
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder) if os.access(folder, os.W_OK | os.X_OK) and trusted(folder) else None
    except OSError:
        return None


def _kernels() -> Path | None:
    """The folder of compiled kernels, whether it is there or not."""
    base = user_cache()
    return None if base is None else base / KERNELS


def _marker(folder: Path) -> Path:
    """What says that the kernels of this very source have been compiled ahead."""
    return folder / f"{WARMED_UP}-{_source_hash()}"


def warmed_up() -> bool:
    """Whether the user has had kernels compiled ahead (``exactsel dev warmup``)."""
    folder = _kernels()
    try:
        return folder is not None and _marker(folder).is_file()
    except OSError:
        return False


def remember_warmup() -> None:
    """Let later processes know that kernels have been compiled ahead."""
    folder = writable_cache()
    if folder is not None:
        _marker(Path(folder)).touch()


@cache
def cache_folder() -> Path | None:
    """The same, looked for once."""
    found = writable_cache()
    return None if found is None else Path(found)
