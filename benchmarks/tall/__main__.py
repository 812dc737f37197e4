"""``python -m benchmarks.tall``: rows made on the fly, then rows in a file, reduced, solved and proven."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import numpy as np

from benchmarks.paper.tables import markdown
from benchmarks.tall.accuracy import accuracy
from benchmarks.tall.rows import Planted, measured
from exactsel import Problem, gram, solve

IN_MEMORY = 200_000
"""Rows of the copy that is solved in memory, too."""


def write_file(rows: Planted, file: Path) -> None:
    """The rows as float32, the target last, written block by block."""
    with file.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows.rows, rows.columns + 1)}
        np.lib.format.write_array_header_1_0(stream, header)
        for A, y in rows:
            np.column_stack([A, y]).astype("<f4").tofile(stream)


def compared(columns: int, k: int) -> dict[str, object]:
    """The same rows in memory and in blocks."""
    rows = Planted(IN_MEMORY, columns, k)
    A, y = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    whole = solve(Problem.prepared(A, y, k, lam=1.0, intercept=True))

    small = solve(gram(iter(rows), intercept=True, k=k, lam=1.0).problem())
    spread = small.full_data
    assert spread is not None
    return {
        "rows": f"{IN_MEMORY:,} x {columns}", "support": "the same" if whole.support == small.support else "another",
        "in memory": f"{whole.lower:.12g} to {whole.upper:.12g}",
        "in blocks, of all rows": f"{spread.lower:.12g} to {spread.upper:.12g}",
        "agree": spread.lower <= whole.upper and whole.lower <= spread.upper,
    }  # fmt: skip


@click.command()
@click.option("--rows", type=click.IntRange(1), default=20_000_000, show_default=True, help="Rows made on the fly.")
@click.option("--columns", type=click.IntRange(2), default=100, show_default=True)
@click.option("-k", type=click.IntRange(1), default=10, show_default=True, help="Columns in the target.")
@click.option("--file-rows", type=click.IntRange(1), default=2_000_000, show_default=True, help="Rows in a file.")
@click.option("--threads", type=click.IntRange(1), help="All cores by default.")
@click.option("--quick", is_flag=True, help="Fewer rows and columns.")
def main(rows: int, columns: int, k: int, file_rows: int, threads: int | None, quick: bool) -> None:
    """Seconds and peak memory of reducing very many rows, and what is proven of them."""
    if quick:
        rows, columns, k, file_rows = 20_000, 20, 3, 10_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generated = Planted(rows, columns, k)
        table = [measured(iter(generated), generated, folder, threads=threads)]
        click.echo(markdown("Made on the fly", table))
        stored = Planted(file_rows, columns, k, seed=1)
        write_file(stored, folder / "rows.npy")
        table = [measured(folder / "rows.npy", stored, folder, target=-1, threads=threads)]
    click.echo(markdown("In a file of float32", table))
    if not quick:
        click.echo(markdown("In memory and in blocks", [compared(columns, k)]))
    click.echo(markdown("Relative error of the best objective, beside the Gram matrix", accuracy()))


if __name__ == "__main__":
    main()
