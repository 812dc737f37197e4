"""Searches of tables of some of the columns, with the files they write: proof, trace, checkpoint.

A checkpoint is that of the table's search, with the columns of the table besides; a trace is that of the last table,
whose columns are named by their numbers among all where they have no names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from exactsel.errors import InputError, option
from exactsel.problem.fit import Fit
from exactsel.problem.regression import Problem
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.database import COMPANIONS
from exactsel.search.memory import MEBIBYTE
from exactsel.solving.checkpoint_shapes import HOW, check_begun
from exactsel.solving.checkpointing import LIMITS, SearchMode, begin, resume, settings_now
from exactsel.solving.fallback import run_in_time
from exactsel.solving.result import Result
from exactsel.solving.run import Files, observed
from exactsel.solving.screened_proof import ScreenedProof
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel.types import IntArray

SAVED_FOR = ("hash", "columns", "size", "support", "proof")
"""What a checkpoint says of a table, see :class:`TableSearches`."""


VECTORS = 16
"""Vectors of a number for each column that bounds of columns take."""


def memory_of_data(problem: Problem) -> float:
    """MiB that data which are held as no table, and a pass over them, take."""
    data: Any = problem.AT
    return float(data.bytes_in_memory + VECTORS * 8 * problem.d) / MEBIBYTE


class TableSearches:
    """Runs the searches of tables, one after the other.

    Parameters
    ----------
    problem : Problem
        The problem on all columns.
    files : Files
        To write, or to continue.
    how : How
    given : mapping
        The settings of the call, by name.
    """

    def __init__(self, problem: Problem, files: Files, how: SearchMode, options: Mapping[str, Any]) -> None:
        self._problem, self._files, self._how = problem, files, how
        self._given = {name: value for name, value in options.items() if name != "heuristics"}
        self.columns: IntArray | None = None
        """Those of the table to continue with; None where none was saved."""
        self.size: int | None = None
        """The number of columns that table was to have, besides the model's own."""
        self.fit: Fit | None = None
        """The model that bounds of columns are made from."""
        target, self.settings = files.proof, Settings(**options)
        """Those of the checkpoint where there is one, but for limits."""
        if files.resume is not None:
            said = _begun_with(files.resume)
            about, self.settings = said["screened"], settings_now(Path(files.resume), said["settings"], self._given)
            if about["hash"] != problem.hash:
                raise InputError(
                    f"{files.resume} is about another problem; give the one it was begun with, or begin a new search."
                )
            if "memory_limit" not in options:  # what was left for the table was saved
                whole = self.settings.memory_limit + memory_of_data(problem)
                self.settings = replace(self.settings, memory_limit=whole)
            self.columns = np.array(about["columns"], dtype=np.int64)
            self.fit, self.size = problem.fit(about["support"]), about["size"]
            target = target if target is not None or about["proof"] is None else about["proof"]
        self.proof = None if target is None else ScreenedProof(problem, target)

    @property
    def names_columns(self) -> bool:
        """Whether columns without names are named by their numbers."""
        return self._files.trace is not None

    def run(
        self, table: Problem, columns: IntArray, size: int, support: Sequence[int], settings: Settings,
        start: Sequence[int], signals: Sequence[int],
    ) -> Result:  # fmt: skip
        """The result of the search of a table; ``support`` is the model that bounds of columns are made from."""
        proof = None if self.proof is None else self.proof.of_table
        files = replace(self._files, proof=proof, checkpoint=None, resume=None)
        more: dict[str, Any] = {
            "signals": signals, "listing": self._how.listing, "shown": proof is not None, "details": self._how.details,
        }  # fmt: skip
        if self._files.saved:
            return self._saved(table, columns, size, support, settings, start, files, more)
        search = Search(table, settings, start=start, **more)
        return run_in_time(search) if proof is None and files.trace is None else observed(search, (), files, False)

    def _saved(
        self, table: Problem, columns: IntArray, size: int, support: Sequence[int], settings: Settings,
        start: Sequence[int], files: Files, more: dict[str, Any],
    ) -> Result:  # fmt: skip
        path = self._files.checkpoint if self._files.resume is None else self._files.resume
        assert path is not None
        if self.columns is not None:
            self.columns, self._begun = None, True
            limits = {name: getattr(settings, name) for name in LIMITS if name in self._given or name == "time_limit"}
            going = resume(path, table, self._given | limits, files.proof, self._how)
            with closing(going.checkpoint):
                more |= {"state": going.state, "compiled": True, "room": going.checkpoint}
                search = Search(table, going.settings, start=start if going.state is None else None, **more)
                return observed(search, (), replace(files, proof=going.proof), False, going.checkpoint, going)
        # The search of the table before has ended, so nothing is lost with it.
        for ending in ("", *COMPANIONS) if self._begun else ():
            Path(f"{os.fspath(path)}{ending}").unlink(missing_ok=True)
        self._begun = True
        target = None if self.proof is None else os.path.abspath(self.proof.path)
        values = (self._problem.hash, columns.tolist(), size, [int(j) for j in support], target)
        about = dict(zip(SAVED_FOR, values, strict=True))
        with closing(begin(path, table, settings, self._how, files.proof, screened=about)) as checkpoint:
            more |= {"compiled": True, "room": checkpoint}
            return observed(Search(table, settings, start=start, **more), (), files, False, checkpoint)

    _begun = False


def _begun_with(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a checkpoint says of the table its search is about, and of the settings."""
    with closing(Checkpoint.open(path, writing=False)) as checkpoint:
        about = checkpoint.about()
    check_begun(Path(path), about, how=HOW)
    if "screened" not in about:
        raise InputError(
            f"{path} is not of sparse data that stay sparse; give the instance it was begun with, or leave "
            f"{option('resume')} out."
        )
    return about
