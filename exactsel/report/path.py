"""The best models along a path: a table for stdout, and pictures."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

from exactsel.errors import UnsupportedError
from exactsel.observers.terminal import fitting
from exactsel.problem.model import demands_text, label, listed
from exactsel.solving.result import Result
from exactsel.studies.criteria import NAMES, Compared
from exactsel.studies.path import SolutionPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTHS = {
    "k": 4, "lam": 10, "objective": 16, "gap": 9, "claim": 12, "nodes": 9, "time": 9,
    **dict.fromkeys(NAMES, 13),
}  # fmt: skip
MOST_DRAWN = 20
"""Columns in the picture of the models close to the best."""

LESS_IMPORTANT = ("nodes", "time", "claim", "lam", "ebic", "aic", "bic", "gap", "cv_error")
"""Columns dropped, in this order, in a terminal that is too narrow for all."""

ONE_ERROR = "smallest model within one standard error of the smallest held-out loss"

TITLES = {"aic": "AIC", "bic": "BIC", "ebic": "EBIC", "cv_error": "held-out loss"}


def path_table(compared: Compared, width: int | None = None) -> str:
    """One line per problem, with the criteria there are and which model each prefers.

    In a terminal of some ``width`` the columns that do not fit beside each other are dropped, with a note.
    """
    rows = [compared.row(result) for result in compared.path.results]
    several = len({result.problem.get("lam") for result in compared.path.results}) > 1
    criteria = [name for name in NAMES if any(row[name] is not None for row in rows)]
    widths = {name: size for name, size in WIDTHS.items() if name not in NAMES or name in criteria}
    # The support is as long as it is: with this much room its first columns still stand on the line.
    fields = fitting(widths, [name for name in LESS_IMPORTANT if name != "lam" or not several], width and width - 16)
    lines = [" ".join(f"{TITLES.get(name, name):{_side(name)}{widths[name]}}" for name in fields) + "  support"]
    for result, row in zip(compared.path.results, rows, strict=True):
        entries = _entries(result, row)
        line = " ".join(f"{entries[name]:{_side(name)}{widths[name]}}" for name in fields)
        lines.append(f"{line}  {_columns(result)}")
    if len(fields) < len(widths):
        left_out = ", ".join(TITLES.get(name, name) for name in widths if name not in fields)
        lines += ["", f"left out in this narrow terminal: {left_out}"]
    demands = demands_text(compared.path.results[0].problem)
    lines += ["", f"constraints: {demands}"] if demands else []
    lines += ["", "gap = (objective - lower) / |objective|, proven for each line"]
    lines += [
        f"advice: {advice}" for advice in dict.fromkeys(result.advice for result in compared.path.results) if advice
    ]
    lines += _near_lines(compared.path, several)
    # Where a line has a gap a better model of it may be there, and prefer another size.
    among = "" if all(result.reached for result in compared.path.results) else ", among the models found"
    for name, result in compared.best.items():
        where = f"k = {result.problem['k']}" + (f", lam = {result.problem['lam']:g}" if several else "")
        what = ONE_ERROR if name == "one_standard_error" else f"{TITLES[name]} is smallest"
        lines.append(f"{what} at {where}{among}")
    return "\n".join(lines)


def penalty_table(path: SolutionPath) -> str:
    """Which model has the smallest P(x) + lam0 ||x||_0 at which lam0."""
    names = path.results[0].problem["feature_names"]
    lines = [f"{'lam0 from':>12} {'to':>12} {'size':>5} {'objective':>16} {'gap':>9}  features"]
    for part in path.penalty_ranges:
        high = "inf" if part.high == math.inf else f"{part.high:.6g}"
        # Groups have names of their own; their columns have numbers.
        columns = listed(part.columns, None if path.results[0].problem.get("groups") else names)
        lines.append(
            f"{part.low:>12.6g} {high:>12} {part.size:>5} {part.objective:>16.10g} {part.gap:>9.2g}  {columns}"
        )
    lines += ["", "gap: of objective + lam0 size, at most, anywhere in the range, among the sizes of this path"]
    return "\n".join(lines)


def _entries(result: Result, row: dict[str, float | None]) -> dict[str, str]:
    """One line of the table, as text."""
    lam = result.problem.get("lam")
    criteria = {name: "-" if row[name] is None else format(row[name], ".6g") for name in NAMES}
    return {
        "k": str(result.problem["k"]), "lam": "-" if lam is None else f"{lam:.4g}",
        "objective": f"{result.upper:.10g}", "gap": f"{result.gap:.2g}", "claim": result.claim.value,
        "nodes": str(result.nodes), "time": f"{result.time:.2f}s", **criteria,
    }  # fmt: skip


def _side(name: str) -> str:
    return "<" if name == "claim" else ">"


def _near_lines(path: SolutionPath, several: bool) -> list[str]:
    """For every problem how many models come close to its best, and what these have in common."""
    if path.near is None:
        return []
    share = 100 * (path.near_share or 0.0)
    lines = ["", f"sets of exactly k features within {share:.4g} % of the best objective for that k"]
    lines.append(f"{'k':>4}" + (f" {'lam':>10}" if several else "") + f" {'sets':>6} {'features':>8}  in every one")
    for listing in path.near:
        problem, names = listing.result.problem, listing.feature_names
        used = len({j for model in listing.models for j in model.support})
        shared = listed(listing.in_every or (), names)
        if not listing.complete:
            shared = f"not known: INCOMPLETE ({listing.termination})"
        lam = f" {problem.get('lam', 0.0):>10.4g}" if several else ""
        lines.append(f"{problem['k']:>4}{lam} {len(listing.models):>6} {used:>8}  {shared}")
    return [*lines, ""]


def figure_class() -> type[Figure]:
    """What draws pictures; :class:`UnsupportedError` where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("pictures need matplotlib; run: pip install 'exactsel[plot]'.") from None
    return Figure


def draw_path(compared: Compared, style: str) -> bytes:
    """Objective with its proven bound, criteria and held-out loss over k (``png``, ``svg`` or ``pdf``); matplotlib."""
    rows = [compared.row(result) for result in compared.path.results]
    panels = ["objective"]
    panels += ["criteria"] if any(row["aic"] is not None for row in rows) else []
    panels += ["held-out loss"] if compared.validation is not None else []
    panels += ["models close to the best"] if compared.path.near else []
    figure = figure_class()(figsize=(4.5 * len(panels), 3.5), layout="constrained")
    weights = list(dict.fromkeys(result.problem.get("lam") for result in compared.path.results))
    for title, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        axes.set_xlabel("k")
        axes.set_title(title)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if title == "models close to the best":
            _draw_close(axes, compared.path)
            continue
        for lam in weights:
            along = [
                (r, row) for r, row in zip(compared.path.results, rows, strict=True) if r.problem.get("lam") == lam
            ]
            label = "" if len(weights) == 1 else f"lam = {lam:g}"
            _draw(axes, title, along, label)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8, loc="upper right")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=style, dpi=120)
    return buffer.getvalue()


def _draw(axes: Axes, title: str, along: list[tuple[Result, dict[str, float | None]]], label: str) -> None:
    """One panel's lines for one ridge weight."""
    ks = [result.problem["k"] for result, _ in along]
    if title == "objective":
        line = axes.plot(ks, [result.upper for result, _ in along], "o-", label=label or "best model")[0]
        lower = [result.lower for result, _ in along]
        axes.plot(ks, lower, "_", color=line.get_color(), markersize=12, label="" if label else "proven lower bound")
    elif title == "criteria":
        for name, style in (("aic", "o-"), ("bic", "s--"), ("ebic", "^:")):
            axes.plot(ks, [_number(row[name]) for _, row in along], style, label=f"{TITLES[name]} {label}".strip())
    else:
        values, errors = ([_number(row[name]) for _, row in along] for name in ("cv_error", "cv_standard_error"))
        axes.errorbar(ks, values, yerr=errors, fmt="o-", capsize=3, label=label)


def _draw_close(axes: Axes, path: SolutionPath) -> None:
    """For the columns that occur most, in which share of the models close to the best of each size they are."""
    complete = [listing for listing in path.near or () if listing.complete and listing.models]
    shares: dict[int, dict[int, float]] = {}
    for place, listing in enumerate(complete):
        for j in {j for model in listing.models for j in model.support}:
            with_it = sum(j in model.support for model in listing.models)
            shares.setdefault(j, {})[place] = with_it / len(listing.models)
    first = sorted(shares, key=lambda j: (-sum(shares[j].values()), j))[:MOST_DRAWN]
    points = [(place, row, share) for row, j in enumerate(first) for place, share in shares[j].items()]
    if points:
        x, y, sizes = zip(*points, strict=True)
        axes.scatter(x, y, s=[60 * size for size in sizes])
    several = len({listing.result.problem.get("lam") for listing in complete}) > 1
    ticks = [
        f"{listing.result.problem['k']}" + (f"\n{listing.result.problem['lam']:g}" if several else "")
        for listing in complete
    ]
    names = path.results[0].problem["feature_names"]
    axes.set_xticks(range(len(complete)), ticks, fontsize=7)
    axes.set_yticks(range(len(first)), [label(j, names, "{name}") for j in first], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(
        "k and lam; areas: share of the models within reach" if several else "k; areas: share of the models"
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _columns(result: Result) -> str:
    return listed(result.support, result.problem["feature_names"])
