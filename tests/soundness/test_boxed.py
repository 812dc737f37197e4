"""Signs and bounds of coefficients on the data as given, and through every door; the matrix holds their searches."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from boxed_cases import LOSSES, quadratic_case
from click.testing import CliRunner
from samples import sample
from scipy.optimize import minimize, nnls
from scipy.special import xlogy

from exactsel import (
    GroupedProblem,
    InputError,
    Problem,
    UnsupportedError,
    boxed,
    certify,
    heuristics,
    solve,
)
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import BoxedBound, outwards
from exactsel.cli.main import cli
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS, COEFFICIENTS, FREE_COEFFICIENTS
from exactsel.problem.offsets import knowing
from exactsel.problem.restrictions import without_restrictions
from exactsel.sklearn import BestSubsetCV
from exactsel.studies.compare import compare
from exactsel.studies.crossval import cross_validate, random_folds


@pytest.mark.parametrize("seed", sample(40, 2000))
def test_what_a_column_gains(seed):
    """Against a grid of the box; rounding of what comes in is allowed for."""
    problem, rng = quadratic_case(seed), np.random.default_rng([seed, 47])
    columns = np.arange(problem.d)
    slopes = 3.0 * rng.standard_normal(problem.d)
    bounds, lam = problem.coefficient_bounds, problem.objective.lam
    gains = bounds.gains(slopes, columns)
    for j in columns:
        far = (1.0 + abs(slopes[j])) / lam  # no coefficient beyond this gains anything more
        low, high = max(bounds.lower[j], -far), min(bounds.upper[j], far)
        w = np.linspace(low, high, 20001)
        most = np.max(slopes[j] * w - 0.5 * lam * w * w)
        assert most <= gains[j] * (1.0 + 1e-12) + 1e-300
        assert gains[j] <= most + 1e-4 * (1.0 + abs(most))
    x = rng.standard_normal(problem.d)
    _, q = bounds.dual(x, columns, problem.units)
    slopes = -(problem.AT @ (problem.AT.T @ x - problem.objective.y))
    assert np.all(q >= 2.0 * lam * bounds.gains(slopes, columns))


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
    assert some.coefficient_bounds.lower.tolist() == [0.0] * 6 + [-np.inf, -0.1] + [-np.inf] * 4
    assert some.coefficient_bounds.upper[7] == 0.1
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
    with pytest.raises(InputError, match="a Problem with bounds was given"):
        boxed(problem, "all")
    assert boxed(plain, 2).coefficient_bounds.lower.tolist() == [-np.inf, -np.inf, 0.0, -np.inf]
    with pytest.raises(UnsupportedError):
        solve(problem, bound="apg", signals=())
    with pytest.raises(UnsupportedError, match="signs or bounds"):
        compare(problem, methods="exchange")
    with pytest.raises(InputError, match=r"coefficient of feature 1 is -1, but between 0 and inf was expected"):
        certify(problem, coef=[0.0, -1.0, 0.0, 0.0])
    for method in ("exchange", "foba", "greedy-rls", "greedy-css"):
        with pytest.raises(UnsupportedError):
            heuristics.run(method, problem)
    done = CliRunner().invoke(cli, ["info", "data.npz", "--nonnegative", "all"])
    assert done.exit_code == 2
    assert "known to solve, best, path, certify, compare, verify and play only" in done.stderr


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
    with pytest.raises(InputError, match=r"the pattern 'z\*' of the nonnegative features matches no feature"):
        boxed(named, ["z*"])


def loss_of(name, z, y):
    """Each row's loss, by its definition."""
    if name == "huber":
        size = np.abs(z - y)
        return np.where(size <= 0.7, 0.5 * size**2, 0.7 * (size - 0.35))
    if name == "poisson":
        return np.exp(z) - y * z + xlogy(y, y) - y
    return np.logaddexp(0.0, -y * z) if name == "logistic" else np.maximum(0.0, 1.0 - y * z) ** 2


@pytest.mark.parametrize("seed", sample(32, 400, smoke=4, apart=(3,)))
def test_what_is_said_holds_for_the_data_as_given(seed):
    """Columns far from zero and of other sizes, an intercept, scaling, weights: by hand, from the data themselves."""
    rng = np.random.default_rng([seed, 67])
    loss, n, d = LOSSES[seed % 4], 24, 3
    A = (5.0 + rng.standard_normal((n, d))) * 10.0 ** rng.integers(-2, 3, d)
    z = (A[:, 0] - A[:, 0].mean()) / A[:, 0].std() + rng.standard_normal(n)
    counts = rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)
    y = {"huber": 3.0 + 2.0 * z, "poisson": counts}.get(loss, np.where(z > np.median(z), 1.0, -1.0))
    w, lam, scale = rng.integers(1, 4, n).astype(float), float(rng.choice([0.1, 1.0])), bool(seed % 3)
    options = {"delta": 0.7} if loss == "huber" else {}
    given = Problem.prepared(A, y, 2, loss=loss, lam=lam, intercept=True, scale=scale, weights=w, **options)
    result = solve(boxed(given, "all"), signals=())
    assert result.reached
    spread = (
        np.sqrt(np.average((A - np.average(A, axis=0, weights=w)) ** 2, axis=0, weights=w)) if scale else np.ones(d)
    )

    def cost(coef, level):
        return float(w @ loss_of(loss, A @ coef + level, y) + 0.5 * lam * np.sum((spread * coef) ** 2))

    def best_on(chosen):
        # Centred and of one size, which changes neither the objective nor the signs.
        X = (A[:, chosen] - A[:, chosen].mean(axis=0)) / A[:, chosen].std(axis=0)
        ridge = (spread[chosen] / A[:, chosen].std(axis=0)) ** 2

        def value(p):
            return float(w @ loss_of(loss, X @ p[:-1] + p[-1], y) + 0.5 * lam * ridge @ p[:-1] ** 2)

        limits = [(0.0, None)] * len(chosen) + [(None, None)]
        found = minimize(value, np.zeros(len(chosen) + 1), method="L-BFGS-B", bounds=limits, options={"ftol": 1e-15})
        again = minimize(value, found.x, method="Powell", bounds=limits, options={"xtol": 1e-10, "ftol": 1e-15})
        return min(found.fun, again.fun)

    best = min(best_on([*c]) for size in (1, 2) for c in itertools.combinations(range(d), size))
    assert result.lower <= best * (1.0 + 1e-9)
    assert result.upper == pytest.approx(best, rel=1e-5)
    assert np.all(result.model.coef >= 0.0)
    shown = cost(result.model.coef, result.model.intercept)
    assert result.upper == pytest.approx(shown, rel=1e-8)
    assert shown >= result.lower * (1.0 - 1e-9)


def test_curvature_is_used_and_closes_more():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((80, 20))
    y = A[:, :5] @ rng.standard_normal(5) + rng.standard_normal(80)
    problem = boxed(Problem(A, y, 4, lam=1e-3), "all")
    result = solve(problem, signals=())
    assert result.reached
    assert result.nodes <= 12  # 25 with the ridge alone
    prepared = BoxedBound().prepare(problem, BoundOptions())
    assert prepared.curvature is not None
    assert np.all(prepared.curvature > 1.0)


def test_a_search_over_nearly_dependent_columns_begins_at_their_fit():
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 12))
    A[:, 6:] = A[:, :6] + 1e-5 * rng.standard_normal((60, 6))
    y = A[:, 0] - A[:, 1] + A[:, 2] + rng.standard_normal(60)
    problem = boxed(Problem(A, y, 3, lam=0.0), "all")
    root = problem.root_state
    told = BoxedBound().prepare(problem, BoundOptions()).tighten(root[None], [None], np.inf, np.inf)
    fit = problem.fit(range(12)).value
    assert fit * (1.0 - 1e-6) <= told.answers.bound[0] <= solve(problem, signals=()).upper


def test_without_a_ridge_columns_may_depend_on_each_other():
    """Copies, zeros, fewer rows than columns, a constant column beside an intercept; as with hardly a ridge."""
    rng = np.random.default_rng(2)
    A, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    for columns in (A[:, [0, 1, 2, 0]], np.column_stack([A, np.zeros(20)]), A[:3], np.column_stack([A, np.ones(20)])):
        free = Problem.prepared(columns, y[: len(columns)], 2, lam=1e-9, intercept=len(columns) == 20)
        found, beside = (solve(boxed(free.replace(lam=lam), "all"), signals=()) for lam in (0.0, 1e-9))
        assert found.reached
        assert found.upper <= beside.upper * (1.0 + 1e-12)
        assert found.upper == pytest.approx(beside.upper, rel=1e-6)


@pytest.mark.parametrize("size", [1e-320, 1e-308, 1.0, 1e308])
@pytest.mark.parametrize("scale", [1e-9, 0.1, 3.0, 1e9])
def test_limits_in_the_units_of_the_curvature_are_never_narrower(size, scale):
    scales = np.full(2, scale)
    low = outwards(np.array([-size, 0.0]), scales, -np.inf)
    high = outwards(np.array([size, 0.0]), scales, np.inf)
    assert low[1] == high[1] == 0.0
    assert high[0] == -low[0] > 0.0
    assert high[0] == np.inf or Fraction(high[0]) >= Fraction(size) * Fraction(scale)
    assert [low.flags.writeable, high.flags.writeable] == [False, False], "kernels would be compiled once more"


def test_bounds_stay_with_the_problem():
    """Whatever else of it changes: a copy without them would admit models that they exclude."""
    rng = np.random.default_rng(7)
    A, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    plain = Problem(A, y, 3, lam=0.5)
    bounded = boxed(plain, "all")
    grouped = GroupedProblem(bounded, [0, 0, 1, 1, 2, 2])
    others = [bounded.replace(k=2), bounded.replace(lam=1.0), bounded.choosing(plain.units, 2), grouped]
    # Without a ridge columns are searched in other units, which a ridge gives up.
    unpenalised = boxed(Problem(A * 10.0 ** np.arange(6), y, 3), "all")
    others += [unpenalised, unpenalised.replace(lam=1.0), bounded.replace(lam=0.0), bounded.replace(loss="huber")]
    assert unpenalised.replace(lam=1.0).hash == boxed(Problem(A * 10.0 ** np.arange(6), y, 3, lam=1.0), "all").hash
    assert bounded.replace(lam=1.0).hash == boxed(Problem(A, y, 3, lam=1.0), "all").hash
    assert bounded.replace(loss="huber").objective.free.loss.name == "huber"
    for problem in [*others, bounded.limited([0, 0, 1, 1, 2, 2], 1), grouped.replace(k=1)]:
        assert problem.has(COEFFICIENTS | COEFFICIENT_BOUNDS)
        assert not problem.has(FREE_COEFFICIENTS)
        best = problem.fit(range(problem.d))
        assert np.all(best.coef >= 0.0)
        assert problem.objectives(np.arange(problem.d)[None]) == pytest.approx([best.value], rel=1e-6)
        assert problem.hash != problem.without_coefficient_bounds.hash
        assert problem.without_coefficient_bounds.has(FREE_COEFFICIENTS)
        assert problem.objective.free is problem.without_coefficient_bounds.objective
    assert plain.without_coefficient_bounds is plain
    offset = knowing(bounded, np.ones(30))
    assert offset.objective.offset is offset.objective.free.offset is not None
    limited = bounded.limited([0, 0, 1, 1, 2, 2], 1)
    assert without_restrictions(limited).has(FREE_COEFFICIENTS)
    assert without_restrictions(limited).fit(range(6)).value < limited.fit(range(6)).value
