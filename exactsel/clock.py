"""The clock that limits are read from: one place, so that time can be made to stand still, or to jump, in a test."""

from __future__ import annotations

import time

_read = time.monotonic


def now() -> float:
    """Seconds since some moment; never goes back."""
    return _read()
