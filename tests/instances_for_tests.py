"""Small random problems of every awkward kind, and their optima by trying every support.

Nothing here uses exactsel: the refits are written once more, on numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import exactly
import numpy as np

LOSSES = ("quadratic", "huber", "logistic")

NEAR = 1e-9
"""Times 1 + |optimum|: supports whose objective in doubles is this close to the best are looked at exactly ..."""

MOST_NEAR = 6
"""... where they are no more than this."""

REFERENCE = 1e-12
"""Times 1 + |optimum|: how far the reference's own coefficients may be from the best ones."""


@dataclass(frozen=True)
class Case:
    """A problem as plain data; ``kind`` says what is awkward about it."""

    A: np.ndarray
    y: np.ndarray
    k: int
    loss: str
    lam: float
    delta: float | None
    kind: str

    def problem(self):
        import exactsel

        return exactsel.Problem(self.A, self.y, self.k, loss=self.loss, lam=self.lam, delta=self.delta)

    def objective(self, x):
        return float(_values(self, self.A @ x) + 0.5 * self.lam * (x @ x))


@dataclass(frozen=True)
class Optimum:
    """The optimum lies in [low, high]; ``high`` is attained on ``support``, both but for rounding."""

    low: float
    high: float
    support: tuple[int, ...]
    ceiling: float = np.inf
    """What a model costs, computed exactly: no lower bound may be above."""
    floor: float = -np.inf
    """What no model costs less than, but for rounding of the reference's coefficients."""


def random_case(seed, *, loss=None, lam=None, n=None, d=None):
    """A random problem; equal seeds give equal problems."""
    rng = np.random.default_rng([20, seed])
    loss = loss or str(rng.choice(LOSSES))
    d = d or int(rng.integers(1, 9))
    n = n or int(rng.integers(2, 13))
    A, kind = _matrix(rng, n, d)
    y, target = _target(rng, A, loss)
    k = int(rng.choice([0, 1, d, rng.integers(1, d + 1)], p=[0.03, 0.12, 0.1, 0.75]))
    if lam is None:
        lam = float(10.0 ** rng.uniform(-6, 2)) if rng.random() < 0.8 else float(rng.choice([1e-6, 1e-3, 1.0, 1e2]))
        if loss == "quadratic" and rng.random() < 0.2:
            lam = 0.0
    delta = float(10.0 ** rng.uniform(-2, 1.5)) if loss == "huber" else None
    return Case(A, y, k, loss, lam, delta, f"{kind} {target}")


def _matrix(rng, n, d):
    kind = str(
        rng.choice(
            ["gaussian", "integer", "binary", "duplicates", "zero", "constant", "scaled", "extreme", "correlated"]
        )
    )
    A = rng.standard_normal((n, d))
    if kind == "integer":
        A = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "binary":
        A = rng.integers(0, 2, (n, d)).astype(float)
    elif kind == "duplicates":
        A = rng.integers(-3, 4, (n, d)).astype(float) if rng.random() < 0.5 else A
        for j in range(1, d):
            if rng.random() < 0.5:
                A[:, j] = rng.choice([1.0, -1.0, 2.0]) * A[:, rng.integers(0, j)]
    elif kind == "zero":
        A[:, rng.random(d) < 0.4] = 0.0
    elif kind == "constant":
        A[:, rng.random(d) < 0.5] = rng.choice([1.0, -3.0, 0.1])
    elif kind == "scaled":
        A = A * 10.0 ** rng.uniform(-3, 3, d)
    elif kind == "extreme":
        A = A * rng.choice([1.0, 1e6, 1e-6], d, p=[0.7, 0.2, 0.1])
    elif kind == "correlated":
        A = rng.standard_normal((n, 1)) + float(rng.choice([0.3, 1e-2, 1e-4])) * A
    return A, kind


def _target(rng, A, loss):
    n, d = A.shape
    x = rng.standard_normal(d) * (rng.random(d) < 0.6)
    size = np.linalg.norm(A, axis=0)
    signal = A @ (x / np.where(size > 0, size, 1.0)) * np.sqrt(n)
    if loss == "logistic":
        kind = str(rng.choice(["signal", "separable", "one class", "noise"], p=[0.5, 0.2, 0.1, 0.2]))
        score = {
            "signal": signal + 0.5 * rng.standard_normal(n),
            "separable": A[:, rng.integers(d)] - np.median(A[:, 0]),
            "one class": np.ones(n),
            "noise": rng.standard_normal(n),
        }[kind]
        return np.where(score >= 0, 1.0, -1.0), kind
    kind = str(rng.choice(["signal", "exact", "integer", "noise", "outliers", "nothing", "far"],
                          p=[0.35, 0.1, 0.15, 0.15, 0.15, 0.03, 0.07]))  # fmt: skip
    if kind == "signal":
        y = signal + 0.3 * rng.standard_normal(n)
    elif kind == "exact":
        y = signal
    elif kind == "integer":
        y = rng.integers(-3, 4, n).astype(float)
    elif kind == "noise":
        y = rng.standard_normal(n)
    elif kind == "outliers":
        y = signal + np.where(rng.random(n) < 0.3, rng.choice([-1e3, 1e2, 1e3], n), 0.0)
    elif kind == "nothing":
        y = np.zeros(n)
    else:
        y = signal + 1e4
    return y, kind


def supports_of(d, k):
    """Every set of min(k, d) columns (smaller sets are in these)."""
    return list(combinations(range(d), min(k, d)))


def optimum_of(case):
    """Try every support."""
    supports = supports_of(case.A.shape[1], case.k)
    if case.k == 0:
        value = case.objective(np.zeros(case.A.shape[1]))
        return Optimum(value, value, (), *enclosed(case, np.zeros(1), np.zeros(1), [{}]))
    values, errors, models = best_models(case, np.array(supports))
    best = int(np.argmin(values))
    sides = enclosed(case, values, errors, models)
    return Optimum(float(np.min(values - errors)), float(values[best]), supports[best], *sides)


def enclosed(case, values, errors, models):
    """Ceiling and floor of the optimum, where these are the best models on each support, columns and coefficients."""
    best = int(np.argmin(values))
    room = 1.0 + abs(values[best])
    near = np.flatnonzero(values - errors <= values[best] + NEAR * room)
    slack = REFERENCE if near.size <= MOST_NEAR else NEAR
    told = exactly.stated(case.A, case.y, case.k, case.loss, case.lam, case.delta)
    exact = {}
    for number in near if near.size <= MOST_NEAR else [best]:
        coef = np.zeros(case.A.shape[1])
        coef[[*models[number]]] = [*models[number].values()]
        exact[number] = exactly.objective(told, coef)
    low = min(float(value) - errors[number] for number, value in exact.items())
    return exactly.above(min(exact.values())), low - slack * room


def best_values(case, supports):
    """Minimal objective on each support (a row of ``supports``), and by how much it may be too large."""
    return best_models(case, supports)[:2]


def best_models(case, supports):
    """The same, and the models: coefficients by column."""
    AS = np.moveaxis(case.A[:, supports], 1, 0)
    x = _least_squares(case, AS) if case.loss == "quadratic" else _newton(case, AS)
    values = _batch_objective(case, AS, x)
    models = [dict(zip(columns.tolist(), coef, strict=True)) for columns, coef in zip(supports, x, strict=True)]
    if case.lam == 0:
        return values, np.zeros(len(supports)), models
    gradient = _batch_gradient(case, AS, x)
    return values, np.sum(gradient**2, axis=1) / (2 * case.lam), models


def _least_squares(case, AS):
    """One least-squares problem per support, the ridge as extra rows, refined once."""
    solutions = []
    for A in AS:
        m = A.shape[1]
        matrix = np.vstack([A, np.sqrt(case.lam) * np.eye(m)]) if case.lam > 0 else A
        target = np.concatenate([case.y, np.zeros(len(matrix) - len(case.y))])
        scale = np.linalg.norm(matrix, axis=0)
        scale[scale == 0] = 1.0
        x = np.zeros(m)
        for _ in range(2):
            x = x + np.linalg.lstsq(matrix / scale, target - matrix @ x, rcond=1e-13)[0] / scale
        solutions.append(x)
    return np.array(solutions)


def _newton(case, AS):
    """Damped Newton on all supports at once; where a step fails, the majorising quadratic's, which cannot."""
    x = np.zeros((len(AS), AS.shape[2]))
    values = _batch_objective(case, AS, x)
    for _ in range(300):
        gradient = _batch_gradient(case, AS, x)
        if np.all(np.sum(gradient**2, axis=1) <= 2 * case.lam * 1e-13 * (1e-3 + np.abs(values))):
            break
        z = np.einsum("bnm,bm->bn", AS, x)
        before = values
        for majorise in (False, True):
            step = _solve(AS, _weights(case, z, majorise), case.lam, gradient)
            for length in 0.5 ** np.arange(25 if not majorise else 3):
                trial = x - length * step
                new = _batch_objective(case, AS, trial)
                better = new < values
                x = np.where(better[:, None], trial, x)
                values = np.where(better, new, values)
                if np.all(values < before):
                    break
        if np.all(values == before):
            # Differences of objectives have drowned in rounding: the last step is judged by its gradient.
            trial = x - _solve(AS, _weights(case, z, False), case.lam, gradient)
            smaller = np.sum(_batch_gradient(case, AS, trial) ** 2, axis=1) < 0.5 * np.sum(gradient**2, axis=1)
            if not np.any(smaller):
                break
            x = np.where(smaller[:, None], trial, x)
            values = _batch_objective(case, AS, x)
    return x


def _solve(AS, weights, lam, gradient):
    H = np.einsum("bnm,bn,bnl->bml", AS, weights, AS) + lam * np.eye(AS.shape[2])
    scale = np.sqrt(np.einsum("bmm->bm", H))
    scaled = H / (scale[:, :, None] * scale[:, None, :]) + 1e-14 * np.eye(AS.shape[2])
    return np.linalg.solve(scaled, (gradient / scale)[:, :, None])[:, :, 0] / scale


def _weights(case, z, majorise):
    """Second derivatives, or those of a quadratic that lies above the loss and touches it at z."""
    if case.loss == "huber":
        r = np.abs(z - case.y)
        tail = case.delta / np.maximum(r, case.delta) if majorise else 0.0
        return np.where(r <= case.delta, 1.0, tail)
    if majorise:
        return np.full(z.shape, 0.25)
    e = np.exp(-np.abs(z))
    return e / (1.0 + e) ** 2


def _values(case, z):
    """L along the last axis."""
    if case.loss == "quadratic":
        return 0.5 * np.sum((z - case.y) ** 2, axis=-1)
    if case.loss == "huber":
        r = np.abs(z - case.y)
        return np.sum(np.where(r <= case.delta, 0.5 * r * r, case.delta * (r - 0.5 * case.delta)), axis=-1)
    return np.sum(np.logaddexp(0.0, -case.y * z), axis=-1)


def _batch_objective(case, AS, x):
    return _values(case, np.einsum("bnm,bm->bn", AS, x)) + 0.5 * case.lam * np.sum(x * x, axis=1)


def _batch_gradient(case, AS, x):
    z = np.einsum("bnm,bm->bn", AS, x)
    if case.loss == "quadratic":
        slope = z - case.y
    elif case.loss == "huber":
        slope = np.clip(z - case.y, -case.delta, case.delta)
    else:
        t = -case.y * z
        e = np.exp(-np.abs(t))
        slope = -case.y * np.where(t >= 0, 1.0, e) / (1.0 + e)
    return np.einsum("bnm,bn->bm", AS, slope) + case.lam * x
