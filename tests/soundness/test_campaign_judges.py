"""The parts of the campaigns: instances, the truth about them, and judges that can say no."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import tiny_problems
from equal_instances import same
from samples import many, sample

from exactsel.solving.outcome import Claim
from exactsel.testing.instances import CSS, TinyInstance
from exactsel.testing.solving import solved
from exactsel_dev.campaigns import campaign, peers, relations
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.judging import judged
from exactsel_dev.campaigns.peers import Said, compared, instance_for_peers
from exactsel_dev.campaigns.random_instances import MOST_COLUMNS, MOST_ROWS, random_instance, scaled
from exactsel_dev.campaigns.relations import RELATIONS

# Instances


def test_a_seed_is_an_instance_and_everything_awkward_occurs():
    made = [random_instance(seed) for seed in range(600)]
    assert all(same(random_instance(seed), made[seed]) for seed in (0, 7, 599))
    assert {one.loss for one in made} == {"quadratic", "huber", "logistic", "squared_hinge", "poisson", CSS}
    assert {one.n for one in made} >= set(range(1, MOST_ROWS + 1))
    assert {one.d for one in made} == set(range(1, MOST_COLUMNS + 1))
    settings = [one.settings for one in made]
    for name, values in {
        "tree": {"binary", "state-space"}, "frontier": {"best-first", "depth-first", "weighted"}, "threads": {1, 2},
        "bound": {"auto", "apg", "fit", "split", "pdal", "supergradient"}, "warm_start": {True, False},
        "branching": {"auto", "half", "largest", "costliest"}, "heuristics": {"none", "auto", "forward"},
        "force_quit": {True, False}, "subtrees": {True, False},
    }.items():  # fmt: skip
        assert {one[name] for one in settings if name in one} == values
    occurs = {
        "few rows": any(one.n < one.d for one in made),
        "no columns": any(one.k == 0 for one in made),
        "all columns": any(one.k == len(one.units) for one in made),
        "no ridge": {one.loss for one in made if one.lam == 0} == {"quadratic", "huber", "logistic", CSS},
        "copies": any(len({*map(tuple, one.A.T.tolist())}) < one.d for one in made),
        "zeros": any(not one.A.any(axis=0).all() for one in made),
        "offsets": any(np.abs(one.A).min() > 1e9 for one in made),
        "offset of y": any(np.ptp(one.y) < 1e-9 * abs(one.y[0]) for one in made),
        "huge": any(np.abs(one.A).max() > 1e20 for one in made),
        "tiny": any(0 < np.abs(one.A).max() < 1e-20 for one in made),
        "weights": any(one.weights is not None and np.any(one.weights == 0) for one in made),
        "intercept": any(one.intercept and one.scale for one in made),
        "demands": any(one.force_in and one.force_out for one in made),
        "groups": any(one.groups and max(map(len, one.units)) > 1 for one in made),
        "hierarchies": {one.hierarchy_kind for one in made if one.hierarchy} == {"strong", "weak"},
        "node limits": any("node_limit" in one for one in settings),
    }
    assert all(occurs.values()), occurs
    assert sum(bool(one.admissible) for one in made) > 590


def test_units_are_changed_as_the_problem_changes():
    instance = replace(random_instance(0), loss="huber", settings={"eps": 0.5}, scale=False)
    made = scaled(instance, 3, -2)
    assert np.array_equal(made.A, instance.A / 4)
    assert np.array_equal(made.y, instance.y * 8)
    assert (made.lam, made.delta, made.settings) == (instance.lam / 16, instance.delta * 8, {"eps": 32.0})
    assert relations.relation_of(len(RELATIONS)) == next(iter(RELATIONS))


# The truth


def stated(instance):
    """The instance for an oracle that shares no line with the campaigns'."""
    return tiny_problems.Case(
        instance.A.tolist(), instance.y.tolist(), instance.k, "" if instance.loss == CSS else instance.loss,
        instance.lam, instance.delta, None if instance.weights is None else instance.weights.tolist(),
        instance.intercept, instance.scale, [list(unit) for unit in instance.units], list(instance.force_in),
        list(instance.force_out), [(unit, list(above)) for unit, above in instance.hierarchy], instance.hierarchy_kind,
    )  # fmt: skip


@pytest.mark.parametrize("seed", sample(120, 120))
def test_the_truth_is_that_of_an_oracle_of_its_own(seed):
    instance = random_instance(seed)
    exact = instance.loss in ("quadratic", CSS)
    plain = 1e-4 < instance.lam < 1e2 and 1e-2 < np.abs(instance.A).max() < 1e2
    if instance.d > 5 or not instance.admissible or not (exact or plain):
        return
    truth, optimum = Truth(instance), Fraction(tiny_problems.optimum(stated(instance)).value)
    if exact:
        assert truth.low == truth.high == optimum
    else:
        assert truth.low <= optimum * (1 + Fraction(1, 10**12))
        assert optimum <= truth.high * (1 + Fraction(1, 10**6)) + Fraction(1, 10**9)


def test_intervals_are_narrow_where_data_are_plain():
    made = [random_instance(seed) for seed in range(many(200, 400))]
    plain = [one for one in made if one.loss in ("huber", "logistic") and np.abs(one.A).max() < 1e3]
    assert sum(Truth(one).loose for one in plain) <= 0.05 * len(plain)


def test_the_truth_knows_nothing_of_the_search():
    names = (
        "whole_numbers",
        "elimination",
        "convex_fits",
        "ridgeless_fits",
        "existence",
        "model_values",
        "brute_force",
    )
    for name in names:
        text = (Path(campaign.__file__).parent / f"{name}.py").read_text()
        imported = [line for line in text.splitlines() if line.startswith(("from exactsel", "import exactsel"))]
        assert all(
            line.startswith(
                ("from exactsel_dev.campaigns.", "from exactsel.testing.instances ", "from exactsel.types ")
            )
            for line in imported
        )


# The judge


@pytest.fixture(params=["quadratic", "huber", "logistic", CSS])
def right(request):
    """An instance of each loss, the truth about it, and a result that is right."""
    rng = np.random.default_rng(5)
    A = np.round(rng.standard_normal((9, 4)), 2)
    y = A @ [1.0, 0.0, -1.0, 0.5] + rng.standard_normal(9)
    y = np.sign(y) if request.param == "logistic" else y
    instance = TinyInstance(A, y, 2, request.param, 0.5 * (request.param != CSS), force_out=(0,))
    instance = replace(instance, force_out=()) if request.param == CSS else instance
    truth, result = Truth(instance), solved(instance, rel_eps=0.0)
    assert result.claim is Claim.OPTIMAL
    assert judged(result, truth) == []
    return instance, truth, result


def test_the_judge_notices_bounds_that_are_slightly_wrong(right):
    _, truth, result = right
    optimum = float(truth.high)
    high = judged(replace(result, lower=optimum * (1 + 1e-12)), truth)
    assert "lower above the optimum" in {finding.what for finding in high}
    low = judged(replace(result, upper=optimum * (1 - 1e-12)), truth)
    assert {"upper below the optimum", "upper below its model"} <= {finding.what for finding in low}
    for bad in (math.nan, math.inf):
        assert judged(replace(result, upper=bad), truth)
    assert judged(replace(result, lower=math.nan), truth)


def test_the_judge_notices_words_that_say_too_much(right):
    _, truth, result = right
    gap = replace(result, lower=0.5 * result.lower)
    assert [finding.what for finding in judged(gap, truth)] == ["claims more than its bounds"]
    honest = gap._claiming(gap.lower)
    assert honest.claim is Claim.BOUNDED
    assert judged(honest, truth) == []
    limit = replace(honest, termination=type(honest.termination)("time_limit"))
    assert [finding.what for finding in judged(limit, truth)] == ["ended as time_limit"]


def test_the_judge_notices_models_that_are_not_allowed_or_not_the_best(right):
    instance, truth, result = right
    wide = replace(result, support=(0, 1, 2, 3))
    assert "the model breaks a demand" in {finding.what for finding in judged(wide, truth)}
    if instance.loss == CSS:
        others = [pair for pair in combinations(range(4), 2) if pair != result.support]
        worse = {finding.what for finding in judged(replace(result, support=others[0]), truth)}
        assert {"upper below its model", "called optimal, but is not"} <= worse
        return
    model = replace(result.model, coef=result.model.coef * 1.01)
    worse = {finding.what for finding in judged(replace(result, model=model), truth)}
    assert {"upper below its model", "called optimal, but is not"} <= worse
    shown = replace(result, support=result.support[:1])
    assert "support is not that of the coefficients" in {finding.what for finding in judged(shown, truth)}


# Peers


def test_a_peer_that_contradicts_is_noticed():
    instance = next(one for one in map(instance_for_peers, range(99)) if one.lam and not one.hierarchy and one.k > 1)
    truth, result = Truth(instance), solved(instance)
    right = Said(result.support, result.upper, result.lower, True)
    room = 2 * peers.TOLERANCE * max(float(truth.empty), result.upper)

    def whats(result=result, **changes):
        return [finding.what for finding in compared(result, right._replace(**changes), truth, "peer")]

    assert whats() == []
    assert whats(chosen=tuple(range(instance.d + 1))) == ["peer: chooses what is not allowed"]
    assert whats(lower=result.upper + room) == ["peer: proves that upper is too small"]
    assert whats(upper=result.upper + room) == ["peer: calls a worse model optimal"]
    assert whats(upper=result.lower - room) == ["peer: says it is below lower"]
    untrue = replace(result, lower=result.upper * (1 + 1e-12))
    assert "peer: has a model below lower" in whats(untrue)
    assert "peer: has a better model" in whats(replace(result, upper=result.upper + room))
