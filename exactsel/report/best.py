"""The best models over all sizes, as tables for stdout."""

from __future__ import annotations

import math

from exactsel.observers.terminal import fitting
from exactsel.problem.model import label, listed
from exactsel.studies.best_models import FAR, NEAR, BestModels
from exactsel.studies.size_report import SizeStatus
from exactsel.to_plain import counted

MODELS = {"rank": 4, "k": 4, "df": 4, "criterion": 16, "delta": 9, "weight": 7}
SIZES = {"k": 4, "criterion": 16, "lower": 16, "status": 10, "nodes": 9}
LESS_IMPORTANT = ("nodes", "status", "lower", "weight")
MOST_COLUMNS = 30
"""Columns whose frequency is shown; the JSON output has all."""


def best_table(best: BestModels, width: int | None = None) -> str:
    """What is proven, the models, what is known of each size, and how often columns occur among the best models.

    In a terminal of some ``width`` columns of the tables that do not fit are dropped.
    """
    parts = [str(best), _models(best, width), _sizes(best, width)]
    if len(best.models) > 1 and best.has_weights:
        parts.append(_inclusion(best))
    return "\n\n".join(parts)


def _models(best: BestModels, width: int | None) -> str:
    without = {"df": not best.has_terms, "weight": not best.has_weights}
    widths = {name: size for name, size in MODELS.items() if not without.get(name)}
    fields = fitting(widths, LESS_IMPORTANT, width and width - 16)
    titles = {"criterion": best.criterion.title}
    lines = [" ".join(f"{titles.get(name, name):>{MODELS[name]}}" for name in fields) + "  features"]
    for rank, k, df, value, delta, weight, columns in best.rows():
        entries = {"rank": rank, "k": k, "df": df, "criterion": value, "delta": delta, "weight": weight}
        lines.append(" ".join(f"{entries[name]:>{MODELS[name]}}" for name in fields) + f"  {columns}")
    return "\n".join(lines)


def _sizes(best: BestModels, width: int | None) -> str:
    names, display = best.result.problem["feature_names"], best.criterion.shown
    fields = fitting(SIZES, LESS_IMPORTANT, width and width - 16)
    titles = {"criterion": best.criterion.title} | ({"k": "df"} if best.has_terms else {})
    lines = [" ".join(f"{titles.get(name, name):>{SIZES[name]}}" for name in fields) + "  best known of this size"]
    for size in best.sizes:
        entries = {
            "k": str(size.size), "criterion": _number(display(size.criterion)), "lower": _number(display(size.lower)),
            "status": size.status.text, "nodes": str(size.nodes),
        }  # fmt: skip
        columns = "not looked for" if size.support is None else listed(size.support, names)
        lines.append(" ".join(f"{entries[name]:>{SIZES[name]}}" for name in fields) + f"  {columns}")
    lines += ["", f"lower: no model of this size has a better {best.criterion.title}", *_meanings(best)]
    return "\n".join(lines)


def _meanings(best: BestModels) -> list[str]:
    """What the statuses in the table mean."""
    statuses = {size.status for size in best.sizes}
    return [f"{status.text}: {status.meaning}" for status in SizeStatus if status in statuses]


def _inclusion(best: BestModels) -> str:
    """For each column the share of the models near the best that hold it."""
    near, far = best.inclusion(NEAR), best.inclusion(FAR)
    names = best.result.problem["feature_names"]
    columns = list(far.counts)[:MOST_COLUMNS]
    size = max([len(label(j, names)) for j in columns] + [len("feature")])
    lines = [
        f"in how many of the models within {NEAR:g} ({_how_many(near.models, near.complete)}) and {FAR:g} "
        f"({_how_many(far.models, far.complete)}) of the best",
        f"{'feature':<{size}} {f'within {NEAR:g}':>10} {f'within {FAR:g}':>10} {'weight':>8}",
    ]
    for j in columns:
        lines.append(
            f"{label(j, names):<{size}} {near.counts.get(j, 0):>10} {far.counts[j]:>10} {far.weights[j]:>8.3f}"
        )
    if len(far.counts) > MOST_COLUMNS:
        lines.append(f"and {counted(len(far.counts) - MOST_COLUMNS, 'more feature')}")
    return "\n".join(lines)


def _how_many(models: int, complete: bool) -> str:
    return f"{models}, all there are" if complete else f"{models} listed, perhaps more"


def _number(value: float) -> str:
    return f"{value:.10g}" if math.isfinite(value) else "-"
