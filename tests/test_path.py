"""Paths over sizes and ridge weights: the same answers as one by one, with less work."""

from __future__ import annotations

import json
from functools import cached_property
from itertools import combinations

import numpy as np
import pytest
from click.testing import CliRunner

from exactsel import ColumnSubsetProblem, Problem, solve, solve_path
from exactsel.cli.main import cli
from exactsel.errors import InputError


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
    original = Problem.__dict__["gram"].func
    counted = cached_property(lambda self: made.append(self.k) or original(self))
    counted.__set_name__(Problem, "gram")
    monkeypatch.setattr(Problem, "gram", counted)
    solve_path(problem.replace(), threads=1)
    assert len(made) == 1


def test_a_replaced_column_subset_problem_keeps_its_matrix():
    problem = ColumnSubsetProblem(np.random.default_rng(3).standard_normal((9, 6)), 3)
    gram, other = problem.gram, problem.replace(k=2, feature_names=list("abcdef"))
    assert other.gram is gram
    assert other.AT is problem.AT
    assert (other.k, other.d, other.n, other.feature_names) == (2, 6, 9, tuple("abcdef"))
    assert other.hash == ColumnSubsetProblem(problem.A, 2).hash
    assert problem.replace().feature_names is None
    with pytest.raises(TypeError, match="loss"):
        problem.replace(loss="huber")
    with pytest.raises(AttributeError, match="frozen"):
        other.k = 3


def test_sizes_can_be_chosen(problem):
    assert [r.problem["k"] for r in solve_path(problem, [4, 2, 2]).results] == [2, 4]
    with pytest.raises(InputError, match="no sizes"):
        solve_path(problem, [])


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
            ((), "k, the largest number"),
        ):
            with pytest.raises(InputError, match=said):
                self.call("path", file, *arguments)
