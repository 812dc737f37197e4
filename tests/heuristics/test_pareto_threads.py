"""Pareto optimisation on threads: the same for any number of them whatever the objective, and stopping."""

from __future__ import annotations

import threading
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pareto_cases import problem_of, value_of
from samples import kernels_of_its_own

from exactsel_heuristics import Context
from exactsel_heuristics import _pareto_search as search_module
from exactsel_heuristics import _pareto_threads as threads_module
from exactsel_heuristics._pareto_layout import new_members, new_scratch
from exactsel_heuristics._pareto_search import run_synchronously, run_without_waiting
from exactsel_heuristics._pareto_tasks import column_subset_task, regression_task
from exactsel_heuristics._pareto_threads import stop_flag


def task_of(problem):
    return column_subset_task(problem) if problem.kind == "css" else regression_task(problem)


@pytest.mark.parametrize("kind", ["quadratic", *map(kernels_of_its_own, ("logistic", "css"))])
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32), processors=st.integers(2, 9), batch=st.sampled_from([1, 1, 2, 13, None]),
    threads=st.sampled_from([2, 3, 4, 11]),
)  # fmt: skip
def test_any_number_of_threads_gives_the_same(kind, seed, processors, batch, threads):
    # More threads than cores among them: whoever waits must let the others run.
    problem = problem_of(kind, seed, 15, 9, 3)
    options = {"iterations": 120, "processors": processors, "batch": batch}
    alone = run_synchronously(task_of(problem), Context(seed=seed), threads=1, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "SHARED_WORK", 0.0)
        assert run_synchronously(task_of(problem), Context(seed=seed), threads=threads, **options) == alone


def test_threads_with_a_growing_archive_and_given_supports(monkeypatch):
    problem = problem_of("quadratic", 5, 30, 12, 4)
    monkeypatch.setattr(search_module, "SHARED_WORK", 0.0)
    for isolation, batch in (("minimum-index", 1), ("constant", 1), ("constant", 9)):
        options = {
            "iterations": 300, "processors": 6, "isolation": isolation, "batch": batch, "supports": [(0, 3), (1, 2, 5)]
        }  # fmt: skip
        runs = [run_synchronously(regression_task(problem), Context(seed=8), threads=t, **options) for t in (1, 2, 3)]
        assert runs[0] == runs[1] == runs[2]
        assert runs[0].evaluations == 1802


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        *((batch, kind) for kind in ("quadratic", "css") for batch in (1, 8, None) if (kind, batch) != ("css", 1)),
        *(kernels_of_its_own(batch, "logistic") for batch in (1, 8, None)),
        kernels_of_its_own(1, "css"),
    ],
)
def test_asynchronous_workers_keep_an_undominated_archive_of_true_values(kind, batch):
    problem = problem_of(kind, 2, 25, 9, 3)
    for threads in (1, 2, 6):
        outcome = run_without_waiting(
            task_of(problem), Context(seed=1), threads=threads, iterations=1500, batch=batch
        )  # fmt: skip
        assert outcome.evaluations == 1500
        assert outcome.support
        for support, value in outcome.archive:
            if support:
                assert value == pytest.approx(value_of(problem, support), rel=1e-8, abs=1e-10)
        for (s, v), (t, w) in combinations(outcome.archive, 2):
            assert s != t
            assert (v < w) == (len(s) > len(t))


# Stopping and options


def test_a_raised_flag_ends_an_iteration():
    problem = problem_of("quadratic", 1, 20, 8, 3)
    task = regression_task(problem)
    plan = search_module._plan(task, Context(), "constant")
    archive = search_module._archive(task, plan, 4)
    offspring, scratch = new_members(4, task.largest, 0), new_scratch(4, task.largest, 0)
    ticket, stop = np.zeros(1, np.int64), np.ones(1, np.bool_)
    search_module.run_serial(
        task.objective, plan, archive, offspring, scratch, np.zeros(4, np.int64), 0, 3, np.zeros((20, 2)), stop
    )  # fmt: skip
    assert archive.live[0] == 1
    assert ticket[0] == 0
    stop[0] = False
    search_module.run_serial(
        task.objective, plan, archive, offspring, scratch, np.zeros(4, np.int64), 0, 3, np.zeros((20, 2)), stop
    )  # fmt: skip
    assert archive.live[0] > 1


def test_the_flag_is_raised_during_long_iterations_only(monkeypatch):
    monkeypatch.setattr(threads_module, "LOOKS", 0.001)
    asked = threading.Event()

    def stop():
        asked.set()
        return True

    with stop_flag(Context(should_stop=stop), threads_module.LONG) as flag:
        assert asked.wait(60)
        watchers = [thread for thread in threading.enumerate() if thread.daemon and "look" in thread.name]
        for thread in watchers:
            thread.join(60)
        assert flag[0]
    asked.clear()
    with stop_flag(Context(should_stop=stop), threads_module.LONG / 2) as flag:
        assert not flag[0]
    assert not asked.is_set()


def test_many_processors_make_small_batches():
    task = regression_task(problem_of("quadratic", 1, 20, 8, 3))
    few, many = (search_module.largest_batch(task, processors) for processors in (10, 10_000))
    assert few > many >= 1
    assert many * 10_000 * task.work < threads_module.LONG
    # Nor do their copies of the archive take all memory there is.
    wide = regression_task(problem_of("quadratic", 1, 120, 110, 50))
    assert search_module.largest_batch(wide, 4) > 1 == search_module.largest_batch(wide, 400)
    assert search_module.largest_batch(task, 1) == search_module.largest_batch(task, 4, "minimum-index") == 1
