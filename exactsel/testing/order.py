"""Conformance checks for branching rules, frontiers and trees."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from exactsel import registry
from exactsel._jit import without_compiling
from exactsel.bounds.witness import InfimumPoint
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.branching import BranchingView
from exactsel.nodes.node import Node, is_convex
from exactsel.nodes.trees import Split
from exactsel.solving.api import solve
from exactsel.testing.cases import Truth, above, loaded, regions, small_problems
from exactsel.types import StateArray


@without_compiling()
def check_branching(branching: object) -> None:
    """Assert that a branching rule picks a candidate, the same one every time, and that searches with it are right.

    Parameters
    ----------
    branching : str or Branching
        A registered name, or an object.
    """
    rule = loaded("branchings", branching)
    rng = np.random.default_rng(11)
    for count in (1, 2, 7):
        for values in (np.zeros(count), np.ones(count), rng.random(count), np.round(rng.random(count), 1)):
            view = BranchingView(np.arange(3, 3 + count), values - 0.5, values, values, values[::-1].copy())
            for array in (view.candidates, view.x, view.indicator, view.bound_in, view.bound_out):
                array.flags.writeable = False
            picked = rule.select(view)
            assert isinstance(picked, int), f"{rule.name}: picked {picked!r}, which is no plain int"
            assert 0 <= picked < count, f"{rule.name}: picked position {picked} of {count} candidates"
            assert rule.select(view) == picked, f"{rule.name}: picked differently the second time"
    _check_searches("branching", lambda: rule, rule.name)


@without_compiling()
def check_frontier(frontier: str | Callable[[], Any]) -> None:
    """Assert that a frontier loses nothing and knows its smallest bound, and that searches with it are right.

    Parameters
    ----------
    frontier : str or callable
        A registered name, or what makes an empty frontier (its class).
    """
    make = registry.load("frontiers", frontier) if isinstance(frontier, str) else frontier
    name = make().name
    first, second = make(), make()
    held: dict[int, Node] = {}
    rng = np.random.default_rng(12)
    for number in range(400):
        action = rng.integers(0, 10)
        if action < 6:
            node = _node(number, float(rng.integers(0, 20)), int(rng.integers(0, 6)))
            held[number] = node
            first.push(node)
            second.push(node)
        elif action < 9:
            count = int(rng.integers(1, 5))
            taken = first.take(count)
            assert [node.id for node in taken] == [node.id for node in second.take(count)], f"{name}: the order varies"
            assert len(taken) == min(count, len(held)), f"{name}: took {len(taken)} nodes of {len(held)}, not {count}"
            for node in taken:
                assert held.pop(node.id, None) is node, f"{name}: handed out node {node.id}, which was not open"
        else:
            cutoff = float(rng.integers(5, 20))
            pruned = list(first.prune(cutoff))
            assert [node.id for node in pruned] == [node.id for node in second.prune(cutoff)], (
                f"{name}: the order varies"
            )
            expected = {node.id for node in held.values() if node.bound >= cutoff}
            assert {node.id for node in pruned} == expected, f"{name}: pruned other nodes than those at the cut-off"
            held = {key: node for key, node in held.items() if key not in expected}
        assert len(first) == len(held), f"{name}: says {len(first)} nodes are open, but it is {len(held)}"
        smallest = min((node.bound for node in held.values()), default=math.inf)
        assert first.lower() == smallest, f"{name}: says the smallest bound is {first.lower()}, but it is {smallest}"
        bounds = [node.bound for node in first]
        assert bounds == sorted(node.bound for node in held.values()), f"{name}: does not list nodes by bound"
    _check_searches("frontier", make, name)


@without_compiling()
def check_tree(tree: object) -> None:
    """Assert that a tree's children cover their node, share no array, and that searches with it are right.

    Parameters
    ----------
    tree : str or Tree
        A registered name, or an object.
    """
    branching = loaded("trees", tree)
    for label, problem in small_problems():
        for state in regions(problem, 8, 13):
            if is_convex(state, problem.k):
                continue
            before = state.copy()
            column = int(np.flatnonzero(state == FREE)[-1])
            split = branching.split(state, column, problem.k)
            here = f"{branching.name} on {label}, node {before.tolist()}"
            assert np.array_equal(before, state), f"{here}: changed the node"
            pieces = [*split.children, split.rest]
            assert len(split.columns) == len(split.children), f"{here}: one column for each child"
            shared = any(np.shares_memory(a, b) for a, b in combinations([state, *pieces], 2))
            assert not shared, f"{here}: two of its nodes share an array"
            _check_chain(before, split, here)
            if split.rest_is_contained:
                pieces = pieces[:-1]
            for support in _supports(before, problem.k):
                assert any(_holds(piece, support, problem.k) for piece in pieces), (
                    f"{here}: the model {support} is in no child"
                )
    _check_searches("tree", lambda: branching, branching.name)


def _check_chain(state: StateArray, split: Split, here: str) -> None:
    """Child t has column t in and those before it out."""
    expected = state.copy()
    for column, child in zip(split.columns, split.children, strict=True):
        included = expected.copy()
        included[column] = IN
        assert np.array_equal(child, included), f"{here}: the child of column {column} is not what the chain says"
        expected[column] = OUT
    assert np.array_equal(split.rest, expected), f"{here}: the rest is not what the chain says"


def _check_searches(option: str, make: Callable[[], Any], name: str) -> None:
    for label, problem in small_problems():
        best = Truth(problem).best(np.full(problem.d, FREE, dtype=np.int8))
        result = solve(problem, subtrees=False, signals=(), **{option: make()})
        where = f"{name} on {label}"
        assert result.reached, f"{where}: the search ended with a gap of {result.gap:.3g}"
        assert not above(result.lower, best), f"{where}: the lower bound {result.lower} is above the best, {best}"
        assert not above(best, result.upper), f"{where}: the search found {result.upper}, below the best, {best}"
        again = solve(problem, subtrees=False, signals=(), threads=1, **{option: make()})
        assert again.tree_hash == result.tree_hash, f"{where}: a second run explored another tree"


def _node(number: int, bound: float, depth: int) -> Node:
    return Node(number, -1, depth, np.zeros(1, dtype=np.int8), bound, InfimumPoint(), estimate=bound + depth)


def _supports(state: StateArray, k: int) -> list[tuple[int, ...]]:
    included = tuple(np.flatnonzero(state == IN).tolist())
    free = np.flatnonzero(state == FREE).tolist()
    return [included + chosen for size in range(k - len(included) + 1) for chosen in combinations(free, size)]


def _holds(state: StateArray, support: tuple[int, ...], k: int) -> bool:
    """Whether the node holds the models of this support."""
    free = sum(bool(state[j] == FREE) for j in support)
    return all(state[j] != OUT for j in support) and free <= k - int(np.count_nonzero(state == IN))
