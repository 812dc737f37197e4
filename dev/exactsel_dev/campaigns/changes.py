"""Changes to an instance whose effect on the optimum is known: each takes one and returns another, or None."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from exactsel.losses.base import CLASSES
from exactsel.testing.instances import CSS, TinyInstance, columns_in_order
from exactsel.types import FloatArray, IntArray
from exactsel_dev.campaigns.random_instances import scaled
from exactsel_dev.campaigns.random_settings import random_settings

Random = np.random.Generator
Changed = TinyInstance | None

MOST_POWER = 40
"""Powers of two that units are changed by; more may be refused, as numbers too large to square."""

LARGEST, SMALLEST = 1e30, 1e-30
"""Data between these stay within what is computed with when their units change."""

MOST_COPIES = 4
"""A row of this weight is written so many times."""

MOST_SHIFT = 2**20


def rows_permuted(rng: Random, instance: TinyInstance) -> Changed:
    """The rows in another order."""
    return _of_rows(instance, rng.permutation(instance.n))


def columns_permuted(rng: Random, instance: TinyInstance) -> Changed:
    """The columns in another order, everything that names them along with them."""
    return columns_in_order(instance, [int(j) for j in rng.permutation(instance.d)])


def columns_flipped(rng: Random, instance: TinyInstance) -> Changed:
    """Some columns times -1."""
    return replace(instance, A=instance.A * rng.choice([1.0, -1.0], instance.d))


def target_flipped(rng: Random, instance: TinyInstance) -> Changed:
    """The target, or the labels, times -1."""
    return None if instance.loss == CSS else replace(instance, y=-instance.y)


def units_changed(rng: Random, instance: TinyInstance) -> Changed:
    """Other units: powers of two on the data, and on what goes with them."""
    target, columns = powers_of(rng)
    sizes = np.abs(np.concatenate([instance.A.ravel(), instance.y, [instance.lam, instance.delta]]))
    sizes = sizes[sizes > 0]
    if sizes.size and not (sizes.max() < LARGEST and sizes.min() > SMALLEST):
        return None
    return scaled(instance, target, columns)


def powers_of(rng: Random) -> tuple[int, int]:
    """The powers of two that units are changed by: the target's and the columns'."""
    target, columns = rng.integers(-MOST_POWER, MOST_POWER + 1, 2)
    return int(target), int(columns)


def column_copied(rng: Random, instance: TinyInstance) -> Changed:
    """One column more, the same as another, also in what it may not be without."""
    if instance.groups:
        return None
    j, copy = int(rng.integers(instance.d)), instance.d
    forbidden = (copy,) if j in instance.force_out else ()
    parents = tuple((copy, above) for child, above in instance.hierarchy if child == j)
    pairs = tuple((min(pair), copy) if max(pair) == j else (max(pair), copy) for pair in instance.not_both if j in pair)
    return replace(
        instance, A=np.column_stack([instance.A, instance.A[:, j]]), force_out=(*instance.force_out, *forbidden),
        hierarchy=(*instance.hierarchy, *parents), not_both=tuple(sorted((*instance.not_both, *pairs))),
    )  # fmt: skip


def zero_column(rng: Random, instance: TinyInstance) -> Changed:
    """One column more, of zeros."""
    return None if instance.groups else replace(instance, A=np.column_stack([instance.A, np.zeros(instance.n)]))


def one_more(rng: Random, instance: TinyInstance) -> Changed:
    """k + 1."""
    return replace(instance, k=instance.k + 1) if instance.k < len(instance.units) else None


def more_ridge(rng: Random, instance: TinyInstance) -> Changed:
    """A larger lam."""
    if instance.loss == CSS:
        return None
    factor = float(10.0 ** rng.uniform(0.01, 2))
    return replace(instance, lam=instance.lam * factor if instance.lam else float(10.0 ** rng.uniform(-3, 1)))


def rows_repeated(rng: Random, instance: TinyInstance) -> Changed:
    """Whole weights become rows written as often; without weights some are drawn, and both are changed."""
    weights = instance.weights
    if instance.loss == CSS or weights is None:
        return None
    if np.any(weights != np.round(weights)) or weights.max() > MOST_COPIES:
        return None
    repeated = np.repeat(np.arange(instance.n), weights.astype(int))
    return replace(_of_rows(replace(instance, weights=None), repeated), weights=None)


def with_whole_weights(rng: Random, instance: TinyInstance) -> TinyInstance:
    """The instance with small whole weights, for :func:`rows_repeated`."""
    if instance.loss == CSS:
        return instance
    weights = rng.integers(0, MOST_COPIES + 1, instance.n).astype(float)
    weights[[int(np.argmax(instance.y)), int(np.argmin(instance.y))]] = 1.0
    return replace(instance, weights=weights)


def weightless_row(rng: Random, instance: TinyInstance) -> Changed:
    """One row more, of weight zero."""
    if instance.loss == CSS:
        return None
    weights = np.ones(instance.n) if instance.weights is None else instance.weights
    row, target = rng.standard_normal((1, instance.d)), rng.choice([1.0, -1.0])
    A, y = np.vstack([instance.A, row]), np.append(instance.y, target)
    return replace(instance, A=A, y=y, weights=np.append(weights, 0.0))


def groups_of_one(rng: Random, instance: TinyInstance) -> Changed:
    """Every column a group of its own, by groups rather than columns."""
    if instance.loss == CSS or instance.groups:
        return None
    settings = {name: value for name, value in instance.settings.items() if name != "bound"}
    return replace(instance, groups=tuple(f"g{j}" for j in range(instance.d)), settings=settings)


def forbidden_removed(rng: Random, instance: TinyInstance) -> Changed:
    """The columns no model may hold, taken out of the data."""
    outside = set(instance.force_out)
    if instance.groups or instance.hierarchy or not outside or len(outside) == instance.d:
        return None
    kept = [j for j in range(instance.d) if j not in outside]
    made = columns_in_order(replace(instance, force_out=()), kept)
    return replace(made, k=min(made.k, len(kept)))


def with_forbidden(rng: Random, instance: TinyInstance) -> TinyInstance:
    """The instance with columns that no model may hold, for :func:`forbidden_removed`."""
    if instance.loss == CSS or instance.d < 2:
        return instance
    free = [j for j in range(len(instance.units)) if j not in instance.force_in]
    many = min(len(free), 1 + int(rng.integers(2)))
    outside = tuple(sorted(int(j) for j in rng.choice(free, many, replace=False))) if free else ()
    return replace(instance, force_out=outside)


def other_settings(rng: Random, instance: TinyInstance) -> Changed:
    """The same instance solved in another way."""
    return random_settings(rng, instance)


def two_threads(rng: Random, instance: TinyInstance) -> Changed:
    """Two threads rather than one."""
    return replace(instance, settings=instance.settings | {"threads": 2})


def with_one_thread(rng: Random, instance: TinyInstance) -> TinyInstance:
    """One thread, for :func:`two_threads`."""
    return replace(instance, settings=instance.settings | {"threads": 1})


def shifted(rng: Random, instance: TinyInstance) -> Changed:
    """Columns and target moved by whole numbers, which an intercept takes up; None where a sum would be rounded."""
    if not instance.intercept:
        return None
    A = _moved(instance.A, rng.integers(-MOST_SHIFT, MOST_SHIFT, instance.d).astype(float))
    move_target = instance.loss not in (*CLASSES, "poisson")
    y = _moved(instance.y, np.array(float(rng.integers(-MOST_SHIFT, MOST_SHIFT)))) if move_target else instance.y
    return None if A is None or y is None else replace(instance, A=A, y=y)


def _moved(values: FloatArray, by: FloatArray) -> FloatArray | None:
    moved: FloatArray = values + by
    each = np.broadcast_to(by, values.shape).ravel().tolist()
    pairs = zip(values.ravel().tolist(), each, moved.ravel().tolist(), strict=True)
    return moved if all(Fraction(a) + Fraction(b) == Fraction(c) for a, b, c in pairs) else None


def with_intercept(rng: Random, instance: TinyInstance) -> TinyInstance:
    """Data of few digits and an intercept, for :func:`shifted`."""
    if instance.loss == CSS or (instance.loss in (*CLASSES, "poisson") and np.ptp(instance.y) == 0):
        return instance
    A = np.round(rng.standard_normal(instance.A.shape), 2) * 4.0
    A = np.round(A * 64.0) / 64.0
    y = (
        instance.y
        if instance.loss in (*CLASSES, "poisson")
        else np.round(64.0 * rng.standard_normal(instance.n)) / 16.0
    )
    return replace(instance, A=A, y=y, delta=1.0, intercept=True, weights=None)


def _of_rows(instance: TinyInstance, order: IntArray) -> TinyInstance:
    weights = None if instance.weights is None else instance.weights[order]
    return replace(instance, A=instance.A[order], y=instance.y[order], weights=weights)
