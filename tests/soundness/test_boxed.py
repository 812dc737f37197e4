"""Signs and bounds of coefficients: against all sets of columns, with fits by another method."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from boxed_cases import allowed_sets, least_squares_of, other_case, quadratic_case, smooth_fit_of
from click.testing import CliRunner
from regions import supports_of
from samples import sample
from scipy.optimize import nnls

from exactsel import (
    InputError,
    Problem,
    UnsupportedError,
    best_model,
    certify,
    heuristics,
    near_optimal,
    solve,
    solve_path,
)
from exactsel.cli.main import cli
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.boxed import boxed
from exactsel.sklearn import BestSubsetCV
from exactsel.studies.compare import compare
from exactsel.studies.crossval import cross_validate, random_folds
from exactsel.studies.size_criterion import SizeCriterion


@pytest.mark.parametrize("seed", sample(80, 3000, smoke=8))
def test_the_best_model_in_the_box_is_found(seed):
    problem = quadratic_case(seed)
    scale = max(1.0, problem.null_objective)
    best = min(least_squares_of(problem, chosen) for chosen in allowed_sets(problem))
    result = solve(problem, signals=(), **({} if seed % 3 else {"batch": 1, "warm_start": False}))
    assert result.lower <= best + 1e-9 * scale
    assert abs(result.upper - best) <= 1e-6 * scale
    assert result.upper >= best - 1e-7 * scale
    assert result.reached
    assert np.all((result.coef >= problem.lower) & (result.coef <= problem.upper))
    assert np.count_nonzero(result.coef) <= problem.k
    assert result.upper >= problem.base(result.coef)


@pytest.mark.parametrize("seed", sample(40, 2000))
def test_no_bound_of_a_region_is_above_its_best_model(seed):
    problem, rng = quadratic_case(seed), np.random.default_rng([seed, 43])
    state = rng.choice([OUT, FREE, FREE, IN], problem.d).astype(np.int8)
    sets = supports_of(state, problem.k)
    if not sets:
        return
    best = min(least_squares_of(problem, chosen) for chosen in sets)
    for x in (np.zeros(problem.d), rng.standard_normal(problem.d), problem.fit(sets[-1]).coef):
        assert problem.bound_at(x, state) <= best + 1e-9 * max(1.0, problem.null_objective)


@pytest.mark.parametrize("seed", sample(40, 2000))
def test_what_a_column_gains(seed):
    """Against a grid of the box; rounding of what comes in is allowed for."""
    problem, rng = quadratic_case(seed), np.random.default_rng([seed, 47])
    columns = np.arange(problem.d)
    slopes = 3.0 * rng.standard_normal(problem.d)
    gains, lam = problem.gains(slopes, columns), problem.base.lam
    for j in columns:
        low, high = max(problem.lower[j], -10.0 / lam), min(problem.upper[j], 10.0 / lam)
        w = np.linspace(low, high, 20001)
        most = np.max(slopes[j] * w - 0.5 * lam * w * w)
        assert most <= gains[j] * (1.0 + 1e-12) + 1e-300
        assert gains[j] <= most + 1e-4 * (1.0 + abs(most))
    x = rng.standard_normal(problem.d)
    _, q = problem.dual(x, columns)
    assert np.all(q >= 2.0 * lam * problem.gains(-(problem.AT.T.T @ (problem.AT.T @ x - problem.base.y)), columns))


@pytest.mark.parametrize("seed", sample(30, 1000, smoke=3))
def test_intercept_scale_and_weights(seed):
    """Against every set, prepared by hand; signs and values are those of the data as given."""
    rng = np.random.default_rng([seed, 53])
    n, d, k = int(rng.integers(3, 14)), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    A, y = 5.0 + rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d), 3.0 + rng.standard_normal(n)
    weights = rng.integers(0, 3, n).astype(float) if seed % 3 == 0 else None
    if weights is not None and not weights.any():
        weights[:] = 1.0
    intercept, scale, lam = bool(seed % 2), bool(seed % 5 < 2), float(rng.choice([0.1, 1.0]))
    given = Problem.prepared(A, y, min(k, d), lam=lam, intercept=intercept, scale=scale, weights=weights)
    result = solve(boxed(given, "all"), signals=())
    w = np.ones(n) if weights is None else weights
    mean, target = (np.average(A, axis=0, weights=w), np.average(y, weights=w)) if intercept else (np.zeros(d), 0.0)
    spread = np.sqrt(np.average((A - np.average(A, axis=0, weights=w) * intercept) ** 2, axis=0, weights=w))
    size = np.where(spread > 0, spread, 1.0) if scale else np.ones(d)
    prepared, off = np.sqrt(w)[:, None] * (A - mean) / size, np.sqrt(w) * (y - target)

    def best_on(chosen):
        matrix = np.vstack([prepared[:, chosen], np.sqrt(lam) * np.eye(len(chosen))])
        return 0.5 * float(nnls(matrix, np.concatenate([off, np.zeros(len(chosen))]))[1]) ** 2

    sets = [[*c] for r in range(1, min(k, d) + 1) for c in itertools.combinations(range(d), r)]
    best = min([0.5 * float(off @ off), *map(best_on, sets)])
    assert result.lower <= best * (1.0 + 1e-9)
    assert result.upper == pytest.approx(best, rel=1e-6, abs=1e-9)
    coef, level = result.model.coef, result.model.intercept or 0.0
    assert np.all(coef >= 0.0)
    reached = 0.5 * float(w @ (A @ coef + level - y) ** 2) + 0.5 * lam * float(np.sum((size * coef) ** 2))
    assert result.upper >= reached * (1.0 - 1e-12)
    assert result.upper == pytest.approx(reached, rel=1e-9)


def test_estimators():
    estimators = pytest.importorskip("exactsel.sklearn")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 5))
    y = 2.0 - X[:, 0] + X[:, 1] + 0.3 * X[:, 2] + 0.1 * rng.standard_normal(40)
    fitted = estimators.BestSubsetRegressor(k=2, lam=0.1, positive=True).fit(X, y)
    assert fitted.support_.tolist() == [1, 2]
    assert np.all(fitted.coef_ >= 0.0)
    np.testing.assert_allclose(fitted.predict(X), X @ fitted.coef_ + fitted.intercept_)
    without = estimators.BestSubsetRegressor(k=2, positive=True).fit(X, y)
    assert without.support_.tolist() == [1, 2]
    assert np.all(without.coef_ >= 0.0)
    classes = estimators.BestSubsetClassifier(k=2, positive=True).fit(X, y > 2)
    assert np.all(classes.coef_ >= 0.0)
    assert np.count_nonzero(classes.coef_) == 2


def test_signs_make_a_difference():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 12))
    y = A[:, 0] - 2.0 * A[:, 1] + 0.5 * A[:, 2] + 0.1 * rng.standard_normal(50)
    names = [f"{'dose' if j < 6 else 'x'}_{j}" for j in range(12)]
    free = Problem(A, y, 3, lam=0.5, feature_names=names)
    assert solve(free, signals=()).support == (0, 1, 2)
    signed = solve(boxed(free, "all"), signals=())
    assert 1 not in signed.support
    assert np.all(signed.coef >= 0.0)
    some = boxed(free, ["dose_*"], [("x_7", -0.1, 0.1)])
    assert some.lower.tolist() == [0.0] * 6 + [-np.inf, -0.1] + [-np.inf] * 4
    assert some.upper[7] == 0.1
    assert len({free.hash, some.hash, boxed(free, "all").hash}) == 3
    assert some.replace(k=2).k == 2


def test_what_does_not_go_together_is_said(tmp_path):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((20, 4))
    y = A[:, 0] + 0.1 * rng.standard_normal(20)
    plain = Problem(A, y, 2, lam=0.5)
    with pytest.raises(InputError, match="scaling rounds them"):
        boxed(Problem.prepared(A, y, 2, lam=0.5, scale=True), "all", [(0, 0.0, 1.0)])
    for options, words in (
        ({"bounds": [(0, 0.5, 1.0)]}, "0, the coefficient"),
        ({"bounds": [(0, 0.0, 1.0), (0, 0.0, 2.0)]}, "twice"),
        ({"nonnegative": [7]}, "7"),
        ({"bounds": [(0, 0.0, float("nan"))]}, "NaN"),
        ({"bounds": [(0, "x", 1.0)]}, "could not convert"),
        ({"bounds": [(0, -(10**400), 1.0)]}, "too large"),
        ({"bounds": [(0, 1.0)]}, "was expected"),
        ({"nonnegative": ()}, "limit no coefficient"),
    ):
        with pytest.raises(InputError, match=words):
            boxed(plain, **options)
    problem = boxed(plain, "all")
    with pytest.raises(InputError, match="a BoxedProblem was given"):
        boxed(problem, "all")
    assert boxed(plain, 2).lower.tolist() == [-np.inf, -np.inf, 0.0, -np.inf]
    with pytest.raises(UnsupportedError):
        solve(problem, bound="apg", signals=())
    with pytest.raises(UnsupportedError, match="signs or bounds"):
        compare(problem, methods="exchange")
    with pytest.raises(InputError, match=r"coefficient of column 1 is -1, but between 0 and inf was expected"):
        certify(problem, coef=[0.0, -1.0, 0.0, 0.0])
    for method in ("exchange", "foba", "greedy-rls", "greedy-css"):
        with pytest.raises(UnsupportedError):
            heuristics.run(method, problem)
    done = CliRunner().invoke(cli, ["info", "data.npz", "--nonnegative", "all"])
    assert done.exit_code == 2
    assert "known to solve, best, path, near, certify, heuristic, compare, verify, tree and play alone" in done.stderr


@pytest.mark.parametrize("seed", sample(12, 400, smoke=2))
def test_paths_lists_and_certificates(seed):
    """Against all sets of columns, for every size and two ridge weights."""
    make = quadratic_case if seed % 2 else other_case
    fit = least_squares_of if seed % 2 else smooth_fit_of
    problem = make(seed).replace(must_have=(), must_not=())
    problem = problem.replace(k=max(1, problem.k))
    scale, lam = max(1.0, problem.null_objective), problem.base.lam
    path = solve_path(problem, lams=[2.0 * lam, lam], signals=())
    assert len(path.results) == 2 * problem.k
    for result in path.results:
        alone = problem.replace(k=result.problem["k"], lam=result.problem["lam"])
        values = {chosen: fit(alone, chosen) for chosen in allowed_sets(alone)}
        best = min(values.values())
        assert result.lower <= best + 1e-9 * scale
        assert result.upper == pytest.approx(best, abs=1e-6 * scale)
        assert alone.admits(result.coef)
    values = {chosen: value for chosen, value in values.items() if len(chosen) == problem.k}
    tau = 0.1 * scale
    near = near_optimal(problem, tau=tau, signals=())
    listed = {model.support: model.value for model in near.models}
    assert near.complete
    for chosen, value in values.items():
        if abs(value - best - tau) > 1e-5 * scale:
            assert (chosen in listed) == (value <= best + tau)
        if chosen in listed:
            assert listed[chosen] == pytest.approx(value, abs=1e-6 * scale)
    chosen = sorted(values)[seed % len(values)]
    certified = certify(problem, support=chosen, signals=())
    assert certified.value == pytest.approx(values[chosen], abs=1e-6 * scale)
    assert certified.value - certified.absolute_gap <= best + 1e-9 * scale


@pytest.mark.parametrize("seed", sample(12, 400, smoke=2))
def test_the_best_models_by_a_criterion(seed):
    """Of all sizes, against all sets of columns: the best, and a complete list of the best three."""
    make, fit = (quadratic_case, least_squares_of) if seed % 2 else (other_case, smooth_fit_of)
    problem = make(seed).replace(must_have=(), must_not=())
    problem = problem.replace(k=problem.d)
    measure = SizeCriterion.of(problem.unlimited, "custom", 1.0, 2.0)
    largest = problem.d if measure.largest_size() is None else min(problem.d, measure.largest_size())
    if largest < 0:
        return
    values = {c: fit(problem, c) for c in allowed_sets(problem) if len(c) <= largest}
    if min(values.values()) < 1e-3 * problem.null_objective:  # fits nearly exactly, so that logarithms tell nothing
        return
    criteria = sorted((measure.value(value, len(chosen)), chosen) for chosen, value in values.items())
    found = best_model(problem, criterion="custom", penalty=2.0, top=3, signals=())
    scale = 1.0 + abs(criteria[0][0])
    assert found.value == pytest.approx(criteria[0][0], abs=1e-5 * scale)
    assert found.lower <= criteria[0][0] + 1e-9 * scale
    assert problem.admits(found.result.coef)
    if found.complete:
        assert len(found.models) >= min(3, len(criteria))
        for model, (value, _) in zip(found.models, criteria, strict=False):
            assert model.criterion == pytest.approx(value, abs=1e-5 * scale)
    assert found.complete or seed % 8, "lists are complete but for ties that rounding leaves open"


def test_cross_validation_keeps_to_signs():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((40, 5))
    y = A @ [1.0, -1.0, 0.5, 0.0, 0.0] + 0.3 * rng.standard_normal(40)
    folds = random_folds(40, 4)
    free = cross_validate(A, y, cv=folds, ks=[1, 2], lams=[0.5], signals=())
    signed = cross_validate(A, y, cv=folds, ks=[1, 2], lams=[0.5], nonnegative="all", signals=())
    for place, (train, held_out) in enumerate(folds):
        problem = Problem.prepared(A[train], y[train], 2, lam=0.5, intercept=True)
        alone = solve(boxed(problem, "all"), signals=())
        loss = 0.5 * float(np.mean((alone.predict(A[held_out]) - y[held_out]) ** 2))
        assert signed.errors[place, 0, 1] == pytest.approx(loss, rel=1e-9)
    assert signed.mean[0, 1] > free.mean[0, 1]
    chosen = BestSubsetCV(ks=[1, 2], lams=[0.5], cv=4, positive=True).fit(A, y)
    assert np.all(chosen.coef_ >= 0.0)
    within = cross_validate(A, y, cv=folds, ks=[1, 2], lams=[0.5], bounds=[(1, -0.1, 0.0)], signals=())
    assert within.mean[0, 1] > free.mean[0, 1]


@pytest.mark.smoke
def test_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 6))
    y = A[:, 0] - 2.0 * A[:, 1] + 0.5 * A[:, 2] + 0.1 * rng.standard_normal(50)
    np.savez(tmp_path / "data.npz", A=A, y=y, k=3, lam=0.5, feature_names=np.array([*"abcdef"]))
    (tmp_path / "bounds.csv").write_text("column,lower,upper\nb,-0.5,\nc,,0.25\n")
    limits = {"all": ["--nonnegative", "all"], "file": ["--nonnegative", "a", "--bounds", str(tmp_path / "bounds.csv")]}
    answers = {}
    for name, given in limits.items():
        run = ["solve", str(tmp_path / "data.npz"), *given]
        done = CliRunner().invoke(cli, [*run, "--json", "--quiet"])
        assert done.exit_code == 0, done.output
        answers[name] = json.loads(done.stdout)
        assert "perspective bound within the bounds" in CliRunner().invoke(cli, run).stderr
    assert min(answers["all"]["coef"]) >= 0.0
    coef = answers["file"]["coef"]
    assert (coef[1], coef[2]) == (-0.5, 0.25)
    assert answers["file"]["bounds"][0] == [0.0, -0.5, *[None] * 4]
    for text, words in (("a,0", "2 entries"), ("a,x,1", "'x'"), ("a,1,2", "0, the coefficient"), ("g,0,1", "g")):
        (tmp_path / "bounds.csv").write_text(text)
        refused = CliRunner().invoke(cli, [*run, "--quiet"])
        assert refused.exit_code != 0
        assert words in f"{refused.exception}{refused.stderr}"


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_columns_that_depend_on_each_other_with_hardly_any_ridge(loss):
    """The Hessian is singular in doubles there; the fit on both columns is no worse than that on one."""
    rng = np.random.default_rng(2)
    a = 1e3 * rng.standard_normal(30)
    y = np.sign(a + 500.0 * rng.standard_normal(30))
    more = {"delta": 0.5} if loss == "huber" else {}
    problem = boxed(Problem(np.column_stack([a, a]), y, 2, loss=loss, lam=1e-9, **more), "all")
    both, alone = problem.fit([0, 1]), problem.fit([0])
    assert both.value <= alone.value * (1.0 + 1e-9) < problem.null_objective


def test_what_does_not_know_of_signs_says_so():
    rng = np.random.default_rng(3)
    named = Problem(rng.standard_normal((9, 2)), rng.standard_normal(9), k=1, lam=0.1, feature_names=["a", "b"])
    with pytest.raises(InputError, match=r"the pattern 'z\*' of nonnegative columns matches no column"):
        boxed(named, ["z*"])
