"""Instances and helpers for the tests of Pareto optimisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from exactsel.data import load
from exactsel.losses import Huber
from exactsel.problem.regression import Problem

INSTANCES = Path(__file__).resolve().parents[1] / "instances"


def make_problem(seed, n, d, k, loss="quadratic", lam=0.5, awkward=True):
    """Random data; ``awkward`` adds a duplicate, a constant, a zero and a badly scaled column as far as d allows."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    if awkward and d >= 6:
        A[:, 1], A[:, 2], A[:, 3], A[:, 4] = A[:, 0], 1.0, 0.0, 1e3 * A[:, 4]
    y = A @ (rng.integers(-1, 2, d) * rng.random(d)) / (1.0 + np.abs(A).max()) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(0.8) if loss == "huber" else loss, lam=lam)


def exponential_decay():
    """The example of Proposition 1 of the POSS paper, as the folder of teaching instances has it."""
    return load(INSTANCES / "exponential-decay.npz")


class StopAfter:
    """A stopping signal that says yes from the (count + 1)-th question on."""

    def __init__(self, count):
        self.left, self.asked_again = count, 0

    def __call__(self):
        self.left -= 1
        self.asked_again += self.left < -1
        return self.left < 0
