"""The bytes of a proof file and its tree, for the second checker."""

from __future__ import annotations

import json
import math
import struct
import sys
from array import array
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from itertools import accumulate, pairwise
from typing import Any

from .demands import Demands
from .work import tally

TYPES = {"<f8": "d", "<f4": "f", "<f2": "e", "<i4": "i", "<u2": "H", "u1": "B"}
ARRAYS = {
    "curvature": ["<f8"], "model_value": ["<f8"], "point_value": ["<f8", "<f4"], "dual_value": ["<f8"],
    "split_scale": ["<f8"], "equality_size": ["<f8"],
    "model_index": ["<i4"], "point_size": ["<i4"], "tree": ["<i4"], "split_size": ["<i4"],
    "minorant_point": ["<i4"], "minorant_width": ["<f4"], "limit_point": ["<i4"], "curvature_split": ["<i4"],
    "active_column": ["<i4"], "screen_dual": ["<i4"], "screen_level": ["<f8"],
    "split_value": ["<f2"], "point_index": ["<i4", "<u2", "u1"], "split_column": ["<i4", "<u2", "u1"],
}  # fmt: skip
"""In the order they are stored, each with the types it may have; empty ones may be absent."""

REALS = [name for name, kinds in ARRAYS.items() if kinds[0] in ("<f8", "<f4", "<f2")]
FLAGS = ("weights", "intercept", "scale", "bounds", "equalities")

FIRST_STRONG = 2**24
"""Where kind 7 has an argument from here on, that much more than the number of a point, this names strong columns."""

FIRST_LIKE = 2**25
"""The same from here on: strong columns, the others taken together where they are like each other."""

BY_COUNTING = -(1 << 40)
"""The witness of a region closed by counting; that of split p is ~p."""


class Malformed(Exception):
    """The file breaks a rule of the format."""


def need(condition: bool, what: str) -> None:
    """Malformed unless ``condition``."""
    if not condition:
        raise Malformed(f"the file is no proof: {what} not as FORMAT.md says.")


def read(data: bytes) -> dict[str, Any]:
    """Header and arrays of a proof file in one dictionary; ``points`` says where in the arrays each point lies."""
    need(len(data) >= 8, "header")
    size = struct.unpack("<Q", data[:8])[0]
    need(size <= 65536 and 8 + size <= len(data), "length of the header")
    try:
        proof: dict[str, Any] = json.loads(data[8 : 8 + size].decode())
        lower, upper = float.fromhex(proof["lower"]), float.fromhex(proof["upper"])
        sizes = [proof[name] for name in ("n", "d", "k")]
        listing = [(name, kind, count) for name, kind, count in proof["arrays"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, AttributeError):
        raise Malformed("the file is no proof: its header cannot be read.") from None
    version = proof.get("version")
    need(proof.get("format") == "exsel" and type(version) is int and version == 1, "format or version")
    need(all(proof.get(name) is None or proof[name] is True for name in FLAGS), "flags")
    related, many = proof.get("hierarchy"), proof.get("groups")
    need(related is None or isinstance(related, str), "hierarchy")
    need(many is None or (type(many) is int and 0 < many < 2**31), "groups")
    need(math.isfinite(lower) and math.isfinite(upper), "claim")
    need(all(type(s) is int and 0 <= s < 2**31 for s in sizes), "sizes")
    need(proof.get("valid_for") in ("", "bounded models"), "valid_for")
    need(all(type(proof.get(name)) is str for name in ("family", "loss", "problem_hash")), "texts")
    position, names = 8 + size, iter(ARRAYS)
    proof |= {name: [] for name in ARRAYS}
    for name, kind, count in listing:
        need(name in names, "list of arrays")  # names that the search passes over are absent
        need(kind in ARRAYS[name] and type(count) is int and 0 <= count <= len(data), f"array {name}")
        end = position + count * struct.calcsize(TYPES[kind])
        need(end <= len(data), "length of the file")
        proof[name], position = numbers_of(TYPES[kind], data[position:end]), end
    need(position == len(data), "length of the file")
    check_arrays(proof)
    check_splits(proof)
    touched = len(proof["minorant_point"])
    need(touched <= 8 and len(proof["minorant_width"]) == 2 * proof["n"] * (touched > 0), "minorant")
    need(len(proof["limit_point"]) <= 1, "point of the limits")
    check_screening(proof)
    named = proof["curvature_split"]
    need(len(named) <= 1 and all(0 <= v < len(proof["split_size"]) for v in named), "split of the curvature")
    return proof | {"lower": lower, "upper": upper, "points": [0, *accumulate(proof["point_size"])]}


def check_screening(p: dict[str, Any]) -> None:
    """Malformed unless what screens columns is in order, and absent where all are active."""
    many, duals, levels = p.get("columns"), p["screen_dual"], p["screen_level"]
    need(many is None or (type(many) is int and 0 < many < 2**31), "number of columns")
    need(many is not None or not (p["active_column"] or duals or levels), "active columns")
    need(many is None or (len(p["active_column"]) == p["d"] and rising(p["active_column"], many)), "active columns")
    count = len(p["dual_value"]) // max(p["n"], 1)
    need(len(duals) <= 8 and all(0 <= v < count for v in duals), "dual vectors that screen")
    need(len(levels) <= 1000 and all(a < b for a, b in pairwise(levels)), "levels")


def numbers_of(kind: str, data: bytes) -> Sequence[Any]:
    """Numbers from bytes, little-endian."""
    if kind == "e":
        return struct.unpack(f"<{len(data) // 2}e", data)
    numbers: array[Any] = array(kind)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def check_splits(p: dict[str, Any]) -> None:
    """Malformed unless everything about the splits is in order; where each lies in the arrays goes into ``splits``."""
    sizes, pairs = p["split_size"], [m * (m - 1) // 2 for m in p["split_size"]]
    need(all(m >= 0 for m in sizes) and sum(sizes) == len(p["split_column"]) == len(p["split_scale"]), "split sizes")
    need(sum(pairs) == len(p["split_value"]) and all(v > 0 for v in p["split_scale"]), "split entries")
    p["splits"] = list(zip([0, *accumulate(sizes)], [0, *accumulate(pairs)], strict=True))
    for (first, _), (end, _) in pairwise(p["splits"]):
        need(rising(p["split_column"][first:end], p["d"]), "split")


def split(p: dict[str, Any], number: int) -> tuple[Sequence[int], Sequence[float], Sequence[float]]:
    """Columns, scale and entries of one of the splits."""
    (first, low), (end, high) = p["splits"][number : number + 2]
    return p["split_column"][first:end], p["split_scale"][first:end], p["split_value"][low:high]


def check_arrays(p: dict[str, Any]) -> None:
    """Malformed unless everything about the arrays is in order."""
    need(all(map(math.isfinite, (v for name in REALS for v in p[name]))), "numbers")
    need(len(p["curvature"]) in (0, p["d"]) and all(v > 0 for v in p["curvature"]), "curvature")
    need(len(p["model_index"]) == len(p["model_value"]) and len(p["point_index"]) == len(p["point_value"]), "lengths")
    need(len(p["dual_value"]) % max(p["n"], 1) == 0, "dual vectors")
    need(all(s >= 0 for s in p["point_size"]) and sum(p["point_size"]) == len(p["point_index"]), "point sizes")
    for end, size in zip(accumulate(p["point_size"]), p["point_size"], strict=True):
        need(rising(p["point_index"][end - size : end], p["d"]), "point")
    need(rising(p["model_index"], p["d"]), "model")


def point(p: dict[str, Any], number: int) -> dict[int, F]:
    """One of the points, as they are written."""
    part = slice(p["points"][number], p["points"][number + 1])
    return dict(zip(p["point_index"][part], map(F, p["point_value"][part]), strict=True))


def rising(columns: Sequence[int], d: int) -> bool:
    """Whether these are columns in ascending order."""
    return all(0 <= j < d for j in columns) and all(i < j for i, j in pairwise(columns))


def regions(
    tree: Sequence[int], d: int, k: int, included: Sequence[int] = (), outside: Sequence[int] = (),
    hierarchy: Demands | None = None,
) -> Iterator[tuple[set[int], set[int], int]]:  # fmt: skip
    """S, C and witness of every closed region; with a hierarchy, of those where it leaves anything."""
    root = (set(included), set(range(d)) - set(included) - set(outside))
    todo = [hierarchy.pruned(root, k) if hierarchy else root]
    witness = 0
    for word in tree:
        need(bool(todo), "end of the tree")
        kind, j = word & 7, word >> 3
        need(j >= 0, "word of the tree")
        if kind in (5, 7):
            witness = j if kind == 5 else ~j
            continue
        region = todo.pop()
        tally(1 + d / 8)
        if kind in (4, 6):
            if region is not None:
                yield (*region, witness if kind == 4 else BY_COUNTING)
            continue
        if hierarchy:
            need(j < d, "column of the tree")
            within, without = (hierarchy.put(region, j, chosen, k) for chosen in (True, False))
        else:
            assert region is not None
            S, C = region
            need(j in C and len(S) < k, "column of the tree")
            within, without = (S | {j}, C - {j}), (S, C - {j})
        if kind in (0, 1):
            todo += [without, within] if kind == 0 else [within, without]
        else:
            closed, on = (without, within) if kind == 2 else (within, without)
            if closed is not None:
                yield (*closed, witness)
            todo.append(on)
    need(not todo, "end of the tree")
