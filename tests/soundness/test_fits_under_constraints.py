"""The fit on the columns in play bounds regions of groups and of boxes, too; and when nodes begin there."""

from __future__ import annotations

import numpy as np
import pytest
from boxed_cases import other_case, smooth_fit_of
from grouped_cases import random_grouped
from regions import supports_of
from samples import kernels_of_its_own, many, whole

from exactsel import Problem, boxed, solve, verify
from exactsel.bounds import apg
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.boxed import BoxedBound
from exactsel.bounds.grouped import GroupedBound
from exactsel.kernels.columns import RawData
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.losses.adjusted import is_adjusted
from exactsel.proofs.instance import instance_of
from exactsel_dev.reference.bounds import bound_at_model

OTHERS = ("huber", "logistic", "poisson", "squared_hinge")


@pytest.fixture
def fitting(monkeypatch):
    """Every node of groups with rows begins at its fit, whatever the decision would be."""
    monkeypatch.setattr(apg, "may_lead", lambda problem, data: isinstance(data, RawData))
    monkeypatch.setattr(apg, "leading_fit", lambda problem, perspective, stop: np.zeros(problem.units.columns))


def best_of(case, state):
    """The smallest objective in a region of groups."""
    included, out = (tuple(np.flatnonzero(state == what).tolist()) for what in (IN, OUT))
    part = type(case)(case.case, case.labels, case.k, included, out)
    return float(part.values(part.supports())[0].min())


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_bounds_of_groups_hold(loss, fitting):
    rng, begun = np.random.default_rng(6), 0
    for seed in range(860_000, 860_000 + many(60, 400)):
        case = random_grouped(seed, loss=loss, lam=float(10.0 ** rng.uniform(-5, 1)))
        problem = case.problem()
        if not problem.units.grouped:
            continue
        state = rng.choice(np.array([OUT, FREE, FREE, IN], dtype=np.int8), problem.d)
        included, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        if included.size > problem.k or not (included.size + free.size):
            continue
        truth = best_of(case, state)
        slack = 1e-9 * (1.0 + abs(truth))
        found = GroupedBound().prepare(problem, BoundOptions()).tighten(state[None], [None], np.inf, truth)
        bound = float(found.answers.bound[0])
        assert bound <= truth + slack, seed
        point = found.proofs[0].dense(problem.units.columns)
        shown = bound_at_model(instance_of(problem), included.tolist(), free.tolist(), point)
        assert bound <= shown + slack, seed
        begun += found.answers.iterations[0] > 0
        for g in free:
            for values, decision in ((found.answers.bound_in, IN), (found.answers.bound_out, OUT)):
                child = state.copy()
                child[g] = decision
                if np.sum(child == IN) <= problem.k:
                    assert values[0, g] <= best_of(case, child) + slack, seed
    assert begun > 5


@pytest.mark.parametrize("leads", [False, True])
def test_bounds_within_limits_hold(leads):
    rng = np.random.default_rng(7)
    for seed in range(many(60, 600)):
        problem = other_case(seed)
        if not whole() and problem.loss.name == "squared_hinge" and is_adjusted(type(problem.objective.row_loss)):
            continue
        state = rng.choice([OUT, FREE, FREE, IN], problem.d).astype(np.int8)
        sets = supports_of(state, problem.k)
        if not sets:
            continue
        best = min(smooth_fit_of(problem, chosen) for chosen in sets)
        bound = BoxedBound().prepare(problem, BoundOptions())
        bound._fit_leads = leads
        found = bound.tighten(state[None], [None], np.inf, np.inf)
        assert found.answers.bound[0] <= best + 1e-9 * max(1.0, problem.null_objective), seed


def counted(seed, loss, n=400, d=9):
    """Raw columns of other sizes and hardly any ridge: a gradient method does not come near the relaxation."""
    rng = np.random.default_rng(seed)
    A = (rng.standard_normal((n, d)) + 0.8 * rng.standard_normal((n, 1))) * 10.0 ** rng.uniform(-1, 2, d)
    z = (A / A.std(axis=0)) @ (rng.uniform(0.1, 0.5, d) * (rng.random(d) < 0.7))
    if loss == "poisson":
        return A, rng.poisson(np.exp(z - z.mean())).astype(float)
    if loss == "huber":
        return A, z + rng.standard_normal(n)
    return A, np.where(z - z.mean() + 2.0 * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", [*OTHERS[:-1], kernels_of_its_own(OTHERS[-1])])
def test_groups_and_signs_are_as_quick_as_plain_columns(loss, tmp_path):
    A, y = counted(3, loss)
    plain = Problem.prepared(A, y, 4, loss=loss, lam=1e-6, intercept=True)
    pairs = Problem.prepared(A, y, 4, loss=loss, lam=1e-6, intercept=True, groups=["g", "g", *[None] * 7])
    nonnegative = boxed(plain, nonnegative="all")
    best = solve(plain)
    assert best.reached
    for problem in (pairs, nonnegative):
        result = solve(problem, proof=tmp_path / "run.exsel", node_limit=130)
        assert result.reached, problem
        assert result.upper >= best.upper * (1.0 - 1e-6) or problem is pairs
        assert verify(problem, tmp_path / "run.exsel").verified
    assert "begun at the Newton fit" in solve(pairs).settings["method"]
