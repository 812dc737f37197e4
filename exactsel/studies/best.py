"""The best model over all sizes by a criterion, and the models next to it, with proof."""

from __future__ import annotations

import math
import operator
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from exactsel import clock
from exactsel._jit import interpreted
from exactsel.algebra.threads import one_thread
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.observers.lines import Say, teller
from exactsel.problem.interface import is_regression
from exactsel.problem.model import Model, PreparedModel
from exactsel.problem.regression import Problem
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.problem_arguments import EVERY_COLUMN, problem_asked
from exactsel.solving.quality import quality_of
from exactsel.solving.result import Result
from exactsel.solving.small import is_small
from exactsel.solving.unattained import infima_will_do, refuse_unattained
from exactsel.studies.best_list import ListRequest, SizePools, report_of, status_of
from exactsel.studies.best_models import BestModels, first_stop
from exactsel.studies.best_of_terms import best_of_terms
from exactsel.studies.best_penalised import bound_all_sizes
from exactsel.studies.best_search import AcrossSizes
from exactsel.studies.best_terms import AcrossTerms
from exactsel.studies.size_criterion import SizeCriterion
from exactsel.studies.size_supports import first_support
from exactsel.studies.solution_pool import CAP, check_cap
from exactsel.to_plain import counted


def best_model(
    problem: Problem | object, y: ArrayLike | None = None, *, criterion: str = "bic",
    k_min: int | None = None, k_max: int | None = None, top: int = 1, within: float | None = None, gamma: float = 1.0,
    penalty: float | Callable[[int], float] | None = None,
    cap: int = CAP, proof: str | os.PathLike[str] | None = None, time_limit: float | None = None,
    signals: Sequence[int] = (signal.SIGINT,), verbose: int = 0, **options: object,
) -> BestModels:  # fmt: skip
    """Find the best model over all sizes and prove it: ``best_model(X, y, criterion="bic")``.

    The criteria are in :mod:`exactsel.studies.size_criterion`, the likelihood in :mod:`exactsel.solving.likelihood`.

    Parameters
    ----------
    problem : Problem; or array, sparse matrix or data frame (n, d)
        Data come with ``y`` and options of :meth:`exactsel.Problem.prepared`. The k of a problem is ignored.
    y : array (n,), optional
    criterion : str
        ``aic``, ``aicc``, ``bic``, ``ebic``, ``hqic``, ``cp``, ``adjr2``, or with ``penalty`` ``custom`` or
        ``l0``, the penalised objective P(x) + penalty ||x||_0.
    k_min, k_max : int, optional
        The fewest and the most columns, or terms, of a model; equal for one size. By default all sizes.
    top, within : int, float, optional
        List so many models, or all whose criterion is at most this above the best, the longer list of the two.
    gamma : float
        Of EBIC; 0 is BIC.
    penalty : float or callable
        Price of a column (``l0``) or of a parameter (``custom``); or a function of the size, added to -2 log L.
    cap : int
        Models of one size after which a list is cut short, and says so.
    proof : path, optional
        Folder for one proof a size (``k5.exsel``), for :func:`exactsel.verify`.
    time_limit, signals, verbose : float, sequence of int, int
        Seconds for sizes and list together; signals that end it with what there is; 1 says a line for each size.
    **options
        As for :func:`exactsel.solve`; ``eps`` and ``rel_eps`` are of the objective of the best size, ``node_limit``
        holds for each size.

    Returns
    -------
    BestModels, with a lower bound over all sizes that holds however the search ended

    Raises
    ------
    InputError
        For what cannot be served, and for a model that fits the target exactly where the variance is estimated.
    UnsupportedError
        For column subset selection, and for proofs where terms have several columns.
    """
    subset_problem, settings = _asked(problem, y, options, k_max)
    settings |= {"signals": signals, "time_limit": time_limit}
    measure = SizeCriterion.of(subset_problem.without_coefficient_bounds, criterion, gamma, penalty)
    request, refused = _request(top, within, cap), (("proof", proof), ("k_min", k_min))
    if subset_problem.units.grouped:
        return _over_terms(subset_problem, measure, settings, refused, k_max=k_max, request=request)
    sizes = every = sizes_of(subset_problem, measure, k_max, k_min)
    if measure.name == "l0" and not request.several:
        sizes = worth_their_price(subset_problem, measure, every)
    study = AcrossSizes(subset_problem, measure, sizes, settings, _folder(proof))
    study.on_size = None if (tell := teller(verbose)) is None else _Told(study, tell)
    return replace(_searched(study, SizePools(study, request)), up_to=every[-1])


class _Told:
    """Says a line of each size, under a head."""

    def __init__(self, study: AcrossSizes, tell: Say) -> None:
        self._across, self._tell, self.sizes = study, tell, set[int]()
        tell(f"{'k':>4} {study.criterion.title:>16} {'lower':>16}  {'gap':>9}  status")

    def __call__(self, size: int) -> None:
        """What is known of a size: the criterion of its best model, and what none of its models is below."""
        study = self._across
        self.sizes.add(size)
        value = study.criterion.value(study.upper_of(size), size)
        lower, status = min(study.criterion_below(size), value), status_of(study, size, study.known.about).text
        display = study.criterion.shown
        self._tell(f"{size:>4} {display(value):>16.10g} {display(lower):>16.10g}  {value - lower:>9.2e}  {status}")

    def rest(self) -> None:
        """The sizes that have not been said, as a bound of others settles them."""
        for size in self._across.sizes:
            if size not in self.sizes:
                self(size)


def _searched(study: AcrossSizes, pools: SizePools) -> BestModels:
    """Search, list the requested models, and return the outcome."""
    began = clock.now()
    signals, listing = study.options.get("signals", ()), pools.request.several
    with interpreted(is_small(study.problem)), one_thread(), Watch(None, signals) as study.watch:
        with infima_will_do():
            study.note_first()
            proofs = bound_all_sizes(study)
            study.begin()
            if listing or not all(map(study.settled, study.sizes)):
                pools.look()
            study.run()
            if isinstance(study.on_size, _Told):
                study.on_size.rest()
            if listing:
                pools.run()
            if proofs is not None:
                proofs.write()
        return replace(_best_models(study, pools), time=clock.now() - began)


def _over_terms(
    problem: Problem, measure: SizeCriterion, options: dict[str, Any], refused: Sequence[tuple[str, object]], *,
    k_max: int | None, request: ListRequest,
) -> BestModels:  # fmt: skip
    """The best model over all sets of terms of several columns."""
    for name, value in refused:
        if value is not None:
            raise UnsupportedError(
                f"{option(name)} over all sizes is for features chosen one by one, but here terms of several features "
                "are chosen; leave it out, or solve for one size."
            )
    most = problem.d if k_max is None else largest_size(k_max, problem.d)
    study = AcrossTerms(problem.replace(k=most), measure, options, request)
    watch = Watch(None, options["signals"])
    with interpreted(is_small(problem)), one_thread(), watch as study.watch, infima_will_do():
        study.run()
        models = best_of_terms(study)
    refuse_unattained(study.problem, study.problem.fit(models.support))
    return models


def largest_size(k_max: SupportsIndex, most: int) -> int:
    """The largest requested size, at most the number of units.

    Raises
    ------
    InputError
        For one that is no whole number, or negative.
    """
    try:
        largest = operator.index(k_max)
    except TypeError:
        raise InputError(f"k_max is {k_max!r}, but the largest size must be a whole number.") from None
    if largest < 0:
        raise InputError(f"k_max is {largest}, but the number of features cannot be negative.")
    return min(largest, most)


def sizes_of(
    problem: Problem, criterion: SizeCriterion, k_max: int | None, k_min: int | None = None
) -> list[int]:  # fmt: skip
    """The sizes to examine, ascending.

    Raises
    ------
    InputError
        For a largest size that is none, that leaves no room for what must be in, or that the criterion does not reach.
    """
    units = problem.units
    free, limit = units.d - len(units.force_out), criterion.largest_size()
    if k_max is None:
        criterion.check_size(len(units.force_in))
        largest = free if limit is None else min(free, limit)
    else:
        largest = largest_size(k_max, free)
        criterion.check_size(largest)
    if units.constraint is not None and (region := units.region(units.d)) is not None:
        largest = min(largest, units.constraint.largest(region))
    smallest = 0 if k_min is None else largest_size(k_min, EVERY_COLUMN)
    if smallest > largest:
        raise InputError(
            f"the smallest size is {smallest}, but the largest is {largest}; give a smaller {option('k_min')}."
        )
    sizes = [k for k in range(max(smallest, fewest_of(problem)), largest + 1) if units.completed((), k) is not None]
    if not sizes:
        raise InputError(
            f"no model of at most {counted(largest, 'feature')} meets what is demanded, or has a {criterion.title}; "
            f"raise k_max, or demand less."
        )
    return sizes


def fewest_of(problem: Problem) -> int:
    """The smallest size that what must be in leaves."""
    return max(problem.fewest, len(problem.units.force_in))


def worth_their_price(problem: Problem, criterion: SizeCriterion, sizes: list[int]) -> list[int]:
    """The sizes whose columns alone do not cost as much as the smallest model, so that one of them may be the best."""
    smallest = problem.replace(k=sizes[0])
    support = first_support(smallest)
    if len(support) != sizes[0]:
        return sizes
    cutoff = criterion.value(statement_of(smallest).upper(smallest.fit(support)), sizes[0])
    return [size for size in sizes if size == sizes[0] or criterion.below(problem.infimum, size) < cutoff]


def _asked(
    problem: object, y: ArrayLike | None, options: dict[str, Any], k_max: int | None
) -> tuple[Problem, dict[str, Any]]:  # fmt: skip
    """The problem, for any k, and the options for the search."""
    # What larger models could do, such as separate classes, does no harm.
    most = EVERY_COLUMN if k_max is None else largest_size(k_max, EVERY_COLUMN)
    subset_problem, settings = problem_asked(problem, y, None, options, at_most=most)
    if not is_regression(subset_problem):
        raise UnsupportedError("column subset selection has no target, and so no likelihood; give a regression.")
    return subset_problem, settings


def _request(top: int, within: float | None, cap: int) -> ListRequest:
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise InputError(f"top is {top!r}, but at least one model must be asked for; give {option('top', 1)}, say.")
    if within is not None and not (np.isfinite(within) and within >= 0):
        raise InputError(
            f"within is {within}, but it must be a number that is not negative; correct {option('within')}."
        )
    check_cap(cap)
    return ListRequest(top, within, cap)


def _folder(proof: str | os.PathLike[str] | None) -> Path | None:
    """The folder for proofs, made where it is not there."""
    if proof is None:
        return None
    folder = Path(proof)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} for proofs cannot be made ({error.strerror}); choose another.") from None
    return folder


def _best_models(study: AcrossSizes, pools: SizePools) -> BestModels:
    """What has been found, and what is proven of it."""
    pools.firm()
    ranked, about = study.known.ranked(), study.known.about
    support = ranked[0].support
    if study.valid_for:
        refuse_unattained(study.problem, study.problem.fit(support))
    result = _result(study, support)
    reports = tuple(report_of(study, pools, size, about) for size in study.sizes)
    answer = pools.request.answer(
        ranked, study.criterion, reports, threshold=pools.threshold, result=result,
        complete=pools.request.several and pools.complete, valid_for=study.valid_for or pools.valid_for,
        stop=first_stop(study.terminations, study.at_last),
    )  # fmt: skip
    return replace(answer, shared_nodes=study.shared_nodes)


def _result(study: AcrossSizes, support: tuple[int, ...]) -> Result:
    """The search for the best model's size, with the model on these columns."""
    size = len(support)
    search = study.by_size[size]
    result = search.result
    # Under a constraint the best model of at most so many columns may have fewer, which a list of one size does not
    # contain.
    free = search.problem.units.constraint is None
    floor = min(study.lower_of(k)[0] for k in study.sizes if k == size or (k < size and not free))
    if not free and study.sizes[0] > fewest_of(study.problem):
        floor = -math.inf  # smaller sizes are not examined
    if result is None:
        options = {**study.options, "node_limit": 0, "heuristics": ()}
        root_result = solve(search.problem, start=support or None, **options)
        if root_result._shown == support:
            settled = root_result._claiming(min(max(root_result.lower, floor), root_result.upper))
            how = Termination.GAP_CLOSED if settled.claim.reached else Termination(study.at_last)
            return replace(settled, termination=how, valid_for=root_result.valid_for or study.valid_for)
        result = replace(root_result, termination=Termination(study.at_last))
    if result._shown == support and not result.lower < floor:
        return result
    fit = search.problem.fit(support)
    model = Model.of(search.problem, fit.coef)
    answer = replace(
        result, upper=study.known.statement.upper(fit), support=fit.support, model=model, source="list",
        prepared=PreparedModel.of(search.problem, fit.coef), quality=quality_of(search.problem, model),
        valid_for=result.valid_for or study.valid_for,
    )  # fmt: skip
    return answer._claiming(min(max(result.lower, floor), answer.upper))
