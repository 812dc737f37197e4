"""The command line: campaigns, each with its seeds and a table of what came out."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from benchmarks.attacks.running import Trial, found_in, guarded, run_campaign
from benchmarks.paper.tables import markdown

QUICK = 400
"""Trials of a campaign that is asked to be quick."""

Table = Callable[[Counter[tuple[str, ...]]], list[dict[str, Any]]]


@click.group()
def main() -> None:
    """Attacks: is anything untrue, does anything break?"""
    warnings.simplefilter("ignore")


def campaign_options(count: int) -> Any:
    """The options every campaign has."""

    def decorate(command: Any) -> Any:
        for option in (
            click.option("--only", type=int, help="One seed: its problem in full, and what is found."),
            click.option("--log", type=click.Path(dir_okay=False), help="File for every finding, as JSON lines."),
            click.option("--processes", type=click.IntRange(1), default=4, envvar="JOBS", show_default=True),
            click.option("--seed", type=int, default=0, show_default=True, help="First seed."),
            click.option("--count", type=click.IntRange(1), default=count, show_default=True, help="Trials."),
        ):
            command = option(command)
        return command

    return decorate


def conduct(
    name: str, trial: Trial, tell: Callable[[int], str], options: dict[str, Any], table: Table | None = None
) -> None:
    """Run it, or tell of one seed; exit code 1 where anything was found. ``table`` makes one of the trials' cells."""
    only = options.pop("only")
    if only is not None:
        click.echo(tell(only))
        click.echo(found_in(guarded(trial, only)))
        return
    tally = run_campaign(name, trial, **options)
    if table is not None:
        click.echo(markdown(f"{name}: not proven", table(tally.cells)))
    if tally.total:
        sys.exit(1)


@main.command()
@campaign_options(25_000)
def solves(**options: Any) -> None:
    """Random solves against exact oracles."""
    from benchmarks.attacks.solves import solved, told

    conduct("solves", solved, told, options)


@main.command()
@campaign_options(20_000)
def certificates(**options: Any) -> None:
    """Quadratic loss with each certificate forced on alone, every proof checked."""
    from benchmarks.attacks.certificates import certified, quadratic_case

    conduct("certificates", certified, lambda seed: quadratic_case(seed).text(), options)


@main.command()
@campaign_options(10_000)
def units(**options: Any) -> None:
    """The same problem in other units must come out the same, bit for bit."""
    from benchmarks.attacks.cases import unscaled_case
    from benchmarks.attacks.units import compared, powers_of

    conduct("units", compared, lambda seed: f"{unscaled_case(seed).text()}\nm, p {powers_of(seed)}", options)


@main.command()
@campaign_options(20_000)
def proofs(**options: Any) -> None:
    """Honest proofs must be accepted."""
    from benchmarks.attacks.honest import awkward_case, checked

    conduct("proofs", checked, lambda seed: awkward_case(seed).text(), options)


@main.command()
@campaign_options(100_000)
def mutants(count: int, **options: Any) -> None:
    """Damaged proofs: whatever a checker accepts must be true. The count is that of mutants, a seed stands for many."""
    from benchmarks.attacks.honest import awkward_case
    from benchmarks.attacks.mutants import EACH, damaged_proofs

    options["count"] = -(-count // EACH)
    conduct("mutants", damaged_proofs, lambda seed: awkward_case(seed).text(), options)


@main.command()
@campaign_options(40)
def forged(**options: Any) -> None:
    """Problems outside the domain: none may be accepted. A seed stands for about a hundred."""
    from benchmarks.attacks.forgeries import forged, plain_case

    conduct("forged", forged, lambda seed: plain_case(seed).text(), options)


@main.command("without-ridge")
@campaign_options(200)
def without_ridge(**options: Any) -> None:
    """Proofs without a ridge, forged part by part, against both checkers. A seed is some thousand."""
    from benchmarks.attacks.ridgeless import attacked, ridgeless_case

    conduct("without-ridge", attacked, lambda seed: ridgeless_case(seed).text(), options)


@main.command()
@campaign_options(20_000)
@click.option("--quick", is_flag=True, help=f"{QUICK} trials.")
def magnitudes(quick: bool, **options: Any) -> None:
    """Columns multiplied by powers of two and of ten: the truth, and the same bit for bit at lam = 0."""
    from benchmarks.attacks.magnitudes import attempted, table, told

    options["count"] = QUICK if quick else options["count"]
    conduct("magnitudes", attempted, told, options, table)


ELSEWHERE = ("checkpoints", "files", "interrupts", "standalone_mutants")
"""Modules beside this one with a command of their own."""

for _name in ELSEWHERE:
    for _found in vars(import_module(f"benchmarks.attacks.{_name}")).values():
        if isinstance(_found, click.Command):
            main.add_command(_found)
