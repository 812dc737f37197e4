"""The kernel that lists sets of columns, against trying every set in exact arithmetic."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quadratics import exact_minimum, random_quadratic

from exactsel.kernels.listing import COMPLETE, FREE, IN, STOPPED, TOO_LONG, TOO_MUCH_WORK, Quadratic, list_sets, lowest
from exactsel.kernels.listing_record import FULL, WORDS, decisions
from exactsel.kernels.moves import BRANCHED, CLOSED, PUT_IN
from exactsel.kernels.subtree_record import COUNTED

NEVER = np.zeros(1, dtype=np.bool_)
NOTHING = decisions(0, 8)


def check_sets(seed):
    """Every set that comes to the level is listed, and no other but by a hair."""
    rng, q = random_quadratic(seed)
    m = q.h.size
    included = np.where(rng.random(m) < 0.2, IN, FREE).astype(np.int8)
    fixed = np.flatnonzero(included == IN).tolist()
    free = np.flatnonzero(included == FREE).tolist()
    slots = int(rng.integers(0, len(free) + 1))
    minima = {
        tuple(sorted([*fixed, *chosen])): exact_minimum(q.H, q.h, [*fixed, *chosen])
        for chosen in combinations(free, slots)
    }
    lowest_of_all = float(min(minima.values()))
    level = lowest_of_all * float(rng.choice([1.2, 1.0, 0.9999, 0.9, 0.5]))
    if rng.random() < 0.3:
        level = float(rng.choice([float(v) for v in minima.values()]))
    found = np.full((200, max(1, m)), -1, dtype=np.int64)
    made = decisions(1000 if rng.random() < 0.9 else 3, m, float(rng.choice([0.0, 2.0, 10.0, 1e3])))
    ended, count, _, _ = list_sets(q, included, slots, level, 1e12, NEVER, found, made)
    assert ended == COMPLETE
    listed = {tuple(sorted(row[row >= 0].tolist())) for row in found[:count]}
    assert len(listed) == count
    for columns, value in minima.items():
        if value <= Fraction(level):
            assert any(set(columns) <= set(one) for one in listed)
    for columns in listed:
        assert exact_minimum(q.H, q.h, list(columns)) <= Fraction(level) + Fraction(1e-6) * (1 + abs(Fraction(level)))
    if made.counts[FULL]:
        assert len(made.words) == 3
        return {}
    return check_words(q, made.words[: made.counts[WORDS]].tolist(), fixed, free, slots, level, found)


def check_words(q, words, fixed, free, slots, level, found):
    """The decisions are a tree over the region, and each part is closed by what the word says; how often each is."""
    met = dict.fromkeys(("counted", "all", "put in", "listed"), 0)

    def above(columns):
        assert exact_minimum(q.H, q.h, columns) > Fraction(level) * (1 - Fraction(1, 10**12))

    def part(included, candidates, slots):
        word = words.pop(0)
        kind, argument = word & 7, word >> 3
        rest = [j for j in candidates if j != argument]
        if kind == BRANCHED:
            assert argument in candidates
            assert slots > 0
            part(included, rest, slots)
            part([*included, argument], rest, slots - 1)
        elif kind == PUT_IN:
            assert argument in candidates
            assert slots > 0
            met["put in"] += 1
            above([*included, *rest])
            part([*included, argument], rest, slots - 1)
        elif kind == CLOSED and argument > 0:
            met["listed"] += 1
            used = {*included, *(candidates if slots > 0 else [])}
            assert used <= {*found[argument - 1].tolist()}
            assert len(used) - len(included) <= slots
        elif kind == CLOSED:
            met["all"] += 1
            above([*included, *(candidates if slots > 0 else [])])
        else:
            assert word == COUNTED
            met["counted"] += 1
            for chosen in combinations(candidates, min(slots, len(candidates))):
                above([*included, *chosen])

    part(fixed, free, slots)
    assert words == []
    return met


@pytest.mark.smoke
def test_all_sets_that_come_to_the_level_are_listed():
    met = [check_sets(seed) for seed in range(300)]
    for name, least in (("counted", 40), ("all", 10), ("put in", 40), ("listed", 200)):
        assert sum(one.get(name, 0) for one in met) > least


@pytest.mark.long
def test_all_sets_that_come_to_the_level_are_listed_of_thousands():
    for seed in range(300, 5000):
        check_sets(seed)


@given(seed=st.integers(0, 10**6), scale=st.floats(0.0, 3.0))
def test_the_lowest_value_is_below_the_minimum_from_any_point(seed, scale):
    rng, q = random_quadratic(seed)
    m = q.h.size
    columns = np.flatnonzero(rng.random(m) < 0.7)
    x = np.linalg.solve(q.H[np.ix_(columns, columns)], q.h[columns]) * (1.0 + scale * rng.normal(size=columns.size))
    bound = lowest(q, np.append(columns, np.zeros(m - columns.size, dtype=np.int64)), columns.size, x)
    exact = exact_minimum(q.H, q.h, columns.tolist())
    assert Fraction(bound) <= exact
    if scale == 0.0:
        assert bound >= float(exact) * (1 + 1e-7) - 1e-9


def test_a_listing_that_is_broken_off_says_so():
    _, q = random_quadratic(5)
    m = q.h.size
    included, found = np.full(m, FREE, dtype=np.int8), np.full((1, m), -1, dtype=np.int64)
    assert list_sets(q, included, 1, 0.0, 1e12, NEVER, found, NOTHING)[0] == TOO_LONG
    assert list_sets(q, included, 1, 0.0, 1.0, NEVER, found, NOTHING)[0] == TOO_MUCH_WORK
    assert list_sets(q, included, 1, 0.0, 1e12, np.ones(1, dtype=np.bool_), found, NOTHING)[0] == STOPPED


@pytest.mark.parametrize("entry", [np.nan, 0.0, np.inf])
def test_a_listing_of_numbers_that_are_none_ends_and_claims_nothing(entry):
    m = 6
    q = Quadratic(np.full((m, m), entry), np.ones(m), np.ones(m), 0.5)
    found = np.full((100, m), -1, dtype=np.int64)
    for slots in range(1, m + 1):
        included = np.full(m, FREE, dtype=np.int8)
        ended, count, _, _ = list_sets(q, included, slots, 0.0, 1e12, NEVER, found, decisions(50, m))
        # One place is left, or one for each: these sets can only be listed.
        assert ended == (COMPLETE if slots in (1, m) else TOO_MUCH_WORK)
        assert ended == TOO_MUCH_WORK or count == (m if slots == 1 else 1)
