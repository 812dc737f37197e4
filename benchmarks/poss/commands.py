"""The command line: one command per experiment, which prints its tables and writes them to a file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.curves import draw
from benchmarks.folder import MissingData, chosen, folder_option
from benchmarks.paper.tables import markdown
from benchmarks.poss import anytime, generalisation, table2
from benchmarks.poss.data import Data, generated, load
from benchmarks.poss.published import FIGURE_2, TABLE_2, K
from exactsel.files import write_bytes

SPLITS = 100

FEWER = 20
MANY = 500_000
"""Fewer splits are made, unless --splits says otherwise, of data with more than so many numbers (such as mushrooms)."""


class Words(click.ParamType):
    """Words separated by commas, or numbers when ``kind`` is int."""

    name = "list"

    def __init__(self, kind: type[str] | type[int] = str) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """See :class:`click.ParamType`."""
        try:
            return tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 3,4,5", param, ctx)


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options every command has."""
    options = (
        click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Markdown file for the tables."),
        click.option("--quick", is_flag=True, help="Generated data, two splits, small k: seconds."),
        folder_option(),
        click.option("--data", type=Words(), help="Data sets, such as housing,sonar; all: every file of the folder."),
        click.option("--splits", type=click.IntRange(1), help=f"Random halves; {SPLITS}, of large data {FEWER}."),
        click.option("--seed", type=int, default=0, show_default=True, help="Seed of the splits, or of the first run."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def main() -> None:
    """The experiments of the POSS paper, as tables, on the paper's data sets or any others."""


@main.command(name="table2")
@shared
@click.option("--k", type=click.IntRange(1), default=K, show_default=True, help="Subset size.")
@click.option("--solved", type=click.IntRange(0), help="Splits per data set that are solved too; all of them.")
@click.option("--time-limit", type=float, default=10.0, show_default=True, help="Seconds per split that is solved.")
def table_2(out: Path | None, k: int, solved: int | None, time_limit: float, **given: Any) -> None:
    """Training R² of every method beside the printed ones, and the certified optimum."""
    rows, certificates = [], []
    for data, splits in selected(tuple(TABLE_2), given):
        count = splits if solved is None else min(solved, splits)
        measured = table2.measure(data, 3 if given["quick"] else k, splits, count, time_limit, given["seed"])
        rows.extend(table2.method_rows(measured))
        if count:
            certificates.append(table2.certificate_row(measured))
        deliver(out, [("Training R² on random halves", rows), ("Certified by exactsel.solve", certificates)])
    show(out, [("Training R² on random halves", rows), ("Certified by exactsel.solve", certificates)])


@main.command(name="test-r2")
@shared
@click.option("--ks", type=Words(int), default="3,4,5,6,7,8", show_default=True, help="Subset sizes.")
def test_r2(out: Path | None, ks: Sequence[int], **given: Any) -> None:
    """Figures 1 and 3: training and test R² over k."""
    over_k(out, ("sonar", "svmguide3"), ks, 0.0, given)


@main.command()
@shared
@click.option("--ks", type=Words(int), default="5,6,7,8", show_default=True, help="Subset sizes.")
def ridge(out: Path | None, ks: Sequence[int], **given: Any) -> None:
    """Figure 4: training RSS and test R² over k, with a ridge."""
    over_k(out, ("sonar",), ks, generalisation.RIDGE, given)


@main.command(name="anytime")
@shared
@click.option("--k", type=click.IntRange(1), default=K, show_default=True, help="Subset size.")
@click.option("--runs", type=click.IntRange(1), default=30, show_default=True, help="Runs of POSS.")
@click.option("--time-limit", type=float, default=10.0, show_default=True, help="Seconds a solve; 0: none.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves into this file.")
def over_time(out: Path | None, k: int, runs: int, time_limit: float, plot: Path | None, **given: Any) -> None:
    """Figure 2: R² of POSS over its time, on all rows, and when it is better than FR."""
    raced: list[anytime.Race] = []
    tables: list[tuple[str, list[Any]]] = []
    for data, _ in selected((*FIGURE_2, "sonar", "svmguide3"), given):
        size, count = (3, 2) if given["quick"] else (k, runs)
        raced.append(anytime.race(data, size, count, given["seed"], time_limit))
        tables = [
            ("When POSS is better than FR", [anytime.summary_row(one) for one in raced]),
            ("R² over time", [row for one in raced for row in anytime.curve_rows(one)]),
        ]
        deliver(out, tables)
    show(out, tables)
    if plot is not None and raced:
        draw({one.data: anytime.picture(one) for one in raced}, ("evaluations / kd", "training R²"), plot)


def over_k(out: Path | None, names: Sequence[str], ks: Sequence[int], weight: float, given: dict[str, Any]) -> None:
    """Compare the methods for every data set and k."""
    comparisons: list[generalisation.Compared] = []
    tables: list[tuple[str, list[Any]]] = []
    for data, splits in selected(names, given):
        for k in (2, 3) if given["quick"] else ks:
            comparisons.append(generalisation.compare(data, k, splits, given["seed"], weight))
            rows = [row for compared in comparisons for row in generalisation.method_rows(compared)]
            agreement = list(generalisation.agreement_rows(comparisons))
            tables = [("Training and test half", rows), ("Does training tell what testing says?", agreement)]
            deliver(out, tables)
    show(out, tables)


def selected(names: Sequence[str], given: dict[str, Any]) -> Iterator[tuple[Data, int]]:
    """The data sets to run on and the number of splits of each; a sentence for each that is missing."""
    if given["quick"]:
        yield generated("generated"), given["splits"] or 2
        return
    for name in chosen(given["data"], names, given["folder"]):
        try:
            data = load(name, given["folder"])
        except MissingData as missing:
            click.echo(str(missing), err=True)
        else:
            yield data, given["splits"] or (FEWER if data.A.size > MANY else SPLITS)


def text(tables: Sequence[tuple[str, list[Any]]]) -> str:
    """All tables that have rows, under the command that made them."""
    command = shlex.join(["python", "-m", "benchmarks.poss", *sys.argv[1:]])
    return "\n".join([f"`{command}`\n", *(markdown(title, rows) for title, rows in tables if rows)])


def deliver(out: Path | None, tables: Sequence[tuple[str, list[Any]]]) -> None:
    """Write what is there so far, so that nothing is lost."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(out, text(tables).encode())


def show(out: Path | None, tables: Sequence[tuple[str, list[Any]]]) -> None:
    """Print the tables, and where they are."""
    click.echo(text(tables))
    if out is not None and any(rows for _, rows in tables):
        click.echo(f"written to {out}", err=True)
