"""The best models over all sizes as a self-contained HTML page."""

from __future__ import annotations

import math
from html import escape

from exactsel._version import __version__
from exactsel.problem.model import label, listed
from exactsel.report.degrees import criteria_shown, criterion_value, degrees_of_freedom
from exactsel.report.heat_map import HeatRow, heat_map, left_out_words, shown_variables
from exactsel.report.page import Cell, figure, page, paragraph, section, table, tiles, wide
from exactsel.report.settings import commands_section, settings_section
from exactsel.report.summary import summary_section
from exactsel.studies.best_models import FAR, NEAR, BestModels
from exactsel.studies.size_report import SizeStatus
from exactsel.to_plain import counted

MOST_LISTED, MOST_DRAWN, MOST_FREQUENT = 100, 40, 40
"""Models in the table and in the heat map, and columns whose frequency is shown."""


def best_page(best: BestModels, *, command: str | None = None) -> str:
    """The page as HTML text; ``command`` is what repeats it."""
    noun = best.result._noun
    plural = "" if best.k == 1 else "s"
    title = f"The best model by {best.criterion.title}: {best.k} of {best.result.problem['d']} {noun}{plural}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _claim(best),
        _models(best),
        _map_of_models(best),
        _frequencies(best),
        summary_section(best.result, f"The best model by {best.criterion.title}, rank 1 of the list."),
        _sizes(best),
        settings_section(best.result),
        commands_section(command, None),
        f"<footer>{paragraph(f'Written by exactsel {__version__}.')}</footer>",
    ]
    return page(title, "\n".join(part for part in parts if part))


def _claim(best: BestModels) -> str:
    title, display = best.criterion.title, best.criterion.shown
    said = best.claim_text
    valid_for = f" This holds for {best.valid_for}." if best.valid_for else ""
    facts = [
        (title, f"{display(best.value):.9g}"),
        (f"proven {best._side} bound", f"{display(best.lower):.9g}"),
        ("absolute gap", f"{best.absolute_gap:.2g}"),
        *(best.result.quality.facts() if best.result.quality is not None else ()),
        ("models listed", f"{len(best.models):,}"),
        ("sizes looked at", f"{best.sizes[0].size} to {best.last_size}"),
        ("seconds", f"{best.time:.2f}"),
    ]
    return "\n".join([paragraph(said + valid_for, "lead good" if best.reached else "lead warn"), tiles(facts)])


def _models(best: BestModels) -> str:
    criteria = criteria_shown(best)
    names = best.result.problem["feature_names"]
    rows: list[list[Cell]] = []
    weights = [round(weight, 3) for weight in best.weights]
    for rank, (model, delta) in enumerate(zip(best.models, best.deltas, strict=True), 1):
        if rank > MOST_LISTED:
            break
        values = [_finite(criterion.shown(criterion_value(criterion, best, model))) for criterion in criteria]
        figures: list[Cell] = [values[0], round(delta, 4), *weights[rank - 1 : rank], *values[1:]]
        rows.append([rank, degrees_of_freedom(model), *figures, wide(listed(model.support, names))])
    weight = ["weight"] if weights else []
    header = ["rank", "df", criteria[0].title, "delta", *weight, *(each.title for each in criteria[1:])]
    worse = "above" if best._words[0] == "below" else "below"
    caption = f"df counts coefficients beside the intercept; delta is how far the criterion is {worse} the best"
    caption += ", and weight is exp(−delta/2) as a part of all models listed" if weights else ""
    more = len(best.models) - len(rows)
    notes = [paragraph(f"The list has {counted(more, 'more model')}.", "quiet")] if more else []
    listing = paragraph(f"{best.listing}." if len(best.models) > 1 or not best.complete else "One model was asked for.")
    model_table = table(caption, [*header, f"{best.result._noun}s"], rows, best=[0], words=0)
    return section("The list", listing, model_table, *notes)


def _map_of_models(best: BestModels) -> str:
    """The models by rank, and the best known of each size."""
    names, parts, value = _names(best), [], best.criterion.shown
    if len(best.models) > 1:
        drawn = list(zip(best.models, best.deltas, strict=True))[:MOST_DRAWN]
        # As plot.regsubsets does: shaded by the criterion.
        rows = [
            HeatRow(f"{value(model.criterion):.6g}", f"df {degrees_of_freedom(model)}",
                    dict.fromkeys(model.support, 0), math.exp(-0.25 * delta), delta == 0)
            for model, delta in drawn
        ]  # fmt: skip
        caption = (
            f"Each row is a model of the list with its {best.criterion.title}, the best first; the stronger the "
            "colour, the better."
        )
        parts.append(_figure(rows, names, f"Models by {best.criterion.title} and the features in them", caption))
    sizes = [size for size in best.sizes if size.support]
    if sizes:
        rows = [
            HeatRow(f"size {size.size}", _number(value(size.criterion)), dict.fromkeys(size.support or (), 0), 1.0,
                    size.size == best.k)
            for size in sizes
        ]  # fmt: skip
        caption = (
            f"The best model known of each size with its {best.criterion.title}. A size is searched only as far as it "
            "takes to see that it cannot win, so a better model may exist of a size that is not proven. The chosen "
            "size is in bold."
        )
        parts.append(_figure(rows, names, "Best known model of each size and the features in it", caption))
    return section("Which features are in which models", *parts) if parts else ""


def _figure(rows: list[HeatRow], names: list[str], title: str, caption: str) -> str:
    variables = shown_variables(rows, len(names))
    return figure(heat_map(rows, names, variables, title), caption + left_out_words(rows, variables, len(names)))


def _frequencies(best: BestModels) -> str:
    if len(best.models) < 2 or not best.has_weights:
        return ""
    near, far = best.inclusion(NEAR), best.inclusion(FAR)
    names = best.result.problem["feature_names"]
    rows: list[list[Cell]] = [
        [label(j, names), near.counts.get(j, 0), count, round(far.weights[j], 3)]
        for j, count in list(far.counts.items())[:MOST_FREQUENT]
    ]
    how = " and ".join(
        f"{included.models} within {included.within:g} ({'all there are' if included.complete else 'perhaps more'})"
        for included in (near, far)
    )
    caption = f"In how many of the models close to the best a feature is: {how}; the sum of their weights"
    header = [best.result._noun, f"within {NEAR:g}", f"within {FAR:g}", "weight"]
    return section("How often features occur", table(caption, header, rows))


def _sizes(best: BestModels) -> str:
    names, value = best.result.problem["feature_names"], best.criterion.shown
    rows: list[list[Cell]] = [
        [
            str(size.size), _finite(value(size.criterion)), _finite(value(size.lower)),
            size.status.text, size.nodes,
            wide("not looked for" if size.support is None else listed(size.support, names)),
        ]
        for size in best.sizes
    ]  # fmt: skip
    chosen = [place for place, size in enumerate(best.sizes) if size.size == best.k]
    header = [
        "size",
        best.criterion.title,
        f"no model of it {best._words[0]}",
        "status",
        "nodes",
        "best known of this size",
    ]
    statuses = {size.status for size in best.sizes}
    caption = "; ".join(f"{status.text}: {status.meaning}" for status in SizeStatus if status in statuses)
    return section("What is known of each size", table(caption, header, rows, best=chosen))


def _names(best: BestModels) -> list[str]:
    problem = best.result.problem
    return [label(j, problem["feature_names"], "{name}", "x{number}") for j in range(problem["d"])]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else ""
