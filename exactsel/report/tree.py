"""The explored tree as DOT, JSON or a picture."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from textwrap import fill

import networkx as nx

from exactsel.errors import UnsupportedError
from exactsel.to_plain import finite

COLOURS = {
    "split": "#b0bec5",
    "open": "#fff59d",
    "bound": "#a5d6a7",
    "inherited": "#c5e1a5",
    "incumbent": "#80cbc4",
    "solved": "#90caf9",
    "walked": "#ce93d8",
    "counted": "#ce93d8",
    "searched": "#ce93d8",
    "listed": "#ce93d8",
    "contained": "#e0e0e0",
    "excluded": "#e0e0e0",
}


def tree_as_dot(graph: nx.DiGraph, words: str = "", names: Sequence[str] | None = None) -> str:
    """Graphviz source: a node shows its bound and fate, an edge its decision; ``words`` stand below the tree.

    Features are called by their ``names``, or else by their numbers.
    """
    lines = ["digraph search {", *([f"  label={json.dumps(words)};"] if words else [])]
    lines += ["  node [shape=box, style=filled, fontname=Helvetica];"]
    for number, data in graph.nodes(data=True):
        fixed = "".join(f"\n{named(f'+{j}', names)}" for j in data["fixed_in"])
        fixed += f"\n{len(data['fixed_out'])} out" if data["fixed_out"] else ""
        label = _quoted(f"{number}: {data['status']}\n{data['bound']:.6g}{fixed}")
        lines.append(f'  {number} [label={label}, fillcolor="{COLOURS.get(data["status"], "#ffffff")}"];')
    edges = graph.edges(data="decision")
    lines += [f"  {a} -> {b} [label={_quoted(named(decision, names))}];" for a, b, decision in edges]
    return "\n".join([*lines, "}"])


def named(decision: str, names: Sequence[str] | None) -> str:
    """The decisions of an edge, ``-0 +2``, with the names of the features in place of their numbers: ``-age, +bmi``."""
    words = decision.split()
    if names is None or not all(word[0] in "+-" for word in words):
        return decision
    return ", ".join(f"{word[0]}{names[int(word[1:])]}" for word in words)


def _quoted(text: str) -> str:
    """A text in double quotes, in which Graphviz reads a backslash as it stands."""
    return json.dumps(text, ensure_ascii=False)


def tree_as_json(graph: nx.DiGraph, words: str = "") -> str:
    """Nodes and edges as one JSON object, and ``words`` about the search."""
    nodes = [{"id": number, **data, "bound": finite(data["bound"])} for number, data in graph.nodes(data=True)]
    edges = [{"parent": a, "child": b, **data} for a, b, data in graph.edges(data=True)]
    return json.dumps({"search": words, "nodes": nodes, "edges": edges}, allow_nan=False)


def draw_tree(graph: nx.DiGraph, style: str, words: str = "", names: Sequence[str] | None = None) -> bytes:
    """A picture (``png`` or ``svg``) with ``words`` below it, features called as by :func:`tree_as_dot`; needs
    matplotlib.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        raise UnsupportedError("pictures need matplotlib; run: pip install 'exactsel[plot]'.") from None
    place = layout(graph)
    figure = Figure(figsize=(min(40.0, 4 + 0.55 * len(graph)), 2 + 0.9 * (1 + max(-y for _, y in place.values()))))
    axes = figure.subplots()
    fates = [graph.nodes[number]["status"] for number in graph]
    colours = [COLOURS.get(fate, "#ffffff") for fate in fates]
    small = len(graph) <= 60
    labels = {number: f"{graph.nodes[number]['bound']:.4g}" for number in graph} if small else {}
    nx.draw_networkx(
        graph, place, ax=axes, node_color=colours, labels=labels, arrows=False,
        node_size=900 if small else 30, font_size=7, edgecolors="#607d8b", linewidths=0.5,
    )  # fmt: skip
    if small:
        # A child of the paper's tree fixes to 0 what its elder siblings fix to 1: the last decision says which it is.
        last = {edge: text.split()[-1] for edge, text in nx.get_edge_attributes(graph, "decision").items()}
        # matplotlib reads what stands between two dollars as a formula.
        decisions = {edge: named(text, names).replace("$", r"\$") for edge, text in last.items()}
        nx.draw_networkx_edge_labels(graph, place, ax=axes, edge_labels=decisions, font_size=6)
    axes.legend(
        handles=[Patch(color=colour, label=status) for status, colour in COLOURS.items() if status in fates],
        fontsize=7, loc="upper left", bbox_to_anchor=(1, 1),
    )  # fmt: skip
    axes.set_axis_off()
    axes.set_title(fill(words, 80), y=-0.02, va="top", fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=style, dpi=120, bbox_inches="tight")
    return buffer.getvalue()


def layout(graph: nx.DiGraph) -> dict[int, tuple[float, float]]:
    """Leaves side by side in the order of a depth-first walk, parents centred above their children."""
    place: dict[int, tuple[float, float]] = {}
    roots = [number for number, degree in graph.in_degree() if degree == 0]
    depth = {number: 0 for number in roots}
    for parent, child in nx.bfs_edges(graph, roots[0]) if roots else ():
        depth[child] = depth[parent] + 1
    leaves = 0
    for number in nx.dfs_postorder_nodes(graph):
        children = list(graph.successors(number))
        if children:
            x = math.fsum(place[child][0] for child in children) / len(children)
        else:
            x, leaves = float(leaves), leaves + 1
        place[number] = (x, -float(depth.get(number, 0)))
    return place
