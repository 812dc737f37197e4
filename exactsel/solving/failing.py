"""What is kept of a search that contradicted itself: an instance file, and beside it the words to see it again by.

``exactsel reduce`` reads both, says whether it still happens, and makes them small.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from exactsel._version import __version__
from exactsel.data.instance import Instance, write_instance
from exactsel.errors import InputError, InvariantError
from exactsel.files import write_bytes
from exactsel.plain import writable
from exactsel.problem.hierarchy import Hierarchy
from exactsel.problem.interface import SubsetProblem
from exactsel.search.state import SearchState
from exactsel.solving.settings import Settings
from exactsel.types import FloatArray

FORMAT = 1

CONTRADICTION = "the search contradicts itself"
"""The class such findings belong to."""


def write_files(file: Path, instance: Instance, words: dict[str, Any]) -> None:
    """Write an instance file, and its words as ``file``, a .json file beside it."""
    write_instance(file.with_suffix(".npz"), instance)
    write_bytes(file, json.dumps({"exactsel_reproducer": FORMAT, "version": __version__, **words}, indent=1).encode())


def kept(
    error: InvariantError,
    problem: SubsetProblem,
    settings: Settings,
    state: SearchState,
    folder: str | os.PathLike[str],
) -> InvariantError:
    """The error with the files to see it again by; in the folder of temporary files where ``folder`` takes none."""
    words = {
        "kind": "search", "seed": settings.seed, "relation": "", "what": CONTRADICTION, "detail": str(error),
        "round": state.rounds, "nodes": state.nodes, "tree_hash": state.tree_hash, "problem_hash": problem.hash,
    }  # fmt: skip
    instance, entries = _given(problem)
    words["instance"] = entries | {"settings": _said(settings)}
    for place in (folder, tempfile.gettempdir()):
        file = Path(place) / f"exactsel-failure-{problem.hash[:8]}-{state.rounds}.json"
        try:
            write_files(file, instance, words)
        except (InputError, OSError):
            continue
        told = InvariantError(
            f"{error} This is a defect of exactsel: do not rely on the result. {file} and the .npz file beside it hold "
            f"the instance, settings, seed and round: exactsel reduce {file} makes them small enough to report."
        )
        told.reproducer = str(file)
        return told
    return error


def _said(settings: Settings) -> dict[str, Any]:
    """The settings that are not left at their default."""
    default = Settings().as_dict()
    return {name: writable(value) for name, value in settings.as_dict().items() if value != default[name]}


def _given(problem: SubsetProblem) -> tuple[Instance, dict[str, Any]]:
    """The data as they were given, and what else makes the problem."""
    objective, units = problem.objective, problem.units
    entries: dict[str, Any] = {
        "k": problem.k, "loss": "css", "lam": 0.0, "delta": 1.0, "intercept": False, "scale": False,
        "must_have": list(units.must_have), "must_not": list(units.must_not), "groups": _labels(problem),
        "hierarchy": [], "hierarchy_kind": "strong",
    }  # fmt: skip
    if isinstance(units.constraint, Hierarchy):
        entries["hierarchy_kind"] = units.constraint.kind
        entries["hierarchy"] = [[j, list(map(int, above))] for j, above in enumerate(units.constraint.parents) if above]
    if objective is None:
        return Instance(problem.A, np.zeros(problem.n), k=problem.k), entries
    made = objective.preparation
    A, y = (objective.A, objective.y) if made is None else (made.AT.T, made.y)
    weights: FloatArray | None = None if made is None else made.weights
    delta = float(objective.loss_parameters.get("delta", 1.0))
    centred, scaled = (False, False) if made is None else (made.centred, made.scaled)
    entries |= {"loss": objective.loss.name, "lam": objective.lam, "delta": delta}
    entries |= {"intercept": bool(centred), "scale": bool(scaled)}
    given = Instance(
        np.asarray(A), np.asarray(y), k=problem.k, lam=objective.lam, loss=objective.loss.name,
        delta=delta if objective.loss.name == "huber" else None, weights=weights, intercept=bool(centred),
        groups=None if entries["groups"] is None else tuple(entries["groups"]),
    )  # fmt: skip
    return given, entries


def _labels(problem: SubsetProblem) -> list[str] | None:
    """The group of each column, by number, and nothing for one on its own; None where there are no groups."""
    groups = problem.units.groups
    if not groups:
        return None
    labels = [""] * sum(map(len, groups))
    for number, columns in enumerate(groups):
        for j in columns if len(columns) > 1 else ():
            labels[j] = f"g{number}"
    return labels
