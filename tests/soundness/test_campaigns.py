"""The campaigns: a sample of each, and above all that they find what is wrong: bugs are planted, and must show."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from equal_instances import same
from samples import many, sample

from exactsel._jit import interpreting
from exactsel.cli.main import main
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.preparing import Preparation
from exactsel.problem.regression import Problem
from exactsel.search import engine
from exactsel.search.frontier import BestFirst, DepthFirst
from exactsel.solving import solver
from exactsel.solving.outcome import Claim
from exactsel.testing.failing import smaller, still_fails
from exactsel.testing.instances import TinyInstance
from exactsel.testing.reducing import reduced
from exactsel.testing.reproducers import read_reproducer
from exactsel_dev.campaigns import changes, processes, trials
from exactsel_dev.campaigns.campaign import run_campaign
from exactsel_dev.campaigns.peers import known_peers
from exactsel_dev.campaigns.random_instances import random_instance
from exactsel_dev.campaigns.relations import RELATIONS
from exactsel_dev.campaigns.trials import BRUTE_FORCE, METAMORPHIC, PEERS, Trial

CHUNK = 20
"""Seeds of one test."""


def seeds(chunk):
    return {"first": 1_000_000 + CHUNK * chunk, "count": CHUNK}


def found(kind, first=0, count=200):
    """The classes a campaign finds, none of which is an exception."""
    wrong = run_campaign(Trial(kind), first, count).wrong
    return {what: [seed for seed, _ in those] for what, those in wrong.items()}


def finds(kind, *classes, count=200):
    """Whether a campaign of so many seeds finds each of these classes; it ends once it has."""
    left = {*classes}
    for first in range(0, count, 10):
        left -= {*found(kind, first, 10)}
        if not left:
            return True
    return False


# Samples


@pytest.mark.parametrize("chunk", sample(12, 100, smoke=1))
def test_brute_force(chunk):
    assert run_campaign(Trial(BRUTE_FORCE), **seeds(chunk)).wrong == {}


@pytest.mark.parametrize("chunk", sample(10, 60, smoke=1))
def test_metamorphic(chunk):
    assert run_campaign(Trial(METAMORPHIC), **seeds(chunk)).wrong == {}


@pytest.mark.parametrize("name", RELATIONS)
def test_every_relation_is_tried(name):
    at = list(RELATIONS).index(name)
    tried = [run_campaign(Trial(METAMORPHIC), at + len(RELATIONS) * turn, 1) for turn in range(6)]
    assert sum(summary.tried for summary in tried) >= 2
    assert all(summary.wrong == {} for summary in tried)


@pytest.mark.parametrize("peer", known_peers())
def test_peers_do_not_contradict(peer):
    why = known_peers()[peer].missing()
    if why:
        assert why.endswith(".")
        pytest.skip(why)
    summary = run_campaign(Trial(PEERS, peer), 0, 12)
    assert summary.wrong == {}
    assert summary.tried > 0


# Planted bugs


def lifted(tighten, share):
    """A bound that says more than it may."""

    def lift(self, *arguments, **named):
        answer = tighten(self, *arguments, **named)
        values = answer.answers.bound
        values[np.isfinite(values)] *= 1 + share
        return answer

    return lift


@pytest.fixture
def high_bound(monkeypatch):
    """Every bound of a relaxation 1e-3 too high; kernels are interpreted, as compiled searches need fewer of these."""
    from exactsel.bounds import apg, fit

    monkeypatch.setattr(interpreting, "CHOOSES", True)
    monkeypatch.setattr(interpreting.allowance, "left", 10**8)
    for made in (apg.PreparedPerspective, fit.PreparedFit):
        monkeypatch.setattr(made, "tighten", lifted(made.tighten, 1e-3))


@pytest.mark.untrue
def test_a_bound_that_is_too_high_is_found(high_bound):
    assert finds(BRUTE_FORCE, "lower above the optimum")


@pytest.mark.untrue
@pytest.mark.parametrize("frontier", [BestFirst, DepthFirst])
def test_a_node_that_a_frontier_loses_is_found(monkeypatch, frontier):
    take = frontier.take

    def losing(self, count):
        nodes = take(self, count)
        return nodes[:1] if len(nodes) == 2 else nodes

    monkeypatch.setattr(frontier, "take", losing)
    assert finds(BRUTE_FORCE, "InvariantError in invariants.py, check_round", count=40), "the search itself says so"
    monkeypatch.setattr(engine, "check_round", lambda state: None)
    assert finds(BRUTE_FORCE, "lower above the optimum", count=1000), "brute force does, were it silent"


@pytest.mark.untrue
def test_a_wrong_model_is_found(monkeypatch):
    of = solver.Model.of
    monkeypatch.setattr(solver.Model, "of", staticmethod(lambda problem, coef: of(problem, coef[::-1])))
    assert finds(BRUTE_FORCE, "upper below its model", "support is not that of the coefficients", count=60)


@pytest.mark.untrue
def test_a_claim_that_is_too_strong_is_found(monkeypatch):
    monkeypatch.setattr(solver, "claim_of", lambda upper, lower, tolerance: Claim.OPTIMAL)
    assert finds(BRUTE_FORCE, "claims more than its bounds")


@pytest.mark.untrue
def test_a_demand_that_is_forgotten_is_found(monkeypatch):
    prepared = Problem.prepared.__func__
    forgetting = classmethod(lambda kind, *given, **named: prepared(kind, *given, **{**named, "force_out": ()}))
    monkeypatch.setattr(Problem, "prepared", forgetting)
    assert finds(BRUTE_FORCE, "upper below the optimum", "the model breaks a demand", count=150)


@pytest.mark.untrue
def test_weights_that_are_rounded_are_found_by_relations_alone(monkeypatch):
    of = Preparation.of.__func__

    def rounded(kind, A, y, *, weights=None, **named):
        return of(kind, A, y, weights=None if weights is None else np.minimum(weights, 2.0), **named)

    monkeypatch.setattr(Preparation, "of", classmethod(rounded))
    assert finds(METAMORPHIC, "rows repeated")


@pytest.mark.untrue
def test_a_tolerance_in_units_of_its_own_is_found_by_relations_alone(monkeypatch):
    absolute = Tolerance.absolute
    monkeypatch.setattr(Tolerance, "absolute", lambda self, upper: max(1e-2, absolute(self, upper)))
    assert finds(METAMORPHIC, "other units", count=150)


def test_an_exception_is_found_and_ends_nothing(monkeypatch):
    def failing(instance):
        raise ZeroDivisionError(f"{instance.d} columns")

    monkeypatch.setattr(trials, "Truth", failing)
    wrong = run_campaign(Trial(BRUTE_FORCE), 0, 10).wrong
    assert [*wrong] == ["ZeroDivisionError in test_campaigns.py, failing"]
    assert len(*wrong.values()) > 5


def test_a_proof_that_is_rejected_is_found(monkeypatch):
    from exactsel.testing import solving

    class Rejected:
        verified = False

    monkeypatch.setattr(solving, "verify", lambda problem, file: Rejected())
    assert found(BRUTE_FORCE, count=41) == {"its own proof is rejected": [0, 20, 40]}


# The reducer


def test_the_reducer_leaves_what_fails():
    instance = replace(random_instance(3), A=np.arange(70.0).reshape(10, 7) / 8, y=np.arange(10.0) / 3, k=3)
    instance = replace(instance, loss="quadratic", lam=0.123456, weights=np.full(10, 0.7), settings={"batch": 7})
    tries = []

    def fails(one):
        tries.append(one)
        return bool(np.any(one.A == 33 / 8)) and one.k > 0

    small = reduced(instance, fails)
    assert small.A.tolist() == [[33 / 8]]
    assert (small.k, small.lam, small.settings, small.weights) == (1, 1.0, {}, None)
    assert same(reduced(instance, fails), small)
    assert reduced(instance, fails, most_tries=0) is instance


def test_the_reducer_takes_demands_away_with_their_columns():
    instance = TinyInstance(
        np.arange(24.0).reshape(4, 6), np.arange(4.0), 4, lam=1.0, groups=("a", "", "a", "b", "", "b"),
        force_in=(1,), force_out=(2,), hierarchy=((1, (0, 3)), (3, (2,))),
    )  # fmt: skip
    kept = changes.columns_in_order(instance, [3, 1, 0])
    assert kept.units == ((0,), (1,), (2,))
    assert (kept.force_in, kept.force_out, kept.hierarchy) == ((1,), (0,), ((1, (2,)),))
    small = reduced(instance, lambda one: len(one.admissible) > 2)
    assert (small.d, small.groups, small.hierarchy) == (2, None, ())


@pytest.mark.untrue
def test_a_planted_bug_comes_out_small(high_bound, tmp_path):
    summary = run_campaign(Trial(BRUTE_FORCE, out=str(tmp_path)), 0, many(20, 60))
    assert summary.faults == len(summary.files) > 0
    for name in summary.files:
        kept = read_reproducer(Path(name))
        assert (kept.instance.n <= 4, kept.instance.d <= 3) == (True, True)
        assert still_fails(kept, kept.instance) == kept.detail
        again = smaller(kept)
        assert same(again.instance, kept.instance)
    with pytest.raises(SystemExit) as ended:
        main(["dev", "reduce", str(tmp_path)])
    assert ended.value.code == 1


WORKER = """
print("ready", flush=True)
import json, sys
for line in sys.stdin:
    if line == "1\\n":
        sys.exit(9)
    print(json.dumps({"seed": int(line), "counts": ["tried: it"], "wrong": [], "files": []}), flush=True)
"""


def test_a_process_that_dies_is_a_finding_of_its_seed(monkeypatch):
    monkeypatch.setattr(processes, "command_for", lambda trial: [sys.executable, "-c", WORKER])
    summary = run_campaign(Trial(BRUTE_FORCE), 0, 5, jobs=2)
    assert summary.wrong == {"the process died": [(1, "exit code 9")]}
    assert (summary.done, summary.counts["tried: it"]) == (5, 4)


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_campaign_can_be_ended_before_its_end(monkeypatch, jobs):
    monkeypatch.setattr(processes, "command_for", lambda trial: [sys.executable, "-c", WORKER])
    done = []
    summary = run_campaign(Trial(BRUTE_FORCE), 2, 1000, jobs, lambda *told: done.append(told), lambda: bool(done))
    assert summary.done == len(done) == 1
