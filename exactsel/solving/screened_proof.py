"""The proof of a search of the active columns as one about all columns (certificates/FORMAT.md, *Screening*)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from exactsel.bounds.column_bounds import ColumnBounds
from exactsel.errors import InputError, UnsupportedError
from exactsel.files import check_target, replacing
from exactsel.problem.regression import Problem
from exactsel.proofs.instance import checked_instance_of
from exactsel.solving.result import Result
from exactsel.types import IntArray
from exactsel_certificates.container import read_proof, written
from exactsel_certificates.entries import SparseInstance
from exactsel_certificates.screened import Screening

MARGIN = 1e-12
"""Times |upper|: by how much a claim stays below the bounds of columns that are not active, whose sums a checker may
form in another order."""


class ScreenedProof:
    """The file of a search of some of the columns.

    Parameters
    ----------
    problem : Problem
        On data that stay sparse.
    path : path
        The file to write.

    Raises
    ------
    UnsupportedError
        For data, or a loss, that the checker cannot know.
    InputError
        When the folder cannot be written.
    """

    def __init__(self, problem: Problem, path: str | os.PathLike[str]) -> None:
        instance = checked_instance_of(problem)
        if not isinstance(instance, SparseInstance):
            raise UnsupportedError("a proof of screened features is about sparse data; leave the proof out.")
        self.path, self._problem, self._instance = Path(path), problem, instance
        check_target(self.path)

    @property
    def of_table(self) -> Path:
        """Where the proof of a table goes, until it is read."""
        return self.path.with_name(f".{self.path.name}.table")

    def take(self, bounds: ColumnBounds, columns: IntArray, result: Result) -> Result:
        """Write the file from the proof of a search of some columns; the result claims what the file does."""
        if result.proof is None:
            return result
        table = Path(result.proof)
        try:
            proof = read_proof(table)
        finally:
            table.unlink(missing_ok=True)
        first = proof.duals
        duals = np.concatenate([proof.dual_value, *bounds.duals]) if bounds.duals else proof.dual_value
        proof = replace(
            proof, k=self._problem.k, problem_hash=self._problem.hash, columns=self._problem.d,
            active_column=columns.astype(np.int32), dual_value=duals, screen_level=np.array(bounds.levels),
            bounds=self._problem.coefficient_bounds is not None,
            screen_dual=np.arange(first, first + len(bounds.duals), dtype=np.int32),
        )  # fmt: skip
        whole, others = Screening(self._instance, proof).bounds()
        room, upper = MARGIN * result.upper, max(proof.upper, result.upper)
        lower = min(max(0.0, whole - room, min(proof.lower, others - room)), upper)
        try:
            with replacing(self.path, "the proof ") as out:
                out.write(written(replace(proof, lower=lower, upper=upper)))
        except OSError as error:
            raise InputError(f"{self.path} cannot be written ({error.strerror}); give another path.") from None
        return replace(result._claiming(min(lower, result.upper)), proof=str(self.path))
