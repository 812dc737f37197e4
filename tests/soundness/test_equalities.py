"""Linear equalities on coefficients: searches against a list of all supports and of all limits that bind."""

from __future__ import annotations

import numpy as np
import pytest
from equality_cases import drawn
from samples import sample

from exactsel import Problem, best_model, boxed, near_optimal, solve, solve_path
from exactsel.errors import InputError, UnsupportedError

AT_ONCE = 25
"""Cases of one test."""


def portfolio(k: int = 3, lam: float = 0.0) -> Problem:
    """Returns of eight shares and of an index of all."""
    rng = np.random.default_rng(0)
    A = 0.01 * rng.normal(size=(60, 8))
    return Problem(
        A, A @ rng.dirichlet(np.ones(8)) + 0.001 * rng.normal(size=60), k, lam=lam, feature_names=list("abcdefgh")
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", sample(10, 120, smoke=1))
def test_searches_agree_with_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(AT_ONCE):
        case = drawn(rng)
        best = case.optimum()
        if best == np.inf:
            with pytest.raises(InputError, match="no model of at most"):
                case.problem()
            continue
        problem = case.problem()
        result = solve(problem)
        null = 0.5 * float(case.centred[1] @ case.centred[1])
        room = 1e-9 * null + 1e-7 * best
        assert result.lower <= best + room
        assert result.upper >= best - room
        if result.reached:
            assert result.upper <= best * (1 + 2e-6) + room
        x = np.zeros(case.A.shape[1])
        for j, value in result.coefficients().items():
            x[j] = value
        assert np.all((x >= case.lower) & (x <= case.upper))
        assert np.all(
            np.abs(case.rows @ x - case.right) <= 1e-12 * (np.abs(case.rows) @ np.abs(x) + np.abs(case.right))
        )


@pytest.mark.parametrize("limits", [{}, {"nonnegative": "all"}, {"bounds": [(j, 0.0, 0.4) for j in range(8)]}])
def test_weights_of_a_portfolio_sum_to_one(limits):
    result = solve(boxed(portfolio(), sum_to=1.0, **limits))
    assert result.reached
    assert abs(sum(result.coefficients().values()) - 1.0) <= 1e-15


def test_equalities_name_features():
    result = solve(boxed(portfolio(), equalities=[({"f": 1, "g": -2}, 0.0), ({"a": 1, "f": 1, "h": 2}, 0.5)]))
    x = {name: 0.0 for name in "abcdefgh"} | result.coefficients()
    assert abs(x["f"] - 2 * x["g"]) <= 1e-15
    assert abs(x["a"] + x["f"] + 2 * x["h"] - 0.5) <= 1e-15


def test_equalities_that_follow_from_others_are_left_out():
    twice = [({"a": 2, "b": 2}, 1.0), ({"a": 1, "b": 1}, 0.5)]
    problem = boxed(portfolio(), equalities=twice)
    assert problem.objective.equalities.rows.shape == (1, 8)


@pytest.mark.parametrize(
    ("equalities", "said"),
    [
        ([({"a": 1, "b": 1}, 1.0), ({"a": 2, "b": 2}, 1.0)], "contradict each other"),
        ([({"a": 0.0}, 1.0)], "holds no coefficient"),
        ([({"z": 1.0}, 1.0)], "'z'"),
        ([({"a": np.nan}, 1.0)], "a number of the equalities is nan"),
        ([({"a": 1.0, 0: 1.0}, 1.0)], "twice"),
        ({"a": 1.0}, "a list of pairs was expected"),
        ([{"a": 1.0}], "a pair of terms"),
    ],
)
def test_equalities_that_are_none_are_refused(equalities, said):
    with pytest.raises(InputError, match=said):
        boxed(portfolio(), equalities=equalities)


def test_too_few_features_are_refused():
    with pytest.raises(InputError, match="raise k"):
        boxed(portfolio(2), bounds=[(j, 0.0, 0.4) for j in range(8)], sum_to=1.0)


def test_other_losses_are_refused():
    problem = Problem(np.eye(4), [1.0, -1.0, 1.0, -1.0], 2, loss="logistic", lam=1.0)
    with pytest.raises(UnsupportedError, match="quadratic loss"):
        boxed(problem, sum_to=1.0)


def test_copies_that_sum_to_zero_stay_out_of_the_model():
    """Only rounding tells such models apart: no coefficient may grow until it looks like an effect."""
    column = np.random.default_rng(1).normal(size=6)
    problem = Problem.prepared(np.column_stack([column] * 3), np.arange(6.0) ** 2, 3, lam=0.0, fit_intercept=True)
    fit = boxed(problem, sum_to=0.0).fit((0, 1, 2))
    assert np.abs(fit.coef).max() < 1e-6
    assert fit.value == pytest.approx(0.5 * np.sum((np.arange(6.0) ** 2 - np.mean(np.arange(6.0) ** 2)) ** 2))


def test_forbidden_features_are_in_no_first_model():
    """k leaves a place for every feature, so the first model held the forbidden ones, too."""
    rng = np.random.default_rng(0)
    problem = boxed(Problem(rng.normal(size=(6, 3)), rng.normal(size=6), 3, lam=0.0, force_out=[0]), sum_to=1.0)
    assert problem.first_support == (1, 2)
    assert 0 not in solve(problem).coefficients()


@pytest.mark.parametrize("k", [3, 4, 40])
def test_pairs_that_exclude_the_largest_terms_leave_other_models(k):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(60, 40))
    pairs = [(i, j) for i in range(20) for j in range(i)]
    problem = Problem(A, A @ np.full(40, 0.025), k, lam=0.1, not_both=pairs)
    first = boxed(problem, bounds=[(j, 0.0, 0.4) for j in range(40)], sum_to=1.0).first_support
    assert len([j for j in first if j < 20]) <= 1
    with pytest.raises(InputError, match="raise k"):
        boxed(problem.replace(k=2), bounds=[(j, 0.0, 0.4) for j in range(40)], sum_to=1.0)


def test_a_feature_that_equalities_make_zero_has_a_model():
    rng = np.random.default_rng(2)
    problem = Problem(rng.normal(size=(5, 3)), rng.normal(size=5), 3, lam=0.1)
    equalities = [({0: 1, 1: 1, 2: 1}, -0.5), ({1: 1, 2: 1}, 0.0), ({1: 2, 2: -1}, 0.0)]
    for k, few in ((2, {"force_in": [1], "force_out": [2]}), (3, {})):
        result = solve(boxed(problem.replace(k=k, **few), equalities=equalities))
        assert result.coefficients() == {0: -0.5}


def test_lists_hold_models_that_are_worse_than_the_empty_one():
    """The empty model does not meet the equality, so its objective limits no other."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 3))
    problem = boxed(Problem(A, 3 * A[:, 1] + 0.1 * rng.normal(size=9), 1, lam=0.01), sum_to=1.0)
    worst = problem.fit([2]).value
    assert worst > problem.null_objective
    found = best_model(problem, criterion="l0", penalty=0.01, k_max=3, top=100, signals=())
    assert found.complete
    assert len(found.models) == 7
    assert max(model.objective for model in found.models) == pytest.approx(worst, rel=1e-6)


def test_paths_and_lists_are_saved_though_the_empty_model_is_not_admissible(tmp_path):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(20, 5))
    problem = boxed(Problem(A, A @ rng.normal(size=5) + rng.normal(size=20), 2, lam=0.1), sum_to=1.0)
    near, path = near_optimal(problem, tau=5.0, signals=()), solve_path(problem, ks=[2, 3], signals=())
    saved = near_optimal(problem, tau=5.0, signals=(), checkpoint=tmp_path / "near.ckpt")
    assert [model.support for model in saved.models] == [model.support for model in near.models]
    kept = solve_path(problem, ks=[2, 3], signals=(), checkpoint=tmp_path / "path.ckpt")
    assert [result.support for result in kept.results] == [result.support for result in path.results]


def test_a_summary_is_refused():
    with pytest.raises(UnsupportedError, match="no standard errors are known for coefficients that meet equalities"):
        solve(boxed(portfolio(), sum_to=1.0)).summary()
