"""Limits on coefficients where groups of columns are chosen: against all sets of groups, fitted by other methods."""

from __future__ import annotations

import json

import numpy as np
import pytest
from boxed_cases import allowed_sets, smallest_on
from boxed_files import claiming
from click.testing import CliRunner
from recorded import second_opinion
from samples import kernels_of_its_own, whole

from exactsel import (
    GroupedProblem,
    InputError,
    Problem,
    UnsupportedError,
    boxed,
    cross_validate,
    heuristics,
    solve,
)
from exactsel.cli.main import cli
from exactsel.proofs.instance import instance_of
from exactsel.studies.compare import compare
from exactsel_certificates.checking import verify
from exactsel_certificates.container import parse_proof, read_proof


@pytest.mark.parametrize(
    "seed", [4, 5, *(kernels_of_its_own(seed) for seed in range(200 if whole() else 0) if seed not in (4, 5))]
)
def test_other_losses_without_a_ridge(seed, tmp_path):
    """Enough rows for every model to exist."""
    rng, loss = np.random.default_rng([seed, 103]), ("huber", "logistic", "poisson")[seed % 3]
    A = rng.standard_normal((30, 5)) * 10.0 ** rng.integers(-3, 4, 5)
    z = 0.5 * A[:, 0] / np.abs(A[:, 0]).max() + rng.standard_normal(30)
    y = {"huber": z, "poisson": rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)}.get(loss, np.sign(z))
    columns = Problem.prepared(A, y, 2, loss=loss, lam=0.0, intercept=bool(seed % 2))
    groups = GroupedProblem(columns, ["a", "a", "b", "b", None])
    problem = boxed(groups, ["b", 0] if columns.feature_names is None else "all", [(4, -0.01, 0.02)])
    best = min(smallest_on(problem, chosen) for chosen in allowed_sets(problem))
    result = solve(problem, signals=(), proof=tmp_path / "run.exsel")
    assert result.reached
    assert result.lower <= best * (1.0 + 1e-9)
    assert result.upper == pytest.approx(best, rel=1e-5)
    assert not np.any(problem.coefficient_bounds.violated(result.coef))
    instance, proof = instance_of(problem), read_proof(tmp_path / "run.exsel")
    assert verify(proof, instance).verified
    assert second_opinion(instance, (tmp_path / "run.exsel").read_bytes()) == ""
    assert not verify(parse_proof(claiming(proof, lower=best * 1.0001, upper=1e300)), instance).verified


def test_methods_and_comparisons():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 8))
    y = A[:, 0] + A[:, 1] - A[:, 4] + 0.3 * A[:, 6] + 0.1 * rng.standard_normal(40)
    groups = GroupedProblem(Problem(A, y, 2, lam=0.1), ["a", "a", "b", "b", "c", "c", "d", "d"])
    problem = boxed(groups, "all", [(1, 0.0, 0.5)])
    best = solve(problem, signals=())
    assert best.upper == pytest.approx(min(smallest_on(problem, c) for c in allowed_sets(problem)))
    for method in ("forward", "swap"):
        found = heuristics.run(method, problem)
        assert found.support == best.support
    told = compare(problem, signals=())
    assert {row.method for row in told.rows} >= {"forward", "swap"}
    for method in ("omp", "htp", "iht", "poss", "exchange", "greedy-rls", "greedy-css"):
        with pytest.raises(UnsupportedError):
            heuristics.run(method, problem)
    with pytest.raises(InputError, match="bounds"):
        boxed(groups, (), [("nowhere", 0.0, 1.0)])


def test_names_of_groups_stand_for_their_columns():
    A, y = np.random.default_rng(6).standard_normal((20, 5)), np.arange(20.0)
    names = ["u", "v", "w", "x", "z"]
    groups = GroupedProblem(Problem(A, y, 2, lam=0.5, feature_names=names), {"first": ["u", "w"], "last": ["v"]})
    assert boxed(groups, ["first", "z"]).coefficient_bounds.lower.tolist() == [0.0, -np.inf, 0.0, -np.inf, 0.0]
    bounds = boxed(groups, [1], [("x", -1.0, 2.0)]).coefficient_bounds
    assert bounds.lower.tolist() == [-np.inf, 0.0, -np.inf, -1.0, -np.inf]
    assert "at most k of 4 groups" in boxed(groups, "all").objective_text
    again = boxed(groups, "all").replace(k=1)
    assert (again.k, again.hash != boxed(groups, "all").hash) == (1, True)
    assert len({boxed(groups, "all").hash, boxed(groups.inner, "all").hash, groups.hash}) == 3


def test_cross_validation_and_estimators():
    estimators = pytest.importorskip("exactsel.sklearn")
    rng = np.random.default_rng(7)
    A = rng.standard_normal((40, 6))
    y = A @ [1.0, -1.0, 0.5, 0.4, 0.0, 0.0] + 0.3 * rng.standard_normal(40)
    labels = ["a", "a", "b", "b", "c", "c"]
    model = estimators.BestSubsetRegressor(k=1, lam=0.1, positive=True, groups=labels).fit(A, y)
    assert np.all(model.coef_ >= 0.0)
    assert {*model.support_} <= {0, 1} or {*model.support_} <= {2, 3}
    told = cross_validate(A, y, ks=[1, 2], lams=[0.5], groups=labels, nonnegative="all", cv=4, signals=())
    assert np.all(np.isfinite(told.mean))


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 6))
    y = A[:, 0] - 2.0 * A[:, 1] + 0.5 * A[:, 2] + 0.1 * rng.standard_normal(50)
    np.savez("data.npz", A=A, y=y, k=2, lam=0.5, feature_names=np.array([*"abcdef"]))
    (tmp_path / "bounds.csv").write_text("column,lower,upper\nb,-0.5,\nc,,0.25\n")
    limits = ["--groups", "g=a,b;h=c,d", "--nonnegative", "h, e", "--bounds", "bounds.csv"]
    done = CliRunner().invoke(cli, ["solve", "data.npz", *limits, "--json", "--quiet", "--proof", "p.exsel"])
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["coef"][1] == -0.5
    assert 0.0 <= answer["coef"][2] <= 0.25
    assert CliRunner().invoke(cli, ["verify", "p.exsel", "data.npz", *limits]).exit_code == 0
    assert "REJECTED" in CliRunner().invoke(cli, ["verify", "p.exsel", "data.npz", *limits[:2]]).stdout
    for command, *rest in (
        ["best"], ["path"], ["compare"], ["certify", "--support", "g"], ["solve", "--method", "forward"],
        ["best", "--criterion", "objective", "--within", "1"],
    ):  # fmt: skip
        told = CliRunner().invoke(cli, [command, "data.npz", *limits, *rest])
        assert told.exit_code == 0, (command, told.output, told.stderr, told.exception)
