"""Check a proof file against a problem."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

from exactsel import clock
from exactsel.errors import InputError
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.instance import checked_instance_of
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import MOST_BYTES, MOST_HEADER_BYTES, MalformedError, read_proof
from exactsel_certificates.estimate import Estimate
from exactsel_certificates.verdict import Verdict


def verify(
    problem: SubsetProblem,
    proof: str | os.PathLike[str],
    *,
    exact_limit: float | None = None,
    most_bytes: int = MOST_BYTES,
    work_limit: float | None = None,
    time_limit: float = math.inf,
    begin: Callable[[Estimate, float], None] | None = None,
) -> Verdict:
    """Check a proof file, trusting neither the file nor the solver.

    Parameters
    ----------
    problem : Problem or ColumnSubsetProblem
        The problem the proof is to be about; nothing of it is taken from the file.
    proof : path
        The file a solve has written.
    exact_limit : float, optional
        Multiplications that may go into exact arithmetic where doubles leave too thin a margin.
    most_bytes : int
        A larger file is not read.

    work_limit : float, optional
        Elementary operations the check may take; ``math.inf`` for any number. By default the limit is in proportion to
        the sizes of the proof and of the problem: at least ten times the measured work of proofs of searches.
    time_limit : float
        Seconds the check may take.
    begin : callable, optional
        Called with the resources the proof is known to need, and their limit, before the first region is checked.

    Returns
    -------
    Verdict
        ``verified``, and in any case what was established. ``unfinished`` where a limit ended the check, which then
        says neither that the proof holds nor that it does not.

    Raises
    ------
    InputError
        When the file cannot be read or is no proof file, or a limit is none.
    """
    for name, limit in (("work_limit", work_limit), ("time_limit", time_limit)):
        if limit is not None and not limit > 0:
            raise InputError(f"{name} is {limit!r}, but a positive number was expected; math.inf means no limit.")
    instance = checked_instance_of(problem)
    try:
        return check(
            read_proof(proof, most_bytes), instance, exact_limit, work_limit=work_limit, time_limit=time_limit,
            now=clock.now, begin=begin,
        )  # fmt: skip
    except MalformedError as error:
        raise InputError(f"{proof} is no proof: {error}") from None
    except OSError as error:
        raise InputError(f"{proof} cannot be read ({error.strerror}); give the file a solve has written.") from None


def is_proof(file: Path) -> bool:
    """Whether a file can be replaced by a proof, as it is one, by its header, or empty."""
    try:
        if not file.is_file():
            return False
        with file.open("rb") as stream:
            first = stream.read(8)
            text = stream.read(min(int.from_bytes(first, "little"), MOST_HEADER_BYTES))
        header = json.loads(text) if first else {}
    except (OSError, ValueError, RecursionError):
        return False
    return not first or (isinstance(header, dict) and {"family", "problem_hash", "arrays"} <= header.keys())
