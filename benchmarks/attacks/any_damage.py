"""A file of some kind with any damage: structural, or of its bytes."""

from __future__ import annotations

import gzip

from benchmarks.attacks.damaged import Rng, healthy, mutated, repacked
from benchmarks.attacks.structural import ATTACKS


def damaged(kind: str, rng: Rng) -> tuple[bytes, str]:
    """A damaged file of a kind, and what was done to it."""
    family = kind.removesuffix(".gz") if not kind.startswith(("weights", "target")) else kind.rpartition(".")[2]
    family = "csv" if kind.startswith(("csv", "tsv")) else family
    chance = rng.random()
    if chance < 0.35 and family in ATTACKS:
        attacks = ATTACKS[family]
        made = attacks[int(rng.integers(len(attacks)))]
        data = made(rng)
        if kind.endswith(".gz") and not data.startswith(b"\x1f\x8b"):
            data = gzip.compress(data, 6, mtime=0)
        return (data, made.__name__) if rng.random() < 0.9 else (mutated(data, rng), made.__name__ + ", mutated")
    data = healthy(kind, rng)
    if chance < 0.6 and kind.endswith(".gz"):
        return gzip.compress(mutated(gzip.decompress(data), rng), 6, mtime=0), "mutated inside"
    if chance < 0.7 and kind in ("npz", "sparse"):
        return repacked(data, lambda name, held: mutated(held, rng) if rng.random() < 0.4 else held), "mutated members"
    if chance < 0.72:
        return data, "healthy"
    return mutated(data, rng), "mutated"
