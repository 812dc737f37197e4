"""Solve a small random problem and hold everything that happens against its optimum, found by trying every support."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import exactly
import numpy as np
from instances_for_tests import Case, Optimum, optimum_of
from recorded import replayed

from exactsel.problem.regression import Problem
from exactsel.search.events import Discarded, Finished, LowerBoundRaised
from exactsel.search.tolerance import Tolerance
from exactsel.solving.result import Claim, Result, Termination
from exactsel.solving.settings import DEFAULT_HEURISTICS, Settings
from exactsel.solving.solver import Search

TINY = 1e-9
"""Times 1 + |optimum|: what rounding may do to the way a search gets there."""

KEPT = 1 + Fraction(11, 10**13)
"""By how much an upper bound may exceed what its model costs."""

REASONS = {"inherited", "bound", "solved", "contained", "incumbent"}

TOLERANCES = ((0.0, 0.0), (0.0, 1e-6), (0.1, 0.0), (0.0, 0.1), (1e4, 0.0))


@dataclass(frozen=True)
class Solved:
    """A solve that passed every check."""

    case: Case
    problem: Problem
    optimum: Optimum
    result: Result
    events: list
    state: object


def random_options(seed, case):
    """Settings for a case: every plug-in that can serve it, every switch."""
    rng = np.random.default_rng([21, seed])
    # The two methods on the dual take more iterations, so they get fewer cases.
    bounds = ["apg", "apg", "apg", "supergradient", "pdal"] if case.lam > 0 else []
    if case.loss == "quadratic":
        bounds += ["fit", "fit"] if case.lam > 0 else ["fit"]
    eps, rel_eps = TOLERANCES[rng.choice(len(TOLERANCES), p=[0.3, 0.3, 0.15, 0.15, 0.1])]
    if rng.random() < 0.4:
        bounds = ["auto"]
    return {
        "tree": _pick(rng, ["binary", "binary", "state-space"]),
        "bound": _pick(rng, bounds),
        "branching": _pick(rng, ["auto", "half", "largest", "costliest"]),
        "frontier": _pick(rng, ["best-first", "best-first", "depth-first", "weighted"]),
        "threads": _pick(rng, [1, 2, 4]),
        "batch": _pick(rng, [None, 1, 2, 7, 64]),
        "heuristics": _pick(rng, [(), (), ("forward",), DEFAULT_HEURISTICS]),
        "eps": eps,
        "rel_eps": rel_eps,
        "warm_start": bool(rng.random() < 0.8),
        "force_quit": bool(rng.random() < 0.8),
    }


def _pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def rounding(optimum):
    """What a search may be off by."""
    return TINY * (1.0 + abs(optimum.high))


def ceiling(optimum):
    """What no lower bound may exceed."""
    return optimum.ceiling


def drive(search, optimum, events):
    """Run a search to its end; both bounds must hold at every event, and the lower one must not fall."""
    tiny, last = rounding(optimum), -np.inf
    for event in search:
        events.append(event)
        lower, upper = search.state.lower, search.state.upper
        assert lower <= ceiling(optimum), f"lower {lower!r} above the optimum {optimum.high!r} at {event}"
        assert upper >= optimum.floor, f"upper {upper!r} below the optimum {optimum.floor!r} at {event}"
        assert lower >= last - tiny, f"lower fell from {last!r} to {lower!r} at {event}"
        if isinstance(event, LowerBoundRaised):
            assert event.lower == lower
        last = lower
    return search.result(events)


def checked_solve(case, options, *, start_state=None):
    """Solve, check, replay."""
    optimum, problem, events = optimum_of(case), case.problem(), []
    search = Search(problem, Settings(**options), state=start_state, signals=(), details=True)
    result = drive(search, optimum, events)
    check_result(case, optimum, result, events)
    check_replay(problem, optimum, result, events, search.state)
    return Solved(case, problem, optimum, result, events, search.state)


def check_replay(problem, optimum, result, events, state):
    """The record proves the claim to somebody who trusts none of our code."""
    report = replayed(problem, result, events, state)
    assert result.lower == min(state.bound, result.upper), "nothing was prepared, so nothing is taken off"
    assert report.proven <= ceiling(optimum)
    assert report.still_open == result.open_nodes
    return report


def check_result(case, optimum, result, events, node_limit=None):
    """The result keeps what its words promise."""
    tiny = rounding(optimum)
    assert result.lower <= result.upper
    assert result.lower <= ceiling(optimum)
    assert result.upper >= optimum.floor
    assert result.upper - optimum.high <= result.gap + tiny
    check_model(case, result)
    check_words(optimum, result, node_limit)
    assert {event.reason for event in events if isinstance(event, Discarded)} <= REASONS
    assert isinstance(events[-1], Finished)
    stopped = events[-1].termination
    if result.termination is Termination.PRECISION_LIMIT:
        assert stopped in ("gap_closed", "tree_exhausted")
    else:
        assert stopped == result.termination.value
    assert result.open_nodes == len(events[-1].open_nodes)


def check_model(case, result):
    """The model is feasible, and its objective is what is claimed."""
    assert result.coef.shape == (case.A.shape[1],)
    assert np.all(np.isfinite(result.coef))
    assert tuple(np.flatnonzero(result.coef).tolist()) == result.support
    assert len(result.support) <= case.k
    told = exactly.stated(case.A, case.y, case.k, case.loss, case.lam, case.delta)
    exact = exactly.objective(told, result.coef)
    assert exact <= Fraction(result.upper) <= exact * KEPT + Fraction(2e-290)


def check_words(optimum, result, node_limit):
    """Termination and claim say neither more than is true nor less."""
    settings, scale = result.settings, max(1e-2 * result.null_objective, abs(result.upper))
    tolerance = Tolerance(settings["eps"], settings["rel_eps"], result.null_objective).absolute(result.upper)
    blur = optimum.high - optimum.low + 1e-12 * (1.0 + abs(optimum.high))
    excess = result.upper - optimum.high
    match result.claim:
        case Claim.OPTIMAL:
            assert result.gap <= 1e-9 * scale
            assert excess <= 1e-9 * scale + blur
        case Claim.WITHIN_EPS:
            assert 1e-9 * scale < result.gap <= tolerance
            assert excess <= tolerance + blur
        case Claim.BOUNDED:
            assert result.gap > max(1e-9 * scale, tolerance)
        case _:
            raise AssertionError(f"no lower bound: {result}")
    match result.termination:
        case Termination.GAP_CLOSED:
            assert result.gap <= tolerance
            assert result.reached
        case Termination.TREE_EXHAUSTED:
            assert result.open_nodes == 0
        case Termination.PRECISION_LIMIT:  # the only excuse is rounding, on the scale of the data
            assert result.open_nodes == 0 or result.gap <= 1e-9 * max(abs(result.upper), result.null_objective)
            assert not result.reached
        case Termination.NODE_LIMIT:
            assert node_limit is not None
            assert result.nodes >= node_limit
            assert result.open_nodes > 0
            assert result.gap > tolerance
        case _:
            raise AssertionError(f"nobody stopped this search: {result}")
