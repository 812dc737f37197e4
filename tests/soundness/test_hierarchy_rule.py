"""What a hierarchy implies for a region, and how supports are completed: held against all sets of units."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.errors import InputError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.hierarchy import Hierarchy, hierarchy_of, parents_by_name


def admissible_sets(hierarchy, k):
    """All of them, by the definition."""
    d = len(hierarchy.parents)
    enough = all if hierarchy.kind == "strong" else any
    for size in range(k + 1):
        for chosen in combinations(range(d), size):
            held = set(chosen)
            if all(not hierarchy.parents[j] or enough(i in held for i in hierarchy.parents[j]) for j in chosen):
                yield held


@st.composite
def regions(draw):
    d = draw(st.integers(1, 7))
    parents = tuple(
        tuple(sorted(draw(st.sets(st.integers(0, d - 1).filter(lambda i, j=j: i != j), max_size=3)) if d > 1 else ()))
        for j in range(d)
    )
    state = np.array(draw(st.lists(st.sampled_from([OUT, FREE, FREE, IN]), min_size=d, max_size=d)), dtype=np.int8)
    return Hierarchy(parents, draw(st.sampled_from(["strong", "weak"]))), draw(st.integers(0, d)), state


def within(state, held):
    return set(np.flatnonzero(state == IN)) <= held and not held & set(np.flatnonzero(state == OUT))


@examples(500, 1000)
@given(regions())
def test_what_is_implied_holds_in_every_set_of_the_region(case):
    hierarchy, k, state = case
    before = state.copy()
    region = hierarchy.implied(state, k)
    assert np.array_equal(state, before)
    held = [one for one in admissible_sets(hierarchy, k) if within(state, one)]
    if region is None:
        assert not held
        return
    assert all(within(region, one) for one in held)
    assert np.array_equal(hierarchy.implied(region, k), region)


@pytest.mark.smoke
@examples(500, 1000)
@given(regions())
def test_a_region_that_is_one_set_is_admissible(case):
    """No place left, or a place for every unit: what the search then solves must be a set of the hierarchy."""
    hierarchy, k, state = case
    region = hierarchy.implied(state, k)
    if region is None:
        return
    included, allowed = set(np.flatnonzero(region == IN)), set(np.flatnonzero(region != OUT))
    sets = list(admissible_sets(hierarchy, k))
    if len(included) == k:
        assert included in sets
    if len(allowed) <= k:
        assert allowed in sets


@examples(500, 1000)
@given(regions(), st.data())
def test_completed_is_the_smallest_admissible_set(case, data):
    hierarchy, k, state = case
    support = data.draw(st.sets(st.integers(0, state.size - 1), max_size=3))
    found = hierarchy.completed(sorted(support), k, state)
    possible = [one for one in admissible_sets(hierarchy, k) if within(state, one) and support <= one]
    if found is None:
        assert not possible
    else:
        assert set(found) in possible
        assert len(found) == min(map(len, possible))


@examples(500, 1000)
@given(regions(), st.data())
def test_restricted_is_admissible(case, data):
    hierarchy, k, state = case
    if hierarchy.completed((), k, state) is None:
        return
    order = data.draw(st.permutations(range(state.size)))
    found = set(hierarchy.restricted(order, k, state))
    assert any(found == one and within(state, one) for one in admissible_sets(hierarchy, k))


def test_a_hierarchy_by_name():
    names = ("a", "b", "c", "a*b", "a^2", "b:c", "d e", "x*y", "a^2*b")
    assert parents_by_name(names) == {
        "a*b": ["a", "b"], "a^2": ["a"], "b:c": ["b", "c"], "a^2*b": ["a^2", "b"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "kind", "words"),
    [({0: [0]}, "strong", "its own parent"), ({0: 1}, "middling", "strong or weak"), ({0: 1, "a": 2}, "weak", "twice")],
)
def test_what_is_no_hierarchy(spec, kind, words):
    with pytest.raises(InputError, match=words):
        hierarchy_of(spec, kind, 3, lambda entry: {"a": 0}.get(entry, entry))


@pytest.mark.parametrize(
    ("names", "parents"),
    [
        (("body mass", "age", "body mass*age"), {"body mass*age": ["age", "body mass"]}),
        (("log bp", "bp", "sex male", "sex"), {}),
        (("x:1", "b", "x:1*b"), {"x:1*b": ["b", "x:1"]}),
        (("a", "b", "a b", "a^2 b"), {"a b": ["a", "b"], "a^2 b": ["a", "b"]}),
        (("a", "a*a"), {"a*a": ["a"]}),
    ],
)
def test_names_with_blanks_and_colons(names, parents):
    assert parents_by_name(names) == parents


@pytest.mark.parametrize("names", [("b", "a*b"), ("age", "body mass:age", "mass")])
def test_a_product_with_a_factor_that_is_no_column_is_refused(names):
    with pytest.raises(InputError, match="is no feature; give the hierarchy as a file"):
        parents_by_name(names)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({3: None}, "expected; list them"),
        ({3: [1.5]}, "list them"),
        ([3], "a mapping was expected"),
        ({3: [1, 1]}, "twice"),
    ],
)
def test_what_is_no_mapping_of_names(spec, words):
    with pytest.raises(InputError, match=words):
        hierarchy_of(spec, "strong", 5, int)


def test_a_weak_set_far_away_is_found_at_once():
    """Orphans that share no parent need one place each: seen before a search through all of their parents."""
    d, several = 60, 15
    parents = [()] * d
    for j in range(several):
        parents[j] = tuple(range(several + 3 * j, several + 3 * j + 3))
    hierarchy, free = Hierarchy(tuple(parents), "weak"), np.full(d, FREE, dtype=np.int8)
    found = hierarchy.completed(range(several), 2 * several, free)
    assert found is not None
    assert len(found) == 2 * several
    assert hierarchy.completed(range(several), 2 * several - 1, free) is None
