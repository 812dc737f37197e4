"""Conformance checks for heuristics."""

from __future__ import annotations

import numpy as np

from exactsel import registry
from exactsel._jit import without_compiling
from exactsel.errors import UnsupportedError
from exactsel.problem.interface import SubsetProblem
from exactsel.start.heuristic import Context, Heuristic, Proposal
from exactsel.studies.heuristics import run
from exactsel.testing.cases import awkward_problems

ROUNDING = 1e-7
"""Relative: how far a value a method reports may be from the exact refit."""


@without_compiling()
def check_heuristic(heuristic: str | Heuristic, *, reproducible: bool = True) -> None:
    """Assert that a heuristic keeps its contract on small awkward problems of all families.

    It may refuse a problem with :class:`exactsel.errors.UnsupportedError` and a sentence, but not all of them. Where it
    serves, its support holds at most k columns of the problem, equal seeds give equal proposals, the problem and
    numpy's global random state are left alone, it returns something valid after an immediate stop, its anytime curve
    descends and ends no lower than its answer, and :func:`exactsel.heuristics.run` certifies the answer. With an
    attribute ``portions`` it also does as much with a limit on its work, and hands on valid supports.

    Parameters
    ----------
    heuristic : str or Heuristic
        A registered name, or an object.
    reproducible : bool
        False for a method that says that its answer may differ from run to run.

    Raises
    ------
    AssertionError
        With a sentence that says what went wrong, and on which problem.
    """
    method: Heuristic = registry.load("heuristics", heuristic)() if isinstance(heuristic, str) else heuristic
    assert isinstance(method, Heuristic), f"{method!r} lacks `name` or `run`"
    if isinstance(heuristic, str):
        assert method.name == heuristic, f"registered as '{heuristic}', but its name is '{method.name}'"
    served = 0
    for label, problem in awkward_problems():
        where = f"{method.name} on {label}"
        try:
            _check_on(method, problem, reproducible, where)
        except UnsupportedError as refusal:
            sentence = str(refusal)
            assert sentence, f"{where}: refused without a sentence"
            continue
        served += 1
    assert served, f"{method.name} refused every problem"


def _check_on(method: Heuristic, problem: SubsetProblem, reproducible: bool, where: str) -> None:
    untouched, chance = problem.hash, np.random.get_state()  # noqa: NPY002 (the state plug-ins must leave alone)
    proposal = method.run(problem, Context(seed=3))
    _check_proposal(proposal, problem, where)
    if reproducible:
        assert method.run(problem, Context(seed=3)) == proposal, f"{where}: equal seeds gave different proposals"
    stopped = method.run(problem, Context(seed=3, should_stop=lambda: True))
    _check_proposal(stopped, problem, f"{where}, told to stop at once")
    assert stopped.evaluations <= proposal.evaluations or not reproducible, f"{where}: worked on after the stop"
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(chance, after, strict=True)), f"{where}: used numpy's global state"
    assert _rehashed(problem) == untouched, f"{where}: changed the problem's data"
    if getattr(method, "portions", False):
        _check_portion(method, problem, proposal, where)
    result = run(method, problem, seed=3, signals=())
    assert np.isfinite(result.lower), f"{where}: no lower bound"
    assert result.lower <= result.upper, f"{where}: the lower bound lies above its model"


def _check_portion(method: Heuristic, problem: SubsetProblem, proposal: Proposal, where: str) -> None:
    """A little work from a known support: a valid answer, the same every time, and supports to start from later."""
    context = Context(seed=4, start=proposal.support or None, supports=proposal.others, work=1e5)
    portion = method.run(problem, context)
    _check_proposal(portion, problem, f"{where}, a portion of work")
    assert method.run(problem, context) == portion, f"{where}: equal portions gave different proposals"
    for support in portion.others:
        _check_proposal(Proposal.of(support, 0), problem, f"{where}, what a portion hands on")


def _check_proposal(proposal: Proposal, problem: SubsetProblem, where: str) -> None:
    assert isinstance(proposal, Proposal), f"{where}: returned {type(proposal).__name__}, not a Proposal"
    support = proposal.support
    assert all(type(j) is int for j in support), f"{where}: column numbers must be plain ints, got {support}"
    assert list(support) == sorted(set(support)), f"{where}: the support {support} is not ascending and distinct"
    assert len(support) <= problem.k, f"{where}: {len(support)} columns, but k is {problem.k}"
    assert all(0 <= j < problem.d for j in support), f"{where}: {support} names columns that do not exist"
    assert proposal.evaluations >= 0, f"{where}: {proposal.evaluations} evaluations"
    assert len(set(proposal.path)) == len(proposal.path), f"{where}: the path {proposal.path} repeats a column"
    assert len(proposal.criterion) in (0, len(proposal.path)), f"{where}: one criterion per step of the path, please"
    counts, values = [count for count, _ in proposal.curve], [value for _, value in proposal.curve]
    assert counts == sorted(counts), f"{where}: the anytime curve goes back in evaluations"
    assert values == sorted(values, reverse=True), f"{where}: the anytime curve rises"
    if values:
        value = problem.fit(support).value
        assert abs(values[-1] - value) <= ROUNDING * (1.0 + abs(value)), (
            f"{where}: the anytime curve ends at {values[-1]!r}, but the answer's objective is {value!r}"
        )


def _rehashed(problem: SubsetProblem) -> str:
    """The hash of the data as they are now; the problem's own is cached."""
    return str(problem.replace().hash)
