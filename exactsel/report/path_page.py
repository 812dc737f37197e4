"""The best models along a path, and how to choose among them, as a self-contained HTML page."""

from __future__ import annotations

import math
from html import escape

from exactsel._version import __version__
from exactsel.problem.model import label, listed
from exactsel.report.degrees import degrees_of_freedom
from exactsel.report.heat_map import HeatRow, heat_map, left_out_words, shown_variables
from exactsel.report.page import Cell, figure, page, paragraph, section, table, tiles, wide
from exactsel.report.path import TITLES
from exactsel.report.settings import commands_section, settings_section
from exactsel.report.summary import summary_section
from exactsel.report.svg import Series, line_chart
from exactsel.solving.result import Result
from exactsel.studies.criteria import NAMES, Compared
from exactsel.studies.crossval import ValidationErrors

CRITERIA = (("aic", "upper"), ("bic", "lower"), ("ebic", "other"))
"""Information criteria that are drawn, and how."""

MOST_DRAWN = 60
"""Models in the heat map."""


def path_page(compared: Compared, *, command: str | None = None) -> str:
    """The page as HTML text; ``command`` is what repeats it."""
    results = compared.path.results
    sizes = sorted({result.problem["k"] for result in results})
    chosen, why = compared.chosen
    noun = chosen._noun
    title = f"The best {noun}s of every size, from {sizes[0]} to {sizes[-1]} of {results[0].problem['d']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _claim(compared),
        _models(compared, chosen),
        _map(compared, chosen),
        _criteria(compared),
        "" if compared.validation is None else _validation(compared, compared.validation),
        summary_section(chosen, f"The model of size {_place(chosen, _several(compared))}: {why}."),
        settings_section(chosen),
        commands_section(command, None),
        f"<footer>{paragraph(f'Written by exactsel {__version__}.')}</footer>",
    ]
    return page(title, "\n".join(part for part in parts if part))


def _claim(compared: Compared) -> str:
    path = compared.path
    proven = sum(result.reached for result in path.results)
    if path.reached:
        text = "For each size no model has a smaller objective than the one shown, to the tolerance asked for."
    else:
        text = (
            f"{proven} of {len(path.results)} models are optimal for their size within the tolerance; of the others "
            "the gap says how far from the best they can be."
        )
    facts = [("models", f"{len(path.results)}"), ("proven", f"{proven} of {len(path.results)}")]
    facts += [
        (f"{TITLES[name]} chooses", f"size {_place(compared.best[name], _several(compared))}")
        for name in NAMES
        if name in compared.best
    ]
    if compared.validation is not None:
        chosen = _pair(compared.validation.one_standard_error, _several(compared))
        facts.append(("one standard error chooses", f"size {chosen}"))
    facts.append(("seconds", f"{path.time:.2f}"))
    return "\n".join([paragraph(text, "lead good" if path.reached else "lead warn"), tiles(facts)])


def _models(compared: Compared, chosen: Result) -> str:
    several = _several(compared)
    rows = [compared.row(result) for result in compared.path.results]
    criteria = [name for name in NAMES if any(row[name] is not None for row in rows)]
    body: list[list[Cell]] = [
        [
            str(result.problem["k"]), *([f"{result.problem['lam']:.4g}"] if several else []),
            degrees_of_freedom(result), result.upper, float(f"{result.gap:.2g}"), *(row[name] for name in criteria),
            wide(listed(result.support, result.problem["feature_names"])),
        ]
        for result, row in zip(compared.path.results, rows, strict=True)
    ]  # fmt: skip
    header = ["size", *(["lam"] if several else []), "df", "objective", "gap", *(TITLES[name] for name in criteria)]
    caption = "df counts coefficients beside the intercept; criteria are better when smaller; the chosen row is marked"
    marked = [place for place, result in enumerate(compared.path.results) if result is chosen]
    return section("The models", table(caption, [*header, f"{chosen._noun}s"], body, best=marked, words=0))


def _map(compared: Compared, chosen: Result) -> str:
    """Size by variable, as lmSubsets draws it, with the signs of coefficients where there are any."""
    several, problem = _several(compared), chosen.problem
    # One map: of several ridge weights that of the chosen model.
    results = [result for result in compared.path.results if result.problem.get("lam") == problem.get("lam")]
    results = results[:MOST_DRAWN]
    names = [label(j, problem["feature_names"], "{name}", "x{number}") for j in range(problem["d"])]
    rows = [
        HeatRow(f"size {result.problem['k']}", _right(compared, result), _signs(result), 1.0, result is chosen)
        for result in results
    ]
    variables = shown_variables(rows, len(names))
    note = "with its BIC at the right" if any(row.right for row in rows) else ""
    at = f" for lam = {problem['lam']:g}" if several else ""
    caption = (
        f"Each row is the best model of a size{at}"
        f"{', ' + note if note else ''}; + and − are the signs of coefficients, "
        "and the chosen model is bold." + left_out_words(rows, variables, len(names))
    )
    drawing = heat_map(rows, names, variables, "Best model of each size and the features in it")
    return section("Which features are in which models", figure(drawing, caption))


def _right(compared: Compared, result: Result) -> str:
    bic = compared.row(result)["bic"]
    return "" if bic is None else f"{bic:.5g}"


def _signs(result: Result) -> dict[int, int]:
    if result.model is None or result.problem.get("groups"):
        return dict.fromkeys(result.support, 0)
    return {j: int(math.copysign(1, result.model.coef[j])) for j in result.support}


def _criteria(compared: Compared) -> str:
    """AIC, BIC and EBIC over sizes; for several ridge weights they stand in the table only."""
    rows = [(result.problem["k"], compared.row(result)) for result in compared.path.results]
    if _several(compared) or len(rows) < 2 or all(row["aic"] is None for _, row in rows):
        return ""
    series = [
        Series(TITLES[name], style, [(k, value) for k, row in rows if (value := row[name]) is not None], True, True)
        for name, style in CRITERIA
    ]
    ends = [
        f"{TITLES[name]} at size {compared.best[name].problem['k']}" for name, _ in CRITERIA if name in compared.best
    ]
    drawing = line_chart(
        series, title="Criteria over size", description=f"Smallest: {', '.join(ends)}", x_label="size",
        y_label="criterion", from_zero=False, whole_x=True,
    )  # fmt: skip
    return section("Criteria", figure(drawing, f"Smaller is better. The smallest: {', '.join(ends)}."))


def _validation(compared: Compared, validation: ValidationErrors) -> str:
    """Held-out loss with its standard error, and both choices."""
    best, simple = validation.best, validation.one_standard_error
    several = _several(compared)
    place = validation.lams.index(best[0]), validation.ks.index(best[1])
    smallest, error = float(validation.mean[place]), float(validation.standard_error[place])
    said = (
        f"{len(validation.errors)} folds. The held-out loss is smallest at size {_pair(best, several)}: {smallest:.6g} "
        f"with standard error {error:.3g}. The smallest model within one standard error of it has size "
        f"{_pair(simple, several)}: the folds cannot tell the two apart, and the smaller one is chosen."
    )
    if best == simple:
        said = (
            f"{len(validation.errors)} folds. The held-out loss is smallest at size {_pair(best, several)}: "
            f"{smallest:.6g} with standard error {error:.3g}. No smaller model is within one standard error of it."
        )
    parts = [paragraph(said)]
    if not validation.proven:
        parts.append(paragraph("Not every search of a fold was proven to the tolerance asked for.", "warn"))
    lam, ks = best[0], validation.ks
    line = validation.lams.index(lam)
    means = [(float(k), float(validation.mean[line, i])) for i, k in enumerate(ks)]
    errors = [float(validation.standard_error[line, i]) for i in range(len(ks))]
    level = [(float(ks[0]), smallest + error), (float(ks[-1]), smallest + error)]
    drawing = line_chart(
        [
            Series("held-out loss", "upper", means, True, True, errors),
            Series("smallest + one standard error", "lower", level, straight=True),
        ],
        title="Held-out loss over size", description=said, x_label="size", y_label="loss of a held-out row",
        from_zero=False, whole_x=True,
    )  # fmt: skip
    at = f" at lam = {lam:g}" if several else ""
    caption = f"Mean loss of a held-out row{at}, with one standard error over the folds up and down."
    return section("Cross-validation", *parts, figure(drawing, caption))


def _several(compared: Compared) -> bool:
    return len({result.problem.get("lam") for result in compared.path.results}) > 1


def _place(result: Result, several: bool) -> str:
    return f"{result.problem['k']}" + (f", lam {result.problem['lam']:g}" if several else "")


def _pair(pair: tuple[float, int], several: bool) -> str:
    return f"{pair[1]}" + (f", lam {pair[0]:g}" if several else "")
