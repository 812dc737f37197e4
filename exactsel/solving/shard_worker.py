"""The data a worker needs to expand nodes of a search: the problem, the settings, and nothing else."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from exactsel._jit import new_flag
from exactsel.bounds.base import BoundOptions, PreparedBound
from exactsel.closers.base import RegionSolver
from exactsel.errors import InputError, UnsupportedError, option
from exactsel.problem.interface import Statement, SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.search.count_parts import COUNT, counted_bytes
from exactsel.search.expand import Expander
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packing import Packed
from exactsel.search.pool import round_bytes, shard_from
from exactsel.solving.choose import Methods, methods_for
from exactsel.solving.serialize import given, made_again
from exactsel.solving.settings import Settings, settings_of
from exactsel.to_plain import writable
from exactsel.types import BoolArray

FORMAT = 2


def job_bytes(problem: SubsetProblem, settings: Settings) -> bytes:
    """A search in the form that its workers receive.

    Raises
    ------
    UnsupportedError
        For plug-ins that are objects, and problems that cannot be serialized.
    """
    said = settings.as_dict()
    for name, setting in settings_of().items():
        if setting.plug_ins and not isinstance(getattr(settings, name), str):
            raise UnsupportedError(
                f"workers find plug-ins by name, but {name} is an object; register it as an entry point, and give "
                f"{option(name)} its name, or leave the executor out."
            )
    held, entries = given(problem)
    arrays: dict[str, Any] = {"A": np.asarray(held.A), "y": np.asarray(held.y)}
    if held.weights is not None:
        arrays["weights"] = np.asarray(held.weights)
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    header = {
        "job": FORMAT, "hash": problem.hash, "entries": entries,
        "settings": {name: writable(value) for name, value in said.items()},
    }  # fmt: skip
    return to_bytes(Packed(header, arrays))


def key_of(job: bytes) -> str:
    """What a job is known by."""
    return hashlib.sha256(job).hexdigest()


def expander_of(
    problem: SubsetProblem, settings: Settings, methods: Methods, bound: PreparedBound, options: BoundOptions,
    statement: Statement, first: Sequence[RegionSolver] = (),
) -> Expander:  # fmt: skip
    """The expander of nodes; the same for equal arguments."""
    tolerance = settings.tolerance.of(problem).for_search(statement.taken)
    return Expander(
        problem, methods.tree, methods.branching, bound, tolerance, options.threads,
        enumeration=methods.enumeration(problem, bound, options),
        native=methods.native(problem, bound, options),
        counter=methods.counter(problem, bound, options), cheaper=methods.cheaper(problem, bound, options),
        plug_in=methods.closer, stop=options.stop, first=first,
    )  # fmt: skip


class ShardWorker:
    """Works on shards of one search.

    Parameters
    ----------
    job : bytes
        What :func:`job_bytes` has made; :class:`exactsel.errors.InputError` where it is damaged, or makes another
        problem here than where it comes from.
    """

    def __init__(self, job: bytes) -> None:
        packed = from_bytes(job)
        header, arrays = packed.header, packed.arrays
        if header.get("job") != FORMAT:
            raise InputError("what was sent is no search of this version; run the same exactsel everywhere.")
        self.problem = made_again(arrays["A"], arrays["y"], arrays.get("weights"), header["entries"])
        if self.problem.hash != header["hash"]:
            raise InputError("the problem came out as another one here; run the same exactsel everywhere.")
        settings = Settings(**_settings(header["settings"]))
        methods = methods_for(self.problem, settings)
        self.stop: BoolArray = new_flag()
        options = BoundOptions(1, settings.warm_start, settings.force_quit, settings.time_limit, stop=self.stop)
        bound = methods.bound.prepare(self.problem, options)
        statement = statement_of(self.problem)
        self._expander = expander_of(self.problem, settings, methods, bound, options, statement)

    def expanded(self, shard: bytes) -> bytes:
        """The outcome of a shard, or of a part of a count."""
        packed = from_bytes(shard)
        if COUNT in packed.header:
            return counted_bytes(packed, self.problem, self._expander.counter)
        return round_bytes(self._expander.expand(*shard_from(packed, self.problem)))


def _settings(said: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in said.items() if name in settings_of()}
    if settings.get("memory_limit") is None:
        settings["memory_limit"] = math.inf
    return settings
