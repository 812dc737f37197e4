"""The cost of a pair by the largest reach of any row (kernels/leaf_cost.py), against its twin and formula (2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.kernels.leaf_cost import cost_of_pair, costs_of_pairs
from tests.kernels.test_last_place import Beside


def check_pair_by_its_rows(seed, extreme):
    """Hold the cost of each pair by the largest reach of any row against its twin and formula (2)."""
    beside = Beside(seed, extreme)
    if not beside.fits:
        return 0
    found, count, gained = beside.found, len(beside.pool), 0
    costs, reaches = np.empty(count), np.empty(len(beside.rows))
    for i in range(1, count):
        products = found.scaled @ found.scaled[i]
        costs_of_pairs(found, beside.margins, products, i, costs)
        for j in range(i):
            cost = cost_of_pair(beside.fit, found, beside.margins, i, j, products[j], reaches)
            _, change, twin, reach, bends = beside.twin((i, j), together=True)
            assert not cost > costs[j] * (1 + 1e-12)
            gained += np.isfinite(cost) and not np.isfinite(costs[j])
            if np.linalg.cond(bends) < 1e6:
                if abs(reach - 1) > 1e-5:
                    assert np.isfinite(cost) == (reach < 1)
                if reach < 1 - 1e-5:
                    assert cost >= twin * (1 - 1e-6)
                    assert extreme > 1 or cost <= twin * (1 + 1e-3) + 1e-3 * (abs(beside.bound) + 1)
            if np.isfinite(cost):
                says = beside.says(beside.fit.b + change, np.append(beside.fit.columns, beside.pool[[i, j]]))
                assert np.linalg.cond(bends) > 1e6 or beside.bound - cost <= says + 1e-9 * (1 + abs(says))
    return gained


@examples(150, 300)
@given(st.integers(0, 10**6), st.sampled_from([1.0, 4.0]))
def test_the_cost_of_a_pair_by_its_rows_is_that_of_its_twin_and_proves_no_more_than_formula_2(seed, extreme):
    check_pair_by_its_rows(seed, extreme)


def test_rows_show_pairs_whose_largest_reaches_are_not_in_one_row():
    assert sum(check_pair_by_its_rows(seed, 1.0) for seed in range(100)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_pairs_by_their_rows(block):
    for seed in range(10**7 + 200 * block, 10**7 + 200 * (block + 1)):
        check_pair_by_its_rows(seed, [1.0, 4.0, 1e-3][seed % 3])
