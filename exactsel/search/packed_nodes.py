"""Nodes, and what they refer to, as plain data; and read from data that may come from anywhere (nodes/table.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.bounds.witness import is_witness
from exactsel.kernels.node import IN
from exactsel.nodes.objects import FIRST_KNOWN, Objects
from exactsel.nodes.points import NAMES, Points, ascend
from exactsel.nodes.table import NodeTable, empty_rows, in_order, states_of
from exactsel.problem.interface import SubsetProblem
from exactsel.search.layout import refusing_damage, require
from exactsel.search.packing import Packed, arrays_under, pack, under, unpack
from exactsel.types import IntArray

MOST = 2**53
"""The largest number of a node: up to here every whole number is a float."""

NAMED = ("id", "parent", "depth")
"""Fields of a row that readers of the regions of nodes have in any case."""


def packed_nodes(table: NodeTable, without: Sequence[str] = ()) -> Packed:
    """Nodes as plain data, but for some fields.

    Raises
    ------
    exactsel.errors.UnsupportedError
        Where a bound handed on objects other than arrays and points.
    """
    others, names = pack(table.objects.others), table.rows.dtype.names or ()
    arrays = {f"node.{name}": np.ascontiguousarray(table.rows[name]) for name in names if name not in without}
    arrays |= under("points", table.objects.points.arrays()) | under("others", others.arrays)
    return Packed({"nodes": table.d, "others": others.header}, arrays)


def nodes_from(packed: Packed, problem: SubsetProblem, *, in_best_first_order: bool = True) -> NodeTable:
    """What :func:`packed_nodes` was given.

    Raises
    ------
    exactsel.errors.InputError
        Where the data are damaged, or nodes of another problem.
    """
    with refusing_damage():
        table = _table(packed, problem, ())
        rows = table.rows
        require(len(rows) > 0, "no nodes")
        named = (rows["id"] >= 0) & (rows["parent"] >= -1) & (rows["depth"] >= 0)
        require(bool(np.all(named & (rows["id"] <= MOST) & (rows["parent"] <= MOST))), "impossible nodes")
        if in_best_first_order:
            require(np.array_equal(in_order(rows["bound"], rows["id"]), np.arange(len(rows))), "nodes out of order")
            require(bool(np.all(np.diff(np.sort(rows["id"])) > 0)), "nodes that are there twice")
        _check_references(table, ())
        return table


def regions_from(packed: Packed, problem: SubsetProblem, known: Sequence[Any]) -> NodeTable:
    """The same of regions, written down without what names a node; they refer to objects that are ``known``, too."""
    table = _table(packed, problem, NAMED)
    for name in NAMED:
        table.rows[name] = 0
    _check_references(table, known)
    return table


def _table(packed: Packed, problem: SubsetProblem, without: Sequence[str]) -> NodeTable:
    require(packed.header.get("nodes") == problem.d, "nodes of another problem")
    others = tuple(unpack(Packed(packed.header["others"], arrays_under("others", packed)), problem))
    points = points_from(arrays_under("points", packed), problem.units.columns)
    columns = arrays_under("node", packed)
    rows = empty_rows(columns["bound"].size, problem.d)
    names = {*(rows.dtype.names or ())} - {*without}
    require({*columns} == names, "other fields of nodes")
    for name in names:
        column, kind = columns[name], rows.dtype[name]
        require(column.dtype == kind.base and column.shape == (len(rows), *kind.shape), f"another '{name}' of nodes")
        rows[name] = column
    require(not np.any(np.isnan(rows["bound"]) | np.isnan(rows["estimate"])), "a bound that is nan")
    for first in range(0, len(rows), 1024):
        check_states(states_of(rows["state"][first : first + 1024], problem.d), problem.k)
    return NodeTable(rows, Objects(points, others), problem.d)


def _check_references(table: NodeTable, known_objects: Sequence[Any]) -> None:
    others = table.objects.others
    require(all(is_witness(obj) or isinstance(obj, np.ndarray) for obj in others), "objects of the wrong type")
    check_proofs(table.rows["proof"], table.objects, known_objects)
    least, warm = FIRST_KNOWN - len(known_objects), table.rows["warm"]
    require(bool(np.all((warm > least) & (warm < len(table.objects)))), "no 'warm' of nodes")


def check_proofs(numbers: IntArray, objects: Objects, known_objects: Sequence[Any]) -> None:
    """Refuse numbers of objects that prove nothing."""
    proves = [
        *[True] * len(objects.points),
        *map(is_witness, objects.others),
        *map(is_witness, known_objects[::-1]),
        False,
    ]
    sound = (numbers > FIRST_KNOWN - len(known_objects)) & (numbers < len(objects))
    require(bool(np.all(sound)), "no 'proof' of nodes")
    require(bool(np.all(np.array(proves)[numbers])), "objects of the wrong type as proofs")


def check_states(states: NDArray[np.int8], k: int) -> None:
    """Refuse states (m, d) that no region has."""
    members = np.count_nonzero(states == IN, axis=1)
    require(bool(np.all(states <= IN) and np.all(members <= k)), "impossible states")


def points_from(arrays: dict[str, NDArray[Any]], columns: int) -> Points:
    """What :meth:`exactsel.nodes.points.Points.arrays` wrote down of points over so many columns.

    :class:`exactsel.errors.InputError` where it is damaged.
    """
    values, sizes, held, of, flat = (arrays[name] for name in NAMES)
    typed = ((values, np.float64), (sizes, np.int64), (of, np.int8), (flat, np.float64))
    require(all(array.dtype == kind for array, kind in typed), "other types of points")
    require(held.dtype in (np.uint8, np.int32), "other types of columns")
    require(all(array.ndim == 1 for array in (values, sizes, of, flat)), "other shapes of points")
    require(sizes.size == of.size and np.all(sizes >= 0), "impossible sizes of points")
    require(sum(sizes.tolist()) == values.size, "another number of entries of points")
    require(bool(np.all(np.isfinite(values)) and np.all(np.isfinite(flat))), "points that are not finite")
    require(flat.size % columns == 0, "a curvature of another size")
    require(bool(np.all((of >= -1) & (of < flat.size // columns))), "curvatures that are not there")
    bits = held.dtype == np.uint8
    require(
        held.ndim == (2 if bits else 1) and len(held) == (sizes if bits else values).size,
        "columns of other points",
    )
    points = Points(values, np.cumsum(sizes), held, of, tuple(flat.reshape(-1, columns).copy()))
    if bits:
        require(
            np.array_equal(np.count_nonzero(np.unpackbits(held, axis=1), axis=1), sizes),
            "columns of other points",
        )
    indices = points.all_columns()
    require(bool(np.all((indices >= 0) & (indices < columns))), "points of unknown columns")
    require(ascend(indices, sizes), "columns out of order")
    return points
