"""Which columns the models close to the best have in common, from a complete list where that is affordable."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from exactsel import clock
from exactsel.near import NearOptimal, list_near
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.model import label
from exactsel.report.exchange import NEAR, Neighbourhood
from exactsel.report.page import Cell, paragraph, section, table
from exactsel.result import Result, Termination

SHARES = (NEAR, NEAR / 10)
"""How close to the best objective; the first that can be listed completely is shown."""

SECONDS = (5.0, 20.0)
"""A list may take as long as the search did, but at least and at most this."""

CAP = 1000
MOST_ROWS = 20


@dataclass(frozen=True)
class Close:
    """The complete list of close models, or why there is none."""

    near: NearOptimal | None
    share: float
    why_not: str = ""


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
        near = list_near(
            problem, result, share * abs(result.upper), cap=CAP, time_limit=allowed, signals=signals,
            threads=result.settings["threads"],
        )  # fmt: skip
        if near.complete:
            return Close(near, share)
        rest -= clock.now() - began
        reach = f"within {100 * share:g} % of the best"
        reasons = {
            "cap": f"there are more than {CAP:,} {reach}",
            "time_limit": f"{allowed:.2g} seconds were too few to find all {reach}",
        }
        why = reasons.get(near.termination, "it was interrupted")
        if near.termination == "interrupted":
            break
    return Close(None, NEAR, why)


def close_section(
    close: Close, around: Neighbourhood | None, k: int, names: Sequence[str] | None, noun: str = "column"
) -> str:
    """How often each column (or ``noun``) occurs: in a complete list, or in the models that were looked at."""
    if close.near is not None:
        return _complete(close.near, close.share, k, names, noun)
    missing = paragraph(f"A complete list of the models that come close was not made: {close.why_not}.", "quiet")
    if around is None:
        return section("Models that come close", missing)
    if around.near_optimal < 2:
        none = paragraph(
            f"No other model that was looked at comes within {100 * NEAR:g} % of the objective (models met in the "
            f"search, and all that differ from the answer in one {noun})."
        )
        return section("Models that come close", missing, none)
    caption = (
        f"{noun.capitalize()}s in the {around.near_optimal} models within {100 * NEAR:g} % of the objective, among "
        f"those met in the search and those that differ from the answer in one {noun} (not a complete list)"
    )
    return section(
        "Models that come close", missing, _shares(around.inclusion, around.near_optimal, caption, names, noun)
    )


def _complete(near: NearOptimal, share: float, k: int, names: Sequence[str] | None, noun: str) -> str:
    count, reach = len(near.models), f"within {100 * share:g} % of the best objective"
    if not near.models:
        return ""
    if count == 1:
        only = f"No other set of {k} {noun}s comes {reach}; this is proven."
        return section("Models that come close", paragraph(only))
    every = ", ".join(label(j, names) for j in near.in_every or ()) or "none"
    intro = paragraph(
        f"Exactly {count:,} sets of {k} {noun}s come {reach}; the list is complete, which is proven like the answer "
        f"itself. {noun.capitalize()}s in all of them: {every}."
    )
    used = Counter(j for model in near.models for j in model.support)
    caption = f"How many of the {count:,} sets have the {noun}; {noun}s that are not listed are in none"
    if len(used) > MOST_ROWS:
        caption = f"How many of the {count:,} sets have the {noun}: the first {MOST_ROWS} of {len(used)} {noun}s"
    return section("Models that come close", intro, _shares(dict(used), count, caption, names, noun))


def _shares(counts: dict[int, int], total: int, caption: str, names: Sequence[str] | None, noun: str) -> str:
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_ROWS]
    rows: list[list[Cell]] = [[label(j, names), count, round(100 * count / total)] for j, count in first]
    return table(caption, [noun, "models", "per cent"], rows)
