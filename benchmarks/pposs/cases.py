"""The problems: the paper's data with quadratic loss, where an evaluation is cheap, and logistic loss on many rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exactsel.data.generate import generate
from exactsel.problem.regression import Problem

FOLDER = "EXACTSEL_DATA"
"""The environment variable that names the folder with sonar.npz and the others."""

PAPER = ("sonar", "svmguide3", "triazines", "ionosphere", "mushrooms")
"""Data sets of Pareto optimisation's papers."""

SPARSITY = 8
"""k in the paper."""


@dataclass(frozen=True)
class Case:
    """A problem, how the tables call it, and how many supports a run generates (None: as many as the theorem asks)."""

    name: str
    problem: Problem
    evaluations: int | None = None


def quadratic(quick: bool) -> Case:
    """Sonar (208 x 60), standardised, k = 8; without the data correlated random columns of that size."""
    file = Path(os.environ.get(FOLDER, "")) / "sonar.npz"
    if quick:
        return Case("quadratic, random 50 x 20, k = 3", _random(50, 20, 3))
    if not os.environ.get(FOLDER) or not file.is_file():
        return Case("quadratic, random 208 x 60, k = 8", _random(208, 60, 8))
    with np.load(file, allow_pickle=False) as arrays:
        A, y = arrays["A"].astype(float), arrays["y"].astype(float)
    return Case("quadratic, sonar 208 x 60, k = 8", Problem(_standardised(A), _standardised(y), 8, lam=0.0))


def of_the_paper(quick: bool) -> list[Case]:
    """Every data set that is there, standardised, without columns that are constant; random columns without any."""
    folder = Path(os.environ.get(FOLDER, ""))
    if quick:
        return [Case("random 50 x 20, k = 3", _random(50, 20, 3))]
    files = [folder / f"{name}.npz" for name in PAPER] if os.environ.get(FOLDER) else []
    cases = []
    for file in files:
        if file.is_file():
            with np.load(file, allow_pickle=False) as arrays:
                A, y = arrays["A"].astype(float), arrays["y"].astype(float)
            A = A[:, A.std(axis=0) > 0]
            problem = Problem(_standardised(A), _standardised(y), SPARSITY, lam=0.0)
            cases.append(Case(f"{file.stem} {problem.n} x {problem.d}", problem))
    return cases or [Case(f"random 208 x 60, k = {SPARSITY}", _random(208, 60, SPARSITY))]


def logistic(quick: bool) -> Case:
    """Random data with many rows, so that an evaluation is worth sharing; the first 400 supports."""
    n, d, k = (100, 12, 2) if quick else (60000, 30, 4)
    problem = generate("logistic", n=n, d=d, k=k, seed=0, lam=0.1).problem()
    return Case(f"logistic, random {n} x {d}, k = {k}", problem, 400)


def logistic_to_the_end(quick: bool) -> Case:
    """Random data of a middling size, with as many supports as the theorem asks for."""
    n, d, k = (100, 12, 2) if quick else (4000, 60, 6)
    return Case(f"logistic, random {n} x {d}, k = {k}", generate("logistic", n=n, d=d, k=k, seed=0, lam=0.1).problem())


def _random(n: int, d: int, k: int) -> Problem:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    return Problem(_standardised(A), _standardised(A @ rng.standard_normal(d) + rng.standard_normal(n)), k, lam=0.0)


def _standardised(data: np.ndarray) -> np.ndarray:
    centred = data - data.mean(axis=0)
    result: np.ndarray = centred / np.where(centred.std(axis=0) > 0, centred.std(axis=0), 1.0)
    return result
