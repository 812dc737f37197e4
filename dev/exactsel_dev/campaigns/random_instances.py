"""From a seed to a tiny instance with everything data can have: ties, copies, offsets, scales, weights, demands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from exactsel.losses.base import CLASSES
from exactsel.testing.instances import CSS, TinyInstance
from exactsel.types import FloatArray
from exactsel_dev.campaigns.random_ridgeless import without_ridge
from exactsel_dev.campaigns.random_settings import drawn, only_the_search, random_settings

MOST_ROWS, MOST_COLUMNS = 12, 7

SEARCHED = 0.15
"""Share of the instances that are made for the search rather than to be awkward."""

LOSSES = ("quadratic", "huber", "logistic", CSS)
SHARES = (0.45, 0.2, 0.2, 0.15)

DRAWN = (*LOSSES, "squared_hinge", "poisson")
"""All losses there are instances of: some of the classes and some of the real numbers have another one in the end."""

STREAM = 2203
"""Part of each seed, so that no other campaign draws the same numbers."""

Random = np.random.Generator


def random_instance(seed: int) -> TinyInstance:
    """The instance of a seed, with its settings."""
    rng = np.random.default_rng([STREAM, seed])
    made = _searched(rng) if rng.random() < SEARCHED else _awkward(rng)
    # Numbers of their own, so that all other instances are what they were before there was a choice.
    return without_ridge(np.random.default_rng([STREAM, seed, 1]), _of_another_loss(seed, made))


def _awkward(rng: Random) -> TinyInstance:
    return random_settings(rng, _in_other_units(rng, _demanding(rng, _plain(rng))))


def _of_another_loss(seed: int, instance: TinyInstance) -> TinyInstance:
    """At times another loss on the same labels, drawn apart."""
    choice = np.random.default_rng([STREAM, seed, 2]).random()
    if instance.loss == "logistic" and choice < 0.4:
        return replace(instance, loss="squared_hinge")
    if instance.loss == "huber" and choice < 0.3:
        return _counting(np.random.default_rng([STREAM, seed, 3]), instance)
    return instance


def _counting(rng: Random, instance: TinyInstance) -> TinyInstance:
    """The same columns with counts for a target, whose logarithm they say something of, or nothing at all."""
    size = float(np.abs(instance.A).max()) or 1.0
    score = instance.A @ rng.standard_normal(instance.d) / size if rng.random() < 0.7 else np.zeros(instance.n)
    score = np.clip(score - np.mean(score), -4.0, 4.0) + float(rng.choice([-1.0, 0.5, 2.0, 6.0]))
    y = rng.poisson(np.exp(score)).astype(np.float64)
    if instance.intercept:
        y[0 if instance.weights is None else int(np.argmax(instance.weights))] += 1.0
    kept = {name: v for name, v in instance.settings.items() if v not in ("pdal", "supergradient")}
    return replace(instance, y=y, loss="poisson", delta=1.0, settings=kept)


def _searched(rng: Random) -> TinyInstance:
    """Plain data that no bound settles at the root, and settings that leave all to the search: trees of some size."""
    n, d = int(rng.integers(8, MOST_ROWS + 1)), int(rng.integers(5, MOST_COLUMNS + 1))
    loss = str(rng.choice(np.array(LOSSES), p=SHARES))
    A = _gaussian(rng, n, d) + float(rng.choice([0.5, 1.0, 2.0])) * rng.standard_normal((n, 1))
    noise = A @ rng.standard_normal(d) + float(rng.choice([1.0, 3.0])) * rng.standard_normal(n)
    y = np.where(noise >= 0, 1.0, -1.0) if loss == "logistic" else np.zeros(n) if loss == CSS else noise
    ridge = 0.0 if loss == CSS else float(10.0 ** rng.uniform(-4, 0))
    made = _demanding(rng, TinyInstance(A, y, int(rng.integers(2, d - 1)), loss, ridge))
    return replace(made, settings={"threads": 1} | drawn(rng, made) | only_the_search(rng))


def _plain(rng: Random) -> TinyInstance:
    """Data, loss and size; then offsets, an intercept, scaling and weights."""
    loss = str(rng.choice(np.array(LOSSES), p=SHARES))
    n, d = int(rng.integers(1, MOST_ROWS + 1)), int(rng.integers(1, MOST_COLUMNS + 1))
    A = KINDS[int(rng.integers(len(KINDS)))](rng, n, d)
    k = int(rng.choice([0, 1, d, int(rng.integers(1, d + 1))], p=[0.03, 0.15, 0.12, 0.7]))
    if loss == CSS:
        return _shifted(rng, TinyInstance(A, np.zeros(n), k, CSS))
    y = _target(rng, A, loss)
    lam = 0.0 if loss == "quadratic" and rng.random() < 0.3 else float(10.0 ** rng.uniform(-8, 4))
    delta = float(10.0 ** rng.uniform(-3, 1) * (np.ptp(y) or 1.0)) if loss == "huber" else 1.0
    instance = _shifted(rng, TinyInstance(A, y, k, loss, lam, delta))
    intercept = bool(rng.random() < 0.4) and not (loss == "logistic" and np.ptp(y) == 0)
    weights = _weights(rng, y, intercept and loss == "logistic") if rng.random() < 0.3 else None
    return replace(instance, intercept=intercept, scale=bool(rng.random() < 0.25), weights=weights)


def _gaussian(rng: Random, n: int, d: int) -> FloatArray:
    return rng.standard_normal((n, d))


def _whole(rng: Random, n: int, d: int) -> FloatArray:
    """Small whole numbers, so that many models tie."""
    return rng.integers(-2, 3, (n, d)).astype(float)


def _binary(rng: Random, n: int, d: int) -> FloatArray:
    return rng.integers(0, 2, (n, d)).astype(float)


def _copies(rng: Random, n: int, d: int) -> FloatArray:
    A = _whole(rng, n, d) if rng.random() < 0.5 else _gaussian(rng, n, d)
    for j in range(1, d):
        if rng.random() < 0.5:
            A[:, j] = rng.choice([1.0, -1.0, 2.0]) * A[:, rng.integers(0, j)]
    return A


def _zeros(rng: Random, n: int, d: int) -> FloatArray:
    return np.where(rng.random(d) < 0.4, 0.0, _gaussian(rng, n, d))


def _constants(rng: Random, n: int, d: int) -> FloatArray:
    return np.where(rng.random(d) < 0.5, rng.choice([1.0, -3.0, 0.1]), _gaussian(rng, n, d))


def _of_many_sizes(rng: Random, n: int, d: int) -> FloatArray:
    return np.asarray(_gaussian(rng, n, d) * 10.0 ** rng.uniform(-3, 3, d))


def _correlated(rng: Random, n: int, d: int) -> FloatArray:
    return np.asarray(rng.standard_normal((n, 1)) + float(rng.choice([0.3, 1e-2, 1e-4, 1e-7])) * _gaussian(rng, n, d))


def _sums(rng: Random, n: int, d: int) -> FloatArray:
    """The last column is the sum of some others."""
    A = rng.integers(-3, 4, (n, d)).astype(float)
    A[:, -1] = A[:, : max(1, d // 2)].sum(axis=1)
    return A


def _nearly_copies(rng: Random, n: int, d: int) -> FloatArray:
    A = _gaussian(rng, n, d)
    A[:, -1] = A[:, 0] * float(rng.choice([1.0, 3.0])) + float(10.0 ** rng.uniform(-14, -5)) * A[:, -1]
    return A


KINDS: tuple[Callable[[Random, int, int], FloatArray], ...] = (
    _gaussian, _whole, _binary, _copies, _zeros, _constants, _of_many_sizes, _correlated, _sums, _nearly_copies,
)  # fmt: skip


def _target(rng: Random, A: FloatArray, loss: str) -> FloatArray:
    n, d = A.shape
    size = np.linalg.norm(A, axis=0)
    signal = A @ (rng.standard_normal(d) * (rng.random(d) < 0.6) / np.where(size > 0, size, 1.0)) * np.sqrt(n)
    noise = rng.standard_normal(n)
    if loss == "logistic":
        scores = (signal + 0.5 * noise, signal, noise, np.ones(n))[int(rng.choice(4, p=[0.5, 0.2, 0.28, 0.02]))]
        return np.where(scores >= 0, 1.0, -1.0)
    outliers = np.where(rng.random(n) < 0.3, rng.choice([-1e3, 1e2, 1e3], n), 0.0)
    targets = (signal + 0.3 * noise, signal, np.round(2.0 * noise), noise, signal + outliers, np.zeros(n))
    return np.asarray(targets[int(rng.choice(6, p=[0.4, 0.1, 0.17, 0.15, 0.15, 0.03]))], dtype=float)


def _weights(rng: Random, y: FloatArray, both_labels: bool) -> FloatArray:
    """Row weights, at times zeros; with ``both_labels`` rows of either label keep one."""
    n = y.size
    weights = (
        10.0 ** rng.uniform(-1, 1, n), rng.integers(1, 5, n).astype(float), 10.0 ** rng.uniform(-4, 4, n),
        np.where(rng.random(n) < 0.4, 0.0, rng.uniform(0.5, 2.0, n)),
    )[int(rng.integers(4))]  # fmt: skip
    kept = (np.flatnonzero(y > 0)[:1], np.flatnonzero(y <= 0)[:1]) if both_labels else (np.array([0]),)
    weights[np.concatenate(kept)] += weights[np.concatenate(kept)] == 0
    return np.asarray(weights)


def _shifted(rng: Random, instance: TinyInstance) -> TinyInstance:
    """With offsets of up to 1e15 from zero: of the target, the columns or both; the same for all, or each its own."""
    if rng.random() < 0.6:
        return instance
    where = str(rng.choice(["y", "columns", "both"])) if instance.loss in ("quadratic", "huber") else "columns"
    size = float(rng.choice([10.0 ** rng.uniform(0, 15), 1e3, 1e6, 1e9, 1e12, 1e15]))
    A, y = instance.A, instance.y
    if where != "columns":
        y = y + size * float(rng.choice([1.0, -1.0]))
    if where != "y":
        each = 10.0 ** rng.uniform(0, np.log10(size) + 1e-9, instance.d) * rng.choice([1.0, -1.0], instance.d)
        A = A + (size if rng.random() < 0.5 else each)
    return replace(instance, A=A, y=y)


def _demanding(rng: Random, instance: TinyInstance) -> TinyInstance:
    """At times with groups, with columns in every model or in none, or with a hierarchy."""
    if instance.loss == CSS:
        return instance
    made = _grouped(rng, instance) if rng.random() < 0.12 else instance
    made = _with_demands(rng, made) if rng.random() < 0.15 else made
    made = _with_hierarchy(rng, made) if rng.random() < 0.15 else made
    return _with_pairs(rng, made) if not made.hierarchy and rng.random() < 0.1 else made


def _grouped(rng: Random, instance: TinyInstance) -> TinyInstance:
    many = max(1, instance.d // 2)
    labels = tuple("" if rng.random() < 0.3 else f"g{int(rng.integers(many))}" for _ in range(instance.d))
    if not any(labels):
        return instance
    made = replace(instance, groups=labels)
    return replace(made, k=min(instance.k, len(made.units)))


def _with_demands(rng: Random, instance: TinyInstance) -> TinyInstance:
    order = [int(u) for u in rng.permutation(len(instance.units))]
    included = int(rng.integers(0, min(instance.k, 2) + 1))
    outside = int(rng.integers(0, min(3, len(order) - included) + 1))
    return replace(
        instance,
        force_in=tuple(sorted(order[:included])),
        force_out=tuple(sorted(order[included : included + outside])),
    )


def _with_hierarchy(rng: Random, instance: TinyInstance) -> TinyInstance:
    """Parents drawn at random, circles not excluded; where no model is left, none."""
    units = len(instance.units)
    drawn = ((u, {int(p) for p in rng.integers(0, units, int(rng.integers(1, 4)))} - {u}) for u in range(units))
    edges = tuple((u, tuple(sorted(above))) for u, above in drawn if above and rng.random() < 0.5)
    made = replace(instance, hierarchy=edges, hierarchy_kind=str(rng.choice(["strong", "weak"])))
    return made if made.admissible else instance


def _with_pairs(rng: Random, instance: TinyInstance) -> TinyInstance:
    """Pairs that exclude each other, drawn at random; where no model is left, none."""
    share = rng.random()
    pairs = tuple(pair for pair in combinations(range(len(instance.units)), 2) if rng.random() < share)
    made = replace(instance, not_both=pairs)
    return made if made.admissible else instance


def scaled(instance: TinyInstance, target: int, columns: int) -> TinyInstance:
    """The same problem in other units: y times 2^target, A times 2^columns, lam, delta and eps accordingly."""
    target = 0 if instance.loss in (*CLASSES, "poisson") else target
    # Columns that are scaled to size one have no units left that lam could know; a target has.
    lam = instance.lam if instance.scale else float(np.ldexp(instance.lam, 2 * columns))
    settings: dict[str, Any] = dict(instance.settings)
    if settings.get("eps"):
        settings["eps"] = float(np.ldexp(settings["eps"], 2 * (columns if instance.loss == CSS else target)))
    return replace(
        instance, A=np.ldexp(instance.A, columns), y=np.ldexp(instance.y, target), lam=lam,
        delta=float(np.ldexp(instance.delta, target)), settings=settings,
    )  # fmt: skip


def _in_other_units(rng: Random, instance: TinyInstance) -> TinyInstance:
    """At times in other units, or in units that go with nothing else."""
    chance = rng.random()
    if chance < 0.7:
        return instance
    most = int(rng.choice([20, 60, 90], p=[0.5, 0.3, 0.2]))
    target, columns = (int(power) for power in rng.integers(-most, most + 1, 2))
    if chance < 0.9:
        return scaled(instance, target, columns)
    each = rng.integers(-most, most + 1, instance.d) if rng.random() < 0.5 else columns
    y = instance.y if instance.loss == "logistic" else np.ldexp(instance.y, target)
    return replace(instance, A=np.ldexp(instance.A, each), y=y)
