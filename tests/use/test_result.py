"""Results: what they say, as text, JSON and graph, and that they claim no more than is proven."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import networkx
import numpy as np
import pytest

from exactsel import Claim, InputError, Problem, Termination, certify, near_optimal, solve
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.model import Model, PreparedModel, label, listed
from exactsel.report.model import model_table
from exactsel.report.tree import COLOURS
from exactsel.search.events import Discarded, Divided, Finished, Fixed, IncumbentFound, LowerBoundRaised, Started
from exactsel.solving.outcome import claim_of
from exactsel.solving.result import Result
from exactsel.to_plain import finite

MODES = ({"tree": "binary", "subtrees": False}, {"tree": "state-space", "bound": "pdal"}, {"bound": "fit"})
each_mode = pytest.mark.parametrize("options", MODES, ids=str)


def make_problem(loss="quadratic", seed=0, n=30, d=12, k=4, lam=0.05, **options) -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    y = A @ rng.standard_normal(d) + 2 * rng.standard_normal(n)
    return Problem(A, np.sign(y) if loss == "logistic" else y, k, loss=loss, lam=lam, **options)


@pytest.fixture(scope="module")
def problem():
    return make_problem(feature_names=[f"x{j}" for j in range(12)])


@pytest.fixture(scope="module")
def result(problem):
    return solve(problem, record=True)


def result_with(upper, lower, **changes) -> Result:
    """A result as a search would make it, with bounds of our choice."""
    claim = claim_of(upper, lower, Tolerance())
    arguments = {
        "upper": upper, "lower": lower, "support": (), "prepared": PreparedModel(np.zeros(2)), "claim": claim,
        "termination": Termination.INTERRUPTED, "nodes": 0, "bound_calls": 0, "iterations": 0, "open_nodes": 1,
        "source": "empty model", "times": {"total": 0.5},
        "problem": {"problem": "regression", "feature_names": None, "d": 2, "k": 2},
        "settings": {"eps": 0.0, "rel_eps": 1e-6}, "tree_hash": "",
    }  # fmt: skip
    return Result(**{**arguments, **changes})


@pytest.mark.smoke
class TestClaims:
    @pytest.mark.parametrize(
        ("upper", "lower", "claim"),
        [
            (1.0, 1.0, Claim.OPTIMAL),
            (1.0, 1.0 - 0.9e-9, Claim.OPTIMAL),
            (1.0, 1.0 - 1.1e-9, Claim.WITHIN_EPS),
            (1e6, 1e6 - 0.9e-3, Claim.OPTIMAL),
            (1e6, 1e6 - 0.9, Claim.WITHIN_EPS),
            (1e6, 1e6 - 1.1, Claim.BOUNDED),
            (-5.0, -5.0, Claim.OPTIMAL),
            (0.0, 0.0, Claim.OPTIMAL),
            (0.0, -1e-9, Claim.BOUNDED),
            (0.0, -1e-22, Claim.OPTIMAL),
            (0.0, -1e-11, Claim.WITHIN_EPS),
            (0.0, -1.1e-11, Claim.BOUNDED),
            (1.0, -1e300, Claim.BOUNDED),
            (1.0, -math.inf, Claim.HEURISTIC_ONLY),
            (math.inf, 0.0, Claim.HEURISTIC_ONLY),
            (math.inf, math.inf, Claim.HEURISTIC_ONLY),
            (1.0, math.inf, Claim.HEURISTIC_ONLY),
            (math.nan, 0.0, Claim.HEURISTIC_ONLY),
            (1.0, math.nan, Claim.HEURISTIC_ONLY),
            (1.0, 1.0 + 1e-6, Claim.HEURISTIC_ONLY),
        ],
    )
    def test_the_bounds_decide(self, upper, lower, claim):
        assert claim_of(upper, lower, Tolerance(null=1.0)) is claim

    def test_the_tolerance_asked_for(self):
        assert claim_of(1.0, 0.5, Tolerance(eps=0.5)) is Claim.WITHIN_EPS
        assert claim_of(1.0, 0.5, Tolerance(eps=0.4)) is Claim.BOUNDED
        assert claim_of(10.0, 9.0, Tolerance(rel_eps=0.1)) is Claim.WITHIN_EPS
        assert claim_of(10.0, 9.0, Tolerance(rel_eps=0.09)) is Claim.BOUNDED

    @pytest.mark.parametrize("word", Termination)
    def test_every_word_has_its_sentence(self, word):
        assert len(word.sentence.split()) >= 4
        assert word == word.value

    def test_only_a_proof_counts_as_reached(self):
        assert result_with(1.0, 1.0).reached
        assert not result_with(1.0, 0.5).reached
        assert not result_with(1.0, -math.inf).reached


class TestText:
    def test_str_has_everything_a_reader_needs(self, result, problem):
        names = ", ".join(f"x{j}" for j in result.support)
        lines = str(result).splitlines()
        assert [line.split()[0] for line in lines] == [
            "claim", "termination", "upper", "lower", "gap", "support", "work",
        ]  # fmt: skip
        assert lines[0] == f"claim        {result.claim_text}"
        assert f"{result.upper:.12g}   (found by: {result.source})" in lines[2]
        assert "(relative to |upper|)" in lines[4]
        assert lines[5] == f"support      {', '.join(map(str, result.support))}  ({names})"
        assert max(map(len, lines)) < 120

    def test_repr_is_short(self, result):
        assert "coef" not in repr(result)
        assert "events" not in repr(result)
        assert len(repr(result)) < 2000

    def test_a_notebook_shows_the_text(self, result, problem):
        for shown in (result, certify(problem, support=[0]), near_optimal(problem, tau=0.0)):
            said = []
            shown._repr_pretty_(SimpleNamespace(text=said.append), False)
            assert said == [str(shown)]

    def test_the_empty_model_and_infinite_bounds(self):
        assert "support      none" in str(result_with(1.0, -math.inf))
        assert "Nothing is proven: no lower bound" in str(result_with(1.0, -math.inf))

    def test_a_restriction_is_part_of_the_lower_bound(self):
        assert "0.5   for small models only" in str(result_with(1.0, 0.5, valid_for="small models only"))

    def test_model_table(self):
        facts = {"problem": "regression", "feature_names": ["height", "b", "c"], "d": 3, "k": 2}
        made = result_with(1.0, 1.0, support=(0, 2), model=Model(np.array([1.5, 0.0, -2.0]), None), problem=facts)
        lines = model_table(made).splitlines()
        assert [line.split() for line in lines] == [
            ["feature", "name", "coefficient"],
            ["0", "height", "1.5"],
            ["2", "c", "-2"],
        ]
        assert len({len(line) for line in lines}) == 1
        forced = model_table(replace(made, problem={**facts, "force_in": (0, 1)}))
        assert forced.splitlines()[2].split() == ["1", "b", "0", "forced", "in"]
        assert "forced in, with coefficient 0: 1" in str(replace(made, problem={**facts, "force_in": (0, 1)}))
        bare = result_with(1.0, 1.0, support=(1,), model=Model(np.array([0.0, 3.0]), None))
        assert model_table(bare).splitlines()[1].split() == ["1", "3"]
        assert len(model_table(result_with(1.0, 1.0)).splitlines()) == 1


@pytest.mark.smoke
class TestJson:
    def test_values_are_those_of_the_result(self, result, problem):
        plain = json.loads(result.to_json())
        for name in (
            "upper", "lower", "gap", "absolute_gap",
            "nodes", "bound_calls", "iterations", "open_nodes", "source", "valid_for",
            "tree_hash", "time", "times",
        ):  # fmt: skip
            assert plain[name] == getattr(result, name)
        assert plain["support"] == list(result.support)
        assert plain["feature_names"] == list(result.feature_names) == [f"x{j}" for j in result.support]
        assert plain["coef"] == result.coef.tolist()
        assert (plain["claim"], plain["termination"]) == (result.claim.value, result.termination.value)
        assert (plain["n"], plain["d"], plain["k"], plain["lam"]) == (30, 12, 4, 0.05)
        assert plain["problem_hash"] == problem.hash
        assert plain["settings"]["tree"] == "binary"

    def test_coefficients_are_those_of_the_columns_as_given(self):
        """Also where the search worked on prepared data; what was done, and the coefficients of those, stand apart."""
        rng = np.random.default_rng(0)
        A = rng.standard_normal((30, 5)) * [1, 10, 100, 1, 1] + 3
        y = A @ [1.0, 0.2, 0.03, 0, 0] + 7
        made = solve(Problem.prepared(A, y, 3, lam=1e-3, intercept=True, scale=True, force_in=[4]))
        plain = json.loads(made.to_json())
        assert plain["coef"] == made.model.coef.tolist()
        assert plain["intercept"] == made.model.intercept
        assert made.coef is made.model.coef
        flags = {"intercept": True, "scale": True, "weights": False}
        assert plain["prepared"] == {**flags, "coef": made.prepared.coef.tolist()}
        assert [(row["column"], row["coef"], row["force_in"]) for row in plain["model"]] == [
            (j, made.model.coef[j], j == 4) for j in made._shown
        ]
        predicted = A @ plain["coef"] + plain["intercept"]
        np.testing.assert_allclose(made.model.predict(A), predicted)
        assert 0.5 * np.sum((y - predicted) ** 2) <= made.upper
        scaled = json.loads(solve(Problem.prepared(A, y, 2, lam=1e-3, scale=True)).to_json())
        assert scaled["intercept"] is None
        assert scaled["prepared"]["intercept"] is False
        assert json.loads(solve(Problem(A, y, 2, lam=1e-3)).to_json())["prepared"] is None
        with pytest.raises(InputError, match="the model has 5 features"):
            made.model.predict(A[:, :4])

    def test_a_column_forced_in_with_coefficient_zero_is_shown(self):
        """The support holds what the model uses; the model's rows also what had to be in it."""
        A = np.eye(4)
        made = solve(Problem(A, [3.0, 2.0, 0.0, 0.0], 2, lam=0.1, force_in=[3]))
        assert made.support == (0,)
        rows = [(row["column"], bool(row["coef"]), row["force_in"]) for row in made.as_dict()["model"]]
        assert rows == [(0, True, False), (3, False, True)]

    def test_options_go_to_dumps(self, result):
        assert result.to_json(indent=1).count("\n") > 20
        assert list(json.loads(result.to_json(sort_keys=True))) == sorted(result.as_dict())

    @pytest.mark.parametrize("bounds", [(1.0, -math.inf), (math.inf, 0.0), (math.nan, math.nan), (math.inf, -math.inf)])
    def test_it_is_strict(self, bounds):
        plain = json.loads(result_with(*bounds).to_json(), parse_constant=pytest.fail)
        assert plain["gap"] is None
        assert plain["claim"] == "heuristic_only"

    def test_infinite_limits_are_null(self, problem):
        limits = {"time_limit": math.inf, "memory_limit": math.inf}
        for made in (solve(problem, **limits), certify(problem, support=[0], **limits)):
            settings = json.loads(made.to_json(), parse_constant=pytest.fail)["settings"]
            assert [settings[name] for name in limits] == [None, None]

    def test_numpy_numbers_are_plain(self, problem):
        options = {"seed": np.int64(3), "batch": 8.0, "threads": np.int32(1), "eps": np.float32(0), "node_limit": 10}
        settings = json.loads(solve(problem, **options).to_json())["settings"]
        assert {name: settings[name] for name in options} == options

    def test_objects_are_named(self, problem):
        from exactsel.bounds.apg import AcceleratedGradientBound
        from exactsel.nodes.branching import LargestCoefficient
        from exactsel.nodes.trees import BinaryTree

        result = solve(problem, tree=BinaryTree(), bound=AcceleratedGradientBound(), branching=LargestCoefficient())
        settings = json.loads(result.to_json())["settings"]
        assert (settings["tree"], settings["bound"], settings["branching"]) == ("binary", "apg", "largest")

    def test_finite(self):
        assert [finite(value) for value in (1.5, math.inf, -math.inf, math.nan)] == [1.5, None, None, None]
        assert type(finite(np.float64(2.0))) is float

    @pytest.mark.parametrize("loss", ["huber", "logistic"])
    def test_every_loss(self, loss):
        result = solve(make_problem(loss))
        plain = json.loads(result.to_json())
        assert plain["loss"] == loss
        assert plain["loss_parameters"].keys() == ({"delta"} if loss == "huber" else set())
        assert plain["feature_names"] is None


class TestHonesty:
    @each_mode
    def test_the_model_is_what_it_says(self, problem, options):
        result = solve(problem, **options)
        value = problem.objective(result.coef)
        assert value * (1 - 1e-15) <= result.upper <= value * (1 + 1e-11)
        assert result.support == tuple(np.flatnonzero(result.coef).tolist())
        assert len(result.support) <= problem.k
        assert result.lower <= result.upper
        assert result.absolute_gap == result.upper - result.lower
        assert result.gap == result.absolute_gap / abs(result.upper)
        assert {"heuristics", "search", "total"} <= result.times.keys()
        assert result.time == result.times["total"]

    def test_nothing_is_invented_where_nothing_was_recorded(self, problem):
        result = solve(problem)
        assert result.events is None
        with pytest.raises(ValueError, match=r"^the tree was not recorded; call solve\(problem, record=True\)\.$"):
            result.tree()

    @each_mode
    def test_recording_changes_nothing(self, problem, options):
        assert solve(problem, record=True, **options).tree_hash == solve(problem, **options).tree_hash

    def test_events_tell_the_whole_story(self, result, problem):
        events = result.events
        assert isinstance(events[-1], Finished)
        assert sum(isinstance(event, Started) for event in events) == 1
        uppers = [event.upper for event in events if isinstance(event, IncumbentFound)]
        assert uppers == sorted(uppers, reverse=True)
        assert uppers[-1] == result.upper
        lowers = [event.lower for event in events if isinstance(event, LowerBoundRaised)]
        assert lowers == sorted(lowers)
        assert lowers[-1] <= result.lower
        assert events[-1].termination == result.termination.value

    def test_the_callback_sees_what_is_recorded(self, problem, result):
        seen = []
        solve(problem, callback=lambda event, state: seen.append(type(event)))
        assert seen == [type(event) for event in result.events]


class TestGraph:
    @each_mode
    @pytest.mark.parametrize("limits", [{}, {"node_limit": 9}, {"node_limit": 0}], ids=str)
    def test_nodes_are_regions_and_edges_decisions(self, problem, options, limits):
        result = solve(problem, record=True, heuristics=("forward",), **options, **limits)
        graph = result.tree()
        assert networkx.is_arborescence(graph)
        assert graph.in_degree(0) == 0
        divided = {event.node: event for event in result.events if isinstance(event, Divided)}
        discarded = {event.node: event for event in result.events if isinstance(event, Discarded)}
        assert set(graph) == {0}.union(*[{*event.children, event.rest} for event in divided.values()])
        still_open = {node.id: node for node in result.events[-1].open_nodes}
        assert len(still_open) == result.open_nodes
        for number, data in graph.nodes(data=True):
            assert data.keys() == {"bound", "status", "fixed_in", "fixed_out"}
            if number in divided:
                assert data["status"] == "split"
                assert list(graph.successors(number)) == [*divided[number].children, divided[number].rest]
            elif number in discarded:
                assert data["status"] == discarded[number].reason
            else:
                assert data["status"] == "open"
                assert data["bound"] == still_open[number].bound
        assert {data["status"] for _, data in graph.nodes(data=True)} <= {*COLOURS}
        fixings = [one for event in result.events if isinstance(event, Fixed) for one in event.fixings]
        fixed = [len(data["fixed_in"]) + len(data["fixed_out"]) for _, data in graph.nodes(data=True)]
        assert sum(fixed) == len(fixings)

    def test_decisions(self, problem):
        graph = solve(problem, record=True, node_limit=30, heuristics=(), subtrees=False).tree()
        for parent in graph:
            decisions = [graph.edges[parent, child]["decision"] for child in graph.successors(parent)]
            if decisions:
                column = decisions[0][1:]
                assert decisions == [f"+{column}", f"-{column}"]
        chain = solve(problem, record=True, node_limit=2, tree="state-space", heuristics=()).tree()
        decisions = [chain.edges[0, child]["decision"] for child in chain.successors(0)]
        assert decisions[:3] == ["+0", "-0 +1", "-0 -1 +2"]
        assert not decisions[-1].count("+")

    @each_mode
    def test_bounds_never_fall_from_parent_to_child(self, problem, options):
        graph = solve(problem, record=True, **options).tree()
        bounds = networkx.get_node_attributes(graph, "bound")
        for parent, child in graph.edges:
            assert bounds[child] >= bounds[parent] - 1e-9 * abs(bounds[parent])

    def test_open_leaves_bound_the_whole(self, problem):
        result = solve(problem, record=True, node_limit=6, heuristics=(), subtrees=False)
        leaves = [data["bound"] for number, data in result.tree().nodes(data=True) if data["status"] == "open"]
        assert result.lower <= min(leaves)


def test_how_a_column_is_called():
    assert label(1, ("age", "bmi")) == "bmi (1)"
    assert label(1, None) == "1"
    assert label(1, None, "{name}", "x{number}") == "x1"
    assert label(0, ("{number}",), "{name}") == "{number}"
    assert listed((0, 1), ("age", "bmi")) == "age, bmi"
    assert listed((0, 1), None, between=",") == "0,1"
    assert listed((), ("age",)) == "none"
