"""A final check of a new proof: where its checker establishes less than it claims, the claim is lowered.

A run must never claim more than its own proof shows. Only proofs that are quick to check, by counted work, are checked,
so that the outcome does not depend on the speed of the machine.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from exactsel.errors import InputError, OutputWarning, warn
from exactsel.files import replacing
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.instance import instance_of
from exactsel.proofs.writer import ProofWriter
from exactsel.solving.result import Result
from exactsel_certificates.checking import SearchedInstance, verify
from exactsel_certificates.container import COUNTED, MalformedError, Proof, read_proof, written
from exactsel_certificates.counting import how_many
from exactsel_certificates.estimate import estimate
from exactsel_certificates.formula import Instance
from exactsel_certificates.patterns import by_patterns
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, closed_regions, first_region

MOST_WORK = 1e7
"""Words of the tree, times the entries of the data and of a table of all columns, of a proof that is checked."""

EXACT_WORK = 1e7
"""Multiplications in exact arithmetic the look may take (about a second)."""

MOST_SETS = 1e8
"""Sets of columns a look may have to count (less than a second)."""

MOST_PATTERNS = 1e9
"""Elementary operations a look may take that sums over covariate patterns (about a second)."""

MOST_LEAVES = 1024
"""Regions checked together."""


def with_proof(result: Result, writer: ProofWriter) -> Result:
    """Write the file; the result says where it is and how long it took, and claims no more than the file does.

    On a full disk the result comes without it.
    """
    lower = writer.claim(result.lower, result.upper, result.valid_for)
    try:
        writer.finish(lower, result.upper, result.support, result.coef, result.valid_for)
    except InputError:
        if writer.failure is None:
            raise
        warn(str(writer.failure), OutputWarning)
        return result
    try:
        bound = established(writer.problem, writer.path)
    except MalformedError:
        writer.path.unlink(missing_ok=True)
        raise InputError(
            f"{writer.path} is not written: what the checkpoint holds of the proof is damaged; take an intact copy "
            f"of it, or start again."
        ) from None
    lower = lower if bound is None else min(lower, bound)
    times = {**result.times, "proof": writer.seconds, "total": result.time + writer.seconds}
    return replace(result._claiming(lower), proof=str(writer.path), times=times)


def established(problem: SubsetProblem, file: Path) -> float | None:
    """The lower bound a proof file establishes, where that is less than it claims; then the file claims that.

    None where the file holds what it claims, is too large for a look, or is no ordinary file.
    """
    if not file.is_file():
        return None
    proof = read_proof(file)
    if len(proof.tree) * (proof.n + proof.d) * (proof.d + 1.0) > MOST_WORK:
        return None
    instance = instance_of(problem)
    if np.any(proof.tree & 7 == COUNTED):
        by_pattern = isinstance(instance, Instance) and by_patterns(proof, instance)
        if (estimate(proof, instance).operations > MOST_PATTERNS) if by_pattern else _sets(proof, instance) > MOST_SETS:
            return None
    verdict = verify(proof, instance, EXACT_WORK, work_limit=math.inf)
    if verdict.verified:
        return None
    lower = max(0.0, min(verdict.lower, proof.lower))
    with replacing(file) as stream:
        stream.write(written(replace(proof, lower=lower, upper=max(proof.upper, lower))))
    return lower


def _sets(proof: Proof, instance: SearchedInstance) -> float:
    """The approximate number of column sets a checker counts; infinity where no quick estimate exists."""
    if not isinstance(instance, Instance) or instance.hierarchy is not None:
        return math.inf
    root, total = first_region(instance.units, instance.force_in, instance.force_out), 0
    for leaves in closed_regions(proof.tree, root, proof.k, MOST_LEAVES):
        states = leaves.states[leaves.witness == BY_COUNTING]
        free, slots = np.sum(states == FREE, axis=1), proof.k - np.sum(states == IN, axis=1)
        total += sum(how_many(m, r) for m, r in zip(free.tolist(), slots.tolist(), strict=True))
    return total
