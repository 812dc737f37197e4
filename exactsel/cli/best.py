"""``exactsel best``."""

from __future__ import annotations

import sys
from typing import Any

import click

from exactsel.cli.command_lines import command_text
from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile, OutputFolder
from exactsel.cli.options import (
    ALL_COLUMNS,
    SIGNALS,
    catch_signals,
    checked_level,
    exit_code,
    problem_options,
    read_problem,
    search_options,
    search_settings,
    summary_options,
)
from exactsel.cli.saving import checkpoint_options
from exactsel.cli.talk import say
from exactsel.cli.workers import worker_options


@click.command(
    "best",
    cls=Command,
    examples=(
        "best instances/diabetes.npz --criterion bic --k-max 6 --time-limit 60",
        "best instances/diabetes.npz --k-max 6 --top 20 --time-limit 60 --report best.html",
        "best instances/diabetes.npz --k-min 3 --k-max 3 --top 10 --time-limit 60",
        "best instances/diabetes.npz --criterion l0 --penalty 0.05 --time-limit 60",
        "best instances/diabetes.npz --criterion objective -k 3 --within 0.002",
        "best instances/cars.csv --target mpg --drop 'name,model year,origin' --missing mean --top 10",
    ),
)
@problem_options
@click.option(
    "--k-min", type=int, help="Set the smallest size. Default: 0. With the same --k-max only one size counts."
)
@click.option("--k-max", type=int, help="Set the largest size. Default: all features, whatever k the instance names.")
@click.option(
    "--criterion",
    type=click.Choice(["aic", "aicc", "bic", "ebic", "hqic", "cp", "adjr2", "custom", "l0", "objective"]),
    default="bic",
    show_default=True,
    help="Compare models by this. l0 is P(x) + lam0 ||x||_0; custom and l0 need --penalty. objective compares models "
    "of exactly -k features.",
)
@click.option("--gamma", type=float, default=1.0, show_default=True, help="Set the gamma of EBIC. 0 is BIC.")
@click.option(
    "--penalty",
    type=float,
    help="Set the price of a feature, lam0, for l0. For custom it is the price of a parameter, 2 in AIC.",
)
@search_options
@checkpoint_options
@worker_options
@click.option("--top", type=int, default=1, show_default=True, help="List this many of the best models.")
@click.option("--within", type=float, help="List all models whose criterion exceeds the best by at most this.")
@click.option(
    "--cap", type=int, default=1000, show_default=True, help="End the list after this many models of one size."
)
@click.option("--proof", type=OutputFolder(r"k\d+\.exsel"), help="Write one proof a size into this folder.")
@summary_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--report", type=OutputFile(), help="Write a self-contained HTML page of the list to this file.")
def command(
    k_min: int | None, k_max: int | None, criterion: str, gamma: float, penalty: float | None, top: int,
    within: float | None, cap: int,
    proof: str | None, summary: bool, level: float | None, as_json: bool, report: str | None, **arguments: Any,
) -> int:  # fmt: skip
    """Find the best model over all sizes by an information criterion, and the models close to it.

    The proof covers all sizes: a size is searched until no model of it can win. With a ridge the likelihood is the
    penalised one. --time-limit is for all sizes together. With --criterion objective the command lists every model of
    exactly -k features whose objective is within --within of the best. Only this list can be saved, resumed and given
    to workers. Exit code 0 means that the best model is proven best, and that the list is complete.
    """
    from exactsel.cli.one_size import list_one_size, refuse_options_of_one_size
    from exactsel.cli.output import reported
    from exactsel.errors import InputError
    from exactsel.files import check_target, write_bytes
    from exactsel.observers.terminal import terminal_width
    from exactsel.report.best import best_table
    from exactsel.report.model import result_table
    from exactsel.studies.best import best_model
    from exactsel.to_plain import strict_json

    if criterion == "objective":
        return list_one_size(arguments, within, cap, as_json)
    refuse_options_of_one_size()
    if k_max is not None and arguments["k"] is not None:
        raise InputError("--k-max and -k both say which sizes; give one of them.")
    check_target(report)
    k_max = arguments["k"] if k_max is None else k_max
    arguments |= {"k": ALL_COLUMNS, "at_most": k_max}
    problem = read_problem(arguments)
    width = checked_level(problem, summary, level)
    settings = search_settings(arguments)
    catch_signals()
    best = best_model(
        problem, criterion=criterion, k_min=k_min, k_max=k_max, top=top, within=within, gamma=gamma, penalty=penalty,
        cap=cap, proof=proof, signals=SIGNALS, **settings,
    )  # fmt: skip
    if report is not None:
        from exactsel.report.best_page import best_page

        page = best_page(best, command=command_text(left_out=("report", "as_json", "summary")))
        with reported(report):
            write_bytes(report, page.encode())
    intervals = best.summary(level=width) if summary else None
    if as_json:
        say(strict_json(best.as_dict() | ({} if intervals is None else {"summary": intervals.as_dict()})))
    else:
        model = result_table(best.result) if intervals is None else str(intervals)
        say(f"{best_table(best, terminal_width(sys.stdout))}\n\n{model}")
    return exit_code(best.reached and best.complete, best.termination)
