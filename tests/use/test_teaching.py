"""The comparison page and the step player: they stand alone, and what they show is what happened."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pages import checked_page

from exactsel import ColumnSubsetProblem, GroupedProblem, InputError, Problem, boxed, load, solve
from exactsel.cli.main import main as run_command_line
from exactsel.report.comparison_page import comparison_page
from exactsel.report.player import player_page
from exactsel.report.run import run_page
from exactsel.search.events import Discarded, Divided, Fixed
from exactsel.solving.plain_search import plain_search
from exactsel.studies.compare import compare
from exactsel.studies.greedy import greedy_steps
from exactsel.studies.sensitivity import surroundings

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
CLASSROOM = ["three-parts", "greedy-trap", "cancelling-pair", "mixed-signals"]
SMALL = ["greedy-trap", "twins", "outlier", "labels", "exponential-decay", "cancelling-pair", "three-parts"]


def recorded(problem, **options):
    arguments = {"record": True, "subtrees": False, "batch": 1, "heuristics": "none", "node_limit": 200, **options}
    return solve(problem, **arguments)


def steps_of(text):
    page = checked_page(text)
    opening = '<script type="application/json" id="data">'
    return page, json.loads(text.split(opening)[1].split("</script>")[0])


class TestPlayer:
    @pytest.mark.parametrize("file", SMALL)
    @pytest.mark.parametrize("tree", ["binary", "state-space"])
    def test_every_event_that_shapes_the_tree_is_a_step(self, file, tree):
        problem = load(INSTANCES / f"{file}.npz")
        result = recorded(problem, tree=tree)
        page, data = steps_of(player_page(problem, result))
        kinds = [step["kind"] for step in data["steps"]]
        for kind, event in (("cut", Discarded), ("split", Divided)):
            assert kinds.count(kind) == sum(isinstance(e, event) for e in result.events)
        assert kinds.count("fix") == sum(len(e.fixings) for e in result.events if isinstance(e, Fixed))
        assert kinds[-1] == "end"
        assert f"{result.upper:.8g}" in page.shown
        assert data["steps"][-1]["lower"] == pytest.approx(result.lower, rel=1e-12)
        assert data["steps"][-1]["upper"] == result.upper
        assert data["names"] == list(problem.feature_names)

    @pytest.mark.parametrize("file", SMALL)
    def test_regions_are_what_they_say(self, file):
        """A bound shown for S and C holds for every model in it, and children cover their parent."""
        problem = load(INSTANCES / f"{file}.npz")
        _, data = steps_of(player_page(problem, recorded(problem)))
        for step in data["steps"]:
            for shown in [step.get("shown"), *step.get("children", {}).values()]:
                if shown is None or shown["bound"] is None:
                    continue
                assert sorted(shown["S"] + shown["C"] + shown["out"]) == list(range(problem.d))
                assert shown["slots"] == problem.k - len(shown["S"])
                models = _models(shown["S"], shown["C"], shown["slots"])
                best = min(problem.fit(model).value for model in models)
                assert shown["bound"] <= best + 1e-9 * max(1.0, abs(best))

    def test_nodes_have_places_and_parents(self):
        problem = load(INSTANCES / "outlier.npz")
        _, data = steps_of(player_page(problem, recorded(problem)))
        children = {int(c): s["node"] for s in data["steps"] for c in s.get("children", {})}
        assert {node: place["parent"] for node, place in data["nodes"].items() if place["parent"] is not None} == {
            str(child): parent for child, parent in children.items()
        }
        assert len({(place["x"], place["y"]) for place in data["nodes"].values()}) == len(data["nodes"])

    def test_greedy_is_shown_as_it_went(self):
        problem = load(INSTANCES / "cancelling-pair.npz")
        shown = checked_page(player_page(problem, recorded(problem))).shown
        assert "Greedy ends at" in shown
        assert "above the best model of the search" in shown

    def test_column_subset_selection_without_names(self):
        A = np.random.default_rng(0).normal(size=(6, 5))
        problem = ColumnSubsetProblem(A, 2)
        page, data = steps_of(player_page(problem, recorded(problem)))
        assert data["names"] == ["x0", "x1", "x2", "x3", "x4"]
        said = page.shown + " ".join(step["text"] for step in data["steps"])
        assert "feature" not in said
        assert "convex problem" not in said
        assert "one column at a time" in page.shown

    def test_a_gap_within_the_tolerance_is_called_so(self):
        problem = load(INSTANCES / "outlier.npz")
        page, _ = steps_of(player_page(problem, recorded(problem, rel_eps=0.9)))
        assert "Optimal within the tolerance" in page.shown
        assert "is optimal within the tolerance" in page.shown
        assert page.shown.count("proven") == 1, "only in the heading 'What is proven'"

    def test_demands_are_kept(self):
        problem = load(INSTANCES / "three-parts.npz").replace(force_in=[3], force_out=[0])
        page, data = steps_of(player_page(problem, recorded(problem)))
        start = next(step for step in data["steps"] if step["kind"] == "start")
        assert start["shown"]["S"] == [3]
        assert start["shown"]["out"] == [0]
        assert "part_a" not in page.shown.split("What greedy does")[1]

    def test_a_search_that_was_cut_short(self):
        problem = load(INSTANCES / "outlier.npz")
        _, data = steps_of(player_page(problem, recorded(problem, node_limit=2)))
        assert "still open" in data["steps"][-1]["text"]

    def test_names_cannot_break_the_page(self):
        A = np.random.default_rng(1).normal(size=(9, 3))
        names = ["</script><script>alert(1)</script>", "b & c", "<i>"]
        problem = Problem(A, A[:, 0], 1, lam=0.1, feature_names=names)
        text = player_page(problem, recorded(problem))
        _, data = steps_of(text)
        assert data["names"] == names
        assert "alert(1)</script>" not in text

    def test_what_cannot_be_played(self):
        problem = load(INSTANCES / "outlier.npz")
        with pytest.raises(InputError, match="was not recorded"):
            player_page(problem, solve(problem))
        wide = Problem(np.random.default_rng(0).normal(size=(70, 61)), np.ones(70), 2, lam=1.0)
        with pytest.raises(InputError, match="the player is for at most"):
            player_page(wide, recorded(wide, node_limit=1))

    def test_command(self, tmp_path, capsys):
        target = tmp_path / "player.html"
        with pytest.raises(SystemExit) as ended:
            run_command_line(["play", str(INSTANCES / "three-parts.npz"), "--html", str(target)])
        assert ended.value.code == 0
        _, data = steps_of(target.read_text(encoding="utf-8"))
        assert data["steps"][0]["text"].startswith("The heuristic 'forward' found")


@pytest.mark.parametrize("name", CLASSROOM)
class TestClassroom:
    """The engine closes these problems at the root, so pages show a plain search, with a tree to look at."""

    def test_the_player_shows_a_tree(self, name, run, tmp_path):
        target = tmp_path / "play.html"
        assert run("play", INSTANCES / f"{name}.npz", "--html", target).code == 0
        page, data = steps_of(target.read_text(encoding="utf-8"))
        assert len(data["nodes"]) >= 7
        assert "plain best-first search, as S. Sakaue and N. Marumo describe it" in page.shown
        assert {step["kind"] for step in data["steps"]} >= {"split", "cut", "end"}
        assert not any(step["kind"] == "fix" for step in data["steps"])

    def test_the_drawn_tree_is_the_same(self, name, run):
        drawn = json.loads(run("play", INSTANCES / f"{name}.npz", "--dot", "--format", "json").out)
        assert len(drawn["nodes"]) >= 7
        assert drawn["search"].startswith("Shown is plain best-first search")

    def test_the_report_tells_of_a_plain_search(self, name):
        problem = load(INSTANCES / f"{name}.npz")
        result = solve(problem)
        plain = surroundings(problem, result).plain
        assert (plain.settings["tree"], plain.settings["bound"], plain.settings["subtrees"]) == (
            "state-space", "pdal", False
        )  # fmt: skip
        assert plain.nodes >= 7
        assert plain.upper == pytest.approx(result.upper)
        page = checked_page(run_page(result, problem))
        assert "Solved in one pass" in page.shown
        assert "Bound and best model over time" not in page.shown
        assert f"{plain.nodes} nodes until the two lines meet" in page.shown


class TestPlainSearch:
    def test_what_was_asked_for_is_shown(self, run):
        asked = ["--tree", "binary", "--bound", "auto"]
        drawn = json.loads(run("play", INSTANCES / "three-parts.npz", *asked, "--dot", "--format", "json").out)
        assert drawn["search"].startswith("Shown is a best-first search with the binary tree and the bound 'split'.")
        assert len(drawn["nodes"]) == 1

    def test_another_bound_is_named(self, run):
        """The paper's bound divides by the ridge."""
        table = ["--target", "mpg", "--drop", "name,model year,origin", "--missing", "mean", "-k", 2]
        drawn = json.loads(run("play", INSTANCES / "cars.csv", *table, "--dot", "--format", "json").out)
        assert "The bound is 'fit' here, and not theirs." in drawn["search"]
        assert len(drawn["nodes"]) >= 7

    def test_a_search_that_split_regions_keeps_its_curve(self):
        problem = load(INSTANCES / "outlier.npz")
        result = solve(problem, subtrees=False, heuristics="none", tree="state-space", bound="pdal")
        page = checked_page(run_page(result, problem))
        assert "Bound and best model over time" in page.shown
        assert "Solved in one pass" not in page.shown

    def test_there_is_one_for_every_family(self):
        A = np.random.default_rng(3).normal(size=(12, 5))
        y, counts = A[:, 0] + A[:, 1] + np.cos(np.arange(12)), np.arange(12) % 4
        problems = [
            Problem(A, y, 2), Problem(A, y, 2, lam=0.1), Problem(A, counts, 2, loss="poisson", lam=0.1),
            Problem.prepared(A, np.where(A[:, 0] > 0, 1.0, -1.0), 2, loss="logistic", lam=0.1, intercept=True),
            GroupedProblem(Problem(A, y, 2, lam=0.1), {"a": [0, 1], "b": [2], "c": [3, 4]}), ColumnSubsetProblem(A, 2),
            boxed(Problem(A, y, 2, lam=0.1), nonnegative="all"),
            Problem(A, y, 2, lam=0.1, hierarchy={4: [0, 1]}, hierarchy_kind="weak"),
        ]  # fmt: skip
        for problem in problems:
            result = solve(problem, record=True, heuristics="none", **plain_search(problem))
            assert result.reached
            assert result.upper == pytest.approx(solve(problem).upper)
            assert len(result.tree()) > 1
            assert "Shown is" in checked_page(player_page(problem, result)).shown


def _models(inside, free, places):
    from itertools import combinations

    return [(*inside, *more) for size in range(places + 1) for more in combinations(free, size)]


class TestComparisonPage:
    @pytest.mark.parametrize("file", ["three-parts", "labels", "exponential-decay"])
    def test_it_shows_every_method(self, file):
        problem = load(INSTANCES / f"{file}.npz")
        comparison = (
            compare(problem, methods="forward,omp,poss", alone=True)
            if file != "labels"
            else compare(problem, alone=True)
        )
        page = checked_page(comparison_page(comparison, command="exactsel compare x.npz"))
        for row in comparison.rows:
            assert row.method in page.shown
            assert f"{row.value:.6g}" in page.shown
        assert "Progress" in page.shown
        assert "exactsel compare x.npz" in page.shown

    def test_the_search_alone_gets_no_help(self):
        problem = load(INSTANCES / "three-parts.npz")
        comparison = compare(problem, methods="forward", alone=True)
        assert comparison.alone.history.incumbents[0].source == "search"
        assert comparison.alone.upper == pytest.approx(comparison.result.upper)
        assert compare(problem, methods="forward").alone is None

    def test_without_methods_or_curves(self):
        problem = load(INSTANCES / "twins.npz")
        shown = checked_page(comparison_page(compare(problem, methods="none"))).shown
        assert "No approximate method was run." in shown
        assert "Progress" not in shown

    def test_command(self, tmp_path, capsys):
        target = tmp_path / "compare.html"
        with pytest.raises(SystemExit) as ended:
            run_command_line(
                ["compare", str(INSTANCES / "greedy-trap.npz"), "--heuristic", "forward,omp", "--html", str(target)]
            )
        assert ended.value.code == 0
        page = checked_page(target.read_text(encoding="utf-8"))
        assert "0 of 2 approximate methods" in page.shown
        assert "--heuristic forward,omp" in page.shown
        assert "forward" in capsys.readouterr().out


class TestGreedy:
    def test_each_step_adds_a_column(self):
        problem = load(INSTANCES / "outlier.npz").replace(k=4)
        steps = greedy_steps(problem)
        assert [len(step.columns) for step in steps] == [1, 2, 3, 4]
        for step in steps:
            assert step.columns[-1:] == step.added
            assert step.value == problem.fit(step.columns).value
            assert step.best is None or step.best_value <= step.value

    def test_what_must_be_in_comes_first(self):
        steps = greedy_steps(load(INSTANCES / "outlier.npz").replace(k=3, force_in=(2, 3)))
        assert [(step.columns[:2], len(step.columns)) for step in steps] == [((2, 3), 2), ((2, 3), 3)]
        assert steps[0].added == (2, 3)

    def test_no_column(self):
        problem = load(INSTANCES / "outlier.npz").replace(k=0)
        (step,) = greedy_steps(problem)
        assert (step.columns, step.best, step.value) == ((), (), problem.fit([]).value)
        assert "Here greedy finds a model as good" in player_page(problem, recorded(problem))
