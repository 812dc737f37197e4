"""Instances that fail, as files: an instance file that ``exactsel solve`` reads, and beside it what it cannot hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactsel.data.instance import Instance, read_instance
from exactsel.errors import InputError
from exactsel.registry import has_delta
from exactsel.solving.reproducer import FORMAT, write_files
from exactsel.testing.instances import CSS, TinyInstance

PLAIN = ("k", "loss", "lam", "delta", "intercept", "scale", "settings")
"""Fields of an instance that JSON holds as they are."""

NAME_ONE = "name a .json file that a failed search or exactsel dev fuzz wrote."


@dataclass(frozen=True)
class Reproducer:
    """An instance that fails, and how."""

    instance: TinyInstance
    kind: str
    """The campaign that found it."""
    seed: int
    what: str
    """The class of the finding."""
    detail: str
    relation: str = ""
    """What a metamorphic check holds it against, or the name of the peer."""


def write_reproducer(folder: Path, reproducer: Reproducer, name: str = "") -> Path:
    """Write the two files into a folder, which is made, under a name (by default what it is); that of the second."""
    instance = reproducer.instance
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made ({error.strerror}); name one in a folder that is yours."
        ) from None
    file = folder / f"{name or f'{reproducer.kind}-{reproducer.seed}-{_slug(reproducer.what)}'}.json"
    entries: dict[str, Any] = {name: getattr(instance, name) for name in PLAIN}
    entries |= {"force_in": list(instance.force_in), "force_out": list(instance.force_out)}
    entries |= {"groups": None if instance.groups is None else list(instance.groups)}
    entries["constraint"] = instance.constraint
    text = {
        "kind": reproducer.kind, "seed": reproducer.seed,
        "relation": reproducer.relation, "what": reproducer.what, "detail": reproducer.detail, "instance": entries,
    }  # fmt: skip
    css = instance.loss == CSS
    write_files(
        file,
        Instance(
            instance.A, instance.y, k=instance.k, lam=None if css else instance.lam,
            loss=None if css else instance.loss, delta=instance.delta if has_delta(instance.loss) else None,
            weights=instance.weights, intercept=instance.intercept, groups=instance.groups,
        ),
        text,
    )  # fmt: skip
    return file


def read_reproducer(file: Path) -> Reproducer:
    """What :func:`write_reproducer` has written; ``file`` is either of the two.

    Raises
    ------
    InputError
        For files that cannot be read, or hold something else.
    """
    words = file.with_suffix(".json")
    try:
        text = json.loads(words.read_bytes())
    except OSError as error:
        raise InputError(f"the reproducer {words} cannot be read ({error.strerror}); {NAME_ONE}") from None
    except (ValueError, RecursionError):
        text = None
    version = text.get("exactsel_reproducer") if isinstance(text, dict) else None
    if version != FORMAT:
        raise InputError(f"{words} is no reproducer of format {FORMAT}; {NAME_ONE}")
    held = read_instance(words.with_suffix(".npz"))
    try:
        y = np.zeros(len(held.A)) if held.y is None else held.y.astype(float)
        entries = text["instance"]
        constraint = {"hierarchy": {}, "hierarchy_kind": "strong", "not_both": []} | entries["constraint"]
        if len(constraint) > 3:
            raise InputError(f"{words} is about limits on groups, which cannot be made smaller; report it as it is.")
        instance = TinyInstance(
            held.A.astype(float), y, weights=held.weights,
            force_in=tuple(entries["force_in"]), force_out=tuple(entries["force_out"]),
            groups=None if entries["groups"] is None else tuple(entries["groups"]),
            hierarchy=tuple((int(unit), tuple(above)) for unit, above in constraint["hierarchy"].items()),
            hierarchy_kind=constraint["hierarchy_kind"],
            not_both=tuple((int(i), int(j)) for i, j in constraint["not_both"]),
            **{name: entries[name] for name in PLAIN},
        )  # fmt: skip
        return Reproducer(
            instance, str(text["kind"]), int(text["seed"]), str(text["what"]), str(text["detail"]),
            str(text["relation"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{words} is a damaged reproducer; run the command that wrote it again.") from None


def reproducers_in(path: Path) -> list[Path]:
    """The reproducers a folder holds, by name; or the one file.

    Raises
    ------
    InputError
        For a folder without any.
    """
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.glob("*.json") if file.with_suffix(".npz").exists())
    if not files:
        raise InputError(f"the folder {path} holds no reproducer; {NAME_ONE}")
    return files


def _slug(text: str) -> str:
    return "-".join("".join(mark if mark.isalnum() else " " for mark in text).split())[:40]
