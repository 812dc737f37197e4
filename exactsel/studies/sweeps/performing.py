"""Execution of one job of a sweep, with its outcome as a record; only what ends the process is raised."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from exactsel import interrupts
from exactsel.data.instance import Instance
from exactsel.data.tables import with_labels
from exactsel.errors import InputError, OutputError
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.reconstruction import Reconstruction
from exactsel.solving.api import solve
from exactsel.solving.outcome import Termination
from exactsel.solving.result import Result
from exactsel.studies import heuristics
from exactsel.studies.sweeps.jobs import SOLVE, Job, canonical
from exactsel.studies.sweeps.sources import ChangedError
from exactsel.to_plain import finite

DONE, REFUSED, FAILED = "done", "refused", "failed"
"""What may become of a job: a result; a sentence why it cannot be run, which is final; a sentence what went wrong."""

COMPILED = 0.05
"""Part of its time limit that a job may have waited for the compiler; one stopped after more is run again."""

AGAIN = 20
"""Times it is run, at most: each brings some kernels more."""

_read: dict[str, Instance] = {}
"""The instance read last, by its identity."""


def perform(job: Job, signals: Sequence[int] = ()) -> dict[str, Any] | None:
    """The outcome of a job: ``status`` and ``row``, the columns of the table it fills; None where a signal ended it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hints for the reader of one file, not of thousands
            result = _in_time(lambda: _result(job, signals), job.settings.get("time_limit"))
    except (ChangedError, OutputError) as error:
        return trouble(FAILED, str(error))
    except InputError as error:
        return trouble(REFUSED, str(error))
    except MemoryError:
        return trouble(FAILED, "this takes more memory than there is; run fewer jobs at a time.")
    except Exception as error:
        return trouble(FAILED, f"{type(error).__name__}: {error}".partition("\n")[0])
    if result.termination is Termination.INTERRUPTED:
        return None
    return {"status": DONE, "row": _row(result)}


def trouble(status: str, sentence: str) -> dict[str, Any]:
    """The outcome of a job without a result."""
    return {"status": status, "row": {"error": sentence}}


def _in_time(run: Callable[[], Result], time_limit: float | None) -> Result:
    """The result of a run whose time limit was not spent on compiling: it is for the job, whichever comes first."""
    for _ in range(AGAIN):
        before = interrupts.waited()
        result = run()
        if time_limit is None or result.termination is not Termination.TIME_LIMIT:
            break
        if interrupts.waited() - before <= COMPILED * time_limit:
            break
        while interrupts.compiles_on():
            time.sleep(interrupts.POLL)
    return result


def _result(job: Job, signals: Sequence[int]) -> Result:
    problem = problem_of(job)
    if job.method == SOLVE:
        return solve(problem, seed=job.rng_seed, signals=signals, **job.settings)
    method = heuristics.make(job.method, job.options)
    return heuristics.run(method, problem, seed=job.rng_seed, signals=signals, **job.settings)


def problem_of(job: Job) -> SubsetProblem:
    """The problem of a job, its data read from where they are.

    Raises
    ------
    InputError
        Where they cannot be read, have changed, or make no such problem.
    """
    identity = canonical(job.source.identity())
    if identity not in _read:
        _read.clear()
        _read[identity] = job.source.read()
    instance, parameters = _read[identity], dict(job.problem)
    if job.kind == Reconstruction.kind:
        return instance.columns_problem(k=parameters.get("k"))
    labelled = with_labels(instance, parameters.get("loss"))
    return (labelled.problem if labelled.groups is None else labelled.grouped_problem)(**parameters)


def _row(result: Result) -> dict[str, Any]:
    """What the table says of a result."""
    problem = result.problem
    return {
        **{name: problem.get(name) for name in ("problem", "n", "d", "k", "loss", "lam")},
        "delta": (problem.get("loss_parameters") or {}).get("delta"),
        "upper": finite(result.upper), "lower": finite(result.lower),
        "gap": finite(result.gap), "absolute_gap": finite(result.absolute_gap),
        "claim": result.claim.value, "termination": result.termination.value, "valid_for": result.valid_for,
        "reached": result.reached, "support": json.dumps(list(result.support)),
        "names": "" if result.feature_names is None else json.dumps(list(result.feature_names)),
        "nodes": result.nodes, "seconds": round(result.time, 6), "tree_hash": result.tree_hash,
    }  # fmt: skip
