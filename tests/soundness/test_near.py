"""All models close to the best, against every support; and models fitted elsewhere as candidates."""

from __future__ import annotations

import json
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from instances_for_tests import LOSSES, random_case
from make_proofs import FOLDER as PROOFS
from samples import many

import exactsel
from exactsel import Problem, certify, near_optimal
from exactsel.cli.main import cli
from exactsel.errors import InputError

TINY = 1e-8


def every_value(problem):
    return {s: problem.fit(s).value for s in combinations(range(problem.d), problem.k)}


@pytest.mark.parametrize("loss", [*LOSSES, "css"])
def test_the_list_is_what_trying_every_support_gives(loss):
    for seed in range(many(24, 40)):
        case = random_case(
            seed, loss="quadratic" if loss == "css" else loss, lam=0.0 if loss == "quadratic" and seed % 4 == 0 else 0.2
        )
        problem = exactsel.ColumnSubsetProblem(case.A, case.k) if loss == "css" else case.problem()
        values = every_value(problem)
        best = min(values.values())
        scale = max(1.0, abs(best))
        tau = float(np.random.default_rng(seed).choice([0.0, 0.01, 0.3])) * scale
        near = near_optimal(problem, tau=tau, signals=(), threads=1)
        assert near.complete
        assert near.termination == "complete"
        listed = {model.support: model.value for model in near.models}
        assert set(listed) >= {s for s, value in values.items() if value <= best + tau - TINY * scale}
        room = max(TINY * scale, 2e-12 * problem.null_objective)
        assert set(listed) <= {s for s, value in values.items() if value <= best + tau + room}
        assert near.unique == (len(listed) == 1)
        assert set(near.in_every) == set.intersection(*map(set, listed))
        assert set(near.in_none) == set(range(problem.d)) - set().union(*listed)


@pytest.mark.smoke
def test_a_list_that_is_too_long_says_so():
    problem = Problem(np.eye(8), np.ones(8), 3, lam=1.0)
    near = near_optimal(problem, tau=0.0, cap=10)
    assert (near.complete, near.termination, near.unique, near.in_every, near.in_none) == (
        False,
        "cap",
        False,
        None,
        None,
    )
    assert "INCOMPLETE" in str(near)
    whole = near_optimal(problem, tau=0.0, cap=56)
    assert len(whole.models) == 56
    assert whole.in_every == ()
    assert "there is no other" in str(whole)


def test_no_time_means_no_claim():
    near = near_optimal(Problem(np.eye(8), np.ones(8), 3, lam=1.0), tau=0.0, time_limit=0.0)
    assert not near.complete
    assert near.unique is None


@pytest.mark.parametrize("options", [{"tau": -1.0}, {"tau": np.nan}, {"tau": 0.1, "cap": 0}])
def test_bad_arguments_are_refused(options):
    with pytest.raises(InputError, match=r"tau is .* expected|raise cap"):
        near_optimal(Problem(np.eye(3), np.ones(3), 1, lam=1.0), **options)


def test_the_command():
    line = ["best", str(PROOFS / "instance.npz"), "--criterion", "objective", "--within", "5"]
    run = CliRunner().invoke(cli, [*line, "--json"], standalone_mode=False)
    assert run.return_value == 0
    assert len(json.loads(run.output)["models"]) > 1
    assert CliRunner().invoke(cli, [*line, "--cap", "1"], standalone_mode=False).return_value == 1


@pytest.mark.smoke
def test_candidates_from_elsewhere():
    problem = exactsel.load(PROOFS / "instance.npz")
    best = exactsel.solve(problem)
    coef = np.array(best.coef)
    assert certify(problem, candidate=best).claim == "optimal"
    assert certify(problem, candidate=exactsel.heuristics.run("forward", problem)).refitted
    plain = certify(problem, candidate=SimpleNamespace(coef_=coef, intercept_=0.0))
    assert not plain.refitted
    assert plain.value == pytest.approx(best.upper)
    assert not certify(problem, candidate=SimpleNamespace(coef_=coef[None, :])).refitted
    assert certify(problem, candidate=SimpleNamespace(coef_=coef * 1.5, intercept_=np.array([2.0]))).refitted
    chosen = SimpleNamespace(get_support=lambda: coef != 0)
    assert certify(problem, candidate=chosen).support == best.support
    with pytest.raises(InputError, match="have the shape"):
        certify(problem, candidate=SimpleNamespace(coef_=np.ones((2, 4))))
