"""Paths over sizes and ridge weights: the same answers as one by one, with less work."""

from __future__ import annotations

import io
import json
import re
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from exactsel import ColumnSubsetProblem, Problem, ProgressLog, boxed, solve, solve_path
from exactsel.cli.main import cli
from exactsel.errors import InputError
from exactsel.observers.terminal import fitting, terminal_width
from exactsel.problem.objective import Objective
from exactsel.report.path import path_table
from exactsel.studies.criteria import Compared


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((40, 9)) + rng.standard_normal((40, 1))
    return Problem(A, A @ rng.standard_normal(9) + rng.standard_normal(40), 5, lam=0.1, feature_names=list("abcdefghi"))


def best_of(problem):
    return min(problem.fit(c).value for c in combinations(range(problem.d), problem.k))


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_every_point_is_what_solve_proves(problem, loss):
    problem = problem.replace(loss=loss)
    path = solve_path(problem, lams=[0.1, 1.0])
    assert [(r.problem["lam"], r.problem["k"]) for r in path.results] == [
        (v, k) for v in (1.0, 0.1) for k in range(1, 6)
    ]
    assert path.reached
    for result in path.results:
        alone = problem.replace(k=result.problem["k"], lam=result.problem["lam"])
        assert result.problem["problem_hash"] == alone.hash
        assert result.upper == pytest.approx(best_of(alone), rel=1e-8)
        assert result.lower <= best_of(alone) + 1e-9


def test_objectives_fall_with_the_size(problem):
    values = [result.upper for result in solve_path(problem).results]
    assert values == sorted(values, reverse=True)


def test_column_subset_selection():
    problem = ColumnSubsetProblem(np.random.default_rng(3).standard_normal((9, 6)), 3)
    path = solve_path(problem)
    assert [result.problem["k"] for result in path.results] == [1, 2, 3]
    assert path.results[-1].upper == pytest.approx(solve(problem).upper)
    with pytest.raises(InputError, match="has no lam"):
        solve_path(problem, lams=[1.0])


def test_what_depends_on_the_data_alone_is_shared(problem):
    gram = problem.gram
    other = problem.replace(k=2, lam=3.0)
    assert other.gram is gram
    assert boxed(problem, positive=[0]).gram is gram
    assert other.AT is problem.AT
    assert (other.k, other.lam) == (2, 3.0)
    assert other.hash != problem.hash
    solve(problem)
    kept = dict(problem.shared)
    assert kept
    solve(problem.replace(k=3))
    assert {key: id(value) for key, value in problem.shared.items()} == {key: id(value) for key, value in kept.items()}


def test_a_path_works_out_once_what_depends_on_the_data_alone(problem, monkeypatch):
    made = []
    gram = Objective.__dict__["gram"]
    original = gram.function

    def counted(objective):
        made.append(objective.lam)
        return original(objective)

    monkeypatch.setattr(gram, "function", counted)
    solve_path(problem.replace(), threads=1)
    assert len(made) == 1


def test_a_replaced_column_subset_problem_keeps_its_matrix():
    problem = ColumnSubsetProblem(np.random.default_rng(3).standard_normal((9, 6)), 3)
    gram, other = problem.objective.gram, problem.replace(k=2, feature_names=list("abcdef"))
    assert other.objective.gram is gram
    assert other.AT is problem.AT
    assert (other.k, other.d, other.n, other.feature_names) == (2, 6, 9, tuple("abcdef"))
    assert other.hash == ColumnSubsetProblem(problem.A, 2).hash
    assert problem.replace().feature_names is None
    with pytest.raises(TypeError, match="loss"):
        problem.replace(loss="huber")
    with pytest.raises(AttributeError, match="frozen"):
        other.k = 3


def test_sizes_can_be_chosen(problem):
    assert [r.problem["k"] for r in solve_path(problem, ks=[4, 2, 2]).results] == [2, 4]
    with pytest.raises(InputError, match="no sizes"):
        solve_path(problem, ks=[])


class TestCommandLine:
    def call(self, *arguments):
        return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)

    @pytest.fixture
    def file(self, tmp_path, problem):
        np.savez(tmp_path / "data.npz", A=problem.A, y=problem.y, lam=0.1, feature_names=np.array(list("abcdefghi")))
        return str(tmp_path / "data.npz")

    def test_table(self, file):
        called = self.call("path", file, "--k-max", "3")
        lines = called.stdout.splitlines()
        assert called.return_value == 0
        assert lines[0].split()[:3] == ["k", "lam", "objective"]
        assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]

    def test_json(self, file):
        plain = json.loads(self.call("path", file, "--ks", "2,4", "--lams", "1,0.1", "--json").stdout)
        assert [(r["lam"], r["k"]) for r in plain["results"]] == [(1.0, 2), (1.0, 4), (0.1, 2), (0.1, 4)]

    def test_what_is_wrong(self, file):
        for arguments, said in (
            (("--k-max", "3", "--ks", "1"), "give one of them"),
            (("--ks", "one"), "no list of numbers"),
        ):
            with pytest.raises(InputError, match=said):
                self.call("path", file, *arguments)


class TestNear:
    """The models close to the best of every size."""

    def test_against_every_support(self, problem):
        path = solve_path(problem, ks=[1, 3, 4], near=0.05)
        assert path.complete
        for result, near in zip(path.results, path.near, strict=True):
            values = {
                s: problem.replace(k=result.problem["k"]).fit(s).value
                for s in combinations(range(problem.d), result.problem["k"])
            }
            close = {s for s, value in values.items() if value <= 1.05 * min(values.values())}
            assert {model.support for model in near.models} == close
            assert near.in_every == tuple(sorted(set.intersection(*map(set, close))))
        plain = json.loads(path.to_json())
        assert plain["near_share"] == 0.05
        assert [len(row["near"]["models"]) for row in plain["results"]] == [len(near.models) for near in path.near]
        assert "near" not in json.loads(solve_path(problem, ks=[2]).to_json())["results"][0]

    def test_a_list_cut_short_says_so(self, problem):
        path = solve_path(problem, ks=[2, 3], near=10.0, cap=5)
        assert not path.complete
        assert {near.termination for near in path.near} == {"cap"}
        assert path.reached

    def test_no_time_for_a_list(self, problem):
        path = solve_path(problem, ks=[2], near=0.1, time_limit=0.0)
        assert not path.complete
        assert path.near[0].in_every is None

    @pytest.mark.parametrize("options", [{"near": -0.1}, {"near": np.nan}, {"near": 0.1, "cap": 0}])
    def test_what_is_refused(self, problem, options):
        with pytest.raises(InputError, match=r"near is .* expected|raise cap"):
            solve_path(problem, **options)

    def test_the_command(self, problem, tmp_path):
        file = tmp_path / "p.npz"
        np.savez(file, A=problem.A, y=problem.y, lam=0.1, feature_names=np.array(problem.feature_names))
        run = CliRunner().invoke(cli, ["path", str(file), "--k-max", "3", "--near", "0.05"], standalone_mode=False)
        assert run.return_value == 0
        expected = solve_path(problem, ks=[1, 2, 3], near=0.05).near
        rows = run.stdout[run.stdout.index("sets features") :].splitlines()[1:4]
        assert [row.split()[:2] for row in rows] == [[str(k), str(len(n.models))] for k, n in enumerate(expected, 1)]
        cut = ["path", str(file), "--k-max", "3", "--near", "5", "--cap", "4", "--json"]
        run = CliRunner().invoke(cli, cut, standalone_mode=False)
        assert run.return_value == 1
        assert not json.loads(run.stdout)["results"][2]["near"]["complete"]
        shown = CliRunner().invoke(cli, cut[:-1], standalone_mode=False).stdout
        assert "INCOMPLETE (cap)" in shown


class TestNarrowTerminals:
    @pytest.mark.parametrize("width", [30, 60, 80, 200, None])
    def test_the_table_fits_and_says_what_it_leaves_out(self, problem, width):
        compared = Compared(solve_path(problem))
        lines = path_table(compared, width).splitlines()
        table = lines[: 1 + len(compared.path.results)]
        assert len({line.index(line.split("  ")[-1]) for line in table}) <= 2  # supports stand below each other
        assert all(name in table[0].split() for name in ("k", "objective", "support"))
        told = next((line for line in lines if "narrow terminal" in line), "")
        for name in ("lam", "gap", "claim", "nodes", "time", "AIC", "BIC", "EBIC"):
            assert (name in table[0].split()) != (name in re.findall(r"\w+", told))
        assert bool(told) == (width is not None and width < 150)
        if width is not None and width >= 60:
            assert len(table[0]) <= width

    def test_the_least_important_go_first(self):
        widths = {"a": 5, "b": 5, "c": 5}
        assert fitting(widths, ["b", "a"], None) == fitting(widths, ["b", "a"], 18) == ["a", "b", "c"]
        assert fitting(widths, ["b", "a"], 17) == ["a", "c"]
        assert fitting(widths, ["b", "a"], 1) == ["c"]

    def test_only_a_terminal_has_a_width(self, tmp_path):
        assert terminal_width(io.StringIO()) is None
        with (tmp_path / "file").open("w") as file:
            assert terminal_width(file) is None

    def test_the_progress_table(self, problem, monkeypatch):
        monkeypatch.setattr("exactsel.observers.log.terminal_width", lambda stream: 60)
        stream = io.StringIO()
        solve(problem, callback=ProgressLog(stream))
        lines = stream.getvalue().splitlines()
        assert lines[0].split() == ["lower", "upper", "gap", "time"]
        assert max(map(len, lines)) <= 60


def test_a_table_that_names_no_size_has_ten(tmp_path):
    rng = np.random.default_rng(4)
    for d, last in ((12, 10), (3, 3)):
        file, A = tmp_path / f"{d}.csv", rng.normal(size=(40, d))
        header = ",".join([*(f"x{j}" for j in range(d)), "y"])
        np.savetxt(file, np.column_stack([A, A[:, 0]]), delimiter=",", header=header, comments="")
        found = CliRunner().invoke(cli, ["path", str(file), "--json", "--loss", "quadratic", "--lam", "1"])
        assert found.exit_code == 0
        assert "more than" not in found.stderr
        assert [result["k"] for result in json.loads(found.stdout)["results"]] == list(range(1, last + 1))
