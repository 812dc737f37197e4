"""Proofs about signs, bounds, hierarchies and limits on groups that close regions without regard to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from restricted_files import (
    KINDS,
    Toy,
    file_of,
    first_says,
    fitted,
    random_file,
    restricted_case,
    restriction,
    second_says,
    smallest,
    truth,
)
from samples import sample

from exactsel_certificates.container import CLOSE, COUNTED, FIRST_POINT, FIT, INFIMUM, SPLIT, SPLIT_IN, USE
from exactsel_certificates.formula import Box, Instance
from exactsel_certificates.group_limits import Limits
from exactsel_certificates.hierarchy import Hierarchy
from exactsel_certificates.standalone import Malformed

LOSSES = ("quadratic", "quadratic", "quadratic", "huber", "logistic")
WAYS = ([COUNTED], [FIT], [SPLIT, FIT], [SPLIT, COUNTED])


def accepted(instance, proof, **claims):
    """Whether both checkers accept; AssertionError where they disagree."""
    first = first_says(instance, proof, **claims)
    assert "about another problem" not in first.reason
    assert (second_says(instance, proof, **claims) == "") == first.verified
    return first.verified


@pytest.mark.parametrize("seed", sample(60, 20_000, smoke=9))
def test_nothing_untrue_is_established_by_any_proof(seed):
    loss = LOSSES[seed % len(LOSSES)]
    instance = restricted_case(seed, loss, loss == "quadratic" and seed % 4 == 1)
    proof, best = random_file(seed, instance), truth(instance)
    size = 1e-9 * max(1.0, float(instance.y @ instance.y))
    for more in (size, 0.05 * best + size):
        verdict = first_says(instance, proof, lower=best + more, upper=1e300)
        assert verdict.reason.startswith(f"a lower bound of {best + more!r} is claimed")
        assert verdict.lower <= best + size
        assert second_says(instance, proof, lower=best + more, upper=1e300).startswith("only")
    for part in (1.0 - 1e-6, 0.5):
        assert first_says(instance, proof, lower=part * best, upper=1e300).lower <= best + size


def toys(seeds):
    """Searches that close regions by what free models cost, with what their problem comes to."""
    for seed in seeds:
        instance = restricted_case(seed)
        best = truth(instance)
        if best > 1e-6:
            yield instance, best, Toy(instance, best * (1.0 - 1e-7), WAYS[seed // len(KINDS) % len(WAYS)])


@pytest.mark.parametrize("chunk", sample(4, 200, smoke=1))
def test_steps_that_know_of_no_restrictions_prove_what_they_prove(chunk):
    used = Counter()
    for instance, best, toy in toys(range(36 * chunk, 36 * chunk + 36)):
        assert accepted(instance, toy.file, upper=1e300)
        assert not accepted(instance, toy.file, lower=best * (1.0 + 1e-6), upper=1e300)
        used.update(toy.used)
    assert min(used[word] for word in (COUNTED, FIT, SPLIT)) > 3


def forgeries(instance, best, toy):
    """Files that are wrong in one thing, with what that is."""
    proof, points = toy.file, len(toy.points)
    level = np.nextafter(toy.level, np.inf)
    for place in np.flatnonzero(proof.tree & 7 == USE).tolist():
        tree = proof.tree.copy()
        tree[place] = 8 * INFIMUM + USE
        yield "a region without its witness", replace(proof, tree=tree)
    if points:
        yield (
            "points left out",
            replace(
                proof,
                point_size=proof.point_size[:0],
                point_index=proof.point_index[:0],
                point_value=proof.point_value[:0],
            ),
        )
    if SPLIT in toy.used:
        yield (
            "splits left out",
            replace(
                proof,
                **{n: getattr(proof, n)[:0] for n in ("split_size", "split_column", "split_scale", "split_value")},
            ),
        )
    everything, banned = instance.hierarchy is None, {*instance.force_out}
    low = [T for T, value in toy.worth.items() if value < level and not banned & {*T}]
    sets = [T for T in low if everything or T in toy.allowed]
    if sets:
        yield "a set below the level counted with the others", replace(proof, tree=np.array([COUNTED], np.int32))
    yield "a lower bound that is the upper one", replace(proof, lower=best * 1.01, upper=best * 0.99)
    if instance.box is not None:
        yield "nothing said of limits on coefficients", replace(proof, bounds=False)
    if instance.hierarchy is not None:
        yield "nothing said of a hierarchy", replace(proof, hierarchy=None)
        yield "another hierarchy", replace(proof, hierarchy="weak" if proof.hierarchy != "weak" else "strong")


@pytest.mark.parametrize("chunk", sample(2, 100, smoke=1))
def test_forged_files_are_refused(chunk):
    seen = Counter()
    for instance, best, toy in toys(range(36 * chunk, 36 * chunk + 36)):
        for what, forged in forgeries(instance, best, toy):
            assert not first_says(instance, replace(forged, upper=max(forged.upper, forged.lower))).verified, what
            assert second_says(instance, replace(forged, upper=max(forged.upper, forged.lower))) != "", what
            seen[what] += 1
    assert len(seen) == 8
    assert min(seen.values()) > 2


@pytest.mark.parametrize("missing", [("point_value",), ("point_size",), ("point_index",), ("split_scale",), ("tree",)])
def test_half_a_part_is_malformed(missing):
    _, _, toy = next(toys([24]))
    instance = toy.instance
    half = replace(toy.file, **{name: getattr(toy.file, name)[:0] for name in missing})
    assert all(getattr(toy.file, name).size for name in missing)
    with pytest.raises(Exception, match=r"do not add up|one value for each|ends before|not positive scales|not have"):
        first_says(instance, half)
    with pytest.raises(Malformed):
        second_says(instance, half)


# --- the model that is shown ---


def test_the_model_shown_keeps_to_every_restriction():
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((12, 5)), rng.standard_normal(12)
    y = y + A @ [1.0, 1.0, -1.0, 0.5, 0.0]
    made = {
        "box": Box(np.array([-np.inf, -np.inf, 0.0, -np.inf, -0.1]), np.array([np.inf, np.inf, np.inf, 0.25, 0.1])),
        "hierarchy": Limits(1, ((0, 1),)), "force_out": (4,),
    }  # fmt: skip
    instance = Instance(A, y, 2, "quadratic", 0.5, **made)
    proof = file_of(instance, [COUNTED])
    wrong = {(0, 1): [0.1, 0.1], (2,): [-0.1], (3,): [0.5], (4,): [0.05], (0, 2, 3): [0.1, 0.1, 0.1]}
    for columns, values in {(0, 2): [0.5, 0.5], **wrong}.items():
        shown = replace(proof, model_index=np.array(columns, np.int32), model_value=np.array(values), upper=1e300)
        verdict = first_says(instance, shown)
        assert verdict.verified == (columns not in wrong), columns
        assert (second_says(instance, shown) == "") == (columns not in wrong), columns
    # A coefficient of zero is chosen all the same.
    chosen = replace(proof, model_index=np.array([0, 1], np.int32), model_value=np.array([0.1, 0.0]), upper=1e300)
    assert not accepted(instance, chosen)
    cheap = replace(proof, model_index=np.array([0], np.int32), model_value=np.array([0.5]), upper=1e-3)
    assert not accepted(instance, cheap)


# --- facts that a restriction breaks ---


def mutual():
    """Two units that need each other, and a third that is chosen alone and is the best; three groups of two columns."""
    rng = np.random.default_rng(8)
    A = rng.standard_normal((20, 6))
    return A, A[:, 4] + 0.1 * rng.standard_normal(20), Hierarchy("strong", ((0, (1,)), (1, (0,))))


@pytest.mark.parametrize("groups", [(), ((0, 1), (2, 3), (4, 5))])
def test_a_set_all_larger_ones_of_which_are_forbidden_is_counted(groups):
    A, y, related = mutual()
    A = A if groups else A[:, [0, 2, 4]]
    instance = Instance(A, y, 2, "quadratic", 0.1, groups=groups, hierarchy=related)
    best = truth(instance)
    assert best == pytest.approx(smallest(instance, [2]))
    both = smallest(instance, [0, 1])
    assert both > 2.0 * best
    proof = file_of(instance, [COUNTED])
    assert not accepted(instance, proof, lower=1.01 * best, upper=1e300)
    # Sets of groups that are forbidden are counted for those they hold.
    part = 0.5 if groups else 1.0 - 1e-9
    assert accepted(instance, proof, lower=part * best, upper=1e300)
    free = replace(instance, hierarchy=None)
    assert groups or not accepted(free, file_of(free, [COUNTED]), lower=part * best, upper=1e300)


def test_a_copy_outside_of_a_group_is_not_forbidden_with_the_column_inside():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((15, 4))
    A[:, 3] = 2.0 * A[:, 0]
    y = A[:, 0] + A[:, 1] + 0.1 * rng.standard_normal(15)
    instance = Instance(A, y, 2, "quadratic", 0.0, hierarchy=Limits(1, ((0, 1),)))
    best, proof = truth(instance), file_of(instance, [COUNTED])
    assert best == pytest.approx(smallest(instance, [1, 3]))
    assert not accepted(instance, proof, lower=best * 1.01, upper=1e300)
    assert accepted(instance, proof, lower=best * 0.99, upper=1e300)


@pytest.mark.parametrize("off", [0.0, 1e-16])
def test_what_a_near_column_leaves_to_others_is_beyond_their_limits(off):
    """Two copies may have 0.5 each; a region that does without the second one must know of no limit any more."""
    rng = np.random.default_rng(2)
    a = rng.standard_normal(10)
    A = np.column_stack([a, a * (1.0 + off), rng.standard_normal(10)])
    y = a + 0.01 * rng.standard_normal(10)
    instance = Instance(A, y, 2, "quadratic", 0.0, box=Box(np.zeros(3), np.array([0.5, 0.5, np.inf])))
    best, alone = truth(instance), smallest(instance, [0, 2])
    assert best < 0.1 * alone
    proof = file_of(
        instance, [8 * 0 + SPLIT_IN, 8 * FIRST_POINT + USE, CLOSE, CLOSE], point_value=fitted(instance, [0, 2]),
        point_index=np.arange(3), point_size=[3], curvature=np.full(3, 1e-3),
    )  # fmt: skip
    for valid_for in ("", "bounded models"):
        for tree in (proof.tree, [8 * FIT + USE, CLOSE], [COUNTED]):
            file = replace(proof, valid_for=valid_for, tree=np.array(tree, np.int32))
            assert not accepted(instance, file, lower=min(2.0 * best, 0.5 * alone), upper=1e300)


def test_a_sign_leaves_bounds_of_near_columns_what_they_are():
    """Columns that depend on each other, no ridge: the fit's bound of bounded models, as without signs."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((10, 4))
    A[:, 3] = A[:, 0] + A[:, 1] * (1.0 + 1e-15)
    y = A[:, 0] - A[:, 2] + rng.standard_normal(10)
    free = Instance(A, y, 3, "quadratic", 0.0)
    signs = replace(free, box=Box(np.zeros(4), np.full(4, np.inf)))
    for tree in ([8 * FIT + USE, CLOSE], [8 * 0 + SPLIT_IN, 8 * 1 + SPLIT_IN, COUNTED, COUNTED, COUNTED]):
        best = truth(free)
        for instance in (free, signs):
            proof = replace(file_of(instance, tree), valid_for="bounded models")
            assert accepted(instance, proof, lower=best * 0.999, upper=1e300)


def test_every_restriction_is_met():
    """The kinds of problems above have what they are named for."""
    rng = np.random.default_rng(1)
    made = {kind: restriction(rng, kind, 5) for kind in KINDS}
    assert {tuple(sorted(entries)) for entries in made.values()} == {
        ("box",), ("hierarchy",), ("groups",), ("box", "hierarchy"), ("box", "groups"),
        ("groups", "hierarchy"),
    }  # fmt: skip
