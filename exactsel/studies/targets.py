"""Several targets: a model for each, on columns of its own or on the same ones for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel.arguments import by_name
from exactsel.errors import InputError
from exactsel.plain import Readable, finite, html_table
from exactsel.problem.checks import checked_matrix
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.model import listed
from exactsel.problem.preparing import AUTO
from exactsel.problem.regression import Problem
from exactsel.solving.asked import OF_PROBLEM
from exactsel.solving.entry import solve
from exactsel.solving.result import Result
from exactsel.types import FloatArray

TOGETHER = ("fit_intercept", "standardize", "sample_weight", "lam", "must_have", "must_not", "loss", "feature_names")
"""What else models on the same columns can be asked for, besides the options of a search."""


@dataclass(frozen=True, repr=False)
class TargetModels(Readable):
    """A model for each of m targets, and what is proven of them."""

    names: tuple[str, ...]
    """Of the targets."""
    results: tuple[Result, ...]
    """One for each target; one for all of them where they are ``shared``."""
    coef: FloatArray
    """(m, d) in the units of the data."""
    intercept: FloatArray
    """(m,)"""
    shared: bool
    """Whether all models have the same columns."""
    feature_names: tuple[str, ...] | None = None

    @property
    def supports(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each target's model, counted from 0."""
        return tuple(self.results[0 if self.shared else t].support for t in range(len(self.names)))

    @property
    def upper(self) -> float:
        """The sum of the objectives; where ``shared``, of the data as centred in double precision."""
        return float(sum(result.upper for result in self.results))

    @property
    def lower(self) -> float:
        """No models of these sizes have a smaller sum of objectives."""
        return float(sum(result.lower for result in self.results))

    @property
    def absolute_gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def reached(self) -> bool:
        """Whether every search proved its model."""
        return all(result.reached for result in self.results)

    def predict(self, X: Any) -> FloatArray:
        """(rows, m) the models' predictions, for loss other than quadratic their linear predictors."""
        return checked_matrix(X) @ self.coef.T + self.intercept

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "targets": list(self.names), "shared": self.shared, "upper": finite(self.upper),
            "lower": finite(self.lower), "absolute_gap": finite(self.absolute_gap),
            "supports": [list(support) for support in self.supports], "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(), "results": [result.as_dict() for result in self.results],
        }  # fmt: skip

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The targets as texts: name, size, columns, what is claimed, gap."""
        for t, (name, support) in enumerate(zip(self.names, self.supports, strict=True)):
            result = self.results[0 if self.shared else t]
            yield name, str(len(support)), listed(support, self.feature_names), result.claim.value, f"{result.gap:.3g}"

    def __str__(self) -> str:
        how = "on the same columns" if self.shared else "each on columns of its own"
        lines = [f"{len(self.names)} targets, {how}: sum of objectives {self.upper:.10g}, lower {self.lower:.10g}"]
        return "\n".join([*lines, *("  ".join(row) for row in self.rows())])

    def _repr_html_(self) -> str:
        return html_table(self.rows(), ("target", "k", "columns", "claim", "gap"))


def solve_targets(
    X: Any, Y: Any, k: int | Sequence[int], *, shared: bool = False, **options: Any
) -> TargetModels:  # fmt: skip
    """Find the best model for each of several targets: ``solve_targets(X, Y, k=3)``.

    Parameters
    ----------
    X : array or data frame (n, d)
    Y : array or data frame (n, m)
    k : int or sequence of int
        Largest number of columns of a model, the same for all targets or one for each.
    shared : bool
        All models on the same columns (at most k of them): the sum of the objectives is minimised, of quadratic loss.
        Every target has coefficients, and an intercept, of its own.
    **options
        As for :func:`exactsel.solve`; for ``shared`` models those of :data:`TOGETHER` and of the search.

    Returns
    -------
    TargetModels

    Raises
    ------
    InputError
        For targets that are none, and as :func:`exactsel.solve` does.
    """
    targets, names = _targets(Y)
    if shared:
        return _on_the_same_columns(X, targets, names, k, options)
    sizes: list[Any] = [k] * len(names) if np.ndim(k) == 0 else list(k)  # type: ignore[arg-type]
    if len(sizes) != len(names):
        raise InputError(f"k has {len(sizes)} sizes for {len(names)} targets; give one number, or one for each.")
    results = tuple(solve(X, targets[:, t], size, **options) for t, size in enumerate(sizes))
    coef = np.array([result.coef for result in results])
    intercept = np.array([0.0 if result.model is None else result.model.intercept for result in results])
    return TargetModels(names, results, coef, intercept, False, results[0].problem["feature_names"])


def _targets(Y: Any) -> tuple[FloatArray, tuple[str, ...]]:
    """Y as (n, m), and what the targets are called."""
    labels = getattr(Y, "columns", None)
    try:
        targets = np.asarray(Y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("Y is not numeric; encode text and categories as numbers first.") from None
    targets = targets[:, None] if targets.ndim == 1 else targets
    if targets.ndim != 2 or targets.shape[1] == 0:
        raise InputError(f"the targets have the shape {targets.shape}, but rows and columns were expected.")
    names = [f"target {t}" for t in range(targets.shape[1])] if labels is None else [str(label) for label in labels]
    return targets, tuple(names)


def _on_the_same_columns(
    X: Any, targets: FloatArray, names: tuple[str, ...], k: int | Sequence[int], options: dict[str, Any]
) -> TargetModels:
    """One search: a column's copies for all targets, block by block, are a group."""
    options = by_name(options)
    size, chosen = _shared_size(k), {name: options.pop(name) for name in TOGETHER if name in options}
    other = next((name for name in options if name in OF_PROBLEM), None)
    if other is not None:
        raise InputError(
            f"{other} is given, but models on the same columns take only {', '.join(TOGETHER)} and options of the "
            f"search; leave it out, or shared=False."
        )
    if chosen.pop("loss", "quadratic") != "quadratic":
        raise InputError("models on the same columns minimise squared errors; leave the loss out, or shared=False.")
    demands = {name: chosen.pop(name) for name in ("must_have", "must_not") if name in chosen}
    apart = [Problem.prepared(X, y, size, **{"fit_intercept": AUTO} | chosen) for y in targets.T]
    first, many = apart[0], len(names)
    columns = first.feature_names or tuple(f"column {j}" for j in range(first.d))
    together = GroupedProblem(
        Problem(
            np.kron(np.eye(many), first.AT.T), np.concatenate([problem.y for problem in apart]), size,
            lam=first.objective.asked_lam,
            feature_names=[f"{column} for {name}" for name in names for column in columns],
        ),
        {column: [t * first.d + j for t in range(many)] for j, column in enumerate(columns)},
        **demands,
    )  # fmt: skip
    result = solve(together, **options)
    blocks = result.prepared.coef.reshape(many, first.d)
    models = [problem.as_given(x) for problem, x in zip(apart, blocks, strict=True)]
    coef = np.array([x for x, _ in models])
    return TargetModels(names, (result,), coef, np.array([c for _, c in models]), True, first.feature_names)


def _shared_size(k: int | Sequence[int]) -> int:
    if np.ndim(k) != 0:
        raise InputError("models on the same columns have one k; give one number, or shared=False.")
    return int(k)  # type: ignore[arg-type]
