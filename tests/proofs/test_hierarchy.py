"""Columns and groups that are chosen only together with their parents: both checkers and their twin, by brute force."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest
from hand_written import CLOSE, FIT, SPLIT_IN, SPLIT_OUT, USE, random_file, strong_file, written
from samples import many
from standalone_says import HUGE, above, below, established, said
from tiny_problems import Case, fitted, optimum, random_related, within_scope

from exactsel.kernels import node
from exactsel.problem import hierarchy as problem_hierarchy
from exactsel_certificates.checking import verify
from exactsel_certificates.container import MalformedError, parse_proof
from exactsel_certificates.formula import Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.hierarchy import Hierarchy, HierarchyRule
from exactsel_certificates.standalone import Malformed, check
from exactsel_certificates.standalone import hierarchy as second
from exactsel_certificates.walk import FREE, IN, OUT
from exactsel_dev.reference.hierarchy import admissible_sets, completed, implied, respects
from exactsel_dev.reference.replay import Discarded, Divided, Fit, Record, ReplayError, Walked, replay


def instance_of(case):
    """A case for the checker with numpy."""
    hierarchy = Hierarchy(case.kind, tuple((j, tuple(own)) for j, own in case.hierarchy)) if case.hierarchy else None
    more = {"groups": tuple(map(tuple, case.groups)), "hierarchy": hierarchy}
    about = (np.array(case.A), np.array(case.y), case.k, case.loss, case.lam, case.delta)
    forced = (tuple(case.force_in), tuple(case.force_out))
    if case.weights is None and not (case.level or case.scale):
        return Instance(*about, *forced, **more)
    weights = None if case.weights is None else np.array(case.weights)
    return GivenInstance(*about, *forced, weights, case.level, scale=case.scale, **more)


def verdict_on(case, file, lower=0.0, upper=HUGE):
    header = file.header | {"lower": float(lower).hex(), "upper": float(upper).hex()}
    return verify(parse_proof(file._replace(header=header).data()), instance_of(case), exact_limit=1e5)


def root_of(case):
    """The first region, with what the hierarchy makes of it."""
    free = frozenset(range(len(case.units))) - {*case.force_in, *case.force_out}
    return implied(instance_of(case).hierarchy, frozenset(case.force_in), free, case.k)


def coefficients(case, best):
    coef = np.zeros(len(case.A[0]))
    coef[[*best.x]] = [float(v) for v in best.x.values()]
    return coef


def lean_tree(case, witness):
    """Decisions on what is not implied only, as a search makes them."""
    hierarchy, words = instance_of(case).hierarchy, [8 * witness + USE]

    def grow(region):
        if region is None or not region[1] or len(region[0]) == case.k:
            words.append(CLOSE)
            return
        S, C = region
        j = max(C)
        included, outside = (implied(hierarchy, S | {j}, C - {j}, case.k), implied(hierarchy, S, C - {j}, case.k))
        words.append(8 * j + (SPLIT_IN if j % 2 else SPLIT_OUT))
        for part in (included, outside) if j % 2 else (outside, included):
            grow(part)

    grow(root_of(case))
    return words


# --- the rule ---


def random_rule(rng):
    """A hierarchy over a few units, with circles and all, a limit, and decisions on some units."""
    count = rng.randint(1, 6)
    pairs = [(j, sorted({rng.randrange(count) for _ in range(rng.randint(1, 3))} - {j})) for j in range(count)]
    pairs = [(j, tuple(own)) for j, own in pairs if own and rng.random() < 0.7]
    state = [rng.choice([FREE, FREE, FREE, IN, OUT]) for _ in range(count)]
    return Hierarchy(rng.choice(["strong", "weak"]), tuple(pairs)), bytes(state), rng.randint(0, count)


def held(hierarchy, S, C, k):
    """Every admissible set of a region, by the definition."""
    more = (frozenset(S | {*extra}) for size in range(len(C) + 1) for extra in combinations(sorted(C), size))
    return {T for T in more if len(T) <= k and respects(hierarchy, T)}


def sets_of(state):
    return tuple(frozenset(j for j, known in enumerate(state) if known == wanted) for wanted in (IN, FREE))


@pytest.mark.smoke
def test_what_is_implied_takes_no_set_away():
    """Three ways to find it agree; sure contradictions are found, and full regions are decided."""
    rng, empty, full = random.Random(5), 0, 0
    for _ in range(4000):
        hierarchy, state, k = random_rule(rng)
        S, C = sets_of(state)
        sets = held(hierarchy, S, C, k)
        rule = HierarchyRule(hierarchy, k)
        found = rule.implied(state, rng.sample(range(len(state)), len(state)))
        twin = implied(hierarchy, S, C, k)
        other = second.Hierarchy(hierarchy.kind == "weak", dict(hierarchy.parents)).pruned(({*S}, {*C}), k)
        assert other == (None if twin is None else (set(twin[0]), set(twin[1])))
        assert twin == (None if found is None else sets_of(found))
        assert (completed(hierarchy, S, C, k) is None) == (not sets)
        if found is None:
            assert not sets
            empty += 1
            continue
        assert sets == held(hierarchy, *twin, k)
        assert rule.implied(found, range(len(state))) == found
        if len(twin[0]) == k or (hierarchy.kind == "strong" and sets):
            full += 1
            assert twin[0] in sets
        for j in twin[1]:
            # One decision more, from what is known already or from the start.
            for decision in (IN, OUT):
                after = found[:j] + bytes([decision]) + found[j + 1 :]
                assert rule.implied(after, [j]) == rule.implied(after, range(len(state)))
    assert min(empty, full) > 800


# --- whole files ---


def soundness(seed):
    """One random problem with a proof of any quality, for both checkers."""
    rng = random.Random(f"related {seed}")
    case = random_related(rng)
    best = optimum(case)
    file = random_file(rng, case, best)
    slack = 0 if case.loss == "quadratic" else best.value / 10**9 + F(1, 10**12)
    lower, upper = established(case, file)
    if not file.header["valid_for"] or within_scope(case, best):
        assert F(math.nextafter(lower, -1.0)) <= best.value + slack, seed
        verdict = verdict_on(case, file, above(best.value + slack))
        assert not verdict.verified, seed
        assert F(verdict.lower) <= best.value + slack, seed
    assert F(math.nextafter(upper, HUGE)) >= best.value - slack, seed
    assert said(case, file, lower=math.nextafter(lower, -1.0), upper=math.nextafter(upper, HUGE)) == "", seed
    verdict = verdict_on(case, file)
    assert verdict.verified, verdict.reason
    assert F(verdict.upper) >= best.value - slack, seed
    return "tight" if lower >= float(best.value) * (1 - 1e-6) else "loose"


def test_what_is_verified_is_true():
    outcomes = [soundness(seed) for seed in range(many(21, 70))]
    assert min(outcomes.count("tight"), outcomes.count("loose")) > many(3, 15)


@pytest.mark.long
def test_what_is_verified_is_true_thousands_of_times():
    for seed in range(1000, 6000):
        soundness(seed)


@pytest.mark.parametrize("lean", [False, True])
def test_what_is_true_is_verified(lean):
    """Trees that decide everything, and those that leave out what is implied; the last bit counts."""
    kinds = []
    for seed in range(many(40, 80)):
        case = random_related(random.Random(f"true {seed}"), "quadratic")
        best = optimum(case)
        file = strong_file(case, best)
        if lean:
            file = written(case, lean_tree(case, FIT), best.x, 0.0, HUGE)
        assert said(case, file, lower=below(best.value), upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value), upper=HUGE) != "", seed
        if not case.level and case.lam >= 0.1:
            claims = below(best.value * (1 - F(1, 10**9))), above(best.value * (1 + F(1, 10**9)) + F(1, 10**15))
            verdict = verdict_on(case, file, *claims)
            assert verdict.verified, (seed, verdict.reason)
            assert verdict.regions <= file.arrays["tree"].count(CLOSE)
        kinds.append((case.kind, bool(case.groups), bool(case.force_in), case.scale))
    assert len({*kinds}) > 8


@pytest.mark.parametrize("kind", ["strong", "weak"])
def test_a_hierarchy_by_hand(kind):
    """A = I, y = (1, 2, 4, 8), two columns: 3 needs 0 and 1, or one of them; 2 and 3 would be best."""
    A = [[float(i == j) for j in range(4)] for i in range(4)]
    case = Case(A, [1.0, 2.0, 4.0, 8.0], 2, lam=0.0, hierarchy=[(3, [0, 1])], kind=kind)
    best = optimum(case)
    assert best.value == (F(1 + 64) / 2 if kind == "strong" else F(1 + 16) / 2)
    assert {*best.x} == ({1, 2} if kind == "strong" else {1, 3})
    # Strong: with 3 there would be three columns. Weak: without 0, the place left must be for 1.
    tree = [8 * FIT + USE, 8 * 3 + SPLIT_IN, CLOSE, CLOSE]
    file = written(case, tree, best.x, 0.0, HUGE)
    if kind == "strong":
        assert verdict_on(case, file).regions == 1
    tree[2:3] = [8 * 0 + SPLIT_OUT, CLOSE, CLOSE]
    file = written(case, [*tree[:-1], 8 * 2 + SPLIT_IN, 8 * 1 + SPLIT_IN, CLOSE, CLOSE, CLOSE], best.x, 0.0, HUGE)
    lower = float(best.value)
    assert said(case, file, lower=lower, upper=lower) == ""
    assert verdict_on(case, file, lower, lower).verified
    assert "hierarchy (1 with parents)" in str(verdict_on(case, file, lower, lower))
    for model, reason in (({2: 4.0, 3: 8.0}, True), ({3: 8.0}, kind == "weak"), ({0: 0.0, 3: 8.0}, False)):
        refused = reason or kind == "strong"
        file = written(case, [CLOSE], model, 0.0, HUGE)
        assert ("hierarchy" in said(case, file)) == refused, model
        assert verdict_on(case, file).verified != refused, model


def test_models_are_those_of_admissible_sets():
    """Every set that respects the hierarchy is shown as it is listed; what is accepted lies in one."""
    refused = 0
    for seed in range(many(18, 150)):
        case = random_related(random.Random(f"model {seed}"), "quadratic")
        allowed = {*admissible_sets(instance_of(case))}
        assert allowed == {frozenset(units) for units in case.supports()}
        for size in range(case.k + 1):
            for listed in map(frozenset, combinations(range(len(case.units)), size)):
                model = dict.fromkeys((case.units[g][0] for g in listed), 0.0 if seed % 3 else 1.0)
                file = written(case, [CLOSE], model, 0.0, HUGE)
                word = said(case, file)
                assert verdict_on(case, file).verified == (word == ""), seed
                if word:
                    assert listed not in allowed
                    refused += 1
                else:
                    assert any(listed <= units for units in allowed)
                    assert case.kind == "strong" or implied_has_parents(case, listed)
    assert refused > many(50, 500)


def implied_has_parents(case, listed):
    """Whether a set, with what it implies, is whole."""
    included = listed | {*case.force_in}
    others = frozenset(range(len(case.units))) - included - {*case.force_out}
    region = implied(instance_of(case).hierarchy, included, others, case.k)
    return region is not None and respects(instance_of(case).hierarchy, region[0])


# --- what is refused ---


def related_file():
    A = [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [3.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    case = Case(A, [1.0, 2.0, 0.0, 1.0], 2, hierarchy=[(1, [0, 2]), (2, [0])])
    return case, strong_file(case, optimum(case))


@pytest.mark.smoke
@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2}, {"version": 3}, {"version": None}, {"hierarchy": True}, {"hierarchy": ["strong"]},
        {"hierarchy": {}}, {"hierarchy": 3}, {"weights": False},
    ],
)  # fmt: skip
def test_headers_that_are_none(changes):
    case, file = related_file()
    data = file._replace(header=file.header | changes).data()
    with pytest.raises(Malformed, match="is no proof"):
        check(data, **case._asdict())
    with pytest.raises(MalformedError):
        parse_proof(data)


@pytest.mark.smoke
def test_proofs_of_other_hierarchies():
    case, file = related_file()
    assert said(case, file) == ""
    plain = case._replace(hierarchy=[])
    others = [
        case._replace(kind="weak"), case._replace(hierarchy=[(1, [0, 2])]), case._replace(hierarchy=[(1, [0])]),
        plain, case._replace(hierarchy=[(2, [0, 1])]), plain._replace(level=True), case._replace(level=True),
        case._replace(force_out=[1]), case._replace(groups=[[0], [1], [2]]),
    ]  # fmt: skip
    for other in others:
        for mine, theirs in ((other, file), (case, strong_file(other, optimum(other)))):
            assert "another problem" in said(mine, theirs)
            assert "about" in verdict_on(mine, theirs).reason
            forged = theirs._replace(header=theirs.header | {n: file.header[n] for n in ("problem_hash",)})
            assert not verdict_on(other, forged).verified


BROKEN = [
    [(1, [1])], [(1, [0, 0])], [(1, [2, 0])], [(2, [0]), (1, [0])], [(1, [0]), (1, [2])], [(1, [])], [(1, [3])],
    [(3, [0])], [(-1, [0])], [(1, [-1])], [(True, [0])], [(1, [False])], [(1.0, [0])], [(1, ["0"])], [(1, None)],
    [1, 2], [(1,)], [(1, [0], 2)], "1: 0", 5,
]  # fmt: skip


@pytest.mark.parametrize("parents", BROKEN, ids=str)
def test_hierarchies_that_are_none(parents):
    case, file = related_file()
    assert re.search(r"hierarchy|parents", check(file.data(), **case._replace(hierarchy=parents)._asdict()))
    about = instance_of(case)
    object.__setattr__(about, "hierarchy", Hierarchy("strong", parents))
    verdict = verify(parse_proof(file.data()), about)
    assert not verdict.verified
    assert re.search("none a proof can be about|no whole number", verdict.reason)


@pytest.mark.parametrize("kind", ["", "Strong", None, True, 1, ["weak"]], ids=str)
def test_kinds_that_are_none(kind):
    case, file = related_file()
    assert "the kind of the hierarchy" in check(file.data(), **case._replace(kind=kind)._asdict())
    with pytest.raises(ValueError, match="strong or weak"):
        replace(instance_of(case), hierarchy=Hierarchy(kind, ((1, (0,)),)))


def test_column_subset_selection_knows_none():
    case, file = related_file()
    assert "a hierarchy" in check(file.data(), **case._replace(loss="", y=[])._asdict())


def test_trees_that_decide_what_is_decided():
    """One part is the region, the other is empty; but every word is read, and there must be enough of them."""
    case, _ = related_file()
    best = optimum(case)
    again = [8 * 0 + SPLIT_IN, 8 * 0 + SPLIT_OUT, CLOSE, CLOSE, 8 * 1 + SPLIT_IN, CLOSE, CLOSE]
    tree = [8 * FIT + USE, *again]
    assert verdict_on(case, written(case, tree, best.x, 0.0, HUGE)).regions == 2
    for broken in (tree[:-1], [*tree, CLOSE], [*tree, 8 * 2 + USE], [8 * 3 + SPLIT_IN, CLOSE, CLOSE], [6, 6], [-8], []):
        file = written(case, broken, best.x, 0.0, HUGE)
        with pytest.raises(Malformed, match="tree"):
            said(case, file)
        with pytest.raises(MalformedError, match="tree"):
            verdict_on(case, file)


# --- the replay ---


def searched(case):
    """A record of a search that closes each region whose set is known, by its fit."""
    hierarchy, steps, numbers = instance_of(case).hierarchy, [], iter(range(1, 10**6))

    def grow(number, region):
        if region is None:
            return
        S, C = region
        if not C or len(S) == case.k:
            value = float(fitted(case, S).value)
            steps.append(Discarded(number, tuple(S), tuple(C), value, Fit()))
            return
        j, child, rest = min(C), next(numbers), next(numbers)
        steps.append(Divided(number, (j,), (child,), rest))
        grow(child, implied(hierarchy, S | {j}, C - {j}, case.k))
        grow(rest, implied(hierarchy, S, C - {j}, case.k))

    grow(0, root_of(case))
    best = optimum(case)
    return Record(tuple(steps), (), float(best.value), float(best.value), coefficients(case, best))


def test_the_replay_knows_hierarchies():
    tried = 0
    for seed in range(many(60, 100)):
        case = random_related(random.Random(f"replay {seed}"), "quadratic")
        case = case._replace(weights=None, level=False, scale=False, lam=1.0)
        if max(map(abs, case.A[0])) > 100:
            continue
        record = searched(case)
        assert replay(instance_of(case), record).lower == pytest.approx(float(optimum(case).value), abs=1e-9)
        free = optimum(case._replace(hierarchy=[]))
        if float(free.value) < record.lower * (1 - 1e-6):
            with pytest.raises(ReplayError):
                replay(replace(instance_of(case), hierarchy=None), record)
            with pytest.raises(ReplayError, match="hierarchy allows"):
                replay(instance_of(case), replace(record, coef=coefficients(case, free)))
            tried += 1
        S, C = root_of(case)
        walked = Walked(0, tuple(S), tuple(C), (), 0.0, (), None)
        with pytest.raises(ReplayError, match=r"cannot be followed|holds no model"):
            replay(instance_of(case), replace(record, steps=(walked,)))
    assert tried > many(5, 10)


def test_the_search_implies_the_same():
    """What the solver makes of a region is what the checkers make of it, to the last unit."""
    rng = random.Random(6)
    for _ in range(1500):
        hierarchy, state, k = random_rule(rng)
        own = dict(hierarchy.parents)
        searched = problem_hierarchy.Hierarchy(tuple(own.get(j, ()) for j in range(len(state))), hierarchy.kind)
        known = {FREE: node.FREE, IN: node.IN, OUT: node.OUT}
        found = searched.implied(np.array([known[s] for s in state], dtype=np.int8), k)
        twin = HierarchyRule(hierarchy, k).implied(state, range(len(state)))
        assert (None if found is None else found.tolist()) == (None if twin is None else [known[s] for s in twin])
        if hierarchy.parents:
            assert searched.entry() == {"hierarchy": json.loads(json.dumps(hierarchy.entry()))}
