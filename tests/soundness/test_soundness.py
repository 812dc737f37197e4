"""The net under everything: thousands of small problems, each solved and held against its optimum.

At every event of a search its lower bound must not exceed the optimum and its upper bound must not fall below; what
the result says must be true; and the recorded events must prove it to a replay that shares no code with the solver.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from checked_solve import ceiling, check_replay, check_result, checked_solve, drive, random_options
from fractions_of_doubles import exact_objective, exact_optimum
from instances_for_tests import LOSSES, Case, optimum_of, random_case
from recorded import plain
from samples import many, sample

from exactsel.bounds.pdal import PrimalDualBound
from exactsel.bounds.supergradient import SupergradientBound
from exactsel.search.events import Finished, Started
from exactsel.solving.api import solve
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel.start.portfolio import AUTO

CHUNK = 60
CHUNKS = 55
LONG_CHUNK = 500
LONG_CHUNKS = 55


def solve_chunk(first, count):
    words = Counter()
    for seed in range(first, first + count):
        case = random_case(seed)
        try:
            solved = checked_solve(case, random_options(seed, case))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {case.problem()}, {case.kind}, {random_options(seed, case)}") from error
        words[solved.result.claim.value] += 1
    # An honest "I could not prove it" is no error, but it must stay rare.
    assert words["bounded"] <= 0.05 * count + 2
    return words


@pytest.mark.parametrize("chunk", sample(12, CHUNKS, smoke=2))
def test_random_problems(chunk):
    solve_chunk(chunk * CHUNK, CHUNK)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(LONG_CHUNKS))
def test_many_more_random_problems(chunk):
    solve_chunk(100_000 + chunk * LONG_CHUNK, LONG_CHUNK)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tree", ["binary", "state-space"])
@pytest.mark.parametrize("bound", ["apg", "fit", "pdal", "supergradient"])
def test_every_tree_with_every_bound(loss, tree, bound):
    if bound == "fit" and loss != "quadratic":
        pytest.skip("the fit is for quadratic loss")
    for seed in range(300_000, 300_000 + many(3, 12)):
        case = random_case(seed, loss=loss, lam=None if bound == "fit" else 0.02 * (seed % 3 + 1))
        for options in ({}, {"eps": 0.05, "batch": 3}, {"rel_eps": 0.0, "batch": 5, "frontier": "depth-first"}):
            checked_solve(case, {"tree": tree, "bound": bound, "heuristics": (), "threads": 1, **options})


@pytest.mark.parametrize("loss", LOSSES)
def test_the_conic_oracle_as_a_bound(loss):
    pytest.importorskip("cvxpy")
    for seed in (1, 2):
        case = random_case(400_000 + seed, loss=loss, lam=0.3, n=6, d=4)
        checked_solve(case, {"bound": "cvxpy", "heuristics": (), "threads": 1})


@pytest.mark.parametrize("solver", [PrimalDualBound(max_iterations=3), SupergradientBound(max_iterations=2)])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_bound_cut_short_is_still_a_bound(solver, loss):
    for seed in range(410_000, 410_010):
        checked_solve(random_case(seed, loss=loss, lam=0.1), {"bound": solver, "heuristics": (), "threads": 1})


@pytest.mark.smoke
@pytest.mark.parametrize("loss", LOSSES)
def test_k_0_is_the_empty_model(loss):
    for seed in range(420_000, 420_010):
        case = replace(random_case(seed, loss=loss), k=0)
        for tree in ("binary", "state-space"):
            result = checked_solve(case, {"tree": tree, "threads": 1}).result
            assert result.support == ()
            assert result.claim.value == "optimal"


@pytest.mark.parametrize("loss", LOSSES)
def test_k_d_is_one_convex_problem(loss):
    for seed in range(430_000, 430_000 + many(8, 20)):
        case = random_case(seed, loss=loss, lam=0.1)
        result = checked_solve(replace(case, k=case.A.shape[1]), {"threads": 1}).result
        assert result.nodes <= 1
        assert result.open_nodes == 1 - result.nodes


# --- the lower bound is a theorem about the numbers in the file, not about nearby ones ---


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.5, 30.0, 0.0])
def test_the_lower_bound_needs_no_tolerance(lam):
    """Against the optimum in rational arithmetic: rounding must never lift a bound, not by one unit."""
    for seed in range(440_000, 440_000 + many(9, 25)):
        case = random_case(seed, loss="quadratic", lam=lam, n=6, d=5)
        if case.k > 3 or (lam == 0 and np.linalg.matrix_rank(case.A) < 5):
            case = replace(case, k=2, A=case.A + np.diag(np.arange(1.0, 7.0))[:, :5])
        for bound in ["fit"] if lam == 0 else ["fit", "apg", "pdal", "supergradient"]:
            options = {"bound": bound, "threads": 1, "rel_eps": 0.0, "node_limit": 1 + seed % 9}
            result = solve(case.problem(), signals=(), **options)
            # What is said of models of limited size only (lam = 0, nearly dependent columns) is not said of all.
            if not result.valid_for:
                assert Fraction(result.lower) <= exact_optimum(case), f"seed {seed} bound {bound}"


NEARLY_DEPENDENT = np.array(
    [
        [-1.1830644780749993, -1.1830644780741302, -0.869804006456266],
        [-0.5451432116470412, -0.5451432116446704, -1.0801065080960537],
        [0.301562410772069, 0.30156241077194185, 0.23356910230332328],
        [0.6275822655985983, 0.6275822656003399, 1.5680662020843537],
    ]
)


def test_the_upper_bound_is_the_objective_of_the_model_shown():
    """In rational arithmetic, for two columns that agree to twelve digits, without a ridge."""
    rng = np.random.default_rng(0)
    for seed in range(40):
        A = NEARLY_DEPENDENT if seed == 0 else NEARLY_DEPENDENT + 1e-13 * rng.standard_normal((4, 3))
        y = 1e4 + rng.standard_normal(4)
        case = Case(A, y, 3, "quadratic", 0.0, None, "nearly dependent")
        result = solve(case.problem(), threads=1, rel_eps=0.0, signals=())
        exact = exact_objective(case, result.coef)
        assert 0 <= Fraction(result.upper) - exact <= 1e-9 * max(1.0, result.upper)


# --- stopping and going on ---


@pytest.mark.smoke
@pytest.mark.parametrize("chunk", sample(3, 8))
def test_stopped_and_resumed(chunk):
    for seed in range(500_000 + 25 * chunk, 500_000 + 25 * (chunk + 1)):
        case = random_case(seed, d=7)
        options = {**random_options(seed, case), "eps": 0.0, "rel_eps": 0.0}
        optimum, problem, events, limit, state = optimum_of(case), case.problem(), [], 1, None
        for part in range(100):
            settings = Settings(**options, node_limit=limit if part < 6 else None)
            search = Search(problem, settings, state=state, signals=(), details=True)
            before = len(events)
            result = drive(search, optimum, events)
            if part:
                ended, started = events[before - 1], events[before]
                assert isinstance(ended, Finished)
                assert isinstance(started, Started)
                assert plain(ended.open_nodes) == plain(started.open_nodes)
            check_result(case, optimum, result, events, node_limit=settings.node_limit)
            check_replay(problem, optimum, result, events, search.state)
            if result.termination.value != "node_limit":
                break
            limit, state = result.nodes + 1 + seed % 4, search.state
        assert result.termination.value in ("tree_exhausted", "gap_closed")


@pytest.mark.parametrize("tree", ["binary", "state-space"])
def test_a_search_in_pieces_is_the_same_search(tree):
    """With one node a round, stopping and going on leaves no trace in what is committed."""
    for seed in range(510_000, 510_010):
        case = random_case(seed, d=7, n=9)
        # What a walk of a whole subtree may take depends on the node limit.
        options = {"tree": tree, "batch": 1, "threads": 1, "heuristics": (), "subtrees": False}
        whole = solve(case.problem(), signals=(), **options)
        state, limit = None, 1
        while True:
            settings = Settings(**options, node_limit=limit)
            search = Search(case.problem(), settings, state=state, signals=(), details=True)
            for _ in search:
                pass
            state, limit = search.state, search.state.nodes + 2
            if search.result().termination.value != "node_limit":
                break
        assert search.result().tree_hash == whole.tree_hash
        assert search.result().lower == whole.lower


@pytest.mark.parametrize("tree", ["binary", "state-space"])
def test_broken_off_anywhere_and_resumed(tree):
    """Whoever leaves the loop at any event may go on from the state: no node in flight is lost."""
    for seed in range(520_000, 520_008):
        case = random_case(seed, d=6, n=9)
        optimum, problem = optimum_of(case), case.problem()
        settings = Settings(threads=1, heuristics=(), tree=tree, batch=4)
        events = len(list(Search(problem, settings, signals=())))
        for stop in range(events - 1):
            first = Search(problem, settings, signals=())
            for number, _ in enumerate(first):
                if number == stop:
                    break
            half = first.result()
            assert half.lower <= ceiling(optimum)
            assert half.termination.value == "interrupted"
            again = Search(problem, settings, state=first.state, signals=())
            check_result(case, optimum, drive(again, optimum, parts := []), parts)


def test_a_time_limit_of_nothing():
    for seed in range(530_000, 530_000 + many(10, 20)):
        case = random_case(seed, d=6)
        optimum = optimum_of(case)
        result = solve(case.problem(), time_limit=0.0, threads=1, signals=())
        assert result.lower <= ceiling(optimum)
        assert result.upper >= optimum.floor
        assert result.termination.value in ("time_limit", "gap_closed")
        assert result.reached == (result.absolute_gap <= Settings().tolerance.absolute(result.upper))


# --- determinism ---


def fingerprint(case, options):
    events = []
    result = solve(
        case.problem(), callback=lambda event, _: events.append(plain(event)), signals=(), details=True, **options
    )
    return result.tree_hash, events, result.upper, result.lower, result.support


@pytest.mark.parametrize("chunk", sample(2, 6))
def test_the_same_tree_for_any_number_of_threads(chunk):
    for seed in range(600_000 + 10 * chunk, 600_000 + 10 * (chunk + 1)):
        case = random_case(seed, d=8)
        options = {**random_options(seed, case), "batch": (None, 5, 16)[seed % 3]}
        first = fingerprint(case, {**options, "threads": 1})
        for threads in (1, 2, 4):
            assert fingerprint(case, {**options, "threads": threads}) == first


SCRIPT = """
import sys
from instances_for_tests import random_case
from checked_solve import random_options
from exactsel.solving.api import solve
for seed in range(610_000, 610_000 + int(sys.argv[2])):
    case = random_case(seed, d=8)
    options = {**random_options(seed, case), "threads": int(sys.argv[1]), "batch": (None, 16)[seed % 2]}
    result = solve(case.problem(), signals=(), **options)
    print(seed, result.tree_hash, result.lower.hex(), result.upper.hex())
"""


def test_the_same_tree_in_another_process_with_four_threads():
    """Numba takes no more threads than it was told of at its start, so this needs processes of its own."""
    outputs, count = [], many(12, 40)
    for threads in (1, 4):
        environment = {**os.environ, "NUMBA_NUM_THREADS": "4", "PYTHONPATH": search_path()}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(threads), str(count)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == count


def search_path():
    return os.pathsep.join([str(Path(__file__).parents[1] / "fixtures"), os.environ.get("PYTHONPATH", "")])


def test_heuristics_do_not_move_the_optimum():
    for seed in range(620_000, 620_000 + many(15, 40)):
        case = random_case(seed)
        results = [
            checked_solve(case, {"heuristics": heuristics, "threads": 1}).result for heuristics in ((), ("swap",), AUTO)
        ]
        tolerance = 2 * max(1e-6 * abs(results[0].upper), 1e-9) + sum(result.absolute_gap for result in results)
        assert max(r.upper for r in results) - min(r.upper for r in results) <= tolerance
