"""What decisions imply, as kernels find it, against the rules as the problem states them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from exactsel.kernels.admissible import admits, all_sets, imply
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.hierarchy import Hierarchy
from exactsel.problem.limits import GroupLimits
from exactsel.problem.not_both import NotBoth

D = 7


def drawn(kind, rng):
    if kind == "limits":
        groups = np.array_split(rng.permutation(D), int(rng.integers(2, 5)))
        most = int(rng.integers(1, 3))
        return GroupLimits(most, tuple(tuple(sorted(group.tolist())) for group in groups if group.size > most), D)
    if kind == "not both":
        pairs = [pair for pair in combinations(range(D), 2) if rng.random() < 0.2]
        return NotBoth(tuple(pairs or [(0, 1)]), D)
    parents = []
    for j in range(D):  # circles too
        others = [i for i in range(D) if i != j]
        some = rng.choice(others, int(rng.integers(1, 4)), replace=False) if rng.random() < 0.5 else []
        parents.append(tuple(sorted(int(i) for i in some)))
    return Hierarchy(tuple(parents), kind)


@pytest.mark.parametrize("kind", ["strong", "weak", "limits", "not both"])
def test_kernels_imply_what_the_rules_say(kind):
    emptied = changed = 0
    for seed in range(400):
        rng = np.random.default_rng([77, seed])
        constraint, k = drawn(kind, rng), int(rng.integers(1, 6))
        state = rng.choice([OUT, FREE, FREE, FREE, IN], D).astype(np.int8)
        mine, rule = state.copy(), constraint.implied(state, k)
        assert imply(constraint.for_kernels(), mine, k) == (rule is not None), seed
        if rule is None:
            emptied += 1
            continue
        assert np.array_equal(mine, rule), seed
        changed += not np.array_equal(mine, state)
    assert emptied > 30
    assert changed > 30


@pytest.mark.parametrize("kind", ["strong", "weak", "limits", "not both"])
def test_sets_are_admitted_by_their_definition(kind):
    counts = [0, 0]
    for seed in range(20):
        rng = np.random.default_rng([78, seed])
        constraint, k = drawn(kind, rng), 3
        for chosen in (some for size in range(k + 2) for some in combinations(range(D), size)):
            if kind == "limits":
                wanted = all(len({*chosen} & {*group}) <= constraint.most for group in constraint.groups)
            elif kind == "not both":
                wanted = not any({*pair} <= {*chosen} for pair in constraint.pairs)
            else:
                enough = all if kind == "strong" else any
                wanted = all(
                    not p or enough(i in chosen for i in p) for p in map(constraint.parents.__getitem__, chosen)
                )
            found = admits(constraint.for_kernels(), np.array(chosen, dtype=np.int64), D, k)
            assert found == (wanted and len(chosen) <= k), (seed, chosen)
            counts[found] += 1
    assert min(counts) > 100


def test_where_nothing_is_restricted_every_set_is_admitted():
    state = np.array([OUT, FREE, IN], dtype=np.int8)
    assert imply(all_sets(), state, 1)
    assert state.tolist() == [OUT, FREE, IN]
    assert admits(all_sets(), np.array([0, 2]), 3, 2)
