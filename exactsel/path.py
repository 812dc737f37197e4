"""Many related problems: the best model of every size, or for every ridge weight, each with its own certified gap."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from exactsel.column_subset import ColumnSubsetProblem
from exactsel.errors import InputError
from exactsel.grouped import GroupedProblem
from exactsel.problem import Problem
from exactsel.result import Result
from exactsel.solving import solve

QUICK_HEURISTICS = {
    "regression": ("forward", "swap"), "css": ("greedy-css", "iterative-css"), "grouped": ("forward", "swap"),
}  # fmt: skip
"""After the first problem there is a model to start from, and local search improves it."""


@dataclass(frozen=True)
class SolutionPath:
    """The results along a path, in the order solved: lam descending, and k ascending for each lam."""

    results: tuple[Result, ...]

    @property
    def reached(self) -> bool:
        """Whether the tolerance asked for is proven for every problem."""
        return all(result.reached for result in self.results)

    @property
    def time(self) -> float:
        """Total seconds."""
        return sum(result.time for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        return {"results": [result.as_dict() for result in self.results], "time": self.time}

    def to_json(self, **options: Any) -> str:
        """One strict JSON object; ``options`` go to :func:`json.dumps`."""
        return json.dumps(self.as_dict(), allow_nan=False, **options)


def solve_path(
    problem: Problem | ColumnSubsetProblem | GroupedProblem,
    ks: Iterable[int] | None = None,
    lams: Iterable[float] | None = None,
    *,
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
    signals : sequence of int
        Signals that end the path after the problem at hand, with what there is (main thread only).
    **options
        As for :func:`exactsel.solve`; limits hold for each problem.

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
    smallest = max(1, len(getattr(problem, "must_have", ())))
    sizes = sorted({min(k, problem.d) for k in (range(smallest, problem.k + 1) if ks is None else ks)})
    if not sizes:
        raise InputError("the path has no sizes; give at least one k.")
    weights: list[float | None] = [None]
    if lams is not None:
        if not isinstance(problem, Problem | GroupedProblem):
            raise InputError("column subset selection has no lam; leave lams out.")
        weights = [*sorted({*lams}, reverse=True)] or [None]
    results: list[Result] = []
    before: dict[int, tuple[int, ...]] = {}
    for lam in weights:
        smaller: tuple[int, ...] = ()
        for k in sizes:
            changes: dict[str, Any] = {"k": k} if lam is None else {"k": k, "lam": lam}
            start = before.get(k, smaller)
            arguments = options if not results else {"heuristics": QUICK_HEURISTICS[problem.family], **options}
            # From the last one, which knows all that has been worked out from the data.
            problem = problem.replace(**changes)
            result = solve(problem, start=start, signals=signals, **arguments)
            results.append(result)
            before[k] = smaller = result.support
            if result.termination == "interrupted":
                return SolutionPath(tuple(results))
    return SolutionPath(tuple(results))
