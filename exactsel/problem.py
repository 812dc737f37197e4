"""The problem: data, loss, k and lam, validated once and frozen.

    minimise  P(x) = L(Ax) + (lam/2) ||x||^2   subject to  ||x||_0 <= k

L is a sum over rows (not a mean) and lam multiplies half the squared norm.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel import registry
from exactsel._jit import available_threads, loss_session, parallel_section
from exactsel.errors import InputError
from exactsel.fit import Fit, fit_support
from exactsel.kernels.apg import GramData, RawData
from exactsel.kernels.loss import loss_gradient, loss_value
from exactsel.kernels.refit import gram_objectives, newton_objectives
from exactsel.losses.base import POINT_FUNCTIONS, Loss
from exactsel.losses.quadratic import Quadratic
from exactsel.types import FloatArray, IntArray

BOUNDED_MODEL_RADIUS = 1e6
"""With lam = 0 and dependent columns a lower bound speaks of models with abs(x_j) ||a_j|| <= this * ||y||."""


WORTH_SHARING = 64
"""Fewer Gram refits than this (a few microseconds each) are done before other threads have woken up."""


class Problem:
    """One instance of best-subset selection.

    Parameters
    ----------
    A : array (n, d)
        One row per observation, one column per candidate variable; finite numbers. float32 is converted.
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

    Raises
    ------
    InputError
        With one sentence that says what was found, what was expected and what to do.
    """

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
    ) -> None:
        matrix, target = _checked_matrix(A), _checked_vector(y)
        if matrix.shape[0] != target.size:
            raise InputError(
                f"A has {matrix.shape[0]} rows but y has {target.size} entries; they must describe the same rows."
            )
        self.AT: FloatArray = np.ascontiguousarray(matrix.T)
        """The transposed data (d, n), so that a column of A is contiguous; read-only."""
        self.y: FloatArray = target
        self.n, self.d = matrix.shape
        self.k = _checked_k(k, self.d)
        self.loss = make_loss(loss, delta, target)
        self.loss.check_target(target)
        self.lam = _checked_lam(lam, self.is_quadratic, self.loss.name)
        self.feature_names = _checked_names(feature_names, self.d)
        self.AT.flags.writeable = False
        self.y.flags.writeable = False
        self._frozen = True

    def __setattr__(self, name: str, value: Any) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"a Problem is frozen; make a new one instead of changing '{name}'.")
        super().__setattr__(name, value)

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
        header = {
            "loss": self.loss.name,
            "parameters": {name: value.hex() for name, value in self.loss_parameters.items()},
            "n": self.n, "d": self.d, "k": self.k, "lam": float(self.lam).hex(),
        }  # fmt: skip
        digest = hashlib.sha256(b"exactsel-problem-v1\0" + json.dumps(header, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.A, dtype="<f8").tobytes())
        digest.update(self.y.astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def norms(self) -> FloatArray:
        """Upper estimates of the column norms (d,)."""
        squares = np.einsum("ij,ij->i", self.AT, self.AT)
        norms: FloatArray = np.sqrt(squares) * (1.0 + (self.n + 8) * 2.0**-53)
        return norms

    @cached_property
    def gram(self) -> GramData:
        """G = A'A, A'y and ||y||^2/2: all the quadratic loss needs."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, "blas"):  # so that the last bits, and the tree, do not depend on the machine's cores
            gram, b = self.AT @ self.AT.T, self.AT @ self.y
        return GramData(gram, b, 0.5 * float(self.y @ self.y), self.n, self.norms)

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
        """The largest eigenvalue of A'A, slightly enlarged."""
        small = self.AT @ self.AT.T if self.d <= self.n else self.A @ self.AT
        if small.shape[0] <= 1000:
            largest = float(np.linalg.eigvalsh(small)[-1])
        else:
            vector = np.ones(small.shape[0]) / math.sqrt(small.shape[0])
            for _ in range(100):
                image = small @ vector
                largest = float(np.linalg.norm(image))
                vector = image / largest if largest > 0 else vector
            largest *= 1.02
        return max(largest * (1.0 + 1e-9), 1e-300)

    def objective(self, x: ArrayLike) -> float:
        """P(x) for a full coefficient vector (d,), computed from the data."""
        coef = np.asarray(x, dtype=np.float64)
        used = np.flatnonzero(coef)
        with loss_session(self.loss):
            value = loss_value(self.loss, coef[used] @ self.AT[used], self.y)
        return float(value + 0.5 * self.lam * (coef[used] @ coef[used]))

    def gradient(self, x: ArrayLike) -> FloatArray:
        """Gradient of P at a full coefficient vector (d,)."""
        coef = np.asarray(x, dtype=np.float64)
        used = np.flatnonzero(coef)
        residual = np.empty(self.n)
        with loss_session(self.loss):
            loss_gradient(self.loss, coef[used] @ self.AT[used], self.y, residual)
        return self.AT @ residual + self.lam * coef

    @cached_property
    def gradient_scale(self) -> float:
        """1 + ||grad P(0)||, the scale of every gradient tolerance."""
        return 1.0 + float(np.linalg.norm(self.gradient(np.zeros(self.d))))

    def fit(self, columns: Iterable[int]) -> Fit:
        """The exact minimiser of P over models that use only ``columns``."""
        return fit_support(self, np.unique(np.fromiter(columns, dtype=np.int64)))

    def objectives(self, supports: IntArray, threads: int | None = None) -> FloatArray:
        """Minimal objective on each support (a row of column numbers padded with -1), quick rather than exact.

        ``threads`` share the work, all cores by default. nan where the columns of a support are numerically
        dependent; :meth:`fit` handles those.
        """
        values = np.full(len(supports), np.nan)
        padded = np.ascontiguousarray(supports, dtype=np.int64)
        if self.is_quadratic and len(padded) < WORTH_SHARING:
            threads = 1
        with loss_session(self.loss), parallel_section(threads or available_threads()):
            if self.is_quadratic:
                gram = self.gram
                gram_objectives(gram.G, gram.b, gram.constant, self.lam, padded, values)
            else:
                tolerance = 1e-8 * self.gradient_scale
                newton_objectives(self.loss, self.AT, self.y, self.lam, padded, tolerance, values)
        return values

    def replace(self, **changes: Any) -> Problem:
        """A copy with some of k, lam, loss, delta, feature_names changed."""
        arguments: dict[str, Any] = {
            "k": self.k, "lam": self.lam, "loss": self.loss, "feature_names": self.feature_names
        }  # fmt: skip
        arguments.update(changes)
        return Problem(self.A, self.y, **arguments)


def make_loss(loss: str | Loss, delta: float | None, y: FloatArray) -> Loss:
    """Turn a name or an object into a checked loss; ``delta`` is for Huber, from the scale of y by default."""
    if not isinstance(loss, str):
        missing = [name for name in ("name", "smoothness", "infimum", *POINT_FUNCTIONS) if not hasattr(loss, name)]
        if missing:
            raise InputError(f"{loss!r} cannot be used as a loss: it lacks {', '.join(missing)}.")
        made = loss
    else:
        kind = registry.load("losses", loss)
        fields = getattr(kind, "_fields", ())
        if fields == ("delta",):
            made = kind(default_delta(y) if delta is None else float(delta))
        elif not fields:
            made = kind()
        else:
            raise InputError(f"loss '{loss}' has the parameters {', '.join(fields)}; pass a loss object instead.")
    if delta is not None and not hasattr(made, "delta"):
        raise InputError(f"delta is given, but {made.name} loss has no such parameter; use --loss huber or drop delta.")
    made.check_parameters()
    return made


def default_delta(y: FloatArray) -> float:
    """1.345 times the robust scale of y (median absolute deviation / 0.6745)."""
    scale = float(np.median(np.abs(y - np.median(y)))) / 0.6745
    if scale == 0.0:
        raise InputError(
            "more than half of y has the same value, so the default Huber threshold would be 0; give delta (--delta)."
        )
    return 1.345 * scale


def _checked_matrix(A: ArrayLike) -> FloatArray:
    matrix = _as_floats(A, "A")
    if matrix.ndim != 2:
        raise InputError(f"A has {matrix.ndim} dimension(s), expected a table of rows and columns (2 dimensions).")
    if 0 in matrix.shape:
        raise InputError(f"A is empty (shape {matrix.shape[0]} x {matrix.shape[1]}); give at least one row and column.")
    return matrix


def _checked_vector(y: ArrayLike) -> FloatArray:
    vector = _as_floats(y, "y")
    if vector.ndim == 2 and 1 in vector.shape:
        vector = vector.reshape(-1)
    if vector.ndim != 1:
        raise InputError(f"y has {vector.ndim} dimensions, expected one number per row (1 dimension).")
    return vector


def _as_floats(values: ArrayLike, name: str) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not numeric; encode text and categories as numbers first.") from None
    if np.iscomplexobj(np.asarray(values)):
        raise InputError(f"{name} holds complex numbers; only real numbers are supported.")
    bad = int(np.size(array) - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InputError(
            f"{name} holds {bad} value(s) that are NaN or infinite; remove or fill in those entries first."
        )
    return array


def _checked_k(k: Any, d: int) -> int:
    if k is None:
        raise InputError("k, the largest number of columns in the model, is missing; give -k or store k in the file.")
    try:
        whole = not isinstance(k, bool) and int(k) == k
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise InputError(f"k is {k!r}, but the number of columns must be a whole number.")
    if k < 0:
        raise InputError(f"k is {int(k)}, but the number of columns cannot be negative.")
    if k > d:
        warnings.warn(f"k = {int(k)} is more than the {d} columns of A; using k = {d}.", stacklevel=4)
        return d
    return int(k)


def _checked_lam(lam: Any, quadratic: bool, loss: str) -> float:
    if lam is None:
        raise InputError("lam, the ridge weight, is missing; give --lam (0 for none) or store lam in the file.")
    try:
        value = float(lam)
    except (TypeError, ValueError):
        raise InputError(f"lam is {lam!r}, but the ridge weight must be a number.") from None
    if not math.isfinite(value) or value < 0:
        raise InputError(f"lam is {value:g}, but the ridge weight must be a finite number that is not negative.")
    if value == 0 and not quadratic:
        raise InputError(f"lam is 0, which only quadratic loss allows; give a positive --lam for {loss} loss.")
    return value


def _checked_names(names: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    checked = tuple(str(name) for name in names)
    if len(checked) != d:
        raise InputError(f"{len(checked)} feature names were given for {d} columns; give one name per column.")
    return checked
