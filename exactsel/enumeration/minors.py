"""Close regions of thousands of columns and few places by counting all that is in them (quadratic loss).

With three places left all triples are counted (kernels/wide.py), with four those that are left after each pivot. The
candidates have an order. Counting goes from its end: a pivot i is fixed to 0 once (S + i, the candidates before it) is
closed. So the open part at any moment is (S, the first candidates), one node of the search, with which the next call
continues. Nothing is bounded and nothing branched on; how long it takes is known beforehand.

What neither single precision nor doubles can clear is named, column by column. Its models are fitted: a better one
lowers the level, and the call begins again. What is left then (columns that are nearly dependent, as a rule) becomes
open nodes, which the search solves with more care.

**Equal columns** (lam = 0). A column that is zero, or equal to plus or minus one in S or one that is counted, brings no
model that is not there without it. It is not counted. The regions with it in are closed on the ground that those with
the other one are, or hold nothing better than the nodes these leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import TypeGuard, cast

import numpy as np

from exactsel._jit import parallel_section
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.fit import BOUNDED_MODELS
from exactsel.enumeration.base import EnumerationResult
from exactsel.enumeration.minors_by_candidate import one_by_one
from exactsel.enumeration.minors_matrix import LARGEST_MARGIN, alike_in_order, duplicates, level_matrix, margin
from exactsel.enumeration.minors_open import Left, OpenAfterMinors, leave, walk_result, with_equal
from exactsel.enumeration.minors_parts import CountedRegion, Helpers, Part, Piece, count_part
from exactsel.errors import InputError
from exactsel.kernels.lanes import LANES
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.wide import OVERFLOW
from exactsel.problem.capabilities import CLOSED_FORM
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.regression import Problem
from exactsel.problem.restrictions import is_restricted, proposed, without_restrictions
from exactsel.types import IntArray, StateArray

FEWEST, FEWEST_BLIND = 400, 60
"""With no more columns than this other walks are quicker; the second where there are five places, lam = 0, and bounds
have no curvature to go by."""

MOST_BYTES = 2e9
"""Memory the matrix may take."""

ELIMINATED, MOST_PLACES = 4, 5
"""With so many places one candidate after the other is fixed to 1 and eliminated; with one more, two
(:mod:`exactsel.enumeration.minors_by_candidate`)."""

WORK = 3e8
"""Blocks of eight by eight that one call evaluates (about a second), or those of one pivot where that is more."""

AT_ONCE = 1e9
"""With no more blocks than this a region is counted before anything else is tried ..."""

MOST_WORK = 2e12
"""... and with more than this, not at all (two hours on one core)."""

BLOCKS_A_PIVOT = 3e4
"""Blocks that take as long as eliminating one more candidate."""

SECONDS_A_BLOCK, CORES = 3e-9, 2
"""What a block takes: nothing is begun that could not end within the time limit on so many cores."""

MULTIPLICATIONS = 20.0
"""Those of a bound call or a walk that take as long as a block."""

SMALLER = 8
"""How many times less a part takes, where a call is divided into parts, than a call that is not."""

WORTH_SENDING = 3e8
"""With fewer blocks left than this, one process completes a count before any other has begun."""

NEARER, NEAREST = 2.0**-11, 5e-12
"""Part of the tolerance that the level lies below the incumbent, and the least it does, as part of the empty model's
objective."""


class Better(Exception):
    """A better model has been found: its support and its value."""

    def __init__(self, support: tuple[int, ...], value: float) -> None:
        super().__init__(support, value)
        self.support = support
        self.value = value


class MinorTest:
    """Bound to one problem; a pure function of what :meth:`explore` is given.

    Parameters
    ----------
    problem : SubsetProblem
        Regions are counted without its restrictions; models are fitted under them.
    options : BoundOptions
    parts : int
        Into how many parts, at most, a call is divided. With several each takes an eighth of what a call takes
        otherwise, or one candidate where that is more.
    first : bool
        Count a root that is open once it has been bounded; else once the search has cost as much as counting would.
    """

    def __init__(self, problem: SubsetProblem, options: BoundOptions, parts: int = 1, *, first: bool = True) -> None:
        self.first = first
        self.parts = parts
        self.helpers: Helpers | None = None
        """Executors that count parts, where a call has several; the result is the same with any of them."""
        free = cast("Problem", without_restrictions(problem))  # which is served
        self._restricted, self._problem = problem, free
        self._options = options
        self._kept: tuple[bytes, float, CountedRegion] | None = None
        # Of rounded data without a ridge and with dependent columns nothing can be said of models of any size.
        limited = free.lam == 0 and free.preparation is not None and free.preparation.asked
        self.valid_for = BOUNDED_MODELS if limited else ""
        """The restriction under which its bounds hold for the data as given."""

    @staticmethod
    def serves(problem: SubsetProblem) -> TypeGuard[Problem]:
        """Whether regions of this problem can be counted: many columns of quadratic loss, one by one."""
        free = without_restrictions(problem)
        served = free.has(CLOSED_FORM) and free.units.free_columns
        bytes_needed = (2 if problem.k < ELIMINATED else 10) * problem.d**2
        fewest = FEWEST_BLIND if problem.k == MOST_PLACES else FEWEST
        return served and problem.d > fewest and problem.k > 0 and bytes_needed <= MOST_BYTES

    def takes(self, state: StateArray, at_once: bool) -> bool:
        """Whether to count a region: all of it, or (``at_once``) before anything else is tried."""
        work, seconds = self.work(state), self._options.seconds
        most = AT_ONCE if at_once else MOST_WORK
        in_time = seconds is None or work * SECONDS_A_BLOCK <= CORES * seconds
        return 2 - (not self.first) <= self.slots(state) <= MOST_PLACES and work <= most and in_time

    def due(self, spent: float) -> bool:
        """Whether a search that has spent so many multiplications had better have counted."""
        return not self.first and spent >= MULTIPLICATIONS * self.work(self._problem.root_state)

    def fraction(self, state: StateArray) -> float:
        """The part of the work for the whole problem that is done when this much is left."""
        whole = self.work(self._problem.root_state)
        return 1.0 if whole == 0 else 1.0 - self.work(state) / whole

    def explore(self, state: StateArray, upper: float, tolerance: Callable[[float], float]) -> EnumerationResult | None:
        """Count on in a region; about a second's worth.

        Parameters
        ----------
        state : int8 array (d,)
        upper : float
            Objective of the incumbent.
        tolerance : callable
            How far below an incumbent regions may be closed, given its objective.

        Returns
        -------
        EnumerationResult or None
            The first region it leaves open is what has not been counted yet, if there is one. None where rounding
            leaves too little to be said.

        Raises
        ------
        Stopped
        """
        counting = self.count_region if self.slots(state) < MOST_PLACES else partial(one_by_one, self, WORK)
        outcome = counting(state, upper, tolerance)
        return None if outcome is None else walk_result(state, outcome, self.work(state))

    def count_region(
        self, state: StateArray, upper: float, tolerance: Callable[[float], float]
    ) -> OpenAfterMinors | None:
        """As :meth:`explore`, where no more than :data:`ELIMINATED` places are left."""
        best: tuple[int, ...] | None = None
        while True:
            threshold = upper - self._below(tolerance(upper))
            region = self._region(state, threshold)
            if region is None:
                return None
            try:
                open_sets, rest = self._count(region, upper)
            except Better as better:
                best, upper = better.support, better.value
                continue
            return OpenAfterMinors(with_equal(open_sets, region.equal), rest, threshold, upper, best)

    def _below(self, tolerance: float) -> float:
        """How far below an incumbent to count: nearer than demanded, as that costs nothing."""
        return max(NEARER * tolerance, min(tolerance, NEAREST * self._null))

    @cached_property
    def _null(self) -> float:
        """Objective of the empty model."""
        return 0.5 * float(self._problem.y @ self._problem.y)

    def slots(self, state: StateArray) -> int:
        """The places a region has left."""
        return self._problem.k - int(np.count_nonzero(state == IN))

    def work(self, state: StateArray) -> float:
        """Blocks of eight by eight to evaluate."""
        columns, slots = float(np.count_nonzero(state == FREE)), self.slots(state)
        blocks = columns**3 / (6 * LANES**2)
        for eliminated in range(ELIMINATED, slots + 1):
            blocks = (blocks + BLOCKS_A_PIVOT * (eliminated == MOST_PLACES)) * columns / eliminated
        return blocks

    @cached_property
    def _order(self) -> tuple[IntArray, np.ndarray]:
        """All columns in the order of counting, and the columns themselves, with signs, one a row."""
        order, signs = alike_in_order(self._problem.AT)
        return order, self._problem.AT * signs[:, None]

    @cached_property
    def _equal_to(self) -> IntArray:
        """(d,) the first column that is the same, -1 for one that is zero; with a ridge or restrictions all differ."""
        d = self._problem.d
        distinct = self._problem.lam > 0 or is_restricted(self._restricted)
        return np.arange(d) if distinct else duplicates(self._problem.AT)

    def _region(self, state: StateArray, threshold: float) -> CountedRegion | None:
        """The region at a level, or the current part of one."""
        turned, fixed = self._order[1], np.flatnonzero(state == IN)
        counted, equal = self.candidates(state)
        if self._kept is not None and self._kept[:2] == (fixed.tobytes(), threshold):
            cached = self._kept[2]
            whole = counted.size in (cached.counted.size, counted.size // LANES * LANES)
            if whole and np.array_equal(cached.counted[: counted.size], counted):
                return CountedRegion(state, fixed, counted, equal, cached.matrix, threshold)
        problem, self._kept = self._problem, None
        mu = margin(problem.n, problem.k, self._null, threshold)
        if not mu <= LARGEST_MARGIN or counted.size == 0:
            return None
        keep = self.slots(state) == ELIMINATED
        with parallel_section(self._options.threads):
            matrix = level_matrix(turned[fixed], turned[counted], problem.y, problem.lam, threshold, mu, keep=keep)
        if matrix is None:
            return None
        region = CountedRegion(state, fixed, counted, equal, matrix, threshold)
        self._kept = (fixed.tobytes(), threshold, region)
        return region

    def candidates(self, state: StateArray) -> tuple[IntArray, dict[int, list[int]]]:
        """The candidates of a region that are to be counted, in order, and those equal to one of them."""
        order = self._order[0]
        fixed, free = np.flatnonzero(state == IN), order[state[order] == FREE]
        first = dict.fromkeys((-1, *self._equal_to[fixed].tolist()), -1)
        counted, equal = np.zeros(free.size, dtype=np.bool_), dict[int, list[int]]()
        for i, (j, same) in enumerate(zip(free.tolist(), self._equal_to[free].tolist(), strict=True)):
            counted[i] = same not in first
            if counted[i]:
                first[same] = j
            elif first[same] >= 0:
                equal.setdefault(first[same], []).append(j)
        return free[counted], equal

    def _count(self, region: CountedRegion, upper: float) -> tuple[Left, int]:
        """Count from the end; what is left, and how many of the candidates have not been counted."""
        size = region.counted.size
        failing = [j for j in region.matrix.failing.tolist() if j < size]
        self._offer([[j] for j in failing], region, upper)
        open_sets: Left = region.opened(failing)
        if self.slots(region.state) == 1:
            return open_sets, 0
        included: Left = {}
        parts = self._parts_of(region)
        for piece, first in self._pieces(region, parts):
            if piece.pivot < 0:
                included |= self._left_of(region, piece, (), failing, LANES * first, upper)
            else:
                included[int(region.counted[piece.pivot])] = self._left_with(region, piece, upper)
        rest = parts[-1].first * (1 if self.slots(region.state) == ELIMINATED else LANES)
        return region.joined(open_sets, included), min(size, rest)

    def _parts_of(self, region: CountedRegion) -> list[Part]:
        """What one call counts, from the end."""
        alone, failing = self.slots(region.state) == ELIMINATED, {*region.matrix.failing.tolist()}
        last = region.counted.size if alone else -(-region.counted.size // LANES)
        work, parts = WORK if self.parts == 1 else WORK / SMALLER, list[Part]()
        while last > 0 and len(parts) < self.parts:
            first, done = last, 0.0
            while first > 0 and (first == last or done < work):
                first -= 1
                done += first**3 / (6 * LANES**2) if alone else LANES * (first + 1.0) * (first + 2.0) / 2
            pivots = tuple(i for i in range(last - 1, first - 1, -1) if i not in failing) if alone else (-1,)
            parts.append(Part(region.state, region.threshold, first, last, region.counted.size, pivots))
            last = first
        return parts

    def _pieces(self, region: CountedRegion, parts: list[Part]) -> Iterator[tuple[Piece, int]]:
        """The outcomes of the parts, in their order, and where each begins."""
        again = partial(self._count_part, region)
        away = len(parts) > 1 and self.work(region.state) >= WORTH_SENDING
        counted = self.helpers(parts, again) if self.helpers is not None and away else map(again, parts)
        for part, pieces in zip(parts, counted, strict=True):
            for piece in pieces:
                yield piece, part.first

    def count(self, part: Part) -> list[Piece]:
        """Count a part of a region, for the process that counts the whole.

        Raises
        ------
        InputError
            For a part of nothing.
        Stopped
        """
        region = self._region(part.state, part.threshold) if 2 <= self.slots(part.state) <= ELIMINATED else None
        alone = self.slots(part.state) == ELIMINATED
        most = part.size if alone else -(-part.size // LANES)
        sound = all(part.first <= i < part.last for i in part.pivots) if alone else part.pivots == (-1,)
        if region is None or region.counted.size != part.size or not (sound and 0 <= part.first < part.last <= most):
            raise InputError("what was sent is no part of a count; run the same exactsel everywhere.")
        return list(self._count_part(region, part))

    def _count_part(self, region: CountedRegion, part: Part) -> Iterator[Piece]:
        return count_part(region.matrix, self.slots(region.state), part, self._options)

    def _left_with(self, region: CountedRegion, piece: Piece, upper: float) -> Left | None:
        """What is left of the region with a pivot in."""
        if not piece.definite:
            self._offer([[piece.pivot]], region, upper)
            return None
        if piece.clear:
            return {}
        gone = piece.failing.tolist()
        # Those that fail without the pivot have been branched on before, and are out here.
        failing = np.setdiff1d(gone, region.matrix.failing).tolist()
        self._offer([[piece.pivot, j] for j in failing], region, upper)
        blocks = self._left_of(region, piece, (piece.pivot,), gone, 0, upper)
        return region.opened(failing) | {column: below for column, below in blocks.items() if below is None or below}

    def _left_of(
        self, region: CountedRegion, piece: Piece, pivots: tuple[int, ...], failing: list[int], first: int, upper: float
    ) -> Left:
        """Name what is left of the columns of some blocks, which begin with the candidate ``first``, the last first.

        ``failing`` are the positions that take part in nothing, being left open with all that they are in.
        """
        size = piece.pivot if pivots else region.counted.size
        open_columns = {*failing}
        noted = [[*pivots, *(j for j in row if j >= 0)] for row in piece.rows.tolist() if open_columns.isdisjoint(row)]
        self._offer(noted, region, upper)
        open_sets: Left = {}
        for i in range(min(size, first + LANES * len(piece.found)) - 1, first - 1, -1):
            open_sets[int(region.counted[i])] = None if piece.found[(i - first) // LANES] == OVERFLOW else {}
        for positions in sorted([-j for j in row[len(pivots) :]] for row in noted):
            leave(open_sets, [int(region.counted[-j]) for j in positions])
        return open_sets

    def _offer(self, noted: list[list[int]], region: CountedRegion, upper: float) -> None:
        """Fit what could not be cleared, and begin again (:class:`Better`) where there is a better model."""
        if not noted:
            return
        supports = np.full((len(noted), self._problem.k), -1, dtype=np.int64)
        for row, positions in zip(supports, noted, strict=True):
            columns = np.sort(np.concatenate([region.fixed, region.counted[positions]]))
            row[: columns.size] = columns
        value, support = self._best_of(supports)
        if not value < upper:
            return
        while True:
            exchanged = [self._best_of(exchanges) for exchanges in self._exchanges(support, region)]
            better = min(exchanged, key=lambda pair: pair[0], default=(np.inf, support))
            if not better[0] < value:
                break
            value, support = better
        fit = proposed(self._restricted, (int(j) for j in support))
        if fit is not None and fit.value < upper:
            raise Better(fit.support, fit.value)

    def _best_of(self, supports: IntArray) -> tuple[float, IntArray]:
        values = self._restricted.objectives(supports, self._options.threads)
        values = np.where(np.isnan(values), np.inf, values)
        if self._restricted.units.constraint is not None:
            admissible = [self._admits(tuple(sorted(row[row >= 0].tolist()))) for row in supports]
            values = np.where(admissible, values, np.inf)
        best = int(np.argmin(values))
        return float(values[best]), supports[best][supports[best] >= 0]

    def _admits(self, support: tuple[int, ...]) -> bool:
        return self._restricted.units.completed(support, self._restricted.k) == support

    def _exchanges(self, support: IntArray, region: CountedRegion) -> list[IntArray]:
        """The supports of the region with one column more, or with one other than the fixed ones exchanged."""
        fixed, tables = set(region.fixed.tolist()), []
        bases = [[int(j) for j in support if j != out] for out in support if int(out) not in fixed]
        if support.size < self._problem.k:
            bases.append([int(j) for j in support])
        for base in bases:
            new = region.counted[~np.isin(region.counted, base)]
            table = np.full((new.size, self._problem.k), -1, dtype=np.int64)
            table[:, : len(base)], table[:, len(base)] = base, new
            filled = table[:, : len(base) + 1]
            filled.sort(axis=1)
            tables += [table] if new.size else []
        return tables
