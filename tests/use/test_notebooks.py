"""What notebooks show: tables and lines in which names are harmless, with no colours that a dark theme would hide."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import exactsel
from exactsel import ColumnSubsetProblem, Problem, best_model, certify, near_optimal, solve, solve_path
from exactsel.studies.compare import compare
from exactsel.studies.criteria import Compared
from exactsel.studies.crossval import ValidationErrors
from exactsel.to_plain import html_line, html_table

BAD = "<b>&\"'</td>"
A = np.random.default_rng(8).normal(size=(25, 4))
Y = 5 * A[:, 0] - 4 * A[:, 1] + np.sin(np.arange(25.0))
FRAME = pd.DataFrame(A, columns=[BAD, "b", "c", "d"])


class Shown(HTMLParser):
    """Tags that match, and the words people read."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.texts).split())


def problem() -> Problem:
    return Problem.prepared(FRAME, Y, 2, lam=0.1, intercept=True)


def validated():
    return ValidationErrors((1, 2), (0.1,), np.array([[[2.0, 1.0]], [[2.2, 1.3]], [[1.9, 1.1]]]))


THINGS = {
    "result": (lambda: solve(problem()), "Optimal: no model with at most 2 features"),
    "selection": (lambda: solve(ColumnSubsetProblem(FRAME, 2)), "Optimal:"),
    "heuristic": (lambda: exactsel.heuristics.run("forward", problem()), "evaluations"),
    "model": (lambda: solve(problem()).model, "(intercept)"),
    "summary": (lambda: solve(problem()).summary(), "do not account for the selection"),
    "path": (lambda: solve_path(problem()), "2 problems, all proven"),
    "compared path": (lambda: Compared(solve_path(problem())), "k = 2: the one with the smallest BIC."),
    "validation": (validated, "within one standard error"),
    "certificate": (lambda: certify(problem(), support=[0, 2]), "The best model known:"),
    "best": (lambda: best_model(problem(), top=3), "3 models; no other has a BIC below"),
    "near": (lambda: near_optimal(problem(), tau=1e3), "there is no other."),
    "comparison": (lambda: compare(problem(), methods="forward,omp"), "forward"),
    "problem": (problem, "minimise"),
}


@pytest.mark.parametrize("name", THINGS)
def test_it_is_shown_escaped_and_without_colours(name):
    make, said = THINGS[name]
    html = make()._repr_html_()
    shown = Shown(html)
    assert "table" in shown.tags
    assert said in shown.words
    assert {*shown.tags} <= {"div", "p", "table", "caption", "tr", "th", "td"}
    assert "background" not in html
    assert not re.search(r"(?<!current)color\s*:", html, re.IGNORECASE)
    if name not in ("problem", "validation", "comparison"):
        assert BAD in shown.words


def test_what_is_not_proven_stands_out():
    wide = Problem(np.random.default_rng(0).normal(size=(40, 30)), np.arange(40.0), 6, lam=1.0)
    cut = solve(wide, node_limit=1, subtrees=False, heuristics="none", bound="pdal", tree="state-space")
    assert not cut.reached
    assert "border-left" in cut._repr_html_().partition("<table>")[0]
    assert "border-left" not in solve(problem())._repr_html_()


def test_the_summary_has_every_figure():
    summary = solve(problem()).summary()
    words = Shown(summary._repr_html_()).words
    for row in summary.parameters:
        assert all(f"{value:.5g}" in words for value in row.figures)
    for name, value in summary.facts():
        assert name in words
        assert value in words


def test_names_of_facts_stay_whole():
    shown = Shown(certify(problem(), support=[0, 2])._repr_html_())
    assert "at least" in shown.texts


def test_columns_of_numbers_stand_at_the_right():
    html = html_table([("a", "1.5", ""), ("b", "-", "x")], ("name", "value", "note"), "Title & more")
    sides = re.findall(r"<t[hd] style='text-align:(\w+)'>", html)
    assert sides == ["left", "right", "left"] * 3
    assert "Title &amp; more" in html
    assert html_table([], ("a",)).count("<th") == 1
    assert html_line("a < b") == "<p style='margin:.4em 0;max-width:50em;'>a &lt; b</p>"
