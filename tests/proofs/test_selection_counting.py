"""Column subset selection: regions whose selections the checkers go through by themselves."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hand_written import CLOSE, COUNTED, EIGENVALUES, LEAVE_OUT, SPLIT_IN, USE, written
from samples import many
from tiny_problems import Case

from exactsel_certificates.checking import verify
from exactsel_certificates.container import parse_proof
from exactsel_certificates.formula import ColumnInstance
from exactsel_certificates.selection_counting import SelectionCounting
from exactsel_certificates.selections import SelectionBounds
from exactsel_certificates.standalone.checking import check
from exactsel_certificates.work import Budget, TooMuchWorkError, of_pairs, within
from exactsel_dev.reference.columns import selection_objective


def matrix_of(rng, kind, n, d):
    A = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    if kind == "copies":
        A[:, 1], A[:, 2] = A[:, 0], -4.0 * A[:, 3]
    if kind == "zeros":
        A[:, 1] = 0.0
    if kind == "sums":
        A[:, 1] = A[:, 0] + A[:, 2]
    if kind == "near":
        A[:, 1] = A[:, 0] + 1e-7 * A[:, 1]
    if kind == "scales":
        A *= 10.0 ** rng.integers(-4, 5, d)
    return np.round(A * 2.0**20) / 2.0**20


KINDS = ("", "copies", "zeros", "sums", "near", "scales")
TINY = 1e-10


def cases():
    rng = np.random.default_rng(7)
    for _ in range(many(1, 20)):
        for kind in KINDS:
            n, d, k = int(rng.integers(4, 7)), 5, int(rng.integers(2, 5))
            A = matrix_of(rng, kind, n, d)
            yield Case(A.tolist(), [0.0] * n, k, ""), kind


def least_of(case, included=(), candidates=None):
    """The least any selection of a region costs, by the plain formula: right to TINY times ||A||²."""
    free = range(len(case.A[0])) if candidates is None else candidates
    instance, slots = ColumnInstance(np.array(case.A), case.k), min(case.k - len(included), len(free))
    return min(selection_objective(instance, [*included, *more]) for more in combinations(free, slots))


def around(case, least):
    """A level that no selection is below and one that some selection is, by little."""
    size = float(np.sum(np.array(case.A) ** 2))
    return least - TINY * size, least + TINY * size


def says(case, file):
    """What both checkers say: whether the claim is proven."""
    instance = ColumnInstance(np.array(case.A), case.k)
    first = verify(parse_proof(file.data()), instance).verified
    return first, not check(file.data(), case.A, [], case.k, "", 0.0, 1.0)


def test_all_selections_in_one_word():
    for case, kind in cases():
        true, raised = around(case, least_of(case))
        if true > 0:
            assert says(case, written(case, [COUNTED], {}, true, 1e300)) == (True, True), kind
        assert says(case, written(case, [COUNTED], {}, raised, 1e300)) == (False, False), kind


def test_counted_parts_of_a_tree():
    for case, kind in cases():
        d = len(case.A[0])
        true, raised = around(case, least_of(case))
        tree = [8 * (d - 1) + SPLIT_IN, COUNTED, 8 * (d - 2) + SPLIT_IN, COUNTED, COUNTED]
        if true > 0:
            assert says(case, written(case, tree, {}, true, 1e300)) == (True, True), kind
        assert says(case, written(case, tree, {}, raised, 1e300)) == (False, False), kind


def test_what_is_not_counted_has_to_be_shown_by_something_else():
    """Of a tree that counts only what leaves out a column of the best selection nothing more is proven."""
    for case, kind in cases():
        d, least = len(case.A[0]), least_of(case)
        without = max(least_of(case, candidates=[j for j in range(d) if j != column]) for column in range(d))
        column = next(j for j in range(d) if least_of(case, candidates=[i for i in range(d) if i != j]) == without)
        tree = [8 * EIGENVALUES + USE, 8 * column + LEAVE_OUT, COUNTED]
        if without > 1.01 * least + 1e-6:
            assert says(case, written(case, tree, {}, without, 1e300)) == (False, False), kind


def test_regions_one_by_one():
    """Of random regions what is cleared costs no less, up to the last bits of the level, and what is not is near it."""
    for number in range(many(60, 2000)):
        kind, rng = KINDS[number % len(KINDS)], np.random.default_rng(number)
        n, d = int(rng.integers(4, 12)), int(rng.integers(4, 9))
        case = Case(matrix_of(rng, kind, n, d).tolist(), [0.0] * n, int(rng.integers(2, min(5, d))), "")
        A = np.array(case.A)
        included = rng.permutation(d)[: int(rng.integers(0, case.k))].tolist()
        candidates = [j for j in range(d) if j not in included and rng.random() < 0.8]
        true, raised = around(case, least_of(case, included, candidates))
        for level, expected in ((true, True), (raised, False)):
            counting = SelectionCounting(SelectionBounds(ColumnInstance(A, case.k), False, level, 1e9))
            if level > 0:
                assert counting.counted(included, candidates) is expected, (number, kind)


def test_its_work_is_counted_before_it_is_done():
    rng = np.random.default_rng(1)
    case = Case(rng.standard_normal((20, 12)).tolist(), [0.0] * 20, 5, "")
    level = 0.999 * least_of(case)
    counting = SelectionCounting(SelectionBounds(ColumnInstance(np.array(case.A), 5), False, level))
    with within(Budget()) as budget:
        assert counting.counted([], [*range(12)])
    assert 0.02 < budget.spent / of_pairs(0, 12, 5, 20, 12) < 1.0
    with within(Budget(limit=budget.spent / 2)), pytest.raises(TooMuchWorkError):
        counting.counted([], [*range(12)])


def test_a_word_that_asks_for_too_much_is_not_checked():
    rng = np.random.default_rng(2)
    case = Case(rng.standard_normal((30, 60)).tolist(), [0.0] * 30, 12, "")
    verdict = verify(
        parse_proof(written(case, [COUNTED], {}, 1e-3, 1e300).data()), ColumnInstance(np.array(case.A), 12)
    )
    assert not verdict.verified
    assert "too much work" in str(verdict)


def test_eigenvalues_and_counts_together():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((12, 7)) * 0.3 ** np.arange(7)
    case = Case(A.tolist(), [0.0] * 12, 3, "")
    true, _ = around(case, least_of(case))
    tree = [8 * EIGENVALUES + USE, 8 * 0 + SPLIT_IN, COUNTED, CLOSE]
    assert says(case, written(case, tree, {}, true, 1e300)) == (True, True)
    assert says(case, written(case, tree[1:], {}, true, 1e300)) == (False, False)
