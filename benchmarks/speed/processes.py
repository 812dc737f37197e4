"""Every solver runs in a process of its own: one thread, always the same core, stopped from outside if need be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.speed.ours import MODES

ROOT = Path(__file__).resolve().parents[2]
PEERS_MODULE = "benchmarks.speed.peers"

ONE_THREAD = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

GRACE = 90.0
"""Seconds a process may take on top of its time limit: imports, compilation, a step that cannot be interrupted."""


class Failed(click.ClickException):
    """A process ended without an answer; the text is the last line it wrote, or why it could not start."""


@dataclass(frozen=True)
class Demands:
    """What is asked of every solver."""

    time_limit: float
    rel_gap: float
    """Relative gap exactsel is asked for."""
    peer_rel_gap: float
    """Relative gap the others are asked for."""
    core: int | None = None
    """The core all processes run on; any when None."""

    def gap_of(self, solver: str) -> float:
        """The relative gap this solver is asked for."""
        return self.rel_gap if solver in MODES else self.peer_rel_gap


@dataclass(frozen=True)
class Solver:
    """A name from the tables and the command that runs it."""

    name: str
    command: tuple[str, ...]


def ours(name: str) -> Solver:
    """exactsel in one of its modes."""
    return Solver(name, (sys.executable, "-m", "benchmarks.speed.ours", name))


def peer(name: str, python: str) -> Solver:
    """Another solver, in the interpreter that has it."""
    return Solver(name, (python, "-m", PEERS_MODULE, name))


def installed(python: str) -> tuple[str, ...]:
    """The peers that interpreter has; :class:`Failed` when it cannot say."""
    return tuple(printed((python, "-m", PEERS_MODULE, "installed")))


def printed(command: Sequence[str], seconds: float = GRACE) -> Any:
    """What a process prints as JSON; :class:`Failed` when it prints none."""
    return _json(_started(command, seconds, None))


def solved(solver: Solver, file: Path, demands: Demands, more: Sequence[str] = ()) -> dict[str, Any]:
    """The answer of the solver, given ``more`` options; ``refused`` and a reason when there is none."""
    command = (
        *solver.command,
        str(file),
        "--time-limit",
        repr(demands.time_limit),
        "--rel-gap",
        repr(demands.gap_of(solver.name)),
        *more,
    )
    try:
        answer: dict[str, Any] = _json(_started(command, demands.time_limit + GRACE, demands.core))
    except subprocess.TimeoutExpired:
        return {"refused": f"stopped {GRACE:g} s after the limit"}
    except Failed as failure:
        return {"refused": f"failed: {failure}"}
    return answer


def default_core() -> int | None:
    """The first core this process may use, where the system can pin processes to one."""
    return min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def _started(command: Sequence[str], seconds: float, core: int | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1")}
    before = None if core is None else os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})  # a child inherits it
    try:
        return subprocess.run(
            command, cwd=ROOT, env=environment, timeout=seconds, capture_output=True, text=True, check=False
        )
    except OSError as reason:
        raise Failed(f"{command[0]} cannot be run: {reason.strerror}") from None
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)


def _json(finished: subprocess.CompletedProcess[str]) -> Any:
    lines = finished.stdout.strip().splitlines()
    if finished.returncode != 0 or not lines:
        raise Failed((finished.stderr.strip().splitlines() or ["no output"])[-1])
    return json.loads(lines[-1])
