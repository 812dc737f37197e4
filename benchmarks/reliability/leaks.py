"""What a process holds: memory, descriptors, threads, files left behind; and whether that grows."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from exactsel.search.memory import MEBIBYTE

LINGER = 120.0
"""Seconds a thread may go on with a compilation that was given up."""

GROWTH, GROWTH_PART = 32.0, 0.05
"""MiB, and part of what is held, by which memory may seem to grow: what is freed does not all go back to the system."""

MOST_DESCRIPTORS = 4096
"""Numbers looked at, where the system does not list those in use."""


class Holding(NamedTuple):
    """What is held at one moment, when nothing is at work."""

    memory: float
    """MiB."""
    descriptors: int
    threads: int
    tasks: int
    """Threads as the system counts them, those of libraries, too."""
    files: tuple[str, ...]
    """What lies in the folders that should be empty."""
    allocated: float = 0.0
    """MiB of ``memory`` that the C library has given away and not got back; 0 where it does not tell. The rest is holes
    between them, and what Python keeps for its own objects."""
    blocks: int = 0
    """Pieces of memory that Python's objects take."""

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        rounded = {name: round(getattr(self, name), 2) for name in ("memory", "allocated")}
        return {**self._asdict(), **rounded, "files": list(self.files)}


def held(folders: Sequence[Path]) -> Holding:
    """What is held now; garbage is collected, and compilations that nobody waits for come to their end."""
    for thread in threading.enumerate():
        if thread.name.startswith("exactsel"):
            thread.join(LINGER)
    gc.collect()
    _hand_back()
    files = tuple(sorted(path.name for folder in folders for path in folder.iterdir()))
    return Holding(
        _memory(), len(descriptors()), threading.active_count(), _tasks(), files, _allocated(), sys.getallocatedblocks()
    )


def _hand_back() -> None:
    """Let the C library give the system what is free, where it can be asked to: else holes look like leaks."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


_TOLD = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
)  # fmt: skip
"""The entries of ``struct mallinfo2``."""


class _Mallinfo(ctypes.Structure):
    """What the C library says of its memory (bytes, but for some counts)."""

    _fields_ = [(name, ctypes.c_size_t) for name in _TOLD]


def _allocated() -> float:
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError, TypeError):
        return 0.0
    ask.restype = _Mallinfo
    told = ask()
    return float(told.uordblks + told.hblkhd) / MEBIBYTE


def descriptors() -> dict[int, str]:
    """The open descriptors, and what each is of, where that is known."""
    folder = next((Path(name) for name in ("/proc/self/fd", "/dev/fd") if os.path.isdir(name)), None)
    numbers = range(MOST_DESCRIPTORS) if folder is None else [int(name) for name in os.listdir(folder)]
    found = {}
    for number in numbers:
        try:
            os.fstat(number)  # not the one with which the folder was listed
            found[number] = "" if folder is None else os.readlink(folder / str(number))
        except OSError:
            continue
    return found


def _memory() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return _peak()
    return pages * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def _peak() -> float:
    """The most there ever was: all that some systems say."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (MEBIBYTE if sys.platform == "darwin" else 1024)


def _tasks() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


class Trend(NamedTuple):
    """How an amount went, of MiB mostly."""

    first: float
    """The median of the first quarter after the warm-up ..."""
    last: float
    """... and that of the last one."""
    slope: float
    """An hour: the median of the slopes between all pairs of a first and a second half."""

    @property
    def grows(self) -> bool:
        """Whether there is more at the end than chance brings."""
        return self.last - self.first > GROWTH + GROWTH_PART * self.first


def trend(points: Sequence[tuple[float, float]]) -> Trend:
    """Of memory (MiB) by time (seconds), the warm-up left out."""
    quarter, half = max(1, len(points) // 4), max(1, len(points) // 2)
    amounts = [amount for _, amount in points]
    slopes = [
        (later - amount) / (at - since) for since, amount in points[:half] for at, later in points[half:] if at > since
    ]
    slope = 3600.0 * median(slopes) if slopes else 0.0
    return Trend(median(amounts[:quarter]), median(amounts[-quarter:]), slope)
