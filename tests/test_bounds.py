"""Every bound against brute force, against the conic oracle, and against its own proof written in plain numpy."""

from __future__ import annotations

import sys
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from recorded import instance_of
from scipy.optimize import brentq
from scipy.special import xlogy

from exactsel import registry
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import FitBound
from exactsel.bounds.oracle import CvxpyBound
from exactsel.bounds.pdal import PrimalDualBound
from exactsel.bounds.pointwise import bound_at_model
from exactsel.bounds.supergradient import SupergradientBound
from exactsel.curvature import balanced_curvature
from exactsel.errors import UnsupportedError
from exactsel.kernels.node import CUT, FREE, IN, OUT, RELAXED, SOLVED, UNFINISHED
from exactsel.kernels.pdal import STEPS, has_converged
from exactsel.losses import Huber, Logistic, Quadratic
from exactsel.problem import Problem
from exactsel.proof import CurvedPoint, DualPoint, FitPoint, ModelPoint
from exactsel_certificates.reference.bounds import curved_bound

pytest.importorskip("cvxpy")

LOSSES = ("quadratic", "huber", "logistic")
BOUNDS = (
    AcceleratedGradientBound(),
    AcceleratedGradientBound(curvature=False),
    FitBound(),
    PrimalDualBound(),
    SupergradientBound(),
    CvxpyBound(),
)
CONVERGED = (
    AcceleratedGradientBound(max_iterations=20000, polish=0.0, curvature=False),
    PrimalDualBound(accuracy=1e-12, max_iterations=100000),
)
ITERATIVE = (
    AcceleratedGradientBound(polish=0.0),
    PrimalDualBound(),
    SupergradientBound(),
)
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_bound = pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.name)
each_iterative = pytest.mark.parametrize("bound", ITERATIVE, ids=lambda bound: bound.name)
each_dual = pytest.mark.parametrize("bound", ITERATIVE[1:], ids=lambda bound: bound.name)


@cache
def make_problem(seed, loss, n=15, d=7, k=3, lam=0.4, awkward=False):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    if awkward:
        A[:, 1], A[:, 2], A[:, 3] = A[:, 0], 0.0, 100.0 * A[:, 3]
    y = 2.0 * A[:, 0] - 1.5 * A[:, d - 1] + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(0.8) if loss == "huber" else loss, lam=lam)


def all_problems(loss):
    yield make_problem(0, loss)
    yield make_problem(1, loss, n=6, d=8, k=2, lam=0.05)
    yield make_problem(2, loss, k=4, lam=3.0, awkward=True)
    yield make_problem(3, loss, n=20, d=6, k=1, lam=0.5)


def root(problem):
    return np.full(problem.d, FREE, dtype=np.int8)


def make_states(problem, count=8, seed=0):
    """The root and random nodes, some of them convex."""
    rng = np.random.default_rng(seed)
    states = [root(problem)]
    while len(states) < count:
        state = rng.choice([OUT, FREE, FREE, FREE, IN], problem.d).astype(np.int8)
        if np.count_nonzero(state == IN) <= problem.k:
            states.append(state)
    return np.array(states)


def is_relaxed(problem, state):
    inside, allowed = np.count_nonzero(state == IN), np.count_nonzero(state != OUT)
    return inside < problem.k < allowed


@cache
def value_on(problem, support):
    return problem.fit(support).value


def brute_force(problem, state):
    """The best model of a node; inf where it holds none. Larger supports only help."""
    inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    if inside.size > problem.k:
        return np.inf
    places = min(problem.k - inside.size, free.size)
    supports = (tuple(sorted([*inside.tolist(), *chosen])) for chosen in combinations(free.tolist(), places))
    return min(value_on(problem, support) for support in supports)


def served(bound, problem):
    return bound.name != "fit" or problem.is_quadratic


def call(bound, problem, states, cutoff=np.inf, upper=None, warm=None, **options):
    if upper is None:
        upper = brute_force(problem, root(problem))
    prepared = bound.prepare(problem, BoundOptions(**options))
    return prepared.tighten(np.array(states), warm or [None] * len(states), cutoff, upper)


def converged(bound, problem, states):
    return call(bound, problem, states, force_quit=False).answers.bound


# Formula (2), written down a second time


def plain_gradient(problem, x):
    z, y = problem.A @ x, problem.y
    if isinstance(problem.loss, Logistic):
        return -y / (1.0 + np.exp(y * z))
    return z - y if isinstance(problem.loss, Quadratic) else np.clip(z - y, -problem.loss.delta, problem.loss.delta)


def plain_bound(problem, state, beta):
    """D(beta; S, C, r)."""
    y = problem.y
    if isinstance(problem.loss, Logistic):
        p = -y * beta
        assert np.all((p >= 0.0) & (p <= 1.0))
        conjugate = np.sum(xlogy(p, p) + xlogy(1.0 - p, 1.0 - p))
    else:
        assert isinstance(problem.loss, Quadratic) or np.all(np.abs(beta) <= problem.loss.delta)
        conjugate = beta @ beta / 2 + y @ beta
    q = (problem.A.T @ beta) ** 2
    inside = np.count_nonzero(state == IN)
    top = np.sort(q[state == FREE])[::-1][: max(0, problem.k - inside)].sum()
    return -conjugate - (q[state == IN].sum() + top) / (2 * problem.lam)


def proven_bound(problem, state, proof):
    if isinstance(proof, DualPoint):
        return plain_bound(problem, state, proof.beta)
    if isinstance(proof, CurvedPoint):
        inside, candidates = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
        return curved_bound(instance_of(problem), inside, candidates, proof.dense(problem.d), proof.curvature)
    assert isinstance(proof, ModelPoint)
    return plain_bound(problem, state, plain_gradient(problem, proof.dense(problem.d)))


# Validity


@each_bound
@each_loss
def test_bounds_hold(bound, loss):
    for problem in all_problems(loss):
        if not served(bound, problem):
            continue
        states = make_states(problem)
        # From a very early end to a late one: every answer must hold.
        for cutoff in (-1e9, brute_force(problem, states[0]), np.inf):
            answers = call(bound, problem, states, cutoff).answers
            for row, state in enumerate(states):
                best = brute_force(problem, state)
                assert answers.bound[row] <= best + 1e-9
                if answers.status[row] == SOLVED:
                    assert not is_relaxed(problem, state)
                    assert answers.bound[row] == pytest.approx(best, rel=1e-7)
                elif answers.status[row] == CUT:
                    assert answers.bound[row] >= cutoff
                else:
                    assert is_relaxed(problem, state)


@each_bound
@each_loss
def test_what_children_inherit_holds(bound, loss):
    for problem in all_problems(loss):
        if not served(bound, problem):
            continue
        states = make_states(problem)
        answers = call(bound, problem, states, force_quit=False).answers
        for row, state in enumerate(states):
            if not is_relaxed(problem, state):
                continue
            for j in np.flatnonzero(state == FREE):
                for value, inherited in ((IN, answers.bound_in), (OUT, answers.bound_out)):
                    child = state.copy()
                    child[j] = value
                    assert inherited[row, j] <= brute_force(problem, child) + 1e-9
                    assert inherited[row, j] >= answers.bound[row]


@each_bound
@each_loss
def test_proofs_reproduce_the_bound(bound, loss):
    for problem in all_problems(loss):
        if not served(bound, problem):
            continue
        states = make_states(problem)
        result = call(bound, problem, states, force_quit=False)
        for row, state in enumerate(states):
            claimed, shown = result.answers.bound[row], proven_bound(problem, state, result.proofs[row])
            # The claim may lie below by the allowance for rounding, never above by more than the test's own rounding.
            assert shown == pytest.approx(claimed, rel=1e-7, abs=1e-7)
            assert claimed <= shown + 1e-11 * (1.0 + abs(shown))
            if is_relaxed(problem, state):
                self_made = isinstance(result.proofs[row], DualPoint)
                assert self_made == (bound.name in ("pdal", "supergradient"))
            else:
                assert isinstance(result.proofs[row], ModelPoint)


def test_child_proofs_reproduce_what_children_inherit():
    for bound in (*ITERATIVE, FitBound()):
        problem = make_problem(0, "quadratic")
        states = make_states(problem)
        result = call(bound, problem, states, force_quit=False)
        for row, state in enumerate(states):
            if not is_relaxed(problem, state):
                continue
            for j in np.flatnonzero(state == FREE):
                for inside, inherited in ((True, result.answers.bound_in), (False, result.answers.bound_out)):
                    child, proof = state.copy(), result.child_proof(row, j, inside)
                    child[j] = IN if inside else OUT
                    if isinstance(proof, FitPoint):
                        shown = value_on(problem, tuple(np.flatnonzero(child != OUT).tolist()))
                    else:
                        shown = proven_bound(problem, child, proof)
                    assert inherited[row, j] <= shown + 1e-11 * (1.0 + abs(shown))


def test_the_fit_without_a_ridge():
    for problem in (make_problem(4, "quadratic", lam=0.0), make_problem(5, "quadratic", n=5, lam=0.0, awkward=True)):
        states = make_states(problem)
        result = call(FitBound(), problem, states, force_quit=False)
        for row, state in enumerate(states):
            assert result.answers.bound[row] <= brute_force(problem, state) + 1e-9
            fit = value_on(problem, tuple(np.flatnonzero(state != OUT).tolist()))
            if is_relaxed(problem, state):
                assert result.answers.bound[row] == pytest.approx(fit, rel=1e-4, abs=1e-4)
            assert isinstance(result.proofs[row], FitPoint)


def test_the_bound_at_a_model_equals_the_formula():
    for loss in LOSSES:
        for problem in all_problems(loss):
            x = np.random.default_rng(6).standard_normal(problem.d)
            for state in make_states(problem):
                shown = plain_bound(problem, state, plain_gradient(problem, x))
                assert bound_at_model(problem, state, x) == pytest.approx(shown, rel=1e-9)
                assert bound_at_model(problem, state, x) <= shown + 1e-12 * abs(shown)


# Strength


@pytest.mark.parametrize("bound", CONVERGED, ids=lambda bound: bound.name)
@each_loss
def test_the_relaxation_is_solved(bound, loss):
    for problem in all_problems(loss):
        states = make_states(problem)
        expected, found = converged(CvxpyBound(), problem, states), converged(bound, problem, states)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(("bound", "loose"), [(PrimalDualBound(), 0.01), (SupergradientBound(), 0.1)])
@each_loss
def test_the_defaults_come_near_the_relaxation(bound, loose, loss):
    # On badly scaled data the paper's stopping rule may end the iteration far below the maximum.
    for problem in (make_problem(0, loss), make_problem(3, loss, n=20, d=6, k=1, lam=0.5)):
        states = make_states(problem)
        expected, found = converged(CvxpyBound(), problem, states), converged(bound, problem, states)
        assert np.all(found >= expected - loose * np.abs(expected) - 1e-9)


@each_loss
def test_relaxed_models_agree_with_the_oracle(loss):
    problem = make_problem(0, loss)
    expected = call(CvxpyBound(), problem, [root(problem)]).answers
    for bound in CONVERGED:
        answers = call(bound, problem, [root(problem)]).answers
        np.testing.assert_allclose(answers.x, expected.x, atol=1e-3)
        np.testing.assert_allclose(answers.indicator, expected.indicator, atol=1e-2)
        assert set(answers.support[0]) == set(expected.support[0])


# Slow twins of the two dual methods


def twin_prox_conjugate_loss(problem, u, tau):
    """prox_{tau L*}(u) from L* itself."""
    if not isinstance(problem.loss, Logistic):
        beta = (u - tau * problem.y) / (1.0 + tau)
        return beta if isinstance(problem.loss, Quadratic) else np.clip(beta, -problem.loss.delta, problem.loss.delta)
    p = [
        brentq(lambda p, a=-yi * ui: p - a + tau * (np.log(p) - np.log1p(-p)), 1e-300, 1.0 - 1e-16, xtol=1e-15)
        for ui, yi in zip(u, problem.y, strict=True)
    ]
    return -problem.y * np.array(p)


def twin_prox_norm(u, places, weight):
    """Prox of weight/2 times the squared k-support norm, the water level by bisection."""
    low, high = 0.0, (1.0 + weight) / max(np.abs(u).min(), 1e-12)
    for _ in range(300):
        middle = 0.5 * (low + high)
        too_much = np.clip(middle * np.abs(u) - weight, 0.0, 1.0).sum() > places
        low, high = (low, middle) if too_much else (middle, high)
    z = np.clip(low * np.abs(u) - weight, 0.0, 1.0)
    return u * z / (z + weight)


def twin_pdal(problem, iterations):
    """The paper's Algorithm 3 at the root, word for word; the best bound, the last beta and x, and the steps."""
    A, gamma = problem.A, 1.0 / problem.loss.smoothness
    # The algorithm as published, for A in units in which its norm is between 1/2 and 1.
    norm = np.sqrt(problem.spectral_norm_squared)
    unit = 2.0 ** np.frexp(norm)[1]
    tau, theta, rho = unit / norm, 1.0, unit**-2.0
    x, beta, best = np.zeros(problem.d), np.zeros(problem.n), -np.inf
    for _ in range(iterations):
        last_beta, beta = beta, twin_prox_conjugate_loss(problem, beta + tau * A @ x, tau)
        best = max(best, plain_bound(problem, root(problem), beta))
        last_rho, last_tau, rho = rho, tau, rho * (1.0 + gamma * tau)
        tau = last_tau * np.sqrt(last_rho / rho * (1.0 + theta))
        while True:
            theta = tau / last_tau
            moved = x - rho * tau * A.T @ (beta + theta * (beta - last_beta))
            new = twin_prox_norm(moved, problem.k, rho * tau * problem.lam)
            if np.sqrt(rho) * tau * np.linalg.norm(A @ (new - x)) <= 0.99 * np.linalg.norm(new - x):
                break
            tau *= 0.7
        x = new
    return best, beta, x, (tau, theta, rho)


@each_loss
def test_pdal_follows_the_paper(loss):
    problem = make_problem(7, loss)
    for iterations in (1, 2, 10, 40):
        bound = PrimalDualBound(accuracy=0.0, max_iterations=iterations)
        result = call(bound, problem, [root(problem)], force_quit=False)
        best, beta, x, steps = twin_pdal(problem, iterations)
        memory = result.warm[0]
        assert result.answers.iterations[0] == iterations
        assert result.answers.bound[0] == pytest.approx(best, rel=1e-8)
        np.testing.assert_allclose(memory[:STEPS], steps, rtol=1e-7)
        np.testing.assert_allclose(memory[STEPS : STEPS + problem.d], x, atol=1e-7)
        np.testing.assert_allclose(memory[STEPS + problem.d :], beta, atol=1e-7)
        np.testing.assert_allclose(result.answers.x[0], x, atol=1e-7)


def twin_supergradient(problem, iterations):
    """Projected supergradient ascent at the root; the best bound and the last beta."""
    A, loss, k = problem.A, problem.loss, problem.k
    first = 1.0 + loss.smoothness * problem.spectral_norm_squared / problem.lam
    beta, best = np.zeros(problem.n), -np.inf
    for step in range(iterations + 1):
        best = max(best, plain_bound(problem, root(problem), beta))
        if step == iterations:
            return best, beta
        v = A.T @ beta
        x = np.zeros(problem.d)
        kept = np.argsort(-np.abs(v), kind="stable")[:k]
        x[kept] = -v[kept] / problem.lam
        if isinstance(loss, Logistic):
            p = np.clip(-problem.y * beta, 1e-14, 1.0 - 1e-14)
            gradient = -problem.y * np.log(p / (1.0 - p))
        else:
            gradient = beta + problem.y
        moved = beta + loss.smoothness / (first + step) * (A @ x - gradient)
        if isinstance(loss, Logistic):
            beta = -problem.y * np.clip(-problem.y * moved, 0.0, 1.0)
        else:
            beta = np.clip(moved, -loss.delta, loss.delta) if isinstance(loss, Huber) else moved
    raise AssertionError


@each_loss
def test_supergradient_ascent_follows_its_description(loss):
    problem = make_problem(8, loss)
    for iterations in (0, 1, 30):
        bound = SupergradientBound(accuracy=0.0, max_iterations=iterations)
        result = call(bound, problem, [root(problem)], force_quit=False)
        best, beta = twin_supergradient(problem, iterations)
        assert result.answers.iterations[0] == iterations
        assert result.answers.bound[0] == pytest.approx(best, rel=1e-8)
        np.testing.assert_allclose(result.warm[0][1:], beta, atol=1e-8)


# The contract of a bound call


@each_bound
@each_loss
def test_answers_depend_on_nothing_but_the_node(bound, loss):
    problem = make_problem(9, loss)
    if not served(bound, problem):
        return
    warm_root = call(bound, problem, [root(problem)]).warm[0]
    states = make_states(problem, count=6, seed=1)
    warm = [None, *[warm_root] * (len(states) - 1)]
    whole = call(bound, problem, states, warm=warm, threads=1)
    order = np.arange(len(states))[::-1]
    others = [
        (call(bound, problem, states, warm=warm, threads=2), order[::-1]),
        (call(bound, problem, states[order], warm=[warm[i] for i in order], threads=2), order),
    ]
    for row in range(len(states)):
        others.append((call(bound, problem, states[row : row + 1], warm=warm[row : row + 1]), [row]))
    for other, rows in others:
        for name, expected in whole.answers._asdict().items():
            np.testing.assert_array_equal(getattr(other.answers, name), expected[rows], err_msg=name)
        for position, row in enumerate(rows):
            assert_same(other.proofs[position], whole.proofs[row])
            assert_same(other.warm[position], whole.warm[row])


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, ModelPoint):
        np.testing.assert_array_equal(a.index, b.index)
        np.testing.assert_array_equal(a.value, b.value)
    elif isinstance(a, DualPoint):
        np.testing.assert_array_equal(a.beta, b.beta)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    else:
        assert a is None or isinstance(a, FitPoint)


@each_dual
@each_loss
def test_inputs_are_not_modified(bound, loss):
    problem = make_problem(9, loss)
    A, y = problem.A.copy(), problem.y.copy()
    first = call(bound, problem, [root(problem)])
    memory, beta = first.warm[0].copy(), first.proofs[0].beta.copy()
    states = make_states(problem)
    before = states.copy()
    # Read-only views: a kernel that writes to its input fails rather than corrupting a sibling.
    first.warm[0].flags.writeable = False
    prepared = bound.prepare(problem, BoundOptions())
    prepared.tighten(states, [first.warm[0]] * len(states), np.inf, 1.0)
    assert np.array_equal(states, before)
    assert np.array_equal(first.warm[0], memory)
    assert np.array_equal(first.proofs[0].beta, beta)
    assert np.array_equal(problem.A, A)
    assert np.array_equal(problem.y, y)


@each_bound
@each_loss
def test_a_call_ends_at_the_cut_off(bound, loss):
    problem = make_problem(0, loss)
    if not served(bound, problem):
        return
    state = root(problem)
    free = call(bound, problem, [state], force_quit=False).answers
    cutoff = free.bound[0] - 0.1 * abs(free.bound[0])
    cut = call(bound, problem, [state], cutoff).answers
    assert cut.status[0] == CUT
    assert cutoff <= cut.bound[0] <= brute_force(problem, state) + 1e-9
    assert cut.iterations[0] <= free.iterations[0]
    assert free.status[0] == RELAXED
    if bound.name in ("apg", "pdal", "supergradient"):
        assert cut.iterations[0] < free.iterations[0]


@each_iterative
@each_loss
def test_without_force_quit_the_cut_off_changes_nothing(bound, loss):
    problem = make_problem(0, loss)
    free = call(bound, problem, [root(problem)], force_quit=False).answers
    for cutoff in (-1e9, 0.5 * free.bound[0], 1e9):
        answers = call(bound, problem, [root(problem)], cutoff, force_quit=False).answers
        assert answers.status[0] == RELAXED
        assert answers.bound[0] == free.bound[0]


@pytest.mark.parametrize("cutoff", [1.0, np.inf])
def test_without_force_quit_the_default_bound_solves_the_relaxation(cutoff):
    """Whatever the cut-off, also when there is none yet, as before the first model is known."""
    for loss in LOSSES:
        problem = make_problem(0, loss)
        expected = call(CvxpyBound(), problem, [root(problem)]).answers.bound[0]
        answers = call(
            AcceleratedGradientBound(curvature=False), problem, [root(problem)], cutoff, force_quit=False
        ).answers
        assert answers.bound[0] == pytest.approx(expected, rel=1e-3)


@each_bound
@each_loss
def test_the_stop_flag_is_obeyed(bound, loss):
    problem = make_problem(0, loss)
    if not served(bound, problem):
        return
    states = make_states(problem)
    answers = call(bound, problem, states, stop=np.array([True])).answers
    for row, state in enumerate(states):
        if is_relaxed(problem, state):
            assert answers.status[row] == UNFINISHED
        assert answers.bound[row] <= brute_force(problem, state) + 1e-9
        assert answers.iterations[row] <= 1


# Memories


@each_dual
@each_loss
def test_children_start_from_their_parent(bound, loss):
    problem = make_problem(10, loss)
    parent = call(bound, problem, [root(problem)])
    again = call(bound, problem, [root(problem)], warm=[parent.warm[0]])
    ignored = call(bound, problem, [root(problem)], warm=[parent.warm[0]], warm_start=False)
    assert again.answers.iterations[0] <= parent.answers.iterations[0]
    assert again.answers.bound[0] >= parent.answers.bound[0] - 0.02 * abs(parent.answers.bound[0])
    np.testing.assert_array_equal(ignored.answers.bound, parent.answers.bound)
    head = STEPS if bound.name == "pdal" else 1
    length = head + problem.n + (problem.d if bound.name == "pdal" else 0)
    assert parent.warm[0].shape == (length,)
    assert parent.warm[0].base is None


@each_dual
def test_convex_nodes_leave_no_memory(bound):
    problem = make_problem(10, "huber")
    state = np.full(problem.d, OUT, dtype=np.int8)
    state[:2] = FREE
    result = call(bound, problem, [state])
    assert result.warm == [None]
    assert result.answers.status[0] == SOLVED


def test_converged_means_still_and_not_below_the_best():
    assert has_converged(10.0, 10.0 - 1e-5, 10.0, 1e-5, 11.0)
    assert not has_converged(10.0, 9.9, 10.0, 1e-5, 11.0)
    assert not has_converged(10.0, 10.0, 10.1, 1e-5, 11.0)
    assert not has_converged(10.0, -np.inf, 10.0, 1e-5, 11.0)
    assert has_converged(10.0, 10.0, 10.0, 1e-5, np.inf)
    assert not has_converged(10.0, 9.9, 10.0, 1e-5, np.inf)
    assert has_converged(0.0, 0.0, 0.0, 1e-5, 0.0)


@each_dual
def test_no_upper_bound_is_needed(bound):
    problem = make_problem(0, "huber")
    expected = converged(CvxpyBound(), problem, [root(problem)])[0]
    found = call(bound, problem, [root(problem)], upper=np.inf).answers.bound[0]
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("bound", ITERATIVE, ids=lambda bound: bound.name)
@pytest.mark.parametrize("k", [0, 1, 3, 7])
def test_data_that_say_nothing(bound, k):
    for A in (np.zeros((4, 7)), np.ones((4, 7))):
        problem = Problem(A, np.arange(4.0), k, loss=Huber(0.5), lam=0.1)
        states = make_states(problem, count=3)
        answers = call(bound, problem, states).answers
        for row, state in enumerate(states):
            assert answers.bound[row] == pytest.approx(brute_force(problem, state), rel=0.05)
            assert answers.bound[row] <= brute_force(problem, state) + 1e-9


# What they refuse


def test_the_registry_finds_them():
    for bound in BOUNDS:
        assert registry.load("bounds", bound.name) is type(bound)


@each_bound
def test_lam_zero_is_refused(bound):
    if bound.name != "fit":
        with pytest.raises(UnsupportedError, match=f"the bound '{bound.name}' .*lam.* is 0"):
            bound.prepare(make_problem(5, "quadratic", n=5, lam=0.0, awkward=True), BoundOptions())


def test_the_fit_needs_quadratic_loss():
    with pytest.raises(UnsupportedError, match="needs quadratic loss, but the loss is huber"):
        FitBound().prepare(make_problem(0, "huber"), BoundOptions())


def test_the_oracle_says_how_to_get_cvxpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'exactsel\[cvxpy\]'"):
        CvxpyBound().prepare(make_problem(0, "quadratic"), BoundOptions())


class Stranger(NamedTuple):
    """A plug-in loss without a conjugate; never compiled."""

    name = "stranger"
    smoothness = 1.0
    infimum = 0.0
    point_value = Quadratic.point_value
    point_derivative = Quadratic.point_derivative
    point_curvature = Quadratic.point_curvature
    point_majorizer = Quadratic.point_majorizer
    point_prox = Quadratic.point_prox

    def check_target(self, y):
        pass

    def check_parameters(self):
        pass


def test_losses_without_what_a_bound_needs_are_refused():
    problem = Problem(np.eye(3), np.ones(3), 1, loss=Stranger(), lam=0.1)
    with pytest.raises(UnsupportedError, match="stranger lacks point_conjugate, point_conjugate_derivative"):
        SupergradientBound().prepare(problem, BoundOptions())
    with pytest.raises(UnsupportedError, match="the loss is stranger; use --bound apg"):
        CvxpyBound().prepare(problem, BoundOptions())


# Curvature


def convex_without(problem, D):
    """The smallest eigenvalue of A'A + lam I - diag(D), in extended precision as far as the product goes."""
    A = problem.A.astype(np.longdouble)
    matrix = A.T @ A + np.diag(problem.lam - D.astype(np.longdouble))
    return float(np.linalg.eigvalsh(np.asarray(matrix, dtype=float))[0])


@pytest.mark.parametrize("lam", [0.0, 1e-3, 1.0])
def test_curvature_leaves_a_convex_problem(lam):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 12))
        A = rng.standard_normal((d + int(rng.integers(1, 20)), d)) * 10.0 ** rng.uniform(-3, 3, d)
        problem = Problem(A, rng.standard_normal(len(A)), 1, lam=lam)
        hessian = problem.gram.G + lam * np.eye(d)
        D = balanced_curvature(hessian, problem.n)
        if D is None:
            assert np.linalg.cond(hessian) > 1e10
            continue
        assert np.all(D > 0)
        assert convex_without(problem, D) >= -1e-14 * np.trace(hessian)
        # Balanced: scaled by its own curvature no column is left with nothing.
        assert np.exp(np.mean(np.log(D))) >= 0.99 * np.linalg.eigvalsh(hessian)[0]


def test_no_curvature_where_columns_are_dependent():
    A = np.random.default_rng(0).standard_normal((10, 4))
    A[:, 3] = A[:, 0]
    assert balanced_curvature(A.T @ A, 10) is None
    assert balanced_curvature(A.T @ A + 0.1 * np.eye(4), 10) is not None


def test_curvature_is_as_good_as_a_conic_solver_finds():
    """The barrier's maximum, by cvxpy, to within the weight the barrier is left with."""
    cvxpy = pytest.importorskip("cvxpy")
    A = np.random.default_rng(1).standard_normal((30, 6)) @ np.random.default_rng(2).standard_normal((6, 6))
    hessian = A.T @ A + 0.1 * np.eye(6)
    D = cvxpy.Variable(6)
    best = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.log(D))), [hessian - cvxpy.diag(D) >> 0])
    best.solve(solver="CLARABEL")
    ours = balanced_curvature(hessian, 30)
    assert np.sum(np.log(ours)) == pytest.approx(best.value, abs=1e-2)


def test_curvature_is_never_worse_than_much():
    """At the root the curved relaxation is the tighter one on data with a strong design."""
    better = 0
    for seed in range(10):
        problem = make_problem(seed, "quadratic", lam=1e-3)
        states = [root(problem)]
        plain = call(AcceleratedGradientBound(20000, polish=0.0, curvature=False), problem, states, force_quit=False)
        curved = call(AcceleratedGradientBound(20000, polish=0.0), problem, states, force_quit=False)
        better += curved.answers.bound[0] > plain.answers.bound[0]
    assert better >= 8
