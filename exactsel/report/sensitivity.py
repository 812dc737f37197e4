"""Sections of a page on sensitivity: exchanges of each column, and models that come close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from exactsel.problem.model import label
from exactsel.report.close import close_section
from exactsel.report.page import Cell, paragraph, section, table
from exactsel.solving.result import Result

if TYPE_CHECKING:
    from exactsel.studies.exchange import Neighbourhood
    from exactsel.studies.sensitivity import Sensitivity


def surroundings_section(result: Result, sensitivity: Sensitivity) -> str:
    """The exchanges, where they were evaluated, and the models that come close."""
    names, noun = result.problem["feature_names"], result._noun
    listing = close_section(sensitivity, result.problem["k"], names, noun)
    if sensitivity.exchanges is None:
        return listing
    return f"{_exchanges(result, sensitivity.exchanges, names, noun)}\n{listing}"


def _exchanges(result: Result, neighbourhood: Neighbourhood, names: Sequence[str] | None, noun: str) -> str:
    rows: list[list[Cell]] = []
    for exchange in neighbourhood.exchanges:
        other = exchange.replacement
        rows.append(
            [
                label(exchange.column, names),
                exchange.without - result.upper,
                "none" if other is None else label(other, names),
                None if exchange.replaced is None else exchange.replaced - result.upper,
            ]
        )
    intro = paragraph(
        f"How much the objective rises when one {noun} is taken out of the model and the others are fitted anew, and "
        f"how much when the best other {noun} takes its place. A small rise in the last column of the table means that "
        "the data hardly tell the two apart."
    )
    header = [noun, "rise without it", "best replacement", "rise with that"]
    return section(f"How much hangs on each {noun}", intro, table(f"One {noun} exchanged", header, rows))
