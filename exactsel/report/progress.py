"""The section of a page on the course of a solve: bounds that meet, or one pass, and the sources of the models."""

from __future__ import annotations

import math

from exactsel.observers.history import History, Incumbent
from exactsel.report.page import Cell, figure, paragraph, section, table
from exactsel.report.svg import Series, line_chart
from exactsel.solving.plain_search import search_words
from exactsel.solving.result import Result
from exactsel.to_plain import counted

LEAST_GAPS = 4
"""Different gaps that make a line worth drawing."""


def progress_section(result: Result, history: History, plain: Result | None = None) -> str:
    """Both bounds over time and the sources of the models.

    A run in one pass gets a note that it was one, and a ``plain`` search.
    """
    if not history.moments:
        return ""
    if result.reached and history.one_pass:
        said = paragraph(
            "Solved in one pass: the bounds closed the whole search space at its root. No region was split, so there "
            "is no tree, and no curve of bounds to draw."
        )
        return section("How it was solved", said, _found(result, history), _plain(plain))
    caption = "The search ends when the two lines meet. Between them lies the optimum at every moment."
    chart = figure(_bounds(history), caption)
    return section("Bound and best model over time", chart, _gap_chart(history), _found(result, history))


def _plain(plain: Result | None) -> str:
    """What a plain best-first search for the same answer does, over its nodes."""
    if plain is None or plain.history is None:
        return ""
    caption = (
        f"The same problem by plain best-first search: {counted(plain.nodes, 'node')} until the two lines meet. "
        "'exactsel play' shows them one by one."
    )
    words = paragraph(search_words(plain.settings), "quiet")
    return f"<h3>How a plain search goes</h3>{words}{figure(_bounds(plain.history, over_nodes=True), caption)}"


def _bounds(history: History, *, over_nodes: bool = False) -> str:
    """The best model and the lower bound over seconds, or over nodes."""
    moments = [(float(m.nodes) if over_nodes else m.seconds, m) for m in history.moments]
    over, last = "nodes" if over_nodes else "time", history.moments[-1]
    upper = [(at, m.upper) for at, m in moments]
    end = counted(last.nodes, "node") if over_nodes else f"{last.seconds:.2f} seconds"
    return line_chart(
        [
            Series("best model found", "upper", upper, dots=len(upper) <= 60),
            Series("lower bound", "lower", [(at, m.lower) for at, m in moments]),
        ],
        title=f"Bound and best model over {over}",
        description=f"The best objective ends at {last.upper:.6g} and the lower bound at {last.lower:.6g} after {end}",
        x_label="nodes" if over_nodes else "seconds since the start",
        y_label="objective",
        from_zero=False,
    )


def _found(result: Result, history: History) -> str:
    """The sources of the models, and the changes."""
    rows: list[list[Cell]] = [
        [f"{i.seconds:.2f}", i.nodes, f"{i.value:.9g}", i.source, _change(before, i)]
        for before, i in zip([None, *history.incumbents], history.incumbents, strict=False)
    ]
    header = ["seconds", "nodes", "objective", "found by", f"{result._noun}s in (+) and out (−)"]
    return table("Where the models came from", header, rows, best=[len(rows) - 1])


def _gap_chart(history: History) -> str:
    """The gap alone, on a logarithmic axis, where the last per cents are seen; nothing where it closed at once."""
    gaps = [(m.seconds, 100.0 * (m.upper - m.lower) / abs(m.upper)) for m in history.moments if m.upper]
    gaps = [(seconds, gap) for seconds, gap in gaps if math.isfinite(gap) and gap > 0]
    if len({gap for _, gap in gaps}) < LEAST_GAPS:
        return ""
    chart = line_chart(
        [Series("gap", "upper", gaps)],
        title="Gap over time",
        description=f"The gap falls from {gaps[0][1]:.3g} to {gaps[-1][1]:.3g} per cent of the objective",
        x_label="seconds since the start",
        y_label="gap, %",
        log_y=True,
        from_zero=False,
    )
    return figure(chart, "The gap between the two lines in per cent of the objective, on a logarithmic axis.")


def _change(before: Incumbent | None, now: Incumbent) -> str:
    old = set(before.support) if before is not None else set()
    signs = [f"+{j}" for j in now.support if j not in old] + [f"−{j}" for j in sorted(old - {*now.support})]
    return " ".join(signs) or "none"
