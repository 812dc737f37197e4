"""``exactsel near``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.options import (
    SIGNALS,
    catch_signals,
    exit_code,
    problem_options,
    read_problem,
    search_options,
)
from exactsel.cli.saving import checkpoint_options, given, saving
from exactsel.cli.talk import say
from exactsel.cli.workers import worker_options, workers_of


@click.command(
    "near",
    cls=Command,
    examples=(
        "near instances/diabetes.npz --tau 0.002",
        "near instances/diabetes.npz --tau 0.002 --checkpoint near.ckpt --time-limit 60",
        "near instances/diabetes.npz --resume near.ckpt",
    ),
)
@problem_options
@click.option(
    "--tau", type=float, help="How far above the best objective a model may be; with --resume it stays as it was."
)
@click.option("--cap", type=int, default=1000, show_default=True, help="Models after which the list is cut short.")
@search_options
@checkpoint_options
@worker_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(tau: float | None, cap: int, as_json: bool, **arguments: Any) -> int:
    """List every set of exactly k columns whose best model is within tau of the best of all.

    Says whether the best is unique and which columns all of them share. Exit code 0 means that the list is complete
    and proven, 1 that it was cut short; what is saved can be gone on with, also to a longer list (--cap). An executor
    takes part in the search for the best, the list is made in this process.
    """
    from exactsel.studies.near_optimal import near_optimal

    problem = read_problem(arguments)
    settings = saving(arguments)
    catch_signals()
    more = {"cap": cap if given("cap") else None, **workers_of(arguments)}
    near = near_optimal(problem, tau=tau, signals=SIGNALS, **more, **settings)
    say(near.to_json() if as_json else str(near))
    return exit_code(near.complete, near.termination)
