"""Targets that least squares are not made for: they are noticed, and the advice can be followed to its end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import exactsel
from exactsel.errors import DataWarning
from exactsel.problem.targets import better_loss

RNG = np.random.default_rng(5)
N = 80
A = RNG.normal(size=(N, 3))
CLASSES = np.where(A[:, 0] + RNG.normal(size=N) > 0.0, 1.0, 0.0)
COUNTS = RNG.poisson(np.exp(0.5 * A[:, 1] + 0.5)).astype(float)

LOOK_LIKE_IT = {
    "0 and 1": (CLASSES, "logistic"),
    "-1 and 1": (2 * CLASSES - 1, "logistic"),
    "truth values": (CLASSES.astype(bool), "logistic"),
    "1 and 2": (CLASSES + 1, "logistic"),
    "counts": (COUNTS, "poisson"),
    "whole numbers as integers": (COUNTS.astype(int), "poisson"),
    "mostly zeros": (RNG.poisson(0.3, 500), "poisson"),
    "more spread than Poisson": (RNG.negative_binomial(1, 0.2, 500), "poisson"),
}

DO_NOT = {
    "continuous": RNG.normal(size=N),
    "grades from 3 to 8": RNG.integers(3, 9, N),
    "grades from 0 to 10": np.clip(np.round(6 + 1.5 * RNG.normal(size=200)), 0, 10),
    "points of an examination": RNG.binomial(20, 0.6, 200),
    "prices in whole dollars": np.round(np.exp(10 + RNG.normal(size=N))),
    "prices, some of them 0": np.append(0, np.round(np.exp(10 + RNG.normal(size=N)))),
    "ages": RNG.integers(18, 90, N),
    "per cent": RNG.integers(0, 101, N),
    "numbers of rows": np.arange(15),
    "below zero": COUNTS - 3,
    "fractions": COUNTS / 2,
    "constant": np.ones(N),
    "two rows": np.array([0.0, 1.0]),
    "with a gap": np.append(CLASSES, np.nan),
    "text": np.array(["a", "b"] * 20),
    "nothing": None,
}


@pytest.mark.parametrize("case", LOOK_LIKE_IT)
def test_it_is_noticed(case):
    y, loss = LOOK_LIKE_IT[case]
    assert better_loss(y).loss == loss


@pytest.mark.parametrize("case", DO_NOT)
def test_nothing_is_said_of_others(case):
    assert better_loss(DO_NOT[case]) is None


def test_it_is_said_in_the_words_and_at_the_line_of_the_caller():
    with pytest.warns(DataWarning, match=r'holds two values, 0 and 1, .* give loss="logistic", lam=0, or') as caught:
        exactsel.solve(A, CLASSES, 2)
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match='whole numbers from 0 to .* give loss="poisson", lam=0, or') as caught:
        exactsel.best_model(A, COUNTS)
    assert caught[0].filename == __file__
    with pytest.warns(DataWarning, match="write them as 0 and 1 and give"):
        exactsel.solve(A, CLASSES + 1, 2)


def test_the_advice_can_be_followed():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the target holds 0 and 1; logistic loss reads")
        assert exactsel.solve(A, CLASSES, 2, loss="logistic", lam=0).reached
        assert exactsel.solve(A, COUNTS, 2, loss="poisson", lam=0).reached
        assert exactsel.solve(A, CLASSES, 2, loss="quadratic").reached


@pytest.mark.parametrize(("y", "advice"), [(CLASSES, "--loss logistic --lam 0"), (COUNTS, "--loss poisson --lam 0")])
def test_the_command(tmp_path, run, y, advice):
    file = tmp_path / "t.csv"
    np.savetxt(file, np.column_stack([A, y]), delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    told = run("solve", file, "-k", 1)
    assert (told.code, told.err.count(advice)) == (0, 1)
    assert "or --loss quadratic to keep it" in told.err
    followed = run("solve", file, "-k", 1, *advice.split())
    assert followed.code == 0
    assert "but the loss is" not in followed.err
    assert "but the loss is" not in run("solve", file, "-k", 1, "--loss", "quadratic").err
