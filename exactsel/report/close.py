"""The section of a page on columns that the models close to the best have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exactsel.problem.model import label, listed
from exactsel.report.page import Cell, paragraph, section, table
from exactsel.to_plain import counted

if TYPE_CHECKING:
    from exactsel.studies.sensitivity import Sensitivity
    from exactsel.studies.solution_pool import NearOptimal

MOST_ROWS = 20
"""Columns listed at most."""


def close_section(surroundings: Sensitivity, k: int, names: Sequence[str] | None, noun: str) -> str:
    """How often each column (or ``noun``) occurs: in a complete list, or in the models that were evaluated."""
    pool, neighbourhood, reach = surroundings.close, surroundings.exchanges, f"{100 * surroundings.share:g} %"
    if pool.near is not None:
        return _complete(pool.near, pool.share, k, names, noun)
    missing = paragraph(f"A complete list of the models that come close was not made: {pool.why_not}.", "quiet")
    if neighbourhood is None:
        return section("Models that come close", missing)
    if neighbourhood.near_optimal < 2:
        none = paragraph(
            f"No other model that was looked at comes within {reach} of the objective (models met in the "
            f"search, and all that differ from the answer in one {noun})."
        )
        return section("Models that come close", missing, none)
    caption = (
        f"{noun.capitalize()}s in the {neighbourhood.near_optimal} models within {reach} of the objective, among "
        f"those met in the search and those that differ from the answer in one {noun} (not a complete list)"
    )
    return section(
        "Models that come close",
        missing,
        _shares(neighbourhood.inclusion, neighbourhood.near_optimal, caption, names, noun),
    )


def _complete(listing: NearOptimal, share: float, k: int, names: Sequence[str] | None, noun: str) -> str:
    count, reach = len(listing.models), f"within {100 * share:g} % of the best objective"
    if not listing.models:
        return ""
    if count == 1:
        only = f"No other set of {counted(k, noun)} comes {reach}; this is proven."
        return section("Models that come close", paragraph(only))
    every = listed(listing.in_every or (), names, "{name} ({number})")
    intro = paragraph(
        f"Exactly {count:,} sets of {counted(k, noun)} come {reach}; the list is complete, which is proven like the "
        f"answer itself. {noun.capitalize()}s in all of them: {every}."
    )
    used = Counter(j for model in listing.models for j in model.support)
    caption = f"How many of the {count:,} sets have the {noun}; {noun}s that are not listed are in none"
    if len(used) > MOST_ROWS:
        caption = f"How many of the {count:,} sets have the {noun}: the first {MOST_ROWS} of {len(used)} {noun}s"
    return section("Models that come close", intro, _shares(dict(used), count, caption, names, noun))


def _shares(counts: dict[int, int], total: int, caption: str, names: Sequence[str] | None, noun: str) -> str:
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_ROWS]
    rows: list[list[Cell]] = [[label(j, names), count, round(100 * count / total)] for j, count in first]
    return table(caption, [noun, "models", "per cent"], rows)
