"""Starting models: run heuristics one after the other and keep the best refit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from exactsel import registry
from exactsel.errors import InputError, UnsupportedError
from exactsel.fit import Fit
from exactsel.settings import DEFAULT_HEURISTICS
from exactsel.subset import SubsetProblem
from exactsel_heuristics.base import Context, Heuristic


def resolve(heuristics: Sequence[Any]) -> list[Heuristic]:
    """Names and objects to heuristics; :class:`InputError` for an unknown name."""
    return [registry.load("heuristics", h)() if isinstance(h, str) else h for h in heuristics]


def starting_models(
    problem: SubsetProblem, heuristics: Sequence[Any], best: Fit, seed: int, should_stop: Callable[[], bool]
) -> Iterator[tuple[Fit, str]]:
    """Run the heuristics in turn; yield each model better than ``best`` and all before, with its finder's name.

    Every proposal is refitted from the data. Local searches start from the best model so far. Heuristics of the
    default portfolio that cannot serve the problem are passed over; one that was asked for by name is an error.
    """
    default = tuple(heuristics) == DEFAULT_HEURISTICS
    for heuristic in resolve(heuristics):
        if should_stop():
            return
        context = Context(seed=seed, start=best.support or None, should_stop=should_stop)
        try:
            proposal = heuristic.run(problem, context)
        except UnsupportedError:
            if default:
                continue
            raise
        fit = problem.fit(checked_support(proposal.support, problem))
        if fit.value < best.value:
            best = fit
            yield fit, heuristic.name


def checked_support(support: Sequence[int], problem: SubsetProblem) -> tuple[int, ...]:
    """A proposed support, ascending; :class:`InputError` when it is not one of this problem."""
    columns = tuple(sorted({int(j) for j in support}))
    if len(columns) != len(tuple(support)):
        raise InputError(f"the support {list(support)} names a column twice; give each column once.")
    wrong = next((j for j in columns if not 0 <= j < problem.d), None)
    if wrong is not None:
        raise InputError(
            f"the support names column {wrong}, but the columns are numbered 0 to {problem.d - 1}; correct the number."
        )
    if len(columns) > problem.k:
        raise InputError(
            f"the support has {len(columns)} columns, but k is {problem.k}; give at most k columns or raise k."
        )
    return columns
