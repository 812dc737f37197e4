"""Listings of the problem without its restrictions: signs, bounds of coefficients, hierarchies, limits on groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from samples import many

from exactsel import Problem, Settings, boxed, solve
from exactsel.bounds.base import BoundOptions
from exactsel.solving.choose import methods_for
from exactsel.walks.listing import Lister

D, K = 8, 3
BINDING = ("one of each pair", "tight")
"""Restrictions that the best free model does not keep to, so that lists are given up."""

RESTRICTIONS = {
    "limits nobody meets": lambda problem: boxed(problem, bounds=[(j, -1e6, 1e6) for j in range(D)]),
    "signs": lambda problem: boxed(problem, positive=True),
    "tight": lambda problem: boxed(problem, bounds=[(j, -0.3, 0.3) for j in range(D)]),
    "one of each pair": lambda problem: problem.limited([j // 2 for j in range(D)], 1),
    "one of pairs nobody wants both of": lambda problem: problem.limited([j % 4 for j in range(D)], 1),
    "parents": lambda problem: Problem(
        problem.A, problem.y, problem.k, loss=problem.loss, lam=problem.lam, hierarchy={0: [1], 3: [1, 2]}
    ),
    "parents, signs": lambda problem: boxed(RESTRICTIONS["parents"](problem), positive=[0, 1, 2]),
}


def restricted(seed, kind):
    """A problem whose columns 0, 1 and 2 matter, some with the other sign, so that restrictions bind or do not."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, D))
    z = A[:, :3] @ np.array([1.0, 0.8, rng.choice([0.6, -0.6])]) + rng.choice([0.1, 1.0]) * rng.standard_normal(60)
    loss = ("huber", "logistic")[seed % 2]
    y = z if loss == "huber" else np.where(z + rng.logistic(0.0, 0.3, 60) > 0, 1.0, -1.0)
    return RESTRICTIONS[kind](Problem(A, y, K, loss=loss, lam=float(rng.choice([0.05, 0.5]))))


def listed(problem, shown):
    """What a lister brings of the whole problem, where the best model is known."""
    best = least_of(problem)
    methods = methods_for(problem, Settings())
    options = BoundOptions()
    bound = methods.bound.prepare(problem, options)
    lister = methods.lister(problem, bound, best.coef, options, shown)
    assert isinstance(lister, Lister)
    return best, lister.explore(problem.root_state, best.value)


def least_of(problem):
    """The best admissible model, set by set."""
    sets = (problem.units.completed(chosen, K) for size in range(K + 1) for chosen in combinations(range(D), size))
    return min((problem.fit(chosen) for chosen in {*sets} - {None}), key=lambda fit: fit.value)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", RESTRICTIONS)
def test_no_admissible_model_is_below_what_is_listed(kind):
    closed = 0
    for seed in range(many(6, 60)):
        problem = restricted(seed, kind)
        for shown in (False, True):
            best, found = listed(problem, shown)
            if found is None:
                continue
            closed += 1
            assert found.bound <= best.value * (1.0 + 1e-12)
            assert found.bound >= best.value * (1.0 - 1e-8)
            assert found.fit is None or found.fit.value >= best.value * (1.0 - 1e-9)
    assert closed > 0 or kind in BINDING


@pytest.mark.parametrize("kind", RESTRICTIONS)
def test_solves_end_at_the_best_admissible_model(kind):
    """With the proof that every search in the tests must come to."""
    listings = 0
    for seed in range(many(4, 40)):
        problem = restricted(seed, kind)
        result = solve(problem, signals=())
        listings += result.nodes == 1 and result.bound_calls <= 1
        best = least_of(problem)
        assert result.reached
        assert result.upper == pytest.approx(best.value, rel=1e-6)
        assert result.lower <= best.value * (1.0 + 1e-12)
    assert listings > 0 or kind in (*BINDING, "signs", "parents, signs")
