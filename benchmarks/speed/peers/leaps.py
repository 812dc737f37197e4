"""The R package leaps: Furnival and Wilson's leaps and bounds (1974), as everybody has it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.speed.peers.common import Answer, Task, Unsuitable

SCRIPT = Path(__file__).with_name("leaps.R")


def present() -> bool:
    """Whether R and the package are there."""
    if shutil.which("Rscript") is None:
        return False
    asked = 'quit(status = !requireNamespace("leaps", quietly = TRUE))'
    return subprocess.run(["Rscript", "-e", asked], capture_output=True, check=False).returncode == 0


def leaps(task: Task) -> Answer:
    """The best model of each size up to k; rows sqrt(lam) I stand for the ridge.

    It cannot be told a limit, a bound or a good model. What it returns when it ends is optimal by its own account.
    """
    A, y = task.A, task.y
    if task.lam > 0.0:
        A, y = np.vstack([A, np.sqrt(task.lam) * np.eye(A.shape[1])]), np.append(y, np.zeros(A.shape[1]))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data"
        file.write_bytes(np.asfortranarray(A).tobytes(order="F") + y.tobytes())
        command = ["Rscript", str(SCRIPT), str(file), *map(str, (*A.shape, task.k))]
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=task.time_limit, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            raise Unsuitable(f"no answer at the limit of {task.time_limit:g} s") from None
    if ended.returncode != 0:
        said = [line.strip() for line in ended.stderr.splitlines() if line.strip() not in ("", "Execution halted")]
        raise Unsuitable(f"failed: {(said or ['no output'])[-1]}")
    seconds, clock, value, *columns = ended.stdout.split()
    return Answer([int(j) for j in columns], float(value), 0, True, float(seconds), float(clock))
