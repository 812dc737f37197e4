"""A support with some of its columns replaced at random, to begin a local search from."""

from __future__ import annotations

import numpy as np

from exactsel.types import IntArray


def perturbed(support: tuple[int, ...], pool: IntArray, k: int, rng: np.random.Generator) -> tuple[int, ...]:
    """The support with two of its k columns or more, up to half, replaced by random ones of the ``pool``."""
    size = min(k, pool.size)
    replaced = int(rng.integers(min(2, size), max(min(2, size), size // 2) + 1))
    kept = rng.permutation(np.array(support, dtype=np.int64))[: max(0, k - replaced)]
    included = np.zeros(1 + max((*support, int(pool.max(initial=0)))), dtype=np.bool_)
    included[list(support)] = True
    others = pool[~included[pool]]
    drawn = rng.choice(others, min(k - kept.size, others.size), replace=False)
    return tuple(np.concatenate([kept, drawn]).tolist())
