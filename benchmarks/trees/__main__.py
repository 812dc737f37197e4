"""``python -m benchmarks.trees write FILE``, then, after a change, ``python -m benchmarks.trees compare FILE``.

A change that is to leave every search as it was (a module moved, a loop written once instead of three times) must leave
the tree hash, the counted work and both bounds of each run as they were, to the last bit on the same machine.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.paper.tables import markdown
from benchmarks.trees.cases import Case, cases, refused
from exactsel import InputError, solve

SAME = ("tree_hash", "nodes", "bound_calls", "iterations", "upper", "lower", "support", "refused")
"""What must not differ."""


def outcome(case: Case, repeats: int) -> dict[str, Any]:
    """The run as plain data; its time is the smallest of some repeats."""
    try:
        problem = case.make()
        seconds, result = [], None
        for _ in range(repeats):
            began = time.perf_counter()
            result = solve(problem, **case.options)
            seconds.append(time.perf_counter() - began)
    except InputError as error:
        return refused(error)
    click.echo(f"{min(seconds):9.3f} s  {case.name}", err=True)
    return {
        "tree_hash": result.tree_hash, "nodes": result.nodes, "bound_calls": result.bound_calls,
        "iterations": result.iterations, "upper": result.upper.hex(), "lower": result.lower.hex(),
        "support": list(result.support), "seconds": min(seconds),
    }  # fmt: skip


@click.group()
def main() -> None:
    """Whether a change left every search as it was."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="The small runs only.")
@click.option("--repeats", default=3, show_default=True, help="Runs of each case; the quickest counts.")
def write(file: Path, quick: bool, repeats: int) -> None:
    """Run all cases and write down what came out."""
    found = {case.name: outcome(case, repeats) for case in cases(quick)}
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    click.echo(f"{len(found)} runs in {file}")


@main.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--quick", is_flag=True, help="The small runs only.")
@click.option("--repeats", default=3, show_default=True, help="Runs of each case; the quickest counts.")
@click.option("--slow", default=0.05, show_default=True, help="Times of runs that took this many seconds are shown.")
def compare(file: Path, quick: bool, repeats: int, slow: float) -> None:
    """Run all cases again and say what differs; the exit code is 1 where anything does."""
    before = json.loads(file.read_text(encoding="utf-8"))
    rows, differing, new = [], [], 0
    for case in cases(quick):
        known = before.get(case.name)
        now = outcome(case, repeats)
        if known is None:
            new += 1
            continue
        changed = [name for name in SAME if known.get(name) != now.get(name)]
        if changed:
            differing.append(
                f"{case.name}: {', '.join(f'{name} {known.get(name)} -> {now.get(name)}' for name in changed)}"
            )
        if known.get("seconds", 0.0) >= slow and "seconds" in now:
            ratio = now["seconds"] / known["seconds"]
            rows.append(
                {
                    "run": case.name, "nodes": now["nodes"],
                    "s before": f"{known['seconds']:.3f}", "s now": f"{now['seconds']:.3f}", "ratio": f"{ratio:.2f}",
                }
            )  # fmt: skip
    click.echo(markdown("Times", rows) if rows else "no run took long enough to be timed")
    click.echo(f"{len(before)} runs before, {len(differing)} differ, {new} are new")
    for line in differing:
        click.echo(line)
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
