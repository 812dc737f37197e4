"""Walks that adopt none of the models they meet: every support below the threshold stays in a region left open."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_models import best_bounded, dependent_problem, nearly_independent
from exact_fits import awkward_problem, exact_fit
from grouped_cases import random_grouped
from regions import random_state, supports_of
from samples import many

from exactsel.algebra.curvature import balanced_curvature
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.enumeration.dependent import DependentEnumeration
from exactsel.enumeration.faster import FasterEnumeration
from exactsel.enumeration.rank_reduced import RankReducedEnumeration
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem import redundant_columns as spans_module
from exactsel.problem.redundant_columns import RedundantColumns

OPTIONS = BoundOptions(threads=1)


def curvature_of(problem):
    inner = problem.inner if problem.units.grouped else problem
    return balanced_curvature(inner.hessian, inner.n) if inner.d < inner.n else None


def columns(seed):
    problem = awkward_problem(seed, most=8)
    enumeration = ClosedFormEnumeration(problem, curvature_of(problem) if seed % 2 else None, OPTIONS)
    return (problem, enumeration) if problem.k else None


def bounded(seed):
    problem = dependent_problem(seed, most=7)
    return problem, ClosedFormEnumeration(problem, None, OPTIONS)


def groups(seed):
    problem = random_grouped(850_000 + seed, loss="quadratic").problem()
    curvature = curvature_of(problem)
    known = problem.k > 0 and (problem.lam > 0 or curvature is not None)
    return (problem, ClosedFormEnumeration(problem, curvature, OPTIONS)) if known else None


def reduced(seed):
    problem = nearly_independent(seed)
    spans = RedundantColumns.of(problem)
    known = spans is not None and spans.curvature is not None
    return (problem, RankReducedEnumeration(problem, spans, OPTIONS)) if known else None


def dependent(seed):
    problem = dependent_problem(seed, most=7)
    enumeration = DependentEnumeration.of(problem, OPTIONS)
    return None if enumeration is None else (problem, enumeration)


def either(seed):
    found = dependent(seed)
    return found and (found[0], FasterEnumeration(ClosedFormEnumeration(found[0], None, OPTIONS), found[1]))


def exact_value(problem, enumeration, support):
    if enumeration.valid_for:
        return best_bounded(problem, support)
    if problem.units.grouped:
        return exact_fit(problem.inner, problem.units.columns_of(support).tolist())
    return exact_fit(problem, support)


def held(walk, support, k):
    """Whether a region left open holds a support."""
    members = list(support)
    return any(
        np.all(piece[members] != OUT) and np.count_nonzero(piece == IN) + np.count_nonzero(piece[members] == FREE) <= k
        for piece in walk.open_states
    )


@pytest.mark.parametrize("of", [columns, bounded, groups, reduced, dependent, either])
def test_no_support_below_the_threshold_is_closed(of, monkeypatch):
    monkeypatch.setattr(spans_module, "MOST_TAKING_PART", 0.9)
    below = proposed = lost_by_adopting = closed = 0
    for seed in range(many(10, 24) if of is reduced else many(14, 64)):
        found = of(seed)
        if found is None:
            continue
        (problem, enumeration), rng = found, np.random.default_rng([61, seed])
        state = problem.root_state if rng.random() < 0.5 else random_state(rng, problem)
        values = {
            support: float(exact_value(problem, enumeration, support)) for support in supports_of(state, problem.k)
        }
        constant = 0.5 * float(problem.y @ problem.y)
        upper = float(np.quantile([*values.values()], rng.choice([0.02, 0.2, 0.6]))) * (1.0 + 1e-6)
        tolerance, rounding = 10.0 ** rng.choice([-9.0, -4.0, -2.0]) * upper, 1e-8 * constant
        if upper <= 10.0 * rounding:
            continue
        budget = int(rng.choice([3, 10_000]))
        walk = enumeration.explore(state[None], upper, tolerance, budget, adopts=False)[0]
        adopting = enumeration.explore(state[None], upper, tolerance, budget)[0]
        if walk is None:
            assert adopting is None
            continue
        for support, value in values.items():
            if value < upper - tolerance - rounding:
                below += 1
                assert held(walk, support, problem.k), (seed, support)
                lost_by_adopting += not held(adopting, support, problem.k)
            if not held(walk, support, problem.k):
                closed += 1
                assert walk.min_pruned_bound <= value + 1e-12 * constant, (seed, support)
        for piece, bound in zip(walk.open_states, walk.open_bounds, strict=True):
            included = [values[support] for support in supports_of(piece, problem.k) if support in values]
            assert bound <= min(included, default=np.inf) + 1e-12 * constant, seed
        if walk.support is not None:
            proposed += 1
            assert exact_value(problem, enumeration, walk.support) <= upper + rounding
    assert below > many(5, 30)
    assert lost_by_adopting > many(1, 8)
    assert closed > many(10, 60)
    assert proposed > many(1, 5)
