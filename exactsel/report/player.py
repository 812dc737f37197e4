"""The step player: one HTML page in which the tree of a small search grows step by step, beside what greedy does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import networkx as nx
import numpy as np

from exactsel.errors import InputError, option
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.model import label
from exactsel.report.page import Cell, Raw, page, paragraph, section, table
from exactsel.report.tree import layout
from exactsel.search.events import (
    Bounded,
    Discarded,
    Divided,
    Event,
    Finished,
    Fixed,
    IncumbentFound,
    LowerBoundRaised,
    Started,
)
from exactsel.solving.plain_search import search_words
from exactsel.solving.result import Result
from exactsel.studies.greedy import GreedyStep, greedy_steps
from exactsel.to_plain import counted, finite
from exactsel.types import StateArray

MOST_NODES, MOST_COLUMNS = 400, 60
"""A tree, and nodes, small enough to be viewed."""

Step = dict[str, Any]


def check_playable(problem: SubsetProblem) -> None:
    """:class:`InputError` for more features than the page can show."""
    if problem.d > MOST_COLUMNS:
        raise InputError(
            f"the problem has {problem.d} features, but the player is for at most {MOST_COLUMNS}; take a smaller "
            f"instance, or leave columns of the table out with {option('drop')}."
        )


def player_page(problem: SubsetProblem, result: Result) -> str:
    """The page for a recorded search (``solve(record=True, subtrees=False)``).

    Raises
    ------
    InputError
        When the search was not recorded, or is too large to be viewed.
    """
    if result.events is None:
        raise InputError("the search was not recorded; call solve(problem, record=True, subtrees=False).")
    check_playable(problem)
    graph = result.tree()
    if len(graph) > MOST_NODES:
        raise InputError(
            f"the search has {len(graph)} nodes, but the player is for at most {MOST_NODES}; take a smaller instance, "
            f"or lower {option('node_limit')}."
        )
    names = _names(problem)
    steps = list(Steps(names, problem.k).of(result.events))
    chosen = ", ".join(names[j] for j in result.support) or f"no {result._noun}"
    title = f"Step by step: the best {problem.k} of {problem.d} {result._noun}s"
    body = "\n".join(
        [
            f"<h1>{escape(title)}</h1>",
            paragraph(
                "Best-first search keeps a list of open regions of the search space. It takes the one with the "
                "smallest lower bound, bounds it more tightly, and either discards it or splits it. When every region "
                "is discarded, the best model found is optimal within the tolerance.",
                "lead",
            ),
            paragraph(search_words(result.settings), "quiet"),
            _controls(len(steps)),
            section("What greedy does", *_greedy(greedy_steps(problem), result, names)),
            section(
                "What is proven",
                paragraph(
                    f"The best model found uses {chosen} and has objective {result.upper:.8g}; the lower bound is "
                    f"{result.lower:.8g}. {result.claim_text}"
                ),
                paragraph(f"Minimised is {problem.objective_text}.", "quiet"),
            ),
        ]
    )
    data = {"steps": steps, "nodes": _places(graph, names), "names": list(names)}
    return page(title, body, styles=["player.css"], scripts=["player.js"], data=data)


class Steps:
    """Turns events into the steps of the player, keeping the state of every node."""

    def __init__(self, names: Sequence[str], k: int) -> None:
        self._names, self._k = names, k
        self._states: dict[int, StateArray] = {}
        self._bounds: dict[int, float] = {}
        self._lower, self._upper = -math.inf, math.inf

    def of(self, events: Sequence[Event]) -> Iterator[Step]:
        """One step for every change that is seen; a raised lower bound shows from the next step on."""
        pending: Step | None = None
        for event in events:
            if isinstance(event, LowerBoundRaised):
                self._lower = event.lower
                if pending is not None:
                    pending["lower"] = finite(self._lower)
                continue
            for step in self._steps(event):
                if pending is not None:
                    yield pending
                pending = step
        if pending is not None:
            yield pending

    def _steps(self, event: Event) -> Iterator[Step]:
        if isinstance(event, Fixed):
            for fixing in event.fixings:
                yield self._fix(event.node, fixing.column, fixing.included, fixing.bound)
        elif (step := self._step(event)) is not None:
            yield step

    def _step(self, event: Event) -> Step | None:
        match event:
            case Started(open_nodes):
                for node in open_nodes:
                    self._states[node.id], self._bounds[node.id] = node.state.copy(), node.bound
                return self._say("start", 0, "The root holds every model: nothing is decided yet.")
            case IncumbentFound(upper, support, _, source):
                self._upper = upper
                return self._say(
                    "found", None, f"{_finder(source)} found {self._set(support)} with objective {upper:.6g}: the best "
                    "model so far. Regions whose bound reaches this can be discarded.", support=list(support)
                )  # fmt: skip
            case Bounded(node, bound, solved, _):
                if not bound > self._bounds[node]:
                    return None
                self._bounds[node] = bound
                how = "is solved: its best model has objective" if solved else "is bounded: no model in it is below"
                return self._say("bound", node, f"Node {node} {how} {bound:.6g}.")
            case Divided(node, columns, children, rest):
                return self._divide(node, columns, (*children, rest))
            case Discarded(node, state, reason, bound, _):
                self._bounds[node] = max(bound, self._bounds.get(node, bound))
                self._states[node] = np.array(state)
                return self._say("cut", node, self._why(node, reason, self._bounds[node]), reason=reason)
            case Finished(termination, open_nodes):
                end = (
                    f"{counted(len(open_nodes), 'region')} still open." if open_nodes else "No region is open any more."
                )
                return self._say("end", None, f"The search ends ({termination}). {end}")
        return None

    def _fix(self, node: int, column: int, included: bool, bound: float) -> Step:
        self._states[node] = self._states[node].copy()
        self._states[node][column] = IN if included else OUT
        name, (other, this) = self._names[column], ("without", "put in") if included else ("with", "left out")
        text = f"Node {node}: {other} {name} no model would be below {bound:.6g}, so {name} is {this} for good."
        return self._say("fix", node, text)

    def _divide(self, node: int, columns: Sequence[int], children: Sequence[int]) -> Step:
        state = self._states[node].copy()
        for child, column in zip(children, [*columns, None], strict=True):
            self._states[child], self._bounds[child] = state.copy(), self._bounds[node]
            if column is not None:
                self._states[child][column] = IN
                state[column] = OUT
        name = self._names[columns[0]]
        if len(columns) == 1:
            text = f"Node {node} is split on {name}: one child puts it in, the other leaves it out."
        else:
            text = f"Node {node} is split: each child puts in one candidate and leaves out those before it."
        nodes = {str(child): self._shown(child) for child in children}
        return self._say("split", node, text, children=nodes)

    def _why(self, node: int, reason: str, bound: float) -> str:
        reached = f"its bound {bound:.6g} reaches the best objective {self._upper:.6g} (up to the tolerance)"
        return {
            "solved": f"Node {node} is closed: it is solved, and {bound:.6g} is no better than the best objective, "
            f"{self._upper:.6g}.",
            "contained": f"Node {node} is closed: all its models are in a sibling.",
            "listed": f"Node {node} is closed: all its models that can be as good were listed and fitted.",
            "excluded": f"Node {node} is closed: what is demanded of models leaves none in it.",
            "inherited": f"Node {node} is discarded before it is looked at: from its parent's dual vector, {reached}.",
            "incumbent": f"Node {node} is discarded: the new best model has overtaken it; {reached}.",
        }.get(reason, f"Node {node} is discarded: {reached}.")

    def _say(self, kind: str, node: int | None, text: str, **more: object) -> Step:
        step: Step = {
            "kind": kind,
            "node": node,
            "text": text,
            "lower": finite(self._lower),
            "upper": finite(self._upper),
        }
        if node is not None:
            step["shown"] = self._shown(node)
        return step | more

    def _shown(self, node: int) -> dict[str, Any]:
        """The player's data of a node: S, C, the columns fixed to 0, places left, bound."""
        state = self._states[node]
        included, free, out = (np.flatnonzero(state == kind).tolist() for kind in (IN, FREE, OUT))
        return {
            "S": included, "C": free, "out": out, "slots": self._k - len(included), "bound": finite(self._bounds[node])
        }  # fmt: skip

    def _set(self, support: Sequence[int]) -> str:
        return "{" + ", ".join(self._names[j] for j in support) + "}"


def _controls(count: int) -> str:
    """Buttons, slider, tree and the panel beside it; the script fills them."""
    buttons = "".join(
        f'<button type="button" id="{name}" aria-label="{label}">{face}</button>'
        for name, label, face in (
            ("first", "First step", "|◀"),
            ("back", "One step back", "◀"),
            ("play", "Play", "▶ Play"),
            ("next", "One step on", "▶"),
            ("last", "Last step", "▶|"),
        )
    )
    return (
        '<section aria-label="Player"><h2>The search</h2>'
        f'<div class="controls">{buttons}<label>Step <input type="range" id="slider" min="0" max="{count - 1}" '
        f'value="0"></label> <span id="count"></span>'
        '<label><input type="checkbox" id="whole"> Whole tree</label></div>'
        '<p class="quiet">Keys: ← and → one step, Home and End, space to play. Click a node to see what it holds.</p>'
        '<p id="text" class="step" role="status" aria-live="polite"></p>'
        '<p id="bounds" class="quiet"></p>'
        '<div class="stage"><div class="scroll tree" id="tree" tabindex="0" role="region" '
        'aria-label="The search tree so far"></div><div id="panel" class="panel"></div></div>'
        '<p class="quiet legend"><span class="key open">open</span> <span class="key split">split</span> '
        '<span class="key cut">discarded ✕</span> <span class="key now">of this step</span></p></section>'
    )


def _greedy(steps: Sequence[GreedyStep], result: Result, names: Sequence[str]) -> list[str]:
    """Greedy's path, one column after the other, beside the best model of each size where that can be listed."""
    rows: list[list[Cell]] = [
        [
            str(len(step.columns)),
            Raw(_chips(step.added, names, {*result.support})),
            step.value,
            *(["not listed", None] if step.best is None else [Raw(_chips(step.best, names, set())), step.best_value]),
        ]
        for step in steps
        if step.columns
    ]
    value, noun = steps[-1].value, result._noun
    if value > result.upper * (1 + 1e-9) + 1e-12:
        verdict = (
            f"Greedy ends at {value:.6g}, which is {value - result.upper:.6g} above the best model of the search. It "
            f"never takes a {noun} back, so a first {noun} that looks good alone can spoil everything after it."
        )
    else:
        verdict = "Here greedy finds a model as good as that of the search, but only the search has a lower bound."
    header = ["size", "greedy takes", "objective", "best of this size", "its objective"]
    caption = f"Greedy, one {noun} at a time; {noun}s of the search's best model are marked"
    return [table(caption, header, rows), paragraph(verdict)]


def _chips(columns: Sequence[int], names: Sequence[str], hits: set[int]) -> str:
    return "".join(f'<span class="chip{" hit" if j in hits else ""}">{escape(names[j])}</span>' for j in columns)


def _places(graph: nx.DiGraph, names: Sequence[str]) -> dict[str, Any]:
    """Where every node of the finished tree stands, its parent, and the last decision on the way."""
    place = layout(graph)
    parents = {child: (parent, data["decision"].split()[-1]) for parent, child, data in graph.edges(data=True)}
    placed = {}
    for node, (x, y) in place.items():
        parent, decision = parents.get(node, (None, ""))
        label = f"{decision[0]} {names[int(decision[1:])]}".replace("-", "−") if decision else ""
        placed[str(node)] = {"x": x, "y": -y, "parent": parent, "by": label}
    return placed


def _finder(source: str) -> str:
    return {"search": "The search", "given": "The given start"}.get(source, f"The heuristic '{source}'")


def _names(problem: SubsetProblem) -> tuple[str, ...]:
    return tuple(label(j, problem.feature_names, "{name}", "x{number}") for j in range(problem.d))
