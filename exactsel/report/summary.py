"""The summary of a chosen model as a section of a page, with what is to be said of its selection."""

from __future__ import annotations

import math

from exactsel.errors import InputError, UnsupportedError
from exactsel.report.page import Cell, paragraph, section, table
from exactsel.solving.model_summary import ModelSummary
from exactsel.solving.result import Result


def summary_section(result: Result, intro: str = "") -> str:
    """Parameters with standard errors and intervals, facts, warnings; or why there is no such summary."""
    said = [paragraph(intro)] if intro else []
    try:
        summary = result.summary()
    except (InputError, UnsupportedError) as error:
        return section("The chosen model", *said, paragraph(f"There is no summary: {error}", "quiet"))
    warnings = [paragraph(warning, "warn") for warning in summary.warnings]
    return section("The chosen model", *said, _parameters(summary), *warnings, _facts(summary))


def _parameters(summary: ModelSummary) -> str:
    level = f"{100 * summary.level:g} %"
    header = ["parameter", "coefficient", "standard error", summary.test, "p", f"{level} from", "to"]
    rows: list[list[Cell]] = [[row.name, *map(_number, row.figures)] for row in summary.parameters]
    return table("Coefficients for the data as given, as if the features had been fixed before", header, rows)


def _facts(summary: ModelSummary) -> str:
    rows: list[list[Cell]] = [[name, value] for name, value in summary.facts()]
    return table("The fit in figures", ["what", "value"], rows, words=2)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
