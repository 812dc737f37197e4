"""Heuristics: valid and reproducible proposals, twins that compute the same slowly, and stopping on request."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactsel import registry
from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.loss import loss_conjugate
from exactsel.kernels.rows import loss_gradient
from exactsel.losses import Huber
from exactsel.problem import Problem
from exactsel_heuristics import (
    Context,
    DualIterativeHardThresholding,
    ForwardSelection,
    HardThresholdingPursuit,
    Heuristic,
    OrthogonalMatchingPursuit,
    Proposal,
    SwapLocalSearch,
)
from exactsel_heuristics import _elimination as elimination_module
from exactsel_heuristics._elimination import Elimination
from exactsel_heuristics._scoring import evaluate, guaranteed_decrease, largest, padded
from exactsel_heuristics.dual_iht import _ascend
from exactsel_heuristics.swap import Neighbours, _confirmed

HEURISTICS = (
    ForwardSelection(),
    OrthogonalMatchingPursuit(),
    OrthogonalMatchingPursuit(scaled=True),
    HardThresholdingPursuit(),
    DualIterativeHardThresholding(max_steps=60),
    SwapLocalSearch(),
)
LOSSES = ("quadratic", "huber", "logistic")
each_heuristic = pytest.mark.parametrize("heuristic", HEURISTICS, ids=repr)
each_loss = pytest.mark.parametrize("loss", LOSSES)


def make_problem(seed, n, d, k, loss="quadratic", lam=0.5, awkward=True):
    """Random data; ``awkward`` adds a duplicate, a constant, a zero and a badly scaled column as far as d allows."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    if awkward and d >= 6:
        A[:, 1], A[:, 2], A[:, 3], A[:, 4] = A[:, 0], 1.0, 0.0, 1e3 * A[:, 4]
    y = A @ (rng.integers(-1, 2, d) * rng.random(d)) / (1.0 + np.abs(A).max()) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(0.8) if loss == "huber" else loss, lam=lam)


def planted_problem(loss, n=200, d=20, k=4, seed=1):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    planted = tuple(sorted(rng.choice(d, k, replace=False).tolist()))
    signal = A[:, planted] @ np.array([2.0, -2.0, 2.5, 3.0])[:k]
    y = np.where(signal > 0, 1.0, -1.0) if loss == "logistic" else signal + 0.1 * rng.standard_normal(n)
    return Problem(A, y, k, loss=loss, lam=0.1), planted


def lstsq_value(problem, support):
    """The quadratic objective on a support, by an orthogonal factorisation of the data."""
    columns = list(support)
    matrix = np.vstack([problem.A[:, columns], np.sqrt(problem.lam) * np.eye(len(columns))])
    target = np.concatenate([problem.y, np.zeros(len(columns))])
    return 0.5 * float(np.sum((target - matrix @ np.linalg.lstsq(matrix, target, rcond=1e-10)[0]) ** 2))


def one_move_away(problem, support):
    outside = [j for j in range(problem.d) if j not in support]
    if len(support) < problem.k:
        yield from ((*support, j) for j in outside)
    for leaving in support:
        stay = tuple(i for i in support if i != leaving)
        yield from ((*stay, j) for j in outside)


def assert_valid(problem, proposal):
    assert isinstance(proposal, Proposal)
    assert len(proposal.support) <= problem.k
    assert list(proposal.support) == sorted(set(proposal.support))
    assert all(type(j) is int and 0 <= j < problem.d for j in proposal.support)
    assert proposal.evaluations >= 0
    empty = problem.fit(()).value
    assert problem.fit(proposal.support).value <= empty + 1e-9 * (1.0 + abs(empty))


class StopAfter:
    """A stopping signal that says yes from the (count + 1)-th question on."""

    def __init__(self, count):
        self.left, self.asked_again = count, 0

    def __call__(self):
        self.left -= 1
        self.asked_again += self.left < -1
        return self.left < 0


# The interface


def test_every_heuristic_follows_the_interface():
    for heuristic in HEURISTICS:
        assert isinstance(heuristic, Heuristic)
        assert is_dataclass(heuristic)
        assert heuristic == type(heuristic)(**{f.name: getattr(heuristic, f.name) for f in fields(heuristic)})


def test_the_registry_finds_them_by_their_names():
    for heuristic in HEURISTICS:
        assert registry.load("heuristics", heuristic.name) is type(heuristic)


def test_the_plug_in_of_the_documentation_works():
    @dataclass(frozen=True)
    class LargestCorrelations:
        name = "largest-correlations"

        def run(self, problem, context):
            scores = np.abs(problem.gradient(np.zeros(problem.d)))
            return Proposal.of(np.argsort(-scores, kind="stable")[: problem.k], evaluations=0)

    assert isinstance(LargestCorrelations(), Heuristic)
    problem, planted = planted_problem("quadratic")
    assert LargestCorrelations().run(problem, Context()).support == planted


def test_a_context_gives_equal_random_numbers_for_equal_seeds():
    assert Context(seed=5).rng().random() == Context(seed=5).rng().random()
    assert Context(seed=5).rng().random() != Context(seed=6).rng().random()


def test_a_proposal_sorts_its_columns():
    assert Proposal.of(np.array([3, 1, 3]), 2) == Proposal((1, 3), 2)


# Every heuristic, on data as it comes


@each_heuristic
@each_loss
@pytest.mark.parametrize(
    ("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (4, 9, 9), (20, 7, 1), (15, 6, 6), (1, 2, 1), (10, 6, 0)]
)
def test_proposals_are_valid_and_reproducible(heuristic, loss, n, d, k):
    for seed in range(3):
        problem = make_problem(seed, n, d, k, loss)
        before = problem.A.copy(), problem.y.copy()
        proposal = heuristic.run(problem, Context(seed=seed))
        assert_valid(problem, proposal)
        assert heuristic.run(problem, Context(seed=seed)) == proposal
        assert np.array_equal(problem.A, before[0])
        assert np.array_equal(problem.y, before[1])


@each_heuristic
@pytest.mark.parametrize(("n", "d", "k"), [(30, 8, 3), (6, 10, 4), (5, 8, 8), (20, 7, 1)])
def test_proposals_without_a_ridge(heuristic, n, d, k):
    problem = make_problem(7, n, d, k, lam=0.0)
    if heuristic.name == "dual-iht":
        with pytest.raises(UnsupportedError, match="lam is 0"):
            heuristic.run(problem, Context())
    else:
        assert_valid(problem, heuristic.run(problem, Context()))


@each_heuristic
@pytest.mark.parametrize("A", [np.zeros((5, 3)), np.ones((5, 3))], ids=["zero", "constant"])
def test_degenerate_data(heuristic, A):
    for y in (np.zeros(5), np.arange(5.0)):
        assert_valid(problem := Problem(A, y, 2, lam=0.1), heuristic.run(problem, Context()))


@each_heuristic
@each_loss
def test_the_planted_support_is_found(heuristic, loss):
    problem, planted = planted_problem(loss)
    assert heuristic.run(problem, Context()).support == planted


@each_heuristic
@each_loss
def test_stopping_at_once(heuristic, loss):
    problem = make_problem(3, 30, 12, 5, loss)
    stop = StopAfter(0)
    proposal = heuristic.run(problem, Context(should_stop=stop))
    assert_valid(problem, proposal)
    assert proposal.support == ()
    # Swap asks twice, once through the forward selection it starts from.
    assert stop.asked_again <= 1


@each_heuristic
@each_loss
def test_stopping_later(heuristic, loss):
    problem = make_problem(3, 30, 12, 5, loss)
    full = heuristic.run(problem, Context())
    for count in (1, 2, 4):
        stop = StopAfter(count)
        proposal = heuristic.run(problem, Context(should_stop=stop))
        assert_valid(problem, proposal)
        assert len(proposal.support) > 0
        assert proposal.evaluations <= full.evaluations
        assert stop.asked_again <= 1


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


@pytest.mark.parametrize("lam", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize(("n", "d"), [(30, 8), (6, 10)])
def test_forward_equals_its_slow_twin(n, d, lam):
    for seed in range(5):
        problem = make_problem(seed, n, d, min(n, d) - 1, lam=lam)
        assert_each_step_is_the_best_one(problem, 1e-9 * problem.fit(()).value)


@settings(max_examples=60, deadline=None)
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
    assert "gram" not in vars(fresh)


def test_elimination_grows_beyond_its_first_rows():
    problem = make_problem(6, 40, 20, 20, awkward=False)
    elimination = Elimination(problem, range(19))
    assert elimination.add(19)
    assert not elimination.add(3)
    assert len(elimination.columns) == 20
    assert np.all(elimination.addition_gains() == 0.0)


# Swap local search


@each_loss
@pytest.mark.parametrize(("n", "d", "k"), [(30, 9, 3), (6, 9, 4), (20, 8, 1)])
def test_no_single_swap_improves_the_answer_of_swap(loss, n, d, k):
    for seed, start in ((0, None), (1, None), (2, (0,)), (3, tuple(range(k))), (4, ())):
        problem = make_problem(seed, n, d, k, loss)
        support = SwapLocalSearch().run(problem, Context(start=start)).support
        value = problem.fit(support).value
        neighbours = (problem.fit(near).value for near in one_move_away(problem, support))
        assert value <= min(neighbours) + 1e-9 * (1.0 + abs(value))


@pytest.mark.parametrize("start", [None, (0, 1, 2), (0, 1), (1, 3)])
def test_swap_is_a_local_optimum_among_dependent_columns(start):
    for seed in range(4):
        problem = make_problem(seed, 15, 9, 3, lam=0.0)
        support = SwapLocalSearch().run(problem, Context(start=start)).support
        value = problem.fit(support).value
        neighbours = (problem.fit(near).value for near in one_move_away(problem, support))
        assert value <= min(neighbours) + 1e-9 * (1.0 + abs(value))


@each_loss
def test_swap_is_never_worse_than_its_start(loss):
    problem = make_problem(9, 25, 8, 3, loss)
    for start in combinations(range(8), 3):
        found = SwapLocalSearch().run(problem, Context(start=start))
        assert problem.fit(found.support).value <= problem.fit(start).value


def test_swap_stopped_at_once_returns_its_start():
    problem = make_problem(9, 25, 8, 3)
    assert SwapLocalSearch().run(problem, Context(start=(5, 3), should_stop=lambda: True)).support == (3, 5)


def test_swap_escapes_where_forward_is_fooled():
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 100))
    # The sum of both columns explains y best alone, and stands in the way once one of them is in.
    A = np.column_stack([a, b, a + b + 0.3 * rng.standard_normal(100)])
    problem = Problem(A, a + b, 2, lam=0.0)
    assert 2 in ForwardSelection().run(problem, Context()).support
    assert SwapLocalSearch().run(problem, Context()).support == (0, 1)


def test_swap_makes_only_moves_that_a_refit_confirms():
    problem, planted = planted_problem("quadratic")
    value = problem.fit(planted).value
    flattered = Neighbours(padded([(0, 1, 2, 3), (4, 5)], 4), np.array([value - 2.0, value - 1.0]), 2)
    assert _confirmed(problem, flattered, value) == (None, 2)
    mixed = Neighbours(padded([(0, 1), planted], 4), np.array([value - 2.0, value - 1.0]), 2)
    assert _confirmed(problem, mixed, value + 0.1) == ((planted, value), 2)


def test_swap_refuses_a_start_that_does_not_fit():
    problem = make_problem(0, 10, 6, 2)
    with pytest.raises(InputError, match="3 columns, but at most k = 2"):
        SwapLocalSearch().run(problem, Context(start=(0, 1, 2)))
    for column in (-1, 6):
        with pytest.raises(InputError, match="the columns are 0 to 5"):
            SwapLocalSearch().run(problem, Context(start=(column,)))


# Hard thresholding, in the primal and in the dual


def correlated_problem():
    """Equally correlated columns, on which the largest correlations with y mislead; and the planted support."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 20)) + rng.standard_normal((60, 1))
    planted = tuple(sorted(rng.choice(20, 4, replace=False).tolist()))
    y = A[:, planted] @ np.array([1.0, -1.0, 1.0, 1.0]) + 0.1 * rng.standard_normal(60)
    problem = Problem(A, y, 4, lam=1.0)
    assert tuple(largest(np.abs(A.T @ y), 4).tolist()) != planted
    return problem, planted


def test_htp_lengthens_its_steps_on_correlated_columns():
    problem, planted = correlated_problem()
    assert HardThresholdingPursuit(lengthen=np.inf).run(problem, Context()).support != planted
    assert HardThresholdingPursuit().run(problem, Context()).support == planted


def test_dual_iht_moves_on_from_the_largest_correlations():
    problem, planted = correlated_problem()
    assert DualIterativeHardThresholding(max_steps=1).run(problem, Context()).support != planted
    assert DualIterativeHardThresholding().run(problem, Context()).support == planted


@each_loss
def test_dual_iht_climbs_to_the_primal_value_where_nothing_is_cut_off(loss):
    problem = make_problem(0, 20, 4, 4, loss, lam=5.0)
    beta = np.zeros(problem.n)
    loss_gradient(problem.loss, beta.copy(), problem.y, beta)
    for t in range(3000):
        step = problem.loss.smoothness / (1.0 + t + problem.loss.smoothness * problem.spectral_norm_squared / 5.0)
        _ascend(problem.loss, beta, problem.A @ (problem.AT @ beta) / -5.0, step, problem.y)
    dual = -loss_conjugate(problem.loss, beta, problem.y) - np.sum((problem.AT @ beta) ** 2) / 10.0
    best = problem.fit(range(4)).value
    assert dual <= best + 1e-9
    assert dual == pytest.approx(best, rel=1e-3)


@each_loss
def test_htp_with_lengthening_steps_is_no_worse(loss):
    for seed in range(5):
        problem = make_problem(seed, 40, 12, 4, loss, awkward=False)
        short, long = (HardThresholdingPursuit(lengthen=f).run(problem, Context()).support for f in (np.inf, 2.0))
        assert problem.fit(long).value <= problem.fit(short).value


def test_htp_refuses_a_step_that_does_not_grow():
    with pytest.raises(InputError, match="give a factor above 1"):
        HardThresholdingPursuit(lengthen=1.0)


def test_dual_iht_refuses_a_loss_without_a_conjugate():
    class Half(NamedTuple):
        """A loss of someone else, with the primal functions only."""

        name, smoothness, infimum = "half", 1.0, 0.0
        point_value = point_derivative = point_curvature = staticmethod(lambda loss, z, y: 0.0)
        point_majorizer = point_prox = point_value

        def check_target(self, y):
            pass

        def check_parameters(self):
            pass

    problem = Problem(np.eye(3), np.ones(3), 1, loss=Half(), lam=1.0)
    with pytest.raises(UnsupportedError, match="half loss lacks point_conjugate_derivative and point_project"):
        DualIterativeHardThresholding().run(problem, Context())


# What they share


def test_largest_prefers_lower_columns_among_equals():
    assert largest(np.array([1.0, 3.0, 1.0, 1.0]), 2).tolist() == [0, 1]
    assert largest(np.array([1.0, 2.0]), 5).tolist() == [0, 1]


@each_loss
def test_the_guaranteed_decrease_is_a_lower_bound(loss):
    problem = make_problem(1, 20, 8, 3, loss)
    fit = problem.fit((0, 2))
    for j, promised in enumerate(guaranteed_decrease(problem, problem.gradient(fit.coef))):
        assert problem.fit((0, 2, j)).value <= fit.value - promised + 1e-9


def test_evaluate_stops_between_batches(monkeypatch):
    monkeypatch.setattr("exactsel_heuristics._scoring.BATCH_WORK", 1.0)
    problem = make_problem(0, 10, 6, 2, lam=0.0)
    supports = padded([(0,)] * 16 + [(0, 1)] * 16, 2)
    values, count = evaluate(problem, supports, StopAfter(0))
    assert count == 16
    assert np.all(np.isfinite(values[:16]))
    assert np.all(values[16:] == np.inf)
    values, count = evaluate(problem, supports, lambda: False)
    assert count == 32
    assert np.all(values[16:] == np.inf), "duplicate columns are numerically dependent"
