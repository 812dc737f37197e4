"""Seeds tried in processes of their own, in which all kernels are compiled: interpreted ones are slow for many."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

from exactsel.processes import READY, answered
from exactsel_dev.campaigns.trials import Outcome, Trial

DIED = "the process died"


def command_for(trial: Trial) -> list[str]:
    """What starts a process that tries seeds."""
    told = (trial.kind, trial.peer, trial.out or "", trial.loss)
    return [sys.executable, "-m", "exactsel_dev.campaigns.worker", *told]


def tried_in_processes(trial: Trial, seeds: range, jobs: int, stopped: Callable[[], bool]) -> Iterator[Outcome]:
    """The outcomes of all seeds as they come, until ``stopped`` says so; that a process died is a finding."""
    for answer in answered(command_for(trial), [str(seed) for seed in seeds], jobs, stopped, greeting=READY):
        if answer.line:
            yield _outcome(answer.line)
        else:
            found = [(DIED, f"exit code {answer.code}")]
            yield Outcome(seeds[answer.number], ["tried: to the end of its process"], found)


def _outcome(line: str) -> Outcome:
    held = json.loads(line)
    return Outcome(held["seed"], held["counts"], [(what, detail) for what, detail in held["wrong"]], held["files"])
