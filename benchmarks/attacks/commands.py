"""The command line: campaigns, each with its seeds and a table of what came out."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

from benchmarks.attacks.running import Trial, run_campaign


@click.group()
def main() -> None:
    """Attacks: is anything untrue, does anything break?"""
    warnings.simplefilter("ignore")


def campaign_options(count: int) -> Any:
    """The options every campaign has."""

    def decorate(command: Any) -> Any:
        for option in (
            click.option("--log", type=click.Path(dir_okay=False), help="File for every finding, as JSON lines."),
            click.option("--processes", type=click.IntRange(1), default=4, show_default=True),
            click.option("--seed", type=int, default=0, show_default=True, help="First seed."),
            click.option("--count", type=click.IntRange(1), default=count, show_default=True, help="Trials."),
        ):
            command = option(command)
        return command

    return decorate


def finish(name: str, trial: Trial, count: int, seed: int, processes: int, log: str | None) -> None:
    """Run it; exit code 1 where anything was found."""
    if run_campaign(name, trial, count, seed, processes, log).total:
        sys.exit(1)


@main.command()
@campaign_options(25_000)
@click.option("--only", type=int, help="One seed: print its case, its result and what is wrong.")
def solves(count: int, seed: int, processes: int, log: str | None, only: int | None) -> None:
    """Random solves against exact oracles."""
    from benchmarks.attacks.solves import solved, told

    if only is not None:
        click.echo(told(only))
    else:
        finish("solves", solved, count, seed, processes, log)


@main.command()
@campaign_options(10_000)
def units(count: int, seed: int, processes: int, log: str | None) -> None:
    """The same problem in other units must come out the same, bit for bit."""
    from benchmarks.attacks.units import compared

    finish("units", compared, count, seed, processes, log)


@main.command()
@campaign_options(20_000)
def proofs(count: int, seed: int, processes: int, log: str | None) -> None:
    """Honest proofs must be accepted."""
    from benchmarks.attacks.honest import checked

    finish("proofs", checked, count, seed, processes, log)


@main.command()
@campaign_options(100_000)
def mutants(count: int, seed: int, processes: int, log: str | None) -> None:
    """Damaged proofs: whatever a checker accepts must be true. COUNT is that of the mutants."""
    from benchmarks.attacks.mutants import EACH, damaged_proofs

    finish("mutants", damaged_proofs, -(-count // EACH), seed, processes, log)


ELSEWHERE = ("files", "forged", "interrupts", "standalone_mutants")
"""Modules beside this one with a command of their own."""

for _name in ELSEWHERE:
    if find_spec(f"benchmarks.attacks.{_name}") is not None:
        for _found in vars(import_module(f"benchmarks.attacks.{_name}")).values():
            if isinstance(_found, click.Command):
                main.add_command(_found)
