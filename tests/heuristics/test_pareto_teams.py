"""Pareto optimisation by several threads: batches, merges, and nobody waiting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from pareto_cases import ISOLATIONS, assert_valid, optimum, problem_of, value_of
from samples import sample

from exactsel.errors import InputError
from exactsel_heuristics import Context
from exactsel_heuristics import _pareto_search as search_module
from exactsel_heuristics import _pareto_threads as threads_module
from exactsel_heuristics._pareto_random import flipped_positions, random_bits, uniform
from exactsel_heuristics._pareto_search import key_of, largest_batch, run_synchronously, run_without_waiting
from exactsel_heuristics._pareto_tasks import regression_task
from exactsel_heuristics._pareto_teams import ISLAND_STREAM
from exactsel_heuristics.poss import ParetoOptimization
from exactsel_heuristics.pposs import AsynchronousParetoOptimization, ParallelParetoOptimization


# Another loss is the same kernels compiled for it, thirty seconds from an empty cache.
@pytest.mark.parametrize(
    "kind", ["quadratic", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("huber", "logistic"))]
)
@pytest.mark.parametrize("batch", [1, 13])
def test_pposs_does_not_depend_on_the_threads(kind, batch, monkeypatch):
    problem = problem_of(kind, 1, 30, 12, 4)
    options = {"iterations": 200, "processors": 7, "batch": batch}
    alone = ParallelParetoOptimization(threads=1, **options).run(problem, Context(seed=4))
    monkeypatch.setattr(search_module, "SHARED_WORK", 0.0)
    for threads in (2, 5, None):
        assert ParallelParetoOptimization(threads=threads, **options).run(problem, Context(seed=4)) == alone


def islands_in_plain_python(problem, seed, processors, iterations, batch, largest=None, shared=0):
    """PPOSS with batches by sets and refits: the archive. The batch stays the same where no ``largest`` is given."""
    d, k, key = problem.d, problem.k, key_of(Context(seed=seed))
    values = {}

    def value(support):
        return values.setdefault(support, problem.fit(support).value)

    def enters(support, cost, archive):
        known = any(support == other for other, _ in archive)
        return not known and not any(
            kept <= cost and len(other) <= len(support) and (kept < cost or len(other) < len(support))
            for other, kept in archive
        )

    def with_member(support, cost, archive):
        kept = [(s, v) for s, v in archive if not (cost <= v and len(support) <= len(s))]
        return [*kept, (support, cost)]

    archive, first = [((), np.inf)], 0
    while first < iterations:
        islands, entered = [], 0
        last = min(iterations, first + batch)
        for number in range(first * processors, last * processors if batch < shared else 0):
            parent = archive[int(uniform(key, number, 0, 0) * len(archive))][0]
            support = tuple(sorted({*parent} ^ {*flipped_positions(key, number, 1, d)}))
            if 0 < len(support) < 2 * k and enters(support, value(support), archive):
                archive, entered = with_member(support, value(support), archive), entered + 1
        for p in range(0 if batch < shared else processors):
            here, own, found = random_bits(key, p, ISLAND_STREAM, 0), list(archive), set()
            for iteration in range(first, last):
                parent = own[int(uniform(here, iteration, 0, 0) * len(own))][0]
                support = tuple(sorted({*parent} ^ {*flipped_positions(here, iteration, 1, d)}))
                if 0 < len(support) < 2 * k and enters(support, value(support), own):
                    own = with_member(support, value(support), own)
                    found.add(support)
            islands.append([member for member in own if member[0] in found])
        for own in islands:
            for support, cost in own:
                if enters(support, cost, archive):
                    archive = with_member(support, cost, archive)
                    entered += 1
        first += batch
        if largest is not None:
            batch = min(2 * batch, largest) if entered == 0 else max(batch // 2, 1) if entered > 1 else batch
    return archive


@pytest.mark.parametrize("seed", sample(12, 12))
def test_batches_are_poss_on_copies_of_the_archive(seed):
    problem = problem_of("quadratic", seed, 30, 12, 3)
    processors, iterations, batch = 1 + seed % 4, 120, [2, 7, 40, 500][seed % 4]
    outcome = run_synchronously(
        regression_task(problem), Context(seed=seed), iterations=iterations, processors=processors, batch=batch
    )
    expected = islands_in_plain_python(problem, seed, processors, iterations, batch)
    assert {support for support, _ in outcome.archive} == {support for support, _ in expected}
    assert outcome.evaluations == iterations * processors


@pytest.mark.parametrize("seed", sample(12, 12))
def test_batches_grow_while_nothing_enters(seed, monkeypatch):
    problem, processors = problem_of("quadratic", seed, 30, 12, 3), 2 + seed % 4
    task, largest = regression_task(problem), [3, 16, 1000][seed % 3]
    shared = [1, 5][seed % 2]
    expected = islands_in_plain_python(problem, seed, processors, 150, 1, largest, shared)
    monkeypatch.setattr(search_module, "BATCH_WORK", largest * task.work)
    for constant in ("SHARED_WORK", "TURNS_WORK"):
        monkeypatch.setattr(search_module, constant, (shared - 0.5) * task.work * processors)
    # Pieces of the run, and threads that part and meet again, change nothing.
    for work, threads in ((1e9, 1), (20 * task.work, 1), (20 * task.work, 3)):
        monkeypatch.setattr(search_module, "PIECE_WORK", max(work, largest * task.work * processors))
        outcome = run_synchronously(
            task, Context(seed=seed), iterations=150, processors=processors, threads=threads, batch=None
        )
        assert {support for support, _ in outcome.archive} == {support for support, _ in expected}
        assert outcome.evaluations == 150 * processors


def test_batches_are_for_short_evaluations_and_one_archive():
    assert largest_batch(regression_task(problem_of("quadratic", 0, 30, 12, 3)), 10) > 50
    assert largest_batch(regression_task(problem_of("quadratic", 0, 30, 12, 3)), 1) == 1
    assert largest_batch(regression_task(problem_of("logistic", 0, 30000, 12, 3)), 10) == 1
    with pytest.raises(InputError, match=r"every offspring is merged at once; leave batch out\.$"):
        ParallelParetoOptimization(batch=2, isolation="minimum-index")


def test_asynchronous_workers_with_batches_keep_an_undominated_archive():
    problem = problem_of("quadratic", 2, 30, 10, 3)
    task, best = regression_task(problem), optimum(problem)
    for threads in (1, 2, 4):
        outcome = run_without_waiting(task, Context(seed=1), threads=threads, iterations=30_000, batch=16)
        assert outcome.evaluations == 30_000
        assert outcome.value == pytest.approx(best, rel=1e-9)
        for (s, v), (t, w) in combinations(outcome.archive, 2):
            assert len(s) != len(t)
            assert (v < w) == (len(s) > len(t))


def test_a_run_of_many_processors_stops_inside_an_iteration(monkeypatch):
    monkeypatch.setattr(threads_module, "LONG", 0.0)
    monkeypatch.setattr(threads_module, "LOOKS", 0.001)
    problem, asked = problem_of("quadratic", 2, 300, 60, 20), []

    def should_stop():
        asked.append(1)
        return len(asked) > 3

    full = ParallelParetoOptimization(processors=5000, iterations=1)
    stopped = full.run(problem, Context(seed=0, should_stop=should_stop))
    assert_valid(problem, stopped)
    assert len(asked) > 3, "nobody looked while the iteration went on"
    assert len(stopped.curve) <= len(full.run(problem, Context(seed=0)).curve)


def test_supports_that_are_given_enter_the_archive():
    problem = problem_of("quadratic", 4, 30, 12, 3)
    known = ParetoOptimization().run(problem, Context(seed=2))
    for kind in (ParetoOptimization, ParallelParetoOptimization):
        context = Context(seed=3, start=known.support, supports=((0,), (1, 2), (), tuple(range(12))), work=1.0)
        again = kind(iterations=1).run(problem, context)
        assert problem.fit(again.support).value <= problem.fit(known.support).value * (1.0 + 1e-12)
        assert again.evaluations < 50


def test_asynchronous_workers_spend_the_iterations_and_keep_an_undominated_archive():
    problem = problem_of("quadratic", 2, 30, 10, 3)
    best = optimum(problem)
    # What two workers find depends on who comes first; with so many iterations they do not miss the optimum.
    for threads, iterations in ((1, 3000), (2, 20_000)):
        for isolation in ISOLATIONS:
            outcome = run_without_waiting(
                regression_task(problem), Context(seed=1), threads=threads, isolation=isolation, iterations=iterations
            )  # fmt: skip
            assert outcome.evaluations == iterations
            assert outcome.value == pytest.approx(best, rel=1e-9)
            assert outcome.value == pytest.approx(value_of(problem, outcome.support), rel=1e-9)
            supports = [support for support, _ in outcome.archive]
            assert len(set(supports)) == len(supports)
            for (s, v), (t, w) in combinations(outcome.archive, 2):
                comparable = ISOLATIONS[isolation](s) == ISOLATIONS[isolation](t)
                assert not comparable or (v < w) == (len(s) > len(t))


def test_one_asynchronous_worker_is_poss():
    problem = problem_of("quadratic", 6, 30, 12, 4)
    asynchronous = AsynchronousParetoOptimization(threads=1).run(problem, Context(seed=9))
    assert asynchronous == ParetoOptimization().run(problem, Context(seed=9))
