"""When two objective values count as equal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from exactsel.errors import InputError

RESOLUTION = 1e-11
"""Times max(1, |upper|): differences below this are rounding noise, whatever was asked for."""


@dataclass(frozen=True)
class Tolerance:
    """The gap at which a search may stop: ``eps`` absolute, ``rel_eps`` relative to max(1e-12, |upper|)."""

    eps: float = 0.0
    rel_eps: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("eps", "rel_eps"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                flag = "--" + name.replace("_", "-")
                raise InputError(
                    f"{name} is {value}, but a tolerance must be a number that is not negative; set {flag}."
                )

    def absolute(self, upper: float) -> float:
        """The absolute tolerance at an incumbent of objective ``upper``."""
        if not math.isfinite(upper):
            return self.eps
        return max(self.eps, self.rel_eps * max(1e-12, abs(upper)), RESOLUTION * max(1.0, abs(upper)))
