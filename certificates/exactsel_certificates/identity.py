"""The identity of a proof's problem: a hash over everything that defines it (FORMAT.md)."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

import numpy as np

from exactsel_certificates.entries import SparseInstance
from exactsel_certificates.formula import ColumnInstance, Instance, row_blocks

AnyInstance: TypeAlias = Instance | ColumnInstance | SparseInstance


def problem_hash(instance: AnyInstance) -> str:
    """sha256 over everything that defines the problem (FORMAT.md)."""
    n, d = instance.A.shape
    header: dict[str, Any] = {"n": n, "d": d, "k": instance.k}
    if isinstance(instance, ColumnInstance):
        header |= {"problem": "css"}
    else:
        parameters = {name: float(value).hex() for name, value in instance.formulas.parameters.items()}
        header |= {"loss": instance.loss, "parameters": parameters, "lam": float(instance.lam).hex()}
        if instance.force_in or instance.force_out:
            header |= {"force_in": instance.force_in, "force_out": instance.force_out}
        header |= {"intercept": True} if instance.intercept else {}
        header |= {"weights": True} if instance.weights is not None else {}
        header |= {"scale": True} if getattr(instance, "scale", False) else {}
        header |= {"groups": instance.groups} if instance.groups else {}
        if instance.hierarchy is not None:
            header |= {instance.hierarchy.name: instance.hierarchy.entry()}
        if instance.box is not None:
            header |= {"bounds": [[float(v).hex() for v in side] for side in instance.box]}
        equalities = getattr(instance, "equalities", None)
        header |= {} if equalities is None else {"equalities": equalities.entry()}
    text = json.dumps(header, sort_keys=True).encode()
    if isinstance(instance, SparseInstance):
        digest = hashlib.sha256(b"exactsel-design-v1\0" + text)
        for array, kind in ((instance.A.starts, "<i8"), (instance.A.rows, "<i4"), (instance.A.values, "<f8")):
            digest.update(np.ascontiguousarray(array, dtype=kind).data)
        digest.update(np.asarray(instance.y, dtype="<f8").tobytes())
        return digest.hexdigest()
    digest = hashlib.sha256(b"exactsel-problem-v1\0" + text)
    for part in row_blocks(instance.A):
        digest.update(np.ascontiguousarray(part, dtype="<f8").data)
    if isinstance(instance, Instance):
        digest.update(np.asarray(instance.y, dtype="<f8").tobytes())
        if instance.weights is not None:
            digest.update(np.asarray(instance.weights, dtype="<f8").tobytes())
    return digest.hexdigest()
