"""Limits on coefficients where groups of columns are chosen: against all sets of groups, fitted by other methods."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from boxed_files import claiming, relations_of
from boxed_group_cases import allowed_groups, curved_grouped_case, grouped_case, smallest_on_groups
from click.testing import CliRunner
from recorded import second_opinion
from samples import sample

from exactsel import (
    GroupedProblem,
    InputError,
    Problem,
    UnsupportedError,
    best_model,
    boxed,
    certify,
    cross_validate,
    heuristics,
    near_optimal,
    solve,
    solve_path,
)
from exactsel.cli.main import cli
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.proofs.instance import instance_of
from exactsel.studies.compare import compare
from exactsel.studies.size_criterion import SizeCriterion
from exactsel_certificates.checking import verify
from exactsel_certificates.container import parse_proof, read_proof
from exactsel_certificates.formula import Box


def look_at(problem, file):
    """Search, hold the answer against all sets of groups, and the proof against both checkers."""
    best = min(smallest_on_groups(problem, chosen) for chosen in allowed_groups(problem))
    scale = max(1.0, problem.null_objective) if problem.lam > 0.0 else problem.null_objective
    result = solve(problem, signals=(), proof=file)
    assert result.reached
    assert result.lower <= best + 1e-9 * scale
    assert result.upper == pytest.approx(best, abs=1e-6 * scale)
    assert not np.any(problem.outside(result.coef))
    assert len(problem.units.units_of(np.flatnonzero(result.coef))) <= problem.k
    instance, proof = instance_of(problem), read_proof(file)
    verdict = verify(proof, instance)
    assert verdict.verified, verdict.reason
    small = instance.A.size < 60
    assert not small or second_opinion(instance, file.read_bytes(), **relations_of(instance)) == ""
    raised = claiming(proof, lower=best * (1.0 + 1e-6) + 1e-6 * scale, upper=1e300)
    assert not verify(parse_proof(raised), instance).verified
    assert not small or second_opinion(instance, raised, **relations_of(instance)) not in ("", "another problem")
    wider = replace(instance, box=Box(2.0 * instance.box.lower - 1.0, instance.box.upper))
    assert not verify(proof, wider).verified


@pytest.mark.parametrize("seed", sample(40, 2000, smoke=4))
def test_the_best_groups_within_limits_are_found(seed, tmp_path):
    look_at(grouped_case(seed), tmp_path / "run.exsel")


@pytest.mark.parametrize("seed", sample(24, 1000, smoke=2))
def test_without_a_ridge_on_independent_columns(seed, tmp_path):
    look_at(curved_grouped_case(seed), tmp_path / "run.exsel")


@pytest.mark.parametrize("seed", sample(12, 200))
def test_other_losses_without_a_ridge(seed, tmp_path):
    """Enough rows for every model to exist."""
    rng, loss = np.random.default_rng([seed, 103]), ("huber", "logistic", "poisson")[seed % 3]
    A = rng.standard_normal((30, 5)) * 10.0 ** rng.integers(-3, 4, 5)
    z = 0.5 * A[:, 0] / np.abs(A[:, 0]).max() + rng.standard_normal(30)
    y = {"huber": z, "poisson": rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)}.get(loss, np.sign(z))
    columns = Problem.prepared(A, y, 2, loss=loss, lam=0.0, intercept=bool(seed % 2))
    groups = GroupedProblem(columns, ["a", "a", "b", "b", None])
    problem = boxed(groups, ["b", 0] if columns.feature_names is None else "all", [(4, -0.01, 0.02)])
    best = min(smallest_on_groups(problem, chosen) for chosen in allowed_groups(problem))
    result = solve(problem, signals=(), proof=tmp_path / "run.exsel")
    assert result.reached
    assert result.lower <= best * (1.0 + 1e-9)
    assert result.upper == pytest.approx(best, rel=1e-5)
    assert not np.any(problem.outside(result.coef))
    instance, proof = instance_of(problem), read_proof(tmp_path / "run.exsel")
    assert verify(proof, instance).verified
    assert second_opinion(instance, (tmp_path / "run.exsel").read_bytes()) == ""
    assert not verify(parse_proof(claiming(proof, lower=best * 1.0001, upper=1e300)), instance).verified


@pytest.mark.parametrize("seed", sample(30, 1000))
def test_no_bound_of_a_region_is_above_its_best_model(seed):
    problem, rng = grouped_case(seed), np.random.default_rng([seed, 107])
    state = rng.choice([OUT, FREE, FREE, IN], problem.d).astype(np.int8)
    inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    places = min(problem.k - inside.size, free.size)
    if places < 0:
        return
    sets = [[*inside, *free[rng.permutation(free.size)[:places]]] for _ in range(6)]
    best = min(smallest_on_groups(problem, sorted(map(int, chosen))) for chosen in sets)
    for x in (np.zeros(problem.base.d), rng.standard_normal(problem.base.d), problem.fit(sets[-1]).coef):
        assert problem.bound_at(x, state) <= best + 1e-9 * max(1.0, problem.null_objective)


@pytest.mark.parametrize("seed", sample(12, 300, smoke=1))
def test_paths_lists_certificates_and_criteria(seed):
    problem = grouped_case(seed).replace(must_have=(), must_not=())
    problem = problem.replace(k=max(1, problem.k))
    if problem.units.constraint is not None:
        return
    scale = max(1.0, problem.null_objective)
    values = {chosen: smallest_on_groups(problem, chosen) for chosen in allowed_groups(problem)}
    path = solve_path(problem, signals=())
    for result in path.results:
        best = min(value for chosen, value in values.items() if len(chosen) <= result.problem["k"])
        assert result.lower <= best + 1e-9 * scale
        assert result.upper == pytest.approx(best, abs=1e-6 * scale)
    values = {chosen: value for chosen, value in values.items() if len(chosen) == problem.k}
    tau = 0.1 * scale
    near = near_optimal(problem, tau=tau, signals=())
    listed = {model.support: model.value for model in near.models}
    assert near.complete
    for chosen, value in values.items():
        if abs(value - best - tau) > 1e-5 * scale:
            assert (chosen in listed) == (value <= best + tau)
    chosen = sorted(values)[seed % len(values)]
    certified = certify(problem, support=chosen, signals=())
    assert certified.value == pytest.approx(values[chosen], abs=1e-6 * scale)
    assert certified.value - certified.absolute_gap <= best + 1e-9 * scale


@pytest.mark.parametrize("seed", sample(10, 300, smoke=1))
def test_the_best_model_by_a_criterion(seed):
    """Of all sizes, against all sets of groups, priced by their columns."""
    problem = grouped_case(seed).replace(must_have=(), must_not=())
    problem = problem.replace(k=problem.d)
    measure = SizeCriterion.of(problem.unlimited, "custom", 1.0, 2.0)
    limit = problem.base.d if measure.largest_size() is None else measure.largest_size()
    values = {c: smallest_on_groups(problem, c) for c in allowed_groups(problem)}
    priced = {c: len(problem.units.columns_of(c)) for c in values}
    values = {c: value for c, value in values.items() if priced[c] <= limit}
    if not values or min(values.values()) < 1e-3 * problem.null_objective:
        return
    best = min(measure.value(value, priced[c]) for c, value in values.items())
    found = best_model(problem, criterion="custom", penalty=2.0, signals=())
    scale = 1.0 + abs(best)
    assert found.lower <= best + 1e-9 * scale
    assert found.value == pytest.approx(best, abs=1e-5 * scale)
    assert not np.any(problem.outside(found.result.coef))


def test_methods_and_comparisons():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 8))
    y = A[:, 0] + A[:, 1] - A[:, 4] + 0.3 * A[:, 6] + 0.1 * rng.standard_normal(40)
    groups = GroupedProblem(Problem(A, y, 2, lam=0.1), ["a", "a", "b", "b", "c", "c", "d", "d"])
    problem = boxed(groups, "all", [(1, 0.0, 0.5)])
    best = solve(problem, signals=())
    assert best.upper == pytest.approx(min(smallest_on_groups(problem, c) for c in allowed_groups(problem)))
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
    assert boxed(groups, ["first", "z"]).lower.tolist() == [0.0, -np.inf, 0.0, -np.inf, 0.0]
    assert boxed(groups, [1], [("x", -1.0, 2.0)]).lower.tolist() == [-np.inf, 0.0, -np.inf, -1.0, -np.inf]
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
    for command in ("best", "path", "near", "compare", "heuristic", "certify"):
        more = {"near": ["--tau", "1"], "heuristic": ["forward"], "certify": ["--support", "g"]}.get(command, [])
        place = more if command == "heuristic" else []
        rest = [] if command == "heuristic" else more
        told = CliRunner().invoke(cli, [command, *place, "data.npz", *limits, *rest])
        assert told.exit_code == 0, (command, told.output, told.stderr, told.exception)
