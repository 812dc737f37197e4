"""Classes of losses: calls that compiled kernels cannot make, and names of other losses, are refused at once."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
import pytest
from own_loss import PseudoHuber

from exactsel import InputError, Problem
from exactsel._jit import ENABLED, njit
from exactsel.kernels.loss import point_derivative
from exactsel.testing import check_loss

helpers = ModuleType("helpers")


def square(value):
    return value * value


def width(value):
    return value


@njit
def kernel(value):
    return value * value


@njit
def around(value):
    return square(value)


helpers.square, helpers.kernel = square, kernel


@njit
def slope(loss, z, y):
    return point_derivative(loss, z, y)


class Plain(PseudoHuber):
    """Has a field that is called like a function of the module, which it does not call."""

    @staticmethod
    def point_derivative(loss, z, y):
        return (z - y) / math.sqrt(1.0 + square((z - y) / loss.width))


class Kernel(PseudoHuber):
    name = "of-kernel"

    @staticmethod
    def point_derivative(loss, z, y):
        def shifted(value):
            return value - y

        return shifted(z) / math.sqrt(1.0 + kernel(shifted(z) / loss.width))


class Within(PseudoHuber):
    @staticmethod
    def point_derivative(loss, z, y):
        return (z - y) / math.sqrt(1.0 + around((z - y) / loss.width))


class OfModule(PseudoHuber):
    @staticmethod
    def point_derivative(loss, z, y):
        return (z - y) / math.sqrt(1.0 + helpers.square((z - y) / loss.width))


class OfClass(PseudoHuber):
    @staticmethod
    def squared(value):
        return value * value

    @staticmethod
    def point_derivative(loss, z, y):
        return (z - y) / math.sqrt(1.0 + loss.squared((z - y) / loss.width))


def problem(loss, lam=0.1):
    rng = np.random.default_rng(3)
    return Problem(rng.normal(size=(8, 4)), rng.normal(size=8), 2, loss=loss, lam=lam)


@pytest.mark.skipif(not ENABLED, reason="nothing is compiled, and njit leaves functions as they are")
@pytest.mark.parametrize("kind", [Plain, Within, OfModule, OfClass])
def test_what_only_works_interpreted_is_refused_at_once(kind):
    found = {OfClass: "squared, an attribute of its class"}.get(kind, "square, a plain Python function")
    advice = {OfClass: "make it a function of the module, decorated"}.get(kind, "decorate square")
    said = f"point_derivative of .* loss calls {found}, which compiled kernels cannot call; {advice} with @njit"
    for refused in (problem, check_loss):
        with pytest.raises(InputError, match=said):
            refused(kind(1.0))
    with pytest.raises(Exception, match=r"TypingError|Failed in exactsel mode"):  # so it is not refused for nothing
        slope(kind(1.0), 0.3, 1.0)


def test_the_advice_mends_it():
    check_loss(Kernel(1.0), search=False)
    assert problem(Kernel(1.0)).loss == Kernel(1.0)
    assert slope(Kernel(1.5), 0.3, 1.0) == pytest.approx(PseudoHuber.point_derivative(PseudoHuber(1.5), 0.3, 1.0))


@pytest.mark.skipif(not ENABLED, reason="nothing is compiled, and njit leaves functions as they are")
def test_a_class_mended_later_is_taken(monkeypatch):
    class Mended(Plain):
        """A class of its own: one that is taken is not looked at again."""

    with pytest.raises(InputError, match="decorate square with @njit"):
        problem(Mended(1.0))
    monkeypatch.setitem(globals(), "square", kernel)
    assert problem(Mended(1.0)).loss == Mended(1.0)


def test_the_name_of_another_loss_is_refused():
    class Impostor(PseudoHuber):
        name = "huber"

    with pytest.raises(InputError, match="'huber' is the name of a loss of exactsel, and Impostor is another"):
        problem(Impostor(1.0))
    Impostor.name = "other"
    assert problem(Impostor(1.0)).loss.name == "other"


def test_no_ridge_and_no_number_for_a_threshold():
    with pytest.raises(InputError, match="only quadratic, huber, logistic and poisson loss allow; give a positive lam"):
        problem(PseudoHuber(1.0), lam=0.0)
    assert problem(PseudoHuber(1.0), lam=1.0).objective.lam == 1.0
    with pytest.raises(InputError, match=r"^delta is 'x', but delta of pseudo-huber loss must be a number; give delta"):
        Problem(np.eye(3), np.ones(3), 1, loss=PseudoHuber(1.0), lam=1.0, delta="x")
