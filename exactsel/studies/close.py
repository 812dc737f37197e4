"""The columns that the models close to the best have in common, from a complete list where that is affordable."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from exactsel import clock
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.solving.small import begun_without_compiler
from exactsel.studies.exchange import NEAR
from exactsel.studies.pool_search import SolutionPool
from exactsel.studies.solution_pool import NearOptimal, list_on

SHARES = (NEAR, NEAR / 10)
"""How close to the best objective; the first that can be listed completely is shown."""

SECONDS = (5.0, 20.0)
"""A list may take as long as the search did, but at least and at most this."""

CAP = 1000
"""Models listed at most."""


@dataclass(frozen=True)
class Close:
    """The complete list of close models, or why there is none."""

    near: NearOptimal | None
    share: float
    why_not: str = ""


@begun_without_compiler
def close_models(problem: SubsetProblem, result: Result, signals: Sequence[int] = (signal.SIGINT,)) -> Close:
    """List all models of k columns within the first of :data:`SHARES` for which that can be done in little time.

    One of the ``signals`` ends it. A time limit of the search holds for search and listing together.
    """
    if not result.reached or result.termination is Termination.INTERRUPTED:
        return Close(None, NEAR, "the best model is not proven to be the best")
    rest = min(SECONDS[1], max(SECONDS[0], result.time))
    if result.settings["time_limit"] is not None:
        rest = max(0.0, min(rest, result.settings["time_limit"] - result.time))
    why = ""
    for share in SHARES:
        began = clock.now()
        allowed = rest if share == SHARES[-1] else rest / 2
        pool = SolutionPool.begun(problem, result.upper, share * abs(result.upper))
        settings = Settings(time_limit=allowed, threads=result.settings["threads"])
        listing = list_on(result, pool, CAP, settings, signals)
        if listing.complete:
            return Close(listing, share)
        rest -= clock.now() - began
        reach = f"within {100 * share:g} % of the best"
        reasons = {
            "cap": f"there are more than {CAP:,} {reach}",
            "time_limit": f"{allowed:.2g} seconds were too few to find all {reach}",
        }
        why = reasons.get(listing.termination, "it was interrupted")
        if listing.termination == "interrupted":
            break
    return Close(None, NEAR, why)
