"""The command line: one command per experiment, each with the parameters of the full run as defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import click

from benchmarks.folder import MissingData, chosen, folder_option
from benchmarks.greedy_rls.accuracy import Accuracy, Curves
from benchmarks.greedy_rls.comparison import Comparison
from benchmarks.greedy_rls.data import NAMES
from benchmarks.greedy_rls.scaling import Scaling
from benchmarks.paper.tables import Row, markdown
from exactsel.files import write_bytes
from exactsel_heuristics.greedy_rls import CRITERIA

QUICK_SCALING = Scaling((200, 400), columns=50, k=5, threads=(1,), repeats=1, entries=100_000)
QUICK_COMPARISON = Comparison((50, 100), columns=10, k=3)

OUT = click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the tables to this file.")
QUICK = click.option("--quick", is_flag=True, help="A small version that takes seconds.")
CRITERION = click.option("--criterion", type=click.Choice(CRITERIA), default="zero-one", show_default=True)


class Experiment(Protocol):
    """What a table is made of."""

    @property
    def title(self) -> str: ...

    def rows(self) -> Iterator[Row]: ...


@click.group()
def main() -> None:
    """The experiments of the greedy RLS paper, as tables."""


@main.command()
@OUT
@QUICK
@click.option("--criterion", type=click.Choice(CRITERIA), default="squared", show_default=True)
@click.option("--threads", type=int, multiple=True, help="Numbers of threads; repeat the option (default: 1 and 2).")
def scaling(out: Path | None, quick: bool, criterion: str, threads: tuple[int, ...]) -> None:
    """Time over the number of rows, against the limit that the memory sets."""
    plan = QUICK_SCALING if quick else Scaling()
    produce([Scaling(**{**vars(plan), "criterion": criterion, "threads": threads or plan.threads})], out)


@main.command()
@OUT
@QUICK
def comparison(out: Path | None, quick: bool) -> None:
    """Greedy RLS against the low-rank updated LS-SVM."""
    produce([QUICK_COMPARISON if quick else Comparison()], out)


@main.command()
@OUT
@QUICK
@CRITERION
@folder_option()
@click.option("--data", "names", multiple=True, help="Data set; repeat it. Without it the paper's; all: every file.")
@click.option("--positive", type=float, help="The class to tell from all others, such as 5 of ten digits.")
@click.option("--steps", type=click.IntRange(1), help="Features to select; all of them.")
@click.option("--bias", is_flag=True, help="Append a constant feature, a candidate like the others.")
@click.option("--seed", default=0, show_default=True, help="Seed of folds and random orders.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the curves into this file.")
def accuracy(
    out: Path | None,
    quick: bool,
    names: tuple[str, ...],
    folder: Path | None,
    plot: Path | None,
    steps: int | None,
    **given: Any,
) -> None:
    """Figures 4 to 15: test accuracy over the number of features, and what leave-one-out says of it."""
    sizes: dict[str, Any] = {"folds": 3, "orders": 2, "steps": 5} if quick else {"steps": steps}
    plans = [Accuracy(name, folder=folder, **sizes, **given) for name in chosen(names or None, NAMES, folder)]
    produced = produce(plans, out)
    if plot is not None and produced:
        draw({plan.name: plan.curves for plan in plans if plan in produced}, plot)


def produce(experiments: Sequence[Any], out: Path | None) -> list[Any]:
    """Run experiments and print their tables; the file is written anew after every row so that nothing is lost."""
    tables: list[str] = []
    produced = []
    for experiment in experiments:
        rows: list[Row] = []
        try:
            for row in experiment.rows():
                rows.append(row)
                save([*tables, markdown(experiment.title, rows)], out)
        except MissingData as missing:
            click.echo(str(missing), err=True)
            continue
        tables.append(markdown(experiment.title, rows))
        produced.append(experiment)
        click.echo(tables[-1])
    return produced


def save(tables: Sequence[str], out: Path | None) -> None:
    """Write the tables, if there is a place for them."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(out, "\n".join(tables).encode())


def draw(curves: dict[str, Curves], file: Path) -> None:
    """One picture per data set: test accuracy, random selection, majority voter, leave-one-out accuracy."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.0 * len(curves), 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, curve) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items(), strict=True):
        features = range(1, curve.steps + 1)
        axes.plot(features, curve.mean("greedy"), label="greedy RLS, test")
        axes.plot(features, curve.mean("leave_one_out"), "--", label="greedy RLS, leave-one-out")
        axes.plot(features, curve.mean("random"), label="random selection, test")
        axes.axhline(curve.majority, color="grey", linestyle=":", label="majority voter")
        axes.set(title=name, xlabel="selected features", ylabel="accuracy", ylim=(0.5, 1.02))
        if curve.steps > 100:
            axes.set_xscale("log")
    axes.legend(loc="lower right")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
