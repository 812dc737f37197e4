"""Why a proof is about another problem than the caller's, in one sentence, for the second checker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .losses import Loss

ANOTHER = "the proof is about another problem"

COMPARED = {
    "family": ("family", "--problem"), "loss": ("loss", "--loss"), "n": ("number of rows", "the same data"),
    "d": ("number of columns", "the same data"), "columns": ("number of columns", "the same data"), "k": ("k", "-k"),
    "groups": ("number of groups", "--groups"),
    "hierarchy": ("constraint", "--hierarchy, --not-both and --per-group"),
}  # fmt: skip
"""What an entry is called, and the option that says it."""

ABSENT = {"groups": 0, "hierarchy": "none"}

FLAG_WORDS = {
    "weights": "row weights", "intercept": "an intercept", "scale": "scaled columns",
    "bounds": "limits on coefficients", "equalities": "linear equalities on coefficients",
}  # fmt: skip

OPTIONS = {"bounds": "--nonnegative, --bounds and --max-coef", "equalities": "--sum-to and --equality"}


def difference(p: dict[str, Any], ours: Mapping[str, object], loss: Loss | None, lam: float) -> str:
    """What differs between a proof's header and these entries of the problem; empty when nothing does."""
    for name, (what, option) in COMPARED.items():
        if name in ours and p.get(name) != ours[name]:
            theirs, mine = (value or ABSENT.get(name, value) for value in (p.get(name), ours[name]))
            option += f" {theirs}" if name == "k" else ""
            asks = "leave out" if name in ABSENT and theirs == ABSENT[name] else "give"
            return f"{ANOTHER}: its {what} is {theirs!r}, but {mine!r} was given; {asks} {option} as for the solve."
    for name, words in FLAG_WORDS.items():
        if p.get(name) != ours[name]:
            has, asks = ("has", "leave out") if ours[name] else ("lacks", "give")
            return (
                f"{ANOTHER}: this one {has} {words}, unlike that of the proof; {asks} "
                f"{OPTIONS.get(name, f'--{name}')} as for the solve."
            )
    return "" if p["problem_hash"] == ours["problem_hash"] else _other_hash(loss, lam)


def _other_hash(loss: Loss | None, lam: float) -> str:
    if loss is None:
        return f"{ANOTHER}: its hash is not that of the given data; give the same data as for the solve."
    values = {"lam": float(lam), **{name: float.fromhex(value) for name, value in loss.parameters.items()}}
    parameters = " and ".join(f"{name} = {value!r}" for name, value in values.items())
    return (
        f"{ANOTHER}: its hash is not that of the given data with {parameters}; give the data and options of the solve, "
        "such as --lam and --force-in."
    )
