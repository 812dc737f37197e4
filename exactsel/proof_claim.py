"""A last look at a proof just written: where its checker establishes less than it claims, the claim comes down.

A run must never claim more than its own proof shows. Only proofs that are quickly checked are looked at, by counted
work, so that the outcome does not depend on the speed of the machine.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from exactsel.files import replacing
from exactsel.proof_file import instance_of
from exactsel.subset import SubsetProblem
from exactsel_certificates.checking import verify
from exactsel_certificates.container import ARRAYS, Proof, header_bytes, read_proof

MOST_WORK = 1e7
"""Words of the tree, times the entries of the data and of a table of all columns, of a proof that is looked at."""

EXACT_WORK = 1e7
"""Multiplications in exact arithmetic the look may take (about a second)."""

_HEADER = ("family", "loss", "n", "d", "k", "groups", "problem_hash", "scope")


def established(problem: SubsetProblem, file: Path) -> float | None:
    """The lower bound a proof file establishes, where that is less than it claims; then the file claims that.

    None where the file holds what it claims, is too large for a look, or is no ordinary file.
    """
    if not file.is_file():
        return None
    proof = read_proof(file)
    if len(proof.tree) * (proof.n + proof.d) * (proof.d + 1.0) > MOST_WORK:
        return None
    verdict = verify(proof, instance_of(problem), EXACT_WORK)
    if verdict.verified:
        return None
    lower = max(0.0, min(verdict.lower, proof.lower))
    with replacing(file) as stream:
        stream.write(_as_bytes(replace(proof, lower=lower, upper=max(proof.upper, lower))))
    return lower


def _as_bytes(proof: Proof) -> bytes:
    entries = {name: getattr(proof, name) for name in _HEADER}
    entries |= {name: True for name in ("weights", "intercept") if getattr(proof, name)}
    entries |= {"lower": proof.lower.hex(), "upper": proof.upper.hex()}
    arrays: dict[str, np.ndarray] = {name: getattr(proof, name) for name in ARRAYS}
    kinds = {name: "u1" if array.dtype == np.uint8 else array.dtype.str for name, array in arrays.items()}
    described = {name: (kinds[name], array.size) for name, array in arrays.items()}
    return header_bytes(entries, described) + b"".join(array.tobytes() for array in arrays.values())
