"""Random problems made to break things: offsets, scales, weights, ties, dependent columns; each from its seed alone."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = Any
"""A numpy array."""

LOSSES = ("quadratic", "huber", "logistic", "css")


@dataclass(frozen=True)
class Case:
    """The data and options of a problem; ``k``, ``force_in`` and ``force_out`` count groups where there are labels."""

    A: Array
    y: Array
    k: int
    loss: str
    """A loss, or ``css`` for column subset selection."""
    lam: float = 0.0
    delta: float | None = None
    weights: Array | None = None
    intercept: bool = False
    scale: bool = False
    force_in: tuple[int, ...] = ()
    force_out: tuple[int, ...] = ()
    labels: tuple[str | None, ...] | None = None
    """The group of every column."""
    kind: str = ""
    """What is awkward about it."""
    offset: Array | None = None
    """What is added to the prediction of each row."""
    per_group: int | None = None
    """Columns are chosen one by one, at most so many with the same label."""
    hierarchy: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Columns that are chosen only with all their parents."""
    lower: tuple[float, ...] | None = None
    """Limits of the coefficients, where there are any."""
    upper: tuple[float, ...] | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    """Options of the solve."""

    @property
    def d(self) -> int:
        """Number of columns."""
        return int(self.A.shape[1])

    @property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The columns of every group, in the order of their first columns; each column alone where there are none."""
        held: dict[Any, list[int]] = {}
        labels = self.labels if self.labels and self.per_group is None else (None,) * self.d
        for j, label in enumerate(labels):
            held.setdefault(("alone", j) if label is None else label, []).append(j)
        return tuple(tuple(columns) for columns in held.values())

    def problem(self) -> Any:
        """The problem as exactsel takes it; InputError where it is refused."""
        from exactsel import ColumnSubsetProblem, Problem
        from exactsel.problem.boxed import with_bounds
        from exactsel.problem.grouped import GroupedProblem

        if self.loss == "css":
            return ColumnSubsetProblem(self.A, self.k)
        grouped = self.labels is not None and self.per_group is None
        demands: dict[str, Any] = {"force_in": self.force_in, "force_out": self.force_out}
        limits: dict[str, Any] = {} if self.per_group is None else {"groups": self.labels, "per_group": self.per_group}
        limits |= {"hierarchy": dict(self.hierarchy)} if self.hierarchy else {}
        plain = Problem.prepared(
            self.A, self.y, self.k, intercept=self.intercept, scale=self.scale, weights=self.weights, loss=self.loss,
            lam=self.lam, delta=self.delta, offset=self.offset, **limits, **({} if grouped else demands),
        )  # fmt: skip
        if self.lower is not None and self.upper is not None:
            return with_bounds(plain, self.lower, self.upper)
        return GroupedProblem(plain, self.labels, **demands) if grouped else plain

    def admits(self, support: tuple[int, ...]) -> bool:
        """Whether a set of units, of any size, keeps to what is demanded of sets."""
        chosen = set(support)
        if not chosen.issuperset(self.force_in) or chosen & set(self.force_out):
            return False
        if any(child in chosen and not chosen.issuperset(parents) for child, parents in self.hierarchy):
            return False
        if self.per_group is None or self.labels is None:
            return True
        labels = [self.labels[j] for j in support if self.labels[j] is not None]
        return all(labels.count(label) <= self.per_group for label in labels)

    def text(self) -> str:
        """The case in full, as Python that makes it again."""
        entries = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lines = [f"    {name}={_written(value)}," for name, value in entries.items()]
        return "\n".join(["Case(", *lines, ")"])


def _written(value: Any) -> str:
    return f"np.array({value.tolist()!r})" if isinstance(value, np.ndarray) else repr(value)


def random_case(seed: int, loss: str | None = None) -> Case:
    """The problem of a seed."""
    rng = np.random.default_rng([1201, seed])
    case = _case(rng, loss)
    return _wild(rng, case) if rng.random() < 0.1 else _in_other_units(rng, case, 0.2)


def unscaled_case(seed: int) -> Case:
    """A problem in the units it was made in."""
    return _case(np.random.default_rng([1201, seed]), None)


def _case(rng: Any, loss: str | None) -> Case:
    loss = loss or str(rng.choice(LOSSES, p=[0.45, 0.2, 0.2, 0.15]))
    d = int(rng.integers(2, 9 if loss in ("quadratic", "css") else 7))
    n = int(rng.integers(2, 13))
    A, kind = _matrix(rng, n, d)
    y = _target(rng, A, loss)
    k = int(rng.choice([0, 1, d, rng.integers(1, d + 1)], p=[0.03, 0.15, 0.12, 0.7]))
    if loss == "css":
        case = Case(A, np.zeros(n), k, loss, kind=kind)
        return _shifted(rng, case) if rng.random() < 0.3 else case
    lam = 0.0 if loss == "quadratic" and rng.random() < 0.3 else float(10.0 ** rng.uniform(-8, 4))
    case = Case(A, y, k, loss, lam, _delta(rng, y) if loss == "huber" else None, kind=kind)
    case = _shifted(rng, case) if rng.random() < 0.5 else case
    shifted = "offset" in case.kind
    case = replace(
        case, intercept=bool(rng.random() < (0.65 if shifted else 0.35)), scale=bool(rng.random() < 0.25),
        weights=_weights(rng, n) if rng.random() < 0.3 else None,
    )  # fmt: skip
    case = _grouped(rng, case) if rng.random() < 0.12 else case
    return _demanding(rng, case) if rng.random() < 0.15 else case


def quiet_problem(case: Case) -> Any:
    """The problem without the warnings its making may give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case.problem()


def _matrix(rng: Any, n: int, d: int) -> tuple[Array, str]:
    kind = str(rng.choice(["gaussian", "integer", "binary", "duplicates", "zero", "constant", "scaled", "correlated",
                           "sums", "near"]))  # fmt: skip
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
    elif kind == "correlated":
        A = rng.standard_normal((n, 1)) + float(rng.choice([0.3, 1e-2, 1e-4, 1e-7])) * A
    elif kind == "sums":
        A = rng.integers(-3, 4, (n, d)).astype(float)
        A[:, -1] = A[:, : max(1, d // 2)].sum(axis=1)
    elif kind == "near":
        A[:, -1] = A[:, 0] * float(rng.choice([1.0, 3.0])) + float(10.0 ** rng.uniform(-14, -5)) * A[:, -1]
    return A, kind


def _target(rng: Any, A: Array, loss: str) -> Array:
    n, d = A.shape
    size = np.linalg.norm(A, axis=0)
    x = rng.standard_normal(d) * (rng.random(d) < 0.6)
    signal = A @ (x / np.where(size > 0, size, 1.0)) * np.sqrt(n)
    if loss == "logistic":
        kinds = [signal + 0.5 * rng.standard_normal(n), A[:, rng.integers(d)] - np.median(A[:, 0]), np.ones(n),
                 rng.standard_normal(n)]  # fmt: skip
        return np.where(kinds[int(rng.choice(4, p=[0.5, 0.25, 0.02, 0.23]))] >= 0, 1.0, -1.0)
    kind = int(rng.choice(6, p=[0.4, 0.1, 0.17, 0.15, 0.15, 0.03]))
    outliers = np.where(rng.random(n) < 0.3, rng.choice([-1e3, 1e2, 1e3], n), 0.0)
    integers = rng.integers(-3, 4, n).astype(float)
    y = (signal + 0.3 * rng.standard_normal(n), signal, integers, rng.standard_normal(n), signal + outliers,
         np.zeros(n))[kind]  # fmt: skip
    return np.asarray(y)


def _delta(rng: Any, y: Array) -> float | None:
    """A threshold beside the spread of y, or none, so that the default is taken."""
    if rng.random() < 0.25:
        return None
    return float(10.0 ** rng.uniform(-3, 1) * (np.ptp(y) or 1.0))


def _weights(rng: Any, n: int) -> Array:
    kind = int(rng.integers(4))
    weights = (
        10.0 ** rng.uniform(-1, 1, n), rng.integers(1, 5, n).astype(float), 10.0 ** rng.uniform(-4, 4, n),
        np.where(rng.random(n) < 0.4, 0.0, rng.uniform(0.5, 2.0, n)),
    )[kind]  # fmt: skip
    return weights if np.any(weights > 0) else np.ones(n)


def _shifted(rng: Any, case: Case) -> Case:
    """Offsets up to 1e15: of the target, of the columns, or both; the same for all, or each its own."""
    where = str(rng.choice(["y", "columns", "both"])) if case.loss in ("quadratic", "huber") else "columns"
    size = float(rng.choice([10.0 ** rng.uniform(0, 15), 1e6, 1e9, 1e12, 1e15, 2.0**52]))
    A, y = case.A, case.y
    if where != "columns":
        y = y + size * float(rng.choice([1.0, -1.0]))
    if where != "y":
        each = 10.0 ** rng.uniform(0, np.log10(size) + 1e-9, case.d) * rng.choice([1.0, -1.0], case.d)
        A = A + (size if rng.random() < 0.5 else each)
    return replace(case, A=A, y=y, kind=f"{case.kind}, offset {size:.1e} of {where}")


def _grouped(rng: Any, case: Case) -> Case:
    many = max(1, case.d // 2)
    labels = tuple(None if rng.random() < 0.3 else f"g{int(rng.integers(many))}" for _ in range(case.d))
    made = replace(case, labels=labels)
    return replace(made, k=min(case.k, len(made.units)))


def _demanding(rng: Any, case: Case) -> Case:
    many = len(case.units)
    order = [int(j) for j in rng.permutation(many)]
    included = int(rng.integers(0, min(case.k, 2) + 1))
    outside = int(rng.integers(0, min(3, many - included) + 1))
    return replace(
        case, force_in=tuple(sorted(order[:included])), force_out=tuple(sorted(order[included : included + outside]))
    )


def scaled(case: Case, m: int, p: int) -> Case:
    """The same problem in other units: y times 2^m, A times 2^p, lam and delta accordingly."""
    m = 0 if case.loss == "logistic" else m
    # Columns that are scaled to size one have no units left that lam could know.
    lam = case.lam if case.scale else float(np.ldexp(case.lam, 2 * p))
    return replace(
        case, A=np.ldexp(case.A, p), y=np.ldexp(case.y, m), lam=lam,
        delta=None if case.delta is None else float(np.ldexp(case.delta, m)), kind=f"{case.kind}, units 2^{m} 2^{p}",
    )  # fmt: skip


def _in_other_units(rng: Any, case: Case, share: float) -> Case:
    if rng.random() >= share:
        return case
    most = int(rng.choice([30, 60, 300], p=[0.4, 0.3, 0.3]))
    return scaled(case, int(rng.integers(-most, most + 1)), int(rng.integers(-most, most + 1)))


def _wild(rng: Any, case: Case) -> Case:
    """Scales that go with nothing else: lam and delta stay as they are, or every column has its own."""
    most = int(rng.choice([20, 60, 300], p=[0.5, 0.3, 0.2]))
    powers = rng.integers(-most, most + 1, case.d if rng.random() < 0.5 else 1)
    y = case.y if case.loss == "logistic" else np.ldexp(case.y, int(rng.integers(-most, most + 1)))
    return replace(case, A=np.ldexp(case.A, powers), y=y, kind=f"{case.kind}, wild")
