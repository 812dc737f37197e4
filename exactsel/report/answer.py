"""Sections of a page on the answer of a solve: the answer, the model, and the way there."""

from __future__ import annotations

import math
from html import escape

from exactsel.closers.base import label_of
from exactsel.observers.history import History
from exactsel.problem.constraints import NAMES
from exactsel.problem.model import demands_text
from exactsel.report.model import FORCED
from exactsel.report.page import Cell, Raw, paragraph, section, table, tiles
from exactsel.report.svg import bar
from exactsel.solving.outcome import Claim, Termination, restricted
from exactsel.solving.result import Result
from exactsel.to_plain import counted

REASONS = {
    "bound": "its own bound reached the best objective found",
    "inherited": "the bound its parent's dual vector gives it reached the best objective found",
    "solved": "it held one convex problem, and that was solved",
    "contained": "all its models are in a sibling",
    "excluded": "what is demanded of models leaves none in it",
    "incumbent": "a better model found later overtook its bound",
    "listed": "all its models that can be as good were listed and fitted",
}


def headline(result: Result) -> str:
    """The answer in one line."""
    chosen = f"The best {len(result.support)} of {result.problem['d']} {result._noun}s"
    match result.claim:
        case Claim.OPTIMAL:
            return f"{chosen}, proven optimal"
        case Claim.WITHIN_EPS:
            return f"{chosen}, proven within the tolerance"
        case Claim.BOUNDED:
            return (
                f"A model with {len(result.support)} of {result.problem['d']} {result._noun}s, and how good it must be"
            )
        case _:
            return f"A model with {len(result.support)} of {result.problem['d']} {result._noun}s; nothing is proven yet"


def answer_text(result: Result) -> str:
    """What is proven, in words."""
    d, k, noun = result.problem["d"], result.problem["k"], result._noun
    included, outside = (result.problem.get(name, ()) for name in ("force_in", "force_out"))
    related = any(result.problem.get(name) is not None for name in NAMES)
    count = "" if related else f" ({_supports(d - len(included) - len(outside), k - len(included))} choices of {k})"
    demanded = " that the constraints allow" if restricted(result.problem) else ""
    valid_for = f" This holds for {result.valid_for}." if result.valid_for else ""
    share = f"{100 * result.gap:.2g} %"
    match result.claim:
        case Claim.OPTIMAL:
            text = (
                f"Among all models{demanded} with at most {k} of the {d} {noun}s{count}, none has an "
                f"objective that is smaller by more than {result.absolute_gap:.2g}: this one is optimal."
            )
        case Claim.WITHIN_EPS:
            text = (
                f"Among all models{demanded} with at most {k} of the {d} {noun}s{count}, none has an "
                f"objective that is smaller by more than {result.absolute_gap:.2g} ({share}), as was asked for."
            )
        case Claim.BOUNDED:
            text = (
                f"No model{demanded} with at most {k} of the {d} {noun}s has an objective below {result.lower:.8g}. "
                f"This one reaches {result.upper:.8g}, so it is at most {result.absolute_gap:.3g} ({share}) above the "
                "best."
            )
        case _:
            text = "The search ended before it had any lower bound, so nothing is known about how good the model is."
    return text + valid_for + ("" if result.full_data is None else f" The best objective is {result.full_data}.")


def answer_section(result: Result) -> str:
    """The answer, what is proven of it, and its key figures."""
    style = "lead good" if result.reached else "lead warn"
    facts = [
        ("objective (upper)", f"{result.upper:.9g}"),
        ("proven lower bound", f"{result.lower:.9g}"),
        ("gap", f"{result.gap:.2g}"),
        *(result.quality.facts() if result.quality is not None else ()),
        ("found by", result.source),
        ("nodes", f"{result.nodes:,}"),
        ("seconds", f"{result.time:.2f}"),
    ]
    return "\n".join(
        [
            f"<h1>{escape(headline(result))}</h1>",
            paragraph(answer_text(result), style),
            paragraph(
                f"The search stopped because {Termination(result.termination).sentence} ({result.termination.value}). "
                f"What is proven: {result.claim.value}." + (f" What helps: {result.advice}" if result.advice else ""),
                "quiet",
            ),
            tiles(facts),
        ]
    )


def model_section(result: Result) -> str:
    """The chosen columns and their coefficients."""
    names, model = result.column_names, result.model
    if not result._shown:
        return section("The model", paragraph(f"It uses no {result._noun}."))
    if model is None:
        rows: list[list[Cell]] = [[j, names[j] if names else "–"] for j in result._shown]
        noun = result._noun
        return section(f"The {noun}s", table(f"The chosen {noun}s, counted from 0", [noun, "name"], rows, words=2))
    preparation = result.prepared.preparation
    scaled = preparation is not None and preparation.scaled
    compared = result.prepared.coef if scaled else model.coef
    largest = max(abs(float(compared[j])) for j in result._shown)
    body: list[list[Cell]] = []
    for j in result._shown:
        value = float(model.coef[j])
        drawn: Cell = Raw(bar(float(compared[j]), largest)) if j in result.columns else FORCED
        body.append([str(j), names[j] if names else "–", f"{value:.8g}", drawn])
    if model.intercept is not None:
        body.append(["–", "intercept", f"{model.intercept:.8g}", ""])
    coef_table = table(
        "Coefficients; features are counted from 0", ["feature", "name", "coefficient", "size and sign"], body
    )
    notes = [] if names else [paragraph("The instance has no feature names.", "quiet")]
    if preparation is not None:
        done = demands_text(
            {**result.problem, "force_in": (), "force_out": (), **dict.fromkeys((*NAMES, "bounds", "equalities"))}
        )
        said = f"Coefficients are for the data as they were given; the search worked on prepared data ({done})."
        notes.append(paragraph(said + (" The bars are those of the scaled features." if scaled else ""), "quiet"))
    return section("The model", _groups(result), coef_table, *notes)


def _groups(result: Result) -> str:
    """The chosen groups with their columns; nothing where columns are chosen one by one."""
    if not result.problem.get("groups"):
        return ""
    names, groups, columns = result.problem["feature_names"], result.problem["groups"], result.column_names
    rows: list[list[Cell]] = [
        [str(g), names[g], ", ".join(columns[j] if columns else str(j) for j in groups[g])] for g in result.support
    ]
    noun = result._noun
    return table(f"The chosen {noun}s, counted from 0", [noun, "name", "its features"], rows, words=3)


def discarded_section(result: Result, history: History) -> str:
    """What became of the regions of the search space."""
    noun = result._noun
    rows: list[list[Cell]] = [
        ["regions discarded: " + reason, REASONS.get(reason, reason), count]
        for reason, count in sorted(history.closed.items())
    ]
    reasons = [
        (f"{noun}s put in for good", f"leaving the {noun} out was shown to be too costly", history.put_in),
        (f"{noun}s left out for good", f"putting the {noun} in was shown not to pay", history.left_out),
        ("nodes split", f"neither could be discarded, so a {noun} was chosen to branch on", history.splits),
    ]
    for closer, count in sorted(history.subtrees.items(), reverse=True):
        remainder = f", {counted(history.left_open[closer], 'region')} left open" if history.left_open[closer] else ""
        nodes = f"{counted(history.subtree_nodes[closer], 'node')} looked at{remainder}"
        reasons.append((f"subtrees closed by {label_of(closer)}", nodes, count))
    rows += [[name, why, count] for name, why, count in reasons if count]
    if result.open_nodes:
        rows.append(["nodes still open", "their bounds limit the lower bound", result.open_nodes])
    if not rows:
        return ""
    intro = paragraph(
        f"A region is a set of models: some {noun}s are in, some are out, the rest is undecided. It is discarded when "
        "a lower bound shows that no model in it is better than the best one found, up to the tolerance."
    )
    return section(
        "What was discarded, and why", intro, table("Counts over the search", ["what", "why", "count"], rows)
    )


def _supports(d: int, k: int) -> str:
    count = math.comb(d, k)
    return f"{count:,}" if count < 10**15 else f"about 10^{len(str(count)) - 1}" if d < 5000 else "very many"
