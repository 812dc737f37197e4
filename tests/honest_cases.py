"""Random problems of every kind a proof can speak of, for campaigns: an honest proof must never be rejected.

Equal seeds give equal problems. Optima are not computed here, so that thousands of seeds stay cheap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from checked_solve import random_options
from free_rows import free_case
from grouped_cases import random_grouped
from instances_for_tests import random_case

from exactsel import ColumnSubsetProblem, Problem

KINDS = (
    "plain", "grouped", "columns", "near columns", "rows", "wide rows", "huber", "thin ridge", "near without ridge",
    "prepared",
)  # fmt: skip


def honest_case(kind, seed):
    """A problem of this kind, and options for its solve."""
    return _MADE[kind](seed)


def _plain(seed):
    case = random_case(seed)
    return case.problem(), random_options(seed, case)


def _grouped(seed):
    case = random_grouped(seed)
    return case.problem(), {"rel_eps": float(np.random.default_rng([1, seed]).choice([0.0, 1e-6]))}


def _columns(seed):
    case = random_case(seed, loss="quadratic", lam=1.0)
    return ColumnSubsetProblem(case.A, case.k), {"heuristics": ()} if seed % 2 else {}


def _near_columns(seed):
    """Columns that are combinations of others but for a little."""
    rng = np.random.default_rng([2, seed])
    n, d = int(rng.integers(3, 11)), int(rng.integers(3, 9))
    own = max(1, d - int(rng.integers(1, d)))
    A = rng.standard_normal((n, own)) * 10.0 ** rng.uniform(-2, 2, own)
    mixed = A @ rng.integers(-2, 3, (own, d - own))
    hair = 10.0 ** rng.uniform(-14, -3, d - own) * np.linalg.norm(mixed, axis=0)
    A = np.column_stack([A, mixed + hair * rng.standard_normal((n, d - own))])[:, rng.permutation(d)]
    return ColumnSubsetProblem(A, int(rng.integers(1, d + 1))), {"heuristics": ()} if seed % 2 else {}


def _rows(seed):
    return free_case(seed, ("huber", "logistic")[seed % 2]).problem(), {"rel_eps": 1e-9 if seed % 3 else 1e-6}


def _wide_rows(seed):
    """Weights many powers of ten apart, thresholds down to a thousandth, columns with offsets."""
    rng = np.random.default_rng([3, seed])
    case = free_case(seed, ("huber", "logistic")[int(rng.random() < 0.3)])
    n, d = case.A.shape
    weights = 10.0 ** rng.uniform(-6, 6, n)
    A = case.A + (rng.random(d) < 0.2) * 10.0 ** rng.uniform(0, 6)
    made = replace(case, A=A, weights=weights, delta=float(10.0 ** rng.uniform(-3.5, 0)), intercept=rng.random() < 0.5)
    return made.problem(lam=float(10.0 ** rng.uniform(-6, 1))), {}


def _huber(seed):
    """Columns many powers of ten apart and hardly any ridge."""
    rng = np.random.default_rng([4, seed])
    case = random_case(seed, loss="huber", lam=float(10.0 ** rng.uniform(-7, -3)))
    return case.problem(), random_options(seed, case)


def _thin_ridge(seed):
    """Hardly any ridge, more columns than rows, nearly all of them wanted."""
    rng = np.random.default_rng([5, seed])
    n, d = int(rng.integers(2, 8)), int(rng.integers(4, 9))
    case = random_case(seed, loss="quadratic", lam=float(10.0 ** rng.uniform(-7, -4)), n=n, d=d)
    case = replace(case, k=int(rng.integers(max(1, d - 3), d + 1)))
    return case.problem(), random_options(seed, case)


def _near_without_ridge(seed):
    rng = np.random.default_rng([6, seed])
    n, d = int(rng.integers(4, 12)), int(rng.integers(2, 7))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-3, 3, d)
    i, j = (int(v) for v in rng.permutation(d)[:2])
    hair = 10.0 ** rng.uniform(-14, -4)
    A[:, j] = A[:, i] * rng.choice([1.0, -2.0, 3.0]) + hair * np.linalg.norm(A[:, i]) * rng.standard_normal(n)
    y = A @ rng.standard_normal(d) * rng.integers(0, 2) + rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4)
    return Problem(A, y, int(rng.integers(1, d + 1)), lam=0.0), {}


def _prepared(seed):
    """Quadratic loss with an intercept, scaled columns or row weights."""
    rng = np.random.default_rng([7, seed])
    case = random_case(seed, loss="quadratic")
    weights = 10.0 ** rng.uniform(-3, 3, len(case.y)) if rng.random() < 0.5 else None
    about = {"intercept": bool(rng.random() < 0.7), "scale": bool(rng.random() < 0.5), "weights": weights}
    return Problem.prepared(case.A, case.y, case.k, lam=case.lam, **about), {}


_MADE = {
    "plain": _plain, "grouped": _grouped, "columns": _columns, "near columns": _near_columns, "rows": _rows,
    "wide rows": _wide_rows, "huber": _huber, "thin ridge": _thin_ridge, "near without ridge": _near_without_ridge,
    "prepared": _prepared,
}  # fmt: skip
