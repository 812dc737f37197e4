"""Certified intervals for the optimum on a support, for losses without formulas: Newton in decimals, then weak duality.

With slopes g_i in the domain of l* (and sum w_i g_i = 0 with an intercept) no model on the support is below

    - sum w_i l*(g_i) + sum w_i g_i o_i - sum_j v_j^2 / (2 lam s_j^2),    v_j = sum_i w_i g_i a_ij,

(o the offset) and at the slopes of a point near the optimum this is within the square of its gradient of the point's
own objective. With limits of coefficients the last terms are the minima of v_j x + (lam/2) s_j^2 x^2 between them; with
lam = 0 slopes are moved until every v_j is zero, in fractions (exactsel_dev.campaigns.ridgeless_fits).
Decimals carry 50 digits or more; what their rounding may do is taken off one end of the interval, added to the other.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.attacks.decimal_losses import PoissonRow, Row, RowLoss, row_loss
from benchmarks.attacks.exact import Data, power
from exactsel.testing.instances import TinyInstance
from exactsel_dev.campaigns.existence import dependent
from exactsel_dev.campaigns.ridgeless_fits import balanced, counting
from exactsel_dev.campaigns.whole_numbers import WholeData

DIGITS = (50, 160, 480)
"""Tried in turn until the interval is tight."""

TIGHT = Decimal("1e-24")
"""Relative width at which an interval will do."""

SMALLEST_SLOPE = Decimal("1e-600")

MOST_STEPS = 80
"""Newton steps per number of digits."""

Interval = tuple[Fraction, Fraction]


def enclosure(data: Data, columns: Sequence[int], delta: float | None, enough: Fraction | None = None) -> Interval:
    """An interval that holds the smallest objective on the columns.

    ``enough`` is an objective known from elsewhere: as soon as the lower end is above it, nothing is gained by more.
    """
    low, high = Fraction(0), None
    start: list[Decimal] | None = None
    whole = _whole(data, delta) if data.lam == 0 and data.case.lower is None else None
    columns = columns if whole is None else _independent(whole, columns)
    for digits in DIGITS:
        with decimal.localcontext() as context:
            context.prec, context.Emax, context.Emin = digits, decimal.MAX_EMAX, decimal.MIN_EMIN
            rows = _rows(data, columns, delta)
            if whole is not None:
                rows = replace(rows, balance=lambda slopes: balanced(whole, columns, slopes))
            search = _Newton(rows, start)
            tight = _within(search, None if enough is None else _decimal(enough))
            low = max(low, Fraction(search.low))
            if search.high.is_finite():
                high = Fraction(search.high) if high is None else min(high, Fraction(search.high))
            start = search.point
        if tight:
            break
    assert high is not None
    return low, high


def _whole(data: Data, delta: float | None) -> WholeData:
    """The numbers as those expect them who move slopes; of the target only the labels count there."""
    case = data.case
    return WholeData(TinyInstance(case.A, np.asarray(case.y), case.k, case.loss, 0.0, delta or 1.0, case.weights,
                                  case.intercept))  # fmt: skip


def _independent(whole: WholeData, columns: Sequence[int]) -> list[int]:
    """Columns that no earlier ones make up for."""
    kept: list[int] = []
    for j in counting(whole, columns):
        if not dependent(whole, [*kept, j]):
            kept.append(j)
    return kept


def model_objective(data: Data, coef: Sequence[float], delta: float | None = None, digits: int = 60) -> Interval:
    """An interval that holds the objective of a model, its intercept the best there is."""
    case = data.case
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = digits, decimal.MAX_EMAX, decimal.MIN_EMIN
        predicted = [p + o for p, o in zip(data.predictions(coef), data.offset, strict=True)]
        if case.intercept:  # any shift will do; this one is near the best
            middle = sorted(predicted)[len(predicted) // 2]
            predicted = [z - middle for z in predicted]
        rows = replace(_rows(data, [], delta), offset=[_decimal(z) for z in predicted])
        search = _Newton(rows, None)
        search.run(None)
        ridge = data.ridge(coef)
        high = Fraction(search.high) if search.high.is_finite() else Fraction(2) ** 20000
        return Fraction(search.low) + ridge, high + ridge


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@dataclass(frozen=True)
class _Rows:
    """The problem on some columns: centred where there is an intercept, each of them scaled to size one."""

    columns: list[list[Decimal]]
    weights: list[Decimal]
    target: list[Decimal]
    loss: RowLoss
    level: bool
    ridge: list[Decimal]
    """lam s_j^2 of the columns as they are here."""
    offset: list[Decimal]
    """What is added to every prediction."""
    limits: list[tuple[Decimal, Decimal]] | None = None
    """Of the coefficients of the columns as they are here."""
    balance: Callable[[list[Decimal]], list[Fraction] | None] | None = None
    """Without a ridge: what moves slopes until nothing is left along the columns."""


def _rows(data: Data, columns: Sequence[int], delta: float | None) -> _Rows:
    case = data.case
    made, ridges, limits = [], [], []
    for j in columns:
        column = [Fraction(value) for value in data.columns[j]]
        if case.intercept:
            middle = Fraction(data.first(data.columns[j]), data.total)
            column = [value - middle for value in column]
        size = max(map(abs, column), default=Fraction(0)) or Fraction(1)
        size = power(size.numerator.bit_length() - size.denominator.bit_length())
        made.append([_decimal(value / size) for value in column])
        unit = size * power(data.powers[j])
        ridges.append(_decimal(data.lam * data.squared_scale(j) / unit**2))
        if case.lower is not None and case.upper is not None:
            limits.append((_scaled(case.lower[j], unit), _scaled(case.upper[j], unit)))
    target = [Fraction(value) * power(data.target_power) for value in data.target]
    if case.loss in ("logistic", "squared_hinge"):
        target = [Fraction(1 if value > 0 else -1) for value in target]
    elif case.intercept and case.loss == "huber":
        middle = sorted(target)[len(target) // 2]
        target = [value - middle for value in target]
    weights = [_decimal(w) for w in data.row_weights()]
    return _Rows(made, weights, [_decimal(t) for t in target], row_loss(case.loss, delta), case.intercept, ridges,
                 [_decimal(o) for o in data.offset], limits or None)  # fmt: skip


def _scaled(limit: float, unit: Fraction) -> Decimal:
    return Decimal(limit) if limit in (float("inf"), -float("inf")) else _decimal(Fraction(limit) * unit)


def _within(search: _Newton, enough: Decimal | None) -> bool:
    """Whether the interval became tight, by Newton's method among limits: coefficients beyond one are held there."""
    limits = search.rows.limits
    if limits is None:
        return search.run(enough)
    for _ in range(3 ** len(limits)):
        if search.run(enough):
            return True
        free = ((j, search.point[j], *pair) for j, pair in enumerate(limits) if j not in search.held)
        worst = max(((max(low - x, x - high), j) for j, x, low, high in free if not low <= x <= high), default=None)
        if worst is not None:
            low, high = limits[worst[1]]
            search.held[worst[1]] = low if search.point[worst[1]] < low else high
        else:
            wrong = search.pulled()
            if wrong is None:
                return False
            del search.held[wrong]
        search.settle()
    return False


class _Newton:
    """Damped Newton for the coefficients and the intercept together; ``low`` and ``high`` hold at every moment.

    Coefficients that are ``held`` stay at a limit.
    """

    def __init__(self, rows: _Rows, start: list[Decimal] | None) -> None:
        self.rows = rows
        self.size = len(rows.columns) + rows.level
        self.all = [*rows.columns, [Decimal(1)] * len(rows.weights)] if rows.level else rows.columns
        self.point = [Decimal(0)] * self.size if start is None else start
        self.low, self.high = Decimal(0), Decimal("Infinity")
        self.unit = Decimal(10) ** (12 - decimal.getcontext().prec)
        self.held: dict[int, Decimal] = {}

    def settle(self) -> None:
        """Put coefficients that are held where they are held, and the others between their limits."""
        for j, (low, high) in enumerate(self.rows.limits or ()):
            self.point[j] = self.held.get(j, max(low, min(high, self.point[j])))

    def pulled(self) -> int | None:
        """A coefficient that is held at a limit and wants to leave it; None where there is none."""
        gradient = self._gradient(self.point, self._look(self.point)[1])
        limits = self.rows.limits or []
        wants = [(abs(gradient[j]), j) for j, at in self.held.items()
                 if gradient[j] * (1 if at == limits[j][1] else -1) > 0]  # fmt: skip
        return max(wants)[1] if wants else None

    def run(self, enough: Decimal | None) -> bool:
        """Whether the interval became tight (or its lower end passed ``enough``)."""
        value, slopes, bends = self._look(self.point)
        for _ in range(MOST_STEPS):
            if self.high - self.low <= TIGHT * self.high or (enough is not None and self.low > enough):
                return True
            gradient = self._gradient(self.point, slopes)
            gradient = [Decimal(0) if j in self.held else value for j, value in enumerate(gradient)]
            step = self._step(gradient, bends) or self._step(gradient, self._lifted(bends))
            if step is None or not any(gradient):
                self._balance(slopes)
                return self.high - self.low <= TIGHT * self.high
            left = _dot(gradient, step)
            if left <= TIGHT / 100 * self.high:
                self._balance(slopes)
            if self.rows.limits is not None and left <= TIGHT / 100 * value:
                return self.high - self.low <= TIGHT * self.high  # beyond limits neither end learns any more
            self.point, (value, slopes, bends) = self._along(step, gradient)
        return self.high - self.low <= TIGHT * self.high

    def _balance(self, slopes: list[Decimal]) -> None:
        """Without a ridge: the lower end that slopes give once nothing is left along the columns."""
        # As a fraction 1e-50000 is a number of that many digits.
        slopes = [g if abs(g) > SMALLEST_SLOPE else Decimal(0) for g in slopes]
        moved = None if self.rows.balance is None else self.rows.balance(slopes)
        if moved is not None:
            total, size = self._conjugates([_decimal(g) for g in moved])
            self.low = max(self.low, total - size * self.unit)

    def _along(self, step: list[Decimal], gradient: list[Decimal]) -> Any:
        """A point on the way along the step, and what is seen there.

        The derivative along the way rises, so a point where it is not positive yet, or has become small, is better. The
        length of the step is halved once, twice, four, eight times and so on, and then the exponent bisected.
        """

        def at(halvings: int) -> tuple[Any, bool]:
            length = Decimal(2) ** -halvings
            point = [x - length * s for x, s in zip(self.point, step, strict=True)]
            seen = self._look(point)
            slope = -_dot(self._gradient(point, seen[1]), step)
            return (point, seen), slope <= -first / 2

        first = -_dot(gradient, step)
        found, fine = at(0)
        if fine:
            return found
        little, much = 0, 1
        found, fine = at(much)
        while not fine and much < 2**40:
            little, much = much, 2 * much
            found, fine = at(much)
        while much - little > 1:
            middle = (little + much) // 2
            tried, fine = at(middle)
            little, much = (little, middle) if fine else (middle, much)
            found = tried if fine else found
        return found

    def _lifted(self, bends: Sequence[Decimal]) -> list[Decimal]:
        """Second derivatives, none of them zero."""
        return [b or Decimal("1e-9") * m for b, m in zip(bends, self._majorants(self.point), strict=True)]

    def _predictions(self, point: Sequence[Decimal]) -> list[Decimal]:
        z = list(self.rows.offset)
        for x, column in zip(point, self.all, strict=True):
            if x:
                z = [v + x * a for v, a in zip(z, column, strict=True)]
        return z

    def _look(self, point: list[Decimal]) -> tuple[Decimal, list[Decimal], list[Decimal]]:
        """The objective, the slopes of the rows and their second derivatives; the interval learns from both ends."""
        rows, z = self.rows, self._predictions(point)
        seen = [rows.loss.at(v, y) for v, y in zip(z, rows.target, strict=True)]
        slopes, bends = [row.slope for row in seen], [row.bend for row in seen]
        ridge = sum((r * x * x for r, x in zip(rows.ridge, point, strict=False)), Decimal(0)) / 2
        value = sum((w * row.value for w, row in zip(rows.weights, seen, strict=True)), ridge)
        limits = rows.limits or []
        if all(low <= x <= high for x, (low, high) in zip(point, limits, strict=False)):
            self.high = min(self.high, value + self._blur(point, seen) + value * self.unit)
        if rows.balance is None and value.is_finite():
            self.low = max(self.low, self._dual(slopes))
        return value, slopes, bends

    def _blur(self, point: Sequence[Decimal], seen: Sequence[Row]) -> Decimal:
        """What rounding in the predictions may do to the objective."""
        total, counts = Decimal(0), isinstance(self.rows.loss, PoissonRow)
        for i, (w, row) in enumerate(zip(self.rows.weights, seen, strict=True)):
            size = sum((abs(x * a[i]) for x, a in zip(point, self.all, strict=True)), abs(self.rows.offset[i]))
            size += abs(self.rows.target[i])
            total += w * (abs(row.slope) * size + (1 + row.bend) * size * size * self.unit)
            total += w * (row.bend + 3 * abs(self.rows.target[i]) * (1 + size)) if counts else 0
        return total * self.unit

    def _dual(self, slopes: Sequence[Decimal]) -> Decimal:
        """The objective of weak duality, less what rounding may have added."""
        rows = self.rows
        g = list(slopes)
        if rows.level:
            ups = sum((w * v for w, v in zip(rows.weights, g, strict=True) if v > 0), Decimal(0))
            downs = -sum((w * v for w, v in zip(rows.weights, g, strict=True) if v < 0), Decimal(0))
            if ups == 0 or downs == 0:
                g = [Decimal(0)] * len(g)
            elif ups > downs:
                g = [v * downs / ups if v > 0 else v for v in g]
            else:
                g = [v * ups / downs if v < 0 else v for v in g]
        total, size = self._conjugates(g)
        for j, (column, ridge) in enumerate(zip(rows.columns, rows.ridge, strict=False)):
            v = sum((w * s * a for w, s, a in zip(rows.weights, g, column, strict=True)), Decimal(0))
            off = self.unit * sum((w * abs(s * a) for w, s, a in zip(rows.weights, g, column, strict=True)), Decimal(0))
            if rows.limits is None:
                total -= (abs(v) + off) ** 2 / (2 * ridge) * (1 + self.unit)
            else:
                low, high = rows.limits[j]
                x = max(low, min(high, -v / ridge))
                total += v * x + ridge * x * x / 2
                total -= off * (abs(v) + off) / ridge + self.unit * (abs(v * x) + ridge * x * x)
        return total - size * self.unit

    def _conjugates(self, g: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
        """-sum w l*(g), the offset's part included, and the sizes of the terms."""
        total, size, rows = Decimal(0), Decimal(0), self.rows
        for w, v, y, z in zip(rows.weights, g, rows.target, rows.offset, strict=True):
            # z is a part of every prediction: it moves the conjugate by v z.
            terms = (v * z, *rows.loss.dual(v, y))
            total += w * sum(terms)
            size += w * sum(map(abs, terms))
        return total, size

    def _gradient(self, point: Sequence[Decimal], slopes: Sequence[Decimal]) -> list[Decimal]:
        pulls = [w * g for w, g in zip(self.rows.weights, slopes, strict=True)]
        gradient = [sum((p * a for p, a in zip(pulls, column, strict=True)), Decimal(0)) for column in self.all]
        for j, ridge in enumerate(self.rows.ridge):
            gradient[j] += ridge * point[j]
        return gradient

    def _majorants(self, point: Sequence[Decimal]) -> list[Decimal]:
        """Second derivatives of a quadratic that lies above the loss and touches it here."""
        rows, z = self.rows, self._predictions(point)
        return [rows.loss.majorant(v, y) for v, y in zip(z, rows.target, strict=True)]

    def _step(self, gradient: Sequence[Decimal], bends: Sequence[Decimal]) -> list[Decimal] | None:
        """The Newton step, None where the system is singular."""
        pulls = [w * b for w, b in zip(self.rows.weights, bends, strict=True)]
        many = self.size
        table = []
        for j in range(many):
            weighted = [p * a for p, a in zip(pulls, self.all[j], strict=True)]
            row = [sum((a * b for a, b in zip(weighted, self.all[i], strict=True)), Decimal(0)) for i in range(many)]
            if j < len(self.rows.ridge):
                row[j] += self.rows.ridge[j]
            if self.held:
                row = [Decimal(i == j) if i in self.held or j in self.held else v for i, v in enumerate(row)]
            table.append([*row, gradient[j]])
        for j in range(many):
            best = max(range(j, many), key=lambda i: abs(table[i][j]))
            if table[best][j] == 0:
                return None
            table[j], table[best] = table[best], table[j]
            for i in range(j + 1, many):
                factor = table[i][j] / table[j][j]
                if factor:
                    table[i] = [a - factor * b for a, b in zip(table[i], table[j], strict=True)]
        step = [Decimal(0)] * many
        for j in reversed(range(many)):
            rest = sum((table[j][i] * step[i] for i in range(j + 1, many)), Decimal(0))
            step[j] = (table[j][many] - rest) / table[j][j]
        return step
