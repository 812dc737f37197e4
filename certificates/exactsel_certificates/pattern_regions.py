"""Regions closed by their covariate patterns: every set of columns costs too much by its patterns, or by its own fit.

What the patterns leave are a few sets. The rows of each, equal ones together, make a problem of a few weighted rows,
whose best model is looked for here and bounded as every point of a proof is (regions.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.container import FIRST_POINT, Proof
from exactsel_certificates.formula import Box, FloatArray, Instance
from exactsel_certificates.patterns import BeyondRoomError, patterns_of
from exactsel_certificates.regions import RegressionRegions
from exactsel_certificates.rigorous import model_objective
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, OUT, Leaves
from exactsel_certificates.work import STEP, ExactWork, spend

NEWTON_STEPS, HALVINGS = 60, 40

FIT = 1e6
"""Elementary operations in the time that a set takes which is fitted (most of a millisecond)."""

CLOSE = 1e-15
"""Part of the objective by which the last step of a fit would lower it."""

MOST_CODES = 1 << 40
"""Row codes from this size on are renumbered consecutively."""


class PatternRegions:
    """Bound to one problem of logistic loss whose columns are chosen one by one, and one level."""

    def __init__(self, instance: Instance, proof: Proof, work: ExactWork) -> None:
        """``work`` is what exact arithmetic may take."""
        self.exact_regions = 0
        self._instance, self._proof, self._work = instance, proof, work
        self._label = (np.asarray(instance.y) > 0).astype(np.int64)
        self._numbered: dict[int, tuple[int, NDArray[Any]]] = {}
        self._known: dict[tuple[int, ...], bool] = {}

    def bounds(self, leaves: Leaves) -> FloatArray:
        """The level where a region is shown to hold nothing below it, else 0."""
        result = np.zeros(len(leaves.states))
        for row in np.flatnonzero(leaves.witness == BY_COUNTING).tolist():
            if self._counted(leaves.states[row]):
                result[row] = self._proof.lower
        return result

    def _counted(self, state: NDArray[np.uint8]) -> bool:
        included, free = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        slots = min(max(0, self._instance.k - len(included)), len(free))
        patterns = patterns_of(self._instance, included, free if slots else [])
        if patterns is None:
            return False
        try:
            return all(
                self._closed(tuple(sorted(columns)))
                for chosen in patterns.columns_within(slots, self._proof.lower)
                for columns in admissible_parts(self._instance, included, chosen)
            )
        except BeyondRoomError:
            return False

    def _closed(self, columns: tuple[int, ...]) -> bool:
        """Whether no model on some columns, within the limits on coefficients, is below the level."""
        if columns not in self._known:
            spend(FIT)
            about = self._merged(columns)
            x, none = fitted(about), np.zeros(0, dtype=np.int32)
            if model_objective(about, x) < self._proof.lower:
                self._known[columns] = False  # there is a model below it
                return False
            point = replace(
                self._proof, n=len(about.y), d=len(x), k=len(x), curvature=np.zeros(0),
                point_value=x, point_index=np.arange(len(x)), point_size=np.array([len(x)]),
                dual_value=np.zeros(0), minorant_point=none, minorant_width=np.zeros(0, dtype=np.float32),
                limit_point=none, split_size=none,
            )  # fmt: skip
            regions = RegressionRegions(about, point, 0.0)
            regions.work = self._work
            state = np.full((1, len(x)), IN, dtype=np.uint8)
            bounds = regions.bounds(Leaves(state, np.array([FIRST_POINT])))
            self.exact_regions += regions.exact_regions
            self._known[columns] = bool(bounds[0] >= self._proof.lower)
        return self._known[columns]

    def _merged(self, columns: tuple[int, ...]) -> Instance:
        """The problem of some columns alone, equal rows together."""
        instance, code, many = self._instance, self._label, 2
        spend(20.0 * len(code) * (len(columns) + 4))
        for j in columns:
            values, number = self._values(j)
            if many * values > MOST_CODES:
                code = np.unique(code, return_inverse=True)[1].reshape(-1)
                many = int(np.max(code)) + 1
            code, many = code + many * number, many * values
        _, row, which = np.unique(code, return_index=True, return_inverse=True)
        A, box = np.asarray(instance.A)[row][:, [*columns]], instance.box
        if not columns:  # but for an intercept: a column of zeros
            A, box = np.zeros((len(row), 1)), None
        if box is not None:
            box = Box(box.lower[[*columns]], box.upper[[*columns]])
            box = box if np.any(np.isfinite(box.lower) | np.isfinite(box.upper)) else None
        return replace(
            instance, A=A, y=np.asarray(instance.y)[row],
            weights=np.bincount(which.reshape(-1), instance.weights).astype(np.float64), k=A.shape[1], force_in=(),
            force_out=(), hierarchy=None, box=box,
        )  # fmt: skip

    def _values(self, j: int) -> tuple[int, NDArray[np.int64]]:
        """How many values a column takes, and the number of each row's (n,)."""
        if j not in self._numbered:
            values, number = np.unique(np.asarray(self._instance.A)[:, j], return_inverse=True)
            self._numbered[j] = len(values), number.reshape(-1).astype(np.min_scalar_type(len(values)))
        many, number = self._numbered[j]
        return many, number.astype(np.int64)


def admissible_parts(instance: Instance, included: Sequence[int], chosen: Sequence[int]) -> Iterator[list[int]]:
    """Sets of columns that together hold every admissible one of S and some others, all of S in each."""
    if instance.hierarchy is None:
        yield [*included, *chosen]
        return
    rule, everything, seen = instance.hierarchy.rule(instance.k), range(instance.units), set[bytes]()
    state = bytearray([OUT]) * instance.units
    for j in chosen:
        state[j] = FREE
    for j in included:
        state[j] = IN
    waiting = [bytes(state)]
    while waiting:
        spend(STEP + 32.0 * instance.units)
        state_left = rule.implied(waiting.pop(), everything)
        if state_left is None or state_left in seen:
            continue
        seen.add(state_left)
        columns = [j for j in everything if state_left[j] != OUT]
        over = rule.crowded(columns)
        if not over:
            yield columns
        waiting += [state_left[:j] + bytes([OUT]) + state_left[j + 1 :] for j in over if state_left[j] == FREE]


def fitted(instance: Instance) -> FloatArray:
    """About the best model of logistic loss on all columns (m,), by projected Newton steps; no bound relies on it."""
    A, y, weights, m = instance.A, instance.y, np.asarray(instance.weights), instance.A.shape[1]
    sides = np.hstack([A, np.ones((len(y), 1))]) if instance.intercept else A
    low, high = np.full(sides.shape[1], -np.inf), np.full(sides.shape[1], np.inf)
    if instance.box is not None:
        low[:m], high[:m] = instance.box
    ridge = np.where(np.arange(sides.shape[1]) < m, instance.lam, 0.0)

    def value(x: FloatArray) -> float:
        return float(weights @ np.logaddexp(0.0, -y * (sides @ x)) + 0.5 * ridge @ (x * x))

    x = np.zeros(sides.shape[1])
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            spend(10.0 * STEP + 2.0 * sides.size * sides.shape[1])
            part = 1.0 / (1.0 + np.exp(np.clip(y * (sides @ x), -700.0, 700.0)))
            gradient = ridge * x - sides.T @ (weights * y * part)
            H = (sides.T * (weights * part * (1.0 - part))) @ sides + np.diag(ridge)
            moves = np.flatnonzero(~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0))))
            if not moves.size or not np.all(np.isfinite(H)):
                break
            step = np.zeros(len(x))
            sizes = np.sqrt(np.maximum(np.diagonal(H)[moves], np.finfo(np.float64).tiny))
            scaled_H = H[np.ix_(moves, moves)] / sizes / sizes[:, None]
            step[moves] = np.linalg.lstsq(scaled_H, gradient[moves] / sizes, rcond=None)[0] / sizes
            before, best = value(x), x
            last = float(gradient @ step) <= CLOSE * before
            for halving in range(HALVINGS):
                best = np.clip(x - step / 2.0**halving, low, high)
                if not value(best) > before:
                    break
            x = best
            if last:
                break
    return x[:m]
