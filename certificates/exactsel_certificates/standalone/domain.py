"""The problems the second checker speaks of: what is outside is refused before a region of a proof is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .bounds import checked_bounds
from .constraints import arguments_of, demands_of, is_asked
from .demands import Demands
from .equalities import Equalities, checked_equalities
from .losses import LOSSES, Loss
from .values import LARGEST, SMALLEST, Outside, choice, double, listed, refuse, shown, whole

LIGHTEST, HEAVIEST = 1e-30, 1e30


class Problem(NamedTuple):
    """A problem inside the domain; all numbers are plain floats and ints."""

    A: list[list[float]]
    y: list[float]
    k: int
    loss: Loss | None
    """None for column subset selection."""
    lam: float
    force_in: list[int]
    force_out: list[int]
    weights: list[float] | None
    level: bool
    scale: bool
    groups: list[list[int]]
    hierarchy: Demands | None
    bounds: list[list[float]]
    """Lower and upper limits of coefficients, infinite where there is none; empty without any."""
    equalities: Equalities | None = None


def problem_of(
    A: object, y: object, k: object, loss: object, lam: object, delta: object, force_in: object = (),
    force_out: object = (), weights: object = None, level: object = False, groups: object = (), scale: object = False,
    bounds: object = None, equalities: object = None, **related: object,
) -> Problem:  # fmt: skip
    """The problem these make, ``loss`` "" for column subset selection; ``related``: see .constraints.

    Raises
    ------
    Outside
    """
    if not isinstance(loss, str) or loss not in ("", *LOSSES):
        refuse("loss", loss, f"one of {', '.join(LOSSES)}")
    level, scale = _flag("intercept", level), _flag("scale", scale)
    related = arguments_of(related)
    rows = _table(A)
    n, d = len(rows), len(rows[0])
    limit = whole(k)
    if limit is None or not 0 <= limit <= d:
        refuse("k", k, f"a whole number from 0 to {d}")
    if not loss:
        demands = (force_in, force_out, groups)
        others = [part for part in (weights, bounds, equalities) if part is not None]
        if level or scale or others or is_asked(related) or any(listed("a list of columns", v) for v in demands):
            raise Outside(
                "column subset selection was given weights, an intercept, a scale, groups, a hierarchy, pairs, bounds, "
                "equalities or forced columns, but knows none of them."
            )
        return Problem(rows, [], limit, None, 0.0, [], [], None, False, False, [], None, [])
    target = _numbers("y", y, n)
    kind = LOSSES[loss]
    kind.check_target(target)
    if kind.needs_ridge and lam == 0:
        raise Outside(f"lam is 0, but a positive number was expected with {loss} loss.")
    if not _measurable(target):
        raise Outside(f"y holds nothing above {SMALLEST:g} in size without being zero; multiply it by a constant.")
    units = _partition(groups, d)
    together, units = demands_of(related, units, d)
    have, banned = (choice(name, v, len(units) or d) for name, v in (("force_in", force_in), ("force_out", force_out)))
    if len(have) > limit:
        raise Outside(f"{len(have)} columns or groups are forced in, but k is {limit}.")
    if {*have} & {*banned}:
        raise Outside("a column or group is forced in and out at once, but only one of the two was expected.")
    return Problem(
        rows, target, limit, kind(delta), _ridge(lam), have, banned,
        None if weights is None else _row_weights(weights, n), level, scale, units, together,
        [] if bounds is None else checked_bounds(bounds, d, scale),
        None if equalities is None else checked_equalities(equalities, d, kind.by_products),
    )  # fmt: skip


def _flag(name: str, flag: object) -> bool:
    if not isinstance(flag, bool):
        refuse(name, flag, "True or False")
    return flag


def _numbers(name: str, values: object, count: int) -> list[float]:
    """So many numbers."""
    entries = listed(name, values)
    if len(entries) != count:
        raise Outside(f"{name} holds {len(entries)} numbers, but {count} were expected.")
    numbers = []
    for value in entries:
        number = double(value)
        if number is None:
            raise Outside(f"{name} holds {shown(value)}, but doubles of at most {LARGEST:g} in size were expected.")
        numbers.append(number)
    return numbers


def _measurable(values: Sequence[float]) -> bool:
    """Whether these are all zero, or the largest of them is of a size that squares can be taken of."""
    largest = max(map(abs, values))
    return largest == 0 or largest >= SMALLEST


def _table(A: object) -> list[list[float]]:
    """The columns, as rows of equal length."""
    table = listed("A", A)
    if not table or not listed("the first row of A", table[0]):
        raise Outside("A has no rows or no columns, but at least one of each was expected.")
    rows = [_numbers(f"row {i} of A", row, len(table[0])) for i, row in enumerate(table)]
    for j, column in enumerate(zip(*rows, strict=True)):
        if not _measurable(column):
            raise Outside(
                f"column {j} of A holds nothing above {SMALLEST:g} in size without being zero; multiply it by a "
                f"constant."
            )
    return rows


def _ridge(lam: object) -> float:
    number = double(lam)
    if number is None or not (number >= SMALLEST or number == 0):
        refuse("lam", lam, f"0 or a number from {SMALLEST:g} to {LARGEST:g}")
    return number


def _row_weights(weights: object, n: int) -> list[float]:
    numbers = _numbers("weights", weights, n)
    if not any(numbers) or not all(v == 0 or LIGHTEST <= v <= HEAVIEST for v in numbers):
        raise Outside(
            f"the weights are all zero, or one is neither zero nor from {LIGHTEST:g} to {HEAVIEST:g}; correct them."
        )
    return numbers


def _partition(groups: object, d: int) -> list[list[int]]:
    """Groups in the order of their first columns, every column in one of them; empty where there are none."""
    held = [choice("a group", group, d) for group in listed("groups", groups)]
    if held and (not all(held) or sorted(j for group in held for j in group) != [*range(d)]):
        raise Outside("the groups leave a column out or hold one twice, but every column was expected in one group.")
    if any(group != sorted(group) for group in held) or [g[0] for g in held] != sorted(g[0] for g in held):
        raise Outside("the groups or their columns are out of order, but the order of their columns was expected.")
    return held
