"""A problem whose columns were screened: the table of the active ones, and what bounds the models with another one.

The tree, and all a file holds besides, is about the problem on the active columns. No model costs less than the smaller
of what the tree proves and of the smallest bound of a column that is not active (left_out.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from exactsel_certificates.container import Proof
from exactsel_certificates.domain import OutsideError, admitted
from exactsel_certificates.entries import SparseInstance, sparse_of
from exactsel_certificates.formula import Box, ColumnInstance, Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.left_out import left_out, work_of

AnyInstance: TypeAlias = Instance | ColumnInstance | SparseInstance

MOST_ENTRIES = 2**27
"""Numbers of a table of the active columns at most."""


@dataclass(frozen=True)
class Screening:
    """What bounds models with columns that are not active."""

    instance: SparseInstance
    proof: Proof

    @property
    def operations(self) -> float:
        """Elementary operations that it takes."""
        A, proof = self.instance.A, self.proof
        return work_of(A.values.size, A.shape[1], proof.screen_level.size, proof.screen_dual.size)

    @property
    def entries(self) -> float:
        """Entries of A to read."""
        return float(self.instance.A.values.size) * (3 + self.proof.screen_dual.size)

    def bounds(self) -> tuple[float, float]:
        """A lower bound of all models, and one of those with a column that is not active."""
        proof, others = self.proof, np.ones(self.instance.A.shape[1], dtype=np.bool_)
        others[proof.active_column] = False
        duals = proof.dual_value.reshape(-1, proof.n)[proof.screen_dual]
        lower = left_out(self.instance, proof.screen_level, duals)
        return lower.whole, float(np.min(lower.with_column[others], initial=np.inf))


def in_domain(proof: Proof, instance: AnyInstance) -> tuple[str, AnyInstance]:
    """Why a problem lies outside the domain, empty when it does not, and the problem in plain numbers."""
    try:
        return "", _admitted(as_stated(proof, instance))
    except (OutsideError, ValueError) as outside:
        return str(outside), instance


def _admitted(instance: AnyInstance) -> AnyInstance:
    """The problem in plain numbers; :class:`OutsideError` where it, or what is prepared, is outside the domain."""
    instance = admitted(instance)
    if isinstance(instance, GivenInstance):
        admitted(instance.plain)
    return instance


def as_stated(proof: Proof, instance: AnyInstance) -> AnyInstance:
    """The problem by its entries where the proof screens columns, else as a table.

    Raises
    ------
    ValueError
        Where it has what no such problem has, or the table would be too large.
    """
    if proof.columns is None and isinstance(instance, SparseInstance):
        if instance.A.n * instance.A.shape[1] > MOST_ENTRIES:
            raise ValueError("the proof is about a table, but this problem is sparse and too large for one.")
        return table_of(instance, np.arange(instance.A.shape[1]))
    if proof.columns is not None and not isinstance(instance, SparseInstance):
        sparse = None if isinstance(instance, ColumnInstance) else sparse_of(instance)
        if sparse is None:
            raise ValueError(
                "the proof screens columns, but this problem has groups, weights, a hierarchy or scaled columns, "
                "which no such proof knows."
            )
        return sparse
    if isinstance(instance, GivenInstance) and instance.equalities is not None:
        sizes = proof.equality_size.astype(np.float64)
        return replace(instance, equalities=instance.equalities._replace(sizes=sizes))
    return instance


def table_of(instance: SparseInstance, columns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Instance:
    """The problem on some of the columns, which become a table."""
    place, box = {int(j): i for i, j in enumerate(columns)}, None
    if instance.box is not None:
        box = Box(*(side[columns] for side in instance.box))
        box = box if any(bool(np.any(np.isfinite(side))) for side in box) else None
    kind = GivenInstance if instance.intercept else Instance
    return kind(
        instance.A.table(columns), instance.y, min(instance.k, len(columns)), instance.loss, instance.lam,
        instance.delta, tuple(place[j] for j in instance.force_in),
        tuple(place[j] for j in instance.force_out if j in place), intercept=instance.intercept,
        box=box, plugin=instance.plugin,
    )  # fmt: skip


def on_active(proof: Proof, instance: SparseInstance) -> tuple[Proof, Instance | None, str]:
    """The proof and the problem on the active columns, or in place of that why there is none."""
    active = proof.active_column.astype(np.int64)
    if not {*instance.force_in} <= {*active.tolist()}:
        return proof, None, "a column that is forced in is not active, but every model holds it."
    if instance.A.n * active.size > MOST_ENTRIES:
        return proof, None, f"{active.size} columns are active, but no table of so many is made."
    try:
        table = _admitted(table_of(instance, active))
    except OutsideError as outside:
        return proof, None, str(outside)
    assert isinstance(table, Instance)
    return replace(proof, k=min(proof.k, active.size), columns=None), table, ""
