"""What walks of several subtrees in closed form brought, in arrays that hold one after the other.

As in packed_searches.py, whoever reads them looks at all entries at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import require
from exactsel.search.node_block import bits_of
from exactsel.search.packed_searches import states_left_open
from exactsel.walks.closed_form import WalkResult

KINDS = {
    "finished": np.bool_, "nodes": np.int64, "sizes": np.int64, "support": np.int64, "moves": np.int64,
    "work": np.float64, "dropped": np.float64, "bounds": np.float64,
}  # fmt: skip
"""What the arrays hold. ``sizes`` are a walk's regions left open, moves and columns of its model (-1: none)."""


def walks_as_arrays(walks: Sequence[WalkResult]) -> dict[str, NDArray[Any]]:
    """Walks of one round, at least one."""
    supports = [() if one.support is None else one.support for one in walks]
    sizes = [(len(one.open_bounds), len(one.moves), -1 if one.support is None else len(one.support)) for one in walks]
    columns = {
        "finished": [one.finished for one in walks],
        "nodes": [one.nodes for one in walks],
        "sizes": sizes,
        "support": [column for support in supports for column in support],
        "work": [one.work for one in walks],
        "dropped": [one.dropped for one in walks],
    }
    return {
        **{name: np.array(values, dtype=KINDS[name]) for name, values in columns.items()},
        "moves": np.concatenate([one.moves for one in walks]),
        "bounds": np.concatenate([one.open_bounds for one in walks]),
        "states": bits_of(np.concatenate([one.open_states for one in walks])),
    }


def walks_from(arrays: dict[str, NDArray[Any]], problem: SubsetProblem) -> list[WalkResult]:
    """What :func:`walks_as_arrays` was given; :class:`exactsel.errors.InputError` where it is damaged."""
    for name, kind in KINDS.items():
        shape = arrays[name].shape[1:]
        require(arrays[name].dtype == kind and shape == ((3,) if name == "sizes" else ()), f"other '{name}' of walks")
    for name in ("work", "dropped", "bounds"):
        require(not np.any(np.isnan(arrays[name])), f"numbers that are none in '{name}' of walks")
    nodes, sizes, support = arrays["nodes"], arrays["sizes"], arrays["support"]
    alike = ("finished", "sizes", "work", "dropped")
    require(all(len(arrays[name]) == len(nodes) for name in alike), "other numbers of walks")
    require(bool(np.all(nodes >= 0) and np.all(sizes >= (0, 0, -1))), "too small numbers of walks")
    require(bool(np.all((support >= 0) & (support < problem.d))), "models of unknown columns")
    states = states_left_open(arrays["states"], arrays["bounds"].size, problem)
    held = (arrays["bounds"], arrays["moves"], support)
    lengths = np.maximum(sizes, 0)
    for number, array in enumerate(held):
        total = sum(lengths[:, number].tolist())  # of whole numbers, so that none can overflow
        require(len(array) == total, "walks of other sizes")
    ends = np.cumsum(lengths, axis=0)
    parts = zip((ends - lengths).tolist(), ends.tolist(), (sizes[:, 2] >= 0).tolist(), strict=True)
    finished, work, dropped = (arrays[name].tolist() for name in ("finished", "work", "dropped"))
    found = []
    for ended, many, spent, bound, (first, end, chosen) in zip(
        finished, nodes.tolist(), work, dropped, parts, strict=True
    ):
        left, moves, columns = (slice(*pair) for pair in zip(first, end, strict=True))
        # Copies, so that one walk that is kept does not keep all.
        found.append(
            WalkResult(
                ended, many, spent, bound, tuple(support[columns].tolist()) if chosen else None, states[left].copy(),
                arrays["bounds"][left].copy(), arrays["moves"][moves].copy(),
            )
        )  # fmt: skip
    return found
