"""What is looked at while a search runs: nothing in sound searches, everything that is planted in others."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import TWINS
from every_search import SEARCHES
from samples import many, sample

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, Settings, solve
from exactsel.bounds.witness import ModelPoint
from exactsel.cli.main import main
from exactsel.errors import InvariantError, UnsupportedError
from exactsel.nodes.trees import BinaryTree
from exactsel.proofs.evaluating import UNTRUSTED, Claim, Evaluator
from exactsel.proofs.recheck import Recheck
from exactsel.search import commit
from exactsel.search.frontier import BestFirst
from exactsel.search.spilling import Spilling
from exactsel.solving.reproducer import kept
from exactsel.solving.solver import Search
from exactsel.testing.reproducers import read_reproducer
from exactsel.testing.solving import Refused, solved
from exactsel_dev.campaigns.random_instances import random_instance

CHUNK = 50
"""Random instances of one test."""


def audited(kind, seed=900, **more):
    make, options = SEARCHES[kind]
    return solve(make(seed), **options | more, signals=(), recheck=True, failures=None)


@pytest.mark.parametrize("kind", SEARCHES)
def test_sound_searches_of_every_kind(kind, kernels_at_once):
    for seed in range(900, 900 + many(1, 3)):
        make, options = SEARCHES[kind]
        plain = solve(make(seed), **options, details=True, signals=())
        result = audited(kind, seed)
        assert result.tree_hash == plain.tree_hash, "an audit changes nothing"


@pytest.mark.parametrize("chunk", sample(4, 60, smoke=1))
def test_sound_searches_of_random_instances(chunk):
    tried = 0
    for seed in range(3_000_000 + CHUNK * chunk, 3_000_000 + CHUNK * (chunk + 1)):
        try:
            tried += solved(random_instance(seed), recheck=True).nodes > 0
        except Refused:
            continue
    assert tried > 0


def test_it_evaluates_what_was_committed():
    make, options = SEARCHES["huber, default"]
    search = Search(make(900), Settings(**options), details=True)
    recheck = Recheck(search.problem)
    for event in search:
        recheck(event, search.state)
    assert recheck.bounds >= search.state.nodes > 1


def test_a_loss_the_checker_does_not_know():
    from own_loss import PseudoHuber

    problem = Problem(np.eye(3), np.ones(3), 1, lam=1.0, loss=PseudoHuber(1.0))
    with pytest.raises(UnsupportedError, match="the checker does not know the loss"):
        solve(problem, recheck=True)


# Planted faults


@pytest.fixture
def high_bounds(monkeypatch):
    """Bounds of relaxations a millionth too high, which changes no result worth speaking of."""
    from exactsel.bounds import apg

    tighten = apg.PreparedPerspective.tighten

    def lift(self, *arguments, **named):
        answer = tighten(self, *arguments, **named)
        answer.answers.bound[:] *= 1 + 1e-6
        return answer

    monkeypatch.setattr(apg.PreparedPerspective, "tighten", lift)


@pytest.mark.untrue
def test_a_bound_a_millionth_too_high(high_bounds):
    with pytest.raises(InvariantError, match="what is said to prove it"):
        audited("apg, ridge alone")


@pytest.mark.untrue
def test_a_node_that_is_lost(monkeypatch):
    take = BestFirst.take

    def losing(self, count):
        nodes = take(self, count)
        return nodes[:1] if len(nodes) == 2 else nodes

    monkeypatch.setattr(BestFirst, "take", losing)
    make, options = SEARCHES["huber, default"]
    with pytest.raises(InvariantError, match=r"nodes are open where \d must be \(round \d, "):
        [solve(make(seed), **options | {"batch": 2, "subtrees": False}, failures=None) for seed in range(900, 920)]


@pytest.mark.untrue
def test_a_node_that_is_there_twice(monkeypatch):
    settle = commit._settle

    def twice(state, number, region, parent, depth):
        yield from settle(state, number, region, parent, depth)
        if region.closed is None:
            yield from settle(state, number, region, parent, depth)

    monkeypatch.setattr(commit, "_settle", twice)
    with pytest.raises(InvariantError, match="are not closed"):
        audited("huber, default", subtrees=False)


@pytest.mark.untrue
def test_a_child_that_is_another_region(monkeypatch):
    split = BinaryTree.split

    def without_a_column(self, state, column, k):
        found = split(self, state, column, k)
        rest = found.rest.copy()
        rest[np.flatnonzero(rest == 1)[:1]] = 0
        return replace(found, rest=rest) if hasattr(found, "__dataclass_fields__") else found._replace(rest=rest)

    monkeypatch.setattr(BinaryTree, "split", without_a_column)
    with pytest.raises(InvariantError, match="is another region than the decisions that led to it make it"):
        audited("huber, default", subtrees=False)


@pytest.mark.untrue
def test_a_bound_that_falls(monkeypatch):
    settle = commit._settle

    def falling(state, number, region, parent, depth):
        yield from settle(state, number, replace(region, bound=region.bound * (1 - 1e-6)), parent, depth)

    monkeypatch.setattr(commit, "_settle", falling)
    make, options = SEARCHES["huber, default"]
    with pytest.raises(InvariantError, match="the lower bound fell from"):
        [solve(make(seed), **options | {"batch": 1, "subtrees": False}, failures=None) for seed in range(900, 920)]


@pytest.mark.untrue
def test_a_model_below_the_bounds(monkeypatch):
    """Found in every search, audited or not: the bounds of this one are a tenth too high, and it begins with none."""
    from exactsel.bounds import apg

    tighten = apg.PreparedPerspective.tighten

    def lift(self, *arguments, **named):
        answer = tighten(self, *arguments, **named)
        answer.answers.bound[:] *= 1.5
        return answer

    monkeypatch.setattr(apg.PreparedPerspective, "tighten", lift)
    make, options = SEARCHES["huber, default"]
    told = []
    for seed in range(900, 930):
        try:
            solve(make(seed), **options | {"batch": 1, "subtrees": False}, failures=None)
        except InvariantError as error:
            told.append(str(error))
    assert any("no model was to be below" in each for each in told)


@pytest.mark.untrue
def test_what_is_kept_of_it(high_bounds, tmp_path, capsys):
    make, options = SEARCHES["apg, ridge alone"]
    with pytest.raises(InvariantError, match="This is a defect of exactsel: do not rely on the result") as raised:
        solve(make(900), **options, seed=5, recheck=True, failures=tmp_path)
    file = raised.value.reproducer
    assert file is not None
    words = json.loads((tmp_path / file).read_text())
    assert words["seed"] == 5
    assert words["round"] >= 0
    found = read_reproducer(tmp_path / file)
    assert found.instance.problem().hash == make(900).hash
    assert found.instance.settings["bound"] == "apg"
    with pytest.raises(SystemExit, match="1"):
        main(["dev", "reduce", file])
    assert "still fails" in capsys.readouterr().out
    small = read_reproducer(tmp_path / file).instance
    assert small.n < 10
    assert small.d < 9


@pytest.mark.parametrize("kind", ["weights", "hierarchy", "groups", "columns"])
def test_any_problem_can_be_kept(kind, tmp_path):
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((8, 5)), rng.standard_normal(8)
    problem = {
        "weights": lambda: Problem.prepared(
            A, y, 2, loss="huber", delta=0.5, lam=0.1, weights=np.arange(8.0), intercept=True, scale=True
        ),
        "hierarchy": lambda: Problem(A, y, 3, lam=0.1, force_out=[4], hierarchy={2: (0, 1)}, hierarchy_kind="weak"),
        "groups": lambda: GroupedProblem(Problem(A, y, 2, lam=0.1), ["a", "a", None, "b", "b"], force_in=[0]),
        "columns": lambda: ColumnSubsetProblem(A, 2),
    }[kind]()
    search = Search(problem, Settings(batch=3))
    error = kept(InvariantError("so."), problem, search.settings, search.state, tmp_path)
    again = read_reproducer(tmp_path / error.reproducer).instance
    assert again.problem().hash == problem.hash
    assert again.settings == {"batch": 3}


def test_where_nothing_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    search = Search(ColumnSubsetProblem(np.eye(3), 1))
    error = InvariantError("so.")
    assert kept(error, search.problem, search.settings, search.state, tmp_path / "nowhere") is error


def test_a_frontier_on_the_disk(kernels_at_once):
    """Nodes that wait on the disk are looked at before they go there."""
    make, options = SEARCHES["quadratic, no walks"]
    search = Search(make(900), Settings(**options | {"memory_limit": 0.001}), details=True)
    recheck = Recheck(search.problem)
    for event in search:
        recheck(event, search.state)
    assert isinstance(search.state.frontier, Spilling)


def test_on_the_command_line(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["solve", TWINS, "--recheck", "--quiet"])
    assert "coefficient" in capsys.readouterr().out


@pytest.mark.parametrize("size", [1.0, 1e8, 1e16, 1e100, 1e300])
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "squared_hinge", "poisson"])
def test_a_witness_that_makes_much_of_rounding_proves_no_more(loss, size):
    """What rounding may do grows with the coefficients of a witness, and who names it may choose them."""
    rng = np.random.default_rng(0)
    A, noise = rng.normal(size=(30, 6)), rng.normal(size=30)
    y = rng.poisson(2.0, 30).astype(float) if loss == "poisson" else A[:, 0] + noise
    y = np.where(y > 0, 1.0, -1.0) if loss in ("logistic", "squared_hinge") else y
    problem = Problem(A, y, 3, loss=loss, lam=0.1)
    point = ModelPoint(np.array([1], dtype=np.int32), np.array([size]))
    high = problem.fit(range(6)).value * (1.0 + 1e-5)
    with np.errstate(all="ignore"):
        assert Evaluator(problem, UNTRUSTED).short([Claim(bytes([1] * 6), point, high, 0, 0)], [0.0], False) is not None
