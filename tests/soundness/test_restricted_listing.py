"""Listings of the problem without its restrictions: signs, bounds of coefficients, hierarchies, limits on groups."""

from __future__ import annotations

import numpy as np
import pytest
from restricted_problems import RESTRICTIONS, D, K, least_of
from samples import many

from exactsel import Problem, Settings, solve
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration.below_minorant import MinorantEnumerator
from exactsel.solving.choose import methods_for

BINDING = ("one of each pair", "tight")
"""Restrictions that the best free model does not keep to, so that lists are given up."""


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
    enumerator = methods.enumerator(problem, bound, best.coef, options, shown)
    assert isinstance(enumerator, MinorantEnumerator)
    return best, enumerator.explore(problem.root_state, best.value)


@pytest.mark.smoke
@pytest.mark.parametrize("kind", RESTRICTIONS)
def test_no_admissible_model_is_below_what_is_listed(kind):
    closed = 0
    for seed in range(many(4, 60)):
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
