"""Exact against approximate as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from exactsel._version import __version__
from exactsel.nodes.tolerance import relative_gap
from exactsel.problem.model import label
from exactsel.report.answer import answer_text
from exactsel.report.page import Cell, Raw, code, figure, page, paragraph, section, table
from exactsel.report.svg import Series, line_chart, rod
from exactsel.studies.compare import Comparison, Row

MOST_COLUMNS = 40
"""Columns shown side by side; the rest is listed in the table of methods."""

CURVES, STYLES = 2, ("other", "more")
"""Anytime curves of this many methods are drawn beside the search's."""


def comparison_page(comparison: Comparison, *, command: str | None = None) -> str:
    """The page as HTML text; ``command`` is what repeats it."""
    result = comparison.result
    title = f"Exact against approximate: {len(result.support)} of {result.problem['d']} {result._noun}s"
    parts = [
        f"<h1>{escape(title)}</h1>",
        paragraph(answer_text(result), "lead good" if result.reached else "lead warn"),
        paragraph(_summary(comparison)),
        _methods(comparison),
        _spreads(comparison),
        _supports(comparison),
        _curves(comparison),
    ]
    if comparison.left_out:
        rows: list[list[Cell]] = [[method, reason] for method, reason in comparison.left_out]
        parts.append(section("Left out", table("Methods that cannot serve this problem", ["method", "reason"], rows)))
    if command is not None:
        parts.append(section("Do it again", code(command, "The command that repeats the comparison")))
    parts.append(f"<footer>{paragraph(f'Written by exactsel {__version__}.')}</footer>")
    return page(title, "\n".join(part for part in parts if part))


def _summary(comparison: Comparison) -> str:
    """How many methods found the best model known, and how far the worst is off."""
    rows, best = comparison.rows, comparison.result.upper
    hit = [row for row in rows if not _is_worse(row, best)]
    if not rows:
        return "No approximate method was run."
    text = f"{len(hit)} of {len(rows)} approximate methods found a model as good as the best one known"
    if len(hit) == len(rows):
        return f"{text}; but only the search can say so."
    worst = max(rows, key=lambda row: row.value)
    return (
        f"{text}. The worst, {worst.method}, has an objective {worst.excess:.4g} above it. By itself no method can "
        "say whether its model is the best."
    )


def _is_worse(row: Row, best: float) -> bool:
    return row.excess > 1e-9 * max(1.0, abs(best))


def _methods(comparison: Comparison) -> str:
    result = comparison.result
    largest = max((max(row.excess, 0.0) for row in comparison.rows), default=0.0)
    rows: list[list[Cell]] = [
        [
            "exact search", result.upper, 0.0, Raw(""), result.gap, f"{len(result.support)} of {len(result.support)}",
            f"{result.nodes:,} {'node' if result.nodes == 1 else 'nodes'}", f"{result.time:.3f}",
        ]
    ]  # fmt: skip
    for row in comparison.rows:
        excess = max(row.excess, 0.0)
        rows.append(
            [
                row.method, row.value, excess, Raw(rod(excess, largest) if excess else ""), row.gap,
                f"{row.shared} of {len(result.support)}", f"{row.evaluations:,}", f"{row.time:.3f}",
            ]
        )  # fmt: skip
    header = [
        "method",
        "objective",
        "above the best",
        "drawn",
        "certified gap",
        f"shared {result._noun}s",
        "models evaluated",
        "seconds",
    ]
    note = (
        f"The certified gap of every method is its objective less {result.lower:.8g}, the lower bound of the exact "
        "search, which no model is below, as a share of its objective."
    )
    return section("Methods", table("Best objective first", header, rows, best=[0]), paragraph(note, "quiet"))


def _spreads(comparison: Comparison) -> str:
    """How the objectives of the random methods lie over the seeds, where there were several."""
    rows: list[list[Cell]] = []
    lower, null = comparison.result.lower, comparison.result.null_objective
    for row in comparison.rows:
        if row.values:
            least, middle, most = row.spread
            rows.append([row.method, len(row.values), middle, least, most, relative_gap(middle - lower, middle, null)])
    header = ["method", "seeds", "median objective", "smallest", "largest", "certified gap of the median"]
    note = paragraph("Elsewhere on this page a random method is shown by the best of its runs.", "quiet")
    return section("Over seeds", table("Random methods, run once a seed", header, rows), note) if rows else ""


def _supports(comparison: Comparison) -> str:
    """The table of columns by method; the columns that most methods agree on first."""
    result, names = comparison.result, comparison.result.problem["feature_names"]
    chosen: list[tuple[str, Sequence[int]]] = [("exact search", result.support)]
    chosen += [(row.method, row.support) for row in comparison.rows]
    counts = {j: sum(j in support for _, support in chosen) for _, support in chosen for j in support}
    columns = sorted(counts, key=lambda j: (j not in result.support, -counts[j], j))[:MOST_COLUMNS]
    if not columns:
        return ""
    header = ["method", *(label(j, names, "{name}") for j in columns)]
    rows: list[list[Cell]] = [
        [method, *(Raw('<span class="chip hit">yes</span>' if j in support else "·") for j in columns)]
        for method, support in chosen
    ]
    more = len(counts) - len(columns)
    note = f"{more} further {result._noun}s were chosen by some method." if more else ""
    return section(
        "Supports side by side",
        table(f"{result._noun.capitalize()}s of the best model come first", header, rows, best=[0]),
        paragraph(note, "quiet") if note else "",
    )


def _curves(comparison: Comparison) -> str:
    """Best objective against work, for the methods that keep a curve and the search from nothing."""
    alone = comparison.alone
    if alone is None or alone.history is None:
        return ""
    moments = alone.history.moments
    series = [
        Series("search: best model", "upper", [(m.nodes + 1, m.upper) for m in moments]),
        Series("search: lower bound", "lower", [(m.nodes + 1, m.lower) for m in moments]),
    ]
    drawn = [row for row in comparison.rows if row.proposal.curve][:CURVES]
    for row, style in zip(drawn, STYLES, strict=False):
        curve = [(float(max(count, 1)), value) for count, value in row.proposal.curve]
        if curve[-1][0] < row.evaluations:
            curve.append((float(row.evaluations), curve[-1][1]))
        series.append(Series(row.method, style, curve))
    chart = line_chart(
        series,
        title="Best objective against work",
        description="The search starts from the empty model here, without the methods' help",
        x_label="models evaluated (methods), nodes bounded (search); logarithmic",
        y_label="objective",
        log_x=True,
    )
    caption = (
        "Here the search starts from the empty model, without any method's help. A method's curve only comes down; "
        "the search also lifts a lower bound, and where that meets the best model there is nothing left to find. One "
        "node costs more than one evaluation, so the curves compare progress, not time."
    )
    return section("Progress", figure(chart, caption))
