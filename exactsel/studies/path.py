"""Many related problems: the best model of every size, or for every ridge weight, each with its own certified gap."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from exactsel.errors import InputError
from exactsel.plain import Readable, html_table
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.solving.choose import FAMILIES
from exactsel.solving.entry import solve
from exactsel.solving.result import Result, Termination
from exactsel.solving.settings import Settings
from exactsel.solving.small import begun_without_compiler
from exactsel.studies.near import NearOptimal, check_near, list_near

_HEAD = ("k", "lam", "objective", "gap", "claim", "columns")
_WIDTHS = (4, 10, 16, 9, 11, 0)


@dataclass(frozen=True, repr=False)
class SolutionPath(Readable):
    """The results along a path, in the order solved: lam descending, and k ascending for each lam."""

    results: tuple[Result, ...]
    near: tuple[NearOptimal, ...] | None = None
    """For each result the models close to it, when they were asked for."""
    near_share: float | None = None
    """How close: their objectives exceed the result's by at most this share of it."""

    @property
    def reached(self) -> bool:
        """Whether the tolerance asked for is proven for every problem."""
        return all(result.reached for result in self.results)

    def __repr__(self) -> str:
        return f"<SolutionPath of {len(self.results)} problems, {'all' if self.reached else 'not all'} proven>"

    def __str__(self) -> str:
        """One line a problem."""
        rows = (zip(row, _WIDTHS, strict=True) for row in (_HEAD, *self._rows()))
        return "\n".join("  ".join(f"{cell:<{width}}" for cell, width in row).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        return html_table(self._rows(), _HEAD)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for result in self.results:
            inside = result.feature_names or result.support
            yield (
                str(result.problem["k"]),
                f"{result.problem['lam']:.6g}" if "lam" in result.problem else "",
                f"{result.upper:.9g}",
                f"{result.gap:.3g}",
                result.claim.value,
                ", ".join(map(str, inside)) or "none",
            )

    @property
    def complete(self) -> bool:
        """Whether every list of near-optimal models that was asked for is complete."""
        return self.near is None or (len(self.near) == len(self.results) and all(n.complete for n in self.near))

    @property
    def interrupted(self) -> bool:
        """Whether the path ended early because somebody said so."""
        listed = any(near.termination == "interrupted" for near in self.near or ())
        return listed or self.results[-1].termination is Termination.INTERRUPTED

    @property
    def time(self) -> float:
        """Total seconds, listings not counted."""
        return sum(result.time for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        results = [{**result.as_dict(), **self.alternatives(i)} for i, result in enumerate(self.results)]
        return {"results": results, "near_share": self.near_share, "time": self.time}

    def alternatives(self, place: int) -> dict[str, Any]:
        """What the JSON object says of the models close to one result, under ``near``; nothing if nobody asked."""
        if self.near is None:
            return {}
        return {"near": self.near[place].listed() if place < len(self.near) else None}


@begun_without_compiler
def solve_path(
    problem: Problem | ColumnSubsetProblem,
    ks: Iterable[int] | None = None,
    lams: Iterable[float] | None = None,
    *,
    near: float | None = None,
    cap: int = 1000,
    signals: Sequence[int] = (signal.SIGINT,),
    **options: Any,
) -> SolutionPath:
    """Solve for several sizes and ridge weights on the same data.

    The Gram matrix and the curvature are computed once, and each problem starts from the model of the one before.
    Every result stands for itself: it has its own proof, and is what :func:`exactsel.solve` would prove.

    Parameters
    ----------
    problem : Problem, ColumnSubsetProblem or GroupedProblem
        The data; its k is the largest size unless ``ks`` is given.
    ks : iterable of int, optional
        Sizes; 1 to k by default. More than d counts as d.
    lams : iterable of float, optional
        Ridge weights (regression only); the problem's own by default.
    near : float, optional
        Also list, for every problem, the sets of exactly k columns whose objective exceeds the best by at most this
        share of it (see :func:`exactsel.near_optimal`).
    cap : int
        With more models than this a list is cut short, and says so.
    signals : sequence of int
        Signals that end the path after the problem at hand, with what there is (main thread only).
    **options
        As for :func:`exactsel.solve`; limits hold for each problem, and the time limit for each listing as well.

    Returns
    -------
    SolutionPath

    Raises
    ------
    InputError
        For an empty path, or a size or ridge weight that cannot be used.
    """
    if options.get("proof") is not None:
        raise InputError("a path has many proofs, but one file was given; solve each size on its own to get its proof.")
    if near is not None:
        check_near(near, cap)
    listing = None if near is None else partial(_listing, share=near, cap=cap, signals=signals, options=options)
    return _walked(problem, _steps(problem, ks, lams), near, listing, {"signals": signals, **options})


def _walked(
    problem: Problem | ColumnSubsetProblem, steps: list[dict[str, Any]], near: float | None,
    listing: Callable[..., NearOptimal] | None, options: dict[str, Any],
) -> SolutionPath:  # fmt: skip
    """Solve step after step, each from the models of those before, until something interrupts."""
    path = SolutionPath((), None if near is None else (), near)
    before: dict[int, tuple[int, ...]] = {}
    smaller: tuple[int, ...] = ()
    for changes in steps:
        k = changes["k"]
        start = before.get(k, smaller)
        # After the first problem there is a model to start from, and local search improves it.
        arguments = {"heuristics": FAMILIES[problem.family].improving, **options} if path.results else options
        # From the last one, which knows all that has been worked out from the data.
        problem = problem.replace(**changes)
        result = solve(problem, start=start, **arguments)
        path = replace(path, results=(*path.results, result))
        if listing is not None and not path.interrupted:
            path = replace(path, near=(*(path.near or ()), listing(problem, result)))
        before[k] = smaller = result.support
        if path.interrupted:
            break
    return path


def _steps(
    problem: Problem | ColumnSubsetProblem, ks: Iterable[int] | None, lams: Iterable[float] | None
) -> list[dict[str, Any]]:
    """What :meth:`replace` is told at each step of the path, in its order; :class:`InputError` where there is none."""
    smallest = max(1, len(problem.units.completed(problem.units.must_have, problem.k) or ()))
    sizes = sorted({min(k, problem.d) for k in (range(smallest, problem.k + 1) if ks is None else ks)})
    if not sizes:
        raise InputError("the path has no sizes; give at least one k.")
    weights = [] if lams is None else sorted({*lams}, reverse=True)
    if lams is not None and problem.objective is None:
        raise InputError("column subset selection has no lam; leave lams out.")
    return [{"k": k, "lam": lam} for lam in weights for k in sizes] if weights else [{"k": k} for k in sizes]


def _listing(
    problem: SubsetProblem, result: Result, share: float, cap: int, signals: Sequence[int],
    options: dict[str, Any],
) -> NearOptimal:  # fmt: skip
    """The models close to a result; of the options those that are settings."""
    settings = {field.name for field in fields(Settings)}
    kept = {name: value for name, value in options.items() if name in settings}
    return list_near(problem, result, share * abs(result.upper), cap=cap, signals=signals, **kept)
