"""Proofs about signs and bounds with all curvature, without a ridge, and under constraints: true, and accepted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from boxed_cases import allowed_sets, curved_case, enumerated_fit
from boxed_files import claiming, random_proof
from corrupted import check
from recorded import second_opinion
from samples import sample

from exactsel import Problem, boxed
from exactsel.proofs.instance import instance_of
from exactsel_certificates.container import CLOSE, FIRST_POINT, USE
from exactsel_certificates.exact import ExactBounds
from exactsel_certificates.rigorous import RigorousBounds

WHOLE = 1e-9
"""Times what the empty model costs: how well the smallest objective is known."""


def test_a_column_leaves_nothing_to_others_that_have_limits():
    """Two columns as good as equal, each with a coefficient of at most 1: one cannot do the work of both."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal(40)
    A = np.column_stack([a, a + 1e-15 * rng.standard_normal(40), rng.standard_normal(40)])
    y = 2.0 * a + 0.01 * rng.standard_normal(40)
    problem = boxed(Problem(A, y, 2, lam=1e-6), (), [(0, 0.0, 1.0), (1, 0.0, 1.0)])
    instance = replace(instance_of(problem), lam=0.0)
    best = min(enumerated_fit(problem, chosen) for chosen in allowed_sets(problem))
    assert best < 0.01
    blank = random_proof(rng, problem, instance)
    for point in ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0]):
        for curvature in ([], [1e-3, 1e-16, 1e-3]):
            for tree in ([USE + 8 * FIRST_POINT, CLOSE], [USE + 8, CLOSE]):
                proof = replace(
                    blank, curvature=np.array(curvature), point_value=np.array(point), scope="bounded models",
                    point_index=np.arange(3, dtype=np.int32), point_size=np.array([3], np.int32),
                    dual_value=np.zeros(0), tree=np.array(tree, np.int32), lower=2.0 * best + 1e-6, upper=1e300,
                )  # fmt: skip
                assert not check(claiming(proof), instance).verified
                assert second_opinion(instance, claiming(proof)) != ""


@pytest.mark.parametrize("seed", sample(16, 2000))
def test_bounds_in_doubles_are_below_the_exact_ones_without_a_ridge(seed):
    problem, rng = curved_case(seed, lams=(0.0,)), np.random.default_rng([seed, 79])
    if problem is None:
        return
    instance = instance_of(problem)
    plain, exact = RigorousBounds(instance), ExactBounds(instance)
    D = np.linalg.eigvalsh(instance.A.T @ instance.A)[0] * (0.1 + 0.8 * rng.random(problem.d))
    if not np.all(D > 0.0):
        return
    state = rng.integers(0, 3, problem.d).astype(np.uint8)
    state[np.flatnonzero(state == 2)[problem.k :]] = 1
    S, C = np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist()
    for x in (np.zeros(problem.d), rng.standard_normal(problem.d), problem.fit(range(problem.d)).coef):
        bound = plain.bounds(plain.at_models(x[None], D), np.zeros(1, dtype=int), state[None])[0]
        assert bound <= exact.at_model(S, C, [Fraction(v) for v in x.tolist()], D)
