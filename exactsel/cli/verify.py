"""``exactsel verify``."""

from __future__ import annotations

import json
import math

import click

from exactsel.cli.named_files import FileCommand, InputFile
from exactsel.cli.options import problem_options, read_problem
from exactsel.cli.talk import say, say_line

REJECTED, UNFINISHED = 3, 4


def _operations(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A positive number of elementary operations, infinity for ``none``."""
    try:
        number = None if value is None else math.inf if value == "none" else float(value)
    except ValueError:
        number = math.nan
    if number is not None and not number > 0:
        raise click.BadParameter(f"{value!r} is no positive number of operations; give one, like 1e12, or none.")
    return number


@click.command("verify", cls=FileCommand)
@click.argument("proof", type=InputFile())
@problem_options
@click.option(
    "--most-bytes", type=click.IntRange(1), help="Refuse a proof file of more than this many bytes. Default: 4 GiB."
)
@click.option(
    "--work-limit", metavar="NUMBER|none", callback=_operations,
    help=("Stop at this many elementary operations, or with none at no number. Default: in proportion to "
"the sizes of proof and problem."),
)  # fmt: skip
@click.option(
    "--time-limit", type=click.FloatRange(0.0, min_open=True), help="Stop after this many seconds. Default: no limit."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(
    proof: str, as_json: bool, most_bytes: int | None, work_limit: float | None, time_limit: float | None,
    **arguments: object,
) -> int:  # fmt: skip
    """Check a proof file that a solve has written.

    The claim is about INSTANCE and the options that you give here, not about the file's own statements. Before the
    check begins, the command states the work on stderr. Exit code 0 means verified, 3 rejected, 2 that the file is no
    proof, 4 that a limit of work or time ended the check.
    """
    from exactsel.proofs.verify import verify

    options = {"most_bytes": most_bytes, "time_limit": time_limit}
    limits = {name: value for name, value in options.items() if value is not None}
    verdict = verify(read_problem(arguments), proof, work_limit=work_limit, begin=_state, **limits)  # type: ignore[arg-type]
    say(json.dumps(verdict.as_dict(), allow_nan=False) if as_json else str(verdict))
    if verdict.unfinished:
        say_line("Give --work-limit NUMBER or --work-limit none, or a longer --time-limit, to let the check finish.")
        return UNFINISHED
    return 0 if verdict.verified else REJECTED


def _state(work: object, limit: float) -> None:
    """State the work that a proof needs."""
    say_line(f"Work: {work} (limit {limit:.3g}).")
