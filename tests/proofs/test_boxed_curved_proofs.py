"""Proofs about signs and bounds with all curvature, without a ridge, and under constraints: true, and accepted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from boxed_cases import allowed_sets, constrained_case, curved_case, enumerated_fit, smallest_on
from boxed_files import claiming, random_proof, relations_of
from corrupted import check
from recorded import replayed, second_opinion
from samples import sample

from exactsel import Problem, boxed, solve, verify
from exactsel.proofs.instance import instance_of
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel_certificates.container import CLOSE, FIRST_POINT, USE, parse_proof
from exactsel_certificates.exact import ExactBounds
from exactsel_certificates.rigorous import RigorousBounds

WHOLE = 1e-9
"""Times what the empty model costs: how well the smallest objective is known."""


def case_of(seed):
    """A problem, and a little more than its smallest objective; None where there is no such problem."""
    problem = curved_case(seed) if seed % 3 else constrained_case(seed)
    if problem is None:
        return None
    fit = enumerated_fit if seed % 3 else smallest_on
    best = min(fit(problem, chosen) for chosen in allowed_sets(problem))
    return problem, best + WHOLE * problem.null_objective


@pytest.mark.parametrize("seed", sample(36, 4000, smoke=6))
def test_what_a_search_says_is_accepted_by_both_and_no_more(seed, tmp_path):
    case = case_of(seed)
    if case is None:
        return
    problem, above = case
    result = solve(problem, proof=tmp_path / "run.exsel", audit=True, signals=())
    data, instance = (tmp_path / "run.exsel").read_bytes(), instance_of(problem)
    assert result.lower <= above
    verdict = verify(problem, tmp_path / "run.exsel")
    assert verdict.verified, str(verdict)
    assert result.lower <= verdict.lower <= above
    assert second_opinion(instance, data, **relations_of(instance)) == ""
    too_much = claiming(parse_proof(data), lower=above, upper=1e300)
    assert not check(too_much, instance).verified
    assert second_opinion(instance, too_much, **relations_of(instance)) != ""
    search = Search(problem, Settings(heuristics=()))
    events = [*search]
    replayed(problem, search.result(), events, search.state)


@pytest.mark.parametrize("seed", sample(48, 20_000, smoke=8))
def test_nothing_untrue_is_established_by_any_proof(seed):
    """Whatever the tree, the points and the curvature, and also where the claim is about bounded models."""
    problem, rng = curved_case(seed), np.random.default_rng([seed, 73])
    if problem is None or problem.null_objective == 0.0:
        return
    best = min(enumerated_fit(problem, chosen) for chosen in allowed_sets(problem))
    above = best + WHOLE * problem.null_objective
    instance = instance_of(problem)
    proof = replace(random_proof(rng, problem, instance), scope="bounded models" if rng.random() < 0.5 else "")
    verdict = check(claiming(proof, lower=above), instance)
    assert not verdict.verified
    assert verdict.lower <= above
    assert second_opinion(instance, claiming(proof, lower=above)) != ""
    assert check(claiming(proof, lower=verdict.lower), instance).verified


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
