"""Explored trees as Graphviz source, JSON and pictures."""

from __future__ import annotations

import json
import math
import sys

import networkx
import numpy as np
import pytest

from exactsel import Problem, UnsupportedError, solve
from exactsel.report.tree import draw_tree, tree_as_dot, tree_as_json


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 12)) + rng.standard_normal((30, 1))
    return Problem(A, A @ rng.standard_normal(12) + 2 * rng.standard_normal(30), 4, lam=0.05)


@pytest.fixture(scope="module")
def graph(problem):
    return solve(problem, record=True, heuristics=("forward",), node_limit=40, subtrees=False).tree()


class TestPictures:
    def test_dot(self, graph):
        lines = tree_as_dot(graph).splitlines()
        assert lines[0] == "digraph search {"
        assert lines[-1] == "}"
        assert sum(" -> " in line for line in lines) == graph.number_of_edges()
        assert sum("fillcolor=" in line for line in lines) == graph.number_of_nodes()
        assert all(line.endswith("];") for line in lines[1:-1])

    def test_features_are_called_by_their_names(self):
        graph = networkx.DiGraph()
        for node in (0, 1, 2):
            graph.add_node(node, bound=1.0, status="open", fixed_in=[1] * (node == 1), fixed_out=[])
        graph.add_edge(0, 1, decision="-0 +2")
        graph.add_edge(0, 2, decision="part of the subtree")
        lines = tree_as_dot(graph, names=["body mass", 'a"b', "c$x$\\"]).splitlines()
        assert r'  1 [label="1: open\n1\n+a\"b", fillcolor="#fff59d"];' in lines
        assert r'  0 -> 1 [label="-body mass, +c$x$\\"];' in lines
        assert '  0 -> 2 [label="part of the subtree"];' in lines
        assert '  0 -> 1 [label="-0 +2"];' in tree_as_dot(graph).splitlines()

    def test_a_picture_shows_names_as_they_are(self):
        pytest.importorskip("matplotlib")
        graph = networkx.DiGraph([(0, 1, {"decision": "+0"})])
        networkx.set_node_attributes(graph, {node: {"bound": 1.0, "status": "open"} for node in graph})
        assert b"<!-- +a$b$ -->" in draw_tree(graph, "svg", names=["a$b$"])

    def test_json(self, graph):
        plain = json.loads(tree_as_json(graph), parse_constant=pytest.fail)
        assert [node["id"] for node in plain["nodes"]] == list(graph)
        assert [(edge["parent"], edge["child"]) for edge in plain["edges"]] == list(graph.edges)
        assert all(edge["decision"] for edge in plain["edges"])
        for node in plain["nodes"]:
            assert node["bound"] == graph.nodes[node["id"]]["bound"]

    def test_an_infinite_bound_is_null(self):
        graph = networkx.DiGraph()
        graph.add_node(0, bound=-math.inf, status="open", fixed_in=[], fixed_out=[])
        assert json.loads(tree_as_json(graph))["nodes"][0]["bound"] is None
        assert "-inf" in tree_as_dot(graph)

    @pytest.mark.parametrize(("style", "magic"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml")])
    def test_files(self, graph, style, magic):
        pytest.importorskip("matplotlib")
        assert draw_tree(graph, style).startswith(magic)

    def test_large_and_single_node_trees(self, problem):
        pytest.importorskip("matplotlib")
        for limit in (0, 300):
            options = {"tree": "state-space", "node_limit": limit, "heuristics": ()}
            assert draw_tree(solve(problem, record=True, **options).tree(), "png")

    def test_without_matplotlib_one_sentence_says_what_to_do(self, graph, monkeypatch):
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"] + ["matplotlib"]:
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(
            UnsupportedError, match=r"^pictures need matplotlib; run: pip install 'exactsel\[plot\]'\.$"
        ):
            draw_tree(graph, "png")
        assert tree_as_dot(graph)
