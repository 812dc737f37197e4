"""When subtrees are walked: counted work decides, not the clock."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from exactsel.enumeration.work_budget import (
    FEW_PLACES,
    FIRST_WORK,
    LOOK_AGAIN,
    MORE_WORK,
    PATIENCE,
    WALK_WORK,
    SubtreeRecord,
    bound_work,
    supports,
    walk_budget,
)


def test_what_fails_at_few_places_is_not_tried_with_more():
    record = SubtreeRecord()
    assert record.wants(5, 50)
    record.note_walk(5, 50, WALK_WORK, finished=False)
    assert not record.wants(5, 50)
    assert not record.wants(9, 50)
    assert record.wants(4, 50)


def test_success_with_one_place_less_earns_another_try():
    record = SubtreeRecord()
    record.note_walk(5, 50, 2.5e6, finished=False)
    for _ in range(PATIENCE):
        record.note_walk(4, 50, 1000, finished=True)
    assert record.wants(5, 50)
    record.note_walk(5, 50, 2.5e6, finished=False)
    for _ in range(PATIENCE):
        record.note_walk(4, 50, 1000, finished=True)
    assert not record.wants(5, 50)


def test_waste_is_limited_by_what_was_useful():
    record = SubtreeRecord()
    record.note_walk(9, 300, 9e10, finished=False)
    assert not record.wants(1, 300)
    for enough in (False, True):
        assert record.wants(1, 300) == enough
        for _ in range(10**4):
            record.note_bound(bound_work(300, 300, 10**3))
    assert record.wants(1, 300)
    assert not record.wants(1, 3000)


def test_long_walks_with_many_places_are_left_alone_for_a_while():
    record = SubtreeRecord()
    for slots in (FEW_PLACES, FEW_PLACES + 1):
        for _ in range(3):
            record.note_walk(slots, 60, 4e7, finished=True)
    assert record.wants(FEW_PLACES, 60)
    again = []
    for _ in range(2 * LOOK_AGAIN):
        again.append(record.wants(FEW_PLACES + 1, 60))
        record.note_no_walk(FEW_PLACES + 1)
    assert sum(again) == 2
    record.note_walk(FEW_PLACES + 1, 60, 1e4, finished=True)
    assert not record.wants(FEW_PLACES + 1, 60)
    for _ in range(40):
        record.note_walk(FEW_PLACES + 1, 60, 1e4, finished=True)
    assert record.wants(FEW_PLACES + 1, 60)


@given(st.integers(0, 6), st.integers(0, 12))
def test_supports_are_counted(slots, columns):
    listed = sum(1 for size in range(slots + 1) for _ in combinations(range(columns), size))
    assert supports(slots, columns) == listed


def test_budgets_shrink_with_the_columns():
    assert walk_budget(10, WALK_WORK) >= walk_budget(60, WALK_WORK) > walk_budget(200, WALK_WORK) > 0


def test_a_long_search_gives_walks_more():
    record = SubtreeRecord()
    assert record.work == FIRST_WORK
    record.note_walk(8, 100, FIRST_WORK, finished=False)
    assert record.work == WALK_WORK
    assert not record.wants(8, 100)
    while record.work < MORE_WORK * FIRST_WORK:
        assert not record.wants(8, 100)
        record.note_bound(bound_work(100, 100, 10**5))
    assert record.wants(8, 100)


def test_what_can_be_counted_needs_no_bound():
    record = SubtreeRecord()
    assert record.wants_unbounded(8, 100, costly=True)
    record.note_walk(3, 100, 1e3, finished=False)
    assert not record.wants_unbounded(8, 100, costly=True)
    assert record.wants_unbounded(3, 100, costly=True)
    assert not record.wants_unbounded(3, 2000, costly=True)
