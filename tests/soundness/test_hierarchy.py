"""Searches under a hierarchy: against all sets of units, proven, and through every door."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from samples import sample

from exactsel import (
    GroupedProblem,
    InputError,
    Problem,
    UnsupportedError,
    certify,
    heuristics,
    load,
    near_optimal,
    solve,
    solve_path,
    verify,
    write_report,
)
from exactsel.cli.main import cli

LOSSES = ("quadratic", "huber", "logistic")


def admissible(parents, kind, chosen):
    enough = all if kind == "strong" else any
    return all(not parents.get(j) or enough(i in chosen for i in parents[j]) for j in chosen)


def random_case(seed):
    """Data, loss, k and a hierarchy over columns or groups: ties, equal columns, no ridge, cycles, demands."""
    rng = np.random.default_rng([seed, 13])
    n, d = int(rng.integers(3, 12)), int(rng.integers(2, 8))
    A = rng.integers(-2, 3, (n, d)).astype(float) if rng.random() < 0.5 else rng.standard_normal((n, d))
    if rng.random() < 0.3:
        A[:, -1] = A[:, 0]
    loss = LOSSES[rng.integers(3)]
    y = 2.0 * rng.standard_normal(n)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    lam = float(rng.choice([0.0, 0.1, 1.0])) if loss == "quadratic" else 0.3
    groups = (np.arange(d) // 2).tolist() if rng.random() < 0.25 and lam > 0 else None
    units = d if groups is None else max(groups) + 1
    parents = {}
    for j in range(units):
        others = [i for i in range(units) if i != j]
        if others and rng.random() < 0.5:
            parents[j] = rng.choice(others, min(len(others), int(rng.integers(1, 4))), replace=False).tolist()
    kind = ("strong", "weak")[rng.integers(2)]
    k = int(rng.integers(0, units + 1))
    must_have = [int(rng.integers(units))] if rng.random() < 0.2 and k > 0 else []
    must_not = [int(rng.integers(units))] if rng.random() < 0.2 and not must_have else []
    return A, y, k, {
        "loss": loss, "lam": lam, "groups": groups, "hierarchy": parents, "hierarchy_kind": kind,
        "must_have": must_have, "must_not": must_not,
    }  # fmt: skip


def allowed_sets(k, options, units):
    for size in range(k + 1):
        for chosen in itertools.combinations(range(units), size):
            held = set(chosen)
            demanded = held >= {*options["must_have"]} and not held & {*options["must_not"]}
            if demanded and admissible(options["hierarchy"], options["hierarchy_kind"], held):
                yield chosen


@pytest.mark.parametrize("seed", sample(150, 3000, smoke=10))
def test_the_best_admissible_model_is_found_and_proven(seed, tmp_path):
    A, y, k, options = random_case(seed)
    units = A.shape[1] if options["groups"] is None else max(options["groups"]) + 1
    sets = list(allowed_sets(k, options, units))
    if not sets:
        with pytest.raises(InputError, match="demanded"):
            Problem(A, y, k, **options)
        return
    problem = Problem(A, y, k, **options)
    best = min(problem.fit(chosen).value for chosen in sets)
    search = {} if seed % 3 else {"heuristics": (), "batch": 1}
    result = solve(problem, proof=tmp_path / "run.exsel", signals=(), **search)
    off = 1e-7 * max(1.0, problem.null_objective)
    assert result.upper <= best + off
    assert result.lower <= best + 1e-9 * max(1.0, problem.null_objective)
    if not result.scope:
        assert result.upper >= best - off
    assert result.reached
    assert any({*result.support} <= {*chosen} for chosen in sets)
    assert verify(problem, tmp_path / "run.exsel").verified


def interactions(n=60, seed=0):
    rng = np.random.default_rng(seed)
    main = rng.standard_normal((n, 4))
    pairs = list(itertools.combinations(range(4), 2))
    A = np.column_stack([main, *(main[:, i] * main[:, j] for i, j in pairs)])
    names = [*"abcd", *("abcd"[i] + "*" + "abcd"[j] for i, j in pairs)]
    y = A[:, 0] + 3.0 * A[:, 4] - 2.0 * A[:, 9] + 0.3 * rng.standard_normal(n)
    return A, y, names


def write(path, A, y, names):
    np.savez(path, A=A, y=y, k=5, lam=0.1, feature_names=np.array(names))
    return str(path)


class TestDoors:
    @pytest.mark.smoke
    def test_the_command_line(self, tmp_path):
        """Solve by the names of the columns and by a file, and check the proof with both commands of the checkers."""
        file = write(tmp_path / "data.npz", *interactions())
        lines = tmp_path / "pairs.txt"
        pairs = [f"{name}: {', '.join(name.split('*'))}" for name in interactions()[2][4:]]
        lines.write_text("\n".join(["# interactions", *pairs]))
        run = CliRunner()
        answers = []
        for given in ("names", str(lines)):
            proof = str(tmp_path / "run.exsel")
            done = run.invoke(cli, ["solve", file, "--hierarchy", given, "--json", "--quiet", "--proof", proof])
            assert done.exit_code == 0, done.output
            answers.append(json.loads(done.stdout))
            assert "VERIFIED" in run.invoke(cli, ["verify", proof, file, "--hierarchy", given]).stdout
            assert "hierarchy is 'strong', not None" in run.invoke(cli, ["verify", proof, file]).stdout
        first, second = answers
        assert first["support"] == second["support"]
        assert first["hierarchy"] == second["hierarchy"]
        assert first["hierarchy"]["kind"] == "strong"
        chosen = {*first["feature_names"]}
        assert all({*name.split("*")} <= chosen for name in chosen if "*" in name)

    def test_weak_is_between_strong_and_free(self, tmp_path):
        A, y, names = interactions()
        spec = {name: name.split("*") for name in names[4:]}
        free, weak, strong = (
            solve(Problem(A, y, 4, lam=0.1, feature_names=names, **kind), signals=()).upper
            for kind in ({}, {"hierarchy": spec, "hierarchy_kind": "weak"}, {"hierarchy": spec})
        )
        assert free <= weak + 1e-9
        assert weak <= strong + 1e-9
        assert free < strong

    def test_near_paths_heuristics_and_certificates_keep_to_it(self):
        A, y, names = interactions(30, 1)
        spec = {name: name.split("*") for name in names[4:]}
        problem = Problem(A, y, 4, lam=0.1, feature_names=names, hierarchy=spec)
        options = {"hierarchy": {4 + t: [i, j] for t, (i, j) in enumerate(itertools.combinations(range(4), 2))}}
        sets = [
            c for c in itertools.combinations(range(10), 4) if admissible(options["hierarchy"], "strong", {*c})
        ]  # fmt: skip
        values = {c: problem.fit(c).value for c in sets}
        best = min(values.values())
        near = near_optimal(problem, tau=0.2 * best, signals=())
        assert {m.support for m in near.models} == {c for c, value in values.items() if value <= 1.2 * best}
        path = solve_path(problem, signals=())
        for result in path.results:
            completed = problem.units.completed(result.support, result.problem["k"])
            assert completed is not None
        found = heuristics.run("forward", problem)
        assert problem.units.completed(found.support, 4) is not None
        assert certify(problem, support=["a", "b", "a*b"], signals=()).value >= best - 1e-9
        with pytest.raises(InputError, match="strong hierarchy"):
            certify(problem, support=["a*b", "c*d"])

    def test_groups_under_a_hierarchy(self):
        A, y, names = interactions(40, 2)
        groups = {"main": ["a", "b"], "pairs": ["a*b", "c*d"]}
        problem = GroupedProblem(
            Problem(A, y, 2, lam=0.1, feature_names=names), groups, hierarchy={"pairs": "main"}
        )  # fmt: skip
        units = {name: g for g, name in enumerate(problem.feature_names)}
        sets = [c for r in range(3) for c in itertools.combinations(range(problem.d), r)]
        sets = [c for c in sets if units["pairs"] not in c or units["main"] in c]
        result = solve(problem, signals=())
        assert result.upper == pytest.approx(min(problem.fit(c).value for c in sets), rel=1e-9)

    def test_what_cannot_serve_it_says_so(self):
        A, y, names = interactions()
        problem = Problem(A, y, 3, lam=0.1, feature_names=names, hierarchy={"a*b": "a"})
        with pytest.raises(UnsupportedError, match=r"use tree=.binary."):
            solve(problem, tree="state-space", bound="pdal")
        assert Problem(A, y, 3, lam=0.1, hierarchy={3: []}).hash == Problem(A, y, 3, lam=0.1).hash
        for spec, words in (({"a*b": "e"}, "called that"), ({"a": "a"}, "own parent")):
            with pytest.raises(InputError, match=words):
                Problem(A, y, 3, lam=0.1, feature_names=names, hierarchy=spec)
        with pytest.raises(InputError, match="demanded"):
            Problem(A, y, 1, lam=0.1, feature_names=names, hierarchy={"a*b": "a"}, must_have=["a*b"])

    def test_a_file_may_hold_it(self, tmp_path):
        A, y, names = interactions()
        np.savez(
            tmp_path / "data.npz", A=A, y=y, k=3, lam=0.1, feature_names=np.array(names),
            hierarchy=np.array(["weak", "a*b: a, b"]),
        )  # fmt: skip
        problem = load(tmp_path / "data.npz")
        assert problem.describe()["hierarchy"] == {"kind": "weak", "parents": [[4, [0, 1]]]}
        with pytest.raises(InputError, match="hierarchy of all its columns"):
            load(tmp_path / "data.npz", drop=["a"])
        changed = load(tmp_path / "data.npz", hierarchy={"c*d": ["c", "d"]})
        assert changed.hash != problem.hash
        assert changed.describe()["hierarchy"]["kind"] == "strong"

    @pytest.mark.parametrize("kind", ["strong", "weak"])
    def test_estimators(self, kind):
        estimators = pytest.importorskip("exactsel.sklearn")
        A, y, names = interactions()
        spec = {j: [names.index(part) for part in names[j].split("*")] for j in range(4, 10)}
        fitted = estimators.BestSubsetRegressor(k=4, lam=0.1, hierarchy=spec, hierarchy_kind=kind).fit(A, y)
        same = Problem.prepared(A, y, 4, lam=0.1, intercept=True, hierarchy=spec, hierarchy_kind=kind)
        assert fitted.objective_ == solve(same, signals=()).upper
        assert fitted.result_.problem["hierarchy"]["kind"] == kind
        assert same.units.completed(fitted.support_, 4) is not None

    def test_the_report_says_it(self, tmp_path):
        A, y, names = interactions()
        problem = Problem(A, y, 4, lam=0.1, feature_names=names, hierarchy={"a*b": ["a", "b"], "c*d": "d"})
        result = solve(problem, signals=(), record=True)
        write_report(tmp_path / "page.html", result, problem, signals=())
        page = (tmp_path / "page.html").read_text()
        assert "strong hierarchy: a*b (4) only with a (0) and b (1), c*d (9) only with d (3)" in page
        assert "that the demands allow" in page
        assert "strong hierarchy" in str(result)
        assert all(status != "open" for _, status in result.tree().nodes(data="status"))
