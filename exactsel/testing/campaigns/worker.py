"""A process that tries seeds: one a line on stdin, what came of each as one JSON object a line on stdout.

It ends when its stdin does, so that nothing is left behind by a campaign that was ended, however that was done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import IO

from exactsel.testing.campaigns.trials import Trial


def work(trial: Trial, seeds: Iterable[str], answers: IO[str]) -> None:
    """Answer every seed."""
    for line in seeds:
        answers.write(json.dumps(asdict(trial(int(line)))) + "\n")
        answers.flush()


def main(arguments: list[str]) -> None:
    """Work for whoever started this process; ``arguments`` are a trial's kind, peer and folder, the last may be empty.

    Libraries may print what they like: their stdout leads nowhere.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the campaign decides
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    kind, peer, out = arguments
    work(Trial(kind, peer, out or None), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
