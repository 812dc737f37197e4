"""Write an instance as other solvers read it, with starting model and limits: ``python -m benchmarks.wide.hints``.

They are given the target's own model, from which L0BnB starts, and the solvers that take a price for each column one at
which no column is worth adding to that model or leaving out of it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.wide.designs import Design
from benchmarks.wide.instances import from_plain
from exactsel import Problem
from exactsel.types import FloatArray


def price(problem: Problem, A: FloatArray, support: list[int]) -> float:
    """Midway between what the best addition to the model gains and what the cheapest removal costs."""
    fit = problem.fit(support)
    costs = [problem.fit([j for j in support if j != i]).value - fit.value for i in support]
    added = int(np.argmax(_gains(A, problem.y - A[:, support] @ fit.coef[support], support, problem.lam)))
    gain = fit.value - problem.fit([*support, added]).value
    return 0.5 * (gain + min(costs))


def _gains(A: FloatArray, residual: FloatArray, support: list[int], lam: float) -> FloatArray:
    """What each column gains where the others keep their coefficients: nothing for those of the model."""
    gains: FloatArray = (residual @ A) ** 2 / (np.einsum("ij,ij->j", A, A) + lam)
    gains[support] = 0.0
    return gains


def main() -> None:
    """Read the instance, write its arrays, print what solvers are given."""
    parser = argparse.ArgumentParser(description="An instance for other solvers.")
    parser.add_argument("instance", type=Path)
    parser.add_argument("file", type=Path)
    given = parser.parse_args()
    design = from_plain(json.loads(given.instance.read_text(encoding="utf-8")))
    assert isinstance(design, Design)
    A, y = design.data()
    problem, support = Problem(A, y, design.k, lam=design.lam), design.support
    told = {
        "upper": problem.fit(support).value, "start": support, "penalty": price(problem, A, support),
        "largest": design.max_coef(A, y),
    }  # fmt: skip
    np.savez(given.file, A=A, y=y, k=design.k, lam=design.lam, **told)
    print(json.dumps({**told, "largest": None if design.times is None else told["largest"]}))


if __name__ == "__main__":
    main()
