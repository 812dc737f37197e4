"""Reproducers of searches that contradicted themselves: an instance file, and the command to repeat the search.

``exactsel dev reduce`` reads both, says whether it still happens, and makes them small.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from exactsel._version import __version__
from exactsel.data.instance import Instance, write_instance
from exactsel.errors import InputError, InvariantError
from exactsel.files import write_bytes
from exactsel.problem.interface import SubsetProblem
from exactsel.search.state import SearchState
from exactsel.solving.serialize import given
from exactsel.solving.settings import Settings
from exactsel.to_plain import writable

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
    instance, entries = given(problem)
    words["instance"] = entries | {"settings": _said(settings)}
    for place in (folder, tempfile.gettempdir()):
        file = Path(place) / f"exactsel-failure-{problem.hash[:8]}-{state.rounds}.json"
        try:
            write_files(file, instance, words)
        except (InputError, OSError):
            continue
        failure = InvariantError(
            f"{error} This is a defect of exactsel: do not rely on the result. {file} and the .npz file beside it hold "
            f"the instance, settings, seed and round: exactsel dev reduce {file} makes them small enough to report."
        )
        failure.reproducer = str(file)
        return failure
    return error


def _said(settings: Settings) -> dict[str, Any]:
    """The settings that are not left at their default."""
    default = Settings().as_dict()
    return {name: writable(value) for name, value in settings.as_dict().items() if value != default[name]}
