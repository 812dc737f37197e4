"""Rounds begun while the one before is under way: same tree for any number of threads, nothing lost on the way out."""

from __future__ import annotations

import signal
import time
from dataclasses import replace

import numpy as np
import pytest
from checked_solve import ceiling, check_result, checked_solve, drive
from executors_for_tests import Here, larger, same
from instances_for_tests import optimum_of, random_case
from recorded import replayed
from samples import many
from stopping import Stopping

from exactsel import solve
from exactsel.enumeration import work_budget
from exactsel.errors import WorkerWarning
from exactsel.search import engine
from exactsel.search.events import RoundEnded
from exactsel.solving.outcome import Termination
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search

OPTIONS = {"heuristics": (), "subtrees": False, "rel_eps": 1e-9, "frontier": "best-first"}


@pytest.fixture
def ahead(monkeypatch):
    """Rounds of two begun as early as can be; yields whether two were to be under way, each time that was asked."""
    asked, decide = [], engine._under_way

    def note(*arguments):
        asked.append(decide(*arguments) == 2)
        return 2 if asked[-1] else 1

    monkeypatch.setattr(engine, "AHEAD", 1)
    monkeypatch.setattr(engine, "_under_way", note)
    return asked


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_rounds_begun_early_are_as_sound_and_the_same_for_any_number_of_threads(ahead, loss):
    for seed in range(850_000, 850_000 + many(12, 20)):
        case = random_case(seed, loss=loss, lam=0.02 if loss == "quadratic" else 0.1, d=8, n=8)
        options = OPTIONS | {"bound": "apg", "batch": 2 + seed % 2}
        solved = [checked_solve(case, options | {"threads": threads}) for threads in (1, 2, 3)]
        assert len({one.result.tree_hash for one in solved}) == 1
        assert len({len(one.events) for one in solved}) == 1
    assert sum(ahead) > 30, "the case to be tested"


@pytest.mark.smoke
@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_left_in_the_middle_of_a_round_goes_on(ahead, threads):
    two_rounds = 0
    for seed in range(851_000, 851_040):
        case = random_case(seed, lam=0.05, d=8, n=9)
        optimum, problem = optimum_of(case), case.problem()
        settings = Settings(**OPTIONS, bound="apg", batch=2, threads=threads)
        search = Search(problem, settings, signals=())
        rng, running = np.random.default_rng(seed), iter(search)
        for _ in range(int(rng.integers(5, 60))):
            event = next(running, None)
            if event is None:
                break
            assert search.state.lower <= ceiling(optimum)
        running.close()
        two_rounds += len(search.state.in_flight) > 2
        # What was begun and not committed is open again; the node in the middle of its commit is told of twice.
        again, events = Search(problem, settings, state=search.state, signals=()), []
        check_result(case, optimum, drive(again, optimum, events), events)
    assert sum(ahead) > 40
    assert two_rounds > 3, "the case to be tested"


@pytest.mark.filterwarnings("default::exactsel.errors.CompilingWarning")  # where the cache of kernels is empty
@pytest.mark.parametrize("threads", [1, 2])
def test_a_round_begun_early_and_then_stopped_leaves_no_trace(ahead, threads, clock):
    stopped_ahead = 0
    for seed in range(853_000, 853_000 + many(26, 36)):
        case = random_case(seed, loss="huber", lam=0.01, d=9, n=8)
        optimum, problem, events = optimum_of(case), case.problem(), []
        settings = Settings(**OPTIONS, batch=2, threads=threads)
        asked = len(ahead)
        stopping = replace(settings, bound=Stopping(5 + seed % 5, clock), time_limit=0.05)
        search = Search(problem, stopping, signals=())
        result = drive(search, optimum, events)
        assert search.state.in_flight == [] or search.state.can_begin_again
        replayed(problem, result, events)
        if result.termination is Termination.TIME_LIMIT:
            stopped_ahead += ahead[asked:][-1:] == [True]
            again = Search(problem, replace(settings, bound="apg"), state=search.state, signals=())
            check_result(case, optimum, drive(again, optimum, events), events)
            replayed(problem, again.result(), events)
            whole = Search(problem, replace(settings, bound="apg"), signals=()).run()
            assert again.state.tree_hash == whole.tree_hash, "the round that was broken off is begun again as it was"
    assert stopped_ahead > 2, "the case to be tested"


@pytest.mark.smoke
@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_stopped_beside_a_round_that_was_begun_early_comes_to_the_same_tree(ahead, threads, monkeypatch):
    """The nodes of that round stay what they were: those that the round being committed opens are not among them."""
    commit_models, beside = engine.commit_models, []
    for seed in range(854_000, 854_000 + many(5, 12)):
        case = random_case(seed, loss="huber", lam=0.01, d=9, n=8)
        settings = Settings(**OPTIONS, bound="apg", batch=2, threads=threads)
        whole = Search(case.problem(), settings, signals=()).run()
        for last in range(1, 12, 2):
            rounds = iter(range(last))

            def stopping(*arguments, rounds=rounds, last=last):
                yield from commit_models(*arguments)
                if next(rounds, None) == last - 1:
                    beside.append(len(arguments[0].begun))
                    signal.raise_signal(signal.SIGINT)
                    if last % 4 == 1:  # time for the round beside to come to its end all the same
                        time.sleep(0.02)

            monkeypatch.setattr(engine, "commit_models", stopping)
            search = Search(case.problem(), settings, signals=(signal.SIGINT,))
            search.run()
            monkeypatch.setattr(engine, "commit_models", commit_models)
            again = Search(case.problem(), settings, state=search.state, signals=()).run()
            assert again.tree_hash == whole.tree_hash
    assert sum(beside) > many(5, 10), "the case to be tested"


@pytest.mark.smoke
def test_shards_begun_early_beside_walks_come_to_the_same_tree(ahead, monkeypatch, tmp_path):
    """Whoever works on them, also where the search is saved and gone on with: what is committed later is not known."""
    monkeypatch.setattr(work_budget, "FIRST_WORK", 10.0)
    monkeypatch.setattr(work_budget, "WALK_WORK", 300.0)
    walked = 0
    for seed in range(855_000, 855_000 + many(4, 16)):
        problem = random_case(seed, loss="quadratic", lam=0.02, d=10, n=9).problem().replace(k=5)
        given = {"heuristics": (), "rel_eps": 1e-9, "batch": 4, "shard": 2, "signals": ()}
        whole = solve(problem, executor="serial", threads=1, **given)
        assert same(solve(problem, executor="serial", threads=2, **given), whole)
        assert same(solve(problem, executor=Here(), **given), whole)
        walked += whole.nodes > whole.bound_calls
        for last in (1, 3, 6):
            rounds = iter(range(last))

            def broken_off(event, state, rounds=rounds):
                if isinstance(event, RoundEnded) and next(rounds, None) is None:
                    raise KeyboardInterrupt

            file = tmp_path / f"{seed}-{last}.ckpt"
            saved = {"checkpoint": file, "checkpoint_every": 0.0, "callback": broken_off}
            try:
                solve(problem, executor="serial", threads=1, **given, **saved)
            except KeyboardInterrupt:
                more = {name: value for name, value in given.items() if name == "signals"}
                assert solve(problem, resume=file, executor=Here(), **more).tree_hash == whole.tree_hash
    assert sum(ahead) > many(10, 30), "the case to be tested"
    assert walked > many(1, 8), "the case to be tested"


def test_who_asks_for_an_order_gets_it(ahead):
    case = random_case(852_000, loss="quadratic", lam=0.02, d=9, n=9)
    for options in ({"batch": 1}, {"tree": "state-space", "batch": 3}, {"batch": 2, "node_limit": 10_000}):
        checked_solve(case, OPTIONS | {"bound": "apg", "threads": 2} | options)
    assert ahead
    assert not any(ahead)


@pytest.mark.smoke
def test_two_rounds_under_way_that_nobody_can_do_are_begun_again(ahead, kernels_at_once):
    """Workers fail, or a signal comes: the bound counts the nodes of both; the tree is that of an untouched search."""
    problem, options = larger(30, 6)
    options |= {"batch": 8, "shard": 4, "threads": 1}
    whole, both = solve(problem, executor="serial", signals=(), **options), 0
    for last in range(5, 60, many(24, 12)):
        some = Here(lambda number, answer, last=last: b"" if number > last else answer)
        failing = Search(problem, Settings(**options), executor=some, signals=())
        with pytest.warns(WorkerWarning):
            result = failing.run()
        stopped = Search(problem, Settings(**options), executor=Here(), signals=(signal.SIGINT,))
        for event in stopped:
            if isinstance(event, RoundEnded) and event.round == last:
                signal.raise_signal(signal.SIGINT)
        assert result.termination is Termination.WORKER_FAILURE
        assert stopped.result().termination is Termination.INTERRUPTED
        for search in (failing, stopped):
            state = search.state
            flying = [node.bound for begun in state.begun for node in begun.nodes]
            assert state.can_begin_again
            assert state.floor <= min(flying)
            assert search.result().lower <= whole.lower
            both += len(state.begun) == 2
            assert same(Search(problem, Settings(**options), state=state, signals=()).run(), whole)
    assert both > many(4, 8), "the case to be tested"
