"""What the other solvers are told about an instance beforehand, outside their time: a good model, and a price.

Some solvers minimise P(x) plus a price for each column and cannot be told k. They solve our problem if there is a price
at which k columns are optimal, which is so where k is a corner of the lower convex hull of the optima over all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exactsel import solve
from exactsel.problem.fit import Fit
from exactsel.problem.regression import Problem

NODES = 100_000
"""Nodes a search for k columns may take: with the best model, that there is no price is certain."""

NEIGHBOUR_NODES = 2_000
"""The same for other sizes, where a worse model makes the range of prices wider than it is, never narrower."""

SECONDS = 10.0
"""Seconds on the clock any search may take."""


@dataclass(frozen=True)
class Hints:
    """A model and its objective, and the price, None where there is none."""

    upper: float
    support: tuple[int, ...]
    penalty: float | None = None

    def arguments(self) -> tuple[str, ...]:
        """The options of the peers' command line."""
        price = () if self.penalty is None else ("--penalty", repr(self.penalty))
        columns = ",".join(map(str, self.support))
        return ("--upper", repr(self.upper), "--support", columns, *price)


def hints(problem: Problem, priced: bool) -> Hints:
    """What short searches tell; the price only if asked for, since it takes one for each size up to k + 3."""
    best = found(problem, problem.k, NODES)
    if not priced:
        return Hints(best.value, best.support)
    sizes = range(min(problem.d, problem.k + 3) + 1)
    objectives = [best.value if size == problem.k else found(problem, size, NEIGHBOUR_NODES).value for size in sizes]
    return Hints(best.value, best.support, price(objectives, problem.k))


def found(problem: Problem, size: int, nodes: int) -> Fit:
    """The best model of ``size`` columns that a short search finds."""
    if size == 0:
        return problem.fit(())
    return problem.fit(solve(problem.replace(k=size), threads=1, node_limit=nodes, time_limit=SECONDS).support)


def price(objectives: Sequence[float], k: int) -> float | None:
    """A price per column at which size k is best, the objectives being those of the sizes 0, 1, ...

    A larger size must not pay, which needs a price above ``least``; nor may a smaller one, which needs one below
    ``most``. The price is midway, None if there is none.
    """
    larger, smaller = range(k + 1, len(objectives)), range(k)
    least = max(((objectives[k] - objectives[size]) / (size - k) for size in larger), default=0.0)
    most = min(((objectives[size] - objectives[k]) / (k - size) for size in smaller), default=float("inf"))
    return 0.5 * (least + most) if max(0.0, least) < most < float("inf") else None
