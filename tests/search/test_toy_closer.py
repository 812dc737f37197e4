"""A closer and a witness that nothing else knows: through commit, packing, checkpoint, audit and proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from executors_for_tests import Here
from recorded import plain

from exactsel import Problem, Search, Settings, registry, solve, verify
from exactsel.bounds.witness import KINDS, Field, Kind, ModelPoint
from exactsel.closers.base import RegionSolver
from exactsel.errors import InvariantError, UnsupportedError
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.nodes.node import root_node
from exactsel.nodes.regions import Region, Round, SubtreeResult, as_region
from exactsel.nodes.subtree import moves_of
from exactsel.proofs.evaluating import Evaluator
from exactsel.proofs.recheck import Recheck
from exactsel.search.pool import round_bytes, round_from_bytes
from exactsel.types import FloatArray


@dataclass(frozen=True)
class Hint:
    """A model by its entries; checkers are shown the model."""

    entries: FloatArray


def model_of(hint):
    return ModelPoint.from_dense(hint.entries)


@dataclass(frozen=True)
class Toy(RegionSolver):
    """Takes a root apart by its first two columns; what is known of the parts is shown by its own witness."""

    problem: Problem
    name = "toy"

    def close(self, tasks, work, work_budget):
        for task in tasks:
            node = task.node
            if node.depth < 2 and node.tight is False and np.all(node.state[:2] == FREE):
                hint = Hint(np.array(self.problem.fit((0, 1, 2, 3)).coef))
                evaluator, states = Evaluator(self.problem), node.state[None]
                (bound,) = evaluator.at_points(states, [model_of(hint)], np.zeros(1, dtype=np.int64), False)
                region = replace(as_region(node), bound=0.999 * float(bound), proof=hint)
                task.outcome = SubtreeResult(node, as_region(node), self.name, parts_of(region), nodes=4)


def parts_of(region):
    """Not in the order in which decisions meet them."""
    found = []
    for pair in ((IN, OUT), (OUT, OUT), (IN, IN), (OUT, IN)):
        state = region.state.copy()
        state[:2] = pair
        found.append(Region(state, region.bound, region.proof))
    return tuple(found)


class ToyPlugIn:
    name = "toy"

    def prepare(self, problem, options):
        return Toy(problem)


@pytest.fixture
def toy(monkeypatch):
    entries = registry._entries
    plug_ins = {"toy": SimpleNamespace(load=lambda: ToyPlugIn)}
    monkeypatch.setattr(registry, "_entries", lambda kind: plug_ins if kind == "closers" else entries(kind))
    monkeypatch.setitem(KINDS, Hint, Kind({"entries": Field("float64", ("columns",), "finite")}, model_of))


def problem_of():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 12)) + rng.standard_normal((40, 1))
    return Problem(A, A[:, :4].sum(axis=1) + 4 * rng.standard_normal(40), 4, lam=0.5, loss="huber")


OPTIONS = {"closer": "toy", "heuristics": (), "subtrees": False, "batch": 2, "signals": ()}


@pytest.mark.smoke
def test_it_goes_through_commit_audit_and_proof(toy, tmp_path, kernels_at_once):
    problem, file = problem_of(), tmp_path / "toy.proof"
    best = solve(problem, signals=())
    search = Search(
        problem, Settings(**{name: each for name, each in OPTIONS.items() if name != "signals"}), signals=()
    )
    recheck, closers = Recheck(problem), []
    for event in search:
        recheck(event, search.state)
        if type(event).__name__ == "SubtreeClosed":
            closers.append(event.result.closer)
    assert closers == ["toy"]
    assert recheck.bounds > 4
    assert search.result().support == best.support
    result = solve(problem, **OPTIONS, proof=file)
    assert result.tree_hash == search.state.tree_hash
    assert verify(problem, file).lower <= best.upper


def test_workers_and_checkpoints_carry_it(toy, tmp_path, kernels_at_once):
    problem, file = problem_of(), tmp_path / "run.ckpt"
    serial = solve(problem, **OPTIONS, shard=1, executor="serial")
    elsewhere = solve(problem, **OPTIONS, shard=1, executor=Here())
    assert (elsewhere.tree_hash, elsewhere.lower) == (serial.tree_hash, serial.lower)
    solve(problem, **OPTIONS, shard=1, executor="serial", node_limit=5, checkpoint=file)
    again = solve(problem, resume=file, signals=(), executor="serial")
    assert (again.upper, again.support) == (serial.upper, serial.support)


def test_a_result_survives_its_way():
    problem = problem_of()
    node = root_node(problem.root_state, 0.0)
    parts = parts_of(as_region(node))
    for result in (
        SubtreeResult(node, as_region(node), "toy", parts, nodes=4),
        SubtreeResult(
            node, as_region(node), "toy", parts, 0.5, 3, 2, 7, 1e3, False, 2, (4, 0, 9, 2), 9, (0.0, 1.0, 2.0, 3.0),
            (1, 2), "some models", 0.25,
        ),
    ):  # fmt: skip
        done = Round((), (result,))
        assert plain(round_from_bytes(round_bytes(done), [node], problem)) == plain(done)


def test_a_record_that_nobody_knows_is_not_sent():
    problem = problem_of()
    node = root_node(problem.root_state, 0.0)
    with pytest.raises(UnsupportedError, match="a record of type str cannot be packed"):
        round_bytes(Round((), (SubtreeResult(node, as_region(node), "toy", (), expansion="a tale"),)))


def test_parts_that_do_not_divide_a_region():
    node = root_node(problem_of().root_state, 0.0)
    one, two, three, four = parts_of(as_region(node))
    moves, order = moves_of(SubtreeResult(node, as_region(node), "toy", (one, two, three, four)))
    assert order == [1, 3, 0, 2]
    assert len(moves.moves) == 7
    for parts in ((one, two, three), (one, two, three, four, four), (one,), (one, two, three, as_region(node))):
        with pytest.raises(InvariantError, match="does not divide it"):
            moves_of(SubtreeResult(node, as_region(node), "toy", parts))
    with pytest.raises(InvariantError, match="nothing tells"):
        moves_of(SubtreeResult(node, as_region(node), "toy", ()))
