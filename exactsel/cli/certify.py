"""``exactsel certify``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.command_lines import verify_text
from exactsel.cli.helping import Command
from exactsel.cli.named_files import InputFile
from exactsel.cli.options import (
    SIGNALS,
    catch_signals,
    exit_code,
    output_options,
    problem_options,
    progress_log,
    proof_option,
    read_problem,
    search_options,
    search_settings,
)
from exactsel.cli.talk import say
from exactsel.problem.capabilities import COEFFICIENTS


@click.command("certify", cls=Command)
@problem_options
@click.option("--support", help="Judge the model on these features: names, or numbers from 0, separated by commas.")
@click.option(
    "--coef",
    type=InputFile(),
    help="Judge the model with the d coefficients in this file, .npy or text with one a line.",
)
@search_options
@proof_option
@output_options
def command(support: str | None, coef: str | None, **arguments: Any) -> int:
    """Bound how far a given model is from optimal.

    A support is refitted exactly. Coefficients are for the columns of the file and stay as they are, with the best
    intercept for them. The model is compared with all models of at most k features. Default of k: that of the file, or
    the size of --support. Exit code 0 means that the model is proven to be within the tolerance, 1 that it is not.
    """
    from exactsel.data.arrays import read_vector
    from exactsel.errors import InputError
    from exactsel.report.model import result_table
    from exactsel.start.models import given_support
    from exactsel.studies.certify import certify, checked_coef, column_numbers

    if (support is None) == (coef is None):
        raise InputError("the candidate is missing or given twice; give either --support 0,4,7 or --coef FILE.")
    names = [name.strip() for name in (support or "").split(",") if name.strip()]
    problem = read_problem(arguments | {"usual_k": len(names) or None})
    settings = search_settings(arguments)
    candidate: dict[str, Any] = {}
    if support is not None:
        candidate["support"] = given_support(column_numbers(problem, names), problem)
    else:
        if not problem.has(COEFFICIENTS):
            raise InputError("column subset selection has no coefficients; give --support instead of --coef.")
        candidate["coef"] = checked_coef(problem, read_vector(str(coef)))
    log = progress_log(problem, arguments)
    catch_signals()
    certified = certify(problem, callback=log, proof=arguments["proof"], signals=SIGNALS, **candidate, **settings)
    if arguments["as_json"]:
        say(certified.to_json())
    else:
        say(str(certified))
        if certified.result.proof is not None:
            say(f"check it     {verify_text(certified.result.proof)}")
        say(result_table(certified.result))
    return exit_code(certified.reached, certified.result.termination)
