"""The bound of a convex region worked out from the rows: at any model, it is below every model of the region."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from exactsel import Problem, boxed
from exactsel.bounds import rows_in_box
from exactsel.bounds.rows_in_box import bound_from_rows, polished


def drawn(rng):
    """A problem within finite limits, its columns of different lengths, some of them copies, constant or zero."""
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-5, 6, d) * rng.choice([0.0, 1.0, 1.0, 1.0], d)
    if d > 1 and rng.random() < 0.4:
        A[:, 0] = A[:, 1] * rng.choice([-1.0, 1.0])
    if rng.random() < 0.2:
        A[:, -1] = 1.0
    y = np.round(rng.standard_normal(n), 2) * 10.0 ** rng.integers(-3, 4)
    lam = float(rng.choice([0.0, 1e-8, 1e-2, 1.0]))
    largest = 10.0 ** rng.integers(-2, 4, d)
    bounds = [(j, 0.0 if rng.random() < 0.5 else -float(m), float(m)) for j, m in enumerate(largest)]
    rows = [({j: float(rng.integers(1, 4)) for j in range(d)}, 0.0)] if rng.random() < 0.5 else []
    return boxed(Problem(A, y, d, lam=lam), bounds=bounds, equalities=rows)


def objective(base, coef):
    """P on the rows that are searched, exactly."""
    x = [Fraction(v) for v in coef.tolist()]
    used = [j for j, v in enumerate(x) if v]
    rows = zip(base.AT.T.tolist(), base.y.tolist(), strict=True)
    squares = sum((sum((Fraction(row[j]) * x[j] for j in used), -Fraction(t)) ** 2 for row, t in rows), Fraction(0))
    return (squares + Fraction(base.lam) * sum(v * v for v in x)) / 2


def models(rng, problem, columns):
    """Models of the region, the best one as far as another solver finds it among them."""
    base, lower, upper = problem.objective, problem.coefficient_bounds.lower, problem.coefficient_bounds.upper
    matrix = np.vstack([base.AT[columns].T, np.sqrt(base.lam) * np.eye(columns.size)])
    target = np.concatenate([base.y, np.zeros(columns.size)])
    tight = lower[columns] == upper[columns]
    low, high = lower[columns] - 1e-300 * tight, upper[columns] + 1e-300 * tight
    for values in (
        lsq_linear(matrix, target, (low, high), method="bvls").x,
        rng.uniform(lower[columns], upper[columns]), np.zeros(columns.size),
    ):  # fmt: skip
        coef = np.zeros(base.d)
        coef[columns] = np.clip(values, lower[columns], upper[columns])
        yield coef


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
@pytest.mark.parametrize("kind", [np.longdouble, np.float64])
def test_no_model_of_the_region_is_below_it(monkeypatch, part, kind):
    """Also where extended precision is that of doubles, as on some machines."""
    monkeypatch.setattr(rows_in_box, "LONG", kind)
    rng, near = np.random.default_rng(50 + part), 0
    for _ in range(300):
        problem = drawn(rng)
        base, bounds = problem.objective, problem.coefficient_bounds
        columns = np.flatnonzero(rng.random(base.d) < 0.8)
        region = [*models(rng, problem, columns)]
        truth = min(objective(base, coef) for coef in region)
        for curvature in (np.zeros(base.d), np.full(base.d, base.lam)):
            for coef in (*region, polished(bounds, region[0], columns), rng.standard_normal(base.d)):
                bound = bound_from_rows(bounds, coef, columns, curvature)
                assert not np.isfinite(bound) or Fraction(bound) <= truth
        near += bound_from_rows(bounds, polished(bounds, region[0], columns), columns, curvature) >= truth * (1 - 1e-6)
    assert near > (150 if kind is np.longdouble else 100), "the bound of a fit is worth something"
