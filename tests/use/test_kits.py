"""The conformance kits: every built-in passes, and a plug-in that breaks its contract is told so."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from samples import whole

from exactsel import registry
from exactsel.losses import Huber, Quadratic
from exactsel.losses.adjusted import adjustable
from exactsel.nodes.branching import ClosestToHalf
from exactsel.nodes.trees import BinaryTree
from exactsel.search.frontier import BestFirst
from exactsel.testing import check_bound, check_branching, check_frontier, check_loss, check_tree
from exactsel.testing.cases import small_problems

BOUNDS = [name for name in registry.names("bounds") if name != "cvxpy"]


@pytest.fixture
def every_second_problem(monkeypatch):
    """Where not all is tried: kits on half of their problems."""
    if not whole():
        for kit in ("bounds", "order"):
            monkeypatch.setattr(
                f"exactsel.testing.{kit}.small_problems", lambda *needs: islice(small_problems(*needs), 0, None, 2)
            )


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds(name, every_second_problem):
    check_bound(name)


@pytest.mark.long
def test_the_oracle():
    check_bound("cvxpy", nodes=4)


@pytest.mark.parametrize("loss", ["quadratic", "logistic", "squared_hinge", "poisson", Huber(0.7)], ids=str)
def test_losses(loss):
    check_loss(loss)


@pytest.mark.parametrize("name", ["half", "largest", "costliest"])
def test_branchings(name, every_second_problem):
    check_branching(name)


@pytest.mark.parametrize("name", registry.names("frontiers"))
def test_frontiers(name, every_second_problem):
    check_frontier(name)


@pytest.mark.parametrize("name", registry.names("trees"))
def test_trees(name, every_second_problem):
    check_tree(name)


class Lifted:
    """The default bound, a little too large."""

    name = "lifted"

    def prepare(self, problem, options):
        inner = registry.load("bounds", "apg")().prepare(problem, options)

        class Prepared:
            def tighten(self, *arguments):
                answer = inner.tighten(*arguments)
                bound = answer.answers.bound
                return replace(answer, answers=answer.answers._replace(bound=bound + 1e-3 * (1 + abs(bound))))

        return Prepared()


class Steep(Quadratic):
    smoothness = 0.5


class Wavy(Quadratic):
    @staticmethod
    def point_derivative(loss, z, y):
        return (z - y) * 1.001


class Flat(Quadratic):
    @staticmethod
    def point_curvature(loss, z, y):
        return 0.7


class Mirrored(Quadratic):
    @staticmethod
    def point_conjugate_derivative(loss, b, y):
        return -(b + y)


class BelowZero(Quadratic):
    infimum = -np.inf

    @staticmethod
    def point_value(loss, z, y):
        return 0.5 * (z - y) ** 2 - 1.0


AdjustedBelowZero = adjustable(BelowZero)


class LastCandidate:
    name = "last"
    calls = 0

    def select(self, view):
        self.calls += 1
        return self.calls % len(view.candidates)


class Forgetful(BestFirst):
    name = "forgetful"

    def push(self, node):
        if node.id % 50 != 49:
            super().push(node)


class Leaky(BinaryTree):
    name = "leaky"

    def split(self, state, column, k):
        split = super().split(state, column, k)
        rest = split.rest.copy()
        rest[0] = 0
        return replace(split, rest=rest)


def test_broken_plug_ins_are_told():
    for check, plugin, sentence in (
        (check_bound, Lifted(), r"lifted on .* bound .*, but a model has"),
        (check_loss, Steep(), "rises faster than the smoothness|not between 0 and 0.5"),
        (check_loss, Wavy(), "but differences give"),
        (check_loss, Flat(), "the curvature is 0.7, but differences of the derivative give 1 to 1"),
        (check_loss, Mirrored(), "the conjugate's derivative .* does not attain the conjugate"),
        (check_loss, BelowZero(), "is below zero, so the loss must not be declared to take an intercept"),
        (check_branching, LastCandidate(), "picked differently the second time"),
        (check_frontier, Forgetful, "forgetful: "),
        (check_tree, Leaky(), "the rest is not what the chain says"),
    ):
        with pytest.raises(AssertionError, match=sentence):
            check(plugin)


def test_a_name_that_differs_from_the_registered_one(monkeypatch):
    monkeypatch.setattr(ClosestToHalf, "name", "two thirds")
    with pytest.raises(AssertionError, match="registered as 'half', but its name is 'two thirds'"):
        check_branching("half")


def test_refusing_everything_is_no_service():
    class Refusing:
        name = "refusing"

        def prepare(self, problem, options):
            from exactsel.errors import UnsupportedError

            raise UnsupportedError("not today.")

    with pytest.raises(AssertionError, match="refusing refused every problem"):
        check_bound(Refusing())
