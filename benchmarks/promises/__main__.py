"""The command line: a row for each instance."""

from __future__ import annotations

import fnmatch

import click

from benchmarks.promises.checks import SLACK, shortfall
from benchmarks.promises.instances import INSTANCES, everything


@click.command()
@click.argument("names", default="*")
@click.option("--most", type=float, default=3e9, show_default=True, help="Counted multiplications of a single bound.")
@click.option("--all", "every", is_flag=True, help="Instances of benchmarks.speed too.")
def main(names: str, most: float, every: bool) -> None:
    """Hold the default search against single bounds, and with a good model against without."""
    instances = everything() if every else INSTANCES
    for name in fnmatch.filter(instances, names):
        found = shortfall(instances[name], most)
        kept = "kept" if max(found.of_bounds, found.of_none) <= SLACK else "BROKEN"
        click.echo(
            f"{name:34s} {kept:6s} short of {found.which} by {100 * found.of_bounds:.2f} %, of itself without an "
            f"incumbent by {100 * found.of_none:.2f} %, in vain {100 * found.wasted:.0f} %"
        )


if __name__ == "__main__":
    main()
