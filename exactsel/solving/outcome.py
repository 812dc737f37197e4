"""The outcome of a search: the reason for its end, its bounds, and the sentence that states them."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from enum import Enum
from typing import Any

from exactsel.nodes.tolerance import Tolerance, relative_gap, rounded
from exactsel.problem.constraints import NAMES

OPTIMAL_GAP, NOISY_GAP = 1e-9, 1e-6
"""Times |upper|: the largest gap at which a model is called optimal, and that where rounding leaves no less."""

EXACT_FIT = 1e-22
"""Part of the empty model's objective below which a model fits exactly up to rounding."""


class Termination(str, Enum):
    """Why the search stopped."""

    GAP_CLOSED = "gap_closed"
    TREE_EXHAUSTED = "tree_exhausted"
    PRECISION_LIMIT = "precision_limit"
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    MEMORY_LIMIT = "memory_limit"
    INTERRUPTED = "interrupted"
    WORKER_FAILURE = "worker_failure"

    @property
    def sentence(self) -> str:
        """The word, explained."""
        return _SENTENCES[self]


class Claim(str, Enum):
    """What is proven."""

    OPTIMAL = "optimal"
    WITHIN_EPS = "within_eps"
    BOUNDED = "bounded"
    HEURISTIC_ONLY = "heuristic_only"

    @property
    def reached(self) -> bool:
        """Whether it says that the requested tolerance is proven."""
        return self in (Claim.OPTIMAL, Claim.WITHIN_EPS)


_SENTENCES = {
    Termination.GAP_CLOSED: "the gap is within the tolerance asked for",
    Termination.TREE_EXHAUSTED: "every part of the search space has been closed",
    Termination.PRECISION_LIMIT: "rounding leaves a gap that more search cannot close; see how the data are scaled",
    Termination.TIME_LIMIT: "the time limit was reached",
    Termination.NODE_LIMIT: "the node limit was reached",
    Termination.MEMORY_LIMIT: "the open nodes, or the features to search, outgrew the memory limit",
    Termination.INTERRUPTED: "the search was interrupted",
    Termination.WORKER_FAILURE: "workers failed again and again at the same nodes, which are open still",
}


def claim_of(upper: float, lower: float, tolerance: Tolerance) -> Claim:
    """The strongest claim the two bounds support; anything unusual supports none."""
    gap = upper - lower
    if not (math.isfinite(upper) and math.isfinite(lower) and gap >= 0):
        return Claim.HEURISTIC_ONLY
    noise = min(tolerance.noise, NOISY_GAP * abs(upper))
    if gap <= max(OPTIMAL_GAP * abs(upper), noise, EXACT_FIT * tolerance.null):
        return Claim.OPTIMAL
    if gap <= tolerance.absolute(upper):
        return Claim.WITHIN_EPS
    return Claim.BOUNDED


def termination_of(reason: str | None, claim: Claim) -> Termination:
    """Why the search stopped, where its engine says ``reason`` (None: it has not) and ``claim`` is proven."""
    stopped = Termination(reason or "interrupted")
    done = stopped in (Termination.GAP_CLOSED, Termination.TREE_EXHAUSTED)
    return Termination.PRECISION_LIMIT if done and not claim.reached else stopped


def claim_sentence(
    claim: Claim, upper: float, lower: float, null: float, problem: dict[str, Any], valid_for: str = "",
    beaten: bool = False,
) -> str:  # fmt: skip
    """What is proven of a model with the objective ``upper``, for people.

    ``null`` is the objective of the empty model, ``problem`` the problem as plain data (``describe()``), and
    ``valid_for`` what the lower bound is restricted to; ``beaten`` says that a better model is known.
    """
    models, only = _models(problem), f" among {valid_for}" if valid_for else ""
    if claim is Claim.HEURISTIC_ONLY:
        return "Nothing is proven: no lower bound is known."
    if claim is Claim.OPTIMAL:
        fine, noisy = (upper - lower <= share * abs(upper) for share in (OPTIMAL_GAP, NOISY_GAP))
        tolerance = "relative tolerance 1e-9" if fine else "relative tolerance 1e-6: rounding leaves no less"
        if not (fine or noisy):
            tolerance = "it fits as well as rounding can tell"
        return f"Optimal{only}: no {models} has a lower objective ({tolerance})."
    if claim is Claim.WITHIN_EPS and NOISY_GAP * abs(upper) < upper - lower <= rounded(null, problem.get("loss", "")):
        return (
            f"Optimal{only} as far as rounding tells: no {models} has an objective lower by more than "
            f"{rounded_up((upper - lower) / null, 2)} times the empty model's."
        )
    if claim is Claim.WITHIN_EPS:
        opening = f"Optimal within the tolerance{only}:"
    else:
        opening = f"Not optimal{only}, but" if beaten else f"Not proven optimal{only}:"
    share = relative_gap(upper - lower, upper, null)
    if not share < 1.0:
        return f"{opening} no {models} has an objective below {lower:.6g}."
    return f"{opening} no {models} has an objective lower by more than {per_cent(share)}."


def per_cent(share: float) -> str:
    """A share in per cent with three digits, rounded up."""
    return f"{rounded_up(100.0 * share)} %"


def rounded_up(value: float, digits: int = 3) -> str:
    """A number with so many digits that is not smaller."""
    return f"{float(Decimal(value).normalize(Context(prec=digits, rounding=ROUND_CEILING))):.{digits}g}"


def restricted(problem: dict[str, Any]) -> bool:
    """Whether models must meet more than a limit on their size; ``problem`` is the problem as plain data."""
    return any(problem.get(name) for name in ("force_in", "force_out", *NAMES, "bounds", "equalities"))


def _models(problem: dict[str, Any]) -> str:
    k = problem["k"]
    unit = problem.get("unit", "column")
    noun = "feature" if unit == "column" else unit
    if problem["problem"] == "css":
        noun = "column"
    kind = "choice of" if problem["problem"] == "css" else "model with"
    allowed = " that meets the constraints" if restricted(problem) else ""
    return f"{kind} at most {k} {noun}{'' if k == 1 else 's'}{allowed}"
