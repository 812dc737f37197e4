"""``exactsel verify``."""

from __future__ import annotations

import json
from typing import Any

import click

from exactsel.cli.named_files import FileCommand, InputFile
from exactsel.cli.options import problem_options, read_problem
from exactsel.cli.talk import say

REJECTED = 3


@click.command("verify", cls=FileCommand)
@click.argument("proof", type=InputFile())
@problem_options
@click.option("--most-bytes", type=click.IntRange(1), help="A larger proof file is not read [default: 4 GiB].")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(proof: str, as_json: bool, most_bytes: int | None, **arguments: Any) -> int:
    """Check a proof file that a solve has written.

    What is checked is a claim about INSTANCE and the options given here, never about what the file says of itself.
    Exit code 0 means verified, 3 rejected, 2 that the file is no proof.
    """
    from exactsel.proofs.verify import verify

    limit = {} if most_bytes is None else {"most_bytes": most_bytes}
    verdict = verify(read_problem(arguments), proof, **limit)
    say(json.dumps(verdict.as_dict(), allow_nan=False) if as_json else str(verdict))
    return 0 if verdict.verified else REJECTED
