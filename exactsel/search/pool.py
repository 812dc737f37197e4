"""Have rounds carried out elsewhere: in shards, as bytes, merged in the order of their nodes.

A shard is expanded as if it were the whole round, by every executor. Where a round is cut depends on the settings and
on counted work alone, so that the tree is the same for every executor and any number of workers. Workers are not
trusted: their answers are unpacked like a file of unknown origin, and checked (:data:`Check`) before they are
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from exactsel.closers.visit import Interrupted
from exactsel.enumeration.work_budget import WorkBudget
from exactsel.errors import InputError
from exactsel.nodes.node import Node
from exactsel.nodes.regions import FailedTrials, Round, Seconds
from exactsel.nodes.table import NodeTable
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packed_bytes import AS_IT_IS, from_bytes, to_bytes
from exactsel.search.packed_nodes import nodes_from, packed_nodes
from exactsel.search.packed_round import packed_round, unpacked_round
from exactsel.search.packing import Packed, arrays_under, pack, under, unpack
from exactsel.search.state import Begun
from exactsel.types import FloatArray

VERSION = 3
"""Of the layout of shards."""

SHARD = 32
"""Nodes of a shard by default."""

WORTH = 6e8
"""Work that is worth a shard (about a fifth of a second), counted as in enumeration/work_budget.py."""

DIVIDED = 64
"""Shards a round is cut into by work at most: looking at each takes the supervisor some milliseconds."""

FEW = 16
"""With fewer nodes than these in a round, one below which work of more than a shard is to be expected is divided, not
walked: most workers would have nothing to do meanwhile."""

SHARDS = 8
"""Shards in a round, where no batch size is given."""

SHARE = 64
"""One in so many results that a worker reports without evidence is checked in full."""

WAIT = 0.05
"""Seconds between two reads of the stop flag."""

ALLOWED = 3
"""Times a shard is dispatched before it is given up."""


MALFORMED = (ValueError, TypeError, LookupError, AttributeError, AssertionError, OverflowError)
"""Exceptions that an inconsistent answer may cause while it is checked; it is refused then."""


class WorkerFailureError(Exception):
    """No worker came back with an answer that can be right; the text says what went wrong last."""


class ShardFuture(Protocol):
    """A dispatched shard."""

    def result(self, timeout: float) -> bytes:
        """The answer; TimeoutError where it is not there yet, :class:`WorkerFailureError` where none will come."""
        ...

    def refuse(self, why: str) -> None:
        """That answer cannot be right: another worker is to give one. WorkerFailureError after some times."""
        ...


class Executor(Protocol):
    """The executor of shards. It need not be trusted, and may fail."""

    name: str

    def begin(self, job: bytes) -> None:
        """Make ready for the search that a job describes."""
        ...

    def submit(self, shard: bytes) -> ShardFuture:
        """Give out a shard."""
        ...

    def close(self) -> None:
        """End dispatching, and release all threads that wait for an answer."""
        ...


class Check(Protocol):
    """Checks answers before they are committed."""

    def __call__(self, nodes: Sequence[Node], done: Round) -> str:
        """What is wrong with the outcome for some nodes, in words; empty where nothing is."""
        ...


@dataclass(frozen=True)
class Pool:
    """The executor of shards together with the check of its answers."""

    executor: Executor
    problem: SubsetProblem
    check: Check
    stopped: Callable[[], bool]
    """Whether the search is to stop."""


Answer = TypeVar("Answer")


def first_sound(pool: Pool, ticket: ShardFuture, look: Callable[[bytes], Answer]) -> Answer:
    """The first answer that can be right; ``look`` reads one, and raises :class:`InputError` for all others.

    Raises
    ------
    exactsel.closers.visit.Interrupted
        When the search is to stop.
    WorkerFailureError
        When no worker gives one.
    """
    while True:
        if pool.stopped():
            raise Interrupted
        try:
            return look(ticket.result(WAIT))
        except TimeoutError:
            continue
        except (InputError, *MALFORMED) as error:
            wrong = str(error) or type(error).__name__
        if pool.stopped():  # which also stops the check of answers
            raise Interrupted
        ticket.refuse(wrong)


def shards(
    nodes: Sequence[Node], work_budget: WorkBudget, size: int, expected: FloatArray
) -> list[tuple[tuple[Node, ...], WorkBudget]]:
    """The nodes of a round in parts of at most ``size``, each with its part of what a limit on nodes leaves.

    A part also ends before the ``expected`` work (m,) exceeds the work of one shard, or one part in DIVIDED of all
    work. So no worker is busy for long when the others have nothing left to do.
    """
    ends, first, load = list[int](), 0, 0.0
    most = max(WORTH, float(np.sum(expected)) / max(DIVIDED, len(nodes) / size))
    for at, work in enumerate(expected.tolist()):
        if at > first and (at - first == size or load + work > most):
            ends.append(at)
            first, load = at, 0.0
        load += work
    parts = [tuple(nodes[begin:end]) for begin, end in pairwise([0, *ends, len(nodes)])]
    node_budget = None if work_budget.left is None else work_budget.left // len(parts)
    return [(part, replace(work_budget, left=node_budget)) for part in parts]


def shard_bytes(nodes: Sequence[Node], upper: float, work_budget: WorkBudget) -> bytes:
    """A shard as a worker is given it."""
    held, spent = packed_nodes(NodeTable.of(nodes, nodes[0].state.size)), pack([work_budget])
    arrays = under("nodes", held.arrays) | under("effort", spent.arrays) | {"upper": np.array([upper])}
    return to_bytes(Packed({"shard": VERSION, "nodes": held.header, "effort": spent.header}, arrays), AS_IT_IS)


def shard_from(packed: Packed, problem: SubsetProblem) -> Begun:
    """What :func:`shard_bytes` was given; :class:`exactsel.errors.InputError` where it is damaged."""
    with refusing_damage():
        require(packed.header.get("shard") == VERSION, "no shard of a search of this version")
        held = Packed(packed.header["nodes"], arrays_under("nodes", packed))
        nodes = tuple(nodes_from(held, problem, in_best_first_order=False))
        (work_budget,) = unpack(Packed(packed.header["effort"], arrays_under("effort", packed)), problem)
        upper = packed.arrays["upper"]
        require(isinstance(work_budget, WorkBudget) and upper.shape == (1,), "no shard of a search")
        require(len({node.id for node in nodes}) == len(nodes), "nodes that are there twice")
        return Begun(nodes, float(upper[0]), work_budget)


def round_bytes(done: Round) -> bytes:
    """An outcome as a worker sends it."""
    return to_bytes(packed_round(done), AS_IT_IS)


def round_from_bytes(data: bytes, nodes: Sequence[Node], problem: SubsetProblem) -> Round:
    """The outcome for these nodes; :class:`exactsel.errors.InputError` where it is none."""
    return unpacked_round(from_bytes(data), nodes, problem)


def merged(rounds: Sequence[Round], upper: float) -> Round:
    """The outcomes of all shards as that of one round."""
    models, seconds, best = [], Seconds(), upper
    for part in rounds:
        seconds.add(part.seconds)
        for fit in part.models:
            if fit.value < best:
                best = fit.value
                models.append(fit)
    rounded = min(rounds, key=lambda part: part.rounded_value)
    return Round(
        tuple(models), tuple(outcome for part in rounds for outcome in part.outcomes),
        valid_for=next((part.valid_for for part in reversed(rounds) if part.valid_for), ""), seconds=seconds,
        rounded=rounded.rounded, rounded_value=rounded.rounded_value, relaxed=rounded.relaxed,
        counted=next((part.counted for part in reversed(rounds) if part.counted is not None), None),
        failed_trials=sum((part.failed_trials for part in rounds), FailedTrials()),
    )  # fmt: skip
