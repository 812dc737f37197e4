"""Columns forced in or out: against brute force over what is left, for every loss and way to search."""

from __future__ import annotations

import io
import tempfile
from itertools import combinations

import numpy as np
import pytest
from instances_for_tests import LOSSES, random_case
from samples import sample

from exactsel import ColumnSubsetProblem, Problem, ProgressLog, boxed, certify, near_optimal, solve, solve_path, verify
from exactsel.enumeration import work_budget as subtrees
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.model import demands_text
from exactsel.report.path import path_table
from exactsel.start.models import admissible
from exactsel.studies.compare import compare
from exactsel.studies.comparison_table import comparison_table
from exactsel.studies.criteria import Compared
from exactsel.studies.heuristics import names, run


def demanding(seed, loss=None):
    """A random problem with columns forced in and out, and its optimum by trying every support."""
    rng = np.random.default_rng(seed)
    case = random_case(seed, loss=loss, lam=float(10.0 ** rng.uniform(-3, 1)))
    d = case.A.shape[1]
    order = rng.permutation(d)
    included = order[: rng.integers(0, case.k + 1)].tolist()
    outside = order[len(included) :][: rng.integers(0, d - len(included) + 1)].tolist()
    free = sorted({*range(d)} - {*included} - {*outside})
    plain = case.problem()
    size = min(case.k - len(included), len(free))
    optimum = min(plain.fit([*included, *extra]).value for extra in combinations(free, size))
    problem = Problem(
        case.A, case.y, case.k, loss=case.loss, lam=case.lam, delta=case.delta, force_in=included, force_out=outside
    )
    return problem, optimum


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("block", sample(3, 3))
def test_against_every_admissible_support(loss, block, monkeypatch):
    monkeypatch.setattr(subtrees, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(subtrees, "LEAST_SUBSEARCH", 1)
    for seed in range(910_000 + 50 * block, 910_050 + 50 * block):
        rng = np.random.default_rng(seed)
        problem, optimum = demanding(seed, loss)
        options = {"tree": ["binary", "binary", "state-space"][rng.integers(3)], "threads": 1}
        if rng.random() < 0.3:
            options["heuristics"] = "none"
        result = solve(problem, rel_eps=1e-9, signals=(), details=True, **options)
        tiny = 1e-8 * (1.0 + abs(optimum))
        assert result.upper == pytest.approx(optimum, abs=tiny), seed
        assert result.lower <= optimum + 1e-12 * (1.0 + abs(optimum)), seed
        assert result.reached
        assert not {*result.support} & {*problem.force_out}
        assert len({*result.support} | {*problem.force_in}) <= problem.k


def test_nothing_demanded_is_the_same_problem():
    case = random_case(3, loss="quadratic", lam=0.1)
    plain = case.problem()
    assert plain.replace(force_out=()).hash == plain.hash
    assert plain.replace(force_out=[0]).hash != plain.hash
    assert plain.replace(force_out=[0]).replace(lam=0.2).force_out == (0,)


def test_every_heuristic_gives_an_admissible_model():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((40, 9))
    problem = Problem(A, A[:, :3].sum(axis=1), 3, lam=0.1, force_in=[7], force_out=[0, 1])
    for name in names():
        try:
            found = run(name, problem)
        except InputError:
            continue  # for column subset selection
        assert not {*found.support} & {0, 1}
        assert len({*found.support} | {7}) <= 3
        assert found.upper >= found.lower


def test_columns_by_name_and_what_is_refused():
    A = np.eye(4)
    names_of = ["a", "b", "c", "c"]
    problem = Problem(A, np.ones(4), 2, lam=1.0, feature_names=names_of, force_in=["b"], force_out=[np.int64(0)])
    assert (problem.force_in, problem.force_out) == ((1,), (0,))
    assert problem.root_state.tolist() == [0, 2, 1, 1]
    assert admissible((0, 2, 3), problem) in ((1, 2), (1, 3))
    for included, outside, words in (
        (["x"], [], "no feature is called that"),
        (["c"], [], "2 features are called that"),
        ([4], [], "numbered 0 to 3"),
        ([1], [1], "leave it in one of them"),
        ([0, 1, 2], [], "raise k"),
        ([True], [], "numbered"),
    ):
        with pytest.raises(InputError, match=words):
            Problem(A, np.ones(4), 2, lam=1.0, feature_names=names_of, force_in=included, force_out=outside)


def test_a_column_whose_name_is_a_number():
    """Names come first; a text that is no name but reads as a number is one; whole numbers are always numbers."""
    A, y = np.eye(4), np.ones(4)
    called = ["1", "2", "7", "7"]
    for given, expected in ((["1"], (0,)), ([1], (1,)), (["3"], (3,)), (["0", "2"], (0, 1))):
        assert Problem(A, y, 2, lam=1.0, feature_names=called, force_in=given).force_in == expected
    for given, words in (
        (["7"], "2 features are called that"),
        (["4"], "numbered 0 to 3"),
        (["-1"], "numbered 0 to 3"),
    ):
        with pytest.raises(InputError, match=words):
            Problem(A, y, 2, lam=1.0, feature_names=called, force_in=given)


def test_no_supports_have_no_objectives():
    for loss, lam in (("quadratic", 0.0), ("huber", 1.0)):
        problem = Problem(np.eye(4), np.ones(4), 2, loss=loss, lam=lam, delta=1.0 if loss == "huber" else None)
        for empty in ([], np.zeros((0, 2), dtype=np.int64)):
            assert problem.objectives(np.array(empty)).shape == (0,)
    assert ColumnSubsetProblem(np.eye(4), 2).objectives(np.zeros((0, 2), dtype=np.int64)).shape == (0,)


def test_texts_name_bounds_and_equalities():
    A = np.random.default_rng(0).standard_normal((20, 4))
    problem = Problem(A, A[:, 0] + A[:, 1], 2, lam=0.1, feature_names=list("abcd"))

    def said(**limits):
        return demands_text(boxed(problem, **limits).describe())

    assert said(nonnegative=["a", "c"]) == "coefficients of 2 features at least 0"
    assert said(nonnegative="all") == "all coefficients at least 0"
    assert said(nonnegative=["b"], max_coef=2.0) == (
        "coefficients of 3 features from -2 to 2; the coefficient of 1 feature from 0 to 2"
    )
    many = [(name, -1.0 - place, None) for place, name in enumerate("abcd")]
    assert said(bounds=many) == "coefficients of 4 features within bounds"
    assert said(sum_to=1.0) == "coefficients sum to 1"
    assert said(equalities=[({"a": 1, "b": -2.5}, 3.0)]) == "coefficients meet a - 2.5*b = 3"
    assert "constraints  coefficients sum to 1\n" in str(solve(boxed(problem, sum_to=1.0), signals=(), threads=1))


def test_texts_name_the_demands():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 4)) + 3.0
    problem = Problem.prepared(
        A, A[:, 0] + 9.0, 2, lam=0.1, intercept=True, scale=True, feature_names=list("abcd"), force_in=["d"],
        force_out=["b"],
    )  # fmt: skip
    said = "in every model: d (3); in no model: b (1); intercept, not penalised; features scaled"
    result = solve(problem)
    assert f"constraints  {said}" in str(result)
    certified = str(certify(problem, support=["a", "d"]))
    assert said in certified
    assert "features that meet the constraints (the candidate" in certified
    assert "constraints" not in str(certify(Problem(A, A[:, 0], 2, lam=0.1), support=[0]))
    assert f"constraints  {said}" in str(near_optimal(problem, tau=0.0))
    assert f"constraints: {said}" in path_table(Compared(solve_path(problem)))
    assert f"constraints {said}" in comparison_table(compare(problem, methods="omp"))
    stream = io.StringIO()
    ProgressLog(stream).begin(problem, "0", "")
    assert f"constraints  {said}\n" in stream.getvalue()
    assert "no intercept" not in stream.getvalue()
    ProgressLog(stream).begin(Problem(A, A[:, 0] + 9.0, 2, lam=0.1), "0", "")
    assert "the model has no intercept" in stream.getvalue()


def test_a_candidate_that_breaks_a_demand_is_refused():
    rng = np.random.default_rng(9)
    A = rng.standard_normal((30, 6))
    problem = Problem(A, A[:, 0] + A[:, 1], 2, lam=0.1, force_in=[2], force_out=[3])
    assert certify(problem, support=solve(problem).support).reached
    for support in ([0, 1], [2, 3]):
        with pytest.raises(InputError, match=r"force_in|force_out"):
            certify(problem, support=support)


@pytest.mark.parametrize("seed", sample(60, 120, smoke=8))
def test_intercept_scale_and_weights_against_brute_force(seed):
    """The weighted least-squares fit with a free intercept, of every support, by numpy alone."""
    rng = np.random.default_rng(930_000 + seed)
    n, d, k = int(rng.integers(4, 14)), int(rng.integers(2, 7)), int(rng.integers(1, 4))
    k = min(k, d)
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.uniform(-5, 5, d)
    y = A @ rng.standard_normal(d) + rng.standard_normal(n) + 7.0
    intercept, scale = bool(rng.random() < 0.7), bool(rng.random() < 0.5)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n) if rng.random() < 0.6 else None
    if weights is not None and not np.count_nonzero(weights) > d + 1:
        weights = None
    lam = float(10.0 ** rng.uniform(-3, 1))
    problem = Problem.prepared(A, y, k, intercept=intercept, scale=scale, weights=weights, lam=lam)
    result = solve(problem, rel_eps=1e-9, signals=())
    w = np.ones(n) if weights is None else weights
    sizes = np.ones(d)
    if scale:
        centred = A - (np.average(A, axis=0, weights=w) if intercept else 0.0)
        sizes = np.sqrt(np.average(centred**2, axis=0, weights=w))
    best = min(
        (free_fit(A / sizes, y, w, lam, list(columns), intercept) for columns in combinations(range(d), k)),
        key=lambda fit: fit[0],
    )
    assert result.upper == pytest.approx(best[0], rel=1e-7, abs=1e-9)
    if problem.preparation is not None:
        coef, constant = problem.as_given(result.prepared.coef)
        expected = best[1] / sizes
        assert np.allclose(coef, expected, rtol=1e-5, atol=1e-7 * (1 + np.abs(expected).max()))
        assert constant == pytest.approx(best[2], rel=1e-5, abs=1e-6)


def free_fit(A, y, w, lam, columns, intercept):
    """Objective, coefficients (d,) and intercept of the best model on some columns; only the former are penalised."""
    X = np.column_stack([A[:, columns], np.ones(len(y))]) if intercept else A[:, columns]
    penalty = np.diag([lam] * len(columns) + [0.0] * intercept)
    solution = np.linalg.solve(X.T @ (w[:, None] * X) + penalty, X.T @ (w * y))
    coef = np.zeros(A.shape[1])
    coef[columns] = solution[: len(columns)]
    residual = y - X @ solution
    constant = float(solution[-1]) if intercept else 0.0
    return float(0.5 * (w @ residual**2) + 0.5 * lam * coef @ coef), coef, constant


def test_what_would_not_be_exact_is_refused():
    A, y = np.eye(3), np.array([1.0, -1.0, 1.0])
    for options, words in (
        ({"weights": [1, 2]}, "2 weights for 3 rows"),
        ({"weights": [1, -1, 1]}, "not negative"),
        ({"weights": ["a", "b", "c"]}, "not numeric"),
    ):
        with pytest.raises((InputError, UnsupportedError), match=words):
            Problem.prepared(A, y, 1, lam=1.0, **options)
    plain = Problem.prepared(A, y, 1, lam=1.0)
    assert plain.preparation is None
    assert plain.hash == Problem(A, y, 1, lam=1.0).hash


def test_prepared_frames_keep_their_names_and_their_loss():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    frame = pandas.DataFrame(rng.standard_normal((20, 4)), columns=list("abcd"))
    problem = Problem.prepared(frame, rng.standard_normal(20), 2, lam=0.1, intercept=True, force_in=["b"])
    assert problem.feature_names == ("a", "b", "c", "d")
    assert problem.force_in == (1,)
    with pytest.raises(UnsupportedError, match="prepared for quadratic loss"):
        problem.replace(loss="huber", delta=1.0)


def test_no_set_within_reach_is_not_unique():
    rng = np.random.default_rng(4)
    problem = Problem(rng.standard_normal((20, 5)), rng.standard_normal(20), 3, lam=1.0, force_out=[0, 1, 2])
    listed = near_optimal(problem, tau=1.0)
    assert listed.models == ()
    assert listed.unique is None


def test_a_path_begins_where_the_demands_allow():
    rng = np.random.default_rng(5)
    problem = Problem(rng.standard_normal((20, 5)), rng.standard_normal(20), 3, lam=1.0, force_in=[0, 4])
    assert [result.problem["k"] for result in solve_path(problem).results] == [2, 3]


@pytest.mark.untrue
def test_proofs_with_columns_a_hair_apart():
    """Without a ridge: one column nearly a copy of two others that are copies. Most such proofs reach their claim."""
    verified = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((20, 5))
        A[:, 0], A[:, 2] = A[:, 1], A[:, 1] + 1e-7 * A[:, 2]
        problem = Problem(A, rng.standard_normal(20), 3, lam=0.0)
        with tempfile.TemporaryDirectory() as folder:
            solve(problem, proof=f"{folder}/run.exsel", signals=())
            verdict = verify(problem, f"{folder}/run.exsel")
        verified += verdict.verified
        assert verdict.lower <= verdict.upper
    assert verified >= 11


@pytest.mark.parametrize("method", ["swap", "exchange", "forward", "greedy-rls"])
@pytest.mark.parametrize("demand", ["force_out", "hierarchy", "per_group"])
def test_a_place_that_demands_leave_empty_is_filled(method, demand):
    """A method proposes the long column, which may not be chosen; others are found for its place."""
    rng = np.random.default_rng(31)
    A = rng.standard_normal((20, 4)) * [1e9, 1.0, 1.0, 1.0]
    y = A[:, 0] / 1e9 * 5 + A[:, 1] + 0.5 * A[:, 2]
    asked = {
        "force_out": {"force_out": [0]},
        "hierarchy": {"hierarchy": {0: (1, 2, 3)}},
        "per_group": {"groups": ["a", "a", "a", None], "per_group": 1, "force_in": [1]},
    }[demand]
    problem = Problem(A, y, 2, lam=1.0, **asked)
    found = run(method, problem)
    singles = [problem.fit(s).value for s in ([1], [2], [3], [1, 2], [1, 3]) if problem.units.completed(s, 2) == (*s,)]
    assert found.upper <= singles[0]
    assert found.support


def test_places_are_filled_within_signs():
    rng = np.random.default_rng(32)
    A = rng.standard_normal((20, 4)) * [1e9, 1.0, 1.0, 1.0]
    y = A[:, 0] / 1e9 * 5 + A[:, 1] - 0.5 * A[:, 2]
    problem = boxed(Problem(A, y, 2, lam=1.0, force_out=[0]), "all")
    found = run("swap", problem)
    assert 1 in found.support
    assert problem.coefficient_bounds.admit(found.prepared.coef)


def test_what_is_proposed_stays_where_demands_allow_it():
    problem = Problem(np.eye(5), np.arange(5.0), 3, lam=1.0, hierarchy={4: (3,)})
    assert admissible([0], problem) == (0,)
    assert admissible([3, 4], problem) == (3, 4)
    assert admissible([4], problem) == (3, 4)
