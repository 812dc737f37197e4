"""Frames whose columns are called by numbers: a number is refused where position and name are two columns."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import GroupedProblem, Instance, Problem, best_model, boxed, certify, load, solve
from exactsel.errors import InputError

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(4)
A = RNG.standard_normal((20, 4))
Y = A @ [0.0, 3.0, 0.0, -1.0] + 0.1 * RNG.standard_normal(20)
FRAME = pandas.DataFrame(A, columns=[5, 2, 0, 3])
"""The column called 2 is the second; called 3 is the last, which is number 3."""

AMBIGUOUS = r"names column 2, but columns are called by numbers here and the one at this position is called '0'; .*'2'"
LIMITED = {"lam": 1.0}


def of_names(**options):
    return Problem(FRAME, Y, 2, **options)


def _children(problem):
    return tuple(j for j, parents in enumerate(problem.units.constraint.parents) if parents)


def _at_least(bound, problem):
    return tuple(np.flatnonzero(problem.coefficient_bounds.given_lower == bound))


DOORS = {
    "force_in": lambda column: of_names(force_in=[column]).force_in,
    "a single one": lambda column: of_names(force_in=column).force_in,
    "force_out": lambda column: of_names(force_out=[column]).force_out,
    "prepared": lambda column: Problem.prepared(FRAME, Y, 2, force_in=[column], intercept=True).force_in,
    "solve": lambda column: solve(FRAME, Y, 2, force_in=[column]).problem["force_in"],
    "names given apart": lambda column: Problem(A, Y, 2, feature_names=FRAME.columns, force_in=[column]).force_in,
    "replace": lambda column: of_names().replace(force_in=[column]).force_in,
    "Instance": lambda column: Instance(FRAME, Y).problem(k=2, force_in=[column]).force_in,
    "groups": lambda column: of_names(groups={"g": [column, "5"]}).groups[0][1:],
    "GroupedProblem": lambda column: GroupedProblem(of_names(), {"g": [column, "5"]}).groups[0][1:],
    "of groups": lambda column: GroupedProblem(of_names(), {"g": ["5", "0"]}, force_in=[column]).force_in,
    "hierarchy, child": lambda column: _children(of_names(hierarchy={column: ["5"]})),
    "hierarchy, parent": lambda column: of_names(hierarchy={"5": [column]}).units.constraint.parents[0],
    "nonnegative": lambda column: _at_least(0.0, boxed(of_names(**LIMITED), [column])),
    "bounds": lambda column: _at_least(-1.0, boxed(of_names(**LIMITED), bounds=[(column, -1, 1)])),
    "certify": lambda column: certify(of_names(), support=[column]).support,
    "certify, guessed": lambda column: certify(of_names(), candidate=[column]).support,
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS)
class TestDoors:
    def test_what_can_be_two_columns_is_refused(self, door):
        if door == "of groups":
            with pytest.raises(InputError, match="names column 2, but columns are called by numbers here"):
                DOORS[door](2)
            return
        with pytest.raises(InputError, match=AMBIGUOUS):
            DOORS[door](2)
        with pytest.raises(InputError, match=AMBIGUOUS):
            DOORS[door](np.int64(2))

    def test_what_is_one_column_in_both_ways_is_taken(self, door):
        if door != "of groups":
            assert tuple(DOORS[door](3)) == (3,)

    def test_the_way_on(self, door):
        assert tuple(DOORS[door]("2")) == (1,)

    def test_what_is_no_position_is_refused_too(self, door):
        with pytest.raises(InputError, match=r"columns|groups"):
            DOORS[door](5)


class TestTables:
    FRAME = FRAME.assign(y=Y)

    @pytest.mark.parametrize("option", ["drop", "factors"])
    def test_columns_to_leave_out(self, option):
        with pytest.raises(InputError, match="columns are called by numbers here"):
            load(self.FRAME, k=1, **{option: [2]})
        assert load(self.FRAME, k=1, drop=["2"]).feature_names == ("5", "0", "3")

    def test_the_target(self):
        with pytest.raises(InputError, match="columns are called by numbers here"):
            load(self.FRAME, target=2, k=1)
        np.testing.assert_array_equal(load(self.FRAME, target="2", k=1).target, A[:, 1])

    def test_default_names_are_positions(self):
        frame = pandas.DataFrame(np.column_stack([A, Y]))
        assert load(frame, target=4, drop=[1], k=1).feature_names == ("0", "2", "3")
        assert Problem(pandas.DataFrame(A), Y, 2, force_in=[2]).force_in == (2,)


class TestWhatStaysByPosition:
    def test_a_result_goes_back_into_a_search(self):
        problem = of_names()
        result = solve(problem)
        assert result.support == (1, 3)
        assert solve(problem, start=result.support).support == (1, 3)
        assert certify(problem, candidate=result).support == (1, 3)
        assert certify(problem, candidate=[False, True, False, True]).support == (1, 3)

    def test_names_that_are_texts_are_no_numbers(self):
        problem = Problem(A, Y, 2, feature_names=["5", "2", "0", "3"], force_in=[2])
        assert problem.force_in == (2,)

    def test_what_was_demanded_stays(self):
        problem = of_names(force_in=["2"], force_out=["0"], lam=1.0)
        for other in (problem.replace(k=3), boxed(problem, "all"), GroupedProblem(problem, {"g": ["5", "3"]})):
            assert other.d - len(other.force_out) >= 2
        assert problem.replace(k=3).force_in == (1,)
        assert problem.replace(force_in=["5"]).force_out == (2,)

    def test_models_of_all_sizes(self):
        assert best_model(of_names(force_in=["2"]), k_max=2, top=3).complete


class TestEstimators:
    @pytest.mark.parametrize("options", [{"groups": {"g": [2, 3]}}, {"hierarchy": {2: [3]}}])
    def test_numbers(self, options):
        sklearn = pytest.importorskip("exactsel.sklearn")
        with pytest.raises(InputError, match="columns are called by numbers here"):
            sklearn.BestSubsetRegressor(k=2, **options).fit(FRAME, Y)
        if "hierarchy" in options:
            with pytest.raises(InputError, match="columns are called by numbers here"):
                sklearn.BestSubsetCV(ks=[1, 2], cv=2, **options).fit(FRAME, Y)
        sklearn.BestSubsetRegressor(k=2, **options).fit(A, Y)

    def test_names(self):
        sklearn = pytest.importorskip("exactsel.sklearn")
        named = sklearn.BestSubsetRegressor(k=2, hierarchy={"2": ["3"]}).fit(FRAME, Y)
        np.testing.assert_array_equal(named.support_, [1, 3])
        crossed = sklearn.BestSubsetCV(ks=[2], cv=2, hierarchy={"2": ["3"]}).fit(FRAME, Y)
        np.testing.assert_array_equal(crossed.support_, [1, 3])
