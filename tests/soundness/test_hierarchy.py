"""Searches under a hierarchy: against all sets of units, proven, and through every door."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner

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
    write_report,
)
from exactsel.cli.main import cli


def admissible(parents, kind, chosen):
    enough = all if kind == "strong" else any
    return all(not parents.get(j) or enough(i in chosen for i in parents[j]) for j in chosen)


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
            assert "constraint is 'strong', but 'none' was given" in run.invoke(cli, ["verify", proof, file]).stdout
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
            Problem(A, y, 1, lam=0.1, feature_names=names, hierarchy={"a*b": "a"}, force_in=["a*b"])

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
        assert "that the constraints allow" in page
        assert "strong hierarchy" in str(result)
        assert all(status != "open" for _, status in result.tree().nodes(data="status"))
