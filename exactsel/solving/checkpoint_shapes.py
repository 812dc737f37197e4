"""The JSON schema of a search's checkpoint, validated before any of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exactsel.errors import InputError
from exactsel.search.json_shapes import (
    Shape,
    among,
    digest,
    entries,
    maybe,
    number,
    plain,
    row,
    several,
    text,
    truth,
    whole,
)
from exactsel.solving.outcome import Termination
from exactsel.solving.settings import settings_of

SETTINGS = {
    name: (lambda value: text(value) or several(text)(value)) if setting.plug_ins or name == "heuristics" else plain()
    for name, setting in settings_of().items()
}
"""Plug-ins go by their names, one or several."""

PROOF_WORD = whole(-(2**31), 2**31 - 1)

LATEST = 2.0**32
"""Seconds since the epoch: the year 2106."""

PROBLEM = entries(
    {},
    {
        "problem": text, "n": whole(), "d": whole(), "k": whole(), "loss": text, "loss_parameters": plain(),
        "lam": number(), "intercept": plain(), "scale": plain(), "weights": plain(), "force_in": plain(),
        "force_out": plain(),
    },
)  # fmt: skip

HOW = entries({"listing": truth, "shown": truth, "details": truth})

SCREENED = entries({
    "hash": text, "columns": several(whole(0, 2**31 - 1), different=True), "support": several(whole(0, 2**31 - 1)),
    "proof": maybe(text), "size": whole(),
})  # fmt: skip
"""Of a search of some of the columns: the problem on all of them, and which these are."""

BEGUN: dict[str, Shape] = {
    "what": text, "version": text, "problem_hash": text, "problem": PROBLEM, "names": maybe(several(text)),
    "proof": maybe(text), "began": number(0.0, LATEST),
}  # fmt: skip
"""Of every checkpoint, beside its settings."""

TOLD: dict[str, Shape] = {
    "rounds": whole(), "nodes": whole(), "open": whole(), "lower": maybe(number()), "upper": maybe(number()),
    "support": several(whole(), different=True), "source": text, "valid_for": text, "tree_hash": digest,
}  # fmt: skip
"""Of a search in progress: its progress."""

PROGRESS = entries({**TOLD, "seconds": number(0.0), "ended": maybe(among(*(each.value for each in Termination)))})

PROOF = entries({
    "witnesses": entries({
        "points": PROOF_WORD, "splits": PROOF_WORD, "duals": PROOF_WORD, "curvature_split": PROOF_WORD,
        "curvature": maybe(several(number())),
    }),
    "minorant": row(several(whole(0, 2**31 - 1)), several(number())), "by_patterns": truth,
    "node": PROOF_WORD, "witness": PROOF_WORD, "piece": several(PROOF_WORD),
})  # fmt: skip


def require_shape(path: Path, sound: bool, what: str) -> None:
    """:class:`InputError` where what a checkpoint says is not sound; ``what`` is what of it."""
    if not sound:
        raise InputError(
            f"the checkpoint {path} is damaged: {what} is not as a search writes it; take an intact copy of it, or "
            f"start again."
        )


def check_begun(path: Path, about: Mapping[str, Any], **more: Shape) -> None:
    """Refuse a description of what was begun that is none; ``more`` are its entries beside those of every one."""
    shape = entries({**BEGUN, "settings": entries(SETTINGS), **more}, {"screened": SCREENED})
    require_shape(path, shape(about), "what it was begun with")


def check_support(path: Path, about: Mapping[str, Any], support: list[int]) -> None:
    """Refuse columns that the problem has not."""
    names, most = about["names"], about["problem"].get("d", 0)
    columns = most if names is None else len(names)
    require_shape(path, all(j < columns for j in support), "the model it tells of")


def check_saved(path: Path, saved: Mapping[str, Any], **more: Shape) -> None:
    """Refuse what belongs to a state where it is something else."""
    shape = entries({"progress": more.pop("progress", PROGRESS), "proof": maybe(PROOF), **more})
    held = {name: value for name, value in saved.items() if name not in ("parts", "digest", "spools", "chunks")}
    require_shape(path, shape(held), "what belongs to its state")
