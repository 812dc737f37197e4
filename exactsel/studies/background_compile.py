"""Compile the largest kernels of a problem's kind in processes of their own, while this one compiles the others.

Which types a kernel is compiled for shows when it is called. So each process solves a small problem of the same kind,
and interprets all but the one kernel it is for.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading

from exactsel._jit import available_threads, compiled_once_called
from exactsel._jit.cache_paths import cache_folder
from exactsel.interrupts import end_now
from exactsel.problem.capabilities import PLAIN_REGRESSION
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.solving.api import solve
from exactsel.studies.warmup import small_problem

LARGEST = {
    "quadratic": ("walk_subtrees",),
    "huber": ("list_sets",),
    "logistic": ("native_search", "relax_nodes"),
}
"""By loss the kernels that take half of the time or more, those needed first last; a kind may have an intercept."""

_helpers: list[subprocess.Popen[bytes]] = []


def begin(problem: SubsetProblem) -> tuple[str, ...]:
    """Let processes compile what a problem will need; they end when this process does.

    Parameters
    ----------
    problem : SubsetProblem

    Returns
    -------
    tuple of str
        The names of those kernels. None where there is one core only, where nothing can be kept on the disk, for a
        problem of no usual kind, and from the second time on.
    """
    kind = kind_of(problem)
    if kind is None or cache_folder() is None or _helpers:
        return ()
    names = LARGEST[kind.partition("-")[0]][: available_threads() - 1]
    for name in names:
        # Nothing is written to the helper's stdin, which ends when this process does, for any reason.
        command, nowhere = [sys.executable, "-m", "exactsel.studies.background_compile", kind, name], subprocess.DEVNULL
        _helpers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere))
    return names


@atexit.register
def _end_helpers() -> None:
    for helper in _helpers:
        helper.kill()
        helper.communicate()


def kind_of(problem: SubsetProblem) -> str | None:
    """The name of the kind of problem for which the same kernels are compiled; None if it is no usual one."""
    if not is_regression(problem, PLAIN_REGRESSION) or problem.weights is not None:
        return None
    loss = problem.loss
    usual = type(loss).__module__.startswith("exactsel.") and loss.name in LARGEST
    return loss.name + ("-intercept" if problem.intercept else "") if usual else None


def compile_one(kind: str, name: str) -> None:
    """Compile one kernel for a kind of problem, in this process, and keep it on the disk."""
    problem = small_problem(kind)
    with compiled_once_called(name):
        solve(problem, threads=1, heuristics=("forward",), signals=())


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    end_now(1, "")


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compile_one(*sys.argv[1:])
