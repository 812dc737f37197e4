"""Read the command line, keep whatever the solver prints out of the answer, print the answer."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from typing import Any

from benchmarks.speed.peers.running import PEERS, installed, run


def columns(text: str) -> tuple[int, ...]:
    """The numbers in a list separated by commas."""
    return tuple(int(part) for part in text.split(",") if part)


def main() -> None:
    """Run one solver, or say which there are."""
    parser = argparse.ArgumentParser(prog="benchmarks.speed.peers", description="One other solver on one instance.")
    parser.add_argument("peer", choices=["installed", *PEERS])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--upper", type=float, help="Objective of a model with k columns.")
    parser.add_argument("--support", default="", help="Its columns, separated by commas.")
    parser.add_argument("--penalty", type=float, help="Price of a column at which k columns are optimal.")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--rel-gap", type=float, default=1e-4)
    parser.add_argument("--abs-gap", type=float, default=0.0, help="Or stop at this difference of objective and bound.")
    given = parser.parse_args()
    with contextlib.redirect_stdout(io.StringIO()):
        answer: Any
        if given.peer == "installed":
            answer = list(installed())
        elif given.file is None or given.upper is None:
            parser.error("a solver needs FILE and --upper.")
        else:
            told = {"upper": given.upper, "start": columns(given.support), "penalty": given.penalty}
            told |= {"time_limit": given.time_limit, "rel_gap": given.rel_gap, "abs_gap": given.abs_gap}
            answer = run(given.peer, given.file, **told)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
