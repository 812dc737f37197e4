"""``python -m benchmarks.tall.growth``: what rounding takes of a bound where the same rows come more and more often.

The fit is nearly exact, and large parts of its columns cancel (the Lorenz system's y' on products of coordinates). The
search's bounds and the checker's are evaluated at the fit; what they are short of its objective is all rounding.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import numpy as np

from benchmarks.paper.tables import markdown
from exactsel import Huber, Problem, solve, verify
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions, BoundSolver
from exactsel.bounds.fit import FitBound
from exactsel.types import FloatArray
from exactsel_certificates.formula import Instance
from exactsel_certificates.rigorous import RigorousBounds, leaves_convex
from exactsel_certificates.walk import IN

ROWS = 100

K = 3

LOSSES = ("huber", "logistic", "squared_hinge", "poisson")

TRUE = [1, 2, 6]


def repeated(times: int, loss: str = "quadratic") -> tuple[FloatArray, FloatArray]:
    """The rows so many times: ten columns, of which y is made up of three."""
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((3, ROWS)) * [[8.0], [9.0], [8.0]] + [[0.0], [0.0], [24.0]]
    A = np.column_stack([np.ones(ROWS), x, y, z, x * x, x * y, x * z, y * y, y * z, z * z])
    slope = x * (28.0 - z) - y
    noise = rng.standard_normal(ROWS)
    if loss in ("logistic", "squared_hinge"):
        target = np.where(slope / 100.0 + noise > 0, 1.0, -1.0)
    elif loss == "poisson":
        target = rng.poisson(np.exp(slope / 300.0)).astype(float)
    else:
        target = slope + 0.03 * noise
    return np.tile(A, (times, 1)), np.tile(target, times)


def lost(problem: Problem, solver: BoundSolver) -> float:
    """What a bound on all columns misses of the objective, as a part of that of the empty model."""
    bound = solver.prepare(problem, BoundOptions(force_quit=False))
    found = bound.tighten(problem.root_state[None], [None], np.inf, np.inf).answers.bound[0]
    return (problem.fit(range(problem.k)).value - float(found)) / problem.null_objective


def checker_lost(problem: Problem) -> float:
    """The same of formula (3) as the first checker evaluates it, at the fit, with half the curvature there is."""
    instance = Instance(problem.AT.T, problem.y, problem.k, "quadratic", 0.0)
    curvature = np.full(problem.d, 0.5 * float(np.linalg.eigvalsh(problem.gram.G)[0]))
    assert leaves_convex(instance, curvature)
    bounds, fit = RigorousBounds(instance), problem.fit(range(problem.k))
    every = np.full((1, problem.d), IN, dtype=np.uint8)
    found = bounds.bounds(bounds.at_models(fit.coef[None], curvature), np.zeros(1, dtype=np.intp), every)[0]
    return (fit.value - float(found)) / problem.null_objective


def quadratic(times: int, folder: Path) -> dict[str, object]:
    """A line of the table: the bounds of the search, what it says of all columns, and what its checker establishes."""
    A, y = repeated(times)
    few, whole = Problem(A[:, TRUE].copy(), y, K, lam=0.0), Problem(A, y, K, lam=0.0)
    result = solve(whole, proof=folder / "proof")
    accepted = verify(whole, folder / "proof").verified
    return {
        "rows": f"{len(y):,}", "fit": f"{lost(few, FitBound()):.1e}",
        "relaxation": f"{lost(few, AcceleratedGradientBound()):.1e}",
        "checker": f"{checker_lost(few):.1e}", 
        "gap of the search": f"{result.absolute_gap / result.null_objective:.1e}",
        "claim": result.claim.value, "proof accepted": "yes" if accepted else "NO",
    }  # fmt: skip


def other(times: int) -> dict[str, object]:
    """A line of the table of other losses: formula (2) at the fit, rounding taken off."""
    line: dict[str, object] = {"rows": f"{ROWS * times:,}"}
    for loss in LOSSES:
        made = Huber(1.0) if loss == "huber" else loss
        A, y = repeated(1, loss)
        coef = Problem(A[:, TRUE] / 100.0, y, K, loss=made, lam=1e-3).fit((0, 1, 2)).coef
        A, y = repeated(times, loss)
        problem = Problem(A[:, TRUE] / 100.0, y, K, loss=made, lam=1e-3 * times)
        bound = problem.objective.dual_bound(coef, np.full(K, 2, dtype=np.uint8), K)
        line[loss] = f"{(problem.objective(coef) - bound) / problem.null_objective:.1e}"
    return line


@click.command()
@click.option("--quick", is_flag=True, help="Up to 10,000 rows, and quadratic loss only.")
def main(quick: bool) -> None:
    """What bounds and gaps lose by rounding, as parts of the empty model's objective, by the number of rows."""
    several = [10**power for power in range(3 if quick else 5)]
    with tempfile.TemporaryDirectory() as name:
        table = [quadratic(times, Path(name)) for times in several]
    click.echo(markdown("Quadratic loss, lam = 0, R2 = 1 - 1e-6", table))
    if not quick:
        click.echo(markdown("Other losses, formula (2) at the fit", [other(times) for times in several]))


if __name__ == "__main__":
    main()
