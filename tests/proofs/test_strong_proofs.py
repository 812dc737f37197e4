"""Files with the word STRONG that claim too much, or ask for much: both checkers say no, in bounded work."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from corrupted import check
from hand_written import CLOSE, written
from tiny_problems import Case

from exactsel import boxed, solve, verify
from exactsel.problem.regression import Problem
from exactsel.proofs.instance import instance_of
from exactsel_certificates import standalone
from exactsel_certificates.container import COUNTED, FIRST_LIKE, FIRST_STRONG
from exactsel_dev.reference.semidefinite import strong_bound

STRONG, LIKE = 8 * FIRST_STRONG + 7, 8 * FIRST_LIKE + 7


def verdicts(case, lower, upper, tree, points):
    """Whether the first checker verifies a claim, what the second says, and the instance."""
    data = written(case, tree, {}, lower, upper, points=points).data()
    problem = Problem(np.array(case.A), np.array(case.y), case.k, lam=case.lam, loss=case.loss)
    said = standalone.check(data, case.A, case.y, case.k, case.loss, case.lam, 1.0)
    return check(data, instance_of(problem)).verified, said, instance_of(problem)


@pytest.mark.parametrize(("a", "p", "q", "lam"), [(0.6, 0.3, math.sqrt(0.55), 0.125), (0.69, 0.04, 0.72, 2.0**-14)])
def test_a_column_without_a_slope_may_take_from_the_others(a, p, q, lam):
    """The target is orthogonal to the first column, whose cosines with the others sum up to more than 1."""
    A = [[1.0, a, a], [0.0, p, p], [0.0, q, -q]]
    case = Case(A, [0.0, 1.0, 0.0], 3, "quadratic", lam)
    best = Problem(np.array(A), np.array(case.y), 3, lam=lam).fit((0, 1, 2)).value
    verified, said, instance = verdicts(case, best * 1.05, 0.5, [STRONG, CLOSE], [{}])
    assert not verified
    assert said != ""
    assert strong_bound(instance, [], [0, 1, 2], []) <= best


def test_what_is_left_of_a_column_may_be_too_small_for_doubles():
    e = 3.52e-162
    case = Case([[1.0, 1.0, 1.0], [0.0, e, 0.0], [0.0, 0.0, e]], [0.0, 1.0, 1.0], 3, "quadratic", 0.0)
    data = written(case, [STRONG, CLOSE], {}, 0.15, 1.0, points=[{0: 1.0}]).data()
    assert standalone.check(data, case.A, case.y, 3, "quadratic", 0.0, 1.0) != ""


@pytest.mark.parametrize("k", [1, 2])
def test_gains_may_be_too_large_for_doubles(k):
    case = Case([[1.0, 1.0], [0.0, 3.0]], [1.0, 2.0**-520], k, "quadratic", 0.0)
    data = written(case, [STRONG, CLOSE], {}, 0.5, 1.0, points=[{}]).data()
    assert standalone.check(data, case.A, case.y, k, "quadratic", 0.0, 1.0) != ""


def test_a_tree_of_many_regions_keeps_one_table():
    d, rng = 300, np.random.default_rng(2)
    A, y = rng.normal(size=(5, d)), rng.normal(size=5)
    tree = [STRONG, *(word for j in range(60) for word in (8 * j + 1, CLOSE)), CLOSE]
    case = Case(A.tolist(), y.tolist(), d, "quadratic", 1.0)
    data, instance = written(case, tree, {}, 1e-3, 1e3, points=[{}]).data(), instance_of(Problem(A, y, d, lam=1.0))
    tracemalloc.start()
    assert not check(data, instance).verified
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 60 * d * d * 8 / 4


def test_a_count_of_patterns_that_the_first_set_refutes_lists_no_more():
    n, d, k, rng = 16, 60, 4, np.random.default_rng(3)
    A, y = (rng.random((n, d)) < 0.5).astype(float), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    case = Case(A.tolist(), y.tolist(), k, "logistic", 1.0)
    data = written(case, [COUNTED], {}, n * 0.69, n * math.log(2.0) * 1.001).data()
    problem = Problem(A, y, k, loss="logistic", lam=1.0)
    check(data, instance_of(problem))  # the first count of a process imports the compiler, which takes more
    tracemalloc.start()
    assert not check(data, instance_of(problem)).verified
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 3e7  # all sets would be some hundred bytes each, half a million of them


def test_limits_on_groups_leave_no_region_that_is_not_a_part(tmp_path):
    """Where limits take other columns out, what is left open would be another region."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 400))
    y = A[:, 0] - 1.3 * A[:, 9] + 0.3 * rng.normal(size=100)
    problem = boxed(Problem(A, y, 1, lam=1.0).limited([j // 2 for j in range(400)], 1), positive=True)
    result = solve(problem, proof=tmp_path / "p.exsel", signals=())
    assert result.reached
    assert verify(problem, tmp_path / "p.exsel").verified


def alike(d, rho, n=40):
    """Columns each of which is like the one before, and a target."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(n, d))
    for j in range(1, d):
        A[:, j] = rho * A[:, j - 1] + math.sqrt(1.0 - rho**2) * A[:, j]
    return A, A[:, 1] - A[:, 3] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("tau", [0.3, 0.1, 0.9, 1.0, 1.5, 1e-9, 0.0, -0.3, 1e300])
@pytest.mark.parametrize("rho", [0.0, 0.6, 0.999999])
def test_no_threshold_proves_more_than_there_is(tau, rho):
    A, y = alike(6, rho)
    best = Problem(A, y, 3).fit((1, 3)).value
    case = Case(A.tolist(), y.tolist(), 3, "quadratic", 0.0)
    least = min(Problem(A, y, 3).fit(chosen).value for chosen in combinations(range(6), 3))
    for points in ([{0: tau}], [{}], [{0: -1.0, 2: tau}]):
        verified, said, instance = verdicts(case, least * 1.0001, best * 1.001, [LIKE, CLOSE], points)
        assert not verified
        assert said != ""
        strong = [*points[0]]
        assert strong_bound(instance, [], list(range(6)), strong, max([*points[0].values(), 1e-12])) <= least * 1.0001


def test_a_word_that_names_no_point_proves_nothing():
    A, y = alike(6, 0.5)
    case = Case(A.tolist(), y.tolist(), 2, "quadratic", 0.0)
    for word in (LIKE + 8, LIKE + 8 * FIRST_STRONG, 8 * (FIRST_LIKE - 1) + 7):
        verified, said, _ = verdicts(case, 1e-6, 1e3, [word, CLOSE], [{0: 0.5}])
        assert not verified
        assert said != ""


def test_columns_that_all_touch_are_not_listed_for_ever():
    d, rng = 400, np.random.default_rng(2)
    A = rng.normal(size=(600, d)) + 3.0 * rng.normal(size=(600, 1))
    y = rng.normal(size=600)
    case = Case(A.tolist(), y.tolist(), 12, "quadratic", 0.0)
    data = written(case, [LIKE, CLOSE], {}, 1e-3, 1e3, points=[{0: 0.05}]).data()
    tracemalloc.start()
    assert not check(data, instance_of(Problem(A, y, 12))).verified
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1e9


def test_columns_that_are_copies_prove_nothing():
    A, y = alike(4, 0.3)
    A = np.column_stack([A, A[:, 0], -A[:, 1]])
    case = Case(A.tolist(), y.tolist(), 2, "quadratic", 0.0)
    best = min(Problem(A, y, 2).fit(chosen).value for chosen in combinations(range(6), 2))
    verified, said, _ = verdicts(case, best * 1.01, best * 2.0, [LIKE, CLOSE], [{2: 0.4}])
    assert not verified
    assert said != ""
