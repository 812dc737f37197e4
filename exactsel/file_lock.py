"""A lock file between processes: the second one finds what the first one made."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST = 120.0
"""Seconds after which a process continues without the lock: no process hangs because another does."""

PAUSE = 0.02
"""Seconds between two looks."""


@contextmanager
def turn(file: Path) -> Iterator[None]:
    """Hold the lock ``file``, which exists while a process holds it; without a lock where the system has none to give.

    It is for work that is done twice at worst. A process that holds it already must not take it again.
    """
    descriptor = _locked(file)
    try:
        yield
    finally:
        if descriptor is not None:
            with suppress(OSError):
                os.unlink(file)
            os.close(descriptor)


def _locked(file: Path) -> int | None:
    """An open file that is locked, which closing it ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    ends = time.monotonic() + LONGEST
    with suppress(OSError):
        descriptor = _opened(file)
        while time.monotonic() < ends:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(PAUSE)
            except OSError:
                break
            else:
                if _is_at(descriptor, file):
                    return descriptor
                os.close(descriptor)
                descriptor = _opened(file)
        os.close(descriptor)
    return None


def _opened(file: Path) -> int:
    return os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


def _is_at(descriptor: int, file: Path) -> bool:
    """Whether an open file still has that name. Its last holder removes it, and another process may make it again."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(file))
    except FileNotFoundError:
        return False
