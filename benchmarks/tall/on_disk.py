"""``python -m benchmarks.tall.on_disk``: rows of Huber and logistic loss that stay on disk: CPU time and memory."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from benchmarks.paper.tables import markdown
from benchmarks.tall.rows import Planted
from exactsel import Problem, Result, gram, solve, verify
from exactsel.data.instance import read_instance
from exactsel.types import FloatArray

SAMPLED = 0.02
"""Seconds between two looks at the memory."""


def targets(rows: Planted, loss: str) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Blocks (A, y): a few large errors for Huber loss, labels for logistic loss."""
    for number, (A, y) in enumerate(rows):
        rng = np.random.default_rng([rows.seed, 1, number])
        noise = rng.standard_t(3, len(y)) if loss == "huber" else rng.logistic(size=len(y))
        z = (A[:, [*rows.support]] - np.linspace(0.0, 100.0, rows.columns)[[*rows.support]]).sum(axis=1) * 0.15
        yield A, z + noise if loss == "huber" else np.where(z + noise > 0, 1.0, -1.0)


class Part(NamedTuple):
    """What one part of the work came to, in a process of its own: what a process has freed, it mostly keeps."""

    said: dict[str, Any]
    cpu: float
    mebibytes: float
    """The most memory of its own that the process held, pages of files left out."""

    def __str__(self) -> str:
        return f"{self.cpu:.1f}, {self.mebibytes:.0f}"


def own_mebibytes() -> float:
    """Memory of this process that is no page of a file; nan where the system (not Linux) does not tell."""
    status = Path("/proc/self/status")
    found = status.read_text().partition("RssAnon:")[2].split() if status.exists() else []
    return float(found[0]) / 1024.0 if found else float("nan")


def part(name: str, rows: Planted, loss: str, folder: Path) -> Part:
    """Write the rows, solve with them, verify the proof, or solve with them in memory."""
    done, found = threading.Event(), [0.0]

    def watch() -> None:
        while not done.is_set():
            found[0] = max(found[0], own_mebibytes())
            done.wait(SAMPLED)

    watcher, began = threading.Thread(target=watch), time.process_time()
    watcher.start()
    try:
        said = WORK[name](rows, loss, folder)
    finally:
        done.set()
        watcher.join()
    return Part(said, time.process_time() - began, found[0])


def write(rows: Planted, loss: str, folder: Path) -> dict[str, Any]:
    """The rows to a file."""
    gram(targets(rows, loss), loss=loss, intercept=True, k=rows.k, lam=1.0, out=folder / "rows.npz")
    return {}


def solve_with_file(rows: Planted, loss: str, folder: Path) -> dict[str, Any]:
    """What a solve says, with a proof."""
    return said(solve(read_instance(folder / "rows.npz").problem(), proof=folder / "rows.exsel"))


def check(rows: Planted, loss: str, folder: Path) -> dict[str, Any]:
    """Whether the proof holds."""
    return {"verified": verify(read_instance(folder / "rows.npz").problem(), folder / "rows.exsel").verified}


def solve_in_memory(rows: Planted, loss: str, folder: Path) -> dict[str, Any]:
    """What a solve says of the rows in memory."""
    A, y = (np.concatenate(each) for each in zip(*targets(rows, loss), strict=True))
    problem = Problem.prepared(A, y, rows.k, loss=loss, lam=1.0, intercept=True)
    return said(solve(problem, proof=folder / "memory.exsel"))


def said(result: Result) -> dict[str, Any]:
    """Support and bounds."""
    claim = result.claim.value
    return {"support": result.support, "lower": result.lower, "upper": result.upper, "claim": claim}


WORK = {"write": write, "solve": solve_with_file, "verify": check, "in memory": solve_in_memory}


def apart(*arguments: Any) -> Part:
    """:func:`part` in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(part, *arguments).result()


def measured(rows: Planted, loss: str, folder: Path, in_memory: bool, run: Callable[..., Part]) -> dict[str, object]:
    """A row of the table: written, solved with a proof, verified, and the same in memory where that is asked for."""
    parts = {name: run(name, rows, loss, folder) for name in ("write", "solve", "verify")}
    result, same = parts["solve"].said, "not tried"
    if in_memory:
        same = "the same" if run("in memory", rows, loss, folder).said == result else "another"
    return {
        "loss": loss, "rows": f"{rows.rows:,} x {rows.columns}", "k": rows.k,
        "file, MiB": f"{(folder / 'rows.npz').stat().st_size / 2**20:.0f}",
        **{f"{name}: CPU s, own MiB": str(each) for name, each in parts.items()},
        "claim": result["claim"], "lower": f"{result['lower']:.12g}", "upper": f"{result['upper']:.12g}",
        "planted columns": "found" if result["support"] == rows.support else "not found",
        "proof": "verified" if parts["verify"].said["verified"] else "rejected", "in memory": same,
    }  # fmt: skip


@click.command()
@click.option("--rows", type=click.IntRange(1), default=2_000_000, show_default=True)
@click.option("--columns", type=click.IntRange(2), default=60, show_default=True)
@click.option("-k", type=click.IntRange(1), default=7, show_default=True, help="Columns in the target, and in models.")
@click.option("--loss", "losses", multiple=True, default=("huber", "logistic"), show_default=True)
@click.option("--few-rows", type=click.IntRange(1), default=50_000, show_default=True, help="Solved in memory, too.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the rows lie: a disk, not memory.")
@click.option("--quick", is_flag=True, help="Fewer rows and columns.")
def main(
    rows: int, columns: int, k: int, losses: tuple[str, ...], few_rows: int, folder: Path | None, quick: bool
) -> None:
    """CPU time and memory of solving with rows that stay on disk, and what is proven of them."""
    if quick:
        rows, columns, k, few_rows = 3_000, 8, 2, 2_000
    with tempfile.TemporaryDirectory(dir=folder) as name:
        run = part if quick else apart
        few = [measured(Planted(few_rows, columns, k), loss, Path(name), True, run) for loss in losses]
        click.echo(markdown("On disk and in memory", few))
        table = [measured(Planted(rows, columns, k), loss, Path(name), False, run) for loss in losses]
    click.echo(markdown("Rows that stay on disk", table))


if __name__ == "__main__":
    main()
