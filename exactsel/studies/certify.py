"""Certification of a given model: a bound on its gap to the optimum."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.arguments import entries, shown
from exactsel.errors import InputError, OutputWarning, did_you_mean, warn
from exactsel.files import is_special, move, temporary_name, unwritten
from exactsel.interrupts import half_written
from exactsel.nodes.tolerance import Gap, resolution
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.model import Model, PreparedModel
from exactsel.problem.numbered import Position, check_position
from exactsel.problem.row_labels import labels_of_rows
from exactsel.proofs.statement import statement_of
from exactsel.solving.api import OPTIONS, solve
from exactsel.solving.outcome import Claim, claim_of, claim_sentence, restricted
from exactsel.solving.problem_arguments import problem_asked
from exactsel.solving.result import Result
from exactsel.solving.small import begun_without_compiler
from exactsel.solving.unattained import refuse_unattained
from exactsel.start.models import given_support
from exactsel.studies.fitted_models import refuse_estimator, restricted_to, support_or_coef, through_steps
from exactsel.to_plain import Readable, counted, facts_of, finite, html_line, html_table, html_view
from exactsel.types import FloatArray, PathName
from exactsel_certificates.equalities import violated


@dataclass(frozen=True, repr=False)
class Certified(Readable, Gap):
    """A candidate model, and how far from optimal it is proven to be.

    The candidate's objective lies at least ``excess`` and at most ``absolute_gap`` above the optimum. ``result`` is the
    search behind it, whose model is the better one when ``improved`` is true.
    """

    support: tuple[int, ...]
    prepared: PreparedModel = field(repr=False)
    """The candidate in the columns as they were searched; ``coef`` is of those as given."""
    value: float
    """No smaller than the objective of the candidate: of its coefficients when those were given, else of the refit."""
    refitted: bool
    """Whether only a support was given, so that the coefficients are the best ones on it."""
    claim: Claim
    """What is proven of the candidate itself."""
    result: Result
    model: Model | None = field(default=None, repr=False)
    """The candidate for the data as they were given."""
    converged: bool = True
    """Whether the refit converged: else rounding may leave better coefficients on the support."""

    @property
    def coef(self) -> FloatArray:
        """(d,) coefficients of the columns as given; empty for column subset selection, which has none."""
        return self.prepared.coef if self.model is None else self.model.coef

    @property
    def lower(self) -> float:
        """No model with at most k columns has a smaller objective."""
        return self.result.lower

    def _measured(self) -> tuple[float, float, float]:
        """``value``, ``lower`` and the null objective, from which ``gap`` and ``absolute_gap`` follow."""
        return self.value, self.lower, self.result.null_objective

    @property
    def excess(self) -> float:
        """value - upper: the candidate is at least this far from optimal."""
        return self.value - self.result.upper

    @property
    def improved(self) -> bool:
        """Whether a better model turned up (by more than rounding)."""
        return self.excess > resolution(self.value, self.result.tolerance.noise)

    @property
    def reached(self) -> bool:
        """Whether the candidate is proven to be within the requested tolerance."""
        return self.claim.reached

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line; coefficients are for the data as they were given."""
        model = self.model
        candidate = {
            "support": list(self.support), "coef": None if model is None else model.coef.tolist(),
            "intercept": None if model is None else model.intercept, "value": finite(self.value),
            "refitted": self.refitted, "gap": finite(self.gap), "absolute_gap": finite(self.absolute_gap),
            "excess": finite(self.excess), "improved": self.improved, "claim": self.claim.value,
        }  # fmt: skip
        return {"candidate": candidate, **self.result.as_dict()}

    def _repr_html_(self) -> str:
        lines = facts_of(line for line in self._lines() if not line.startswith("claim"))
        return html_view(
            html_line(self.claim_text, strong=True, aside=not self.reached),
            html_table(lines, title="The candidate"),
            html_line(f"{self._title}:"), self.result._repr_html_(),
        )  # fmt: skip

    @property
    def claim_text(self) -> str:
        """What is proven of the candidate, in one sentence."""
        null, valid_for = self.result.null_objective, self.result.valid_for
        return claim_sentence(self.claim, self.value, self.lower, null, self.result.problem, valid_for, self.improved)

    def __str__(self) -> str:
        return "\n".join([*self._lines(), "", f"{self._title}:", str(self.result)])

    @property
    def _title(self) -> str:
        return "The best model known" if self.improved else "The search behind it"

    def _labels(self) -> list[str]:
        names = self.result.problem["feature_names"]
        return [str(j) if names is None else f"{j} {names[j]}" for j in self.support]

    def _lines(self) -> list[str]:
        refit = "best coefficients" if self.converged else "the best coefficients that were found"
        how = f"{refit} on its support" if self.refitted else "coefficients as given"
        how = how if self.coef.size else "a selection of columns"
        limit = f"k = {counted(self.result.problem['k'], self.result._noun)}"
        problem = self.result.problem
        allowed = " that meet the constraints" if restricted(problem) else ""
        lines = [
            f"candidate    {', '.join(self._labels()) or 'none'}   objective {self.value:.12g}   ({how})",
            f"compared     with all models of at most {limit}{allowed} (the candidate has {len(self.support)})",
            f"claim        {self.claim_text}",
            f"gap          {self.gap:.3g}   (at most {self.absolute_gap:.6g} above the optimum)",
        ]
        if self.improved:
            lines.append(f"at least     {self.excess:.6g} above the optimum: a better model is known, see below")
        return lines


@begun_without_compiler
def certify(
    problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *, candidate: object = None,
    support: Sequence[int | str] | None = None, coef: ArrayLike | None = None, **options: object,
) -> Certified:  # fmt: skip
    """Prove how far a model is from optimal: ``certify(X, y, candidate=lasso)``, ``certify(problem, support=[2, 3])``.

    Parameters
    ----------
    problem : problem; or array, sparse matrix or data frame (n, d)
        Data come with ``y``, as for :func:`exactsel.solve`.
    y, k : array (n,), int, optional
        Target of the data; largest number of features, by default that of the candidate.
    candidate : array_like, result or estimator
        A support (whole numbers from 0, a boolean mask of length d, or feature names; with groups numbers and names of
        groups, or names of their columns), which is refitted exactly; or a coefficient vector of length d (floats, for
        the columns as given), which is taken as it is, with the best intercept where there is one. A result of a
        heuristic or of a search counts as its support, a fitted scikit-learn estimator as its ``coef_`` (as its support
        if it has an intercept), a feature selector as what it selects. A pipeline counts as its last step, on the data
        as the other steps transform them, and a search over parameters as its best estimator. ``support`` and ``coef``
        do not guess.
    **options
        Options of :func:`exactsel.solve`: eps, rel_eps, time_limit, proof and so on, and of data those of a problem.

    Returns
    -------
    Certified

    Raises
    ------
    InputError
        When the candidate is not a model of this problem (unknown column, more than k columns, wrong length).
    """
    refuse_estimator(problem)
    if sum(argument is not None for argument in (candidate, support, coef)) != 1:
        raise InputError(
            "give exactly one candidate, by name: candidate=[2, 3, 8], or a support= or the coefficients coef= alone."
        )
    problem, candidate, features = through_steps(problem, y, candidate, options)
    size = _size_of(next(argument for argument in (candidate, support, coef) if argument is not None))
    subset_problem, settings = problem_asked(problem, y, k, options, known=(*OPTIONS, "verbose"), at_most=size)
    if candidate is not None:
        support, coef = _recognise(subset_problem, candidate)
    columns, vector, value, converged = _model_of(subset_problem, support, coef)
    target = settings.pop("proof", None)
    with _proofs(target) as (first, second):
        result = solve(subset_problem, start=columns, proof=first, **settings)
        tolerance = result.tolerance
        slack = tolerance.absolute(value) - (value - result.upper)
        if result.reached and slack > 0 and claim_of(value, result.lower, tolerance) is Claim.BOUNDED:
            result = _search_on(subset_problem, result, slack, {**settings, "proof": second})
        result = restricted_to(_delivered(result, target), features)
    claim, model = claim_of(value, result.lower, tolerance), Model.of(subset_problem, vector)
    return Certified(
        columns, PreparedModel.of(subset_problem, vector), value, coef is None, claim, result, model, converged
    )


def _model_of(
    problem: SubsetProblem, support: Sequence[Any] | None, coef: ArrayLike | None
) -> tuple[tuple[int, ...], FloatArray, float, bool]:
    """The columns of a candidate, its coefficients for the columns searched, its objective, and whether a refit ended.

    The coefficients are those given, or the best on the support.
    """
    if coef is None:
        columns = given_support(column_numbers(problem, () if support is None else support), problem)
        fit = problem.fit(columns)
        refuse_unattained(problem, fit)
        return columns, fit.coef, statement_of(problem).upper(fit), fit.converged
    if not is_regression(problem):
        raise InputError("column subset selection has no coefficients; give the candidate as a support.")
    vector, preparation = checked_coef(problem, coef), problem.preparation
    columns = problem.units.units_of(np.flatnonzero(vector))
    return (
        columns,
        vector if preparation is None else vector * preparation.scale,
        statement_of(problem).upper_of(vector),
        True,
    )


def _search_on(problem: SubsetProblem, result: Result, slack: float, options: dict[str, Any]) -> Result:
    """Search with the ``slack``: the tolerance less the candidate's distance to the best model."""
    tighter = {**options, "eps": slack, "rel_eps": 0.0}
    if options.get("time_limit") is not None:
        tighter["time_limit"] = max(0.0, options["time_limit"] - result.time)
    if options.get("node_limit") is not None:
        tighter["node_limit"] = max(0, options["node_limit"] - result.nodes)
    request = {name: result.settings[name] for name in ("eps", "rel_eps", "time_limit", "node_limit")}
    again = solve(problem, start=result.support, **tighter)
    return replace(again if again.lower >= result.lower else result, settings={**again.settings, **request})


@contextmanager
def _proofs(target: PathName | None) -> Iterator[tuple[PathName | None, PathName | None]]:
    """Where a first and a second proof are written, of which one stays as ``target``; a special file takes only one."""
    if target is None:
        yield None, None
        return
    special = is_special(target)
    try:
        beside = Path(gettempdir()) / "proof.exsel" if special else target
    except OSError as error:
        raise unwritten(target, error, "the proof ") from None
    first, second = (temporary_name(beside) for _ in range(2))
    with half_written(first), half_written(second):
        try:
            yield first if special else target, second
        finally:
            for path in (first, second):
                Path(path).unlink(missing_ok=True)


def _delivered(result: Result, target: PathName) -> Result:
    """The result, with its proof in the requested file; where that cannot be written the result comes without."""
    if result.proof is None or Path(result.proof) == Path(target):
        return result
    try:
        move(result.proof, target)
    except InputError as error:
        warn(str(error), OutputWarning)
        return replace(result, proof=None)
    return replace(result, proof=str(target))


def column_numbers(problem: SubsetProblem, names: Sequence[int | str]) -> tuple[int, ...]:
    """Column numbers of a support given as numbers, as feature names or as a boolean mask; of groups likewise, for
    which the names of their columns will do too.
    """
    selection = entries("the support", names)
    mask = np.asarray(selection) if all(isinstance(entry, bool | np.bool_) for entry in selection) else np.empty(0)
    if mask.dtype == np.bool_:
        if mask.shape != (problem.d,):
            raise InputError(f"a mask of {mask.size} entries was given for {problem.d} features; give one per feature.")
        return tuple(int(j) for j in np.flatnonzero(mask))
    return problem.units.chosen(_column_number(problem, name) for name in selection)


def _column_number(problem: SubsetProblem, name: int | str) -> int:
    """A number as it is, else the column of that name; a text that is no name but reads as a number is one."""
    if not isinstance(name, str):
        try:
            number = operator.index(name)
        except TypeError:
            pass
        else:
            check_position(number if not isinstance(name, Position) else name, problem.feature_names, "the support")
            return number
    units = problem.units
    names = (*(problem.feature_names or ()), *(units.column_names or ()))
    matches = units.called(name) if isinstance(name, str) else []
    if len(matches) > 1:
        raise InputError(f"{len(matches)} features are called '{name}'; give the feature's number, from 0.")
    if matches:
        return matches[0]
    try:
        return int(name if isinstance(name, str) else "")
    except ValueError:
        raise InputError(
            f"there is no {units.named_thing} called {shown(name)}{did_you_mean(name, names)}; "
            f"give a number from 0 to {problem.d - 1} or a known name."
        ) from None


def _size_of(candidate: object) -> int:
    """The number of columns of a candidate, as far as it is known without a problem."""
    fitted = support_or_coef(candidate)
    if fitted is not None:
        support, coef = fitted
        return len(support) if support is not None else 0 if coef is None else int(np.count_nonzero(coef))
    values = np.asarray(candidate, dtype=object).reshape(-1)
    counted = all(isinstance(value, bool | np.bool_ | float | np.floating) for value in values)
    return int(np.count_nonzero(values)) if counted else values.size


def _recognise(problem: SubsetProblem, candidate: object) -> tuple[Sequence[Any] | None, FloatArray | None]:
    """Distinguish a support from a coefficient vector."""
    fitted = support_or_coef(candidate)
    if fitted is not None:
        support, coef = fitted
        if support is not None and not hasattr(candidate, "support"):
            return list(map(Position, problem.units.units_of(support))), None  # an estimator speaks of columns
        return support, coef
    try:
        values = np.asarray(candidate)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"the candidate is {shown(candidate)}; give a list of features or of d coefficients."
        ) from None
    if values.ndim != 1:
        raise InputError(f"the candidate has {values.ndim} dimensions; give a list of features or of d coefficients.")
    if values.size == 0 or values.dtype.kind in "biuU":
        return list(values.tolist()), None
    if values.dtype.kind == "f":
        return None, np.asarray(values, dtype=np.float64)
    raise InputError(f"a candidate of type {values.dtype} is neither a support nor coefficients; give one of the two.")


def _check_labels(coef: object, names: Sequence[str] | None) -> None:
    """:class:`InputError` for coefficients that are labelled by the columns, but in another order."""
    labels = labels_of_rows(coef)
    row_names = None if labels is None else [str(label) for label in labels]
    if row_names is not None and names is not None and row_names != list(names) and sorted(row_names) == sorted(names):
        raise InputError(
            "the coefficients are labelled by the features, but in another order; give them in that of the features, "
            "as coef.loc[X.columns], or coef.to_numpy() if they go by their position."
        )


def checked_coef(problem: SubsetProblem, coef: ArrayLike) -> FloatArray:
    """A coefficient vector of this problem with at most k non-zero entries (on at most k groups); :class:`InputError`
    otherwise.
    """
    d = problem.units.columns
    _check_labels(coef, problem.units.column_names)
    try:
        vector = np.asarray(coef).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise InputError("the coefficients are not plain numbers; give one real number per feature.") from None
    if vector.shape != (d,):
        raise InputError(f"{vector.size} coefficients were given for {d} features; give one per feature.")
    if not np.all(np.isfinite(vector)):
        raise InputError("the coefficients hold NaN or infinite values; give finite numbers.")
    given_support(problem.units.units_of(np.flatnonzero(vector)), problem)
    limits = problem.coefficient_bounds
    outside = np.zeros(0, dtype=int) if limits is None else np.flatnonzero(limits.violated(vector))
    if limits is not None and outside.size:
        j = int(outside[0])
        raise InputError(
            f"the coefficient of feature {j} is {vector[j]:g}, but between {limits.given_lower[j]:g} and "
            f"{limits.given_upper[j]:g} was expected; give a model within the bounds, or a support to be fitted."
        )
    equalities = problem.objective.equalities
    if equalities is not None and (missed := violated(equalities, vector)):
        raise InputError(f"{missed.removesuffix('.')}; give a model that meets it, or a support to be fitted.")
    return vector
