"""From a config to the jobs of a sweep: the product of the lists in each of its tables.

::

    [defaults]                       # for every [[sweep]] that does not say otherwise
    time_limit = 10                  # seconds for each job

    [[sweep]]
    instances = ["data/*.npz"]       # named from the config's folder on
    k = [2, 4, 8]
    lam = [0.01, 0.1]
    method = ["solve", "omp", {name = "solve", bound = "apg"}]
    seed = [0, 1, 2]

The words are those of :data:`exactsel.studies.sweeps.keys.KEYS`.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exactsel import registry
from exactsel.data.arrays import read_text
from exactsel.errors import InputError, did_you_mean
from exactsel.problem.reconstruction import Reconstruction
from exactsel.solving.settings import Settings, settings_of
from exactsel.start.models import resolve
from exactsel.start.portfolio import AUTO
from exactsel.studies.heuristics import make
from exactsel.studies.sweeps.jobs import SOLVE, Job
from exactsel.studies.sweeps.keys import DEMANDS, GENERATOR, KEYS, LIMITS, READING, checked
from exactsel.studies.sweeps.sources import Source, file_source, files_named, generated_source
from exactsel.types import Scalar

SECONDS = 60.0
"""The time limit of a job that is given neither seconds nor nodes."""

MOST_JOBS = 200_000
"""Of a sweep; what it holds in memory of each is some kilobytes."""

PATIENCE, COMPILING = 3.0, 300.0
"""Times its time limit, and seconds more, in which a job must have ended: kernels may have to be compiled first."""

LONGEST = 3600.0
"""Seconds in which a job without a time limit must have ended."""

NO_TARGET = ("loss", "lam", "delta", *DEMANDS)
"""What column subset selection has no use for."""


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a TOML file says.

    Raises
    ------
    InputError
        Where it cannot be read.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    file = Path(path)
    try:
        return tomllib.loads(read_text(file))
    except FileNotFoundError:
        raise InputError(f"there is no file {file}; check the name and the folder.") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); check its permissions.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{file} is no TOML ({why}); correct it there.") from None
    except ValueError:
        raise InputError(f"{file} is no text in UTF-8, which a config must be; write it again.") from None


@dataclass(frozen=True)
class _Place:
    """Where instances are looked for."""

    base: Path
    apart: tuple[str, ...]
    """Absolute paths of files that a pattern does not mean: what the sweep itself writes."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Of the files that have been read."""


def jobs_of(
    config: Mapping[str, Any], base: str | os.PathLike[str] = ".", apart: Sequence[str | os.PathLike[str]] = ()
) -> list[Job]:  # fmt: skip
    """The jobs of a config in its order, each once.

    Parameters
    ----------
    config : mapping
        ``sweep``, a list of tables, and ``defaults``, a table, with the :data:`exactsel.studies.sweeps.keys.KEYS`.
    base : path
        The folder from which relative paths are named.
    apart : sequence of path
        Files that no pattern means, such as the table of the sweep before.

    Raises
    ------
    InputError
        For unknown words, values that are none, instances that are not there, and methods that cannot be made.
    """
    other = next((name for name in config if name not in ("defaults", "sweep")), None)
    if other is not None:
        keys = ("defaults", "sweep")
        raise InputError(
            f"the config holds '{other}'{did_you_mean(other, keys)}; it may hold [defaults] and tables [[sweep]]."
        )
    tables = config.get("sweep", [])
    tables = [tables] if isinstance(tables, Mapping) else tables
    defaults = config.get("defaults", {})
    if not isinstance(defaults, Mapping) or not _are_tables(tables):
        raise InputError("a config holds one table [defaults] and a table [[sweep]] for each grid; write it so.")
    if not tables:
        raise InputError("the config holds no table [[sweep]], so there is nothing to run; add one.")
    usual = checked(defaults, KEYS, "in [defaults]")
    place = _Place(Path(base), tuple(map(os.path.abspath, apart)))
    jobs: dict[str, Job] = {}
    for number, table in enumerate(tables, 1):
        where = f"in [[sweep]] number {number}"
        for job in _grid({**usual, **checked(table, KEYS, where)}, place, where):
            jobs.setdefault(job.key, job)
            if len(jobs) > MOST_JOBS:
                raise _too_many(f"the config holds more than {MOST_JOBS}")
    return list(jobs.values())


def _are_tables(tables: object) -> bool:
    return isinstance(tables, Sequence) and all(isinstance(table, Mapping) for table in tables)


def _too_many(clause: str) -> InputError:
    return InputError(f"{clause} jobs, but a sweep holds at most {MOST_JOBS}; give shorter lists, or several sweeps.")


def _grid(table: Mapping[str, Any], place: _Place, where: str) -> Iterator[Job]:
    """The jobs of one table."""
    kind = table.get("problem", "regression")
    _check_kind(table, kind, where)
    lists = [table.get(name, [None]) for name in ("k", "lam")]
    losses = _losses(table, where)
    methods = [_made(method, table, where) for method in table.get("method", [{"name": SOLVE}])]
    seeds = table.get("seed", [0])
    sources = _sources(table, place, where)
    if math.prod(map(len, (sources, *lists, losses, methods, seeds))) > MOST_JOBS:
        raise _too_many(f"{where} there are more than {MOST_JOBS}")
    demands = {name: table[name] for name in DEMANDS if name in table}
    for source, k, lam, (loss, delta), spec, seed in itertools.product(sources, *lists, losses, methods, seeds):
        parameters = {"k": k, "lam": lam, "loss": loss, "delta": delta}
        problem = {name: value for name, value in parameters.items() if value is not None}
        settings = spec["settings"]
        yield Job(
            source, kind, {**problem, **demands}, spec["method"], spec["options"], settings, seed,
            table.get("give_up_after", _patience(settings.get("time_limit"))),
        )  # fmt: skip


def _check_kind(table: Mapping[str, Any], kind: str, where: str) -> None:
    foreign = next((name for name in NO_TARGET if name in table), None)
    if kind == Reconstruction.kind and foreign is not None:
        raise InputError(f"{where}, {foreign} is given, but column subset selection has no {foreign}; leave it out.")


def _patience(time_limit: float | None) -> float:
    return LONGEST if time_limit is None else PATIENCE * time_limit + COMPILING


def _losses(table: Mapping[str, Any], where: str) -> list[tuple[str | None, float | None]]:
    """Losses, those with a threshold with each of them."""
    losses, deltas = table.get("loss", [None]), table.get("delta", [None])
    with_delta = {loss for loss in losses if loss is not None and registry.has_delta(loss)}
    if "delta" in table and not with_delta:
        raise InputError(f"{where}, delta is given, but no loss has it; add 'huber' to loss, or leave delta out.")
    return [(loss, delta) for loss in losses for delta in (deltas if loss in with_delta else [None])]


def _sources(table: Mapping[str, Any], place: _Place, where: str) -> list[Source]:
    """The instances of a table, those in files first, each once."""
    if "instances" not in table and "generate" not in table:
        raise InputError(f"{where} there is no instance; give instances = ['data/*.npz'], or generate.")
    reading = {name: table[name] for name in READING if name in table}
    if {"factors", "formula"} & {*reading} and table.get("intercept") is False:
        reading["all_levels"] = True
    there = place.base, place.apart
    try:
        names = dict.fromkeys(name for pattern in table.get("instances", []) for name in files_named(pattern, *there))
        sources = [file_source(name, place.base, reading, place.hashes) for name in names]
        return [*sources, *(generated_source(generator) for generator in _generators(table.get("generate", ())))]
    except InputError as error:
        raise InputError(f"{where}, {error}") from None


def _generators(tables: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for table in tables:
        if "name" not in table:
            raise InputError("generate names no generator; give name = 'hard', say.")
        names = [name for name in GENERATOR if name in table]
        if math.prod(len(table[name]) for name in names) > MOST_JOBS:
            raise _too_many(f"generate makes more than {MOST_JOBS}")
        for values in itertools.product(*(table[name] for name in names)):
            yield dict(zip(names, values, strict=True))


def _made(method: Mapping[str, Any], table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A method with all of its settings, found to be one."""
    name, limits = str(method["name"]), {key: table[key] for key in LIMITS if key in table}
    if not {"time_limit", "node_limit"} & {*limits, *method}:
        limits["time_limit"] = SECONDS
    try:
        options = {key: _plain(value) for key, value in method.items() if key != "name"}
        if name == SOLVE:
            return {"method": name, "options": {}, "settings": _of_solve({"threads": 1, **limits, **options})}
        names = [SOLVE, *registry.names("heuristics")]
        if name not in names:
            raise InputError(f"there is no method '{name}'{did_you_mean(name, names)}; known are {', '.join(names)}.")
        make(name, options)
    except (InputError, TypeError) as error:
        said = str(error) if isinstance(error, InputError) else f"the settings of '{name}' cannot be used ({error})."
        raise InputError(f"{where}, {said}") from None
    limits.pop("node_limit", None)  # the bound of a heuristic is the root's, or what the search proves in its time
    return {"method": name, "options": options, "settings": {"threads": 1, **limits}}


def _of_solve(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of the search, as plain data, found to be such."""
    schema = settings_of()
    for name, value in settings.items():
        if name == "seed":
            raise InputError("seed is given with a method, but it is a key of the table; give it there.")
        if name not in schema:
            words = [word for word in schema if word != "seed"]
            raise InputError(
                f"'{name}' is no setting of solve{did_you_mean(name, words)}; its settings are {', '.join(words)}."
            )
        if schema[name].plug_ins and not isinstance(value, str):
            raise InputError(f"{name} is {value!r}, but a name was expected; give one that exactsel dev plugins lists.")
        if schema[name].plug_ins and value != "auto":
            registry.load(schema[name].plug_ins, value)
    spec = Settings(**settings)
    if spec.heuristics != AUTO:
        resolve(spec.heuristics)
    return {name: list(spec.heuristics) if name == "heuristics" else getattr(spec, name) for name in settings}


def _plain(value: object) -> Scalar | list[str]:
    """A setting as JSON can hold it; :class:`InputError` where it is a date, a table or not finite."""
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return list(value)
    if isinstance(value, bool | str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise InputError(f"{value!r} is no setting of a method; give a finite number, a text, true or false.")
