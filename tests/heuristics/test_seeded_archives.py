"""Pareto optimisation whose archive begins with the incumbent, with rounded relaxations and with larger supports."""

from __future__ import annotations

import numpy as np
import pytest
from pareto_cases import problem_of
from samples import sample

from exactsel import ColumnSubsetProblem, Problem
from exactsel.problem.boxed import with_bounds
from exactsel_heuristics import Context
from exactsel_heuristics._pareto_tasks import ENTERING, LARGER, portion_of, regression_task
from exactsel_heuristics.pocss import ParetoColumnSelection
from exactsel_heuristics.poss import ParetoOptimization
from exactsel_heuristics.pposs import ParallelParetoOptimization


def _drawn(seed, kind):
    """A small problem with ties, doubled, negative and constant columns of very different lengths, and a context."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 12)), int(rng.integers(2, 9))
    k = int(rng.integers(1, d + 1))
    A = rng.integers(-2, 3, (n, d)).astype(float) * 10.0 ** rng.integers(-4, 5, d)
    A[:, 0] = [-1.0, 1.0][seed % 2] * A[:, -1]
    y = rng.integers(-3, 4, n).astype(float)
    base = Problem(A, y, k, lam=[0.0, 0.1][int(rng.integers(2))] if kind != "boxed" else 0.1)
    problem = base
    if kind == "css":
        problem = ColumnSubsetProblem(A, k)
    elif kind == "boxed":
        problem = with_bounds(base, np.zeros(d), np.full(d, np.inf))
    supports = [tuple(sorted(rng.permutation(d)[: rng.integers(1, k + 1)].tolist())) for _ in range(3)]
    orders = tuple(tuple(rng.permutation(d)[: 2 * k - 1].tolist()) for _ in range(2))
    start, *others = supports
    context = Context(seed, start, supports=tuple(others), work=10.0 ** rng.uniform(0, 7), relaxed=orders)
    return problem, context


@pytest.mark.parametrize("kind", ["quadratic", "boxed", "css"])
def test_a_seeded_archive_answers_with_a_model_no_worse_than_the_start(kind):
    methods = (ParetoColumnSelection(),) if kind == "css" else (ParetoOptimization(), ParallelParetoOptimization())
    for seed in sample(150, 1500):
        problem, context = _drawn(seed, kind)
        for method in methods:
            proposal = method.run(problem, context)
            assert len({*proposal.support}) == len(proposal.support) <= problem.k
            assert all(len(support) <= problem.k for support in proposal.others)
            start = problem.fit(context.start).value
            slack = 1e-7 * (start + 1e-9 * problem.null_objective)  # Gram form
            # Where columns depend on each other the archive takes none of the supports that hold them.
            dependent = np.linalg.matrix_rank(_columns(problem)[:, list(context.start)]) < len(context.start)
            assert problem.fit(proposal.support).value <= start + slack or dependent, f"seed {seed}"
            assert method.run(problem, context) == proposal


def _columns(problem):
    A = np.array(problem.A)
    return A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)


def test_larger_supports_lead_where_no_exchange_does():
    """Nine parts of which each but one tells nothing by itself: what a relaxation holds has to be thinned out."""
    noise, sets, parts, hints = 3.0, 3, 3, 20
    e = np.eye(sets * parts + hints)
    columns = []
    for first in range(0, sets * parts, parts):
        columns += [noise * e[first + 1], noise * (e[first + 2] - e[first + 1]), e[first] - noise * e[first + 2]]
    total = e[0] + e[3] + e[6]
    columns += [total + 2.0 * (1.0 + 0.02 * j) * e[sets * parts + j] for j in range(hints)]
    problem = Problem(np.column_stack(columns), 4.0 * total, 9, lam=0.01)
    rng = np.random.default_rng(0)
    among = tuple(rng.permutation(17).tolist())  # the nine parts and eight hints
    for method in (ParetoOptimization(), ParallelParetoOptimization()):
        context = Context(1, tuple(range(9, 18)), supports=((9, 10),), work=2e8)
        assert problem.fit(method.run(problem, context).support).value > 1.0
        seeded = method.run(problem, Context(1, context.start, supports=((9, 10),), work=2e8, relaxed=(among,)))
        assert seeded.support == tuple(range(9))


def test_what_an_archive_begins_with_takes_half_of_the_work_at_most():
    task = regression_task(problem_of("quadratic", 1, 60, 40, 10))
    relaxed = tuple(tuple(np.random.default_rng(j).permutation(40)[:19].tolist()) for j in range(4))
    for work in (1.0, 1e5, 1e6, 1e9):
        context = Context(0, (0, 1), supports=((2,), (3,)), work=work, relaxed=relaxed)
        iterations, given = portion_of(task, context, None)
        assert given[0] == (0, 1)
        assert len(given) <= 3 + 4 * LARGER
        assert len(given) == 1 or len(given) * task.largest**3 <= ENTERING * work
        assert iterations * task.work <= max(work, task.work)
    assert len(given) == 3 + 4 * LARGER
