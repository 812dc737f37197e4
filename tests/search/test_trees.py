"""Trees and branching rules: a split covers its node, and each rule takes what its name says."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.branching import BranchingView, ClosestToHalf, CostliestToLeaveOut, LargestCoefficient
from exactsel.nodes.node import is_convex
from exactsel.nodes.trees import BinaryTree, StateSpaceTree


def random_state(data):
    """A region that is not convex."""
    d = data.draw(st.integers(2, 7))
    state = np.array(data.draw(st.lists(st.sampled_from([OUT, FREE, FREE, IN]), min_size=d, max_size=d)), dtype=np.int8)
    fixed, free = int(np.sum(state == IN)), int(np.sum(state == FREE))
    k = fixed + data.draw(st.integers(1, max(1, free - 1)))
    return state, k


def supports_in(state, k):
    """Every support a region holds."""
    columns = np.flatnonzero(state != OUT)
    return {
        chosen
        for size in range(len(columns) + 1)
        for chosen in combinations(columns.tolist(), size)
        if sum(state[j] == FREE for j in chosen) <= k - int(np.sum(state == IN))
    }


@pytest.mark.smoke
@pytest.mark.parametrize("tree", [BinaryTree(), StateSpaceTree()])
@examples(200, 400)
@given(data=st.data())
def test_a_split_covers_its_node(tree, data):
    state, k = random_state(data)
    if is_convex(state, k):
        return
    before = state.copy()
    column = int(data.draw(st.sampled_from(np.flatnonzero(state == FREE).tolist())))
    split = tree.split(state, column, k)
    np.testing.assert_array_equal(state, before)
    pieces = [*split.children, split.rest]
    assert len({id(piece) for piece in (state, *pieces)}) == len(pieces) + 1
    assert not any(np.shares_memory(a, b) for a, b in combinations([state, *pieces], 2))

    whole = supports_in(state, k)
    parts = [supports_in(piece, k) for piece in pieces]
    assert set().union(*parts) == whole
    if split.rest_is_contained:
        assert parts[-1] <= parts[-2]
        assert set().union(*parts[:-1]) == whole
    # Full supports that use all of S are counted once.
    fixed = set(np.flatnonzero(state == IN).tolist())
    for support in whole:
        if len(support) == k and fixed <= set(support):
            assert sum(support in part for part in parts) == 1


@pytest.mark.parametrize("tree", [BinaryTree(), StateSpaceTree()])
@examples(100, 200)
@given(data=st.data())
def test_a_split_is_the_chain_it_says(tree, data):
    state, k = random_state(data)
    if is_convex(state, k):
        return
    column = int(np.flatnonzero(state == FREE)[0])
    split, expected = tree.split(state, column, k), state.copy()
    assert len(split.columns) == len(split.children) >= 1
    for j, child in zip(split.columns, split.children, strict=True):
        included = expected.copy()
        included[j] = IN
        np.testing.assert_array_equal(child, included)
        expected[j] = OUT
    np.testing.assert_array_equal(split.rest, expected)


def test_convexity_of_a_region():
    assert is_convex(np.array([IN, FREE, FREE], dtype=np.int8), 1)
    assert is_convex(np.array([IN, FREE, OUT], dtype=np.int8), 2)
    assert not is_convex(np.array([IN, FREE, FREE], dtype=np.int8), 2)
    assert is_convex(np.array([FREE, FREE], dtype=np.int8), 0)


# --- branching ---


def view(x, indicator=None, bound_out=None):
    x = np.array(x, dtype=float)
    zeros = np.zeros(x.size)
    return BranchingView(
        candidates=np.arange(x.size) + 3,
        x=x,
        indicator=zeros if indicator is None else np.array(indicator),
        bound_in=zeros,
        bound_out=zeros if bound_out is None else np.array(bound_out),
    )


@pytest.mark.parametrize("rule", [ClosestToHalf(), LargestCoefficient(), CostliestToLeaveOut()])
def test_among_equals_the_first_column_is_taken(rule):
    assert rule.select(view([1.0, -1.0, 1.0])) == 0
    assert rule.select(view([0.0, 0.0])) == 0
    assert rule.select(view([0.5])) == 0


def test_each_rule_takes_what_its_name_says():
    assert LargestCoefficient().select(view([1.0, -3.0, 2.0])) == 1
    assert ClosestToHalf().select(view([9.0, 1.0, 2.0], indicator=[1.0, 0.4, 0.3])) == 1
    assert ClosestToHalf().select(view([9.0, 1.0, -2.0], indicator=[1.0, 0.25, 0.75])) == 2
    assert CostliestToLeaveOut().select(view([9.0, 1.0, 2.0], bound_out=[0.0, 5.0, 4.0])) == 1
    assert CostliestToLeaveOut().select(view([9.0, 1.0, -2.0], bound_out=[0.0, 5.0, 5.0])) == 2
    assert CostliestToLeaveOut().select(view([1.0, 2.0], bound_out=[-math.inf, -math.inf])) == 1
