"""Probes of what the checker knows of hierarchies: every region of many small ones, their trees, files and texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from benchmarks.proofs.probes import loaded

SMALL: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...] = (
    ((0, (1,)),),
    ((2, (0, 1)),),
    ((0, (1,)), (1, (0,))),
    ((1, (0,)), (2, (1,)), (3, (0, 2))),
    ((0, (1, 2, 3)), (3, (1, 2))),
)
"""Parents in hierarchies of four units."""


def _hierarchies() -> list[Any]:
    return [loaded("hierarchy").Hierarchy(kind, parents) for kind in ("strong", "weak") for parents in SMALL]


def regions() -> str:
    """What follows in every region of each hierarchy, from all decisions and from one."""
    parts: list[Any] = []
    for hierarchy, k in product(_hierarchies(), (0, 1, 2, 4)):
        rule = loaded("hierarchy").HierarchyRule(hierarchy, k)
        for state in map(bytes, product(range(3), repeat=4)):
            parts += [rule.implied(state, range(4)), rule.implied(state, [1]), [*rule.orphans(state)]]
    return repr(parts)


def trees() -> str:
    """Words that decide on anything, and too few or too many of them."""
    walk, container, parts = loaded("walk"), loaded("container"), list[Any]()
    split_in, split_out, put_in, leave_out, close, use = range(6)
    words = (
        [8 * 3 + split_in, close, 8 * 2 + split_out, close, close], [8 * 3 + put_in, 8 * 0 + leave_out, close],
        [8 * 1 + leave_out, 8 * 5 + use, 8 * 1 + put_in, 8 * 3 + split_out, close, close], [close], [close, close],
        [8 * 4 + split_in, close, close], [6], [7], [-8], [], [split_in, close], [close, 8 * 2 + use],
        [split_in, split_in, close, split_out, close, close, 8 * 2 + put_in, 8 * 2 + leave_out, close],
    )  # fmt: skip
    for hierarchy, k, tree in product(_hierarchies(), (1, 2, 3), words):
        rule = loaded("hierarchy").HierarchyRule(hierarchy, k)
        try:
            for leaf in walk.closed_regions(np.array(tree, dtype=np.int32), b"\1\1\1\1", k, 2, rule.implied):
                parts.append((leaf.states.tolist(), leaf.witness.tolist()))
        except container.MalformedError as error:
            parts.append(str(error))
    return repr(parts)


def _about(hierarchy: Any, **changes: Any) -> Any:
    rng = np.random.default_rng(3)
    kind = loaded("formula").Instance
    A, y = rng.standard_normal((6, 4)), rng.standard_normal(6)
    return kind(A, y, 2, "quadratic", 0.5, hierarchy=hierarchy, **changes)


def models() -> str:
    """Every set of columns, listed as a model, with and without demands and groups."""
    parts = []
    demands = ({}, {"force_in": (1,)}, {"force_out": (2,)}, {"groups": ((0,), (1,), (2,), (3,)), "force_in": (0,)})
    for hierarchy, changes in product(_hierarchies(), demands):
        instance = _about(hierarchy, **changes)
        listed = [[j for j in range(4) if number >> j & 1] for number in range(16)]
        parts += [loaded("formula").inadmissible(instance, columns) for columns in listed]
    return repr([*parts, loaded("formula").inadmissible(_about(None), [0, 1])])


def files() -> str:
    """The headers and verdicts of problems with hierarchies, of their proofs and of those of others."""
    checking, container = loaded("checking"), loaded("container")
    kept = ("family", "loss", "n", "d", "k", "groups", "problem_hash", "valid_for", "hierarchy")
    parts: list[Any] = []
    abouts = [_about(None), *map(_about, _hierarchies()[:7])]
    for about, other in zip(abouts, [*abouts[1:], abouts[0]], strict=True):
        kind = None if about.hierarchy is None else about.hierarchy.kind
        entries = dict(
            zip(kept, ("regression", "quadratic", 6, 4, 2, None, checking.problem_hash(about), "", kind), strict=True)
        )
        arrays = {"model_value": [0.0, 1.0], "model_index": [1, 2], "tree": [8 + 5, 4]}
        stored = {n: np.array(arrays.get(n, []), dtype=types[0]) for n, types in container.ARRAYS.items()}
        sizes = {n: (types[0], stored[n].size) for n, types in container.ARRAYS.items()}
        claims = {"lower": "0x0p+0", "upper": "0x1p+9"}
        body = b"".join(array.tobytes() for array in stored.values())
        for changes in ({}, {"hierarchy": "weak"}, {"hierarchy": None}, {"hierarchy": "both"}, {"intercept": True}):
            data = container.header_bytes({**entries, **claims, **changes}, sizes) + body
            try:
                proof = container.parse_proof(data)
            except container.MalformedError as error:
                parts.append(str(error))
                continue
            parts += [str(checking.verify(at, of)) for at, of in ((proof, about), (proof, other))]
            parts.append(str(checking.verify(replace(proof, lower=9.0), about)))
    text = container.header_bytes({**entries, **claims, "hierarchy": "weak"}, sizes)
    for version in (b"0", b"2", b"4"):
        try:
            container.parse_proof(text.replace(b'"version": 1', b'"version": ' + version) + body)
        except container.MalformedError as error:
            parts.append(str(error))
    return repr(parts)


def texts() -> str:
    """Lines that are a hierarchy, and lines that are none."""
    parts = list[Any]()
    names = loaded("constraint").meant([[0, 2], [1], [3]], ["g", "", "g"], ["a", "b", "c", "d", "e"])
    parts.append(names)
    single = (
        "g: b", "a:1", "g: b,d", "b:c: d", "a: b: c", "1: 2", "2: 3", "1: g, g", "g: g", "1:", "x: 1", "# 1: 2", "1 2",
        "0: 1, 2", "1000000000: 1", "1: 1000000000", "c: 2 # d", ":", "",
    )  # fmt: skip
    whole = (["1: 2", "1: g"], ["1: 2", "weak"], ["1: 2", "0: 1"], ["weak"], ["strong", "2: 1"])
    for lines in (*([line] for line in single), *(["weak", line] for line in single), *whole):
        try:
            parts.append(loaded("hierarchy").read(lines, names, 3))
        except ValueError as error:
            parts.append(str(error))
    return repr(parts)


RELATIONS: dict[str, Callable[[], str]] = {
    "hierarchies: regions": regions, "hierarchies: trees": trees, "hierarchies: models": models,
    "hierarchies: files": files, "hierarchies: texts": texts,
}  # fmt: skip
