"""The independent replay: its formulas against brute force, and corrupted records, which it may accept only if true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances_for_tests import LOSSES, best_values, optimum_of, random_case
from recorded import instance_of, record_of, replayed
from samples import sample
from scipy.optimize import minimize

import exactsel
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.supergradient import SupergradientBound
from exactsel.settings import Settings
from exactsel.solving import Search
from exactsel_certificates import formula
from exactsel_certificates.reference import bounds
from exactsel_certificates.reference import replay as rp

# --- the formulas ---


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_the_derivative_of_the_loss(loss):
    for seed in range(20):
        instance = instance_of(random_case(seed, loss=loss, lam=0.1).problem())
        rng = np.random.default_rng(seed)
        z, direction = rng.standard_normal((2, len(instance.y)))
        step = 1e-5
        ahead, behind = (bounds.loss_value(instance, z + s * direction) for s in (step, -step))
        # The Huber loss has jumps in its curvature: its differences converge more slowly.
        assert (ahead - behind) / (2 * step) == pytest.approx(
            float(bounds.loss_gradient(instance, z) @ direction), rel=1e-4, abs=1e-4
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_conjugate_is_the_largest_difference(loss):
    """L*(b) = sup_z b'z - L(z), by searching, one row at a time."""
    for seed in range(10):
        whole = instance_of(random_case(seed, loss=loss, lam=0.1).problem())
        for i in range(2):
            instance = replace(whole, A=whole.A[i : i + 1], y=whole.y[i : i + 1])
            share = np.random.default_rng(seed).uniform(0.05, 0.95)
            beta = {"quadratic": 2 * share - 1, "huber": (2 * share - 1) * whole.delta, "logistic": -share * whole.y[i]}
            b = np.array([beta[loss]])
            found = minimize(lambda z, b=b, at=instance: bounds.loss_value(at, z) - b @ z, instance.y, method="BFGS")
            assert bounds.conjugate(instance, b) == pytest.approx(-found.fun, abs=1e-6)


def test_conjugate_at_the_ends_of_its_domain():
    A, y = np.ones((2, 1)), np.array([1.0, -1.0])
    logistic = formula.Instance(A, y, 1, "logistic", 1.0)
    assert bounds.conjugate(logistic, [-1.0, 0.0]) == 0.0
    assert bounds.conjugate(logistic, [-0.5, 0.5]) == pytest.approx(2 * np.log(0.5))
    assert bounds.conjugate(logistic, [-1.1, 0.0]) == np.inf
    assert bounds.conjugate(logistic, [0.1, 0.0]) == np.inf
    huber = formula.Instance(A, y, 1, "huber", 1.0, 0.5)
    assert bounds.conjugate(huber, [0.5, -0.5]) == pytest.approx(0.25 + 1.0)
    assert bounds.conjugate(huber, [0.5, -0.51]) == np.inf


@pytest.mark.parametrize("loss", LOSSES)
def test_fenchel_equality_at_a_gradient(loss):
    for seed in range(20):
        instance = instance_of(random_case(seed, loss=loss, lam=0.1).problem())
        d = instance.A.shape[1]
        x = np.random.default_rng(seed).standard_normal(d)
        z = instance.A @ x
        beta = bounds.loss_gradient(instance, z)
        S, C = range(d // 3), range(d // 3, d)
        roomy = replace(instance, k=max(instance.k, d // 3))
        a, b = bounds.bound_at_model(roomy, S, C, x), bounds.dual_bound(roomy, S, C, beta)
        assert a == pytest.approx(b, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_witness_bounds_every_model_of_its_region(loss):
    """Random regions and random witnesses: no support of the region costs less than any bound."""
    for seed in range(150):
        case = random_case(seed, loss=loss)
        instance, rng, d = instance_of(case.problem()), np.random.default_rng(seed), case.A.shape[1]
        state = rng.integers(0, 3, d)
        inside, candidates = np.flatnonzero(state == 2)[: case.k], np.flatnonzero(state == 1)
        places = case.k - len(inside)
        support = [*inside, *rng.permutation(candidates)[:places]]
        values, _ = best_values(case, np.array([support], dtype=int)) if support else ([0.0], [0.0])
        cheapest = values[0] if support else case.objective(np.zeros(d))
        witnesses = [rp.Model(x) for x in random_models(rng, d)]
        witnesses.append(rp.Dual(np.array(bounds.loss_gradient(instance, rng.standard_normal(case.A.shape[0])))))
        if loss == "quadratic":
            witnesses.append(rp.Fit())
        for witness in witnesses:
            bound = rp.recomputed_bound(instance, inside, candidates, witness)
            assert bound <= cheapest + 1e-11 * (1 + abs(cheapest))


def random_models(rng, d):
    yield np.zeros(d)
    for _ in range(3):
        yield rng.standard_normal(d) * (rng.random(d) < 0.5)


def test_a_fit_with_no_place_left_uses_what_is_inside_only():
    case = random_case(5, loss="quadratic", lam=0.0, n=9, d=5)
    instance = replace(instance_of(case.problem()), k=2)
    inside = bounds.fit_bound(instance, [0, 1], [2, 3, 4])
    assert inside == pytest.approx(bounds.fit_bound(instance, [0, 1], []))
    assert inside > bounds.fit_bound(instance, [0], [1, 2, 3, 4])


def test_lam_0_leaves_no_bound_but_at_a_stationary_point():
    instance = formula.Instance(np.eye(2), np.array([1.0, 2.0]), 1, "quadratic", 0.0)
    assert bounds.bound_at_model(instance, [], [0, 1], [0.0, 2.0]) == -np.inf
    assert bounds.bound_at_model(instance, [1], [], [0.0, 2.0]) == 0.5


@pytest.mark.parametrize(
    ("change", "sentence"),
    [({"loss": "hinge"}, "the loss is 'hinge'"), ({"y": np.zeros(3)}, "A has shape"), ({"A": np.zeros(2)}, "A has sh")],
)
def test_an_instance_that_makes_no_sense_is_refused(change, sentence):
    good = {"A": np.eye(2), "y": np.ones(2), "k": 1, "loss": "quadratic", "lam": 0.0}
    with pytest.raises(ValueError, match=sentence):
        formula.Instance(**{**good, **change})


def test_a_fit_of_another_loss_is_refused():
    instance = formula.Instance(np.eye(2), np.ones(2), 1, "logistic", 1.0)
    with pytest.raises(ValueError, match="quadratic"):
        bounds.fit_bound(instance, [], [0, 1])
    with pytest.raises(rp.ReplayError, match="fit"):
        rp.recomputed_bound(instance, [], [0, 1], rp.Fit())


# --- corrupted records: accepted implies true ---


def search_record(seed):
    """A true record: any problem, any tree, bounds weak enough to need one, often stopped while regions are open."""
    rng = np.random.default_rng([22, seed])
    case = random_case(700_000 + seed, n=int(rng.integers(4, 11)), d=int(rng.integers(3, 8)))
    problem = case.problem()
    weak = AcceleratedGradientBound(max_iterations=3), SupergradientBound(max_iterations=3), "apg"
    walking = seed % 3 == 0
    options = Settings(
        tree="binary" if walking else ("binary", "state-space")[seed % 2],
        bound="auto" if walking else "fit" if case.lam == 0 else weak[seed % 3],
        branching="half",
        heuristics=(),
        threads=1,
        batch=(1, 4)[seed % 2],
        rel_eps=(0.0, 0.3)[seed // 2 % 2],
        node_limit=None if seed % 4 == 0 else int(rng.integers(1, 20)),
    )
    search = Search(problem, options, signals=())
    events = list(search)
    return case, instance_of(problem), record_of(search.result(), events)


def claimed(entry):
    """The bound an entry claims."""
    return entry.dropped if isinstance(entry, rp.Walked) else entry.bound


def claiming(entry, bound):
    """The entry with another claim."""
    return entry._replace(dropped=bound) if isinstance(entry, rp.Walked) else entry._replace(bound=bound)


def consistent(record, steps=None, open_regions=None, **changes):
    """The record with its claimed lower bound brought into line, as a forger would."""
    steps = record.steps if steps is None else tuple(steps)
    open_regions = record.open_regions if open_regions is None else tuple(open_regions)
    upper = changes.get("upper", record.upper)
    bounds = [claimed(entry) for entry in (*steps, *open_regions) if not isinstance(entry, rp.Divided)]
    return replace(record, steps=steps, open_regions=open_regions, lower=min([upper, *bounds]), **changes)


def pick(rng, entries, kinds):
    places = [i for i, entry in enumerate(entries) if isinstance(entry, kinds)]
    return int(rng.choice(places)) if places else None


def drop_a_step(rng, record):
    i = pick(rng, record.steps, (rp.Fixed, rp.Divided, rp.Discarded, rp.Walked))
    return i if i is None else consistent(record, [*record.steps[:i], *record.steps[i + 1 :]])


def repeat_a_step(rng, record):
    i = pick(rng, record.steps, (rp.Fixed, rp.Divided, rp.Discarded))
    return i if i is None else consistent(record, [*record.steps[: i + 1], *record.steps[i:]])


def swap_two_steps(rng, record):
    if len(record.steps) < 2:
        return None
    i, j = rng.choice(len(record.steps), 2, replace=False)
    steps = list(record.steps)
    steps[i], steps[j] = steps[j], steps[i]
    return consistent(record, steps)


def drop_an_open_region(rng, record):
    i = pick(rng, record.open_regions, rp.Open)
    kept = record.open_regions
    return i if i is None else consistent(record, None, [*kept[:i], *kept[i + 1 :]])


def alter(rng, record, change):
    """Change one bound-carrying entry, among the steps or among the open regions."""
    steps, left = list(record.steps), list(record.open_regions)
    entries = left if rng.random() < 0.4 and left else steps
    i = pick(rng, entries, (rp.Fixed, rp.Discarded, rp.Open))
    if i is None:
        return None
    entries[i] = change(entries[i])
    return consistent(record, steps, left)


def raise_a_bound(rng, record):
    factor = float(rng.choice([1e-4, 0.01, 1.0, 100.0]))
    walk = pick(rng, record.steps, rp.Walked)
    if walk is not None:
        step = record.steps[walk]
        lifted = step._replace(dropped=step.dropped + factor * (1 + abs(step.dropped)))
        return consistent(record, [*record.steps[:walk], lifted, *record.steps[walk + 1 :]])
    return alter(rng, record, lambda entry: entry._replace(bound=entry.bound + factor * (1 + abs(entry.bound))))


def raise_every_bound(rng, record):
    """Everything is claimed to reach the incumbent: the lie that would make any model optimal."""
    lift = [
        entry if isinstance(entry, rp.Divided) else claiming(entry, max(claimed(entry), record.upper))
        for entry in (*record.steps, *record.open_regions)
    ]
    return consistent(record, lift[: len(record.steps)], lift[len(record.steps) :])


def spoil_a_bound(rng, record):
    return alter(rng, record, lambda entry: entry._replace(bound=float(rng.choice([np.nan, np.inf, -np.inf]))))


def scaled(values, factor):
    with np.errstate(over="ignore"):
        return values * factor


def change_a_walk(rng, record):
    """Other moves, other curvature, or other regions left open."""
    i = pick(rng, record.steps, rp.Walked)
    if i is None:
        return None
    step, d = record.steps[i], len(record.coef)
    moves = list(step.moves)
    at = int(rng.integers(len(moves)))
    match int(rng.integers(5)):
        case 0:
            moves[at] = 8 * int(rng.integers(d)) + int(rng.integers(6))
        case 1:
            del moves[at]
        case 2:
            moves[at] = 3
        case 3 if step.curvature is not None:
            step = step._replace(curvature=scaled(step.curvature, float(rng.choice([0.5, 1.01, 3.0, -1.0, 1e200]))))
        case _:
            step = step._replace(open_regions=step.open_regions[1:] or (999,))
    changed = step._replace(moves=tuple(moves))
    return consistent(record, [*record.steps[:i], changed, *record.steps[i + 1 :]])


def change_a_witness(rng, record):
    def other(witness):
        match witness:
            case rp.Model(x):
                changed = scaled(x, rng.choice([0.0, 1.001, -1.0, 1e3, 1e200]))
                return rp.Model(changed if rng.random() < 0.6 else rng.standard_normal(len(x)))
            case rp.Curved(x, curvature):
                if rng.random() < 0.5:
                    return rp.Curved(x, scaled(curvature, rng.choice([0.0, 0.5, 1.001, 2.0, -1.0, 1e200])))
                return rp.Curved(rng.standard_normal(len(x)), curvature * rng.uniform(0.5, 1.5, len(x)))
            case rp.Dual(beta):
                changed = beta * rng.choice([0.0, 0.9, 1.001, 2.0, np.nan])
                return rp.Dual(changed if rng.random() < 0.6 else rng.permutation(beta))
            case _:
                return rp.Model(np.full(len(record.coef), rng.choice([0.0, 1.0])))

    return alter(rng, record, lambda entry: entry._replace(witness=other(entry.witness)))


def borrow_a_witness(rng, record):
    """The bound and witness of another region, which may have been smaller."""
    donors = [entry for entry in (*record.steps, *record.open_regions) if not isinstance(entry, rp.Divided | rp.Walked)]
    if not donors:
        return None
    donor = donors[int(rng.integers(len(donors)))]
    return alter(rng, record, lambda entry: entry._replace(bound=donor.bound, witness=donor.witness))


def swap_a_column(rng, record):
    i = pick(rng, record.steps, (rp.Fixed, rp.Divided))
    if i is None:
        return None
    step, column = record.steps[i], int(rng.integers(-1, len(record.coef) + 1))
    if isinstance(step, rp.Fixed):
        changed = step._replace(column=column) if rng.random() < 0.5 else step._replace(inside=not step.inside)
    elif not step.columns:
        return None
    else:
        position = int(rng.integers(len(step.columns)))
        changed = step._replace(columns=(*step.columns[:position], column, *step.columns[position + 1 :]))
    return consistent(record, [*record.steps[:i], changed, *record.steps[i + 1 :]])


def shorten_a_chain(rng, record):
    """One child of a split is forgotten, with all that was done in it."""
    i = pick(rng, record.steps, rp.Divided)
    if i is None or not record.steps[i].columns:
        return None
    step = record.steps[i]
    gone = int(rng.integers(len(step.columns)))
    changed = step._replace(
        columns=step.columns[:gone] + step.columns[gone + 1 :],
        children=step.children[:gone] + step.children[gone + 1 :],
    )
    lost, steps = {step.children[gone]}, [*record.steps[:i], changed]
    for later in record.steps[i + 1 :]:
        if later.region not in lost:
            steps.append(later)
        elif isinstance(later, rp.Divided):
            lost |= {*later.children, later.rest}
    return consistent(record, steps, [entry for entry in record.open_regions if entry.region not in lost])


def renumber(rng, record):
    i = pick(rng, record.steps, (rp.Fixed, rp.Discarded, rp.Divided))
    if i is None:
        return None
    changed = record.steps[i]._replace(region=int(rng.integers(0, 12)))
    return consistent(record, [*record.steps[:i], changed, *record.steps[i + 1 :]])


def misdescribe_a_region(rng, record):
    def smaller(entry):
        if isinstance(entry, rp.Fixed) or not entry.candidates:
            return entry
        j = entry.candidates[int(rng.integers(len(entry.candidates)))]
        left = tuple(c for c in entry.candidates if c != j)
        return entry._replace(candidates=left, inside=(*entry.inside, j) if rng.random() < 0.5 else entry.inside)

    return alter(rng, record, smaller)


def close_an_open_region(rng, record):
    """A region nobody has finished is claimed closed at the incumbent's value."""
    i = pick(rng, record.open_regions, rp.Open)
    if i is None:
        return None
    entry = record.open_regions[i]
    bound = record.upper if rng.random() < 0.7 else entry.bound
    closed = rp.Discarded(entry.region, entry.inside, entry.candidates, bound, entry.witness)
    return consistent(
        record, [*record.steps, closed], [*record.open_regions[:i], *record.open_regions[i + 1 :]]
    )  # fmt: skip


def forge_the_lower_bound(rng, record):
    return replace(record, lower=float(rng.choice([record.upper, record.lower + 1.0, np.nan, np.inf])))


def forge_the_model(rng, record):
    coef = record.coef.copy()
    coef[int(rng.integers(len(coef)))] += rng.choice([1.0, np.nan, np.inf])
    return consistent(record, coef=coef)


def forge_the_upper_bound(rng, record):
    return consistent(record, upper=record.upper * float(rng.choice([0.5, 1.001, np.nan, np.inf])))


MUTATIONS = (
    drop_a_step, repeat_a_step, swap_two_steps, drop_an_open_region, raise_a_bound, raise_every_bound, spoil_a_bound,
    change_a_witness, change_a_walk, borrow_a_witness, swap_a_column, shorten_a_chain, renumber, misdescribe_a_region,
    close_an_open_region, forge_the_lower_bound, forge_the_model, forge_the_upper_bound,
)  # fmt: skip

MUST_FAIL = {spoil_a_bound, repeat_a_step}


def accepted(instance, record):
    try:
        return rp.replay(instance, record)
    except rp.ReplayError as error:
        sentence = str(error)
        assert sentence.endswith(".")
        assert "\n" not in sentence
        return None


@np.errstate(all="ignore")
def corrupt_and_replay(seed, rounds):
    """Returns per mutation how many corrupt records were rejected and accepted; accepted ones must be true."""
    case, instance, record = search_record(seed)
    optimum, rng = optimum_of(case), np.random.default_rng([23, seed])
    report = rp.replay(instance, record)
    scale = 1.0 + abs(optimum.high)
    assert report.proven <= optimum.high + 1e-12 * scale
    counts = {mutation: [0, 0] for mutation in MUTATIONS}
    for mutation in MUTATIONS:
        for _ in range(rounds):
            corrupt = mutation(rng, record)
            if corrupt is None:
                continue
            report = accepted(instance, corrupt)
            counts[mutation][report is not None] += 1
            if report is not None:
                assert corrupt.lower <= optimum.high + rp.MOST_ROUNDING * scale, f"seed {seed} {mutation.__name__}"
                assert corrupt.upper >= optimum.low - rp.MOST_ROUNDING * scale, f"seed {seed} {mutation.__name__}"
                assert report.proven <= optimum.high + 1e-12 * scale, f"seed {seed} {mutation.__name__}"
                assert mutation not in MUST_FAIL, f"seed {seed} {mutation.__name__}"
    return counts


def corrupt_many(seeds, rounds):
    total = {mutation: np.zeros(2, dtype=int) for mutation in MUTATIONS}
    for seed in seeds:
        for mutation, pair in corrupt_and_replay(seed, rounds).items():
            total[mutation] += pair
    return total


@pytest.mark.parametrize("chunk", sample(3, 8))
def test_an_accepted_record_is_true(chunk):
    total = corrupt_many(range(chunk * 40, (chunk + 1) * 40), 3)
    # Each kind of corruption must have been tried, and each does real harm often enough to be rejected.
    # (Few of these small searches walk a subtree; the next test is about those.)
    for mutation, (rejected, _) in total.items():
        assert rejected > 0 or mutation is change_a_walk, mutation.__name__


def test_an_accepted_walk_is_true():
    """Walks with their moves, curvature, claims and open regions tampered with."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 13)) + 1.5 * rng.standard_normal((40, 1))
    problem = exactsel.Problem(A, A @ rng.standard_normal(13) + rng.standard_normal(40), 4, lam=0.01)
    search = Search(problem, Settings(heuristics=(), threads=1, batch=1), signals=())
    events = list(search)
    result, instance = search.result(), instance_of(problem)
    record = record_of(result, events)
    assert any(isinstance(step, rp.Walked) for step in record.steps)
    assert accepted(instance, record) is not None
    refused = 0
    for number in range(120):
        mutation = (change_a_walk, raise_a_bound, raise_every_bound)[number % 3]
        forged = mutation(rng, record)
        report = accepted(instance, forged)
        refused += report is None
        if report is not None:
            assert report.proven <= result.upper + 1e-9
            assert report.lower <= result.upper + 1e-8
    assert refused > 60


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(20))
def test_many_more_accepted_records_are_true(chunk):
    corrupt_many(range(10_000 + chunk * 200, 10_000 + (chunk + 1) * 200), 10)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_record_of_several_corruptions_is_true_when_accepted(data):
    seed = data.draw(st.integers(0, 300))
    case, instance, record = search_record(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        mutation = data.draw(st.sampled_from(MUTATIONS))
        record = mutation(np.random.default_rng(data.draw(st.integers(0, 2**32))), record) or record
    with np.errstate(all="ignore"):
        report = accepted(instance, record)
    if report is not None:
        optimum = optimum_of(case)
        assert record.lower <= optimum.high + rp.MOST_ROUNDING * (1.0 + abs(optimum.high))


# --- one sentence for each way to be wrong, on the smallest search there is ---


def small_record():
    """min (z - y)^2/2 over two unit columns, one of which may be used: split on column 0, both sides closed."""
    instance = formula.Instance(np.eye(2), np.array([1.0, 3.0]), 1, "quadratic", 1.0)
    inside, outside = np.array([0.5, 0.0]), np.array([0.0, 1.5])
    steps = (
        rp.Divided(0, (0,), (1,), 2),
        rp.Discarded(1, (0,), (1,), 4.75, rp.Model(inside)),
        rp.Discarded(2, (), (1,), 2.75, rp.Model(outside)),
    )
    return instance, rp.Record(steps, (), 2.75, 2.75, outside)


def test_the_smallest_record():
    instance, record = small_record()
    report = rp.replay(instance, record)
    assert report.closed == 2
    assert report.still_open == 0
    assert report.lower == report.proven == 2.75
    assert abs(report.excess) <= 1e-15


def test_the_same_by_fixing():
    instance, record = small_record()
    steps = (
        rp.Fixed(0, 0, False, 4.75, rp.Model(np.array([0.5, 0.0]))),
        rp.Discarded(0, (), (1,), 2.75, record.steps[2].witness),
    )
    assert rp.replay(instance, replace(record, steps=steps)).closed == 2


def with_steps(change):
    def changed(record):
        return replace(record, steps=tuple(change(list(record.steps))))

    return changed


WRONG = [
    (with_steps(lambda s: s[:-1]), r"regions \[2\] are left open, but \[\] are listed"),
    (with_steps(lambda s: [*s, s[-1]]), "region 2, which is not open"),
    (with_steps(lambda s: [s[0]._replace(columns=(2,)), *s[1:]]), "column 2 is no candidate of region 0"),
    (with_steps(lambda s: [s[0]._replace(columns=(0, 0), children=(1, 3)), *s[1:]]), "column 0 is no candidate"),
    (with_steps(lambda s: [s[0]._replace(columns=(0, 1)), *s[1:]]), "2 columns to branch on but 1 children"),
    (with_steps(lambda s: [s[0]._replace(rest=1), *s[1:]]), "region 1 appears twice"),
    (with_steps(lambda s: [s[0], rp.Divided(1, (1,), (3,), 4), *s[1:]]), "region 1 has no place left for column 1"),
    (with_steps(lambda s: [s[0], s[1]._replace(candidates=()), s[2]]), "region 1 is not the one the record takes it"),
    (with_steps(lambda s: [s[0], s[1]._replace(bound=4.8), s[2]]), "region 1 is claimed to cost at least 4.8"),
    (with_steps(lambda s: [s[0], s[1]._replace(bound=np.nan), s[2]]), "the bound of region 1 is nan"),
    (with_steps(lambda s: [s[0], s[1]._replace(witness=rp.Model(np.zeros(3))), s[2]]), "no vector of 2 finite numbers"),
    (with_steps(lambda s: [s[0], s[1]._replace(witness=rp.Dual(np.full(2, np.inf))), s[2]]), "no vector of 2 finite"),
    (lambda r: replace(r, lower=2.76), "the bounds prove a lower bound of 2.75, but 2.76 is claimed"),
    (lambda r: replace(r, lower=np.nan), "but nan is claimed"),
    (lambda r: replace(r, upper=2.7, lower=2.7), "the model's objective is 2.75, not 2.7"),
    (lambda r: replace(r, coef=np.array([0.1, 1.4])), "2 non-zero coefficients, but k is 1"),
    (lambda r: replace(r, coef=np.array([np.nan, 0.0])), "no vector of 2 finite coefficients"),
    (lambda r: replace(r, coef=np.zeros(3)), "no vector of 2 finite coefficients"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG)
def test_what_is_wrong_is_said_in_one_sentence(change, sentence):
    instance, record = small_record()
    with pytest.raises(rp.ReplayError, match=sentence):
        rp.replay(instance, change(record))


def test_one_changed_number_in_the_data_is_noticed():
    """The record does not carry the data: whoever replays it brings their own."""
    instance, record = small_record()
    with pytest.raises(rp.ReplayError):
        rp.replay(replace(instance, y=np.array([1.0, 3.0001])), record)
    with pytest.raises(rp.ReplayError):
        rp.replay(replace(instance, k=2), record)
    with pytest.raises(rp.ReplayError):
        rp.replay(replace(instance, lam=0.9), record)


def test_the_replay_knows_nothing_of_the_solver():
    """It accepts a record nobody computed: any witness will do as long as the formula gives the bound."""
    instance, record = small_record()
    lazy = (rp.Discarded(0, (), (0, 1), 0.0, rp.Infimum()),)
    assert rp.replay(instance, replace(record, steps=lazy, lower=0.0)).proven == 0.0
    with pytest.raises(rp.ReplayError):
        rp.replay(instance, replace(record, steps=(lazy[0]._replace(bound=0.1),), lower=0.1))


def test_the_replay_of_a_search_reports_its_rounding():
    case = random_case(3, loss="quadratic", lam=0.1, n=10, d=6)
    search = Search(case.problem(), Settings(threads=1, heuristics=()), signals=())
    events = list(search)
    report = replayed(case.problem(), search.result(events), events)
    assert report.excess <= 1e-12
    assert report.closed > 0
