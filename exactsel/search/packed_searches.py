"""Results of the kernel's searches below several nodes, packed in arrays that hold one after the other.

The reader checks all entries at once; each search is then a slice of every array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.enumeration.native import NativeTree
from exactsel.nodes.table import bits_of, states_of
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import require
from exactsel.search.packed_nodes import check_states
from exactsel.types import FloatArray

WHOLE = {"counts": 3, "sizes": 4, "support": None, "steps": 3, "labels": 3}
"""Arrays of whole numbers, and how many a row of each has. ``counts`` are a search's nodes, iterations and numbers,
``sizes`` its steps, regions left open, points and columns of its model (-1: none)."""

REAL = ("min_pruned_bound", "step_bounds", "bounds")
"""Arrays of numbers that are compared, and so must not be nan."""


def searches_as_arrays(searches: Sequence[NativeTree]) -> dict[str, NDArray[Any]]:
    """Searches of one round, at least one: their points are in the same variables and for the same curvature."""
    first = searches[0]
    supports = [() if run.support is None else run.support for run in searches]
    sizes = [
        (len(run.steps), len(run.open_bounds), len(run.scaled_points), -1 if run.support is None else len(run.support))
        for run in searches
    ]  # fmt: skip
    return {
        "counts": np.array([(run.nodes, run.iterations, run.numbers) for run in searches], dtype=np.int64),
        "sizes": np.array(sizes, dtype=np.int64),
        "support": np.array([column for support in supports for column in support], dtype=np.int64),
        "min_pruned_bound": np.array([run.min_pruned_bound for run in searches], dtype=np.float64),
        "steps": np.concatenate([run.steps for run in searches]),
        "step_bounds": np.concatenate([run.step_bounds for run in searches]),
        "states": bits_of(np.concatenate([run.open_states for run in searches])),
        "bounds": np.concatenate([run.open_bounds for run in searches]),
        "labels": np.concatenate([run.open_labels for run in searches]),
        "points": np.concatenate([run.scaled_points for run in searches]),
        "scale": first.scale,
        "curvature": np.zeros(0) if first.curvature is None else first.curvature,
    }


def searches_from(arrays: dict[str, NDArray[Any]], problem: SubsetProblem) -> list[NativeTree]:
    """What :func:`searches_as_arrays` was given; :class:`exactsel.errors.InputError` where it is damaged."""
    for name, wide in WHOLE.items():
        shaped = arrays[name].ndim == 1 if wide is None else arrays[name].shape[1:] == (wide,)
        require(arrays[name].dtype == np.int64 and shaped, f"other whole numbers in '{name}' of searches")
    for name in REAL:
        sound = arrays[name].dtype == np.float64 and arrays[name].ndim == 1 and not np.any(np.isnan(arrays[name]))
        require(bool(sound), f"other numbers in '{name}' of searches")
    counts, sizes, min_pruned_bound = arrays["counts"], arrays["sizes"], arrays["min_pruned_bound"]
    require(len(counts) == len(sizes) == min_pruned_bound.size, "other numbers of searches")
    require(bool(np.all(counts >= (0, 0, 1)) and np.all(sizes >= (0, 0, 0, -1))), "too small numbers of searches")
    arrays = {name: np.array(array) for name, array in arrays.items()}  # kernels are compiled for what can be written
    points, scale, curvature = _points(arrays, problem)
    states = states_left_open(arrays["states"], arrays["bounds"].size, problem)
    support = arrays["support"]
    require(bool(np.all((support >= 0) & (support < problem.d))), "models of unknown columns")
    ends = np.cumsum(np.maximum(sizes, 0), axis=0)
    held = (arrays["steps"], arrays["step_bounds"]), (states, arrays["bounds"], arrays["labels"]), (points,), (support,)
    for number, those in enumerate(held):
        total = sum(np.maximum(sizes[:, number], 0).tolist())  # of whole numbers, so that none can overflow
        require(all(len(array) == total for array in those), "searches of other sizes")
    of_each = np.repeat(sizes[:, 2], sizes[:, 1])
    require(not np.any(arrays["labels"][:, 1:] >= of_each[:, None]), "points that are not there")
    starts = (ends - np.maximum(sizes, 0)).tolist()
    rows = zip(counts.tolist(), sizes.tolist(), min_pruned_bound.tolist(), starts, ends.tolist(), strict=True)
    trees = []
    for (nodes, iterations, numbers), of, bound, first, end in rows:
        steps, regions, point_rows, chosen = (slice(*pair) for pair in zip(first, end, strict=True))
        trees.append(
            NativeTree(
                nodes, iterations, numbers, bound, None if of[3] < 0 else tuple(support[chosen].tolist()),
                arrays["steps"][steps], arrays["step_bounds"][steps], states[regions], arrays["bounds"][regions],
                arrays["labels"][regions], points[point_rows], scale, curvature,
            )
        )  # fmt: skip
    return trees


def _points(
    arrays: dict[str, NDArray[Any]], problem: SubsetProblem
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """The points, the scale of their variables and their curvature."""
    points, scale, curvature, wide = arrays["points"], arrays["scale"], arrays["curvature"], problem.units.columns
    require(all(array.dtype == np.float64 for array in (points, scale, curvature)), "points of another type")
    require(points.shape[1:] == scale.shape == (wide,), "points of another problem")
    require(curvature.shape in ((0,), (wide,)), "a curvature of another size")
    require(all(bool(np.all(np.isfinite(array))) for array in (points, scale, curvature)), "points that are not finite")
    require(bool(np.all(scale > 0)), "variables of no size")
    return points, scale, curvature if curvature.size else None


def states_left_open(bits: NDArray[Any], count: int, problem: SubsetProblem) -> NDArray[np.int8]:
    """(count, d) the regions left open."""
    require(bits.dtype == np.uint8 and bits.shape == (count, 2, -(-problem.d // 8)), "states of no regions left open")
    states = states_of(bits, problem.d)
    check_states(states, problem.k)
    return states
