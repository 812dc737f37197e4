"""Solve a problem: starting models, then the search, then the result.

:func:`solve` is the short way. :class:`Search` is the same as an iterator of events, to watch or drive a search;
:func:`solve` does nothing but iterate over it.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import Any

from exactsel import clock
from exactsel._jit import ENABLED, available_threads, interpreted, interpreted_steps, interprets, steps_leaving_half
from exactsel.algebra.threads import one_thread
from exactsel.bounds.base import BoundOptions, PreparedBound
from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.closers.base import RegionSolver
from exactsel.closers.below_minorant import EnumeratePatterns, EnumerateRoot
from exactsel.closers.clusters import BoundByClusters
from exactsel.closers.strong import CloseByStrong
from exactsel.errors import CompilingWarning, InputError, UnsupportedError, option, warn
from exactsel.interrupts import CompilationStopped, compiles_on, dispensable, dispensable_steps, hurrying, waited
from exactsel.nodes.node import root_node
from exactsel.observers.history import History
from exactsel.problem.capabilities import PLAIN_REGRESSION
from exactsel.problem.fit import Fit
from exactsel.problem.interface import Statement, SubsetProblem
from exactsel.problem.model import Model, PreparedModel, column_ratio
from exactsel.proofs.checkable import checkable_by_patterns
from exactsel.proofs.statement import statement_of
from exactsel.search.count_parts import CountParts
from exactsel.search.engine import Limits, search
from exactsel.search.events import Event, Finished, IncumbentFound, Started
from exactsel.search.expand import Expander
from exactsel.search.frontier import BestFirst
from exactsel.search.pool import SHARD, SHARDS, Executor, Pool
from exactsel.search.spilling import Room, Spilling, TemporaryNodeStore
from exactsel.search.state import SearchState
from exactsel.search.watch import Watch
from exactsel.solving.checkpointing import Kept, SearchMode
from exactsel.solving.choose import make, methods_for
from exactsel.solving.fallback import seconds_kept
from exactsel.solving.full_data import full_data_of
from exactsel.solving.likelihood import likelihood_of
from exactsel.solving.outcome import claim_of, termination_of
from exactsel.solving.quality import quality_of
from exactsel.solving.result import Result
from exactsel.solving.settings import Settings
from exactsel.solving.shard_worker import expander_of, job_bytes
from exactsel.solving.small import is_small
from exactsel.solving.unattained import FINAL, refuse_unattained
from exactsel.start.heuristic import Context
from exactsel.start.models import given_support, resolve, starting_models
from exactsel.start.portfolio import AUTO, portfolio_for
from exactsel.start.primal_heuristics import PrimalHeuristics

HEURISTICS_SHARE = 0.5
"""Part of the time limit the starting heuristics may use, so that some is left for a bound."""

SHORT_OF_TIME = (
    "the time limit came while kernels were being compiled, which they are once; run 'exactsel dev warmup' before, or "
    "give a minute more."
)


class Search:
    """One solve as an iterator of events. ``state`` is current at every event, and :meth:`result` sums it up.

    Parameters
    ----------
    problem : Problem
    settings : Settings, optional
    start : sequence of int, optional
        Another support to start from.
    state : SearchState, optional
        The state of an earlier search on the same problem, to resume from.
    signals : sequence of int, optional
        Signals that end the search with a result; SIGINT by default.
    details : bool
        Yield an event for every node of a subtree searched in a kernel, too. The events then describe a full proof.
    thorough : bool
        Tighten bounds to the end, for a search that shows the bound of its first node.
    listing : bool
        Enumerate models below a quadratic minorant where that is likely to be quicker (Huber and logistic loss).
        Regions closed this way cannot be replayed, so ``details`` turns it off.
    shown : bool
        Enumerate only where a proof comes with it, for :class:`exactsel.proofs.writer.ProofWriter`.
    compiled : bool
        Start with compiled kernels even for a small problem, as a resumed search does.
    executor : Executor
        Expands shards of nodes; ``shard`` of the settings is their size.
    room : Room
        Stores open nodes that exceed the memory limit; a temporary file by default.
    """

    def __init__(
        self,
        problem: SubsetProblem,
        settings: Settings | None = None,
        *,
        start: Sequence[int] | None = None,
        state: SearchState | None = None,
        signals: Sequence[int] = (signal.SIGINT,),
        details: bool = False,
        thorough: bool = False,
        listing: bool = False,
        shown: bool = False,
        compiled: bool = False,
        room: Room | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.problem = problem
        self.settings = settings or Settings()
        if executor is not None and self.settings.shard is None:
            self.settings = replace(self.settings, shard=SHARD)
        self._small = state is None and not compiled and executor is None and is_small(problem)
        with interpreted(self._small):
            self._tolerance = self.settings.tolerance.of(problem)
        self.times: dict[str, float] = {}
        self.history = History()
        self._start = None if start is None else given_support(start, problem)
        self.signals = signals
        self._details, self._thorough = details, thorough
        self._listing, self._shown = listing and not details and self.settings.shard is None, shown
        self._began = time.perf_counter()
        self._methods = methods_for(problem, self.settings)
        resolve(portfolio_for(problem, self.settings.heuristics)[0])
        if state is not None and state.problem_hash != problem.hash:
            raise InputError("the state to resume from belongs to another problem; give the one it was made for.")
        self._given_state, self._room, self._executor = state, room, executor
        if executor is not None and self._methods.tree.eager:
            raise UnsupportedError(
                f"the tree '{self._methods.tree.name}' takes one node after the other, which leaves workers nothing to "
                f"do; use {option('tree', 'binary')}, or leave the executor out."
            )
        self._termination: str | None = None
        self._bound: PreparedBound | None = None
        self._expander: Expander | None = None
        self._postponed, self._waited = False, waited()
        self._kernels = "compiled" if ENABLED else "interpreted"
        self._watch: Watch | None = None
        self.has_fallback = False
        """Whether the caller uses the fallback bound where the time limit ends before the first bound (fallback.py)."""

    @property
    def bound(self) -> PreparedBound | None:
        """The prepared bound; None before the search has begun."""
        return self._bound

    @property
    def time_left(self) -> float:
        """Seconds of the time limit, from when the search began."""
        return math.inf if self._watch is None else self._watch.time_left

    @cached_property
    def state(self) -> SearchState:
        """Open nodes and incumbent; made on first use, because that already loads kernels."""
        if self._given_state is not None:
            return self._given_state
        frontier = make("frontiers", self.settings.frontier)
        root = root_node(self.problem.root_state, self.problem.infimum)
        with interpreted(self._small):
            first = self.problem.fit(self.problem.first_support or root.support)
        source = "first admissible model" if self.problem.first_support else "empty model"
        state = SearchState(
            frontier, first, source, self.problem.hash, statement=statement_of(self.problem),
            unit=2.0 ** math.frexp(self.problem.null_objective)[1], valid_for=self.problem.valid_for,
        )  # fmt: skip
        state.push(root)
        return state

    def __iter__(self) -> Iterator[Event]:
        """Run; every event is also a moment at which ``state`` holds a valid lower and upper bound."""
        with closing(self._run()) as events:
            for event in interpreted_steps(self._small, events):
                self.history(event, self.state)
                yield event

    def _run(self) -> Generator[Event, None, None]:
        settings, began_interpreted = self.settings, interprets()
        # Many small linear systems: BLAS threads would only get in each other's way, and in that of our own.
        early = seconds_kept(self.problem, settings.time_limit) if self._reserves_time else 0.0
        with Watch(settings.time_limit, self.signals, gives_up=True, early=early) as watch, one_thread():
            self._watch = watch
            try:
                expander = yield from self._prepared(watch)
            except CompilationStopped:
                self._termination = watch.reason or "interrupted"
                open_nodes = self.state.open_nodes()
                yield from (Started(open_nodes), Finished(self._termination, open_nodes))
                return
            limits = Limits(self._batch, settings.node_limit, settings.memory_limit, self._details, settings.shard)
            self.state.guard.spilling = self._spilling
            began = time.perf_counter()
            try:
                with one_thread():  # in libraries, too, that were loaded meanwhile
                    pool = self._pool(watch)
                    for event in search(self.state, expander, limits, watch, self._improver(watch), pool):
                        if isinstance(event, Finished):
                            self._termination = event.termination
                            refuse_unattained(self.problem, self.state.incumbent, final=event.termination in FINAL)
                        elif isinstance(event, IncumbentFound):
                            refuse_unattained(self.problem, self.state.incumbent, final=False)
                        if not watch.result_at_hand and (self.state.nodes > 0 or isinstance(event, Finished)):
                            watch.keep_result()
                        yield event
            finally:
                if self._executor is not None:
                    self._executor.close()
                self.times["search"] = time.perf_counter() - began
                if began_interpreted:
                    self._kernels = "interpreted" if interprets() else "interpreted, then compiled"

    def _prepared(self, watch: Watch) -> Generator[Event, None, Expander]:
        """What expands nodes, and on the way the starting models."""
        settings, methods = self.settings, self._methods
        began = time.perf_counter()
        threads = settings.threads or available_threads()
        options = BoundOptions(
            threads, settings.warm_start, settings.force_quit, settings.time_limit,
            thorough=self._thorough, stop=watch.flag,
        )  # fmt: skip
        with dispensable():
            self._bound = methods.bound.prepare(self.problem, options)
            self.times["prepare"] = time.perf_counter() - began
            events = () if self._start is None else self._take(self.problem.fit(self._start), "given")
        yield from events
        if self._given_state is None or self._given_state.rounds == 0:
            yield from self._starting_models(watch)
        with dispensable():
            self._expander = expander_of(
                self.problem, settings, methods, self._bound, options,
                self.state.statement or statement_of(self.problem),
                first=self._of_the_whole(options),
            )  # fmt: skip
        return self._expander

    def _pool(self, watch: Watch) -> Pool | None:
        """The pool of workers for shards, ready for this search."""
        if self._executor is None:
            return None
        self._executor.begin(job_bytes(self.problem, self.settings))
        from exactsel.proofs.spot_check import SpotCheck  # with all of the checker, which others do not need

        assert self._expander is not None
        check = SpotCheck(self.problem, self._expander, lambda: watch.stopped)
        pool = Pool(self._executor, self.problem, check, lambda: watch.stopped)
        if self._expander.counter is not None:
            self._expander.counter.helpers = CountParts(pool)
        return pool

    def _of_the_whole(self, options: BoundOptions) -> list[RegionSolver]:
        """What may close the whole problem at once."""
        statement = self.state.statement or statement_of(self.problem)
        tolerance = self.settings.tolerance.of(self.problem).for_search(statement.taken)
        strong = self._methods.strong(self.problem, self.state.incumbent.columns.tolist(), options)
        valid_for = self._scope_of_the_whole(statement)
        assert self._bound is not None
        closer = CloseByStrong(self.problem, tolerance, strong, valid_for, self._bound.quick) if strong else None
        ways: list[RegionSolver] = [closer] if closer else []
        if not self._listing:
            return ways
        below = self._methods.enumerator(self.problem, self._bound, self.state.incumbent.coef, options, self._shown)
        cells = self._methods.cells(self.problem, self._bound, options, checkable_by_patterns if self._shown else None)
        clusters = None if self._shown else self._methods.clusters(self.problem, self._bound, options)
        ways += [] if clusters is None else [BoundByClusters(clusters)]
        return [*([EnumerateRoot(below)] if below else []), *([EnumeratePatterns(cells)] if cells else []), *ways]

    def _scope_of_the_whole(self, statement: Statement) -> str:
        """Without a ridge what preparing the data rounds may say nothing unless models are limited."""
        value = self.state.incumbent.value
        limited = self.problem.has(PLAIN_REGRESSION) and statement.lower(value, value, "") <= 0.0
        return BOUNDED_MODELS if limited and statement.lower(value, value, BOUNDED_MODELS) > 0.0 else ""

    def _starting_models(self, watch: Watch) -> Iterator[Event]:
        state, settings = self.state, self.settings
        began, began_clock = time.perf_counter(), clock.now()
        reserve = seconds_kept(self.problem, settings.time_limit) if self._reserves_time else 0.0
        budget = math.inf if settings.time_limit is None else HEURISTICS_SHARE * (settings.time_limit - reserve)

        def should_stop() -> bool:
            return watch.stopped or clock.now() - began_clock > budget

        context = Context(settings.seed, should_stop=should_stop, threads=settings.threads)
        models = starting_models(self.problem, settings.heuristics, state.incumbent, context)
        steps = dispensable_steps(models)
        # The search often needs no more than the other half; if it does, they come when kernels are compiled. One that
        # the settings name is run to its end.
        for fit, source in steps_leaving_half(steps, self._postpone) if settings.heuristics == AUTO else steps:
            yield from self._take(fit, source)
        self.times["heuristics"] = time.perf_counter() - began

    @property
    def _batch(self) -> int:
        """Nodes of a round."""
        tree, shard = self._methods.tree, self.settings.shard
        usual = tree.batch if shard is None or tree.eager else max(tree.batch, SHARDS * shard)
        return self.settings.batch or usual

    def kept(self) -> Kept:
        """The state from which a later search resumes."""
        return Kept(self.problem, self.state, self.settings, SearchMode(self._listing, self._shown, self._details))

    def _spilling(self, frontier: BestFirst) -> Spilling:
        return Spilling.of(frontier, self._room or TemporaryNodeStore(), self.problem)

    @property
    def _reserves_time(self) -> bool:
        return self.has_fallback and (self._given_state is None or self._given_state.nodes == 0)

    def _postpone(self) -> None:
        self._postponed = True

    def _improver(self, watch: Watch) -> PrimalHeuristics | None:
        """What looks for models between the rounds."""
        settings = self.settings
        if not settings.heuristics:
            return None
        threads = settings.threads or available_threads()
        return PrimalHeuristics(
            self.problem, settings.heuristics, settings.seed, threads, lambda: watch.stopped, self._postponed
        )

    def _take(self, fit: Fit, source: str) -> Iterator[Event]:
        if fit.value < self.state.value:
            refuse_unattained(self.problem, fit, final=False)
            self.state.take_over(fit, source)
            yield IncumbentFound(self.state.upper, fit.support, fit.coef, source)

    def run(self) -> Result:
        """Run to the end without watching."""
        for _ in self:
            pass
        return self.result()

    def result(self, events: Sequence[Event] | None = None) -> Result:
        """The outcome so far; of a search that has not finished it says ``interrupted``."""
        timed_out = self._termination == "time_limit"
        if timed_out and compiles_on():
            warn(SHORT_OF_TIME, CompilingWarning)
        with hurrying(timed_out), one_thread():
            return self._result(None if events is None else tuple(events))

    def _result(self, events: tuple[Event, ...] | None) -> Result:
        problem, state = self.problem, self.state
        incumbent, lower = state.shown, state.lower
        claim = claim_of(incumbent.upper, lower, self._tolerance)
        parts = state.seconds.as_dict() if self._expander is not None else {}
        times = {**self.times, **parts, "compile": waited() - self._waited, "total": time.perf_counter() - self._began}
        model = Model.of(problem, incumbent.fit.coef)
        return Result(
            upper=incumbent.upper + 0.0,  # not -0
            lower=lower,
            support=incumbent.fit.support,
            prepared=PreparedModel.of(problem, incumbent.fit.coef),
            claim=claim,
            termination=termination_of(self._termination, claim),
            nodes=state.nodes,
            bound_calls=state.bound_calls,
            iterations=state.iterations,
            open_nodes=state.open_count,
            source=incumbent.source,
            times=times,
            problem=problem.describe(),
            settings={**self.settings.as_dict(), **self._choices()},
            tree_hash=state.tree_hash,
            valid_for=state.valid_for,
            events=events,
            history=self.history,
            model=model,
            _standing=full_data_of(problem, incumbent.upper, incumbent.fit.coef, state.valid_for),
            quality=quality_of(problem, model),
            _likelihood=likelihood_of(problem),
            null_objective=problem.null_objective,
            _column_ratio=column_ratio(problem),
        )

    def _choices(self) -> dict[str, Any]:
        """The values chosen for ``auto``."""
        methods, expander = self._methods, self._expander
        return {
            "bound": methods.bound.name,
            "branching": methods.branching.name,
            "threads": self.settings.threads or available_threads(),
            "kernels": self._kernels,
            "batch": self._batch,
            "method": methods.words(
                self._bound,
                [closer.words for closer in expander.closers if closer.words] if expander is not None else [],
            ),
            "closers": self.history.closers(),
        }
