"""The problem whose optimum is spoken of, and the objective of a model, written out plainly.

The objective is P(x) = L(Ax) + (lam/2) ||x||^2 with L a sum over rows; with an unpenalised intercept it is the smallest
of these over the intercept. Sums are formed in numpy's long double, which has 11 more bits than the solver's numbers on
most machines and as many on the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactsel_certificates.constraint import Constraint
from exactsel_certificates.levels import find_levels
from exactsel_certificates.losses import Loss, loss_of
from exactsel_certificates.sums import row_slices
from exactsel_certificates.walk import first_region
from exactsel_certificates.work import STEP, spend

FloatArray: TypeAlias = NDArray[np.float64]
Long: TypeAlias = NDArray[np.longdouble]


class Box(NamedTuple):
    """Limits on the coefficients of the data as given: lower_j <= x_j <= upper_j."""

    lower: FloatArray
    """(d,) at most 0; -inf where there is no limit."""
    upper: FloatArray
    """(d,) at least 0; inf where there is no limit."""


def check_box(box: Box, columns: int) -> None:
    """:class:`ValueError` for limits on coefficients that are not as :class:`Box` says."""
    if not all(side.shape == (columns,) for side in box):
        raise ValueError("the limits on coefficients must be two numbers for each column.")
    if not np.all((box.lower <= 0.0) & (box.upper >= 0.0)):
        raise ValueError("0 must lie between the limits on each coefficient.")
    if not np.any(np.isfinite(box.lower) | np.isfinite(box.upper)):
        raise ValueError("the limits on coefficients are all infinite; leave them out.")


@dataclass(frozen=True)
class Instance:
    """The problem whose optimum is spoken of, as the caller knows it (never as the record repeats it)."""

    A: FloatArray
    """(n, d), one row per observation."""
    y: FloatArray
    """(n,) target, as the loss takes it."""
    k: int
    """Largest number of non-zero coefficients."""
    loss: str
    """One of :data:`.losses.LOSSES`, or that of ``plugin``."""
    lam: float
    """Ridge weight, >= 0."""
    delta: float = np.inf
    """Threshold of the Huber loss; no other loss has one."""
    force_in: tuple[int, ...] = ()
    """Columns every model holds, ascending; they count towards k."""
    force_out: tuple[int, ...] = ()
    """Columns no model holds, ascending."""
    weights: FloatArray | None = None
    """(n,) positive weights of the rows; for quadratic loss prepared data hold them."""
    intercept: bool = False
    """Whether models have an unpenalised intercept; as ``weights``."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Where columns are chosen in groups: the columns of each, ascending, in the order of their first columns, every
    column in one. Then k, force_in, force_out and all regions speak of groups, by number. None: every column is one."""
    hierarchy: Constraint | None = field(default=None, kw_only=True)
    """Which units go together, where that is not free: a model's columns must lie in a set of at most k units that this
    allows, and that holds what force_in and force_out ask. A hierarchy, or a constraint of another kind."""
    box: Box | None = field(default=None, kw_only=True)
    """Limits on coefficients; lam > 0. With scaled columns all of them are 0 or infinite."""
    plugin: Loss | None = field(default=None, kw_only=True)
    """The formulas of a loss that another package brings: what is established rests on them, too."""

    def __post_init__(self) -> None:
        loss_of(self.loss, self.delta, self.plugin)
        if self.A.ndim != 2 or self.y.shape != self.A.shape[:1]:
            raise ValueError(f"A has shape {self.A.shape} and y {self.y.shape}; expected (n, d) and (n,).")
        self._check_rows()
        if self.groups and (
            sorted(j for group in self.groups for j in group) != [*range(self.A.shape[1])]
            or not all(self.groups)
            or [*self.groups] != sorted(tuple(sorted(group)) for group in self.groups)
        ):
            raise ValueError("groups must hold every column once, ascending, in the order of their first columns.")
        forced = (*self.force_in, *self.force_out)
        if len({*forced}) < len(forced) or not {*forced} <= {*range(self.units)} or len(self.force_in) > self.k:
            raise ValueError("force_in and force_out must be different columns of A, no more than k of them forced in.")
        if self.hierarchy is not None:
            self.hierarchy.check(self.units, bool(self.groups))
        if self.box is not None:
            check_box(self.box, self.A.shape[1])

    def _check_rows(self) -> None:
        """:class:`ValueError` for weights, or an intercept, that the formulas do not know."""
        if self.adjusted and self.formulas.quadratic:
            raise ValueError("weights and intercept of quadratic loss are worked into A and y, not stated besides.")
        if self.weights is not None and not (
            self.weights.shape == self.y.shape and np.all(self.weights > 0) and np.all(np.isfinite(self.weights))
        ):
            raise ValueError("the weights must be positive finite numbers, one for each row.")

    @cached_property
    def formulas(self) -> Loss:
        """What is known of the loss."""
        return loss_of(self.loss, self.delta, self.plugin)

    @property
    def adjusted(self) -> bool:
        """Whether there are weights or an intercept."""
        return self.intercept or self.weights is not None

    @property
    def units(self) -> int:
        """How many there are to choose from: groups, or columns where there are none."""
        return len(self.groups) or self.A.shape[1]

    def columns_of(self, units: Iterable[int]) -> list[int]:
        """The columns of some groups, ascending; the same numbers where there are none."""
        return sorted(j for g in units for j in self.groups[g]) if self.groups else sorted(units)

    @cached_property
    def unit_of(self) -> NDArray[np.intp]:
        """(d,) the group of each column; its own number where there are none."""
        units = np.arange(self.A.shape[1])
        for g, columns in enumerate(self.groups):
            units[list(columns)] = g
        return units

    def units_of(self, columns: Iterable[int]) -> set[int]:
        """The groups some columns belong to; the same numbers where there are none."""
        wanted = {*columns}
        return {g for g, group in enumerate(self.groups) if wanted & {*group}} if self.groups else wanted


def objective(instance: Instance, x: ArrayLike) -> float:
    """P(x) for a full coefficient vector (d,), with the best intercept where there is one."""
    return objective_at(instance, x, predictions(instance, x))


def objective_at(instance: Instance, x: object, z: Long) -> float:
    """The same, where the predictions z (n,) are known."""
    x = long_doubles(x)
    return float(summed_loss(instance, z) + 0.5 * instance.lam * (x @ x))


def predictions(instance: Instance, x: ArrayLike) -> Long:
    """Ax (n,), and the best intercept where there is one."""
    return predicted(instance, x)[0]


def predicted(instance: Instance, x: ArrayLike) -> tuple[Long, float]:
    """The same, and that intercept; 0 where there is none."""
    used = np.flatnonzero(x)
    coef = long_doubles(x)[used]
    z = long_doubles(np.concatenate([long_doubles(part) @ coef for part in row_blocks(instance.A, used)]))
    if not instance.intercept:
        return z, 0.0
    row = np.asarray(z, dtype=np.float64)[None]
    level = float(find_levels(instance.formulas, instance.y, instance.weights, row)[0])
    return long_doubles(z + level), level


def row_blocks(A: object, columns: NDArray[np.integer[Any]] | None = None) -> Iterator[Any]:
    """A, or some columns of it, by blocks of rows: what is made of one of them is small beside the data."""
    rows = np.asarray(A)
    for some in row_slices(len(rows)):
        yield rows[some] if columns is None else rows[some][:, columns]


def summed_loss(instance: Instance, z: Long) -> np.longdouble:
    """L(z), the sum over rows, of predictions z (n,) that hold the intercept if there is one."""
    rows = row_values(instance, z)
    total: np.longdouble = np.sum(rows if instance.weights is None else long_doubles(instance.weights) * rows)
    return total


def row_values(instance: Instance, z: Long) -> Long:
    """The loss of each row at z, both (n,), for any row weights."""
    loss = instance.formulas
    parts = (loss.values(z[rows], long_doubles(instance.y[rows])) for rows in row_slices(len(z)))
    return long_doubles(np.concatenate([*parts]))


def long_doubles(values: object) -> Long:
    """An array of long doubles."""
    return np.asarray(values, dtype=np.longdouble)


@dataclass(frozen=True)
class ColumnInstance:
    """Column subset selection, as the caller knows it: a selection S of columns of A costs ||A - S S⁺ A||_F²."""

    A: FloatArray
    """(n, d), one column per candidate."""
    k: int
    """Largest number of columns."""

    loss = "column subset selection"

    def __post_init__(self) -> None:
        if self.A.ndim != 2:
            raise ValueError(f"A has {self.A.ndim} dimensions; expected a table (n, d).")


def may_choose(instance: Instance, columns: Iterable[int]) -> bool:
    """Whether a model may choose these columns and no others; of groups nothing is said."""
    if instance.hierarchy is None or instance.groups:
        return True
    spend(STEP + 32.0 * instance.units)
    everything = range(instance.units)
    state = first_region(instance.units, [*columns], [*{*everything}.difference(columns)])
    return instance.hierarchy.rule(instance.k).implied(state, everything) is not None


def inadmissible(instance: Instance, listed: Iterable[int]) -> str:
    """Why the set of units that are listed or forced in, with all it implies, is not admissible; empty when it is."""
    if instance.hierarchy is None:
        return ""
    rule, what = instance.hierarchy.rule(instance.k), "group" if instance.groups else "column"
    included = {*listed, *instance.force_in}
    state = rule.implied(first_region(instance.units, [*included], instance.force_out), range(instance.units))
    if state is None:
        return f"the model's {what}s lie in no set of at most {instance.k} that {instance.hierarchy.allows}."
    alone = next(rule.orphans(state), None)
    if alone is None:
        return ""
    return f"the model holds {what} {alone} without a parent; list the parent that was chosen, with coefficient 0."
