"""A search leaves so much of a tolerance as rounding takes off its bounds when they are said of the data as given."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import Problem, Termination, solve
from exactsel.proofs.statement import statement_of

TOLERANCES = [10.0**-power for power in range(3, 10)]

WITHIN_EACH = (2, 12, 18, 22)
"""Seeds of which some tolerance was missed by a little: bounds were taken down from the cut-off by rounding."""

FAR_BELOW = 0.4
"""Part of a tolerance that rounding may take."""


def centred(seed, loss="quadratic"):
    """Columns with an offset, two of them nearly alike, so that little is known of how large coefficients are."""
    rng = np.random.default_rng(seed)
    n, d, k = (40, 12, 4) if loss == "quadratic" else (30, 5, 2)
    A = rng.standard_normal((n, d))
    A[:, 1] = A[:, 0] + 10.0 ** -rng.integers(3, 7) * A[:, 1]
    A = A + 10.0 ** rng.integers(0, 5) * rng.standard_normal(d)
    z = (A - A.mean(axis=0))[:, 2:7] @ rng.standard_normal(min(5, d - 2))
    noise = 10.0 ** -rng.integers(0, 3) * rng.standard_normal(n)
    if loss == "poisson":
        y = rng.poisson(np.exp(0.3 * z)).astype(float)
    else:
        y = z + noise if loss in ("quadratic", "huber") else np.where(z + noise > 0, 1.0, -1.0)
    return Problem.prepared(A, y, k, loss=loss, lam=0.0 if loss == "quadratic" else 1e-3, intercept=True)


def missed(problem, tolerances):
    """The tolerances at which a search gave up, and how many there were of which rounding takes little."""
    statement, wrong, tried = statement_of(problem), [], 0
    for rel_eps in tolerances:
        result = solve(problem, rel_eps=rel_eps)
        taken = statement.needed(result.upper, "") - result.upper
        if taken > FAR_BELOW * result.tolerance.absolute(result.upper):
            continue
        tried += 1
        if result.termination is Termination.PRECISION_LIMIT or not result.claim.reached:
            wrong.append((rel_eps, result.gap))
    return wrong, tried


@pytest.mark.parametrize("seed", WITHIN_EACH)
def test_a_tolerance_that_rounding_leaves_room_for_is_reached(seed):
    wrong, tried = missed(centred(seed), TOLERANCES)
    assert not wrong
    assert tried >= 5


@pytest.mark.parametrize("loss", ["huber", "logistic", "squared_hinge", "poisson"])
def test_so_it_is_with_other_losses(loss):
    for seed in (0, 1):
        wrong, tried = missed(centred(seed, loss), TOLERANCES[::3])
        assert not wrong
        assert tried == 3


@pytest.mark.long
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "squared_hinge", "poisson"])
def test_many_problems(loss):
    told = [missed(centred(seed, loss), TOLERANCES) for seed in range(200 if loss == "quadratic" else 40)]
    assert not [wrong for wrong, _ in told if wrong]
    assert sum(tried for _, tried in told) > 200
