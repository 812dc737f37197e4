"""Where compiled kernels are kept: folders whose names say which sources they were made from."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


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
    except RuntimeError:  # no HOME, and nobody knows this user
        return None
    return folder if folder.is_absolute() else None


def _trusted(folder: Path) -> bool:
    """Whether nobody else can have put files into a folder: what is cached is code that will be run."""
    if not hasattr(os, "getuid"):
        return True
    state = folder.stat()
    return state.st_uid in (os.getuid(), 0) and not state.st_mode & stat.S_IWOTH


def writable_cache() -> str | None:
    """The kernel cache folder of this very source, or None where nothing can be written."""
    base = user_cache()
    if base is None:
        return None
    try:
        folder = base / f"kernels-{_source_hash()}"
        base.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder) if os.access(folder, os.W_OK | os.X_OK) and _trusted(folder) else None
    except OSError:
        return None


@cache
def cache_folder() -> Path | None:
    """The same, looked for once."""
    found = writable_cache()
    return None if found is None else Path(found)
