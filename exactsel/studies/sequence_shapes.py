"""The JSON schema of a sequence's steps in a checkpoint, validated before any of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactsel.search.json_shapes import (
    Shape,
    among,
    entries,
    hexadecimal,
    maybe,
    number,
    row,
    several,
    text,
    truth,
    whole,
)
from exactsel.solving.checkpoint_shapes import require_shape
from exactsel.solving.stored import STORED

ENDS = ("complete", "cap", "time_limit", "node_limit", "interrupted", "precision")
"""Why the filling of a pool ended."""

_SUPPORT = several(whole(), different=True)
_LISTING = entries({
    "best": hexadecimal(), "tau": hexadecimal(finite=True), "regions": whole(), "termination": among(*ENDS),
    "found": several(row(_SUPPORT, hexadecimal())), "undecided": several(_SUPPORT), "restriction": text,
})  # fmt: skip


def _kept(about: Shape) -> Shape:
    """Where the state of a search or a pool is, and what else belongs to it."""
    chunks = several(whole(), different=True)
    return maybe(entries({"parts": maybe(chunks), "spilled": chunks, "plain": about}))


_RECORD = entries({
    "changes": entries({}, {"k": whole(), "lam": number(0.0)}), "result": maybe(STORED),
    "search": _kept(maybe(entries({}))), "listing": _kept(_LISTING),
})  # fmt: skip
COURSE = entries({
    "records": several(_RECORD),
    "asked": entries({
        "heuristics": truth, "tau": maybe(number(0.0)), "share": maybe(number(0.0)), "cap": maybe(whole(1)),
    }),
})  # fmt: skip
"""Of a sequence: a record of each step, and the options besides them."""


def check_records(path: Path, sequence: Mapping[str, Any], chunks: list[int]) -> None:
    """Refuse steps that are there twice, or share a state, or have one that is not among the ``chunks`` of the file."""
    records = sequence["records"]
    steps = [(record["changes"].get("k"), record["changes"].get("lam")) for record in records]
    require_shape(path, bool(steps) and len({*steps}) == len(steps), "the list of its problems")
    states = [record[kind] for record in records for kind in ("search", "listing") if record[kind] is not None]
    used = [number for state in states for number in (*(state["parts"] or ()), *state["spilled"])]
    require_shape(path, len({*used}) == len(used) and {*used} <= {*chunks}, "where the states of its problems are")
    require_shape(path, sum(state["parts"] is None for state in states) < 2, "which of its problems goes on")
