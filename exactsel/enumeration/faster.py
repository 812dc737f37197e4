"""Subtree enumeration by two kernels in turns, until the faster one completes.

Columns may depend on each other by relations in small whole numbers (copies, sums, the levels of a factor). There a
walk on columns that fulfil them exactly and one over the columns as they are each win by an order of magnitude, and it
is not known beforehand which. So they take turns, each with a part of the work a walk may take, and a larger one where
neither has ended.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from exactsel.enumeration.base import CombinedEnumeration, EnumerationResult
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.enumeration.dependent import DependentEnumeration
from exactsel.enumeration.work_budget import supports
from exactsel.kernels.node import FREE, IN
from exactsel.kernels.subtree_record import SubtreeLimits
from exactsel.types import StateArray

SHARES = (1 / 16, 7 / 16)
"""Parts of the work that each may take, one after the other: together no more than one alone."""


class FasterEnumeration(CombinedEnumeration):
    """Bound to one problem; a pure function of what :meth:`explore` is given."""

    curvature = None
    """There is none where columns are dependent."""

    def __init__(self, closed_form: ClosedFormEnumeration, other: DependentEnumeration) -> None:
        self._both = closed_form, other
        self._k = closed_form.k
        self.valid_for = other.valid_for

    def explore_one(self, state: StateArray, limits: SubtreeLimits) -> EnumerationResult | None:
        """What the first walk that ends brings; else the one that leaves least open, with the work of all."""
        spent, results = 0.0, list[EnumerationResult]()
        for share in SHARES:
            for enumeration in self._both:
                part = limits._replace(budget=max(1, int(share * limits.budget)), work=share * limits.work)
                result = self.of(enumeration, state, part)
                if result is None:
                    continue
                spent += result.work
                if result.finished:
                    return replace(result, work=spent)
                results.append(result)
        return replace(min(results, key=self._left), work=spent) if results else None

    def _left(self, walk: EnumerationResult) -> int:
        """The supports in the regions a walk left open."""
        return sum(
            supports(self._k - int(np.count_nonzero(state == IN)), int(np.count_nonzero(state == FREE)))
            for state in walk.open_states
        )
