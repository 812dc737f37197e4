"""Certified intervals for the optimum on a support, for Huber and logistic loss: Newton in decimals, then weak duality.

With slopes g_i in the domain of l* (and sum w_i g_i = 0 with an intercept) no model on the support is below

    - sum w_i l*(g_i) - sum_j v_j^2 / (2 lam s_j^2),    v_j = sum_i w_i g_i a_ij,

and at the slopes of a point near the optimum this is within the square of its gradient of the point's own objective.
Decimals carry 50 digits or more; what their rounding may do is taken off one end of the interval, added to the other.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from benchmarks.attacks.exact import Data, power

DIGITS = (50, 160, 480)
"""Tried in turn until the interval is tight."""

TIGHT = Decimal("1e-24")
"""Relative width at which an interval will do."""

MOST_STEPS = 80
"""Newton steps per number of digits."""

Interval = tuple[Fraction, Fraction]


def enclosure(data: Data, columns: Sequence[int], delta: float | None, enough: Fraction | None = None) -> Interval:
    """An interval that holds the smallest objective on the columns.

    ``enough`` is an objective known from elsewhere: as soon as the lower end is above it, nothing is gained by more.
    """
    low, high = Fraction(0), None
    start: list[Decimal] | None = None
    for digits in DIGITS:
        with decimal.localcontext() as context:
            context.prec, context.Emax, context.Emin = digits, decimal.MAX_EMAX, decimal.MIN_EMIN
            search = _Newton(_rows(data, columns, delta), start)
            tight = search.run(None if enough is None else _decimal(enough))
            low = max(low, Fraction(search.low))
            high = Fraction(search.high) if high is None else min(high, Fraction(search.high))
            start = search.point
        if tight:
            break
    assert high is not None
    return low, high


def logistic_objective(data: Data, coef: Sequence[float], digits: int = 60) -> Interval:
    """An interval that holds the objective of a model for logistic loss, its intercept the best there is."""
    case = data.case
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = digits, decimal.MAX_EMAX, decimal.MIN_EMIN
        signs = [1 if label > 0 else -1 for label in data.target]
        zero = [0.0] * case.d
        # Ax alone: the residuals of the model less those of none.
        predicted = [r - s for r, s in zip(data.residuals(coef), data.residuals(zero), strict=True)]
        if case.intercept:  # any shift will do; this one is near the best
            middle = sorted(predicted)[len(predicted) // 2]
            predicted = [z - middle for z in predicted]
        rows = _Rows([], [_decimal(w) for w in data.row_weights()], [Decimal(s) for s in signs], None, case.intercept,
                     [], [_decimal(z) for z in predicted])  # fmt: skip
        search = _Newton(rows, None)
        search.run(None)
        ridge = data.ridge(coef)
        return Fraction(search.low) + ridge, Fraction(search.high) + ridge


def _dot(a: Sequence[Decimal], b: Sequence[Decimal]) -> Decimal:
    return sum((x * y for x, y in zip(a, b, strict=True)), Decimal(0))


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@dataclass
class _Rows:
    """The problem on some columns: centred where there is an intercept, each of them scaled to size one."""

    columns: list[list[Decimal]]
    weights: list[Decimal]
    target: list[Decimal]
    delta: Decimal | None
    """None for logistic loss."""
    level: bool
    ridge: list[Decimal]
    """lam s_j^2 of the columns as they are here."""
    offset: list[Decimal]
    """What is added to every prediction."""


def _rows(data: Data, columns: Sequence[int], delta: float | None) -> _Rows:
    case = data.case
    made, ridges = [], []
    for j in columns:
        column = [Fraction(value) for value in data.columns[j]]
        if case.intercept:
            middle = Fraction(data.first(data.columns[j]), data.total)
            column = [value - middle for value in column]
        size = max(map(abs, column), default=Fraction(0)) or Fraction(1)
        size = power(size.numerator.bit_length() - size.denominator.bit_length())
        made.append([_decimal(value / size) for value in column])
        ridges.append(_decimal(data.lam * data.squared_scale(j) / (size * power(data.powers[j])) ** 2))
    target = [Fraction(value) * power(data.target_power) for value in data.target]
    if case.loss == "logistic":
        target = [Fraction(1 if value > 0 else -1) for value in target]
    elif case.intercept:
        middle = sorted(target)[len(target) // 2]
        target = [value - middle for value in target]
    weights = [_decimal(w) for w in data.row_weights()]
    return _Rows(made, weights, [_decimal(t) for t in target], None if delta is None else Decimal(delta),
                 case.intercept, ridges, [Decimal(0)] * len(weights))  # fmt: skip


class _Newton:
    """Damped Newton for the coefficients and the intercept together; ``low`` and ``high`` hold at every moment."""

    def __init__(self, rows: _Rows, start: list[Decimal] | None) -> None:
        self.rows = rows
        self.size = len(rows.columns) + rows.level
        self.all = [*rows.columns, [Decimal(1)] * len(rows.weights)] if rows.level else rows.columns
        self.point = [Decimal(0)] * self.size if start is None else start
        self.low, self.high = Decimal(0), Decimal("Infinity")
        self.unit = Decimal(10) ** (12 - decimal.getcontext().prec)

    def run(self, enough: Decimal | None) -> bool:
        """Whether the interval became tight (or its lower end passed ``enough``)."""
        _, slopes, bends = self._look(self.point)
        for _ in range(MOST_STEPS):
            if self.high - self.low <= TIGHT * self.high or (enough is not None and self.low > enough):
                return True
            gradient = self._gradient(self.point, slopes)
            step = self._step(gradient, bends) or self._step(gradient, self._lifted(bends))
            if step is None or not any(gradient):
                return False
            self.point, (_, slopes, bends) = self._along(step, gradient)
        return False

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
        if rows.delta is None:
            per_row = [_logistic(y * v) for y, v in zip(rows.target, z, strict=True)]
            values = [value for value, _, _ in per_row]
            shares = [share for _, share, _ in per_row]
            slopes = [-y * p for y, p in zip(rows.target, shares, strict=True)]
            bends = [p * q for _, p, q in per_row]
        else:
            delta = rows.delta
            residuals = [v - y for v, y in zip(z, rows.target, strict=True)]
            values = [r * r / 2 if abs(r) <= delta else delta * abs(r) - delta * delta / 2 for r in residuals]
            slopes = [max(-delta, min(delta, r)) for r in residuals]
            bends = [Decimal(abs(r) <= delta) for r in residuals]
        ridge = sum((r * x * x for r, x in zip(rows.ridge, point, strict=False)), Decimal(0)) / 2
        value = sum((w * v for w, v in zip(rows.weights, values, strict=True)), ridge)
        blur = self._blur(point, slopes) + value * self.unit
        self.high = min(self.high, value + blur)
        self.low = max(self.low, self._dual(slopes))
        return value, slopes, bends

    def _blur(self, point: Sequence[Decimal], slopes: Sequence[Decimal]) -> Decimal:
        """What rounding in the predictions may do to the objective."""
        total = Decimal(0)
        for i, (w, g) in enumerate(zip(self.rows.weights, slopes, strict=True)):
            size = sum((abs(x * a[i]) for x, a in zip(point, self.all, strict=True)), abs(self.rows.offset[i]))
            size += abs(self.rows.target[i])
            total += w * (abs(g) * size + size * size * self.unit)
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
        total, size = Decimal(0), Decimal(0)
        for w, v, y, z in zip(rows.weights, g, rows.target, rows.offset, strict=True):
            # z is a part of every prediction: it moves the conjugate by v z.
            terms = (v * z, *((-v * v / 2, -v * y) if rows.delta is not None else (_entropy(-y * v),)))
            total += w * sum(terms)
            size += w * sum(map(abs, terms))
        for column, ridge in zip(rows.columns, rows.ridge, strict=False):
            v = abs(sum((w * s * a for w, s, a in zip(rows.weights, g, column, strict=True)), Decimal(0)))
            v += self.unit * sum((w * abs(s * a) for w, s, a in zip(rows.weights, g, column, strict=True)), Decimal(0))
            total -= v * v / (2 * ridge) * (1 + self.unit)
        return total - size * self.unit

    def _gradient(self, point: Sequence[Decimal], slopes: Sequence[Decimal]) -> list[Decimal]:
        pulls = [w * g for w, g in zip(self.rows.weights, slopes, strict=True)]
        gradient = [sum((p * a for p, a in zip(pulls, column, strict=True)), Decimal(0)) for column in self.all]
        for j, ridge in enumerate(self.rows.ridge):
            gradient[j] += ridge * point[j]
        return gradient

    def _majorants(self, point: Sequence[Decimal]) -> list[Decimal]:
        """Second derivatives of a quadratic that lies above the loss and touches it here."""
        rows = self.rows
        if rows.delta is None:
            return [Decimal("0.25")] * len(rows.weights)
        sizes = [abs(z - y) for z, y in zip(self._predictions(point), rows.target, strict=True)]
        return [Decimal(1) if r <= rows.delta else rows.delta / r for r in sizes]

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


def _logistic(margin: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """log(1 + exp(-margin)), and the two shares p = 1 / (1 + exp(margin)) and 1 - p."""
    e = (-abs(margin)).exp()
    small, large = e / (1 + e), 1 / (1 + e)
    # log(1 + e) by its series where 1 + e would lose digits of e.
    tail = e - e * e / 2 + e * e * e / 3 if e < Decimal(10) ** (-decimal.getcontext().prec // 3) else (1 + e).ln()
    return (tail, small, large) if margin > 0 else (tail - margin, large, small)


def _entropy(p: Decimal) -> Decimal:
    """- p log p - (1 - p) log(1 - p)."""
    if p <= 0 or p >= 1:
        return Decimal(0)
    q = 1 - p
    rest = -q * q.ln() if p > Decimal(10) ** (-decimal.getcontext().prec // 3) else p - p * p / 2 - p * p * p / 6
    return -p * p.ln() + rest
