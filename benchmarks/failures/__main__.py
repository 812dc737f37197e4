"""The command line."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.failures.rates import CSS, failure_rates, wording
from benchmarks.paper.tables import markdown
from exactsel import ColumnSubsetProblem, load
from exactsel.files import write_bytes

INSTANCES = Path(__file__).parents[2] / "instances"


@click.command(context_settings={"show_default": True})
@click.option("--folder", type=click.Path(path_type=Path, exists=True), default=INSTANCES, help="Of .npz instances.")
@click.option("--css", default=",".join(CSS), help="Names of those whose columns are also chosen without a target.")
@click.option("--seeds", default=30, type=click.IntRange(1), help="Of each random method.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Markdown file.")
def main(folder: Path, css: str, seeds: int, out: Path) -> None:
    """How often each method misses the proven optimum of each instance."""
    rows = []
    for file in sorted(folder.glob("*.npz")):
        problem, selections = load(file), css.split(",")
        problems = {file.stem: problem}
        if file.stem in selections:
            problems[f"{file.stem}, css"] = ColumnSubsetProblem(problem.A, problem.k)
        rows += [wording(name, failure_rates(each, seeds)) for name, each in problems.items()]
    write_bytes(out, markdown(f"Methods that miss the optimum, of {seeds} seeds", rows).encode())
    click.echo(out.read_text())


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.failures")
