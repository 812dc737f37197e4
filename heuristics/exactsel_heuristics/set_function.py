"""Pareto optimisation of any set function, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from exactsel.errors import InputError
from exactsel_heuristics._pareto_random import flipped_positions, uniform
from exactsel_heuristics._pareto_search import Outcome, best_feasible, check_options, default_iterations, key_of
from exactsel_heuristics.base import Context, never

Support = tuple[int, ...]


@dataclass(frozen=True)
class _Member:
    support: Support
    value: float
    group: Hashable

    def weakly_dominates(self, other: _Member) -> bool:
        no_worse = self.value <= other.value and len(self.support) <= len(other.support)
        return self.group == other.group and no_worse

    def dominates(self, other: _Member) -> bool:
        better = self.value < other.value or len(self.support) < len(other.support)
        return self.weakly_dominates(other) and better


def constant(support: Support) -> Hashable:
    """The isolation function that lets all supports be compared."""
    return 0


def minimum_index(support: Support) -> Hashable:
    """The smallest column, None for the empty support: the isolation function of POSS's Theorem 2."""
    return support[0] if support else None


def minimise(
    function: Callable[[Support], float],
    d: int,
    k: int,
    *,
    iterations: int | None = None, processors: int = 1, isolation: Callable[[Support], Hashable] = constant,
    seed: int = 0, should_stop: Callable[[], bool] = never,
) -> Outcome:  # fmt: skip
    """Minimise a set function over at most k of d elements by POSS, or PPOSS with more than one processor.

    Makes the same random choices as :class:`~exactsel_heuristics.poss.ParetoOptimization` and
    :class:`~exactsel_heuristics.pposs.ParallelParetoOptimization`.

    Parameters
    ----------
    function : callable
        Takes a sorted tuple of elements, of 1 to 2k - 1 of {0, ..., d - 1}; what is not a number below infinity
        never enters the archive.
    d, k, processors : int
        Elements, most elements of a support, and offspring per iteration.
    iterations : int, optional
        floor(2 e k^2 d / processors) when None.
    isolation : callable
        Supports are compared only where it returns equal values; :func:`constant` or :func:`minimum_index`, say.
    seed : int
    should_stop : callable
        Called before each iteration; once it returns True the best support so far is the answer.

    Returns
    -------
    Outcome
        ``support``, ``value`` (inf when nothing but the empty set was seen), ``evaluations``, ``curve``, ``archive``.

    References
    ----------
    C. Qian, Y. Yu and Z.-H. Zhou, Subset selection by Pareto optimization. NeurIPS 2015, Algorithm 2.
    C. Qian, J.-C. Shi, Y. Yu, K. Tang and Z.-H. Zhou, Parallel Pareto optimization. IJCAI 2016, Algorithm 2.
    """
    _check(d, k, iterations, processors)
    if k == 0:
        return Outcome()
    end = default_iterations(d, k, processors) if iterations is None else iterations
    key = key_of(Context(seed=seed))
    archive = [_Member((), math.inf, isolation(()))]
    curve: list[tuple[int, float]] = []
    iteration = 0
    while iteration < end and not should_stop():
        parent = archive[int(uniform(key, iteration, 0, 0) * len(archive))]
        born: dict[Support, int] = {}
        for p in range(processors):
            support = tuple(sorted({*parent.support} ^ {*flipped_positions(key, iteration, p + 1, d)}))
            if 0 < len(support) < 2 * k and not any(support == member.support for member in archive):
                member = _Member(support, float(function(support)), isolation(support))
                if _enters(member, archive):
                    archive = [other for other in archive if not member.weakly_dominates(other)] + [member]
                    born[support] = iteration * processors + p + 1
        _extend(curve, [m for m in archive if m.support in born and len(m.support) <= k], born)
        iteration += 1
    live = [(member.support, member.value) for member in archive]
    return Outcome(*best_feasible(live, k), iteration * processors, tuple(curve), tuple(live))


def _enters(member: _Member, archive: list[_Member]) -> bool:
    return member.value < math.inf and not any(other.dominates(member) for other in archive)


def _extend(curve: list[tuple[int, float]], members: list[_Member], born: dict[Support, int]) -> None:
    """Add what the feasible new members improve."""
    for member in members:
        if not curve or member.value < curve[-1][1]:
            curve.append((born[member.support], member.value))


def _check(d: int, k: int, iterations: int | None, processors: int) -> None:
    check_options("poss", iterations, processors=processors)
    if d < 1 or not 0 <= k <= d:
        raise InputError(f"k is {k} and d is {d}, but k must lie between 0 and d, and d must be 1 or more.")
