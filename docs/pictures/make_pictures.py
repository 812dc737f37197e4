"""Draw the pictures of the concept pages: ``python docs/pictures/make_pictures.py``. Same program, same bytes."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from exactsel import Problem, Search, Settings, load, solve
from exactsel.report.tree import layout

HERE = Path(__file__).parent
INSTANCES = HERE.parents[1] / "instances"
BLUE, RUST, GREY = "#0b6e99", "#b3541e", "#566072"

matplotlib.rcParams["svg.hashsalt"] = "exactsel"
matplotlib.rcParams["font.family"] = "sans-serif"


def save(figure: Figure, name: str) -> None:
    """Write a picture that is the same every time."""
    figure.savefig(HERE / name, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")


def box(axes: Axes, x: float, y: float, text: str, colour: str) -> None:
    """A node of a tree."""
    frame = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour}
    axes.text(x, y, text, ha="center", va="center", fontsize=9, bbox=frame)


def draw_tree(axes: Axes, problem: Problem, *, preorder: bool) -> list[str]:
    """The explored tree of a small problem; the leaves in the order of a proof."""
    result = solve(problem, record=True, subtrees=False, batch=1, heuristics="forward")
    graph, names = result.tree(), problem.feature_names
    place = layout(graph)
    for parent, child, data in graph.edges(data=True):
        (x1, y1), (x2, y2) = place[parent], place[child]
        axes.plot([x1, x2], [y1, y2], color=GREY, linewidth=1, zorder=0)
        sign, column = data["decision"][0], int(data["decision"][1:])
        label = f"{names[column]} {'in' if sign == '+' else 'out'}"
        axes.text((x1 + x2) / 2, (y1 + y2) / 2, label, fontsize=7, ha="center", va="center", color=GREY,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    order: list[str] = []
    walk = [0]
    while walk:
        node = walk.pop()
        children = sorted(graph.successors(node), reverse=True)
        walk += children
        leaf = not children
        order.append("leaf" if leaf else "split")
        text = f"≥ {graph.nodes[node]['bound']:.4g}"
        if preorder:
            text = f"{len(order)}  {text}" + ("\npoint x proves it" if leaf else "")
        box(axes, *place[node], text, RUST if leaf else BLUE)
    axes.set_axis_off()
    axes.margins(0.12, 0.15)
    return order


def tree() -> None:
    """The whole search on one small instance."""
    figure = Figure(figsize=(8.6, 4.4), layout="constrained")
    axes = figure.subplots()
    draw_tree(axes, load(INSTANCES / "outlier.npz"), preorder=False)
    axes.set_title("Each node with its bound; rust: discarded", fontsize=10)
    save(figure, "tree.svg")


def bounds() -> None:
    """All models as dots, and the lower bound of the root."""
    problem = load(INSTANCES / "three-parts.npz")
    values = sorted(problem.fit(support).value for support in combinations(range(problem.d), problem.k))
    root = solve(problem, node_limit=1, subtrees=False, heuristics="none", tree="state-space", bound="pdal")
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(values) + 1), values, ".", color=BLUE, label="one model each")
    axes.axhline(root.lower, color=RUST, label=f"lower bound of the root, {root.lower:.3g}")
    axes.set_xlabel("models with three columns, best first")
    axes.set_ylabel("objective")
    axes.legend(frameon=False)
    save(figure, "bounds.svg")


def curvature() -> None:
    """Nodes until the proof, with the ridge alone and with all curvature."""
    lams = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    data = load(INSTANCES / "diabetes.npz")
    nodes = {
        bound: [solve(data.replace(lam=lam), subtrees=False, bound=bound).nodes for lam in lams]
        for bound in ("apg", "pdal")
    }
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.loglog(lams, nodes["pdal"], "s--", color=RUST, label="the ridge alone")
    axes.loglog(lams, nodes["apg"], "o-", color=BLUE, label="all curvature")
    axes.set_xlabel("lam")
    axes.set_ylabel("nodes until the proof")
    axes.legend(frameon=False)
    save(figure, "curvature.svg")


def certificate() -> None:
    """A proof as a tree in preorder."""
    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    order = draw_tree(axes, load(INSTANCES / "twins.npz"), preorder=True)
    axes.set_title("Written down in preorder: " + ", ".join(order), fontsize=10)
    save(figure, "certificate.svg")


def meeting() -> None:
    """Both bounds of one search on the Diabetes data, against the nodes bounded."""
    problem = load(INSTANCES / "diabetes.npz", k=6)
    search = Search(problem, Settings(subtrees=False, bound="apg", batch=8, heuristics="forward", threads=1))
    points = [(search.state.nodes, search.state.lower, search.state.upper) for _ in search]
    nodes, lower, upper = zip(*[point for point in points if point[1] > 0], strict=True)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.step(nodes, upper, where="post", color=BLUE, linewidth=2)
    axes.step(nodes, lower, where="post", color=RUST, linewidth=2)
    axes.fill_between(nodes, lower, upper, step="post", color=GREY, alpha=0.12, linewidth=0)
    axes.annotate("best model found", (nodes[-1], upper[-1]), (-8, 6), textcoords="offset points", ha="right",
                  color=BLUE, fontsize=10)  # fmt: skip
    axes.annotate("what no model is below", (nodes[len(nodes) // 3], lower[len(nodes) // 3]), (14, -14),
                  textcoords="offset points", color=RUST, fontsize=10)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("regions of the search space bounded")
    axes.set_ylabel("objective")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    save(figure, "meeting.svg")


if __name__ == "__main__":
    meeting()
    tree()
    bounds()
    curvature()
    certificate()
