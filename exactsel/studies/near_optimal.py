"""More than the optimum: every set of k columns that comes within tau of it.

The complete list shows what a single model cannot: whether the optimum is unique within tau, which columns all good
models share, and which ones none of them needs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from exactsel.errors import InputError, option
from exactsel.observers.lines import sizes_said
from exactsel.problem.interface import SubsetProblem
from exactsel.solving.api import OPTIONS
from exactsel.solving.checkpointing import EVERY
from exactsel.solving.executors import Workers, in_shards
from exactsel.solving.problem_arguments import problem_asked
from exactsel.solving.run import Files
from exactsel.studies.sequence import ProblemSequence, Reach, Step, list_at, run_in_memory
from exactsel.studies.sequence_checkpoint import Asked, run_saved
from exactsel.studies.solution_pool import CAP, NearOptimal, ResumablePool, check_cap, check_near


def near_optimal(
    problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *, tau: float | None = None,
    cap: int | None = None, time_limit: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None, checkpoint_every: float = EVERY,
    resume: str | os.PathLike[str] | None = None, signals: Sequence[int] = (signal.SIGINT,), executor: object = None,
    workers: int | None = None, scheduler: str | None = None, verbose: int = 0, **options: object,
) -> NearOptimal:  # fmt: skip
    """List every set of exactly k features whose best model is within ``tau`` of the best objective:
    ``near_optimal(X, y, k=5, tau=2.0)``.

    Parameters
    ----------
    problem : problem; or array, sparse matrix or data frame (n, d)
        With groups, sets of exactly k groups are listed. Data come with ``y`` and ``k``, as for :func:`exactsel.solve`.
    y, k : array (n,), int, optional
    tau : float
        Absolute, on the scale of the objective; not negative. Not needed with ``resume``.
    cap : int
        Largest number of models, 1000 by default. A longer list is incomplete, and says so.
    time_limit : float, optional
        Seconds for finding the optimum and listing together.
    checkpoint : path, optional
        File for search and listing, written when they end and every ``checkpoint_every`` seconds.
    resume : path, optional
        Such a file, to resume from and to save to. Limits and ``cap`` may change, and all else stays.
    signals, verbose : sequence of int, int
        Signals that end the listing with the models so far (main thread only). 1 prints the claim about the best model.
    executor, workers, scheduler : optional
        How the search for the optimum expands nodes, as for :func:`exactsel.solve`. This process makes the list.
    **options
        As for :func:`exactsel.solve`, such as bound, branching, threads and seed. ``node_limit`` limits the regions of
        the search, and those of the listing.

    Returns
    -------
    NearOptimal

    Raises
    ------
    InputError
        For a tau or cap that is negative or no number, and a checkpoint that cannot be used.
    """
    if options.get("proof") is not None:
        raise InputError("a list has no proof; solve the problem with proof= to get that of the best model alone.")
    problem, options = problem_asked(problem, y, k, options, known=OPTIONS)
    log = sizes_said(verbose)
    hired = Workers(executor, workers, scheduler)
    options = {**in_shards(options, hired, resume is not None), "time_limit": time_limit, "signals": signals}
    files = Files(checkpoint=checkpoint, every=checkpoint_every, resume=resume)
    if resume is not None:
        return _resumed(ProblemSequence(problem, [], options, together=True, log=log, workers=hired), files, tau, cap)
    if tau is None:
        raise InputError(f"tau, how far above the best objective a model may be, is missing; give {option('tau')}.")
    cap = CAP if cap is None else cap
    check_near(tau, cap, "tau")
    reach = Reach(tau=tau, cap=cap)
    sequence = ProblemSequence(problem, [Step({})], options, reach, together=True, log=log, workers=hired)
    if checkpoint is None:
        return list_at(run_in_memory(sequence), 0)
    return _in_file(run_saved(sequence, files, "near"), checkpoint)


def _resumed(sequence: ProblemSequence, files: Files, tau: float | None, cap: int | None) -> NearOptimal:
    """Continue a saved list."""
    if tau is not None:
        check_near(tau, CAP, "tau")
    if cap is not None:
        check_cap(cap)
    assert files.resume is not None
    return _in_file(run_saved(sequence, files, "near", Asked(tau=tau, cap=cap)), files.resume)


def _in_file(sequence: ProblemSequence, file: str | os.PathLike[str]) -> NearOptimal:
    """The list of a sequence whose searches are in a file."""
    listing, file = list_at(sequence, 0), os.path.abspath(file)
    assert listing._kept is not None

    def go_on(_: NearOptimal, limits: dict[str, Any]) -> NearOptimal:
        return near_optimal(sequence.problem, resume=file, **limits)

    return replace(listing, _kept=ResumablePool(listing._kept.pool, go_on))
