"""``exactsel best --criterion objective``: every model of exactly k features within a distance of the best."""

from __future__ import annotations

from typing import Any

from exactsel.cli.options import SIGNALS, catch_signals, exit_code, read_problem
from exactsel.cli.saving import given, refuse_given, saving
from exactsel.cli.talk import say
from exactsel.cli.workers import workers_of
from exactsel.errors import InputError

OF_ALL_SIZES = ("k_min", "k_max", "gamma", "penalty", "top", "proof", "summary", "level", "report")
"""Options that are about models of different sizes."""

OF_ONE_SIZE = ("checkpoint", "checkpoint_every", "resume", "executor", "workers", "scheduler")
"""Options that only a list of models of one size takes."""


def refuse_options_of_one_size() -> None:
    """Refuse what a comparison of sizes cannot do."""
    refuse_given(OF_ONE_SIZE, "only a list with --criterion objective can be saved, resumed and given to workers")


def list_one_size(arguments: dict[str, Any], within: float | None, cap: int, as_json: bool) -> int:
    """Print every model of exactly k features within ``within`` of the best objective, and return the exit code."""
    from exactsel.studies.near_optimal import near_optimal

    refuse_given(OF_ALL_SIZES, "--criterion objective compares models of one size")
    if within is None and arguments["resume"] is None:
        raise InputError("--criterion objective lists models within a distance of the best; give it as --within.")
    problem = read_problem(arguments)
    settings = saving(arguments)
    catch_signals()
    more = {"cap": cap if given("cap") else None, **workers_of(arguments)}
    listing = near_optimal(problem, tau=within, signals=SIGNALS, **more, **settings)
    say(listing.to_json() if as_json else str(listing))
    return exit_code(listing.complete, listing.termination)
