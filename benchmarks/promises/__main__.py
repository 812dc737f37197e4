"""The command line: a row for each instance."""

from __future__ import annotations

import fnmatch

import click

from benchmarks.promises.checks import SLACK, shortfall
from benchmarks.promises.instances import INSTANCES


@click.command()
@click.argument("names", default="*")
@click.option("--most", type=float, default=3e9, show_default=True, help="Counted multiplications of a single bound.")
def main(names: str, most: float) -> None:
    """Hold the default search against single bounds, and with a good model against without."""
    for name in fnmatch.filter(INSTANCES, names):
        found = shortfall(INSTANCES[name], most)
        kept = "kept" if max(found.of_bounds, found.of_none) <= SLACK else "BROKEN"
        click.echo(
            f"{name:22s} {kept:6s} short of {found.which} by {100 * found.of_bounds:.2f} %, of itself without an "
            f"incumbent by {100 * found.of_none:.2f} %, in vain {100 * found.wasted:.0f} %"
        )


if __name__ == "__main__":
    main()
