"""Counting triples of many columns: against brute force and a slow twin, margins, limits, equal columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples, many
from wide_cases import objective, small_problem, values_of

from exactsel import Problem, Settings, solve
from exactsel._jit import parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.enumeration import minors
from exactsel.enumeration.minors import MinorTest
from exactsel.enumeration.minors_matrix import alike_in_order, duplicates, into_tiles, level_matrix, margin
from exactsel.enumeration.minors_parts import Stopped
from exactsel.kernels.lanes import LANES
from exactsel.kernels.moves import BRANCHED
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.kernels.subtree_record import COUNTED, LEFT_OPEN
from exactsel.kernels.wide import (
    NOT_COUNTED,
    TOP,
    Columns,
    _open_tiles,
    _row_angles,
    count_blocks,
    holds,
    tile_angles,
    tile_of,
    tile_suspect,
    triple_exceeds,
)
from exactsel.search.events import IncumbentFound, SubtreeClosed
from exactsel.solving import choose
from exactsel.solving.solver import Search


@pytest.fixture(autouse=True)
def few_columns_are_many(monkeypatch):
    monkeypatch.setattr(minors, "FEWEST", 5)
    monkeypatch.setattr(minors, "FEWEST_BLIND", 5)
    monkeypatch.setattr(choose, "FEWEST", 5)


def leaves(state, moves):
    """The regions a walk ends in, each with its kind, as FORMAT.md's SPLIT_OUT reads: first without the column."""
    moves = iter(moves.tolist())

    def read(state):
        move = next(moves)
        if move & 7 == BRANCHED:
            column = move >> 3
            assert state[column] == FREE, "a column that is decided is branched on"
            for decided in (OUT, IN):
                child = state.copy()
                child[column] = decided
                yield from read(child)
        else:
            yield move & 7, state

    yield from read(state.copy())
    assert next(moves, None) is None, "moves are left"


def below(tolerance):
    return lambda upper: tolerance


@pytest.mark.parametrize(("block", "slots"), [(0, None), (1, None), (2, None), (3, None), (4, 5)])
def test_what_is_closed_by_counting_holds_nothing_below_the_level(block, slots):
    counted = opened = 0
    for seed in range(150 * block, 150 * block + many(12, 150)):
        problem, rng = small_problem(seed, slots), np.random.default_rng(seed)
        enumeration, state = MinorTest(problem, BoundOptions(threads=1)), problem.root_state
        values = values_of(problem, state)
        best, null = min(values.values()), 0.5 * float(problem.y @ problem.y)
        tolerance = float(rng.choice([1e-11, 1e-6, 1e-2])) * null
        upper = min(null, best + float(rng.choice([0.0, 1e-9, 0.1, 1.0])) * null)
        if not enumeration.takes(state, at_once=True):
            continue
        walk = enumeration.explore(state, upper, below(tolerance))
        if walk is None:
            continue
        ends = list(leaves(state, walk.moves))
        assert [kind for kind, _ in ends].count(LEFT_OPEN) == len(walk.open_states)
        left = [region for kind, region in ends if kind == LEFT_OPEN]
        assert all(np.array_equal(a, b) for a, b in zip(left, walk.open_states, strict=True))
        reached = upper if walk.support is None else objective(problem, walk.support)
        assert reached <= upper + 1e-15 * null
        assert walk.min_pruned_bound < reached + 1e-13 * null
        for region in left:
            opened += 1
            reached = min([reached, *values_of(problem, region).values()])
        assert reached <= best + tolerance + 1e-12 * null, seed  # equal columns are closed by what is open elsewhere
        for kind, region in ends:
            if kind == COUNTED and problem.lam > 0:
                counted += 1
                assert min(values_of(problem, region).values()) >= walk.min_pruned_bound - 1e-12 * null, seed
    assert counted > many(12, 300)


@pytest.mark.parametrize(("block", "slots"), [(0, None), (1, None), (2, None), (3, None), (4, 5)])
def test_searches_that_count_agree_with_brute_force(block, slots, monkeypatch):
    monkeypatch.setattr(minors, "WORK", 1.0)  # several calls a search
    monkeypatch.setattr(minors, "MULTIPLICATIONS", 0.0)  # with a ridge and five places from the beginning
    calls = 0
    for seed in range(1000 + 60 * block, 1000 + 60 * block + many(10, 60)):
        problem = small_problem(seed, slots)
        best = min(values_of(problem, problem.root_state).values())
        run = Search(problem, Settings(threads=1, heuristics=() if seed % 2 else ("forward",)))
        events = list(run)
        result, null = run.result(), 0.5 * float(problem.y @ problem.y)
        calls += sum(isinstance(event, SubtreeClosed) for event in events)
        assert result.upper >= best - 1e-7 * null, seed  # where columns nearly agree brute force is off
        assert result.lower <= best + 1e-12 * null, seed
        if not result.valid_for:
            assert result.upper <= best + 1.1e-6 * max(best, 1e-5 * null), seed
    assert calls > many(4, 60)


def test_regions_with_one_place_are_counted_once_a_search_has_cost_as_much():
    """By their diagonal alone: what is closed holds nothing below the level, whatever its columns."""
    closed = opened = 0
    for seed in range(many(120, 2000)):
        problem, rng = small_problem(seed), np.random.default_rng(seed)
        state = problem.root_state.copy()
        free = np.flatnonzero(state == FREE)
        slots = problem.k - np.count_nonzero(state == IN)
        state[rng.permutation(free)[: slots - 1]] = IN
        enumeration = MinorTest(problem, BoundOptions(threads=1), first=False)
        assert enumeration.takes(state, at_once=False)
        values, null = values_of(problem, state), 0.5 * float(problem.y @ problem.y)
        best = min(values.values())
        upper = min(null, best + float(rng.choice([-1e-3, 1e-9, 0.1])) * null)
        walk = enumeration.explore(state, upper, below(1e-6 * null)) if upper > 0 else None
        if walk is None:
            continue
        closed += walk.finished
        opened += len(walk.open_states)
        reached = upper if walk.support is None else objective(problem, walk.support)
        left = [min(values_of(problem, region).values()) for region in walk.open_states]
        assert min([reached, *left]) <= max(best, walk.min_pruned_bound) + 1e-9 * null, seed
        assert walk.min_pruned_bound <= reached + 1e-12 * null, seed
    assert closed > many(10, 200)
    assert opened > 0, "rounding, or what is not better, leaves some open"


def test_a_region_without_candidates_is_not_closed_unseen():
    rng = np.random.default_rng(0)
    A = np.hstack([rng.standard_normal((8, 2)), np.zeros((8, 9))])
    problem = Problem(A, A[:, 0] + rng.standard_normal(8), 7, lam=0.0, force_in=[0, 1])
    enumeration = MinorTest(problem, BoundOptions(threads=1))
    assert enumeration.slots(problem.root_state) == 5
    assert enumeration.explore(problem.root_state, 1.0, below(1e-9)) is None


def entry(q, i, j):
    """The entry of a matrix in tiles."""
    return q[tile_of(i // LANES, j // LANES), i % LANES, j % LANES]


def in_tiles(matrix):
    """A matrix (m, m), m a multiple of LANES, in tiles."""
    q = np.zeros((tile_of(len(matrix) // LANES, 0), LANES, LANES), dtype=np.float32)
    into_tiles(matrix, 0, q)
    return q


def all_suspects(q, columns, size, slots):
    """Slow twin of :func:`count_blocks`: every pair, every triple, one by one."""
    pairs = ((i, l) for i in range(size) for l in range(i))
    found = {(i, l, -1) for i, l in pairs if abs(entry(q, i, l)) >= TOP and not holds(columns, i, l, -1)}
    if slots == 3:
        triples = ((i, l, j) for i in range(size) for l in range(i) for j in range(l))
        found |= {(i, l, j) for i, l, j in triples if triple_exceeds(q, i, l, j) and not holds(columns, i, l, j)}
    return found


def counted_suspects(matrix, columns, size, slots, room, threads=1):
    blocks = -(-size // LANES)
    undecided = np.empty((blocks, room, 3), dtype=np.int64)
    found = np.full(blocks, NOT_COUNTED, dtype=np.int64)
    with parallel_section(threads):
        count_blocks(
            matrix.q, matrix.low, matrix.high, columns, size, slots, 0, undecided, found,
            np.zeros(1, dtype=np.bool_), threads, np.zeros(1, dtype=np.int64),
        )  # fmt: skip
    return [tuple(map(int, row)) for block, count in enumerate(found) for row in undecided[block, :count]]


@examples(60, 120)
@given(st.integers(0, 2**32 - 1), st.integers(2, 90), st.floats(0.3, 1.2), st.sampled_from([2, 3]))
def test_the_kernel_notes_what_its_slow_twin_does(seed, size, height, slots):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, size)) + rng.standard_normal((6, 1)) * rng.choice([0.0, 3.0])
    y = A @ rng.standard_normal(size) / size + rng.standard_normal(6)
    order, signs = alike_in_order(A.T)
    X = A.T[order] * signs[:, None]
    level = height * 0.3 * float(y @ y)
    matrix = level_matrix(X[:0], X, y, 0.01, min(level, 0.49 * float(y @ y)), 1e-12, keep=False)
    noted = counted_suspects(matrix, matrix.columns, size, slots, room=40_000)
    assert len(noted) == len(set(noted))
    assert set(noted) == all_suspects(matrix.q, matrix.columns, size, slots)


@examples(100, 200)
@given(st.integers(0, 2**32 - 1))
def test_a_tile_is_suspect_where_one_of_its_triples_is(seed):
    rng = np.random.default_rng(seed)
    q = in_tiles(rng.uniform(-1.0, 1.0, (3 * LANES, 3 * LANES)) * rng.choice([0.3, 0.55, 0.9]))
    i = 2 * LANES + int(rng.integers(LANES))
    by_one = any(triple_exceeds(q, i, LANES + y, x) for y in range(LANES) for x in range(LANES))
    assert tile_suspect(q, i, 1, 0) == by_one
    for l, j in ((1, 1), (2, 0), (2, 2)):
        pairs = [(a, b) for a in range(LANES * l, LANES * l + LANES) for b in range(LANES * j, LANES * j + LANES)]
        by_one = any(triple_exceeds(q, i, a, b) for a, b in pairs if b < a < i)
        assert tile_suspect(q, i, l, j) >= by_one


def exact_determinant(a, b, c):
    """1 + 2abc - a^2 - b^2 - c^2 without rounding that matters."""
    a, b, c = (np.longdouble(x) for x in (a, b, c))
    return (1 - a * a) * (1 - b * b) - (c - a * b) ** 2


def test_nothing_that_is_not_definite_passes_in_single_precision():
    """Triples on the edge, near-singular pairs among them, just beyond it in doubles: none is cleared."""
    rng = np.random.default_rng(5)
    missed = passed = 0
    for _ in range(many(20_000, 40_000)):
        size = 10.0 ** -rng.uniform(0, 9, 2)
        first, second = np.arccos(1 - size) if rng.random() < 0.5 else rng.uniform(0, np.pi, 2)
        third = first + second + rng.choice([1e-9, 1e-8, 1e-7, -1e-7, -1e-5, -1e-3]) * rng.random()
        a, b, c = np.cos([first, second, min(third, 2 * np.pi - third)])
        if rng.random() < 0.5:
            a, c = -a, -c
        matrix = np.zeros((LANES, LANES))
        matrix[2, 1], matrix[2, 0], matrix[1, 0] = rng.permutation([a, b, c])
        definite = exact_determinant(a, b, c) >= 0
        q = in_tiles(matrix)
        low, high, row_low, row_high = (np.zeros((LANES, LANES), dtype=np.float32) for _ in range(4))
        tile_angles(q, 1, low, high)
        _row_angles(q, 2, row_low[0], row_high[0])
        suspect = triple_exceeds(q, 2, 1, 0) and tile_suspect(q, 2, 0, 0)
        closed = not _open_tiles(low, high, row_low, row_high, 0, 0, 0, 1, np.empty(LANES, dtype=np.int64))
        missed += not definite and (closed or not suspect)
        passed += definite and not suspect
    assert missed == 0
    assert passed > many(500, 1000)


def test_blocks_closed_by_their_angles_hold_definite_triples_only():
    rng = np.random.default_rng(3)
    closed = 0
    for _ in range(300):
        rows = rng.standard_normal((4, 1)) * rng.uniform(0, 3) + rng.standard_normal((4, 3 * LANES))
        rows /= np.linalg.norm(rows, axis=0)
        exact = rows.T @ rows + rng.uniform(-0.4, 0.4) * np.ones((3 * LANES, 3 * LANES))
        entries = np.tril(exact, -1).clip(-1.1, 1.1).astype(np.float32).astype(float)
        q = in_tiles(entries)
        low, high, row_low, row_high = (np.zeros((LANES, LANES), dtype=np.float32) for _ in range(4))
        tile_angles(q, 3, low, high)
        i = 2 * LANES + int(rng.integers(LANES))
        _row_angles(q, i, row_low[0], row_high[0])
        opened = np.empty(LANES, dtype=np.int64)
        count = _open_tiles(low, high, row_low, row_high, 0, 1, 0, 2, opened)
        if 0 in opened[:count]:
            continue
        closed += 1
        for l in range(LANES, 2 * LANES):
            for j in range(LANES):
                assert exact_determinant(entries[i, l], entries[i, j], entries[l, j]) >= 0
    assert 20 < closed < 300


def test_the_margin_covers_what_doubles_lose():
    """Matrices singular at the level are never cleared, with any sums."""
    rng = np.random.default_rng(8)
    cleared = 0
    for trial in range(400):
        n = int(rng.integers(4, 40))
        X, y = rng.standard_normal((3, n)), rng.standard_normal(n)
        if trial % 2:
            X[1] = X[0] + 10.0 ** -rng.uniform(1, 5) * X[1]
        A, null = X.T.astype(np.longdouble), 0.5 * float(y @ y)
        solution = np.linalg.lstsq(X.T, y, rcond=None)[0]
        residual = y - A @ solution
        exact = float(residual @ residual) / 2
        level = exact + 1e-13 * null  # just above the model's objective, so it must not be cleared
        if level >= null:
            continue
        columns = Columns(X, X @ y, np.zeros((0, 3)), 0.0, 2 * (null - level), margin(n, 3, null, level))
        cleared += holds(columns, 2, 1, 0)
    assert cleared == 0


def test_a_count_goes_on_where_it_was_stopped(monkeypatch):
    """A search that is stopped in the middle has a valid bound, and ends as the one that was not stopped."""
    monkeypatch.setattr(minors, "WORK", 30.0)
    rng = np.random.default_rng(2)
    A = rng.standard_normal((20, 90))
    problem = Problem(A, A[:, :3].sum(axis=1) + rng.standard_normal(20), k=3, lam=0.1)
    whole = solve(problem, threads=1)
    first = Search(problem, Settings(threads=1, node_limit=20))
    fractions = [event.result.fraction for event in first if isinstance(event, SubtreeClosed)]
    assert first.result().termination == "node_limit"
    assert 0 < fractions[0] < fractions[1] <= fractions[-1] < 1
    assert first.state.lower <= whole.upper
    again = Search(problem, Settings(threads=1), state=first.state)
    result = again.run()
    assert result.claim == whole.claim == "optimal"
    assert result.support == whole.support
    assert result.tree_hash == whole.tree_hash


def test_two_threads_count_as_one(monkeypatch):
    monkeypatch.setattr(minors, "WORK", 3000.0)
    rng = np.random.default_rng(4)
    A = rng.standard_normal((15, 150))
    for k, lam in ((2, 0.0), (3, 0.01), (4, 0.2)):
        problem = Problem(A, rng.standard_normal(15), k=k, lam=lam)
        one, two = solve(problem, threads=1), solve(problem, threads=2)
        assert one.tree_hash == two.tree_hash
        assert one.claim == two.claim == "optimal"
        assert one.bound_calls == 0


def test_a_raised_flag_leaves_no_trace():
    problem = small_problem(0)
    stop = np.ones(1, dtype=np.bool_)
    enumeration = MinorTest(problem, BoundOptions(threads=1, stop=stop))
    with pytest.raises(Stopped):
        enumeration.explore(problem.root_state, 0.5 * float(problem.y @ problem.y) * 0.9, below(1e-9))


def test_equal_columns_are_counted_once():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((12, 60))
    A = np.column_stack([A, -A[:, :30], A[:, 10:40], np.zeros((12, 3))])
    problem = Problem(A, A[:, 0] + A[:, 1] + A[:, 2] + rng.standard_normal(12), k=3, lam=0.0)
    first = duplicates(problem.AT)
    assert list(first[60:90]) == list(range(30))
    assert list(first[90:120]) == list(range(10, 40))
    assert list(first[120:]) == [-1] * 3
    run = Search(problem, Settings(threads=1))
    events = list(run)
    assert sum(isinstance(event, SubtreeClosed) for event in events) == 1
    assert run.result().reached
    assert run.state.bound_calls == 0


def test_a_dependent_triple_is_handed_back():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((12, 40))
    A[:, 7] = A[:, 3] + A[:, 5]
    problem = Problem(A, A[:, 0] + A[:, 1] - A[:, 2] + 0.1 * rng.standard_normal(12), k=3, lam=0.0)
    run = Search(problem, Settings(threads=1))
    told = [event.result.expansion for event in run if isinstance(event, SubtreeClosed)]
    regions = [region for kind, region in leaves(problem.root_state, told[0].moves) if kind == LEFT_OPEN]
    assert [tuple(np.flatnonzero(region == IN)) for region in regions] == [(3, 5, 7)]
    assert run.result().reached


def test_a_better_model_lowers_the_level():
    rng = np.random.default_rng(6)
    A = rng.standard_normal((20, 50))
    problem = Problem(A, A[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(20), k=3, lam=0.01)
    run = Search(problem, Settings(threads=1, heuristics=()))
    found = [event for event in run if isinstance(event, IncumbentFound)]
    assert found[-1].support == (0, 1, 2)
    assert run.result().reached


def test_what_cannot_end_in_time_is_not_begun():
    rng = np.random.default_rng(6)
    problem = Problem(rng.standard_normal((8, 600)), rng.standard_normal(8), k=4, lam=0.01)
    enumeration = MinorTest(problem, BoundOptions(seconds=1e-3))
    assert not enumeration.takes(problem.root_state, at_once=False)
    assert MinorTest(problem, BoundOptions()).takes(problem.root_state, at_once=False)
    assert MinorTest(problem, BoundOptions()).fraction(problem.root_state) == 0.0


def test_the_order_is_a_permutation_that_depends_on_nothing_else():
    X = np.random.default_rng(0).standard_normal((101, 7))
    order, signs = alike_in_order(X)
    assert sorted(order) == list(range(101))
    assert set(signs) <= {-1.0, 1.0}
    again, _ = alike_in_order(X.copy())
    assert np.array_equal(order, again)
