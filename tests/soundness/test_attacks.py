"""The campaigns of benchmarks/attacks: their problems, oracles and judges; above all, that the judges can say no."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter
from fractions import Fraction
from functools import partial
from importlib import import_module
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from instances_for_tests import best_values, random_case, supports_of
from judged import Right, made, next_above, next_below
from samples import sample

import exactsel
from exactsel import solve
from exactsel.solving.outcome import Claim, Termination

ROOT = Path(__file__).resolve().parents[2]

MODULES = ("cases", "commands", "doors", "enclosures", "exact", "forgeries", "honest", "judging", "mutants", "oracle",
           "rational", "running", "solves", "units")  # fmt: skip


@pytest.fixture
def attacks(monkeypatch):
    """The modules; ``benchmarks`` is not an installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    return SimpleNamespace(**{name: import_module(f"benchmarks.attacks.{name}") for name in MODULES})


# The problems


def test_a_seed_is_a_problem_and_all_awkward_kinds_occur(attacks):
    cases = [attacks.cases.random_case(seed) for seed in range(400)]
    assert attacks.cases.random_case(7).text() == cases[7].text()
    assert {case.loss for case in cases} == {"quadratic", "huber", "logistic", "css"}
    assert {case.d for case in cases} == set(range(2, 9))
    assert {len(case.y) for case in cases} == set(range(2, 13))
    sizes = [float(np.abs(case.A).max()) for case in cases]
    targets = [float(np.abs(case.y).max()) for case in cases if case.loss in ("quadratic", "huber")]
    assert min(size for size in sizes if size) < 2.0**-200
    assert max(sizes) > 2.0**200
    assert max(targets) > 2.0**200
    occurs = {
        "offset of y": any("of y" in case.kind and np.ptp(case.y) < 1e-9 * abs(case.y[0]) for case in cases),
        "lam 0": any(case.lam == 0 and case.loss == "quadratic" for case in cases),
        "weights of 0": any(case.weights is not None and np.any(case.weights == 0) for case in cases),
        "far weights": any(case.weights is not None and np.ptp(np.log10(case.weights + 1e-99)) > 5 for case in cases),
        "intercept": any(case.intercept for case in cases),
        "scale": any(case.scale and case.intercept for case in cases),
        "groups": any(case.labels and max(map(len, case.units)) > 1 for case in cases),
        "demands": any(case.force_in and case.force_out for case in cases),
        "everything": any(case.k == len(case.units) for case in cases),
        "nothing": any(case.k == 0 for case in cases),
        "wild": any("wild" in case.kind for case in cases),
        "default threshold": any(case.loss == "huber" and case.delta is None for case in cases),
    }
    assert all(occurs.values()), occurs
    assert all(len(case.force_in) <= case.k <= len(case.units) for case in cases)


def test_a_case_written_out_is_the_case(attacks):
    case = attacks.cases.random_case(7)
    again = eval(case.text(), {"Case": attacks.cases.Case, "np": np})
    assert np.array_equal(again.A, case.A)
    assert again.text() == case.text()


# The oracles


def test_the_truth_of_the_example_with_an_offset(attacks):
    a, y = [0.0, 1.0, 0.0, 1.0, 2.0], 2.0**52 + np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    case = attacks.cases.Case(np.array([a]).T, y, 1, "quadratic", 0.001, intercept=True)
    truth = attacks.oracle.Oracle(case).truth()
    square = Fraction(14, 5)  # of the centred column, which is also the centred target
    assert truth.low == truth.high == (square - square**2 / (square + Fraction(0.001))) / 2
    assert float(truth.low) == pytest.approx(0.00049982, rel=1e-5)


@pytest.mark.parametrize("seed", sample(60, 60))
def test_the_oracle_agrees_with_brute_force_in_doubles(attacks, seed):
    tried = random_case(seed, d=seed % 4 + 2)
    case = attacks.cases.Case(tried.A, tried.y, tried.k, tried.loss, tried.lam, tried.delta)
    oracle = attacks.oracle.Oracle(case)
    supports = supports_of(case.d, case.k)
    values = oracle.values(supports)
    assert list(values) == oracle.supports(case.k) == supports
    if case.k:
        expected, errors = best_values(tried, np.array(supports))
        for (low, high), value, error in zip(values.values(), expected, errors, strict=True):
            slack = 1e-9 * (1.0 + tried.objective(np.zeros(case.d)))
            assert float(low) <= value + slack
            assert float(high) >= value - error - slack
            assert 0 <= high - low <= attacks.oracle.LOOSE * high
    truth = oracle.truth()
    assert truth.high == min(high for _, high in values.values())
    x = np.random.default_rng(seed).standard_normal(case.d)
    assert float(oracle.objective(x)[0]) == pytest.approx(tried.objective(x), rel=1e-9)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("scale", [False, True])
def test_intercept_weights_and_scale_are_what_they_mean(attacks, loss, scale):
    """Shifts of the columns change nothing, weights count rows, and the best intercept is no worse than any other."""
    case = made(attacks, loss=loss, delta=0.7 if loss == "huber" else None, intercept=True, scale=scale)
    if loss == "logistic":
        case = dataclasses.replace(case, y=np.where(case.y > 0, 1.0, -1.0))
    truth = attacks.oracle.Oracle(case).truth()
    moved = dataclasses.replace(case, A=case.A + np.array([2.0**40, -3.0, 1e15]))
    assert close(attacks.oracle.Oracle(moved).truth(), truth)
    if loss != "logistic":
        assert close(attacks.oracle.Oracle(dataclasses.replace(case, y=case.y + 2.0**48)).truth(), truth)
    counts = [1, 2, 1, 3, 1, 1, 0, 2]
    weighted = attacks.oracle.Oracle(dataclasses.replace(case, weights=np.array(counts, dtype=float)))
    repeated = dataclasses.replace(case, A=np.repeat(case.A, counts, axis=0), y=np.repeat(case.y, counts))
    assert close(weighted.truth(), attacks.oracle.Oracle(repeated).truth())
    x = np.array([0.4, 0.0, -0.3])
    best = float(weighted.objective(x)[1])
    sizes = np.sqrt([float(weighted.data.squared_scale(j)) for j in range(3)])
    assert np.all(sizes == 1.0) == (not scale)
    for level in np.linspace(-8, 8, 401):
        rows = losses(case, case.A @ x + level)
        assert best <= np.array(counts) @ rows + 0.25 * np.sum((sizes * x) ** 2) + 1e-9


def losses(case, z):
    if case.loss == "logistic":
        return np.logaddexp(0.0, -case.y * z)
    size = np.abs(z - case.y)
    far = case.loss == "huber" and size > case.delta
    return np.where(far, (case.delta or 0.0) * size - 0.5 * (case.delta or 0.0) ** 2, 0.5 * size**2)


def close(one, other):
    width = Fraction(1, 10**20) * other.high
    return abs(one.low - other.low) <= width and abs(one.high - other.high) <= width


def test_selections_leave_what_projections_leave(attacks):
    rng = np.random.default_rng(3)
    A = rng.integers(-3, 4, (6, 4)).astype(float)
    A[:, 3] = A[:, 0] + A[:, 1]
    values = attacks.oracle.Oracle(attacks.cases.Case(A, np.zeros(6), 3, "css")).values(list(combinations(range(4), 3)))
    for support, (low, high) in values.items():
        S = A[:, support]
        assert low == high
        assert float(low) == pytest.approx(np.sum((A - S @ np.linalg.pinv(S) @ A) ** 2), abs=1e-11)


@pytest.mark.parametrize("seed", sample(30, 30))
def test_other_units_change_nothing_but_units(attacks, seed):
    case = attacks.cases.unscaled_case(seed)
    if case.loss in ("huber", "logistic") or case.scale:
        return
    truth = attacks.oracle.Oracle(case).truth()
    m, p = 250 if case.loss != "css" else 0, -290
    other = attacks.oracle.Oracle(attacks.cases.scaled(case, m, p)).truth()
    assert other.high == truth.high * Fraction(4) ** (p if case.loss == "css" else m)


# The judge


@pytest.fixture(params=["quadratic", "huber", "logistic", "intercept", "css"])
def right(request, attacks):
    kinds = {
        "quadratic": {}, "huber": {"loss": "huber", "delta": 1.0},
        "logistic": {"loss": "logistic", "y": np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, 1.0])},
        "intercept": {"intercept": True, "scale": True, "weights": np.arange(8.0)}, "css": {"loss": "css"},
    }  # fmt: skip
    return Right(attacks, **kinds[request.param])


def test_what_is_right_is_not_held_against_anybody(right):
    assert right.findings() == []


@pytest.mark.smoke
def test_a_lower_bound_above_the_truth_is_noticed_down_to_the_last_bit(right):
    above = math.nextafter(next_above(right.truth.high), math.inf)
    assert "lower above the truth" in right.findings(lower=above)
    assert "lower above the truth" in right.findings(lower=above * (1 + 1e-9))
    assert "lower is no number" in right.findings(lower=math.nan)


def test_an_upper_bound_below_is_noticed_down_to_the_last_bit(right):
    below = math.nextafter(next_below(right.truth.low), -math.inf)
    assert {"upper below the truth", "upper below its model"} <= {*right.findings(upper=below)}
    assert "upper below the truth" in right.findings(upper=below * (1 - 1e-9))
    assert "upper is no number" in right.findings(upper=math.nan)


@pytest.mark.smoke
def test_a_worse_model_is_noticed(right):
    if right.case.loss == "css":
        other = next(s for s in right.oracle.supports(2) if s != right.result.support)
        assert "upper below its model" in right.findings(support=other)
        cost = next_above(right.oracle.values([other])[other][0])
        assert "called optimal, but is not" in right.findings(support=other, upper=cost)
        return
    worse = dataclasses.replace(right.result.model, coef=right.result.model.coef * 1.01)
    assert "upper below its model" in right.findings(model=worse)
    honest = next_above(right.oracle.objective(worse.coef)[1])
    assert "called optimal, but is not" in right.findings(model=worse, upper=honest)
    assert "called within eps, but is not" in right.findings(model=worse, upper=honest, claim=Claim.WITHIN_EPS)
    assert right.findings(model=worse, upper=honest, claim=Claim.BOUNDED, termination=Termination.NODE_LIMIT) == []
    stopped = right.findings(model=worse, upper=honest, claim=Claim.BOUNDED, termination=Termination.GAP_CLOSED)
    assert stopped == ["stopped as gap_closed, but the model is worse"]


def test_a_model_that_breaks_the_limits_is_noticed(right):
    if right.case.loss == "css":
        assert "model breaks the limits" in right.findings(support=(0, 1, 2))
        return
    full = dataclasses.replace(right.result.model, coef=np.ones(3))
    assert "model breaks the limits" in right.findings(model=full, support=(0, 1, 2), upper=1e9)
    assert "support is not that of the coefficients" in right.findings(model=full, upper=1e9)
    broken = dataclasses.replace(right.result.model, coef=np.array([np.nan, 0.0, 0.0]))
    assert "coefficients are no numbers" in right.findings(model=broken)


def test_a_scope_excuses_what_is_out_of_it_alone(attacks):
    """Two columns a hair apart: the best models of both are huge, those of one alone are not."""
    a = np.array([1.0, 2.0, 3.0, -1.0])
    A = np.column_stack([a, a + 1e-9 * np.array([1.0, -1.0, 1.0, 1.0])])
    case = attacks.cases.Case(A, np.array([1.0, 0.0, 2.0, 5.0]), 2, "quadratic")
    oracle = attacks.oracle.Oracle(case)
    alone = min(low for low, _ in oracle.values([(0,), (1,)]).values())
    assert oracle.truth().high < alone
    assert oracle.bounded_truth() is None
    judge = attacks.judging.not_below
    above = float(oracle.truth().high) * 1.01
    assert [finding.what for finding in judge(above, oracle.truth(), oracle, "", 2)] == ["lower above the truth"]
    assert list(judge(above, oracle.truth(), oracle, "bounded models", 2)) == []
    single = oracle.truth(1)
    found = judge(float(single.high) * 1.01, single, oracle, "bounded models", 1)
    assert [finding.what for finding in found] == ["lower above the truth (in scope)"]


# The campaigns


CLEAN = (0, 2, 3, 10, 11, 12, 15, 18, 19, 21)


@pytest.mark.parametrize("seed", CLEAN)
def test_a_sample_of_solves_is_clean(attacks, seed):
    assert attacks.solves.solved(seed).findings == []


def test_every_door_is_tried_and_can_be_told_from_the_others(attacks, monkeypatch):
    """With a judge that objects to everything each door reports, under its own name."""
    objection = attacks.judging.Finding("objection", 1.0, "")
    monkeypatch.setattr(attacks.doors, "judged", lambda *_: [objection])
    counts, found = Counter(), Counter()
    for seed in range(100):
        case = attacks.cases.random_case(seed)
        if case.loss != "quadratic" or case.d > 4 or "wild" in case.kind or "units" in case.kind:
            continue
        outcome = attacks.solves.solved(seed)
        counts.update(outcome.counts)
        found.update(finding.what for finding in outcome.findings)
    doors = {name for name in ("path", "near", "certify", "heuristic", "estimator") if counts[f"through {name}"]}
    assert len(doors) >= 3
    assert all(found[f"{name}: objection"] for name in doors)


def test_a_missing_model_and_one_too_many_are_noticed(attacks, monkeypatch):
    case = made(attacks, lam=0.5)
    oracle = attacks.oracle.Oracle(case)
    truth, problem, rng = oracle.truth(), case.problem(), np.random.default_rng(1)
    values = sorted((low, support) for support, (low, _) in oracle.values(oracle.supports(2)).items())
    near = exactsel.near_optimal

    def altered(change, problem, *, tau, **options):
        honest = near(problem, tau=tau, **options)
        models = [(s, next_above(low)) for low, s in values if low <= truth.low + Fraction(tau)]
        listed = [exactsel.studies.solution_pool.NearModel(*model) for model in models]
        return dataclasses.replace(honest, models=tuple(change(listed)))

    for change, what in (
        (lambda listed: listed, None),
        (lambda listed: listed[1:], "a model is missing"),
        (lambda listed: [dataclasses.replace(listed[0], value=float(truth.low) * 0.99), *listed[1:]],
         "value below the truth"),
        (lambda listed: [*listed, exactsel.studies.solution_pool.NearModel((0,), 1e9)],
         "lists a model that is not admissible"),
    ):  # fmt: skip
        monkeypatch.setattr(exactsel, "near_optimal", partial(altered, change))
        found = {finding.what for finding in attacks.doors.through_near(rng, case, problem, oracle, truth)}
        ours = {name for name in found if "upper" not in name}
        assert ours == ({what} if what else set())


def test_units_that_change_anything_are_noticed(attacks):
    case = made(attacks)
    first = solve(case.problem(), threads=1, signals=())
    second = dataclasses.replace(
        first, upper=math.ldexp(first.upper, 40), lower=math.ldexp(first.lower, 40),
        model=dataclasses.replace(first.model, coef=np.ldexp(first.model.coef, 20 - 7)),
    )  # fmt: skip

    def differing(**changes):
        result = dataclasses.replace(second, **changes)
        return {finding.what for finding in attacks.units.differences(case, first, result, 20, 7, 40)}

    assert differing() - {"gap differs"} == set()
    assert "upper differs" in differing(upper=math.nextafter(second.upper, math.inf))
    assert "lower differs" in differing(lower=math.nextafter(second.lower, -math.inf))
    assert "coefficients differ" in differing(model=dataclasses.replace(second.model, coef=first.model.coef))
    assert "nodes differs" in differing(nodes=first.nodes + 1)
    assert "claim differs" in differing(claim=Claim.BOUNDED)
    assert "tree_hash differs" in differing(tree_hash="")


def test_a_proof_that_is_rejected_and_one_that_is_untrue_are_noticed(attacks, monkeypatch):
    assert attacks.honest.checked(9).findings == []
    verify = exactsel.verify
    monkeypatch.setattr(exactsel, "verify", lambda *given: dataclasses.replace(verify(*given), verified=False))
    assert [finding.what for finding in attacks.honest.checked(9).findings] == ["rejected, quadratic"]
    monkeypatch.setattr(exactsel, "verify", lambda *given: dataclasses.replace(verify(*given), lower=1e9))
    assert [finding.what for finding in attacks.honest.checked(9).findings] == ["untrue"]


def test_a_false_accept_is_noticed(attacks):
    truth = attacks.oracle.Truth(Fraction(1), Fraction(1))
    untrue = partial(attacks.mutants.untrue, "false accept")
    assert untrue(1.0, 1.0, truth) == []
    assert untrue(-math.inf, math.inf, truth) == []
    assert len(untrue(math.nextafter(1.0, 2.0), 1.0, truth)) == 1
    assert len(untrue(0.0, math.nextafter(1.0, 0.0), truth)) == 1


def test_a_forged_problem_that_is_accepted_is_noticed(attacks, monkeypatch):
    from exactsel_certificates import checking

    case = made(attacks, loss="huber", delta=1.0)
    sound = exactsel.proofs.writer.instance_of(case.problem())
    forged = dict(attacks.forgeries.forgeries(np.random.default_rng(0), sound))
    assert {"lam is -1.0", "delta is 0.0", "a weight is nan", "no weight at all", "k is 4"} <= {*forged}
    proof = SimpleNamespace(lower=1.0, upper=2.0, problem_hash="")
    answers = {
        "accepts": lambda *_, **__: SimpleNamespace(verified=True, problem_hash="", claimed_lower=1.0),
        "rejects": lambda *_, **__: SimpleNamespace(verified=False, problem_hash=""),
        "breaks": lambda *_, **__: 1 // 0,
    }
    found = {}
    for name, answer in answers.items():
        monkeypatch.setattr(checking, "verify", answer)
        outcome = attacks.running.Outcome(0)
        attacks.forgeries._ask("lam is -1.0", sound, proof, outcome)
        found[name] = [what for what, _, _ in outcome.findings]
    assert found == {"accepts": ["accepted: lam is -1.0"], "rejects": [], "breaks": ["exception ZeroDivisionError"]}


def test_exceptions_and_dead_processes_are_findings(attacks):
    outcome = attacks.running.guarded(len, 0)  # a number has no length
    assert outcome.findings[0][0].startswith("exception TypeError")
    died = list(attacks.running.outcomes(os._exit, [3, 4], 2))
    assert {finding[0] for outcome in died for finding in outcome.findings} == {"the process died"}
    assert sorted(outcome.seed for outcome in died) == [3, 4]


@pytest.mark.parametrize("name", ["solves", "units", "proofs", "mutants", "forged"])
def test_the_commands_write_their_tables(attacks, name, tmp_path):
    log = tmp_path / "found.jsonl"
    result = CliRunner().invoke(attacks.commands.main, [name, "--count", "2", "--processes", "1", "--log", str(log)])
    assert result.exit_code in (0, 1), result.output
    assert f"### {name}: " in result.output
    assert (result.exit_code == 1) == bool(log.read_text(encoding="utf-8"))
    told = CliRunner().invoke(attacks.commands.main, [name, "--only", "2"], catch_exceptions=False)
    assert told.exit_code == 0
    assert "Case(" in told.output
