"""Who is told that kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable

_told: tuple[Callable[[str], None], Callable[[str, float], None]] | None = None


def tell_of_compiling(begun: Callable[[str], None], ended: Callable[[str, float], None]) -> None:
    """Call ``begun`` with the name of each kernel that is not on the disk, before it is compiled, and ``ended`` with
    that of each that is there now and the seconds it took, which may be spent waiting for another process; in any
    thread. Whoever asks last is told, alone.
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
