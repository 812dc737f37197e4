"""Several targets: a model for each, on columns of its own or on the same ones for all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.algebra import dense
from exactsel.arguments import by_name
from exactsel.errors import InputError, either, option
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.model import Model, listed
from exactsel.problem.preparing import AUTO
from exactsel.problem.regression import Problem
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination, claim_sentence
from exactsel.solving.problem_arguments import OF_PROBLEM
from exactsel.solving.result import Result
from exactsel.to_plain import Readable, counted, finite, html_table
from exactsel.types import FloatArray

TOGETHER = ("fit_intercept", "standardize", "sample_weight", "lam", "force_in", "force_out", "loss", "feature_names")
"""The other options of models with the same features, besides those of a search."""


@dataclass(frozen=True, repr=False)
class TargetModels(Readable):
    """A model for each of m targets, and what is proven of them."""

    names: tuple[str, ...]
    """Of the targets."""
    results: tuple[Result, ...]
    """One for each target; one for all of them where they are ``shared``."""
    models: tuple[Model, ...]
    """One for each target, in the units of the data."""
    shared: bool
    """Whether all models have the same columns."""
    feature_names: tuple[str, ...] | None = None

    @property
    def coef(self) -> FloatArray:
        """(m, d) coefficients of the columns as given."""
        return np.array([model.coef for model in self.models])

    @property
    def intercept(self) -> FloatArray:
        """(m,) the models' intercepts, 0 where they have none."""
        return np.array([model.intercept or 0.0 for model in self.models])

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
    def claim_text(self) -> str:
        """What is proven of models with the same features, or of each target's, in a sentence each."""
        if not self.shared:
            return "\n".join(result.claim_text for result in self.results)
        first = self.results[0]
        described = {**first.problem, "unit": "column"}  # the groups of the search are the columns of the data
        return claim_sentence(first.claim, first.upper, first.lower, first.null_objective, described, first.valid_for)

    @property
    def reached(self) -> bool:
        """Whether every search proved its model."""
        return all(result.reached for result in self.results)

    def predict(self, X: ArrayLike) -> FloatArray:
        """(rows, m) the models' predictions, for loss other than quadratic their linear predictors.

        ``X`` is as for :meth:`exactsel.Model.predict`.
        """
        return np.column_stack([model.predict(X) for model in self.models])

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "targets": list(self.names), "shared": self.shared, "upper": finite(self.upper),
            "lower": finite(self.lower), "absolute_gap": finite(self.absolute_gap),
            "claim_text": self.claim_text,
            "supports": [list(support) for support in self.supports], "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(), "results": [result.as_dict() for result in self.results],
        }  # fmt: skip

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The targets as texts: name, size, columns, what is claimed, gap."""
        for t, (name, support) in enumerate(zip(self.names, self.supports, strict=True)):
            result = self.results[0 if self.shared else t]
            yield name, str(len(support)), listed(support, self.feature_names), result.claim.value, f"{result.gap:.3g}"

    def __str__(self) -> str:
        how = "on the same features" if self.shared else "each on features of its own"
        lines = [
            f"{counted(len(self.names), 'target')}, {how}: sum of objectives {self.upper:.10g}, lower {self.lower:.10g}"
        ]
        return "\n".join([*lines, *("  ".join(row) for row in self.rows())])

    def _repr_html_(self) -> str:
        return html_table(self.rows(), ("target", "k", "features", "claim", "gap"))


def solve_targets(
    X: ArrayLike, Y: ArrayLike, k: int | Sequence[int], *, shared: bool = False, **options: object
) -> TargetModels:  # fmt: skip
    """Find the best model for each of several targets: ``solve_targets(X, Y, k=3)``.

    Parameters
    ----------
    X : array or data frame (n, d)
    Y : array or data frame (n, m)
    k : int or sequence of int
        Largest number of features of a model, the same for all targets or one for each.
    shared : bool
        Select the same features for all models, at most k, by the smallest sum of the objectives (quadratic loss). Each
        target has its own coefficients and intercept.
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
    return solve_apart([(X, targets[:, t], size) for t, size in enumerate(sizes)], names, **options)


def solve_apart(tasks: Sequence[tuple[Any, ...]], names: Sequence[str], **options: Any) -> TargetModels:
    """The best model of each target; after an interruption the searches that are left are only begun.

    Parameters
    ----------
    tasks : sequence of tuple
        A problem, or data with target and k, for each target.
    names : sequence of str
        Of the targets.
    **options
        As for :func:`exactsel.solve`.
    """
    results: list[Result] = []
    for task in tasks:
        stopped = any(result.termination is Termination.INTERRUPTED for result in results)
        results.append(solve(*task, **options | ({"time_limit": 0.0} if stopped else {})))
    models = tuple(result.model for result in results if result.model is not None)
    return TargetModels(tuple(names), tuple(results), models, False, results[0].problem["feature_names"])


def solve_together(
    apart: Sequence[Problem], names: Sequence[str], *, force_in: Sequence[int | str] = (),
    force_out: Sequence[int | str] = (), **options: Any,
) -> TargetModels:  # fmt: skip
    """One search for models with the same features: a column's copies for all targets, block by block, are a group.

    Parameters
    ----------
    apart : sequence of Problem
        One for each target, of quadratic loss, with the same columns, k and lam.
    names : sequence of str
        Of the targets.
    force_in, force_out : sequence of int or str
        As for :class:`exactsel.Problem`.
    **options
        Of the search.
    """
    first, many = apart[0], len(names)
    columns = first.feature_names or tuple(f"feature {j}" for j in range(first.d))
    together = GroupedProblem(
        Problem(
            dense.block_diag(*(problem.AT.T for problem in apart)),
            np.concatenate([problem.y for problem in apart]), first.k,
            lam=first.objective.asked_lam,
            feature_names=[f"{column} for {name}" for name in names for column in columns],
        ),
        {column: [t * first.d + j for t in range(many)] for j, column in enumerate(columns)},
        force_in=force_in, force_out=force_out,
    )  # fmt: skip
    result = solve(together, **options)
    blocks = result.prepared.coef.reshape(many, first.d)
    solutions = [problem.as_given(x) for problem, x in zip(apart, blocks, strict=True)]
    centred = first.preparation is not None and first.preparation.centred
    models = tuple(Model(x, c if centred else None, first.feature_names) for x, c in solutions)
    return TargetModels(tuple(names), (result,), models, True, first.feature_names)


def refuse_for_shared(options: Collection[str], loss: str | None) -> None:
    """:class:`InputError` where an option does not apply to models with the same features."""
    other = next((name for name in options if name not in TOGETHER), None)
    choices = [name for name in TOGETHER if name != "feature_names" or either(name, "")]
    if other is not None:
        raise InputError(
            f"{option(other)} is given, but models with the same features take only {', '.join(map(option, choices))} "
            f"and options of the search; leave it out, or {_apart()}."
        )
    if loss not in (None, "quadratic"):
        raise InputError(
            f"models with the same features minimise squared errors; leave {option('loss')} out, or {_apart()}."
        )


def _apart() -> str:
    return either("shared=False", "--shared")


def _targets(Y: ArrayLike) -> tuple[FloatArray, tuple[str, ...]]:
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
    X: ArrayLike, targets: FloatArray, names: tuple[str, ...], k: int | Sequence[int], options: dict[str, Any]
) -> TargetModels:
    """Models on the same columns of data."""
    options = by_name(options)
    size, chosen = _shared_size(k), {name: options.pop(name) for name in TOGETHER if name in options}
    refuse_for_shared([name for name in options if name in OF_PROBLEM], chosen.pop("loss", None))
    demands = {name: chosen.pop(name) for name in ("force_in", "force_out") if name in chosen}
    apart = [Problem.prepared(X, y, size, **{"fit_intercept": AUTO} | chosen) for y in targets.T]
    return solve_together(apart, names, **demands, **options)


def _shared_size(k: int | Sequence[int]) -> int:
    if np.ndim(k) != 0:
        raise InputError("models with the same features have one k; give one number, or shared=False.")
    return int(k)  # type: ignore[arg-type]
