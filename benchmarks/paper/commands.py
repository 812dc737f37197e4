"""The command line: one command per experiment, each with the parameters of the full run as defaults."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from benchmarks.folder import MissingData, folder_option
from benchmarks.paper import plans
from benchmarks.paper.mip import solvers
from benchmarks.paper.plans import Experiment
from benchmarks.paper.real import Real
from benchmarks.paper.tables import Row, markdown, total, write

RESULTS = Path(__file__).resolve().parents[1] / "results"


class Numbers(click.ParamType):
    """Numbers separated by commas."""

    name = "numbers"

    def __init__(self, kind: type[int] | type[float] = int) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """See :class:`click.ParamType`."""
        try:
            return tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 2,3,4", param, ctx)


LOSS = click.option("--loss", type=click.Choice(["huber", "logistic"]), default="huber", show_default=True)
N = click.option("--n", type=int, help="Rows.")
D = click.option("--d", type=int, help="Columns.")
LAM = click.option("--lam", type=float, help="Ridge weight.")
INSTANCES = click.option("--instances", type=click.IntRange(1), help="Random instances per row of the table.")
SEED = click.option("--seed", type=int, help="Seed of the first instance; the others follow.")
LIMIT = click.option("--limit", type=float, help="Seconds on the clock per solve.")
MIP_PYTHON = click.option("--mip-python", "python", default=sys.executable, help="Python with gurobipy and pyscipopt.")


@dataclass(frozen=True)
class Outcome:
    """Where a table went and what faithful and default mode took in total."""

    name: str
    faithful: float
    default: float


@click.group(context_settings={"show_default": True})
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=RESULTS, help="Where tables go.")
@click.pass_context
def main(context: click.Context, folder: Path) -> None:
    """The experiments of the best-first search paper, as tables (options left out: as in the full run)."""
    context.obj = folder


@main.command()
@LOSS
@click.option("--ks", type=Numbers(), help="Subset sizes, such as 2,3,4.")
@click.option("--faithful", type=click.IntRange(1), help="Instances that faithful mode solves too.")
@N
@D
@LAM
@INSTANCES
@SEED
@LIMIT
@click.pass_obj
def cost(folder: Path, /, loss: str, **given: Any) -> None:
    """Bound calls and time of faithful and default mode over k; optima found by inexact methods."""
    produce(folder, f"cost-{loss}", changed(plans.cost(loss), given))


@main.command()
@LOSS
@click.option("--ns", type=Numbers(), help="Numbers of rows, such as 40,60,80.")
@click.option("--k", type=int, help="Subset size.")
@click.option("--rel", type=float, help="Relative error of the run that need not be exact.")
@click.option("--stronger", is_flag=True, help="Appendix D: the same with ten times the ridge weight.")
@D
@LAM
@INSTANCES
@SEED
@LIMIT
@click.pass_obj
def recovery(folder: Path, /, loss: str, stronger: bool, **given: Any) -> None:
    """How often each method finds the true support, over n."""
    name = f"recovery-{loss}{'-stronger' if stronger else ''}"
    produce(folder, name, changed(plans.recovery(loss, stronger), given))


@main.command()
@click.option("--ds", type=Numbers(), help="Numbers of columns, such as 20,30.")
@click.option("--k", type=int, help="Subset size.")
@N
@LAM
@INSTANCES
@SEED
@LIMIT
@click.pass_obj
def ablation(folder: Path, /, **given: Any) -> None:
    """Warm start and force-quit, each on and off, in faithful mode."""
    produce(folder, "ablation", changed(plans.ablation(), given))


@main.command(name="dual-solvers")
@LOSS
@click.option("--ks", type=Numbers(), help="Subset sizes, such as 2,3,4.")
@N
@D
@LAM
@INSTANCES
@SEED
@LIMIT
@click.pass_obj
def dual_solvers(folder: Path, /, loss: str, **given: Any) -> None:
    """PDAL against supergradient ascent."""
    produce(folder, f"dual-solvers-{loss}", changed(plans.dual_solvers(loss), given))


@main.command()
@click.option("--data", default="diabetes", help="diabetes, boston, or a file of the folder with the data.")
@folder_option("--data-folder")
@click.option("--centred/--as-published", default=False, help="Centre columns and target before they are scaled.")
@click.option("--ks", type=Numbers(), help="Subset sizes, such as 5,10.")
@click.option("--lams", type=Numbers(float), help="Ridge weights, such as 0.01,0.001.")
@click.option("--epss", type=Numbers(float), help="Permitted errors, such as 0,0.01.")
@LIMIT
@MIP_PYTHON
@click.pass_obj
def real(results: Path, /, data: str, centred: bool, python: str, **given: Any) -> None:
    """Diabetes, Boston or other data with quadratic loss over permitted errors, beside MIP solvers that are there."""
    name = f"real-{data}{'-centred' if centred else ''}"
    produce(results, name, beside_mip(changed(plans.real(data, centred), given), python))


@main.command(name="all")
@click.option("--quick", is_flag=True, help="Few and small instances: under three minutes once compiled.")
@MIP_PYTHON
@click.pass_obj
def every(folder: Path, quick: bool, python: str) -> None:
    """All experiments, and what faithful and default mode took in total."""
    plan = plans.QUICK if quick else plans.FULL
    experiments = {name: beside_mip(make(), python) for name, make in plan.items()}
    outcomes = [made for name, plan in experiments.items() if (made := produce(folder, name, plan)) is not None]
    rows = list(totals(outcome for outcome in outcomes if outcome.default))
    write(folder, "totals", "Seconds in total", rows)
    click.echo(markdown("Seconds in total", rows))


def beside_mip(experiment: Experiment, python: str) -> Experiment:
    """The experiment with the MIP solvers that an interpreter has, where there is a place for them."""
    if not isinstance(experiment, Real):
        return experiment
    present, sentences = solvers(python)
    for sentence in sentences:
        click.echo(sentence, err=True)
    return replace(experiment, mip=present, python=python)


def changed(experiment: Any, given: dict[str, Any]) -> Experiment:
    """The experiment with the options that were given."""
    result: Experiment = replace(experiment, **{name: value for name, value in given.items() if value is not None})
    return result


def produce(folder: Path, name: str, experiment: Experiment) -> Outcome | None:
    """Run an experiment; print its table, and write it anew after every row so that nothing is lost."""
    rows: list[Row] = []
    try:
        for row in experiment.rows():
            rows.append(row)
            write(folder, name, experiment.title, rows)
            click.echo(f"{name}: {len(rows)} rows", err=True)
    except MissingData as missing:
        click.echo(str(missing), err=True)
        return None
    click.echo(markdown(experiment.title, rows))
    return Outcome(name, total(rows, "faithful s, total"), total(rows, "default s, same instances"))


def totals(outcomes: Iterable[Outcome]) -> Iterable[Row]:
    """One row per table with both modes, and their sum."""
    made = list(outcomes)
    made.append(Outcome("together", sum(o.faithful for o in made), sum(o.default for o in made)))
    for outcome in made:
        yield {
            "table": outcome.name,
            "faithful s": outcome.faithful,
            "default s": outcome.default,
            "faithful / default": outcome.faithful / outcome.default,
        }
