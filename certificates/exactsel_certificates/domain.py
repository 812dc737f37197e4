"""The problems a proof may be about (FORMAT.md, *The domain*), validated before any region is read.

Outside of it nothing is established. It is narrow enough for two things: what the bounds in doubles allow for underflow
(rigorous.py) covers all of it, and every number that enters a hash or a formula is the number the caller gave.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.constraint import Constraint
from exactsel_certificates.constraints import KINDS
from exactsel_certificates.entries import SparseInstance
from exactsel_certificates.formula import Box, ColumnInstance, FloatArray, Instance, check_box
from exactsel_certificates.losses import LOSSES, Loss
from exactsel_mapped import column_blocks, is_kept

AnyInstance: TypeAlias = Instance | ColumnInstance | SparseInstance

LARGEST = 1e60
"""No entry of A or y, no lam and no delta is larger in size."""

SMALLEST = 1e-60
"""A column or y that is not zero has an entry of at least this size; lam and delta are no smaller where positive."""

LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e30, 1e-30
"""Positive weights lie between these."""

WHOLE = 2**53
"""Integers up to this size are doubles."""


class OutsideError(Exception):
    """The problem is none a proof can be about; the text says in one sentence why not."""


def admitted(instance: AnyInstance) -> AnyInstance:
    """The same problem, its arrays as doubles and its parameters as plain numbers.

    Raises
    ------
    OutsideError
        When it lies outside the domain.
    """
    try:
        if isinstance(instance, SparseInstance):
            return _sparse(instance)
        return _columns(instance) if isinstance(instance, ColumnInstance) else _regression(instance)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise OutsideError(f"the problem is none a proof can be about: {error}") from None


def _columns(instance: ColumnInstance) -> ColumnInstance:
    A = _table(instance.A)
    return ColumnInstance(A, _limit(instance.k, A.shape[1]))


def _sparse(instance: SparseInstance) -> SparseInstance:
    A, d = instance.A, instance.A.shape[1]
    _need(min(A.shape) > 0, f"A has shape {A.shape}, but rows and columns were expected.")
    values = _doubles("A", A.values)
    largest, filled = np.zeros(d), np.flatnonzero(A.counts)
    if filled.size:
        largest[filled] = np.maximum.reduceat(np.abs(values), A.starts[filled])
    _check_sizes("A", largest[None])
    about = _target(instance, A.n)
    have, out, k = _numbers(instance.force_in), _numbers(instance.force_out), _limit(instance.k, d)
    forced = {*have, *out}
    _need(len(forced) == len(have) + len(out) and forced <= {*range(d)}, "force_in and force_out name a column twice.")
    _need(len(have) <= k, f"{len(have)} columns are forced in, but k is {k}.")
    box = None if instance.box is None else _box(instance)
    if box is not None:
        check_box(box, d)
    return replace(
        instance, A=replace(A, values=values), k=k, intercept=bool(instance.intercept), force_in=have, force_out=out,
        box=box, **about._asdict(),
    )  # fmt: skip


def _regression(instance: Instance) -> Instance:
    A = _table(instance.A)
    n, d = A.shape
    about = _target(instance, n)
    return replace(
        instance, A=A, k=_limit(instance.k, d), intercept=bool(instance.intercept), **about._asdict(),
        weights=None if instance.weights is None else _weights(instance.weights, n),
        force_in=_numbers(instance.force_in), force_out=_numbers(instance.force_out),
        groups=tuple(_numbers(group) for group in instance.groups), hierarchy=_constraint(instance.hierarchy),
        box=None if instance.box is None else _box(instance),
    )  # fmt: skip


class _Target(NamedTuple):
    """The target, the ridge weight and the loss of a problem."""

    y: FloatArray
    lam: float
    delta: float
    plugin: Loss | None


def _target(instance: Instance | SparseInstance, n: int) -> _Target:
    """Those of a regression problem with n rows."""
    y = _doubles("y", instance.y)
    is_known = instance.plugin is not None or instance.loss in LOSSES
    _need(is_known, f"the loss is {instance.loss!r}, but {', '.join(LOSSES)} were expected.")
    loss = instance.formulas
    _need(y.shape == (n,), f"y has shape {y.shape}, but A has {n} rows.")
    _check_sizes("y", y[:, None])
    refused = loss.refused_target(y)
    _need(not refused, refused)
    lam = _number("lam", instance.lam)
    _need(lam == 0.0 or SMALLEST <= lam <= LARGEST, f"lam is {lam!r}, {_between} expected, or 0.")
    _need(lam > 0.0 or loss.without_ridge, f"lam is 0, but {instance.loss} loss needs a ridge.")
    parameters = {name: _number(name, value) for name, value in loss.parameters.items()}
    for name, value in parameters.items():
        _need(SMALLEST <= value <= LARGEST, f"{name} is {value!r}, {_between} expected.")
    # What a problem carries besides must not reach a formula.
    delta = parameters.get("delta", math.inf) if instance.plugin is None else math.inf
    plugin = None if instance.plugin is None else replace(instance.plugin, **parameters)
    _need(instance.intercept in (True, False), f"intercept is {instance.intercept!r}, neither true nor false.")
    return _Target(y, lam, delta, plugin)


_between = f"but a finite number between {SMALLEST:g} and {LARGEST:g} was"


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise OutsideError(what)


def _table(table: NDArray[Any]) -> FloatArray:
    A = _doubles("A", table)
    _need(A.ndim == 2 and A.size > 0, f"A has shape {A.shape}, but rows and columns were expected.")
    _check_sizes("A", A)
    return A


def _doubles(name: str, array: NDArray[Any]) -> FloatArray:
    """An array of finite doubles equal to the one given."""
    is_valid = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    kind, size = (array.dtype.kind, array.dtype.itemsize) if is_valid else ("none", 0)
    is_valid = kind in ("b", "i", "u") or (kind == "f" and size <= 8)
    _need(is_valid, f"{name} is no array of doubles, nor of numbers that convert to them exactly.")
    if kind in ("i", "u") and array.size:
        largest = max(abs(int(array.min())), abs(int(array.max())))
        _need(largest <= WHOLE, f"{name} holds an integer of {largest}, which need not be a double.")
    # A table in a file that this process cannot change is read where it is.
    values = array if is_kept(array) else np.asarray(array).astype(np.float64)
    parts = (values[:, block] for block in column_blocks(values.T)) if values.ndim == 2 else [values]
    _need(all(bool(np.all(np.isfinite(part))) for part in parts), f"{name} holds NaN or infinite values.")
    return values


def _check_sizes(name: str, columns: FloatArray) -> None:
    """Refuse columns whose largest entries are beyond what formulas in doubles can take."""
    largest = np.concatenate([np.max(np.abs(columns[:, block]), axis=0) for block in column_blocks(columns.T)])
    top = float(np.max(largest))
    _need(top <= LARGEST, f"{name} holds a number of size {top:g}, larger than {LARGEST:g}; use other units.")
    small = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if small.size:
        what = f"column {small[0]} of {name}" if name == "A" else name
        raise OutsideError(
            f"{what} has no entry larger than {float(largest[small[0]]):g} in size, but it must be zero or reach "
            f"{SMALLEST:g}; use other units."
        )


def _weights(values: NDArray[Any], n: int) -> FloatArray:
    weights = _doubles("the weights", values)
    _need(weights.shape == (n,), f"there are weights of shape {weights.shape} for {n} rows.")
    used = weights[weights > 0]
    _need(bool(np.all(weights >= 0)) and used.size > 0, "the weights must not be negative, and not all zero.")
    low, high = float(np.min(used)), float(np.max(used))
    _need(
        low >= SMALLEST_WEIGHT and high <= LARGEST_WEIGHT,
        f"the weights range from {low:g} to {high:g}, but between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g} was "
        f"expected.",
    )
    return weights


def _limit(k: SupportsIndex, d: int) -> int:
    limit = _whole("k", k)
    _need(0 <= limit <= d, f"k is {limit}, but at least 0 and at most {d} was expected.")
    return limit


def _number(name: str, number: float) -> float:
    """A finite double equal to the number given."""
    _need(isinstance(number, int | float | np.integer | np.floating), f"{name} is {number!r}, no number.")
    value = float(number)
    _need(math.isfinite(value) and value == number, f"{name} is {number!r}, no finite double.")
    return value


def _constraint(constraint: Constraint | None) -> Constraint | None:
    """The same in plain numbers."""
    if constraint is None:
        return None
    _need(isinstance(constraint, tuple(KINDS.values())), f"the constraint is {constraint!r}, of no kind that is known.")
    return constraint.plain()


def _box(instance: Instance | SparseInstance) -> Box:
    """Its limits as doubles, which may be infinite; :func:`.formula.check_box` checks their number and signs."""
    scale = bool(getattr(instance, "scale", False))
    sides = [np.asarray(side) for side in instance.box or ()]
    _need(all(side.dtype == np.float64 for side in sides), "the limits on coefficients are no doubles.")
    box = Box(*(side.astype(np.float64) + 0.0 for side in sides))  # 0 has no sign
    _need(not any(bool(np.any(np.isnan(side))) for side in box), "the limits on coefficients hold NaN.")
    finite = [side[np.isfinite(side)] for side in box]
    _need(
        not scale or not any(bool(np.any(side)) for side in finite),
        "columns are scaled, but limits on coefficients other than 0 go with columns as they are.",
    )
    return box


def _whole(name: str, number: SupportsIndex) -> int:
    _need(not isinstance(number, bool | np.bool_), f"{name} is {number!r}, no whole number.")
    return operator.index(number)


def _numbers(columns: Iterable[SupportsIndex]) -> tuple[int, ...]:
    return tuple(_whole("a column", j) for j in columns)
