"""The problem: data, loss, k and lam, validated once and frozen.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   subject to  ||x||_0 <= k

L is a sum over rows (not a mean) and lam multiplies half the squared norm.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel._jit import available_threads, loss_session, parallel_section
from exactsel.algebra.spectrum import DENSE_UP_TO, lanczos_largest, largest_eigenvalue
from exactsel.algebra.threads import one_thread
from exactsel.errors import InputError
from exactsel.kernels.forms import GramData, RawData
from exactsel.kernels.levels import find_level
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.refit import gram_objectives, newton_objectives
from exactsel.kernels.rows import loss_gradient, loss_value
from exactsel.losses.adjusted import adjusted
from exactsel.losses.base import Loss
from exactsel.losses.huber import Huber
from exactsel.losses.quadratic import Quadratic
from exactsel.problem.checks import (
    checked_demands,
    checked_k,
    checked_lam,
    checked_matrix,
    checked_names,
    checked_vector,
    default_delta,
    make_loss,
)
from exactsel.problem.fit import Fit, fit_support
from exactsel.problem.frames import frame_matrix
from exactsel.problem.identity import data_hash, prepared_hash
from exactsel.problem.preparing import Preparation, check_two_classes, checked_weights, wants_intercept
from exactsel.rounding import UNIT
from exactsel.types import FloatArray, IntArray, StateArray

BOUNDED_MODEL_RADIUS = 1e6
"""With lam = 0 and dependent columns a lower bound speaks of models with abs(x_j) ||a_j|| <= this * ||y||."""

ALMOST_FLAT = 1e-6
"""Times the longest column and the slopes at the empty model: gradients are judged on this scale at least."""

WORTH_SHARING = 64
"""Fewer Gram refits than this (a few microseconds each) are done before other threads have woken up."""


_DATA_ONLY = ("gram", "norms", "raw", "reduced", "spectral_norm_squared")
"""Cached properties that depend on the data alone."""


class Problem:
    """One instance of best-subset selection.

    Parameters
    ----------
    A : array, sparse matrix or data frame (n, d)
        One row per observation, one column per candidate variable; finite numbers. float32 is converted, a sparse
        matrix made dense; a pandas, polars or pyarrow frame brings its column names.
    y : array (n,)
        Target; labels -1 and +1 for logistic loss.
    k : int
        Largest number of non-zero coefficients. More than d is taken as d, with a warning.
    loss : str or Loss
        ``"quadratic"``, ``"huber"``, ``"logistic"``, the name of a plug-in, or a loss object.
    lam : float
        Ridge weight, >= 0; 0 is allowed for quadratic loss only.
    delta : float, optional
        Huber threshold; 1.345 times the robust scale of y (median absolute deviation / 0.6745) when not given.
    feature_names : sequence of str, optional
        Names of the columns.
    must_have, must_not : sequence of int or str, optional
        Columns, by number or name, that every model holds (they count towards k, and their coefficients may still come
        out as zero), and columns that none may hold.

    Raises
    ------
    InputError
        With one sentence that says what was found, what was expected and what to do.
    """

    family = "regression"

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
        must_have: Sequence[int | str] = (),
        must_not: Sequence[int | str] = (),
    ) -> None:
        given, feature_names = frame_matrix(A, feature_names)
        matrix, target = checked_matrix(given), checked_vector(y)
        if matrix.shape[0] != target.size:
            raise InputError(
                f"A has {matrix.shape[0]} rows but y has {target.size} entries; they must describe the same rows."
            )
        self.AT: FloatArray = np.ascontiguousarray(matrix.T)
        """The transposed data (d, n), so that a column of A is contiguous; read-only."""
        self.y: FloatArray = target
        self.n, self.d = matrix.shape
        self.shared: dict[Any, Any] = {}
        """What was worked out from A and y and serves other k and lam as well; handed on by :meth:`replace`."""
        self.preparation: Preparation | None = None
        """What was done to the data before, see :meth:`prepared`."""
        self.weights: FloatArray | None = None
        """(n,) positive row weights of the loss; None where there are none, or where the data hold them."""
        self.intercept = False
        """Whether the loss has an unpenalised intercept; not where centred data stand for it."""
        self.AT.flags.writeable = False
        self.y.flags.writeable = False
        self._settle(checked_k(k, self.d), loss, lam, delta, feature_names, must_have, must_not)

    @classmethod
    def prepared(
        cls,
        A: ArrayLike,
        y: ArrayLike,
        k: int,
        *,
        intercept: bool = False,
        scale: bool = False,
        weights: ArrayLike | None = None,
        loss: str | Loss = "quadratic",
        **options: Any,
    ) -> Problem:
        """The problem with an unpenalised intercept, columns scaled to length √n, or row weights.

        What is searched are the prepared data; what is said, and proven, is about the data as given
        (:mod:`exactsel.problem.preparing`). Weights count as repeated rows, for the default Huber threshold too.

        Raises
        ------
        InputError
            As for the class, for weights that cannot be used, and for an intercept where all labels are equal.
        UnsupportedError
            For an intercept or weights with a loss that is not built in.
        """
        given, options["feature_names"] = frame_matrix(A, options.get("feature_names"))
        matrix, target = checked_matrix(given), checked_vector(y)
        name = loss if isinstance(loss, str) else loss.name
        centre = wants_intercept(intercept, name)
        known = None if weights is None else checked_weights(weights, len(matrix), name)
        if matrix.shape[0] != target.size or not (centre or scale or known is not None):
            return cls(matrix, target, k, loss=loss, **options)  # which says what is wrong, if anything
        if loss == "huber" and known is not None and options.get("delta") is None:
            options["delta"] = default_delta(target, known)
        made = Preparation.of(matrix, target, centre=centre, scale=scale, weights=known, loss=name)
        problem = cls(made.made.AT.T, made.made.y, k, loss=loss, **options)
        if made.loss_intercept:
            check_two_classes(problem.y, name)
        problem.__dict__.update(preparation=made, weights=made.loss_weights, intercept=made.loss_intercept)
        return problem

    def _settle(
        self, k: int, loss: str | Loss, lam: float | None, delta: float | None, feature_names: Sequence[str] | None,
        must_have: Sequence[int | str], must_not: Sequence[int | str],
    ) -> None:  # fmt: skip
        """Store what is not data, all but k checked here, and freeze."""
        self.k = k
        self.loss = make_loss(loss, delta, self.y)
        self.loss.check_target(self.y)
        self.lam = checked_lam(lam, None if self.is_quadratic else self.loss.name)
        self.feature_names = checked_names(feature_names, self.d)
        self.must_have, self.must_not = checked_demands(must_have, must_not, self.feature_names, self.d, k)
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a Problem is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

    @property
    def root_state(self) -> StateArray:
        """What is decided before the search begins, (d,): columns in, out, or free (exactsel.kernels.node)."""
        state = np.full(self.d, FREE, dtype=np.int8)
        state[list(self.must_have)], state[list(self.must_not)] = IN, OUT
        return state

    def __repr__(self) -> str:
        return f"Problem({self.loss_text}, n={self.n}, d={self.d}, k={self.k}, lam={self.lam:g})"

    @property
    def A(self) -> FloatArray:
        """The data (n, d), read-only."""
        return self.AT.T

    @property
    def is_quadratic(self) -> bool:
        """Whether the loss is the built-in quadratic one, for which the Gram matrix says everything."""
        return isinstance(self.loss, Quadratic)

    @property
    def infimum(self) -> float:
        """A number no objective is below, -inf if the loss knows none."""
        return float(self.loss.infimum)

    @cached_property
    def null_objective(self) -> float:
        """The size of the objective of the empty model: the scale on which small differences are judged."""
        return abs(self.objective(np.zeros(self.d)))

    @cached_property
    def row_loss(self) -> Any:
        """The loss as kernels take it: with the row weights and the intercept it has, if any."""
        if self.weights is None and not self.intercept:
            return self.loss
        return adjusted(self.loss, self.weights, self.intercept, self.n)

    @property
    def objective_text(self) -> str:
        """What is minimised, for people."""
        made = self.preparation
        inside = "Ax + c" if made is not None and made.centred else "Ax"
        over = "a sum over rows" if made is None or made.weights is None else "a weighted sum over rows"
        ridge = "||Sx||^2, S the columns' sizes" if made is not None and made.scaled else "||x||^2"
        return f"L({inside}) + (lam/2){ridge}, L {over}, {self.loss_text}, lam={self.lam:g}"

    def describe(self) -> dict[str, Any]:
        """The problem as plain data, without its arrays."""
        made = self.preparation
        return {
            "problem": self.family, "n": self.n, "d": self.d, "k": self.k, "loss": self.loss.name,
            "loss_parameters": self.loss_parameters, "lam": self.lam, "problem_hash": self.hash,
            "feature_names": self.feature_names, "must_have": self.must_have, "must_not": self.must_not,
            "intercept": made is not None and made.centred, "scale": made is not None and made.scaled,
            "weights": made is not None and made.weights is not None, "groups": None,
        }  # fmt: skip

    @property
    def loss_parameters(self) -> dict[str, float]:
        """Parameters of the loss by name, e.g. ``{"delta": 1.345}``."""
        return dict(zip(getattr(self.loss, "_fields", ()), map(float, tuple(self.loss)), strict=True))  # type: ignore[arg-type]

    @property
    def loss_text(self) -> str:
        """The loss as shown to people, e.g. ``huber(delta=1.345)``."""
        inside = ", ".join(f"{name}={value:.6g}" for name, value in self.loss_parameters.items())
        return f"{self.loss.name}({inside})" if inside else self.loss.name

    @cached_property
    def hash(self) -> str:
        """sha256 over everything that defines the problem (names excluded)."""
        demands = {"must_have": self.must_have, "must_not": self.must_not}
        return self.hash_with(**demands if self.must_have or self.must_not else {})

    def hash_with(self, **entries: Any) -> str:
        """sha256 over data, loss, k, lam and ``entries``, which may replace some of these."""
        header = {
            "loss": self.loss.name,
            "parameters": {name: value.hex() for name, value in self.loss_parameters.items()},
            "n": self.n, "d": self.d, "k": self.k, "lam": float(self.lam).hex(),
        }  # fmt: skip
        header |= entries
        made = self.preparation
        return data_hash(header, self.AT, self.y) if made is None else prepared_hash(header, made)

    @cached_property
    def norms(self) -> FloatArray:
        """Upper estimates of the column norms (d,)."""
        squares = np.einsum("ij,ij->i", self.AT, self.AT)
        norms: FloatArray = np.sqrt(squares) * (1.0 + (self.n + 8) * UNIT)
        return norms

    @cached_property
    def gram(self) -> GramData:
        """G = A'A, A'y and ||y||^2/2: all the quadratic loss needs."""
        with one_thread():  # so that the last bits, and the tree, do not depend on the machine's cores
            gram, b = self.AT @ self.AT.T, self.AT @ self.y
        return GramData(gram, b, 0.5 * float(self.y @ self.y), self.n, self.norms)

    @property
    def hessian(self) -> FloatArray:
        """A'A + lam I (d, d), the second derivative of the objective for quadratic loss; a new array each time."""
        hessian: FloatArray = self.gram.G.copy()
        hessian[np.diag_indices(self.d)] += self.lam
        return hessian

    @cached_property
    def raw(self) -> RawData:
        """The data in the form kernels take."""
        return RawData(self.AT, self.y, self.norms)

    @cached_property
    def reduced(self) -> tuple[FloatArray, FloatArray]:
        """A and y rotated and cut to at most d + 1 rows: every least-squares fit is the same on these."""
        if self.n <= self.d + 1:
            return self.A, self.y
        triangle = np.asarray(np.linalg.qr(np.column_stack([self.A, self.y]), mode="r"))
        return triangle[:, :-1], triangle[:, -1]

    @cached_property
    def spectral_norm_squared(self) -> float:
        """The largest eigenvalue of A'A, or of A' diag(w) A where the loss has weights, slightly enlarged."""
        smaller = min(self.d, self.n)
        AT = self.AT if self.weights is None else self.AT * np.sqrt(self.weights)
        if smaller > DENSE_UP_TO:
            largest = lanczos_largest(self._normal_product, self.d)
        elif self.d <= self.n:
            largest = largest_eigenvalue(self.gram.G if self.is_quadratic else AT @ AT.T)
        else:
            largest = largest_eigenvalue(AT.T @ AT)
        return max(largest * (1.0 + 1e-9), 1e-300)

    def _normal_product(self, vector: FloatArray) -> FloatArray:
        """A'A times a vector; two products with A where nobody needs A'A itself, which may not fit into memory."""
        if self.weights is not None:
            return np.asarray(self.AT @ ((vector @ self.AT) * self.weights))
        return self.gram.G @ vector if "gram" in self.__dict__ else self.AT @ (vector @ self.AT)

    def objective(self, x: ArrayLike) -> float:
        """P(x) for a full coefficient vector (d,), computed from the data."""
        coef = np.asarray(x, dtype=np.float64)
        used = np.flatnonzero(coef)
        with loss_session(self.loss):
            value = loss_value(self.row_loss, coef[used] @ self.AT[used], self.y)
        return float(value + 0.5 * self.lam * (coef[used] @ coef[used]))

    def gradient(self, x: ArrayLike, columns: IntArray | None = None) -> FloatArray:
        """Gradient of P at a full coefficient vector (d,), or its entries for some ``columns``."""
        coef = np.asarray(x, dtype=np.float64)
        used = np.flatnonzero(coef)
        residual = np.empty(self.n)
        with loss_session(self.loss):
            loss_gradient(self.row_loss, coef[used] @ self.AT[used], self.y, residual)
        if columns is None:
            return self.AT @ residual + self.lam * coef
        return self.AT[columns] @ residual + self.lam * coef[columns]

    def as_given(self, x: ArrayLike) -> tuple[FloatArray, float]:
        """The model x (d,) for the data as they were given to :meth:`prepared`: coefficients and intercept."""
        coef, level = np.asarray(x, dtype=np.float64), 0.0
        if self.intercept:
            level = float(find_level(self.row_loss, coef @ self.AT, self.y, np.empty(self.n), np.empty(self.n)))
        return (coef, level) if self.preparation is None else self.preparation.undo(coef, level)

    @cached_property
    def gradient_scale(self) -> float:
        """||grad P(0)||, the scale of every gradient tolerance, or a small part of what it could be."""
        slopes = np.empty(self.n)
        with loss_session(self.loss):
            loss_gradient(self.row_loss, np.zeros(self.n), self.y, slopes)
        steepest = float(self.norms.max() * np.linalg.norm(slopes))
        return max(float(np.linalg.norm(self.AT @ slopes)), ALMOST_FLAT * steepest)

    def fit(self, columns: Iterable[int]) -> Fit:
        """The exact minimiser of P over models that use only ``columns``."""
        return fit_support(self, np.unique(np.fromiter(columns, dtype=np.int64)))

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """Minimal objective on each support (a row of column numbers padded with -1), quick rather than exact.

        ``threads`` share the work, all cores by default. nan where the columns of a support are numerically
        dependent; :meth:`fit` handles those.
        """
        values = np.full(len(supports), np.nan)
        padded = np.ascontiguousarray(supports, dtype=np.int64).reshape(len(supports), -1 if len(supports) else 0)
        if self.is_quadratic and len(padded) < WORTH_SHARING:
            threads = 1
        with loss_session(self.loss), parallel_section(threads or available_threads()):
            if self.is_quadratic:
                gram = self.gram
                gram_objectives(gram.G, gram.b, gram.constant, self.lam, padded, values)
            else:
                tolerance = 1e-8 * self.gradient_scale
                newton_objectives(self.row_loss, self.AT, self.y, self.lam, padded, tolerance, values)
        return values

    def replace(self, **changes: Any) -> Problem:
        """A copy with some of k, lam, loss, delta, feature_names changed."""
        arguments: dict[str, Any] = {
            "k": self.k, "lam": self.lam, "loss": self.loss, "feature_names": self.feature_names,
            "must_have": self.must_have, "must_not": self.must_not,
        }  # fmt: skip
        if "loss" not in changes and changes.get("delta") is not None and isinstance(self.loss, Huber):
            arguments["loss"] = self.loss.name
        arguments = {"delta": None, **arguments, **changes}
        if self.preparation is not None:
            self.preparation.check_loss(arguments["loss"])
        arguments["k"] = checked_k(arguments["k"], self.d)
        # The data are the same and need not be checked again; what was worked out from them alone is the same too.
        kept = ("AT", "y", "n", "d", "shared", "preparation", "weights", "intercept")
        same = (*kept, *(name for name in _DATA_ONLY if name in self.__dict__))
        replaced = Problem.__new__(Problem)
        replaced.__dict__.update({name: self.__dict__[name] for name in same})
        replaced._settle(**arguments)
        return replaced
