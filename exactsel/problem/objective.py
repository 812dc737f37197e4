"""The objective: data, loss, lam and coefficient bounds, and all that can be said of models of its columns.

    P(x) = L(Ax) + (lam/2) ||x||^2

L is a sum over rows (not a mean) and lam multiplies half the squared norm. Coefficient bounds are a further term, 0 for
coefficients within them and infinite elsewhere (:mod:`exactsel.problem.coefficient_bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from exactsel._jit import interpreted
from exactsel.algebra.spectrum import DENSE_UP_TO, lanczos_largest, largest_eigenvalue
from exactsel.algebra.triangle import triangle
from exactsel.errors import UnsupportedError
from exactsel.kernels.columns import RawData
from exactsel.kernels.dual import dual_at_point, node_bound
from exactsel.kernels.forms import GramData
from exactsel.kernels.levels import find_level
from exactsel.kernels.node import node_columns
from exactsel.kernels.rows import loss_gradient, loss_value
from exactsel.losses.adjusted import AdjustedLoss, RowLoss, adjusted
from exactsel.losses.base import Loss
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.poisson import Poisson
from exactsel.losses.quadratic import Quadratic
from exactsel.losses.typical_curvature import typical_curvature
from exactsel.problem.capabilities import CLOSED_FORM, COEFFICIENTS, FREE_COEFFICIENTS, Capability, within_bounds
from exactsel.problem.checks import checked_lam, make_loss, name_of_loss
from exactsel.problem.design import freeze, squared_lengths
from exactsel.problem.fit import Fit, fit_support
from exactsel.problem.gram_data import gram_data, multiplied
from exactsel.problem.identity import data_hash, prepared_hash
from exactsel.problem.minima import minima
from exactsel.problem.preparing import Preparation, check_two_classes
from exactsel.problem.reduction import Reduction
from exactsel.problem.ridge_limits import RidgeLimits
from exactsel.problem.shared_property import shared_property
from exactsel.problem.storing import raw_data
from exactsel.problem.subset_objective import SubsetObjective
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray
from exactsel_certificates.equalities import Equalities

if TYPE_CHECKING:
    from exactsel.problem.coefficient_bounds import CoefficientBounds

ALMOST_FLAT = 1e-6
"""Times the longest column and the slopes at the empty model: gradients are judged on this scale at least."""

MOST_ROWS = 100_000
"""Rows whose losses numpy adds up in a tenth of a second; a kernel has to be loaded or compiled first."""

FREE = (Quadratic, Huber, Logistic, Poisson)
"""Losses that need no ridge where their problem has a solution without one."""

ROWS_AT_ONCE = 65_536
"""Rows of which the columns of a model are brought together."""


@dataclass(frozen=True, eq=False, repr=False)
class Objective(SubsetObjective):
    """P(x) of all columns; calling it gives its value, whether or not x lies within bounds. Made by :meth:`of`; no part
    of it can be changed.
    """

    kind: ClassVar[str] = "regression"
    AT: FloatArray
    y: FloatArray
    """The target (n,); read-only."""
    loss: Loss
    lam: float
    preparation: Preparation | None = None
    weights: FloatArray | None = None
    """(n,) positive row weights of the loss; None where there are none, or where the data hold them."""
    intercept: bool = False
    """Whether the loss has an unpenalised intercept; not where centred data stand for it."""
    offset: FloatArray | None = None
    """(n,) what has been taken off the target, as it is known beforehand; None where nothing has."""
    reduction: Reduction | None = None
    ridge_limits: RidgeLimits | None = None
    before: Objective | None = None
    divisors: FloatArray | None = None
    equalities: Equalities | None = None
    coefficient_bounds: CoefficientBounds | None = None
    shared: dict[Any, Any] = field(default_factory=dict)
    """What was worked out from A and y and serves other k, lam and bounds as well; handed on by :meth:`replace`."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, as another process is sent one: its data cannot be changed either, nor are they of another
        type, with which every kernel would be compiled again.
        """
        self.__dict__.update(state)
        freeze(self.AT, self.y)
        if "raw" in self.shared:
            self.raw.whole.flags.writeable = self.raw.y.flags.writeable = False
        if "gram" in self.shared:
            self.gram.AT.flags.writeable = False

    @classmethod
    def of(
        cls, AT: FloatArray, y: FloatArray, *, loss: str | Loss, lam: float | None, delta: float | None = None
    ) -> Objective:
        """The objective on data that are known to be usable, see :func:`exactsel.problem.checks.checked_data`."""
        made = make_loss(loss, delta, y)
        made.check_target(y)
        freeze(AT, y)
        return cls(AT, y, made, checked_lam(lam, made.name, isinstance(made, Quadratic), isinstance(made, FREE)))

    def prepared(self, prep: Preparation) -> Objective:
        """The same objective, known to be on data prepared in this way."""
        if prep.loss_intercept:
            check_two_classes(self.y, self.loss.name)
        return replace(self, preparation=prep, weights=prep.loss_weights, intercept=prep.loss_intercept, shared={})

    def within(self, bounds: CoefficientBounds | None) -> Objective:
        """The same with these bounds of coefficients, in the place of those there are."""
        return self.free if bounds is None else replace(self.free, coefficient_bounds=bounds.on(self.free))

    @property
    def free(self) -> Objective:
        """The objective without coefficient bounds; itself where there are none."""
        return self if self.coefficient_bounds is None else self.coefficient_bounds.objective

    def replace(self, **changes: Any) -> Objective:
        """The objective with some of loss, lam, delta changed; what was worked out from the data alone is kept."""
        if not changes:
            return self
        if self.before is not None:
            # A ridge would be one on columns as they were.
            if "gram" in self.shared and self.divisors is not None:
                self.before.shared.setdefault("gram", multiplied(self.gram, self.before.AT, self.divisors))
            return self.before.replace(**changes).within(self.coefficient_bounds)
        arguments = {"loss": self.loss, "lam": self.lam, "delta": None, **changes}
        if "loss" not in changes and changes.get("delta") is not None and isinstance(self.loss, Huber):
            arguments["loss"] = self.loss.name
        if self.preparation is not None:
            self.preparation.check_loss(arguments["loss"])
        if self.reduction is not None:
            self.reduction.refuse(arguments["loss"])
        if self.equalities is not None and name_of_loss(arguments["loss"]) != "quadratic":
            raise UnsupportedError("equalities go with quadratic loss; make a new problem without them.")
        new = Objective.of(self.AT, self.y, **arguments)
        return replace(self.free, loss=new.loss, lam=new.lam).within(self.coefficient_bounds)

    @property
    def close_enough(self) -> float:
        """Length of a gradient that costs a bound nothing to speak of; inf where no ridge is that small."""
        if self.ridge_limits is None:
            return np.inf
        return float(np.sqrt(self.lam * min(0.1 * self.ridge_limits.taken, 2e-12 * self.at_zero)))

    @cached_property
    def steepness(self) -> float:
        """A curvature that rows have about; steps begin with it, and no bound rests on it."""
        return typical_curvature(self.loss, self.y)

    @property
    def capabilities(self) -> Capability:
        """What its models are."""
        free = COEFFICIENTS | (CLOSED_FORM if self.is_quadratic else FREE_COEFFICIENTS)
        return free if self.coefficient_bounds is None else within_bounds(free)

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is the built-in quadratic one, for which the Gram matrix says everything."""
        return isinstance(self.loss, Quadratic)

    @property
    def infimum(self) -> float:
        """A number no value is below, -inf if the loss knows none."""
        return float(self.loss.infimum)

    @cached_property
    def at_zero(self) -> float:
        """The size of P(0): the scale on which small differences are judged."""
        # What is wanted before any search should not wait for the compiler, unless there are very many rows.
        with interpreted(self.n <= MOST_ROWS):
            return abs(self(np.zeros(self.d)))

    @cached_property
    def row_loss(self) -> RowLoss:
        """The loss as kernels take it: with the row weights and the intercept it has, if any."""
        if self.weights is None and not self.intercept:
            return self.loss
        adjusted_loss: AdjustedLoss = adjusted(self.loss, self.weights, self.intercept, self.n)
        return adjusted_loss

    @property
    def text(self) -> str:
        """The formula, for people."""
        preparation = self.preparation
        over = "a weighted sum" if preparation is not None and preparation.weighted else "a sum"
        ridge = "||Sx||^2, S the features' sizes" if preparation is not None and preparation.scaled else "||x||^2"
        included = "Ax + c" if preparation is not None and preparation.centred else "Ax"
        return f"L({included}) + (lam/2){ridge}, L {over} over rows, {self.loss_text}, lam={self.asked_lam:g}"

    @property
    def loss_parameters(self) -> dict[str, float]:
        """Parameters of the loss by name, e.g. ``{"delta": 1.345}``."""
        return dict(zip(getattr(self.loss, "_fields", ()), map(float, tuple(self.loss)), strict=True))  # type: ignore[arg-type]

    @property
    def loss_text(self) -> str:
        """The loss as shown to people, e.g. ``huber(delta=1.345)``."""
        included = ", ".join(f"{name}={value:.6g}" for name, value in self.loss_parameters.items())
        return f"{self.loss.name}({included})" if included else self.loss.name

    def describe(self) -> dict[str, Any]:
        """The loss and lam as plain data."""
        return {"loss": self.loss.name, "loss_parameters": self.loss_parameters, "lam": self.asked_lam}

    def hash_with(self, **entries: object) -> str:
        """sha256 over data, loss, lam and ``entries``."""
        header = {
            "loss": self.loss.name,
            "parameters": {name: value.hex() for name, value in self.loss_parameters.items()},
            "n": self.n, "d": self.d, "lam": float(self.asked_lam).hex(), **entries,
        }  # fmt: skip
        preparation = self.preparation
        header |= {} if self.equalities is None else {"equalities": self.equalities.entry()}
        bounds = self.coefficient_bounds
        header |= {} if bounds is None or bounds.none else {"bounds": bounds.entry()}
        return data_hash(header, self.AT, self.y) if preparation is None else prepared_hash(header, preparation)

    @shared_property
    def norms(self) -> FloatArray:
        """Upper estimates of the column norms (d,)."""
        return np.asarray(np.sqrt(squared_lengths(self.AT)) * (1.0 + (self.n + 8) * UNIT))

    @shared_property
    def gram(self) -> GramData:
        """G = A'A, A'y and ||y||^2/2: all the quadratic loss needs; A itself where it is smaller than G."""
        return gram_data(self.AT, self.y, self.norms)

    @property
    def hessian(self) -> FloatArray:
        """A'A + lam I (d, d), the second derivative for quadratic loss; a new array each time."""
        hessian: FloatArray = self.gram.G.copy()
        hessian[np.diag_indices(self.d)] += self.lam
        return hessian

    @shared_property
    def raw(self) -> RawData:
        """The data in the form kernels take; its norms are those of the columns as they are stored."""
        return raw_data(self.AT, self.y, self.intercept)

    @shared_property
    def reduced(self) -> tuple[FloatArray, FloatArray]:
        """A and y rotated and cut to at most d + 1 rows: every least-squares fit is the same on these."""
        if self.n <= self.d + 1:
            return self.A, self.y
        factor = triangle(self.A, self.y)
        return factor[:, :-1], factor[:, -1]

    @shared_property
    def spectral_norm_squared(self) -> float:
        """The largest eigenvalue of A'A, or of A' diag(w) A where the loss has weights, slightly enlarged."""
        if min(self.d, self.n) > DENSE_UP_TO or self.on_demand:
            largest = lanczos_largest(self._normal_product, self.d)
        elif self.d <= self.n:
            largest = largest_eigenvalue(self.gram.G if self.is_quadratic else self._weighted_gram())
        else:
            AT = self.AT if self.weights is None else self.AT * np.sqrt(self.weights)
            largest = largest_eigenvalue(AT.T @ AT)
        return max(largest * (1.0 + 1e-9), 1e-300)

    def _weighted_gram(self) -> FloatArray:
        """A' diag(w) A (d, d), some rows at a time."""
        if self.weights is None:
            return np.asarray(self.AT @ self.AT.T)
        total = np.zeros((self.d, self.d))
        for rows in self._row_blocks():
            part = self.AT[:, rows] * np.sqrt(self.weights[rows])
            total += part @ part.T
        return total

    def _row_blocks(self) -> list[slice]:
        return [slice(first, first + ROWS_AT_ONCE) for first in range(0, self.n, ROWS_AT_ONCE)]

    def predicted(self, coef: FloatArray) -> FloatArray:
        """Ax (n,) for coefficients (d,), without an intercept; no column is copied as a whole."""
        used = np.flatnonzero(coef)
        return np.concatenate([coef[used] @ self.AT[used, rows] for rows in self._row_blocks()])

    def _normal_product(self, vector: FloatArray) -> FloatArray:
        """A'A times a vector; two products with A where A'A itself is not needed, as it may not fit into memory."""
        if self.weights is not None:
            return np.asarray(self.AT @ ((vector @ self.AT) * self.weights))
        return self.gram.G @ vector if "gram" in self.shared else self.AT @ (vector @ self.AT)

    def __call__(self, x: ArrayLike) -> float:
        """P(x) for a full coefficient vector (d,), computed from the data."""
        coef = np.asarray(x, dtype=np.float64)
        used = np.flatnonzero(coef)
        value = loss_value(self.row_loss, self.predicted(coef), self.y)
        return float(value + 0.5 * self.lam * (coef[used] @ coef[used]))

    def gradient(self, x: ArrayLike, columns: IntArray | None = None) -> FloatArray:
        """Gradient of P at a full coefficient vector (d,), or its entries for some ``columns``."""
        coef = np.asarray(x, dtype=np.float64)
        slopes = np.empty(self.n)
        loss_gradient(self.row_loss, self.predicted(coef), self.y, slopes)
        if columns is None:
            return self.AT @ slopes + self.lam * coef
        total = np.zeros(len(columns))
        for rows in self._row_blocks():
            total += self.AT[columns, rows] @ slopes[rows]
        return total + self.lam * coef[columns]

    @cached_property
    def gradient_scale(self) -> float:
        """||grad P(0)||, the scale of every gradient tolerance, or a small part of what it could be."""
        slopes = np.empty(self.n)
        loss_gradient(self.row_loss, np.zeros(self.n), self.y, slopes)
        steepest = float(self.norms.max() * np.linalg.norm(slopes))
        return max(float(np.linalg.norm(self.AT @ slopes)), ALMOST_FLAT * steepest)

    def fit(self, columns: IntArray) -> Fit:
        """The best admissible model on ``columns``, see :func:`exactsel.problem.fit.fit_support`."""
        bounds = self.coefficient_bounds
        return fit_support(self, columns) if bounds is None else bounds.fit(columns)

    def minima(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """The smallest value on each set of columns, see :func:`exactsel.problem.minima.minima`."""
        bounds = self.coefficient_bounds
        return minima(self, supports, threads) if bounds is None else bounds.minima(supports, threads)

    @cached_property
    def recent_fits(self) -> dict[bytes, Fit]:
        """Recent fits, by their columns (see :func:`exactsel.problem.fit.fit_support`)."""
        return {}

    @shared_property
    def shortest_share(self) -> float:
        """Length of the shortest column that is not zero, as a part of that of the longest; 1 where all are zero."""
        lengths = self.norms[self.norms > 0.0]
        return float(lengths.min() / lengths.max()) if lengths.size else 1.0

    def gradient_tolerance(self, share: float) -> float:
        """A norm of gradients that is a ``share`` of the :attr:`gradient_scale`, for the shortest column as well.

        An entry of a gradient goes by the length of its column: what is nothing to a long one may be all there is of a
        short one.
        """
        return min(share * self.gradient_scale * self.shortest_share, self.close_enough)

    def dual_bound(self, x: FloatArray, state: StateArray, k: int) -> float:
        """Formula (2) for the region ``state`` (d,) of models of at most k columns, at the dual vector grad L(Ax).

        x is (d,), any model; lam > 0. Rounding is accounted for: the value holds for the exact numbers of the data.
        """
        columns, fixed = node_columns(state)
        places = min(k - fixed, columns.size - fixed)
        if places <= 0:
            columns, places = columns[:fixed], 0
        z = self.predicted(x)
        b, q, v = np.empty(self.n), np.empty(columns.size), np.empty(columns.size)
        base = dual_at_point(self.row_loss, self.raw.AT, self.y, self.raw.norms, columns, z, b, q, v)
        return float(node_bound(base, q, fixed, places, self.lam, np.empty(places + 1)))

    def coef_as_given(self, x: ArrayLike) -> FloatArray:
        """The coefficients :meth:`as_given` returns; the intercept, which takes longer, is not looked for."""
        coef = np.asarray(x, dtype=np.float64)
        return coef if self.preparation is None else coef / self.preparation.scale

    def as_given(self, x: ArrayLike) -> tuple[FloatArray, float]:
        """The model x (d,) for the data as they were given before preparation: coefficients and intercept."""
        coef, level = np.asarray(x, dtype=np.float64), 0.0
        if self.intercept:
            level = float(find_level(self.row_loss, coef @ self.AT, self.y, np.empty(self.n), np.empty(self.n)))
        if self.reduction is not None:
            raw_coef = self.coef_as_given(coef)
            return raw_coef, self.reduction.level(raw_coef)
        return (coef, level) if self.preparation is None else self.preparation.undo(coef, level)
