"""Forward selection and orthogonal matching pursuit: slow twins, closed forms, and where they stop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances_for_heuristics import make_problem, planted_problem
from samples import examples

from exactsel.errors import TimeLimitError
from exactsel.losses import Huber
from exactsel.problem.regression import Problem
from exactsel_heuristics import (
    Context,
    ForwardSelection,
    OrthogonalMatchingPursuit,
    SwapLocalSearch,
)
from exactsel_heuristics import _elimination as elimination_module
from exactsel_heuristics._elimination import Elimination


def lstsq_value(problem, support):
    """The quadratic objective on a support, by an orthogonal factorisation of the data."""
    columns = list(support)
    matrix = np.vstack([problem.AT.T[:, columns], np.sqrt(problem.lam) * np.eye(len(columns))])
    target = np.concatenate([problem.y, np.zeros(len(columns))])
    return 0.5 * float(np.sum((target - matrix @ np.linalg.lstsq(matrix, target, rcond=1e-10)[0]) ** 2))


# Forward selection


def assert_each_step_is_the_best_one(problem, tolerance):
    """Run with k = 1, 2, ... and hold every step against a refit of all candidates; ties may go either way."""
    previous: tuple[int, ...] = ()
    for k in range(1, problem.k + 1):
        support = ForwardSelection().run(problem.replace(k=k), Context()).support
        assert set(previous) <= set(support)
        reachable = [lstsq_value(problem, {*previous, j}) for j in range(problem.d)]
        assert lstsq_value(problem, support) <= min(reachable) + tolerance
        previous = support


@pytest.mark.smoke
@pytest.mark.parametrize("lam", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize(("n", "d"), [(30, 8), (6, 10)])
def test_forward_equals_its_slow_twin(n, d, lam):
    for seed in range(5):
        problem = make_problem(seed, n, d, min(n, d) - 1, lam=lam)
        assert_each_step_is_the_best_one(problem, 1e-9 * problem.fit(()).value)


@examples(60, 120)
@given(data=st.data(), n=st.integers(1, 6), d=st.integers(1, 6), lam=st.sampled_from([0.0, 0.25, 2.0]))
def test_forward_equals_its_slow_twin_on_whole_numbers(data, n, d, lam):
    numbers = st.integers(-3, 3)
    A = data.draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=n, max_size=n))
    y = data.draw(st.lists(numbers, min_size=n, max_size=n))
    problem = Problem(A, y, d, lam=lam)
    assert_each_step_is_the_best_one(problem, 1e-9 * (1.0 + problem.fit(()).value))


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_forward_by_refits_takes_the_best_column(loss):
    problem = make_problem(2, 40, 9, 3, loss)
    previous: tuple[int, ...] = ()
    for k in range(1, 4):
        support = ForwardSelection().run(problem.replace(k=k), Context()).support
        best = min(problem.fit({*previous, j}).value for j in range(problem.d))
        assert problem.fit(support).value <= best + 1e-7
        previous = support


def test_forward_never_adds_a_dependent_column():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 20))
    problem = Problem(np.column_stack([a, a, b, a + b, 1e-9 * a]), a + 2 * b + rng.standard_normal(20), 5, lam=0.0)
    assert len(ForwardSelection().run(problem, Context()).support) == 2


def test_forward_stops_at_a_perfect_fit():
    A = np.eye(6)
    assert ForwardSelection().run(Problem(A, 3.0 * A[2], 4, lam=0.0), Context()).support == (2,)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_forward_by_refits_leaves_out_columns_that_do_not_help(loss):
    a = np.random.default_rng(0).standard_normal(30)
    chosen = Huber(0.8) if loss == "huber" else loss
    problem = Problem(np.column_stack([0 * a, a, 0 * a]), np.sign(a + 0.5), 3, loss=chosen, lam=0.1)
    assert ForwardSelection().run(problem, Context()).support == (1,)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_the_shortlist_keeps_the_planted_columns(loss):
    problem, planted = planted_problem(loss, d=60)
    context = Context()
    assert ForwardSelection(shortlist=5, exhaustive=0).run(problem, context).support == planted
    assert SwapLocalSearch(shortlist=5, exhaustive=0).run(problem, context).support == planted
    assert SwapLocalSearch(shortlist=5, exhaustive=0).run(problem, Context(start=(0, 1, 2, 3))).support == planted


# Orthogonal matching pursuit


@pytest.mark.parametrize("scaled", [False, True])
def test_omp_stops_at_a_perfect_fit(scaled):
    A = np.random.default_rng(0).standard_normal((30, 8))
    problem = Problem(A, A[:, [2, 5]] @ [1.0, -2.0], 6, lam=0.0)
    assert OrthogonalMatchingPursuit(scaled=scaled).run(problem, Context()).support == (2, 5)


def test_omp_scaled_does_not_see_the_units_of_the_columns():
    problem = make_problem(0, 40, 10, 4, lam=0.0, awkward=False)
    stretched = Problem(problem.A * np.geomspace(1e-3, 1e3, 10), problem.y, 4, lam=0.0)
    first, second = (OrthogonalMatchingPursuit(scaled=True).run(p, Context()) for p in (problem, stretched))
    assert first == second


# Closed forms for quadratic loss


@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_gains_equal_differences_of_refits(lam):
    problem = make_problem(4, 25, 9, 4, lam=lam)
    support = (0, 2, 5, 7)
    elimination = Elimination(problem, support)
    value = problem.fit(support).value
    assert tuple(elimination.columns) == support
    additions, exchanges = elimination.addition_gains(), elimination.exchange_gains()
    for j in set(range(problem.d)) - set(support):
        assert value - additions[j] == pytest.approx(problem.fit((*support, j)).value, rel=1e-9)
        for i, leaving in enumerate(support):
            exact = problem.fit([*(set(support) - {leaving}), j]).value
            # Without a ridge the zero column 3, and column 1, the same as 0, while 0 stays, are ruled out.
            if lam == 0.0 and (j == 3 or (j == 1 and leaving != 0)):
                assert exchanges[i, j] == -np.inf
            else:
                assert value - exchanges[i, j] == pytest.approx(exact, rel=1e-9)
    assert lam > 0.0 or additions[1] == additions[3] == 0.0
    assert np.all(additions[list(support)] == 0.0)
    assert np.all(exchanges[:, list(support)] == -np.inf)


def test_gains_do_not_need_the_whole_gram_matrix(monkeypatch):
    problem = make_problem(5, 25, 9, 4)
    expected = [h.run(problem, Context()).support for h in (ForwardSelection(), SwapLocalSearch())]
    monkeypatch.setattr(elimination_module, "GRAM_COLUMNS", 0)
    fresh = make_problem(5, 25, 9, 4)  # `replace` would hand on the matrix
    assert [h.run(fresh, Context()).support for h in (ForwardSelection(), SwapLocalSearch())] == expected
    assert "gram" not in fresh.shared


def test_elimination_grows_beyond_its_first_rows():
    problem = make_problem(6, 40, 20, 20, awkward=False)
    elimination = Elimination(problem, range(19))
    assert elimination.add(19)
    assert not elimination.add(3)
    assert len(elimination.columns) == 20
    assert np.all(elimination.addition_gains() == 0.0)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_a_selection_that_goes_on_from_a_smaller_one_is_the_same(lam):
    """For sizes in any order, on data whose columns depend on each other, and with another ridge between."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((12, 9))
        A[:, 3], A[:, 4], A[:, 5] = A[:, 0], -A[:, 1], 0.0
        y = rng.standard_normal(12)
        shared = Problem(A, y, 9, lam=lam)
        for k in [*rng.permutation(10).tolist(), *range(10)]:
            again, alone = shared.replace(k=k), Problem(A, y, k, lam=lam)
            assert ForwardSelection().run(again, Context()) == ForwardSelection().run(alone, Context())
            ForwardSelection().run(again.replace(lam=lam + 1.0), Context())


def test_a_selection_cut_off_in_a_pass_is_not_gone_on_with(monkeypatch):
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    shared, whole = Problem(A, y, 5), ForwardSelection().run(Problem(A, y, 5), Context())
    add, added = Elimination.add, []

    def cut_off(self, column):
        added.append(column)
        taken = add(self, column)
        if len(added) == 3:
            self._correlation[:] = 0.0
            raise TimeLimitError("in the middle of a pass")
        return taken

    monkeypatch.setattr(Elimination, "add", cut_off)
    assert len(ForwardSelection().run(shared, Context()).support) == 3
    monkeypatch.undo()
    assert ForwardSelection().run(shared, Context()) == whole
