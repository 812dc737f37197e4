"""Exact against approximate, side by side: run many methods and the exact search on one problem."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from exactsel import registry
from exactsel.errors import UnsupportedError, WrongFamilyError
from exactsel.interrupts import CompilationStopped, dispensable
from exactsel.plain import Json, finite
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.search.tolerance import Gap
from exactsel.search.watch import Watch
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel.start.heuristic import Context, Heuristic, Proposal
from exactsel.start.models import admissible, checked_support
from exactsel.studies.heuristics import make

NOT_REPRODUCIBLE = ("pposs-async",)
"""Methods left out unless asked for: their answer may differ from run to run."""

INTERRUPTED = "the comparison was interrupted"


@dataclass(frozen=True)
class Row(Gap):
    """One method's answer, beside what the exact search has proven."""

    method: str
    value: float
    """No smaller than the objective of the exact refit on its support."""
    support: tuple[int, ...]
    lower: float
    """What no model is below, as the exact search has proven."""
    excess: float
    """value - the best objective known: at least this above the optimum."""
    shared: int
    """Columns in common with the best model known."""
    evaluations: int
    time: float
    proposal: Proposal
    null: float = 0.0
    """Objective of the empty model."""

    def measured(self) -> tuple[float, float, float]:
        """``value``, ``lower`` and ``null``, from which ``gap`` and ``rel_gap`` follow."""
        return self.value, self.lower, self.null


@dataclass(frozen=True)
class Comparison(Json):
    """The methods' rows, best objective first, and the exact search's result."""

    rows: tuple[Row, ...]
    result: Result
    left_out: tuple[tuple[str, str], ...]
    """(method, reason) for methods that cannot serve this problem or lack a library."""
    alone: Result | None = None
    """The exact search once more, from the empty model: what it does without the methods' help (when asked for)."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        names = self.result.problem["feature_names"]
        methods = [
            {
                "method": row.method, "upper": finite(row.value), "support": list(row.support),
                "feature_names": None if names is None else [names[j] for j in row.support], "gap": finite(row.gap),
                "rel_gap": finite(row.rel_gap), "excess": finite(row.excess), "shared": row.shared,
                "evaluations": row.evaluations, "time": row.time,
                "curve": [[count, finite(value)] for count, value in row.proposal.curve],
            }
            for row in self.rows
        ]  # fmt: skip
        left_out = [{"method": method, "reason": reason} for method, reason in self.left_out]
        return {"methods": methods, "exact": self.result.as_dict(), "left_out": left_out}


def compare(
    problem: SubsetProblem,
    methods: str | Sequence[str | Heuristic] | None = None,
    *,
    seed: int = 0,
    time_limit: float | None = 60.0,
    eps: float = 0.0,
    rel_eps: float = 1e-6,
    threads: int | None = None,
    alone: bool = False,
    signals: Sequence[int] = (signal.SIGINT,),
) -> Comparison:
    """Run the methods, then the exact search, and put them side by side.

    Parameters
    ----------
    problem : Problem or ColumnSubsetProblem
    methods : sequence of str or Heuristic, optional
        Names separated by commas will do. By default every reproducible method that serves the problem.
    seed : int
        Seed of the methods' random choices.
    time_limit : float, optional
        Seconds for each method, and for the exact search.
    eps, rel_eps : float
        Gap at which the exact search may stop.
    threads : int, optional
        Threads of the exact search.
    alone : bool
        Also run the search without a model to start from, so that its progress can be set beside the methods'.
    signals : sequence of int
        Signals that end the method and the search that are at work (main thread only); the methods that have not had
        their turn are left out.

    Returns
    -------
    Comparison
        Every gap is certified: the search's lower bound holds for all methods alike.

    Raises
    ------
    UnsupportedError
        When a method asked for cannot serve the problem.
    """
    settings = Settings(eps=eps, rel_eps=rel_eps, seed=seed, time_limit=time_limit, threads=threads)
    if isinstance(methods, str):
        methods = [name.strip() for name in methods.split(",") if name.strip() not in ("", "none")]
    with Watch(None, signals) as whole:
        answers, left_out = _answers(problem, methods, settings, signals, whole)
        fits = [fit for _, _, _, fit in answers]
        # The best answer is a fair start: it takes nothing from the methods, and the bounds refer to one incumbent.
        start = min(fits, key=lambda fit: fit.value).columns.tolist() if fits else None
        result = Search(problem, settings, start=start, signals=signals).run()
        unaided = Search(problem, replace(settings, heuristics=()), signals=signals).run() if alone else None
    rows = _rows(problem, answers, result)
    return Comparison(tuple(sorted(rows, key=lambda row: (row.value, row.method))), result, tuple(left_out), unaided)


def _rows(
    problem: SubsetProblem, answers: Sequence[tuple[Heuristic, Proposal, float, Fit]], result: Result
) -> list[Row]:
    """What each method's model costs for the data as given, beside the best."""
    statement = statement_of(problem)
    return [
        Row(
            heuristic.name, value, fit.support, result.lower, value - result.upper,
            len({*fit.support} & {*result.support}), proposal.evaluations, seconds, proposal, problem.null_objective,
        )
        for heuristic, proposal, seconds, fit in answers
        for value in [statement.upper(fit)]
    ]  # fmt: skip


def _answers(
    problem: SubsetProblem, methods: Sequence[str | Heuristic] | None, settings: Settings, signals: Sequence[int],
    whole: Watch,
) -> tuple[list[tuple[Heuristic, Proposal, float, Fit]], list[tuple[str, str]]]:  # fmt: skip
    """What each method says, in how many seconds, and its refit; and (method, reason) for those that say nothing."""
    answers: list[tuple[Heuristic, Proposal, float, Fit]] = []
    left_out: list[tuple[str, str]] = []
    for method in default_methods() if methods is None else methods:
        try:
            heuristic = make(method)
            began = time.perf_counter()
            if whole.interrupted:
                left_out.append((heuristic.name, INTERRUPTED))
                continue
            proposal = _run(heuristic, problem, settings.seed, settings.time_limit, signals)
            seconds = time.perf_counter() - began
            with dispensable():
                fit = problem.fit(admissible(checked_support(proposal.support, problem), problem))
        except CompilationStopped:
            left_out.append((heuristic.name, INTERRUPTED))
            continue
        except UnsupportedError as error:
            if methods is not None:
                raise
            if not isinstance(error, WrongFamilyError):
                left_out.append((str(method), str(error)))
            continue
        answers.append((heuristic, proposal, seconds, fit))
        whole.keep_result()
    return answers, left_out


def _run(
    heuristic: Heuristic, problem: SubsetProblem, seed: int, time_limit: float | None, signals: Sequence[int]
) -> Proposal:
    with Watch(time_limit, signals) as watch, dispensable():
        return heuristic.run(problem, Context(seed=seed, should_stop=lambda: watch.stopped))


def default_methods() -> list[str]:
    """Every method known by name whose answer is the same in every run."""
    return [name for name in registry.names("heuristics") if name not in NOT_REPRODUCIBLE]
