"""Bounds of fits on dependent columns, in doubles: never above the best bounded model, and hardly below."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_models import best_bounded, dependent_problem, supports
from hand_written import CLOSE, COUNTED, FIT, USE, written
from samples import many
from standalone_says import said
from tiny_problems import Case

from exactsel_certificates.checking import EXACT_LIMIT, verify
from exactsel_certificates.container import parse_proof
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.regions import RegressionRegions
from exactsel_certificates.scoped_fits import ScopedFits
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, Leaves


def stated(problem):
    return Case(problem.A.tolist(), problem.y.tolist(), problem.k, "quadratic", 0.0)


def scoped(problem, target):
    """The bounds of a problem's regions where so much is to be shown."""
    file = written(stated(problem), [COUNTED], {}, target, 1e300, valid_for="bounded models")
    instance = GivenInstance(problem.A, problem.y, problem.k, "quadratic", 0.0)
    return ScopedFits(RegressionRegions(instance.plain, parse_proof(file.data()), EXACT_LIMIT))


def region_of(rng, problem):
    """Some region with at least one model."""
    state = rng.choice([0, FREE, FREE, IN], problem.d).astype(np.uint8)
    included = np.flatnonzero(state == IN)
    state[included[problem.k :]] = FREE
    return state


def check_regions(seeds):
    """Every bound against all supports of its region; how many were looked at, and how many levels were shown."""
    shown = looked = 0
    for seed in seeds:
        rng, problem = np.random.default_rng([16, seed]), dependent_problem(seed)
        state = region_of(rng, problem)
        truth = float(min(best_bounded(problem, support) for support in supports(state, problem.k)))
        square = float(problem.y @ problem.y)
        for target in (truth * (1.0 + 1e-9) + 1e-12 * square, truth - 1e-4 * square):
            if target <= 0.0:
                continue
            fits = scoped(problem, target)
            leaves = Leaves(np.stack([state, state]), np.array([FIT, BY_COUNTING]))
            bounds = fits.bounds(leaves)
            assert np.all(bounds <= truth * (1.0 + 1e-13)), seed
            counted = target < truth
            shown, looked = shown + counted * int(bounds[1] >= target), looked + counted
    return looked, shown


def test_no_bound_is_above_the_best_bounded_model():
    looked, shown = check_regions(range(many(150, 600)))
    assert shown > 0.8 * looked > 0


@pytest.mark.slow
def test_no_bound_is_above_the_best_bounded_model_at_length():
    looked, shown = check_regions(range(1000, 5000))
    assert shown > 0.8 * looked > 0


@pytest.mark.parametrize("tree", [[COUNTED], [8 * FIT + USE, CLOSE]])
def test_forged_claims_about_dependent_columns_are_rejected_by_both(tree):
    """One column is the sum of two others, so that no elimination on all three runs to its end."""
    rng = np.random.default_rng(7)
    A = rng.integers(-4, 5, (9, 4)).astype(float)
    A[:, 3] = A[:, 0] + A[:, 1]
    y = rng.standard_normal(9)
    case = Case(A.tolist(), y.tolist(), 3, "quadratic", 0.0)
    file = written(case, tree, {}, 0.0, 1e300, valid_for="bounded models")
    truth = min(
        0.5 * float(np.sum((y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]) ** 2))
        for columns in ([A] if tree[0] != COUNTED else [np.delete(A, j, axis=1) for j in range(4)])
    )
    given = GivenInstance(A, y, 3, "quadratic", 0.0)
    for rel, holds in ((-1e-5, True), (1e-9, False)):
        claim = truth * (1.0 + rel)
        header = file.header | {"lower": claim.hex()}
        assert verify(parse_proof(file._replace(header=header).data()), given).verified == holds
        assert (said(case, file, lower=claim, upper=1e300) == "") == holds


def test_the_second_checker_finds_a_cost_of_zero():
    """An intercept at the common value of y: the search for it ended 5e-324 beside zero."""
    case = Case([[0.0], [0.5], [0.5], [1.0]], [999998.910592] * 4, 1, "huber", 1.0, 0.7, weights=[0.5] * 4, level=True)
    assert said(case, written(case, [CLOSE], {}, 0.0, 0.0), lower=0.0, upper=0.0) == ""
