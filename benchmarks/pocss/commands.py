"""The command line: one command per table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from benchmarks.curves import Lines, draw
from benchmarks.folder import MissingData, chosen, folder_option
from benchmarks.paper.tables import Row, markdown
from benchmarks.pocss import published
from benchmarks.pocss.anytime import Figure2
from benchmarks.pocss.data import GENERATED, SCALINGS
from benchmarks.pocss.experiments import Comparison, Exact, Figure1, Table1
from benchmarks.pocss.methods import ALL
from exactsel.errors import UnsupportedError
from exactsel.files import write_bytes

QUICK: dict[str, Any] = {"data": (GENERATED,), "seeds": 2, "pocss_seeds": 1}
"""What --quick sets, besides k."""


class Listed(click.ParamType):
    """Words or whole numbers separated by commas, each one of the ``known`` ones where these are given."""

    name = "list"

    def __init__(self, kind: type[int] | type[str] = str, known: tuple[str, ...] = ()) -> None:
        self.kind, self.known = kind, known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """See :class:`click.ParamType`."""
        if isinstance(value, tuple):
            return value
        try:
            parts = tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list such as 50,60", param, ctx)
        unknown = [part for part in parts if self.known and part not in self.known]
        if unknown:
            self.fail(f"{unknown[0]!r} is not one of {', '.join(self.known)}", param, ctx)
        return parts


def shared(data: str, ks: str, quick_ks: tuple[int, ...]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options all commands have, with their defaults; --quick replaces data, k and the number of runs."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(quick: bool, **given: Any) -> None:
            command(**(given | (QUICK | {"ks": quick_ks} if quick else {})))

        options = (
            click.option(
                "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Markdown file."
            ),
            folder_option(),
            click.option("--data", type=Listed(), default=data, help="Data sets; all: every file of the folder."),
            click.option("--k", "ks", type=Listed(int), default=ks, help="Numbers of columns to select."),
            click.option("--scaling", type=click.Choice(list(SCALINGS)), default="unit"),
            click.option("--first-rows", "first", type=click.IntRange(1), help="Only so many rows; all of them."),
            click.option("--methods", type=Listed(known=ALL), default=",".join(ALL), help="Methods to compare."),
            click.option("--seeds", type=click.IntRange(1), default=10, help="Runs of a random method."),
            click.option("--pocss-seeds", type=click.IntRange(1), default=10, help="Runs of pocss, the slowest."),
            click.option("--quick", is_flag=True, help="Generated data, small k, few runs: seconds."),
        )
        for option in reversed(options):
            run = option(run)
        return run

    return decorate


@click.group(context_settings={"show_default": True})
def main() -> None:
    """The experiments of the POCSS paper, as tables."""


@main.command()
@shared(",".join(published.TABLE_1), str(published.K), (3, 5))
def table1(out: Path, **given: Any) -> None:
    """Error ratios f(S) / ||A - A_k||² of all methods beside those of the paper's table 1."""
    produce(out, Table1, **given)


@main.command()
@shared(",".join(published.FIGURE_1), "50,60,70,80,90,100", (3, 5, 100))
def figure1(out: Path, **given: Any) -> None:
    """Error ratios over k, as in the paper's figure 1."""
    produce(out, Figure1, **given)


@main.command()
@shared(",".join(published.FIGURE_2), str(published.K), (3,))
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves into this file.")
def figure2(out: Path, plot: Path | None, **given: Any) -> None:
    """Error ratio of POCSS over its time, and when it is below Greedy and IterFS, as in the paper's figure 2."""
    pictures: dict[str, Lines] = {}
    produce(out, Figure2, pictures=pictures, **given)
    if plot is not None and pictures:
        draw(pictures, ("evaluations / kd", "error ratio"), plot)


@main.command()
@shared("sonar", "1,2,3,4,5", (1, 2))
@click.option("--time-limit", type=float, default=60.0, help="Seconds a solve.")
def exact(out: Path, **given: Any) -> None:
    """Small k solved exactly, and what each method loses."""
    produce(out, Exact, **given)


def produce(out: Path, kind: type[Comparison], *, data: tuple[str, ...], folder: Path | None, **given: Any) -> None:
    """Write the table anew after each row, so that nothing is lost; then print it, and what was left out and why."""
    rows: list[Row] = []
    said: list[str] = []
    for name in chosen(data, (), folder):
        experiment = kind(name, complaints=said, folder=folder, **given)
        try:
            for row in experiment.rows():
                rows.append(row)
                write_bytes(out, markdown(experiment.title, rows).encode())
                click.echo(f"{name}: {len(rows)} rows", err=True)
        except (MissingData, UnsupportedError) as reason:
            said.append(str(reason))
    if rows:
        click.echo(out.read_text(encoding="utf-8"))
    for sentence in dict.fromkeys(said):
        click.echo(sentence, err=True)
