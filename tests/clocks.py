"""A clock that moves only when a test says so: no test may depend on how fast the machine is."""

from __future__ import annotations

from exactsel.search.events import Event
from exactsel.search.state import SearchState

HANG = 900.0
"""Seconds after which a test gives up on what should have come at once; never part of what is tested."""


class Clock:
    """Stands still until it is told to jump; counts how often it is read, before the first jump and after it."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.reads = 0
        self.reads_after = 0
        self.jumped = False
        self.jump_at_read: int | None = None

    def __call__(self) -> float:
        self.reads += 1
        self.reads_after += self.jumped
        if self.reads == self.jump_at_read:
            self.jump()
        return self.time

    def jump(self, seconds: float = 1e6) -> None:
        """Time passes; the default is beyond every limit in these tests."""
        self.jumped = True
        self.time += seconds


class JumpAt:
    """A callback under which time passes as soon as this many nodes are bounded."""

    def __init__(self, clock: Clock, nodes: int) -> None:
        self.clock = clock
        self.limit = nodes

    def __call__(self, _event: Event, state: SearchState) -> None:
        if not self.clock.jumped and state.nodes >= self.limit:
            self.clock.jump()
