"""``python -m benchmarks.best DATA``: best models over all sizes, beside what BranchGLM 2.1.6 says of the same data.

Without a ridge, an intercept always in, columns as they are but without constant ones, the ten best models, one thread.
BranchGLM's values and seconds were taken with its switch branch and bound on one thread of another machine. Where the
classes are separated no model is best without a ridge, and this says so; then it takes one that is all but none.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from exactsel import Problem, best_model
from exactsel.errors import ExactselError


class Known(NamedTuple):
    """What BranchGLM says."""

    data: str
    loss: str
    criterion: str
    value: float
    seconds: float


KNOWN = (
    Known("australian", "logistic", "bic", 476.475355, 0.07),
    Known("australian", "logistic", "aic", 445.683167, 0.06),
    Known("german.numer", "logistic", "bic", 1034.154986, 5.3),
    Known("german.numer", "logistic", "aic", 972.373316, 1.4),
    Known("svmguide3", "logistic", "bic", 1176.679391, 1.6),
    Known("svmguide3", "logistic", "aic", 1105.988400, 0.35),
    Known("ionosphere", "logistic", "bic", 217.624206, 123.0),
    Known("ionosphere", "logistic", "aic", 158.822990, 13.9),
    Known("housing", "quadratic", "bic", 3078.671365, 0.01),
    Known("housing", "quadratic", "aic", 3023.726388, 0.01),
)


ALL_BUT_NONE = 1e-9
"""A ridge by which values change in the seventh digit."""


def problem_of(file: Path, loss: str, lam: float) -> Problem:
    """The problem of a data set; the first label counts as 0."""
    with np.load(file, allow_pickle=False) as stored:
        A, y = np.asarray(stored["A"], dtype=float), np.asarray(stored["y"], dtype=float)
    A = A[:, np.ptp(A, axis=0) > 0]
    if loss == "logistic":
        y = np.where(y == np.unique(y)[0], -1.0, 1.0)
    return Problem.prepared(A, y, 1, lam=lam, loss=loss, intercept=True)


@click.command()
@click.argument("data", type=click.Path(path_type=Path, exists=True))
@click.option("--only", default="", help="Data whose name holds this.")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Models to list.")
@click.option("--limit", type=float, default=120.0, show_default=True, help="Seconds for each line.")
def main(data: Path, only: str, top: int, limit: float) -> None:
    """Find the best models of the data sets in folder DATA, once to load kernels and once to take the time."""
    for known in KNOWN:
        file = data / f"{known.data}.npz"
        if only not in known.data or not file.exists():
            continue
        try:
            problem = problem_of(file, known.loss, 0.0)
        except ExactselError as error:
            print(f"{known.data} {known.criterion}: {error} Now with lam = {ALL_BUT_NONE:g}:", flush=True)
            problem = problem_of(file, known.loss, ALL_BUT_NONE)
        for _ in range(2):
            began, cpu = time.perf_counter(), time.process_time()
            found = best_model(problem, criterion=known.criterion, top=top, threads=1, time_limit=limit)
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        print(
            f"{known.data} {known.criterion}: {found.value:.6f} on {', '.join(map(str, found.support))} "
            f"(BranchGLM {known.value:.6f}), gap {found.absolute_gap:.1e}, {len(found.models)} models, "
            f"{'all' if found.complete else 'not all'} there are; {wall:.2f} s, {cpu:.2f} s at work "
            f"(BranchGLM {known.seconds:g} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
