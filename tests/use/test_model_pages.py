"""The pages of best models and of paths: they stand alone, and what they show is what was found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import checked_page

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, best_model, load, solve_path, write_report
from exactsel.report.best_page import best_page
from exactsel.report.degrees import criteria_shown, criterion_value, degrees_of_freedom
from exactsel.report.heat_map import MOST_VARIABLES, HeatRow, heat_map, left_out_words, shown_variables
from exactsel.report.path_page import path_page
from exactsel.report.svg import Axis, Series, line_chart
from exactsel.studies.criteria import Compared
from exactsel.studies.crossval import ValidationErrors

ROOT = Path(__file__).resolve().parents[2]
CELL = re.compile(r'<rect class="cell (\w+)"[^>]*><title>([^<]*)</title>')
NAMES = ["a", "</script><b>", "c & d", "e", "f"]


@pytest.fixture(scope="module")
def data():
    A = np.random.default_rng(5).normal(size=(30, 5))
    return A, A[:, 0] - 0.7 * A[:, 1] + np.cos(np.arange(30.0))


@pytest.fixture(scope="module")
def best(data):
    return best_model(Problem(*data, 5, feature_names=NAMES), top=8)


@pytest.fixture(scope="module")
def compared(data):
    path = solve_path(Problem(*data, 5, feature_names=NAMES))
    held_out = 3.0 + np.random.default_rng(2).random((5, 1, 5)) + np.array([2.0, 0.1, 0.0, 0.1, 0.2])
    return Compared(path, ValidationErrors((1, 2, 3, 4, 5), (0.0,), held_out))


class TestBest:
    def test_it_shows_the_list_with_its_criteria(self, best):
        page = checked_page(best_page(best, command="exactsel best x.npz"))
        for model in best.models:
            for criterion in criteria_shown(best):
                assert f"{criterion_value(criterion, best, model):.6g}" in page.shown
        for said in ("df", "delta", "weight", "AICc", "EBIC", "exactsel best x.npz", "no other has a BIC below"):
            assert said in page.shown

    def test_criteria_are_those_of_a_list_by_them(self, data, best):
        problem = Problem(*data, 5)
        for criterion in criteria_shown(best):
            by_it = {m.support: m.criterion for m in best_model(problem, criterion=criterion.name, top=8).models}
            for model in best.models:
                if model.support in by_it:
                    assert criterion_value(criterion, best, model) == pytest.approx(by_it[model.support])

    def test_criteria_of_terms_are_those_of_a_list_by_them(self, data):
        problem = Problem(*data, 3, feature_names=NAMES, groups={"pair": NAMES[:2], "other": NAMES[2:4]})
        best = best_model(problem, top=8)
        for criterion in criteria_shown(best):
            by_it = {m.support: m.criterion for m in best_model(problem, criterion=criterion.name, top=8).models}
            for model in best.models:
                assert criterion_value(criterion, best, model) == pytest.approx(by_it[model.support])

    def test_adjusted_r2_is_shown_as_it_is(self, data):
        best = best_model(Problem(*data, 5, feature_names=NAMES), criterion="adjr2", top=3)
        page = checked_page(best_page(best))
        for model in best.models:
            assert f" {-model.criterion:.6g}" in f" {page.shown}"
            assert f"-{abs(model.criterion):.6g}" not in page.shown
        assert "proven upper bound" in page.shown

    def test_the_map_has_a_cell_for_each_model_and_column(self, best):
        cells = CELL.findall(best_page(best))
        known = [size for size in best.sizes if size.support]
        assert len(cells) == 5 * (len(best.models) + len(known))
        inside = sum(kind != "none" for kind, _ in cells)
        assert inside == sum(m.size for m in best.models) + sum(len(size.support) for size in known)

    def test_the_summary_warns_of_selection(self, best):
        page = checked_page(best_page(best))
        assert "do not account for the selection" in page.shown
        for row in best.summary().parameters:
            assert f"{row.coef:.6g}" in page.shown

    def test_what_is_not_proven_is_said(self, best):
        page = checked_page(best_page(replace(best, complete=False, termination="cap")))
        assert "INCOMPLETE (cap)" in page.shown

    def test_one_model_and_no_data_at_hand(self, data):
        best = best_model(Problem(*data, 5))
        elsewhere = replace(best, result=replace(best.result, _kept=None))
        page = checked_page(best_page(elsewhere))
        assert "One model was asked for." in page.shown
        assert "There is no summary" in page.shown

    def test_command(self, run, file, tmp_path):
        target = tmp_path / "best.html"
        shown = run("best", file(), "--top", 3, "--report", target)
        page = checked_page(target.read_text(encoding="utf-8"))
        assert shown.code == 0
        assert "exactsel best" in page.shown
        assert "--top 3" in page.shown
        assert "best model " in shown.out


class TestPath:
    def test_it_shows_every_model(self, compared):
        page = checked_page(path_page(compared, command="exactsel path x.npz"))
        for result in compared.path.results:
            assert f"{result.upper:.6g}" in page.shown
            for value in compared.row(result).values():
                assert (
                    value is None or f"{value:.6g}" in page.shown or value == compared.row(result)["cv_standard_error"]
                )
        assert "exactsel path x.npz" in page.shown

    def test_cells_have_the_signs_of_coefficients(self, compared):
        cells = CELL.findall(path_page(compared))
        assert len(cells) == 5 * 5
        for row, result in enumerate(compared.path.results):
            for j in range(5):
                value = float(result.coef[j])
                kind, said = cells[5 * row + j]
                assert kind == ("none" if value == 0 else "plus" if value > 0 else "minus")
                assert said.startswith(f"size {result.problem['k']}, ")

    def test_the_chosen_model_is_that_of_one_standard_error(self, compared):
        page = checked_page(path_page(compared))
        _, k = compared.validation.one_standard_error
        assert f"The model of size {k}: the smallest within one standard error" in page.shown
        assert "Cross-validation" in page.shown
        assert "do not account for the selection" in page.shown

    def test_without_cross_validation_bic_chooses(self, compared):
        alone = Compared(compared.path)
        page = checked_page(path_page(alone))
        assert f"The model of size {alone.best['bic'].problem['k']}: the one with the smallest BIC" in page.shown
        assert "Cross-validation" not in page.shown

    def test_several_ridge_weights(self, data):
        path = solve_path(Problem(*data, 2, lam=1.0), ks=[1, 2], lams=[1.0, 0.1])
        page = checked_page(path_page(Compared(path)))
        assert "size 2, lam 0.1" in page.shown
        assert len(CELL.findall(page.text)) == 2 * 5  # of the chosen model's ridge weight only

    def test_what_hardly_has_a_model(self, data):
        """Nothing found in no time, no column, and an exact fit, of which there are no criteria."""
        A, y = data
        for thing in (
            solve_path(Problem(A, y, 3), time_limit=0.0), solve_path(Problem(A, y, 3), ks=[0, 1]),
            solve_path(Problem(A, A[:, 0], 2)),
        ):  # fmt: skip
            checked_page(path_page(Compared(thing)))
        checked_page(best_page(best_model(Problem(A, y, 3), top=3, time_limit=0.0)))

    def test_groups_and_column_subset_selection(self, data):
        A, y = data
        groups = GroupedProblem(Problem(A, y, 2, lam=0.1), {"g": [0, 1], "h": [2], "i": [3, 4]})
        for problem in (groups, ColumnSubsetProblem(A, 2)):
            page = checked_page(path_page(Compared(solve_path(problem))))
            assert "Best model of each size and the features in it" in page.text
        assert "There is no summary" in page.shown

    def test_command(self, run, file, tmp_path):
        target = tmp_path / "path.html"
        assert run("path", file(), "--k-max", 3, "--cv", 3, "--report", target).code == 0
        page = checked_page(target.read_text(encoding="utf-8"))
        assert "3 folds." in page.shown
        assert "--cv 3" in page.shown

    def test_one_door_in_python(self, best, compared, tmp_path):
        for thing, title in ((best, "The best model by BIC"), (compared, "of every size"), (compared.path, "of every")):
            write_report(tmp_path / "page.html", thing)
            assert title in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_one_standard_error_takes_the_smallest_size_within_it():
    errors = np.array([[[3.0, 1.3, 1.0, 1.2]], [[3.0, 1.1, 1.4, 1.2]]])  # means 3, 1.2, 1.2, 1.2
    errors[:, 0, 2] -= 0.1  # so that size 3 is the best, with mean 1.1 and standard error .2
    found = ValidationErrors((1, 2, 3, 4), (0.5,), errors)
    assert found.best == (0.5, 3)
    assert found.one_standard_error == (0.5, 2)
    assert replace(found, errors=errors[:1]).one_standard_error == (0.5, 3)  # one fold tells nothing of the error


def test_degrees_of_freedom_are_coefficients_beside_the_intercept(best):
    for model in best.models:
        assert degrees_of_freedom(model) == len(model.support)
    assert degrees_of_freedom(best.result) == best.summary().df_model


def test_a_map_of_many_variables_shows_those_in_use():
    rows = [HeatRow("1", "", {3: 0, 90: 1}), HeatRow("2", "", {3: -1, 50: 0})]
    assert shown_variables(rows, 100) == [3, 50, 90]
    assert shown_variables(rows, 4) == [0, 1, 2, 3]
    assert "100" in left_out_words(rows, [3, 50, 90], 100)
    many = [HeatRow("1", "", dict.fromkeys(range(100), 0))]
    assert len(shown_variables(many, 100)) == MOST_VARIABLES
    names = [f"<{j}>" for j in range(100)]
    drawn = heat_map(rows, names, [3, 50, 90], "a & b")
    assert "&lt;90&gt;: positive" in drawn
    assert "&lt;3&gt;: negative" in drawn
    assert "<3>" not in drawn


def test_points_with_error_bars():
    chart = line_chart(
        [Series("s", "upper", [(1, 2.0), (2, 1.0), (3, float("inf"))], True, True, [0.5, 0.25, 1.0])], title="t",
        description="d", x_label="x", y_label="y", from_zero=False, whole_x=True,
    )  # fmt: skip
    assert chart.count("<circle") == 2
    assert chart.count('<path class="series upper"') == 3
    assert Axis(1, 3, 0, 100, whole=True).ticks() == [1, 2, 3]


@pytest.mark.parametrize("name", ["outlier", "mixed-signals"])
def test_shipped_instances(name):
    problem = load(ROOT / "instances" / f"{name}.npz")
    checked_page(path_page(Compared(solve_path(problem))))
    checked_page(best_page(best_model(problem, top=5)))
