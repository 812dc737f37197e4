"""A process that tries seeds: one a line on stdin, what came of each as one JSON object a line on stdout."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from exactsel.processes import serve
from exactsel_dev.campaigns.trials import Trial


def main(arguments: list[str]) -> None:
    """Work for whoever started this process; ``arguments`` are a trial's kind, peer, folder, loss (or empty)."""
    kind, peer, out, loss = arguments
    trial = Trial(kind, peer, out or None, loss)
    serve(lambda line: json.dumps(asdict(trial(int(line)))))


if __name__ == "__main__":
    main(sys.argv[1:])
