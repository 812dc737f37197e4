"""Relaxations within limits that are solved on working sets: valid, as good as those on all columns, and proven."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from recorded import second_opinion
from related_units import relations_of
from samples import sample

from exactsel import Problem, boxed, solve
from exactsel.bounds import spectral, working_set
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import BoxedBound
from exactsel.bounds.wide import PreparedWide
from exactsel.errors import InputError
from exactsel.kernels.node import FREE, IN, OUT, UNFINISHED
from exactsel.problem import minima
from exactsel.problem.boxed import with_bounds
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import verify
from exactsel_certificates.container import read_proof

LOSSES = ("quadratic", "huber", "logistic", "poisson", "squared_hinge")


@pytest.fixture
def tiny(monkeypatch):
    """Working sets of a column or two, whatever the size of a problem."""
    for name, value in (("AT_ONCE", 0), ("FIRST", 1), ("PER_PLACE", 0)):
        monkeypatch.setattr(working_set, name, value)


def wide_case(seed, loss):
    """Copies, negative copies, sums and constant columns; lengths that differ a million times; some limits are 0."""
    rng = np.random.default_rng([seed, 173, LOSSES.index(loss)])
    n = int(rng.integers(3, 7))
    d, k = int(rng.integers(n + 2, n + 6)), int(rng.integers(1, 4))
    A = rng.integers(-2, 3, (n, d)).astype(float) if seed % 3 == 0 else rng.standard_normal((n, d))
    if seed % 2:
        A[:, 1], A[:, 2], A[:, 3] = A[:, 0], -A[:, 0], 1.0
        A[:, -1] = A[:, 0] + A[:, 4]
    if seed % 4 == 1:
        A *= 10.0 ** rng.integers(-3, 4, d)
    z = 3.0 * rng.standard_normal(n)
    labels = np.where(z > np.median(z), 1.0, -1.0)
    y = {"quadratic": z, "huber": z, "poisson": rng.poisson(2.0, n).astype(float)}.get(loss, labels)
    flat = loss == "quadratic" and seed % 5 < 2
    size = np.exp(rng.normal(size=d)) * float(rng.choice([0.1, 1.0, 10.0]))
    lower, upper = -size * rng.integers(0, 2, d), size * rng.integers(0, 3, d)
    if not flat and seed % 7 == 0:
        upper[rng.random(d) < 0.5] = np.inf
    lam = 0.0 if flat else float(rng.choice([0.01, 0.3, 2.0]))
    return with_bounds(
        Problem(A, y, k, loss=loss, lam=lam, **({"delta": 0.7} if loss == "huber" else {})), lower, upper
    )


def least(problem, included, free):
    """The best model that holds nothing but columns of these, and the first at most."""
    slots = min(problem.k - len(included), len(free))
    sets = itertools.combinations(free, slots) if slots >= 0 else ()
    return min((problem.fit([*included, *chosen]).value for chosen in sets), default=np.inf)


def check_bounds_of_nodes(problem, prepared, seed):
    """No bound of a region, and none its children inherit, is above the best model there."""
    rng, room = np.random.default_rng(seed), 1e-9 * max(problem.null_objective, 1e-300)
    for state in (rng.choice([OUT, FREE, FREE, FREE, IN], problem.d).astype(np.int8) for _ in range(5)):
        state[np.flatnonzero(state == IN)[problem.k - 1 :]] = FREE
        included, free = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        best = least(problem, included, free)
        answers = prepared.tighten(state[None], [None], np.inf, best).answers
        assert answers.bound[0] <= best + room
        for j in free:
            rest = [each for each in free if each != j]
            assert answers.bound_out[0, j] <= least(problem, included, rest) + room
            assert answers.bound_in[0, j] <= least(problem, [*included, j], rest) + room


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", sample(12, 600, smoke=1))
def test_bounds_on_working_sets_are_below_the_best_model_of_a_node(tiny, loss, seed):
    problem = wide_case(seed, loss)
    check_bounds_of_nodes(problem, BoxedBound().prepare(problem, BoundOptions()), seed)


def check_search(problem, file):
    """A search finds the best model, and both checkers accept its proof."""
    best, null = least(problem, [], range(problem.d)), problem.null_objective
    result = solve(problem, signals=(), proof=file)
    assert result.lower <= best + 1e-9 * null
    assert result.upper == pytest.approx(best, abs=1e-6 * null)
    assert result.reached or best < 1e-3 * null
    instance = instance_of(problem)
    verdict = verify(read_proof(file), instance)
    assert verdict.verified, verdict.reason
    assert second_opinion(instance, file.read_bytes(), **relations_of(instance)) == ""


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", sample(8, 300))
def test_searches_on_working_sets_find_and_prove_the_best_model(tiny, loss, seed, tmp_path):
    problem, file = wide_case(seed, loss), tmp_path / "run.exsel"
    check_search(problem, file)


def without_limits(seed):
    """One without limits, and with a ridge."""
    problem = wide_case(seed, "quadratic").without_coefficient_bounds
    return problem if problem.lam > 0.0 else problem.replace(lam=0.3)


@pytest.mark.parametrize("seed", sample(20, 1500, smoke=1))
def test_without_limits_bounds_on_working_sets_are_below_the_best_model_of_a_node(tiny, seed):
    problem = without_limits(seed)
    check_bounds_of_nodes(problem, PreparedWide(problem, BoundOptions()), seed)


@pytest.mark.parametrize("spectrum", [False, True])
@pytest.mark.parametrize("seed", sample(10, 600))
def test_without_limits_searches_on_working_sets_prove_the_best_model(tiny, spectrum, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(spectral, "SPLIT_UP_TO", 0)
    if not spectrum:  # else working sets come before the eigenvalues, and these after them
        monkeypatch.setattr(spectral, "MOST_BYTES", 0.0)
    monkeypatch.setattr(minima, "GRAM_COLUMNS", 0)
    problem, file = without_limits(seed), tmp_path / "run.exsel"
    check_search(problem, file)


def many_columns(n=60, d=1300):
    """As many as are served by working sets without any constant being changed."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((n, d))
    A[:, 7], A[:, 9], A[:, 11] = A[:, 3], -A[:, 5], 1.0
    y = A[:, [3, 500, 900]].sum(axis=1) + 0.4 * rng.standard_normal(n)
    return Problem.prepared(A, y, 3, lam=60.0, fit_intercept=True)


@pytest.mark.parametrize("spectrum", [False, True])
def test_many_columns_have_one_tree_and_its_proof(spectrum, tmp_path, monkeypatch):
    if not spectrum:
        monkeypatch.setattr(spectral, "MOST_BYTES", 0.0)
    problem, file = many_columns(), tmp_path / "run.exsel"
    one = solve(problem, signals=(), proof=file, threads=1)
    assert one.reached
    assert one.upper <= problem.fit([3, 500, 900]).value * (1.0 + 1e-12)
    assert verify(read_proof(file), instance_of(problem)).verified
    alone, two = (solve(many_columns(), signals=(), threads=threads) for threads in (1, 2))
    assert alone.tree_hash == one.tree_hash
    assert (two.tree_hash, two.support, two.lower) == (alone.tree_hash, alone.support, alone.lower)
    path = tmp_path / "run.ckpt"
    solve(many_columns(), signals=(), checkpoint=path, rel_eps=0.5)
    resumed = solve(many_columns(), signals=(), resume=path, rel_eps=1e-6)
    assert resumed.lower <= one.upper
    assert resumed.upper == pytest.approx(one.upper, rel=1e-9)


def test_a_bound_that_is_told_to_stop_is_unfinished_and_holds():
    problem = many_columns()
    best = problem.fit([3, 500, 900]).value
    for stopped in (True, False):
        states = np.array([problem.root_state, np.where(np.arange(problem.d) < 3, IN, OUT)], dtype=np.int8)
        options = BoundOptions(stop=np.array([stopped]))
        answers = PreparedWide(problem, options).tighten(states, [None, None], np.inf, best).answers
        assert np.all((answers.status == UNFINISHED) == stopped)
        assert not answers.bound[0] > best
        assert not answers.bound[1] > problem.fit([0, 1, 2]).value * (1.0 + 1e-9)


def test_refits_from_rows_are_those_from_the_gram_matrix(monkeypatch):
    for seed in range(40):
        problem, rng = without_limits(seed), np.random.default_rng(seed)
        supports = np.full((20, problem.k), -1)
        for row in supports:
            size = int(rng.integers(problem.k + 1))
            row[:size] = rng.permutation(problem.d)[:size]
        by_gram = problem.objectives(supports, 1)
        with monkeypatch.context() as changed:
            changed.setattr(minima, "GRAM_COLUMNS", 0)
            by_rows, in_threads = problem.objectives(supports, 1), problem.objectives(np.tile(supports, (9, 1)), 2)
        assert by_rows == pytest.approx(by_gram, abs=1e-9 * problem.null_objective, nan_ok=True)
        assert np.array_equal(np.tile(by_rows, 9), in_threads, equal_nan=True)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_working_set_comes_to_the_bound_on_all_columns(lam, monkeypatch):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 300))
    problem = boxed(Problem(A, A[:, :3].sum(axis=1) + rng.standard_normal(40), 3, lam=lam), max_coef=1.5)

    def bound():
        prepared = BoxedBound().prepare(problem, BoundOptions(force_quit=False))
        return float(prepared.tighten(problem.root_state[None], [None], np.inf, 1e300).answers.bound[0])

    on_few = bound()
    monkeypatch.setattr(working_set, "AT_ONCE", 1000)  # from now on all columns are relaxed by the kernel
    on_all = bound()
    assert on_few == pytest.approx(on_all, rel=2e-3)
    assert on_few > 0.01 * problem.null_objective


@pytest.mark.parametrize("seed", sample(12, 200))
def test_limits_that_limit_nothing_are_proven_as_far_as_doubles_go(seed, tmp_path):
    """Without a ridge rounding in a product counts as often as a coefficient may be large: 10^2 to 10^8 times."""
    rng, file = np.random.default_rng([seed, 179]), tmp_path / "run.exsel"
    n, k = int(rng.integers(4, 8)), int(rng.integers(1, 4))
    A, y = rng.standard_normal((n, n + int(rng.integers(1, 5)))), 3.0 * rng.standard_normal(n)
    problem = boxed(Problem(A, y, k, lam=0.0), max_coef=10.0 ** int(rng.integers(2, 9)))
    best, null = least(problem, [], range(problem.d)), problem.null_objective
    result = solve(problem, signals=(), proof=file)
    assert best - 1e-5 * null <= result.lower <= best + 1e-9 * null
    verdict = verify(read_proof(file), instance_of(problem))
    assert verdict.verified, verdict.reason


def test_groups_without_a_ridge_are_bounded_by_fits_within_their_limits():
    rng = np.random.default_rng(1)
    A, names = rng.standard_normal((5, 8)), ["a", "a", "b", "b", "c", "c", "d", "d"]
    problem = boxed(Problem(A, rng.standard_normal(5), 2, lam=0.0, groups=names), max_coef=2.0)
    result = solve(problem, signals=())
    assert result.settings["bound"] == "boxed-fit"
    assert result.lower <= least(problem, [], range(problem.d)) * (1.0 + 1e-9)


def test_wide_data_within_limits_close_without_a_product_of_all_columns():
    """More columns than a Gram matrix is made of: 60 rows, 5,000 columns, no ridge."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 5000))
    y = 2.0 * A[:, :2].sum(axis=1) + 0.3 * rng.standard_normal(60)
    problem = boxed(Problem(A, y, 2, lam=0.0), max_coef=3.0)
    result = solve(problem, signals=(), time_limit=60.0)
    assert result.reached
    assert result.support == (0, 1)
    assert "gram" not in problem.shared


def test_an_infinite_size_of_coefficients_is_refused_in_words_that_are_true():
    problem = Problem(np.eye(3), np.ones(3), 1)
    with pytest.raises(InputError, match="max_coef is inf, but a positive, finite number was expected"):
        boxed(problem, max_coef=np.inf)
