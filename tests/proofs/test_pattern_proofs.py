"""Regions closed by their covariate patterns: both checkers against brute force, and files that ask for too much."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from restricted_files import KINDS, file_of, first_says, restriction, second_says, truth
from samples import many

from exactsel_certificates import patterns as first_patterns
from exactsel_certificates.container import CLOSE, COUNTED, FIRST_POINT, MINORANT, SPLIT_IN, SPLIT_OUT, USE
from exactsel_certificates.formula import Instance
from exactsel_certificates.patterns import patterns_of
from exactsel_certificates.standalone import patterns as second_patterns
from exactsel_certificates.standalone.algebra import UNIT
from exactsel_certificates.standalone.losses.logistic import Logarithms
from exactsel_certificates.standalone.work import TooMuch

RESTRICTED = ("", *(kind for kind in KINDS if "groups" not in kind))


def binary(seed, kind=""):
    """An instance of columns of two values: copies, complements, constant columns, equal rows, columns forced in or
    out, which may take many values.
    """
    rng = np.random.default_rng([seed, 307])
    d, n = int(rng.integers(2, 6)), int(rng.integers(4, 24))
    bits = rng.random((n, d)) < rng.choice([0.2, 0.5, 0.8], size=d)
    for j in range(1, d):
        if rng.random() < 0.25:
            bits[:, j] = bits[:, rng.integers(j)] ^ (rng.random() < 0.5)
        elif rng.random() < 0.15:
            bits[:, j] = rng.random() < 0.5
    score = bits @ rng.normal(size=d) * 2 + rng.choice([0.2, 1.0]) * rng.logistic(size=n)
    y = np.where(score > np.median(score), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    A = np.where(bits, rng.choice([1.0, -2.5]), rng.choice([0.0, 0.3]))
    k, forced = int(rng.integers(1, d + 1)), int(rng.integers(d))
    demands = restriction(rng, kind, d) if kind else {}
    if not kind and rng.random() < 0.4:
        demands = {"force_in" if rng.random() < 0.5 else "force_out": (forced,)}
        A[:, forced] = rng.normal(size=n)
    return Instance(A, y, k, "logistic", float(10.0 ** rng.uniform(-3, 0)), **demands)


def divided(rng, instance):
    """A tree of some decisions, all of whose regions are counted."""
    free = [j for j in range(instance.units) if j not in (*instance.force_in, *instance.force_out)]
    words, places = list[int](), instance.k - len(instance.force_in)
    for j in rng.permutation(free)[: int(rng.integers(len(free) + 1))].tolist():
        if places == 0 and instance.hierarchy is None:
            break
        # The part with the column is closed at once; it comes last with the other word.
        kind = int(rng.choice([SPLIT_IN, SPLIT_OUT]))
        words += [8 * j + kind, COUNTED]
        places -= kind == SPLIT_OUT
    return [*words, COUNTED]


@pytest.mark.smoke
@pytest.mark.parametrize("kind", RESTRICTED)
def test_both_checkers_establish_the_best_model_and_nothing_above_it(kind):
    for seed in range(many(4, 600)):
        instance = binary(seed, kind)
        best, rng = truth(instance), np.random.default_rng(seed)
        for tree in ([COUNTED], divided(rng, instance)):
            proof = file_of(instance, tree, best * (1.0 - 1e-8))
            assert first_says(instance, proof, upper=1e300).verified
            assert second_says(instance, proof, upper=1e300) == ""
            level = best * (1.0 + float(rng.choice([1e-6, 0.2]))) + 1e-9
            assert not first_says(instance, proof, lower=level, upper=1e300).verified
            assert second_says(instance, proof, lower=level, upper=1e300) != ""


def weighted(**changes):
    rng = np.random.default_rng(1)
    A = (rng.random((30, 5)) < 0.4).astype(float)
    y = np.where(A[:, 0] + A[:, 1] + rng.logistic(size=30) > 1.0, 1.0, -1.0)
    return replace(Instance(A, y, 2, "logistic", 0.1), **changes)


def test_weights_count_as_repeated_rows():
    counts = np.random.default_rng(2).choice([1.0, 2.0, 5.0], size=30)
    instance = weighted(weights=counts)
    again = weighted(A=np.repeat(instance.A, counts.astype(int), axis=0), y=np.repeat(instance.y, counts.astype(int)))
    best = truth(again)
    for about in (instance, again):
        proof = replace(file_of(about, [COUNTED], best * (1.0 - 1e-8)), weights=about is instance)
        assert first_says(about, proof, upper=1e300).verified
        assert second_says(about, proof, upper=1e300) == ""
        assert not first_says(about, proof, lower=best * (1.0 + 1e-7), upper=1e300).verified
        assert second_says(about, proof, lower=best * (1.0 + 1e-7), upper=1e300) != ""


def test_what_is_said_of_nothing_proves_zero():
    three = weighted().A.copy()
    three[3, 2] = 0.5
    cases = [
        weighted(A=three),
        weighted(weights=np.full(30, 0.7)),
        weighted(groups=((0, 1), (2,), (3, 4))),
        weighted(loss="squared_hinge"),
        weighted(loss="huber", delta=1.0),
    ]
    for instance in cases:
        proof = file_of(instance, [COUNTED], 1e-3)
        assert not first_says(instance, proof, upper=1e300).verified
        assert second_says(instance, proof, upper=1e300) != ""
    assert first_says(weighted(), file_of(weighted(), [COUNTED], 1e-3), upper=1e300).verified
    # The column of three values is no obstacle once it is in: nothing is counted by it.
    fixed = weighted(A=three, force_in=(2,))
    proof = file_of(fixed, [COUNTED], 0.999 * truth(fixed))
    assert first_says(fixed, proof, upper=1e300).verified
    assert second_says(fixed, proof, upper=1e300) == ""
    # Beside a minorant the word is about that, and the other word is never about patterns.
    touched = file_of(weighted(), [COUNTED], 1e-3, minorant_point=[0], minorant_width=np.full(60, 3.0), point_size=[0])
    named = file_of(weighted(), [MINORANT, CLOSE], 1e-3)
    pointed = file_of(weighted(), [8 * FIRST_POINT + USE, CLOSE], 1e-3)
    for forged in (replace(touched, lower=0.99 * truth(weighted())), named, pointed):
        assert not first_says(weighted(), forged, upper=1e300).verified
        assert second_says(weighted(), forged, upper=1e300) != ""


def test_regions_must_cover_the_problem():
    instance = weighted()
    best = truth(instance)
    only = file_of(instance, [SPLIT_IN, COUNTED, CLOSE], best * (1.0 - 1e-8))
    assert not first_says(instance, only, upper=1e300).verified
    assert second_says(instance, only, upper=1e300) != ""


def test_a_set_left_out_and_a_table_too_high_are_found(monkeypatch):
    """Errors put into the checkers on purpose, which the comparison with brute force must see."""
    found = Counter()
    original, sums = first_patterns.Patterns.columns_within, second_patterns.Patterns.cheap

    def without_one(self, r, level):
        yield from list(original(self, r, level))[1:]

    def without_the_first(self, splits, kinds, size, first=0):
        yield from list(sums(self, splits, kinds, size, first))[size == self.r.k :]

    def wrong(instance, best):
        proof = file_of(instance, [COUNTED], best * (1.0 + 1e-6) + 1e-9)
        return first_says(instance, proof, upper=1e300).verified, second_says(instance, proof, upper=1e300) == ""

    cases = [binary(seed) for seed in range(20)]
    known = [(instance, truth(instance)) for instance in cases]
    monkeypatch.setattr(first_patterns.Patterns, "columns_within", without_one)
    monkeypatch.setattr(second_patterns.Patterns, "cheap", without_the_first)
    for instance, best in known:
        found.update({f"left out {i}": said for i, said in enumerate(wrong(instance, best))})
    monkeypatch.undo()

    def higher(*arguments, keep=patterns_of):
        made = keep(*arguments)
        return None if made is None else replace(made, table=made.table * 1.5 + 0.1 * (made.table > 0))

    monkeypatch.setattr("exactsel_certificates.pattern_regions.patterns_of", higher)
    logarithm = Logarithms.__missing__
    monkeypatch.setattr(Logarithms, "__missing__", lambda self, x: 3 * logarithm(self, x) // 2)
    for instance, best in known:
        found.update({f"table {i}": said for i, said in enumerate(wrong(instance, best))})
    assert min(found[what] for what in ("left out 0", "left out 1", "table 0", "table 1")) > 0


def test_room_for_rounding_holds_sums_of_any_order():
    rng = np.random.default_rng(0)
    A = (rng.random((4000, 6)) < 0.4).astype(float)
    instance = Instance(A, np.where(rng.random(4000) < 0.5, 1.0, -1.0), 3, "logistic", 1.0)
    made = patterns_of(instance, [], list(range(6)))
    exact = Logarithms()
    for chosen in combinations(range(6), 3):
        weights = np.bincount(made.codes(chosen), made.weights, 16).astype(int).reshape(-1, 2).tolist()
        total = sum(exact[p + m] - exact[p] - exact[m] for p, m in weights) / UNIT
        assert abs(made.sum_of(chosen) - total) <= made._room(3)
        assert made._room(3) < 1e-9


def large(d, k):
    rng = np.random.default_rng(3)
    A = (rng.random((60, d)) < 0.5).astype(float)
    return Instance(A, np.where(rng.random(60) < 0.5, 1.0, -1.0), k, "logistic", 0.1)


def test_a_few_bytes_ask_for_no_more_than_a_limit():
    instance = large(60, 20)
    proof = file_of(instance, [COUNTED], 1.0)
    verdict = first_says(instance, proof, upper=1e300)
    assert verdict.unfinished
    assert not verdict.verified
    assert verdict.operations < 1e8
    assert "too much work" in verdict.reason
    with pytest.raises(TooMuch):
        second_says(instance, proof, upper=1e300)


def test_what_a_claim_too_high_leaves_is_not_gone_through():
    """All sets are left; the first that is fitted tells."""
    instance = large(40, 2)
    proof = file_of(instance, [COUNTED], 1e6)
    verdict = first_says(instance, proof, upper=1e300)
    assert not verdict.verified
    assert not verdict.unfinished
    assert verdict.operations < 1e8
    assert second_says(instance, proof, upper=1e300).startswith("only")
