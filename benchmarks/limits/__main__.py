"""``python -m benchmarks.limits``: seconds from a time limit, or a signal, to the end of the run.

The tests count what is still done after a limit; what that comes to in seconds depends on the machine and stands here.
About one second is the aim.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import numpy as np

from benchmarks.paper.tables import markdown
from exactsel import Huber, Problem, Result, solve
from exactsel.data.generate import generate

LOSSES = ("quadratic", "huber", "logistic")

TWINS = Path(__file__).resolve().parents[2] / "instances" / "twins.npz"


def planted(loss: str, k: int, n: int, d: int, lam: float = 0.1) -> Problem:
    """Many columns, k of them true, and noise."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((n, d)), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = 1.0
    y = A @ x + 2.0 * rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(3.0) if loss == "huber" else loss, lam=lam)


def compile_kernels(problem: Problem, **options: str) -> None:
    """Compiling counts towards a limit, and is not what is measured here."""
    rows = problem.A[:20, :8]
    small = Problem(rows, problem.y[:20], 3, loss=problem.loss, lam=problem.lam)
    solve(small, **options)


def cases(quick: bool) -> Iterator[tuple[str, Problem, float, dict[str, str]]]:
    """What is run: a name, a problem, its limit and options."""
    hard = generate("hard", k=12).problem()
    yield "a long search", hard, 1.0, {}
    yield "the paper's tree", hard, 0.5, {"tree": "state-space", "bound": "pdal"}
    yield "least-squares fits", hard, 0.5, {"bound": "fit"}
    yield "depth first", hard, 0.5, {"frontier": "depth-first"}
    n, d, large = (200, 150, 30) if quick else (2000, 1500, 300)
    for loss in LOSSES:
        yield f"start of a big instance, {loss}, k = 10", planted(loss, 10, n, d), 0.3, {}
        yield f"start of a big instance, {loss}, k = {large}", planted(loss, large, n, d), 1.0, {}
    yield "one fit of many columns", planted("quadratic", 10, 3 * n // 4, 2 * d // 3, lam=0.0), 0.5, {}


def after_limit(problem: Problem, limit: float, options: dict[str, str]) -> tuple[float, Result]:
    """Seconds beyond the limit; negative where the problem was solved before."""
    began = time.perf_counter()
    result = solve(problem, time_limit=limit, **options)
    return time.perf_counter() - began - limit, result


def after_signal(problem: Problem, wait: float, options: dict[str, str]) -> tuple[float, Result]:
    """Seconds from a signal to the end."""
    sent: list[float] = []

    def send() -> None:
        time.sleep(wait)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGUSR1)

    helper = threading.Thread(target=send)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        helper.start()
        result = solve(problem, signals=(signal.SIGUSR1,), **options)
        ended = time.perf_counter()
        helper.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    return ended - sent[0], result


def start(arguments: list[str]) -> float:
    """Seconds a command takes, from the start of its process to the end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "exactsel", *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


@click.command()
@click.option("--quick", is_flag=True, help="Smaller instances.")
@click.option(
    "--repeats", type=click.IntRange(1), default=3, show_default=True, help="The slowest of so many is shown."
)
def main(quick: bool, repeats: int) -> None:
    """Seconds from a time limit, and from a signal, to the end of the run."""
    ways: dict[str, Callable[[Problem, float, dict[str, str]], tuple[float, Result]]]
    ways = {"limit": after_limit, "signal": after_signal}
    rows = []
    for name, problem, seconds, options in cases(quick):
        compile_kernels(problem, **options)
        row: dict[str, object] = {"run": name, "limit": f"{seconds:g} s"}
        for way, measure in ways.items():
            runs = [measure(problem, seconds, options) for _ in range(repeats)]
            row[f"seconds after the {way}"] = f"{max(run[0] for run in runs):.2f}"
            row[f"ended by the {way}"] = ", ".join(sorted({run[1].termination.value for run in runs}))
        rows.append(row)
    starts: dict[str, list[str]] = {"--help": ["--help"], "a tiny solve": ["solve", str(TWINS), "--quiet"]}
    for arguments in starts.values():
        start(arguments)  # compiles what is not compiled yet
    began = [
        {"start": name, "seconds": f"{min(start(words) for _ in range(repeats)):.2f}"} for name, words in starts.items()
    ]
    click.echo(markdown("How soon a run ends (the slowest of the repeats)", rows))
    click.echo(markdown("How long a start takes (the quickest of the repeats)", began))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.limits")
