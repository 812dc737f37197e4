"""Counting the last places of a listing, beside looking at every set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.kernels.counting import count_workspace
from exactsel.kernels.listing_count import NOT_COUNTED, count_data, suspected_sets
from exactsel.kernels.node import FREE, IN, OUT


def least(H, h, columns):
    """The minimum of x'Hx/2 - h'x on some columns."""
    return -0.5 * h[columns] @ np.linalg.solve(H[np.ix_(columns, columns)], h[columns]) if columns else 0.0


def quadratic(rng, m):
    A = rng.normal(size=(m + 3, m)) @ (np.eye(m) + rng.choice([0.0, 0.5, 3.0]) * rng.random((m, 1)))
    if rng.random() < 0.3:
        A[:, -1] = A[:, 0] * rng.choice([1.0, -1.0, 1.0 + 1e-7])
    H = A.T @ A + 10.0 ** rng.uniform(-3, 1) * np.eye(m)
    return H, A.T @ rng.normal(size=m + 3), np.sqrt(np.diagonal(H)) * (1 + 1e-15)


def suspected(H, h, lengths, flags, slots, level):
    room = count_workspace(h.size)
    found = suspected_sets(count_data(H, h, lengths), flags, slots, level, room)
    return (
        None
        if found == NOT_COUNTED
        else [frozenset(j for j in row if j >= 0) for row in room.undecided[:found].tolist()]
    )


@examples(600, 1200)
@given(st.integers(0, 2**32))
def test_every_set_that_comes_down_to_the_level_is_suspected(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 10))
    H, h, lengths = quadratic(rng, m)
    flags = rng.choice([OUT, FREE, FREE, FREE, IN], m).astype(np.int8)
    included, free = np.flatnonzero(flags == IN).tolist(), np.flatnonzero(flags == FREE).tolist()
    slots = int(rng.integers(1, 5))
    if len(free) <= slots:
        return
    values = {frozenset(more): least(H, h, included + list(more)) for more in combinations(free, slots)}
    level = float(rng.choice([*values.values(), np.quantile([*values.values()], 0.1), least(H, h, included)]))
    level = level * float(rng.choice([1.0, 1.0 + 1e-9, 1.0 - 1e-9, 1.01]))
    found = suspected(H, h, lengths, flags, slots, level)
    if found is None:
        return
    below = {more for more, value in values.items() if value <= level - 1e-12 * abs(level)}
    assert below <= set(found)
    assert len(set(found)) == len(found)
    above = [more for more in found if values[more] > level + 1e-6 * abs(level)]
    assert not above, "sets far above the level are no suspects"


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_it_counts(slots):
    """Most regions of a few easy problems, with and without sets to be listed."""
    counted, listed = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        H, h, lengths = quadratic(rng, 9)
        flags = np.full(9, FREE, dtype=np.int8)
        flags[0] = IN
        values = [least(H, h, [0, *more]) for more in combinations(range(1, 9), slots)]
        found = suspected(H, h, lengths, flags, slots, float(np.sort(values)[min(3, len(values) - 1)]) * (1 - 1e-9))
        counted += found is not None
        listed += bool(found)
    assert counted > 15
    assert listed > 10


def test_what_says_nothing_counts_nothing():
    H, h = np.eye(4), np.ones(4)
    flags = np.full(4, FREE, dtype=np.int8)
    for level in (0.0, 1.0, np.nan):
        assert suspected(H, h, np.ones(4), flags, 2, level) is None
    assert suspected(H * np.nan, h, np.ones(4), flags, 2, -1.0) is None
    assert suspected(H, h, np.ones(4), flags, 5, -1.0) is None
    assert suspected(H, h, np.ones(4), flags, 2, -1.1) == []
    assert len(suspected(H, h, np.ones(4), flags, 2, -1.0 + 1e-9)) == 6
