"""Results of closers for several subtrees, packed in arrays that hold one after the other.

Regions they left open are packed with all others (packed_round.py). The reader checks all entries at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.errors import UnsupportedError
from exactsel.nodes.node import Node
from exactsel.nodes.points import place_among
from exactsel.nodes.regions import Region, SubtreeResult
from exactsel.nodes.subtree import Moves
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import require
from exactsel.types import FloatArray

COUNTS = ("nodes", "bound_calls", "iterations", "closed", "numbered")
SIZES = ("numbers", "bounds", "support", "moves")
"""How many entries a result has of each, -1 where it has none."""

KINDS = {
    "counts": np.int64, "sizes": np.int64, "finished": np.bool_, "min_pruned_bound": np.float64, "work": np.float64,
    "fraction": np.float64, "texts": np.int64, "curvature_of": np.int64, "curvatures": np.float64,
    "numbers": np.int64, "bounds": np.float64, "support": np.int64, "moves": np.int64,
}  # fmt: skip
"""What the arrays hold; ``work`` and ``fraction`` are -1 where there are none."""

WIDE = {"counts": len(COUNTS), "sizes": len(SIZES), "texts": 2}
"""Those with several entries a row. ``texts`` are the closer and the scope, by their number in the header."""

MOST = 2**30
"""The largest count."""


def subtrees_as_arrays(results: Sequence[SubtreeResult]) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """Results of one round, at least one: the texts in them, and the arrays.

    Raises
    ------
    exactsel.errors.UnsupportedError
        For a record of another type than :class:`exactsel.nodes.subtree.Moves`.
    """
    curvatures: list[FloatArray] = []
    texts = sorted({text for record in results for text in (record.closer, record.valid_for)})
    held = [_held(record) for record in results]
    entries = {
        name: np.concatenate([np.zeros(0, KINDS[name]), *(record[at] for record in held if record[at] is not None)])
        for at, name in enumerate(SIZES)
    }
    columns = {
        "counts": [[getattr(record, name) for name in COUNTS] for record in results],
        "sizes": [[-1 if part is None else len(part) for part in record] for record in held],
        "finished": [record.finished for record in results],
        "min_pruned_bound": [record.min_pruned_bound for record in results],
        "work": [-1.0 if record.work is None else record.work for record in results],
        "fraction": [-1.0 if record.fraction is None else record.fraction for record in results],
        "texts": [[texts.index(record.closer), texts.index(record.valid_for)] for record in results],
        "curvature_of": [
            -1 if not isinstance(record.expansion, Moves) or record.expansion.curvature is None
            else place_among(record.expansion.curvature, curvatures) for record in results
        ],
    }  # fmt: skip
    arrays: dict[str, NDArray[Any]] = {name: np.array(values, dtype=KINDS[name]) for name, values in columns.items()}
    return texts, arrays | entries | {"curvatures": np.concatenate([np.zeros(0), *curvatures])}


def _held(result: SubtreeResult) -> tuple[Any, ...]:
    """Its entries of :data:`SIZES`."""
    expansion = result.expansion
    if expansion is not None and not isinstance(expansion, Moves):
        raise UnsupportedError(
            f"a record of type {type(expansion).__name__} cannot be packed; a closer should tell moves, or nothing "
            f"where "
            "its children are all there is."
        )
    return result.numbers, result.bounds, result.support, None if expansion is None else expansion.moves


def subtrees_from(
    texts: Sequence[str], arrays: dict[str, NDArray[Any]], problem: SubsetProblem,
    parts: Sequence[tuple[Node, Sequence[Region]]],
) -> list[SubtreeResult]:  # fmt: skip
    """What :func:`subtrees_as_arrays` was given; ``parts`` are the nodes, each with its region and its children.

    :class:`exactsel.errors.InputError` where it is damaged.
    """
    for name, kind in KINDS.items():
        shape = arrays[name].shape[1:]
        require(arrays[name].dtype == kind and shape == ((WIDE[name],) if name in WIDE else ()), f"other '{name}'")
    for name in ("min_pruned_bound", "work", "fraction", "bounds"):
        require(not np.any(np.isnan(arrays[name])), f"a bound that is nan in '{name}' of subtrees")
    counts, sizes, support = arrays["counts"], arrays["sizes"], arrays["support"]
    alike = ("sizes", "finished", "min_pruned_bound", "work", "fraction", "texts", "curvature_of")
    require(len(counts) == len(parts) and all(len(arrays[name]) == len(counts) for name in alike), "other subtrees")
    require(bool(np.all((counts >= 0) & (counts <= MOST)) and np.all(sizes >= -1)), "impossible counts of subtrees")
    require(bool(np.all((support >= 0) & (support < problem.d))), "models of unknown columns")
    require(all(isinstance(text, str) for text in texts), "texts that are none")
    require(bool(np.all((arrays["texts"] >= 0) & (arrays["texts"] < len(texts)))), "texts that are not there")
    curvatures = arrays["curvatures"].reshape(-1, problem.units.columns)
    require(bool(np.all(np.isfinite(curvatures))), "curvatures that are not finite")
    of = arrays["curvature_of"]
    require(bool(np.all((of >= -1) & (of < len(curvatures)))), "curvatures that are not there")
    lengths = np.maximum(sizes, 0)
    for number, name in enumerate(SIZES):
        total = sum(lengths[:, number].tolist())  # of whole numbers, so that none can overflow
        require(len(arrays[name]) == total, "subtrees of other sizes")
    ends = np.cumsum(lengths, axis=0)
    results = []
    for row, (node, regions) in enumerate(parts):
        # Copies, so that one record that is kept does not keep all.
        numbers, bounds, columns, moves = (
            None if sizes[row, at] < 0 else arrays[name][ends[row, at] - lengths[row, at] : ends[row, at]].copy()
            for at, name in enumerate(SIZES)
        )
        children = tuple(regions[1:])
        require(bounds is None or len(bounds) == len(children), "other regions left open")
        require(numbers is None or _sound(numbers, len(children), int(counts[row, 4])), "impossible numbers")
        expansion = None if moves is None else Moves(moves, None if of[row] < 0 else curvatures[of[row]].copy())
        work, fraction = float(arrays["work"][row]), float(arrays["fraction"][row])
        closer, valid_for = (texts[number] for number in arrays["texts"][row].tolist())
        results.append(
            SubtreeResult(
                node, regions[0], closer, children, float(arrays["min_pruned_bound"][row]),
                **dict(zip(COUNTS, counts[row].tolist(), strict=True)), work=None if work < 0 else work,
                finished=bool(arrays["finished"][row]),
                numbers=None if numbers is None else tuple(numbers.tolist()),
                bounds=None if bounds is None else tuple(bounds.tolist()),
                support=None if columns is None else tuple(columns.tolist()), valid_for=valid_for,
                fraction=None if fraction < 0 else fraction, expansion=expansion,
            )
        )  # fmt: skip
    return results


def _sound(numbers: NDArray[np.int64], children: int, most: int) -> bool:
    """Whether a closer can have numbered so many children like this."""
    return len(numbers) == children == len(np.unique(numbers)) and bool(np.all((numbers >= 0) & (numbers <= most)))
