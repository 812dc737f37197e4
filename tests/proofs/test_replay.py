"""The independent replay: its formulas against brute force, and one sentence for each way to be wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from instances_for_tests import LOSSES, best_values, random_case
from recorded import instance_of, replayed
from scipy.optimize import minimize

from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel_certificates import formula
from exactsel_dev.reference import bounds
from exactsel_dev.reference import replay as rp

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


@pytest.mark.smoke
@pytest.mark.parametrize("loss", LOSSES)
def test_every_witness_bounds_every_model_of_its_region(loss):
    """Random regions and random witnesses: no support of the region costs less than any bound."""
    for seed in range(150):
        case = random_case(seed, loss=loss)
        instance, rng, d = instance_of(case.problem()), np.random.default_rng(seed), case.A.shape[1]
        state = rng.integers(0, 3, d)
        included, candidates = np.flatnonzero(state == 2)[: case.k], np.flatnonzero(state == 1)
        places = case.k - len(included)
        support = [*included, *rng.permutation(candidates)[:places]]
        values, _ = best_values(case, np.array([support], dtype=int)) if support else ([0.0], [0.0])
        cheapest = values[0] if support else case.objective(np.zeros(d))
        witnesses = [rp.Model(x) for x in random_models(rng, d)]
        witnesses.append(rp.Dual(np.array(bounds.loss_gradient(instance, rng.standard_normal(case.A.shape[0])))))
        if loss == "quadratic":
            witnesses.append(rp.Fit())
        for witness in witnesses:
            bound = rp.recomputed_bound(instance, included, candidates, witness)
            assert bound <= cheapest + 1e-11 * (1 + abs(cheapest))


def random_models(rng, d):
    yield np.zeros(d)
    for _ in range(3):
        yield rng.standard_normal(d) * (rng.random(d) < 0.5)


def test_a_fit_with_no_place_left_uses_what_is_inside_only():
    case = random_case(5, loss="quadratic", lam=0.0, n=9, d=5)
    instance = replace(instance_of(case.problem()), k=2)
    included = bounds.fit_bound(instance, [0, 1], [2, 3, 4])
    assert included == pytest.approx(bounds.fit_bound(instance, [0, 1], []))
    assert included > bounds.fit_bound(instance, [0], [1, 2, 3, 4])


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


# --- one sentence for each way to be wrong, on the smallest search there is ---


def small_record():
    """min (z - y)^2/2 over two unit columns, one of which may be used: split on column 0, both sides closed."""
    instance = formula.Instance(np.eye(2), np.array([1.0, 3.0]), 1, "quadratic", 1.0)
    included, outside = np.array([0.5, 0.0]), np.array([0.0, 1.5])
    steps = (
        rp.Divided(0, (0,), (1,), 2),
        rp.Discarded(1, (0,), (1,), 4.75, rp.Model(included)),
        rp.Discarded(2, (), (1,), 2.75, rp.Model(outside)),
    )
    return instance, rp.Record(steps, (), 2.75, 2.75, outside)


@pytest.mark.smoke
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


@pytest.mark.smoke
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
