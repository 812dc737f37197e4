"""The explored tree as a networkx graph, from recorded events."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

from exactsel.closers.base import status_of
from exactsel.search.events import Bounded, Discarded, Divided, Event, Finished, Fixed, Started, SubtreeClosed


def explored_tree(events: Iterable[Event]) -> nx.DiGraph:
    """A directed graph of the search's regions, edges from parent to child.

    Node attributes: ``bound`` (best proven so far), ``status``, ``fixed_in`` and ``fixed_out`` (columns fixed at this
    node by its dual vector). The status is ``split``, ``open``, why it was closed, or what was done below it:
    ``walked``, ``counted``, or ``searched`` in a tree of its own. Edge attribute ``decision``: the columns fixed to 1
    (``+j``) and to 0 (``-j``).
    """
    graph = nx.DiGraph()
    for event in events:
        match event:
            case Started(open_nodes):
                for node in open_nodes:
                    graph.add_node(node.id, bound=node.bound, status="open", fixed_in=[], fixed_out=[])
            case Bounded(node, bound, _, _):
                graph.nodes[node]["bound"] = max(bound, graph.nodes[node]["bound"])
            case Fixed(node, fixings):
                graph.nodes[node]["fixed_in"] += fixings.columns[fixings.included].tolist()
                graph.nodes[node]["fixed_out"] += fixings.columns[~fixings.included].tolist()
            case Divided(node, columns, children, rest):
                _add_children(graph, node, columns, children, rest)
            case Discarded(node, _, reason, bound, _):
                graph.nodes[node].update(status=reason, bound=max(bound, graph.nodes[node]["bound"]))
            case SubtreeClosed(node, open_ids, _, result):
                graph.nodes[node].update(status=status_of(result.closer), moves=result.nodes)
                _add_parts(graph, node, open_ids)
            case Finished(_, open_nodes):
                for node in open_nodes:
                    graph.nodes[node.id]["bound"] = node.bound
            case _:
                pass
    return graph


def _add_parts(graph: nx.DiGraph, node: int, open_ids: tuple[int, ...]) -> None:
    """Nodes for the parts that a closer reports below a node; an untouched node stays."""
    for child in open_ids:
        if child != node:
            graph.add_node(child, bound=graph.nodes[node]["bound"], status="open", fixed_in=[], fixed_out=[])
            graph.add_edge(node, child, decision="part of the subtree")


def _add_children(graph: nx.DiGraph, node: int, columns: tuple[int, ...], children: tuple[int, ...], rest: int) -> None:
    graph.nodes[node]["status"] = "split"
    bound = graph.nodes[node]["bound"]
    left_out: list[str] = []
    for child, column in zip((*children, rest), (*columns, None), strict=True):
        decision = " ".join([*left_out, f"+{column}"] if column is not None else left_out)
        graph.add_node(child, bound=bound, status="open", fixed_in=[], fixed_out=[])
        graph.add_edge(node, child, decision=decision)
        left_out.append(f"-{column}")
