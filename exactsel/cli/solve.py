"""``exactsel solve``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.approximate import method_options, run_method
from exactsel.cli.command_lines import command_text, verify_text
from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile
from exactsel.cli.options import (
    SIGNALS,
    catch_signals,
    checked_level,
    exit_code,
    output_options,
    problem_options,
    progress_log,
    proof_option,
    read_problem,
    search_options,
    summary_options,
)
from exactsel.cli.saving import checkpoint_options, saving
from exactsel.cli.status import print_status, status_option
from exactsel.cli.talk import say
from exactsel.cli.workers import worker_options, workers_of


@click.command(
    "solve",
    cls=Command,
    examples=(
        "solve instances/diabetes.npz --loss huber --eps 1e-3",
        "solve instances/cars.csv --target mpg --drop 'name,model year,origin' --missing mean -k 2",
        "solve instances/cars.csv --target mpg,acceleration --drop 'name,model year,origin' --missing drop-rows -k 2",
        "solve instances/diabetes.npz -k 8 --time-limit 60 --report run.html",
        "solve instances/diabetes.npz -k 8 --checkpoint run.ckpt --time-limit 60",
        "solve --status run.ckpt",
        "solve instances/diabetes.npz --method poss --set iterations=1000",
    ),
)
@problem_options
@search_options
@proof_option
@checkpoint_options
@status_option
@method_options
@worker_options
@click.option("--shared", is_flag=True, help="Select the same features for all targets. The loss is quadratic.")
@click.option(
    "--trace", type=OutputFile(), help="Write every event of the search to this file, one JSON object a line."
)
@click.option("--recheck", is_flag=True, help="Recompute every bound when it is recorded. This takes much longer.")
@output_options
@summary_options
@click.option("--report", type=OutputFile(), help="Write a self-contained HTML report of the run to this file.")
def command(report: str | None, summary: bool, level: float | None, **arguments: Any) -> int:
    """Find the best model with at most k features, with a certified gap.

    Options override k, lam and loss of an .npz file. With --problem css the command finds the columns that span all
    others best. With several targets, as in --target a,b, it finds a model for each, and limits hold for each search.
    With --method it runs an approximate method in place of the search. Exit code 0 means that the tolerance is proven,
    1 that a gap is left.
    """
    from exactsel.cli.output import reported
    from exactsel.cli.several_targets import solve_several, targets_of
    from exactsel.errors import InputError
    from exactsel.files import check_target
    from exactsel.report.model import result_table
    from exactsel.solving.api import solve
    from exactsel.to_plain import strict_json

    if arguments["status"] is not None:
        return print_status(arguments["status"], arguments["as_json"])
    check_target(report)
    targets = targets_of(arguments)
    if (summary or level is not None) and (arguments["method"] is not None or len(targets) > 1):
        name = "summary" if summary else "level"
        raise InputError(f"--{name} is about one optimal model; leave out --method, and give one --target.")
    if arguments["method"] is not None:
        if len(targets) > 1:
            raise InputError("--method takes one target, but several are given; give one --target.")
        return run_method(arguments)
    if arguments["options"]:
        raise InputError("--set is about an approximate method, but none is given; name it with --method.")
    if len(targets) > 1:
        return solve_several(targets, arguments | {"report": report})
    if arguments["shared"]:
        raise InputError(
            "--shared is about several targets, but one is given; leave it out, or name more with --target."
        )
    problem = read_problem(arguments)
    width = checked_level(problem, summary, level)
    settings = saving(arguments)
    log = progress_log(problem, arguments)
    catch_signals()
    result = solve(
        problem, callback=log, proof=arguments["proof"], trace=arguments["trace"], signals=SIGNALS,
        recheck=arguments["recheck"], **workers_of(arguments), **settings,
    )  # fmt: skip
    check = None if result.proof is None else verify_text(result.proof)
    if log is not None:
        log.end(result, check)
    if report is not None:
        from exactsel.report.run import write_report

        again = command_text(left_out=("report", "as_json", "quiet", "log_interval"))
        with reported(report, arguments["quiet"]):
            write_report(report, result, problem, command=again, verify=check, signals=SIGNALS)
    intervals = result.summary(level=width) if summary else None
    if arguments["as_json"]:
        say(strict_json(result.as_dict() | ({} if intervals is None else {"summary": intervals.as_dict()})))
    else:
        say(result_table(result) + ("" if intervals is None else f"\n\n{intervals}"))
    return exit_code(result.reached, result.termination)
