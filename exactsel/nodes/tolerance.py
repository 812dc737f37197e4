"""Tolerances for the equality of objective values.

Nothing here depends on the units of the data: where an objective is far below what the data are about, it is measured
by the objective of the empty model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from exactsel.errors import InputError, option
from exactsel.problem.interface import SubsetProblem

RESOLUTION = 1e-11
"""Times |upper|: differences below this are rounding noise, for any requested tolerance ..."""

ROUNDED, COUNTS_ROUNDED = 1e-11, 2e-15
"""... and so are those below this part of the empty model's objective; the second with Poisson loss, whose rows cost
what predictions are off relative to the counts, however large these are."""

RELATIVE_FROM = 1e-15
"""Part of the empty model's objective below which an objective is no measure of a gap any more."""

KEPT = 1.0 - 2.0**-10
"""Part of a tolerance that the search itself works to, ..."""

SPARED, NULL_SPARED = 1.1e-10, 1.1
"""... what it leaves of small ones, times |upper| and the :attr:`Tolerance.margin`: so much less a proof claims ..."""

MARGIN = 1e-13
"""Part of the empty model's objective by which a proof claims less at most, so that checkers may round as they do."""

MOST_SPARED = 0.5
"""... unless that is more than this part of them."""

ABOUT = 1.25
"""Times what rounding takes off a bound when it is said: what is left for it, as objectives differ from what is said of
them, too."""

REMEMBERED = 64
"""Objectives of which it is remembered what rounding takes off bounds near them."""


def rounded(null: float, loss: str) -> float:
    """What is rounding noise beside the empty model's objective ``null``."""
    return (COUNTS_ROUNDED if loss == "poisson" else ROUNDED) * null


def resolution(upper: float, noise: float) -> float:
    """The difference of objectives near ``upper`` that is rounding noise, :func:`rounded` ``noise`` at the least."""
    return max(RESOLUTION * abs(upper), noise)


def relative_gap(gap: float, upper: float, null: float) -> float:
    """A gap relative to max(1e-15 null, abs(upper)), where ``null`` is the objective of the empty model."""
    size = max(RELATIVE_FROM * null, abs(upper))
    if size > 0:
        return gap / size
    return 0.0 if gap == 0 else math.inf


class Gap:
    """What has an objective, a proven lower bound, and so a gap between the two."""

    def _measured(self) -> tuple[float, float, float]:
        """The objective, the lower bound, and the objective of the empty model."""
        raise NotImplementedError

    @property
    def gap(self) -> float:
        """The absolute gap / max(1e-15 null objective, abs(objective)), with the objective of the empty model."""
        objective, _, null = self._measured()
        return relative_gap(self.absolute_gap, objective, null)

    @property
    def absolute_gap(self) -> float:
        """Objective - lower: no more than this above the optimum."""
        objective, lower, _ = self._measured()
        return objective - lower


@dataclass(frozen=True)
class Tolerance:
    """The gap at which a search may stop: ``eps`` absolute, ``rel_eps`` relative to max(1e-15 null, |upper|)."""

    eps: float = 0.0
    rel_eps: float = 1e-6
    null: float = 0.0
    """Objective of the empty model."""
    loss: str = ""
    """The name of the loss, by which rounding goes; empty where there is none."""
    finest: float = 1.0
    """Part of the resolution of objectives that is aimed at."""
    taken: Callable[[float], float] | None = field(default=None, compare=False, repr=False)
    """Where it is a search's: what rounding takes off bounds near an objective when they are said of the data as given.
    So much is left of the tolerance, and what a proof claims less."""

    def __post_init__(self) -> None:
        for name in ("eps", "rel_eps"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                demand = "a tolerance must be a number that is not negative"
                raise InputError(f"{name} is {value}, but {demand}; set {option(name)}.")

    def of(self, problem: SubsetProblem) -> Tolerance:
        """The same for a problem."""
        loss = problem.objective.loss
        return replace(self, null=problem.null_objective, loss="" if loss is None else loss.name)

    @property
    def noise(self) -> float:
        """What is rounding noise beside the empty model's objective."""
        return rounded(self.null, self.loss)

    @property
    def margin(self) -> float:
        """How much lower than the search's bound the claim of a proof is, beside the empty model's objective."""
        return min(self.noise, MARGIN * self.null)

    def for_search(self, taken: Callable[[float], float]) -> Tolerance:
        """Less by about what is ``taken`` off, so that what is said of the data as given is within this one."""
        return replace(
            self, eps=KEPT * self.eps, rel_eps=KEPT * self.rel_eps, finest=KEPT * self.finest,
            taken=lru_cache(REMEMBERED)(taken),
        )  # fmt: skip

    def absolute(self, upper: float) -> float:
        """The absolute tolerance at an incumbent of objective ``upper``."""
        if not math.isfinite(upper):
            return self.eps
        wanted = max(self.eps, self.rel_eps * max(RELATIVE_FROM * self.null, abs(upper)))
        finest = self.finest * resolution(upper, self.noise)
        if self.taken is not None:
            less = NULL_SPARED * self.margin + ABOUT * self.taken(upper)
            wanted, finest = _less(wanted, SPARED * abs(upper) + less), _less(finest, less)
        return max(wanted, finest)


def _less(target: float, less: float) -> float:
    """A tolerance that leaves ``target`` once bounds have lost so much."""
    # What was asked for is a little more than what is kept, which is enough where it is large.
    return target - min(MOST_SPARED * target, max(0.0, less - target * (1.0 - KEPT)))
