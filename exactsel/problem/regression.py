"""The problem: an objective, what is chosen, and how much of it; validated once and frozen.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   subject to  ||x||_0 <= k

The objective is :class:`exactsel.problem.objective.Objective`, with coefficient bounds as a term where there are any
(:class:`exactsel.problem.coefficient_bounds.CoefficientBounds`). What is chosen, columns or groups of them, and what is
demanded of the choice are :class:`exactsel.problem.units.Units`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from exactsel.arguments import switch, with_aliases
from exactsel.errors import InputError
from exactsel.kernels.columns import RawData
from exactsel.kernels.forms import GramData
from exactsel.losses.adjusted import RowLoss
from exactsel.losses.base import Loss
from exactsel.problem.checks import checked_data, checked_k, default_delta, name_of_loss, row_numbers
from exactsel.problem.constraints import NAMES, under, units_of
from exactsel.problem.groups import GroupSpec
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.labels import labels_for
from exactsel.problem.objective import Objective
from exactsel.problem.offsets import has_offset, knowing, with_offset
from exactsel.problem.preparing import Preparation, checked_weights, wants_intercept
from exactsel.problem.reduction import Reduction
from exactsel.problem.row_labels import check_rows
from exactsel.problem.units import Units
from exactsel.types import FloatArray, IntArray, StateArray

BOUNDED_MODEL_RADIUS = 1e6
"""With lam = 0 and dependent columns a lower bound speaks of models with abs(x_j) ||a_j|| <= this * ||y||."""


class Problem(SubsetProblem):
    """One instance of best-subset selection.

    Parameters
    ----------
    A : array, sparse matrix or data frame (n, d)
        One row per observation, one column per candidate variable; finite numbers. float32 is converted, a small
        sparse matrix made a table (:mod:`exactsel.problem.design`); a pandas, polars or pyarrow frame brings its names.
    y : array (n,)
        Target; for logistic and squared hinge loss labels -1 and +1. 0 and 1, and two texts in alphabetical order, are
        read as these, with a warning.
    k : int
        Largest number of non-zero coefficients. More than d is taken as d, with a warning.
    loss : str or Loss
        ``"quadratic"``, ``"huber"``, ``"logistic"``, ``"squared_hinge"``, ``"poisson"``, the name of a plug-in, or a
        loss object.
    lam : float
        Ridge weight, >= 0; 0 is the default for quadratic loss, and allowed for Huber and logistic loss
        (:mod:`exactsel.problem.infinitesimal_ridge`; the attribute then is the small ridge that is searched with).
    delta : float, optional
        Threshold of Huber loss, or the field of that name of a plug-in's loss; 1.345 times the robust scale of y
        (median absolute deviation / 0.6745) when not given.
    feature_names : sequence of str, optional
        Names of the columns.
    force_in, force_out : sequence of int or str, optional
        Columns, by number or name, that every model holds (they count towards k, and their coefficients may still come
        out as zero), and columns that none may hold.
    groups : mapping of str to sequence of (int or str), or sequence of labels, optional
        Columns that are chosen together; k then counts groups, and so do all numbers of what is chosen. See
        :class:`exactsel.GroupedProblem`.
    hierarchy : mapping, optional
        Units that are chosen only together with their parents, by number or name: ``{"a*b": ["a", "b"]}``. The models
        are those on at most k units, parents included; see :mod:`exactsel.problem.hierarchy`.
    hierarchy_kind : str
        ``strong`` (with all their parents) or ``weak`` (with one of them at least).
    per_group : int, optional
        Columns are chosen one by one, at most so many of each of the ``groups`` (:mod:`exactsel.problem.limits`).
    not_both : sequence of pairs, optional
        Units that exclude each other, by number or name: ``[("a", "b"), ("b", "c")]``; of more than two at most one.

    Raises
    ------
    InputError
        With one sentence that says what was found, what was expected and what to do.
    """

    objective: Objective
    """P; calling it with coefficients of all columns (columns,) gives its value, whether or not they are admissible."""

    def __init__(
        self,
        A: ArrayLike,
        y: ArrayLike,
        k: int,
        *,
        loss: str | Loss = "quadratic",
        lam: float | None = None,
        delta: float | None = None,
        feature_names: Sequence[str] | None = None,
        force_in: Sequence[int | str] = (),
        force_out: Sequence[int | str] = (),
        groups: GroupSpec | None = None,
        hierarchy: Mapping[Any, Any] | None = None,
        hierarchy_kind: str = "strong",
        per_group: int | None = None,
        not_both: Iterable[Any] | None = None,
    ) -> None:
        name_of_loss(loss)
        check_rows(A, y=y)
        AT, target, names = checked_data(A, labels_for(loss, y), feature_names, groups, hierarchy)
        k = checked_k(k, len(AT))
        objective = Objective.of(AT, target, loss=loss, lam=lam, delta=delta)
        related = {"hierarchy": hierarchy, "hierarchy_kind": hierarchy_kind, "per_group": per_group}
        units = units_of(len(AT), names, force_in, force_out, groups, **related, not_both=not_both)
        self._settle(objective, units, units.limited(k))

    @classmethod
    @with_aliases
    def prepared(
        cls,
        A: ArrayLike,
        y: ArrayLike,
        k: int,
        *,
        fit_intercept: bool | str = False,
        standardize: bool = False,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        loss: str | Loss = "quadratic",
        **options: Any,
    ) -> Problem:
        """The problem with an unpenalised intercept, columns scaled to length √n, row weights or an offset (n,).

        What is searched are the prepared data; what is said, and proven, is about the data as given
        (:mod:`exactsel.problem.preparing`). The intercept "auto" is one for losses that can have one. Weights count as
        repeated rows, for the default Huber threshold too. ``intercept``, ``scale`` and ``weights`` are other words.

        Raises
        ------
        InputError
            As for the class, for weights that cannot be used, and for an intercept where all labels are equal.
        UnsupportedError
            For an intercept or weights with a loss that is not declared to take them; for scaling with an offset of
            Poisson loss.
        """
        check_rows(A, y=y, sample_weight=sample_weight, offset=offset)
        name, scale, wanted = name_of_loss(loss), switch("standardize", standardize), fit_intercept
        centre = wants_intercept(wanted if isinstance(wanted, str) else switch("fit_intercept", wanted), loss)
        needs, names = (scale, sample_weight, *map(options.get, ("groups", "hierarchy"))), options.get("feature_names")
        AT, target, options["feature_names"] = checked_data(A, labels_for(loss, y), names, *needs)
        counts = None if sample_weight is None else row_numbers(sample_weight, "the weights", refuse=False)
        weights, exposure = None if counts is None else checked_weights(counts, target.size, loss), None
        if offset is not None:
            target, weights, exposure = with_offset(loss, target, weights, row_numbers(offset, "the offset"), scale)
        if not (centre or scale or weights is not None):
            return knowing(cls(AT.T, target, k, loss=loss, **options), offset)
        if loss == "huber" and weights is not None and options.get("delta") is None:
            options["delta"] = default_delta(target, weights)
        preparation = Preparation.of(
            AT.T, target, centre=centre, scale=scale, weights=weights, loss=name, exposure=exposure
        )
        lam, delta, names = (options.pop(name, None) for name in ("lam", "delta", "feature_names"))
        size = checked_k(k, len(preparation.made.AT))
        objective = Objective.of(preparation.made.AT, preparation.made.y, loss=loss, lam=lam, delta=delta)
        units = units_of(len(AT), names, **options)
        return knowing(cls.of(objective.prepared(preparation), units, units.limited(size)), offset)

    def limited(self, groups: GroupSpec | None, per_group: int) -> Problem:
        """The same problem with at most ``per_group`` columns from each of the groups, see the class."""
        return self.choosing(under(self.units, {"groups": groups, "per_group": per_group}), self.k)

    def standing_for(self, reduction: Reduction) -> Problem:
        """The same problem, its rows known to stand for others (:mod:`exactsel.problem.reduction`)."""
        if reduction.errors.size != self.units.columns + 1:
            raise InputError(
                f"what is known of the rows is about {reduction.errors.size - 1} features, but there are "
                f"{self.units.columns}; write the file again with exactsel data gram."
            )
        assert self.coefficient_bounds is None  # which need the rows themselves
        before_reduced = None if self.objective.before is None else replace(self.objective.before, reduction=reduction)
        return self.of(replace(self.objective, reduction=reduction, before=before_reduced), self.units, self.k)

    @property
    def y(self) -> FloatArray:
        """The target (n,) as it is searched."""
        return self.objective.y

    @property
    def target(self) -> FloatArray:
        """What is predicted (n,), as given but for labels, which are -1 and +1, and what an offset takes off it."""
        return self.objective.y if self.preparation is None else self.preparation.y

    @property
    def loss(self) -> Loss:
        """The loss of a row."""
        return self.objective.loss

    @property
    def lam(self) -> float:
        """The ridge weight that is searched with; a small one may stand for none."""
        return self.objective.lam

    @property
    def weights(self) -> FloatArray | None:
        """(n,) positive row weights of the loss; None where there are none, or where the data hold them."""
        return self.objective.weights

    @property
    def intercept(self) -> bool:
        """Whether the loss has an unpenalised intercept; not where centred data stand for it."""
        return self.objective.intercept

    @property
    def shared(self) -> dict[Any, Any]:
        """What was worked out from A and y and serves other k and lam as well."""
        return self.objective.shared

    @property
    def row_loss(self) -> RowLoss:
        """The loss as kernels take it: with the row weights and the intercept it has, if any."""
        return self.objective.row_loss

    @property
    def loss_parameters(self) -> dict[str, float]:
        """Parameters of the loss by name, e.g. ``{"delta": 1.345}``."""
        return self.objective.loss_parameters

    @property
    def loss_text(self) -> str:
        """The loss as shown to people, e.g. ``huber(delta=1.345)``."""
        return self.objective.loss_text

    @property
    def norms(self) -> FloatArray:
        """Upper estimates of the column norms."""
        return self.objective.norms

    @property
    def gram(self) -> GramData:
        """G = A'A, A'y and ||y||^2/2: all the quadratic loss needs."""
        return self.objective.gram

    @property
    def hessian(self) -> FloatArray:
        """A'A + lam I, the second derivative of the objective for quadratic loss; a new array each time."""
        return self.objective.hessian

    @property
    def raw(self) -> RawData:
        """The data in the form kernels take."""
        return self.objective.raw

    @property
    def reduced(self) -> tuple[FloatArray, FloatArray]:
        """A and y with at most one row more than there are columns: every least-squares fit is the same on these."""
        return self.objective.reduced

    @property
    def spectral_norm_squared(self) -> float:
        """The largest eigenvalue of A'A, or of A' diag(w) A where the loss has weights, slightly enlarged."""
        return self.objective.spectral_norm_squared

    @property
    def gradient_scale(self) -> float:
        """||grad P(0)||, the scale of every gradient tolerance, or a small part of what it could be."""
        return self.objective.gradient_scale

    def gradient(self, x: ArrayLike, columns: IntArray | None = None) -> FloatArray:
        """Gradient of P at a full coefficient vector (columns,), or its entries for some ``columns``."""
        return self.objective.gradient(x, columns)

    def as_given(self, x: ArrayLike) -> tuple[FloatArray, float]:
        """The model x (columns,) for the data as they were given to :meth:`prepared`: coefficients and intercept."""
        return self.objective.as_given(x)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The columns of every group, columns on their own included; empty where columns are chosen one by one."""
        return self.units.groups

    def columns_of(self, support: Iterable[int]) -> IntArray:
        """The columns of what a support names, ascending."""
        return self.units.columns_of(support)

    @cached_property
    def inner(self) -> Problem:
        """The problem of choosing among all columns, without a limit, demands or coefficient bounds."""
        units = Units(self.units.columns, self.units.column_names, coding=self.units.coding)
        return Problem.held(self.objective.free, units, units.d)  # its ridge too, where a small one stands for none

    def choosing(self, units: Units, k: int) -> Problem:
        """The same objective and bounds, where at most k of other units on the same columns are chosen."""
        return Problem.of(self.objective, units, k)

    def bound_at(self, x: FloatArray, state: StateArray) -> float:
        """The dual bound of the region ``state`` (d,) at the gradient of L at Ax; x is (columns,), any model.

        With free coefficients the region is one of single columns, and lam > 0.
        """
        if self.coefficient_bounds is not None:
            return self.coefficient_bounds.dual_bound(x, state, self.k, self.units)
        return self.objective.dual_bound(x, state, self.k)

    def solved_from_data(self, state: StateArray, allowed: IntArray) -> tuple[float, FloatArray] | None:
        """A bound of a convex region, whose models may have the units ``allowed``, and the model that proves it.

        It is sharper than that of the kernels where the data say more than their Gram matrix. None for lam = 0, and for
        quadratic loss within bounds, whose bound is worked out from the data anyway.
        """
        bounded = self.coefficient_bounds is not None
        if self.objective.is_quadratic if bounded else self.lam == 0:
            return None
        coef = self.fit(allowed).coef
        return self.bound_at(coef, state if bounded else self.units.region_of_columns(state, allowed)), coef

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays. Where groups are chosen, ``d`` counts them."""
        objective, made, bounds = self.objective, self.preparation, self.coefficient_bounds
        met, reduction = objective.equalities, objective.reduction
        return super().describe() | {
            "force_in": self.force_in, "force_out": self.force_out,
            "intercept": made is not None and made.centred, "scale": made is not None and made.scaled,
            "weights": made is not None and made.weighted, "offset": has_offset(objective),
            "bounds": None if bounds is None or bounds.none else bounds.describe(), **dict.fromkeys(NAMES),
            **self.units.describe(), "equalities": None if met is None else met.describe(),
            "reduction": None if reduction is None else reduction.describe(),
        }  # fmt: skip
