"""Executors for the shards of a search: this process alone, processes of this machine, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from exactsel.arguments import shown
from exactsel.errors import InputError, UnsupportedError, did_you_mean, option
from exactsel.search.pool import SHARD, Executor

if TYPE_CHECKING:
    from distributed import Client

    from exactsel.solving.dask_executor import DaskExecutor

NAMES = ("serial", "processes", "dask")


def executor_for(executor: object, workers: int | None = None, scheduler: str | None = None) -> Executor | None:
    """The executor for the option's value; None for this process alone.

    Parameters
    ----------
    executor : str, Executor or distributed.Client
        One of :data:`NAMES`, an object made before, or a client of a cluster.
    workers : int, optional
        How many processes, or workers of a cluster that is made here.
    scheduler : str, optional
        Address of a Dask scheduler.

    Raises
    ------
    InputError
        For something else, and what does not go together.
    """
    if executor is None:
        return None
    if not isinstance(executor, str):
        return _made_before(executor, workers, scheduler)
    if executor not in NAMES:
        raise InputError(f"there is no executor {executor!r}{did_you_mean(executor, NAMES)}; use {', '.join(NAMES)}.")
    if scheduler is not None and executor != "dask":
        raise InputError(
            f"a scheduler is given, but only the executor dask has one; give {option('executor', 'dask')} too."
        )
    if executor == "serial":
        return None
    if executor == "processes":
        from exactsel.solving.processes import ProcessExecutor

        return ProcessExecutor(workers)
    return _dask(None, workers, scheduler)


def _made_before(candidate: Any, workers: int | None, scheduler: str | None) -> Executor:
    """An executor that was made before, or that of a client of a cluster."""
    if scheduler is not None:
        raise InputError(
            f"a scheduler is given, but only the executor dask has one; give {option('executor', 'dask')} too."
        )
    if hasattr(candidate, "scheduler_info"):
        return _dask(candidate, workers, None)
    if not all(hasattr(candidate, name) for name in ("begin", "submit", "close", "name")):
        raise InputError(
            f"executor is {shown(candidate)}, but it must be {', '.join(NAMES)}, a Dask client or an executor."
        )
    executor: Executor = candidate
    return executor


@dataclass(frozen=True)
class Workers:
    """The workers shared by several searches that run one after the other."""

    executor: object = None
    """As :func:`executor_for` takes it."""
    workers: int | None = None
    scheduler: str | None = None

    @property
    def asked(self) -> bool:
        """Whether searches are divided into shards, be it for this process alone."""
        return self.executor is not None

    @contextmanager
    def engaged(self) -> Iterator[Any]:
        """What each search is given as its executor; a cluster that is made or found here serves all of them."""
        executor = executor_for(self.executor, self.workers, self.scheduler)
        if executor is None:
            yield self.executor
        elif executor.name == "dask":
            cluster = cast("DaskExecutor", executor)
            with cluster.held():
                yield cluster
        else:
            yield executor


def in_shards(options: Mapping[str, Any], workers: Workers, resumed: bool) -> dict[str, Any]:
    """The options with a default shard size, where workers are requested without one; a file contains its own."""
    is_set = not workers.asked or resumed or options.get("shard") is not None
    return {**options} if is_set else {**options, "shard": SHARD}


def _dask(client: Client | None, workers: int | None, scheduler: str | None) -> Executor:
    try:
        from exactsel.solving.dask_executor import DaskExecutor
    except ImportError:
        raise UnsupportedError("the executor dask needs Dask; pip install 'exactsel[dask]'.") from None
    return DaskExecutor(client, workers=workers, scheduler=scheduler)
