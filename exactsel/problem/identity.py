"""The identity of a problem: a hash over everything that defines it, as FORMAT.md specifies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from exactsel.problem.design import DesignColumns, design_hash
from exactsel.problem.preparing import Preparation
from exactsel.types import FloatArray

HASHED_AT_ONCE = 1_000_000
"""Numbers of A brought into row order at a time."""


def data_hash(header: Mapping[str, Any], AT: FloatArray, *vectors: FloatArray | None) -> str:
    """sha256 over ``header``, the data AT (d, n), row by row, and the ``vectors`` there are."""
    if isinstance(AT, DesignColumns):
        return design_hash(json.dumps(dict(header), sort_keys=True).encode(), AT, *vectors)
    digest = hashlib.sha256(b"exactsel-problem-v1\0" + json.dumps(dict(header), sort_keys=True).encode())
    rows = max(1, HASHED_AT_ONCE // len(AT))
    for first in range(0, AT.shape[1], rows):
        digest.update(np.ascontiguousarray(AT[:, first : first + rows].T, dtype="<f8").data)
    for vector in vectors:
        if vector is not None:
            digest.update(vector.astype("<f8").tobytes())
    return digest.hexdigest()


def prepared_hash(header: Mapping[str, Any], preparation: Preparation) -> str:
    """The same hash over the original data, and the requested preparation."""
    flags = {"intercept": preparation.centred, "weights": preparation.weights is not None, "scale": preparation.scaled}
    entries = {"n": preparation.y.size} | {name: True for name, value in flags.items() if value}
    return data_hash({**header, **entries}, preparation.AT, preparation.y, preparation.weights)
