"""The losses of the second checker: each file against definitions, and a loss without formulas."""

from __future__ import annotations

import random
from fractions import Fraction as F

import pytest

from exactsel_certificates.standalone.limits import sizes
from exactsel_certificates.standalone.losses import LOSSES, Loss
from exactsel_certificates.standalone.losses.base import OFF
from exactsel_certificates.standalone.minorant import below_minorant
from exactsel_certificates.standalone.patterns import LeafRegions, Patterns
from exactsel_certificates.standalone.regression import Regression
from exactsel_certificates.standalone.values import Outside

TINY = F(1, 10**12)
each_loss = pytest.mark.parametrize("loss", [kind(0.75) for kind in LOSSES.values()], ids=[*LOSSES])


def draws(loss, count=150):
    """Targets that the loss takes, two predictions and a slope in the domain."""
    rng = random.Random(loss.name)
    for _ in range(count):
        t = float(rng.choice([-1, 1]) if loss.labels else rng.choice([0, 1, 2, 3.5, rng.random()]))
        z, other, g = (F(rng.gauss(0, 1) * rng.choice([0.1, 1, 5, 20])) for _ in range(3))
        yield F(t), z, other, loss.in_domain(g, F(t))


@each_loss
@pytest.mark.smoke
def test_values_slopes_and_conjugates_are_those_of_one_function(loss):
    for t, z, other, g in draws(loss):
        loss.check_target([float(t)])
        value = loss.value(z, t)
        assert loss.in_domain(g, t) == g
        # No line lies above the loss; that of a slope touches it.
        assert 0 <= value >= g * z + loss.minus_conjugate(g, t)
        for slope in (loss.slope(z, t), loss.bent(z, t)[0]):
            assert loss.in_domain(slope, t) == slope
            assert value - slope * z - loss.minus_conjugate(slope, t) <= TINY * (1 + value + abs(slope * z))
        assert loss.slope_in_floats(float(z), float(t)) == pytest.approx(float(loss.bent(z, t)[0]), rel=1e-9, abs=1e-12)
        if loss.kinked:
            slope, bend = loss.bent(z, t, careful=True)
            assert loss.value(other, t) <= value + slope * (other - z) + bend / 2 * (other - z) ** 2 + TINY


@each_loss
def test_parabolas_lie_below_on_their_intervals(loss):
    rng = random.Random(loss.name)
    for t, z, _, _ in draws(loss):
        low, high = z - F(rng.random() * rng.choice([0, 1, 9])), z + F(rng.random() * rng.choice([0, 1, 9]))
        parabola = loss.tangent(z, low, high, t)
        if parabola is None:
            continue
        value, slope, bend = parabola
        assert value <= loss.value(z, t) + OFF
        for share in (0, F(1, 3), F(1, 2), F(9, 10), 1):
            at = low + share * (high - low)
            assert value + slope * (at - z) + bend / 2 * (at - z) ** 2 <= loss.value(at, t) + OFF * (2 + abs(at - z))


@each_loss
def test_slopes_have_the_room_that_is_said(loss):
    for t, _, _, g in draws(loss):
        left, share = loss.room(g, t)
        assert left >= 0 <= share
        for moved in (g + F(left), g - F(left)):
            assert abs(loss.in_domain(moved, t) - moved) <= TINY * (1 + abs(moved))


@each_loss
def test_slopes_at_the_intercept_sum_to_zero(loss):
    y = [F(v) for v in ([1, 1, -1, 1, -1] if loss.labels else [0, 2, 3, 1, 9])]
    z, weights = [F(v) for v in (1000, 1003, 998, 1001, 1000)], [F(v) for v in (1, 2, 1, 3, 1)]
    c = loss.intercept(z, y, weights)
    slopes = [w * loss.bent(p + c, t)[0] for p, t, w in zip(z, y, weights, strict=True)]
    assert abs(sum(slopes)) <= F(1, 10**9) * sum(map(abs, slopes))


class Bare(Loss):
    """Squared distance to the target, with no more than what every loss must have."""

    name = "bare"

    def value(self, z, t):
        return (z - t) ** 2

    def minus_conjugate(self, g, t):
        return -g * g / 4 - g * t

    def in_domain(self, g, t):
        return g

    def bent(self, z, t, careful=False):
        return 2 * (z - t), F(2)


def test_a_loss_proves_nothing_by_witnesses_it_does_not_declare():
    A, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]], [1.0, 1.0, -1.0, 1.0]
    assert "bare" not in LOSSES
    for lam in (0.0, 1.0):
        r = Regression(A, y, 1, Bare(None), lam, level=True)
        claim = F(1, 100)
        assert below_minorant(r, claim, [{0: F(1, 2)}], [(50.0, 50.0)] * 4) is None
        assert not Patterns(r, claim).counted(set(), {0, 1})
        assert not Patterns(r, claim).usable
        assert bool(r.at_dual([0.1] * 4)) == bool(r.at_point({0: F(1)}, [])) == bool(lam)
        # Slopes have no room, so without a ridge nothing limits coefficients.
        assert bool(sizes(r, {0: F(1, 2)})) == bool(lam)
        assert not Bare.by_products | Bare.by_leaves | Bare.bounded_models
        assert Bare.needs_ridge
    value, terms = Regression(A, y, 1, Bare(None), 1.0).at_point({}, [])[0]
    assert value == 4
    assert len(terms) == 2
    assert not LeafRegions(Regression(A, y, 1, Bare(None), 1.0), F(1, 100)).closes(set(), {0})


def test_targets_and_parameters_outside_the_domain():
    for name, y in (("logistic", [0.0]), ("squared_hinge", [2.0]), ("poisson", [-1.0])):
        with pytest.raises(Outside, match=f"{name} loss"):
            LOSSES[name].check_target(y)
    for delta in (0, -1.0, float("nan"), "1", None, True, 1e61):
        with pytest.raises(Outside, match=r"^delta is .*, but a number from 1e-60 to 1e\+60 was expected"):
            LOSSES["huber"](delta)
