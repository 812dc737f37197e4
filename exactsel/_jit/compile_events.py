"""Callbacks for the compilation of kernels."""

from __future__ import annotations

from collections.abc import Callable

_told: tuple[Callable[[str], None], Callable[[str, float], None]] | None = None


def tell_of_compiling(begun: Callable[[str], None], ended: Callable[[str, float], None]) -> None:
    """Call ``begun`` and ``ended`` for each kernel that is not on the disk, in any thread.

    ``begun`` receives its name before it is compiled, ``ended`` its name and the seconds it took, which may be spent
    waiting for another process.

    Only the callbacks of the last call are in force.
    """
    global _told
    _told = begun, ended


def compiling_begins(name: str) -> None:
    """A kernel is about to be compiled."""
    if _told is not None:
        _told[0](name)


def compiling_ended(name: str, seconds: float) -> None:
    """A kernel is there."""
    if _told is not None:
        _told[1](name, seconds)
