"""The losses of one row in decimals: value, slope and second derivative, the conjugate, and a quadratic above."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import NamedTuple, Protocol

FARTHEST = Decimal(1000)
"""Of predictions with Poisson loss: a mean of e to the power of more than this is none to look at."""

ZERO = Decimal(0)


class Row(NamedTuple):
    """What there is to see of a row."""

    value: Decimal
    slope: Decimal
    bend: Decimal


class RowLoss(Protocol):
    """A loss of one row with prediction z and target (or label) y."""

    def at(self, z: Decimal, y: Decimal) -> Row:
        """Value, slope and second derivative."""
        ...

    def dual(self, g: Decimal, y: Decimal) -> tuple[Decimal, ...]:
        """Terms of -l*(g)."""
        ...

    def majorant(self, z: Decimal, y: Decimal) -> Decimal:
        """The second derivative of a quadratic that lies above the loss and touches it here, next to here at least."""
        ...


class HuberRow(NamedTuple):
    """Huber loss."""

    delta: Decimal

    def at(self, z: Decimal, y: Decimal) -> Row:
        """Value, slope and second derivative."""
        r, delta = z - y, self.delta
        if abs(r) <= delta:
            return Row(r * r / 2, r, Decimal(1))
        return Row(delta * abs(r) - delta * delta / 2, delta if r > 0 else -delta, ZERO)

    def dual(self, g: Decimal, y: Decimal) -> tuple[Decimal, ...]:
        """Terms of -l*(g)."""
        return -g * g / 2, -g * y

    def majorant(self, z: Decimal, y: Decimal) -> Decimal:
        """A quadratic that lies above."""
        size = abs(z - y)
        return Decimal(1) if size <= self.delta else self.delta / size


class LogisticRow(NamedTuple):
    """Logistic loss with labels -1 and +1."""

    def at(self, z: Decimal, y: Decimal) -> Row:
        """Value, slope and second derivative."""
        margin = y * z
        e = (-abs(margin)).exp()
        small, large = e / (1 + e), 1 / (1 + e)
        # log(1 + e) by its series where 1 + e would lose digits of e.
        tail = e - e * e / 2 + e * e * e / 3 if e < _tiny() else (1 + e).ln()
        value, share, rest = (tail, small, large) if margin > 0 else (tail - margin, large, small)
        return Row(value, -y * share, share * rest)

    def dual(self, g: Decimal, y: Decimal) -> tuple[Decimal, ...]:
        """Terms of -l*(g): the entropy of a share."""
        p = -y * g
        if p <= 0 or p >= 1:
            return (ZERO,)
        q = 1 - p
        rest = -q * q.ln() if p > _tiny() else p - p * p / 2 - p * p * p / 6
        return (-p * p.ln() + rest,)

    def majorant(self, z: Decimal, y: Decimal) -> Decimal:
        """A quadratic that lies above."""
        return Decimal("0.25")


class HingeRow(NamedTuple):
    """Squared hinge loss with labels -1 and +1."""

    def at(self, z: Decimal, y: Decimal) -> Row:
        """Value, slope and second derivative."""
        short = max(1 - y * z, ZERO)
        return Row(short * short, -2 * y * short, Decimal(2 if short > 0 else 0))

    def dual(self, g: Decimal, y: Decimal) -> tuple[Decimal, ...]:
        """Terms of -l*(g)."""
        return -g * g / 4, -g * y

    def majorant(self, z: Decimal, y: Decimal) -> Decimal:
        """A quadratic that lies above."""
        return Decimal(2)


class PoissonRow(NamedTuple):
    """Poisson loss, half the deviance of a count."""

    def at(self, z: Decimal, y: Decimal) -> Row:
        """Value, slope and second derivative; infinite far out, where only the direction counts."""
        if z > FARTHEST:
            return Row(Decimal("Infinity"), FARTHEST.exp(), FARTHEST.exp())
        mean = z.exp()
        return Row(mean - y * z + self._constant(y), mean - y, mean)

    def dual(self, g: Decimal, y: Decimal) -> tuple[Decimal, ...]:
        """Terms of -l*(g)."""
        mean = y + g
        return self._constant(y), *((-mean * mean.ln(), mean) if mean > 0 else ())

    def majorant(self, z: Decimal, y: Decimal) -> Decimal:
        """The curvature one further up, so that short steps are safe."""
        return (min(z, FARTHEST) + 1).exp()

    @staticmethod
    def _constant(y: Decimal) -> Decimal:
        return y * y.ln() - y if y > 0 else ZERO


def _tiny() -> Decimal:
    """Below this the square of a number is lost beside 1."""
    return Decimal(10) ** (-decimal.getcontext().prec // 3)


def row_loss(name: str, delta: float | None) -> RowLoss:
    """The loss of this name."""
    if name == "huber":
        assert delta is not None
        return HuberRow(Decimal(delta))
    return {"logistic": LogisticRow(), "squared_hinge": HingeRow(), "poisson": PoissonRow()}[name]
