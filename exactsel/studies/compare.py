"""Exact against approximate, side by side: run many methods and the exact search on one problem."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from numpy.typing import ArrayLike

from exactsel import registry
from exactsel.arguments import every_core, with_aliases
from exactsel.bounds.base import BoundSolver
from exactsel.errors import InputError, UnsupportedError, WrongFamilyError
from exactsel.interrupts import CompilationStopped, dispensable
from exactsel.nodes.tolerance import Gap
from exactsel.observers.lines import Say, Since, teller
from exactsel.problem.fit import Fit
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.search.watch import Watch
from exactsel.solving.fallback import run_in_time
from exactsel.solving.problem_arguments import problem_asked
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.solving.small import begun_without_compiler
from exactsel.solving.solver import Search
from exactsel.start.heuristic import Context, Heuristic, Proposal
from exactsel.start.models import admissible, checked_support
from exactsel.studies.comparison_table import comparison_table
from exactsel.studies.heuristics import make
from exactsel.to_plain import Readable, finite, html_line, html_table, html_view

NOT_REPRODUCIBLE = ("pposs-async",)
"""Methods whose answer may differ from run to run."""

ON_REQUEST = (*NOT_REPRODUCIBLE, "islands")
"""Methods that run only on request, including those that repeat another one several times."""

LIGHT = (
    "forward", "omp", "rfe", "swap", "iht", "lasso",
    "greedy-css", "iterative-css", "two-stage", "approx-svd",
)  # fmt: skip
"""Methods that take little of what a search takes: six for a regression, four for column subset selection."""

ALL = "all"
"""In place of names: every method but those on request."""

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
    seeds: tuple[int, ...] = ()
    """The seeds it was run with, where it is random and they were several; the row is about the best of these runs."""
    values: tuple[float, ...] = ()
    """The objective with each of them."""

    @property
    def spread(self) -> tuple[float, float, float]:
        """The smallest, the median and the largest objective over the seeds."""
        values = self.values or (self.value,)
        return min(values), median(values), max(values)

    def _measured(self) -> tuple[float, float, float]:
        """``value``, ``lower`` and ``null``, from which ``gap`` and ``absolute_gap`` follow."""
        return self.value, self.lower, self.null


@dataclass(frozen=True, repr=False)
class Comparison(Readable):
    """The methods' rows, best objective first, and the exact search's result."""

    rows: tuple[Row, ...]
    result: Result
    left_out: tuple[tuple[str, str], ...]
    """(method, reason) for methods that cannot serve this problem or lack a library."""
    alone: Result | None = None
    """The exact search once more, from the empty model, without the methods' help (on request)."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        names = self.result.problem["feature_names"]
        methods = [
            {
                "method": row.method, "upper": finite(row.value), "support": list(row.support),
                "feature_names": None if names is None else [names[j] for j in row.support], "gap": finite(row.gap),
                "absolute_gap": finite(row.absolute_gap), "excess": finite(row.excess), "shared": row.shared,
                "evaluations": row.evaluations, "time": row.time, "seeds": list(row.seeds),
                "objectives": [finite(value) for value in row.values], **_spread_of(row),
                "curve": [[count, finite(value)] for count, value in row.proposal.curve],
            }
            for row in self.rows
        ]  # fmt: skip
        left_out = [{"method": method, "reason": reason} for method, reason in self.left_out]
        return {"methods": methods, "exact": self.result.as_dict(), "left_out": left_out}

    def __str__(self) -> str:
        return comparison_table(self)

    def _repr_html_(self) -> str:
        result, size = self.result, len(self.result.support)
        shared = f"{size} of {size}"
        rows = [("exact search", f"{result.upper:.9g}", "0", f"{result.gap:.3g}", shared, f"{result.time:.3f}")]
        rows += [
            (
                row.method, f"{row.value:.9g}", f"{row.excess:.4g}", f"{row.gap:.3g}", f"{row.shared} of {size}",
                f"{row.time:.3f}",
            )
            for row in self.rows
        ]  # fmt: skip
        head = ("method", "objective", "above the best", "gap", f"{result._noun}s of the best", "seconds")
        said = html_line(result.claim_text, strong=True, aside=not result.reached)
        return html_view(said, html_table(rows, head))


@begun_without_compiler
@with_aliases
def compare(
    problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *,
    methods: str | Sequence[str | Heuristic] | None = None, seed: int = 0, seeds: int = 1,
    time_limit: float | None = 60.0, eps: float = 0.0, rel_eps: float = 1e-6, threads: int | None = None,
    bound: str | BoundSolver = "auto", alone: bool = False, signals: Sequence[int] = (signal.SIGINT,), verbose: int = 0,
    **options: object,
) -> Comparison:  # fmt: skip
    """Run the methods, then the exact search, and put them side by side: ``compare(X, y, k=5)``.

    Parameters
    ----------
    problem : problem; or array, sparse matrix or data frame (n, d)
    y, k : array (n,), int, optional
        Target of the data; largest number of features. Data take ``options`` as for :func:`exactsel.solve`.
    methods : sequence of str or Heuristic, optional
        Methods, or their names separated by commas. A few light ones by default; ``all`` stands for every reproducible
        method.
    seed : int
        Seed of the methods' random choices.
    seeds : int
        Number of seeds, from ``seed`` on, for random methods; the others run once.
    time_limit : float, optional
        Seconds for each run of a method, and for the search (or :mod:`exactsel.bounds.fallback`, if it needs more).
    eps, rel_eps : float
        Gap at which the exact search may stop.
    threads : int, optional
        Threads of the exact search.
    bound : str or object
        Bound of the exact search, as for :class:`exactsel.Settings`.
    alone : bool
        Run the search without a model to start from, too, to compare its progress with that of the methods.
    signals : sequence of int
        Signals that end the running method and the search (main thread only). Methods that have not run are skipped.
    verbose : int
        1 prints a line on stderr for each method, and the claim of the search.

    Returns
    -------
    Comparison
        Every gap is certified: the search's lower bound holds for all methods alike.

    Raises
    ------
    UnsupportedError
        When a method cannot serve the problem.
    """
    if isinstance(seeds, bool) or seeds < 1:
        raise InputError(f"seeds is {seeds}, but every method is run at least once; give 1 or more.")
    subset_problem, _ = problem_asked(problem, y, k, options, known=())
    settings = Settings(eps, rel_eps, time_limit, threads=every_core(threads), seed=seed, bound=bound)
    if isinstance(methods, str):
        methods = [name.strip() for name in methods.split(",") if name.strip() not in ("", "none")]
    wanted = LIGHT if methods is None else default_methods() if methods == [ALL] else methods
    serve = methods is not None and methods != [ALL]
    return _compared(subset_problem, wanted, serve, settings, seeds, alone, signals, teller(verbose))


def _compared(
    problem: SubsetProblem, methods: Sequence[str | Heuristic], must_serve: bool, settings: Settings, seeds: int,
    alone: bool, signals: Sequence[int], tell: Say | None,
) -> Comparison:  # fmt: skip
    """See :func:`compare`; a method that ``must_serve`` and cannot is an error."""
    since = None if tell is None else Since(tell)
    with Watch(None, signals) as whole:
        answers, left_out = _answers(problem, methods, must_serve, settings, seeds, signals, whole, since)
        result = _searched(problem, settings, [answer.best.fit for answer in answers], signals)
        if since is not None:
            since(f"exact search: objective {result.upper:.8g}, gap {result.gap:.2e}, {result.claim.value}")
        unaided = Search(problem, replace(settings, heuristics=()), signals=signals).run() if alone else None
    rows = sorted((_row(problem, answer, result) for answer in answers), key=lambda row: (row.value, row.method))
    return Comparison(tuple(rows), result, tuple(left_out), unaided)


def _searched(problem: SubsetProblem, settings: Settings, fits: Sequence[Fit], signals: Sequence[int]) -> Result:
    """The exact search, from the best answer: a fair start, which takes nothing from the methods.

    So the bounds refer to one incumbent.
    """
    start = min(fits, key=lambda fit: fit.value).columns.tolist() if fits else None
    return run_in_time(Search(problem, settings, start=start, signals=signals, listing=True))


@dataclass(frozen=True)
class _Run:
    """One run of a method: what it said, in how many seconds, and the refit."""

    seed: int
    proposal: Proposal
    seconds: float
    fit: Fit


@dataclass(frozen=True)
class _Answer:
    """A method's runs, one for each seed where it uses seeds."""

    heuristic: Heuristic
    runs: tuple[_Run, ...]

    @property
    def best(self) -> _Run:
        """The run of smallest objective, the first of equal ones."""
        return min(self.runs, key=lambda run: run.fit.value)


class _Noticing(Context):
    """A context that records whether the seed was read."""

    asked = False

    def __getattribute__(self, name: str) -> object:
        """Any attribute, noticed if it is the seed."""
        if name == "seed":
            object.__setattr__(self, "asked", True)
        return super().__getattribute__(name)


def _row(problem: SubsetProblem, answer: _Answer, result: Result) -> Row:
    """What a method's model costs for the data as given, beside the best."""
    statement, run = statement_of(problem), answer.best
    value, several = statement.upper(run.fit), len(answer.runs) > 1
    shared = len({*run.fit.support} & {*result.support})
    return Row(
        answer.heuristic.name, value, run.fit.support, result.lower, value - result.upper, shared,
        run.proposal.evaluations, run.seconds, run.proposal, problem.null_objective,
        tuple(each.seed for each in answer.runs) if several else (),
        tuple(value if each is run else statement.upper(each.fit) for each in answer.runs) if several else (),
    )  # fmt: skip


def _spread_of(row: Row) -> dict[str, Any]:
    """The spread over the seeds as plain data; nothing where there was one run."""
    if not row.values:
        return {}
    least, middle, most = row.spread
    return {"min": finite(least), "median": finite(middle), "max": finite(most)}


def _answers(
    problem: SubsetProblem, methods: Sequence[str | Heuristic], must_serve: bool, settings: Settings, seeds: int,
    signals: Sequence[int], whole: Watch, tell: Say | None = None,
) -> tuple[list[_Answer], list[tuple[str, str]]]:  # fmt: skip
    """What each method says; and (method, reason) for those that say nothing."""
    answers: list[_Answer] = []
    left_out: list[tuple[str, str]] = []
    for method in methods:
        try:
            heuristic = make(method)
            runs = _runs(heuristic, problem, settings, seeds, signals, whole)
        except UnsupportedError as error:
            if must_serve:
                raise
            if not isinstance(error, WrongFamilyError):
                left_out.append((str(method), str(error)))
            continue
        if runs:
            answers.append(_Answer(heuristic, runs))
            if tell is not None:
                tell(f"{heuristic.name}: objective {answers[-1].best.fit.value:.8g}")
        else:
            left_out.append((heuristic.name, INTERRUPTED))
    return answers, left_out


def _runs(
    heuristic: Heuristic, problem: SubsetProblem, settings: Settings, seeds: int, signals: Sequence[int], whole: Watch
) -> tuple[_Run, ...]:
    """A method's runs, with all seeds if it reads the first; fewer, or none, after an interrupt."""
    runs: list[_Run] = []
    for seed in range(settings.seed, settings.seed + seeds):
        if whole.interrupted:
            break
        began = time.perf_counter()
        try:
            with Watch(settings.time_limit, signals) as watch, dispensable():
                context = _Noticing(seed=seed, should_stop=lambda: watch.stopped)
                proposal = heuristic.run(problem, context)
            seconds = time.perf_counter() - began
            with dispensable():
                fit = problem.fit(admissible(checked_support(proposal.support, problem), problem))
        except CompilationStopped:
            break
        runs.append(_Run(seed, proposal, seconds, fit))
        whole.keep_result()
        if not context.asked:
            break
    return tuple(runs)


def default_methods() -> list[str]:
    """Every method known by name except those that run only on request."""
    return [name for name in registry.names("heuristics") if name not in ON_REQUEST]
