"""Check a proof file against a problem."""

from __future__ import annotations

import json
import os
from pathlib import Path

from exactsel.errors import InputError
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.instance import instance_of
from exactsel_certificates.checking import EXACT_LIMIT, Verdict
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import MOST_BYTES, MOST_HEADER_BYTES, MalformedError, read_proof


def verify(
    problem: SubsetProblem,
    proof: str | os.PathLike[str],
    *,
    exact_limit: float = EXACT_LIMIT,
    most_bytes: int = MOST_BYTES,
) -> Verdict:
    """Check a proof file, trusting neither the file nor the solver.

    Parameters
    ----------
    problem : Problem or ColumnSubsetProblem
        The problem the proof is to be about; nothing of it is taken from the file.
    proof : path
        The file a solve has written.
    exact_limit : float
        Multiplications that may go into exact arithmetic where doubles leave too thin a margin.
    most_bytes : int
        A larger file is not read.

    Returns
    -------
    Verdict
        ``verified``, and in any case what was established.

    Raises
    ------
    InputError
        When the file cannot be read or is no proof file.
    """
    instance = instance_of(problem)
    try:
        return check(read_proof(proof, most_bytes), instance, exact_limit)
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
