"""The warning of an estimator whose search ended with a gap."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sklearn.exceptions import ConvergenceWarning

from exactsel.errors import warn
from exactsel.solving.outcome import Claim, Termination, per_cent, rounded_up
from exactsel.solving.result import Result
from exactsel.studies.best_models import BestModels

LIMITS = {
    Termination.TIME_LIMIT: "time_limit", Termination.NODE_LIMIT: "node_limit", Termination.MEMORY_LIMIT: "memory_limit"
}  # fmt: skip
"""The option that sets each limit."""


def warn_of_gap(
    found: Result | BestModels, solver_options: Mapping[str, object], of_folds: Collection[Termination] | None = None
) -> None:
    """A ConvergenceWarning with the gap, where a search has not reached the requested one.

    ``of_folds`` are the reasons why searches in folds ended early; None for an estimator without folds.
    """
    if found.reached and not of_folds:
        return
    own = [] if found.reached else [reason for reason in Termination if reason.value == found.termination]
    reasons = sorted({*own, *(of_folds or ())})
    why = " and ".join(reason.sentence for reason in reasons) or "the search has ended"
    which = "not all models of the folds are" if found.reached else "the model is not"
    gap = "" if found.reached else f" ({_gap(found)})"
    limits = [_option(LIMITS[reason], solver_options) for reason in reasons if reason in LIMITS]
    larger = [*limits, _option("rel_eps", solver_options)]
    ways = [*(["fit again"] if Termination.INTERRUPTED in reasons else []), f"give a larger {' or '.join(larger)}"]
    ways += ["give fewer ks"] if of_folds else []
    warn(f"{why}, and {which} proven best{gap}; {', or '.join(ways)}.", ConvergenceWarning)


def _gap(found: Result | BestModels) -> str:
    if found.claim is Claim.HEURISTIC_ONLY:
        return "no lower bound is known"
    if isinstance(found, BestModels) and found.criterion.name != "l0":
        return f"its {found.criterion.title} has a gap of {rounded_up(found.absolute_gap)}"
    return f"its gap is {per_cent(found.gap)}"


def _option(name: str, solver_options: Mapping[str, object]) -> str:
    """Where the option is set: ``solver_options`` takes precedence over the parameter."""
    return f"solver_options[{name!r}]" if name in solver_options or name not in ("time_limit", "rel_eps") else name
