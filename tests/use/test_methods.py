"""Methods run by name: certified gaps, comparison, command line, and the conformance kit for plug-in authors."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from samples import kernels_of_its_own

from exactsel import ColumnSubsetProblem, Problem, heuristics, registry, solve
from exactsel.cli.main import cli
from exactsel.data.generate import diabetes
from exactsel.errors import InputError, UnsupportedError, WrongFamilyError
from exactsel.studies.compare import NOT_REPRODUCIBLE, compare, default_methods
from exactsel.testing import check_heuristic
from exactsel.testing.cases import awkward_problems
from exactsel_heuristics.base import Context, Proposal, regression

NAMES = {
    "forward", "omp", "foba", "rfe", "iht", "htp", "dual-iht", "swap", "newton-swap", "poss", "pposs", "pposs-async",
    "islands", "greedy-rls", "lasso", "scad", "mcp", "pocss", "greedy-css", "iterative-css", "two-stage", "approx-svd",
}  # fmt: skip
SELECTING = ("pocss", "exchange", "greedy-css", "iterative-css", "two-stage", "approx-svd")


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 9)) + rng.standard_normal((30, 1))
    return Problem(A, A[:, 0] - A[:, 1] + 0.5 * A[:, 2] + rng.standard_normal(30), 3, lam=0.1)


@pytest.fixture
def columns():
    return ColumnSubsetProblem(np.random.default_rng(5).standard_normal((12, 8)), 3)


def optimum(problem):
    return min(problem.fit(c).value for c in combinations(range(problem.d), problem.k))


@pytest.mark.parametrize("name", [kernels_of_its_own(n) if n == "pposs-async" else n for n in sorted(NAMES)])
def test_every_method_passes_the_conformance_kit(name, monkeypatch):
    """On every ninth problem: they come in elevens of a size, so of all families, and for each method others."""
    some = islice(awkward_problems(), sorted(NAMES).index(name) % 9, None, 9)
    monkeypatch.setattr("exactsel.testing.heuristics.awkward_problems", lambda: some)
    check_heuristic(name, reproducible=name not in NOT_REPRODUCIBLE)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_method_passes_the_whole_conformance_kit(name):
    check_heuristic(name, reproducible=name not in NOT_REPRODUCIBLE)


def test_all_names_are_registered():
    assert set(heuristics.names()) >= NAMES
    assert {"pposs-async", "islands"}.isdisjoint(default_methods())


class TestRun:
    @pytest.mark.parametrize("name", sorted(NAMES))
    def test_the_gap_is_certified(self, name, problem, columns):
        target = columns if name in SELECTING else problem
        best = optimum(target)
        result = heuristics.run(name, target, seed=1)
        assert result.lower <= best + 1e-9
        assert result.upper >= best - 1e-9
        assert result.upper == pytest.approx(target.fit(result.support).value)
        assert result.absolute_gap == result.upper - result.lower
        assert result.method == result.source == name

    @pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
    def test_the_bound_that_is_shown_is_polished_to_the_end(self, loss):
        """As high as cvxpy's relaxation, to its accuracy, where a search would have divided the root long before."""
        rng = np.random.default_rng(6)
        A = rng.standard_normal((60, 20))
        y = A[:, :8].sum(axis=1) + 3 * rng.standard_normal(60)
        problem = Problem(A, np.sign(y) if loss == "logistic" else y, 4, loss=loss, lam=0.5)
        shown = heuristics.run("forward", problem, bound="apg")
        oracle = heuristics.run("forward", problem, bound="cvxpy")
        # The relaxation with the curvature of all columns is stronger than the oracle's, which has the ridge's.
        assert shown.lower >= oracle.lower * (1 - 1e-4)
        assert shown.lower > solve(problem, bound="apg", node_limit=1, heuristics="forward").lower

    def test_more_columns_than_rows_with_a_small_ridge_have_a_bound(self):
        rng = np.random.default_rng(0)
        A = rng.standard_normal((12, 24))
        problem = Problem(A, A[:, :3] @ [1.0, 2.0, -1.0] + 0.3 * rng.standard_normal(12), 2, lam=0.1)
        result = heuristics.run("lasso", problem)
        assert 0.0 < result.lower <= optimum(problem) * (1.0 + 1e-9)
        assert solve(problem, node_limit=1, subtrees=False).lower == 0.0  # the root's own bound says nothing

    def test_the_bound_may_be_chosen(self, problem):
        assert heuristics.run("forward", problem, bound="fit").settings["bound"] == "fit"

    def test_more_time_raises_the_bound_to_the_optimum(self, problem):
        root = heuristics.run("omp", problem)
        longer = heuristics.run("omp", problem, time_limit=30.0)
        assert root.lower < longer.lower
        assert longer.lower == pytest.approx(optimum(problem), rel=1e-5)
        assert longer.upper == root.upper

    def test_it_keeps_the_methods_own_model_and_shows_a_better_one(self):
        rng = np.random.default_rng(0)
        problem = Problem(rng.standard_normal((20, 6)), rng.standard_normal(20), 2, lam=0.1)
        worst = max(combinations(range(6), 2), key=lambda c: problem.fit(c).value)

        @dataclass(frozen=True)
        class Stubborn:
            name: ClassVar[str] = "stubborn"

            def run(self, problem, context):
                return Proposal.of(regression(problem, self.name).fit(worst).columns, 1)

        result = heuristics.run(Stubborn(), problem, time_limit=30.0)
        assert result.support == worst
        assert result.improved
        assert result.best_upper == pytest.approx(optimum(problem))
        assert result.claim == "bounded"
        assert "better       a model of objective" in str(result)

    def test_the_keys_are_those_of_solve_and_some_more(self, problem):
        from exactsel import solve

        plain = json.loads(heuristics.run("poss", problem, iterations=500).to_json())
        assert {*solve(problem).as_dict()} < {*plain}
        assert plain["method_options"]["iterations"] == 500
        assert plain["evaluations"] > 0
        assert plain["curve"][-1][1] == pytest.approx(plain["upper"], rel=1e-9)

    def test_unknown_names_and_options(self, problem):
        with pytest.raises(InputError, match="no heuristic called 'magic'"):
            heuristics.run("magic", problem)
        with pytest.raises(InputError, match="'forward' has no option 'depth'; its options are: shortlist, exhaustive"):
            heuristics.run("forward", problem, depth=3)

    def test_a_start_is_checked_and_used(self, problem):
        assert heuristics.run("swap", problem, start=[7, 8]).upper <= problem.fit([7, 8]).value
        with pytest.raises(InputError, match="names feature 9"):
            heuristics.run("swap", problem, start=[9])

    def test_the_families_do_not_mix(self, problem, columns):
        with pytest.raises(WrongFamilyError, match="such as pocss or greedy-css"):
            heuristics.run("poss", columns)
        with pytest.raises(WrongFamilyError, match="such as forward or poss"):
            heuristics.run("pocss", problem)


@pytest.mark.smoke
class TestCompare:
    def test_every_gap_refers_to_the_proven_optimum(self, problem):
        comparison = compare(problem, methods="all")
        best = optimum(problem)
        assert comparison.result.upper == pytest.approx(best)
        assert {row.method for row in comparison.rows} | {name for name, _ in comparison.left_out} == {
            *default_methods()
        } - ({*SELECTING} - {"exchange"})
        for row in comparison.rows:
            assert row.value >= best - 1e-9
            assert row.absolute_gap == pytest.approx(row.value - comparison.result.lower)
            assert row.excess == pytest.approx(row.value - best, abs=1e-9)
            assert row.shared == len({*row.support} & {*comparison.result.support})
        values = [row.value for row in comparison.rows]
        assert values == sorted(values)

    def test_column_subset_selection(self, columns):
        comparison = compare(columns, methods="all")
        assert {row.method for row in comparison.rows} == {*SELECTING}
        assert comparison.result.upper == pytest.approx(optimum(columns))

    def test_a_method_asked_for_must_serve(self, columns):
        with pytest.raises(UnsupportedError):
            compare(columns, methods=["poss"])

    def test_no_method_leaves_the_search(self, problem):
        comparison = compare(problem, methods=[])
        assert comparison.rows == ()
        assert comparison.result.reached


class TestCommandLine:
    @pytest.fixture
    def file(self, tmp_path, problem):
        np.savez(tmp_path / "data.npz", A=problem.A, y=problem.y, k=3, lam=0.1)
        return str(tmp_path / "data.npz")

    @pytest.fixture
    def matrix(self, tmp_path, columns):
        np.savez(tmp_path / "matrix.npz", A=columns.A)
        return str(tmp_path / "matrix.npz")

    def call(self, *arguments):
        return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)

    def test_heuristic(self, file):
        called = self.call("solve", file, "--method", "poss", "--set", "iterations=300", "--json", "--time-limit", "20")
        plain = json.loads(called.stdout)
        assert called.return_value == 0
        assert plain["method"] == "poss"
        assert plain["method_options"]["iterations"] == 300
        assert plain["claim"] in ("optimal", "within_eps")
        assert "method       poss" in called.stderr

    def test_heuristic_takes_a_bound(self, file):
        called = self.call("solve", file, "--method", "forward", "--bound", "supergradient", "--json", "--quiet")
        assert json.loads(called.stdout)["settings"]["bound"] == "supergradient"

    def test_heuristic_says_what_is_wrong_with_an_option(self, file):
        for given, said in (("iterations", "NAME=VALUE"), ("speed=9", "has no option 'speed'")):
            with pytest.raises(InputError, match=said):
                self.call("solve", file, "--method", "poss", "--set", given)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--proof", "p.exsel"], "--method runs no search, but --proof is given; leave it out."),
            (["--node-limit", "3"], "--method runs no search, but --node-limit is given; leave it out."),
            (["--target", "a", "--target", "b"], "--method takes one target, but several are given"),
        ],
    )
    def test_a_method_takes_no_options_of_a_search(self, file, words, said):
        with pytest.raises(InputError, match=said):
            self.call("solve", file, "--method", "omp", *words)

    def test_options_of_a_method_need_one(self, file):
        with pytest.raises(InputError, match="--set is about an approximate method, but none is given"):
            self.call("solve", file, "--set", "iterations=3")

    def test_compare(self, file):
        called = self.call("compare", file, "--heuristic", "forward,omp,poss")
        lines = called.stdout.splitlines()
        assert called.return_value == 0
        assert lines[0].split()[:3] == ["method", "objective", "gap"]
        assert {line.split()[0] for line in lines[1:4]} == {"forward", "omp", "poss"}
        assert lines[4].startswith("exact search")
        plain = json.loads(self.call("compare", file, "--heuristic", "omp", "--json").stdout)
        assert plain["methods"][0]["method"] == "omp"
        assert plain["exact"]["claim"] in ("optimal", "within_eps")

    def test_column_subset_selection(self, matrix, columns):
        called = self.call("solve", matrix, "--problem", "css", "-k", "3", "--json")
        plain = json.loads(called.stdout)
        assert called.return_value == 0
        assert plain["upper"] == pytest.approx(optimum(columns))
        assert plain["problem"] == "css"
        table = self.call("solve", matrix, "--problem", "css", "-k", "3", "--quiet").stdout.split()
        assert table == ["column", *map(str, plain["support"])]
        support = ",".join(map(str, plain["support"]))
        assert self.call("certify", matrix, "--problem", "css", "-k", "3", "--support", support).return_value == 0
        facts = json.loads(self.call("info", matrix, "--problem", "css", "-k", "3", "--json").stdout)
        assert facts["best_rank_k_error"] <= plain["upper"]
        greedy = self.call("solve", matrix, "--method", "greedy-css", "--problem", "css", "-k", "3")
        assert greedy.return_value in (0, 1)
        assert "exact search" in self.call("compare", matrix, "--problem", "css", "-k", "2").stdout

    def test_column_subset_selection_says_what_is_wrong(self, matrix, file):
        for arguments, said in (
            (("solve", matrix, "-k", "3", "--lam", "1"), "holds no target y.*--problem css"),
            (("solve", file, "--problem", "css", "--lam", "1"), "--lam is given.*leave it out"),
            (("solve", matrix, "--problem", "css"), "k, the largest number of features"),
            (("solve", matrix, "--problem", "css", "-k", "2", "--bound", "apg"), "for problems with a target"),
        ):
            with pytest.raises(InputError, match=said):
                self.call(*arguments)


class TestFeedingTheSearch:
    def test_the_log_names_the_source_of_each_incumbent(self, capfd):
        from exactsel import solve

        problem = diabetes(k=5).problem()
        found = []
        result = solve(
            problem, heuristics="omp,poss,greedy-rls",
            callback=lambda event, _: found.append(getattr(event, "source", None)),
        )  # fmt: skip
        assert [source for source in found if source][:2] == ["omp", "poss"]
        assert result.source == "poss"
        assert result.reached


class TestConformanceKit:
    """The kit finds what it promises to find."""

    def broken(self, run):
        @dataclass(frozen=True)
        class Broken:
            name: ClassVar[str] = "broken"
            state: list = field(default_factory=list)

        Broken.run = run
        return Broken()

    @pytest.mark.parametrize(
        ("run", "complaint"),
        [
            (lambda self, p, c: Proposal(tuple(range(p.k + 1)), 0), "columns, but k is"),
            (lambda self, p, c: Proposal((np.int64(0),)[: p.k], 0), "plain ints"),
            (lambda self, p, c: Proposal((0, 0)[: p.k], 0), "not ascending and distinct"),
            (lambda self, p, c: Proposal((-1,)[: p.k], 0), "do not exist"),
            (lambda self, p, c: [0], "not a Proposal"),
            (lambda self, p, c: Proposal((), -1), "-1 evaluations"),
            (lambda self, p, c: Proposal((), 0, path=(1, 1)), "repeats a column"),
            (lambda self, p, c: Proposal((), 0, path=(1,), criterion=(1.0, 2.0)), "one criterion per step"),
            (lambda self, p, c: Proposal((), 0, curve=((1, -1e9),)), "ends at"),
            (lambda self, p, c: Proposal((), 0, curve=((1, 1.0), (2, 2.0))), "curve rises"),
            (lambda self, p, c: Proposal((), 0, curve=((2, 2.0), (1, 1.0))), "goes back"),
            (lambda self, p, c: Proposal.of([np.random.randint(p.d)] * (p.k > 0), 0), "numpy's global state"),  # noqa: NPY002
            (lambda self, p, c: Proposal((), len(self.state.append(0) or self.state)), "equal seeds"),
            (lambda self, p, c: Proposal((), 9 if c.should_stop() else 0), "worked on after the stop"),
        ],
    )
    def test_complaints(self, run, complaint):
        with pytest.raises(AssertionError, match=complaint):
            check_heuristic(self.broken(run))

    def test_refusing_everything_is_not_enough(self):
        def refuse(self, problem, context):
            raise UnsupportedError("no.")

        with pytest.raises(AssertionError, match="refused every problem"):
            check_heuristic(self.broken(refuse))

    def test_an_object_that_is_no_heuristic(self):
        with pytest.raises(AssertionError, match="lacks"):
            check_heuristic(object())

    def test_a_good_plug_in_passes(self):
        @dataclass(frozen=True)
        class LargestCorrelations:
            name: ClassVar[str] = "largest-correlations"

            def run(self, problem, context: Context) -> Proposal:
                problem = regression(problem, self.name)
                scores = np.abs(problem.gradient(np.zeros(problem.d)))
                return Proposal.of(np.argsort(-scores, kind="stable")[: problem.k], evaluations=0)

        check_heuristic(LargestCorrelations())
        assert "largest-correlations" not in registry.names("heuristics")


class TestOddRequests:
    @pytest.mark.parametrize(
        ("method", "options", "said"),
        [
            ("iht", {"max_steps": "abc"}, "max_steps of the method 'iht' is 'abc', but a whole number was expected"),
            ("htp", {"lengthen": "nan"}, "but a number was expected"),
            ("rfe", {"scaled": "no"}, "but True or False was expected"),
            ("dual-iht", {"refit_every": 0}, "must be at least 1"),
            ("forward", {"shortlist": -4}, "cannot be negative"),
            ("swap", {"shortlist": 0}, "must be at least 1"),
            ("pposs", {"processors": 10**9}, "give at most 10000"),
            ("poss", {"iterations": 1.5}, "a whole number or None was expected"),
        ],
    )
    def test_options(self, method, options, said):
        with pytest.raises(InputError, match=said):
            heuristics.make(method, options)

    def test_numpy_numbers_are_numbers(self, problem):
        result = heuristics.run("poss", problem, iterations=np.int64(50))
        assert result.method_options["iterations"] == 50

    def test_objects_and_texts(self, problem):
        with pytest.raises(InputError, match="3 is no heuristic"):
            heuristics.run(3, problem)
        with pytest.raises(InputError, match="make the 'omp' object"):
            heuristics.run(heuristics.make("omp"), problem, scaled=True)
        assert [row.method for row in compare(problem, methods="omp").rows] == ["omp"]
        assert compare(problem, methods="none").rows == ()

    def test_bad_settings_are_refused_before_anything_runs(self, problem):
        with pytest.raises(InputError, match="seed is -4"):
            compare(problem, methods=["nobody-asks-me"], seed=-4)

    def test_the_package_finds_the_module(self):
        import exactsel

        assert exactsel.heuristics.run is heuristics.run
