"""Who works on the shards of a search: nobody but this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

from typing import Any

from exactsel.errors import InputError, UnsupportedError, did_you_mean
from exactsel.search.pool import Executor

NAMES = ("serial", "processes", "dask")


def executor_for(asked: Any, workers: int | None = None, scheduler: str | None = None) -> Executor | None:
    """The executor somebody asks for; None for this process alone.

    Parameters
    ----------
    asked : str, Executor or distributed.Client
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
    if asked is None:
        return None
    if asked not in NAMES and isinstance(asked, str):
        raise InputError(f"there is no executor {asked!r}{did_you_mean(asked, NAMES)}; use {', '.join(NAMES)}.")
    if scheduler is not None and asked != "dask":
        raise InputError("a scheduler is given, but only the executor dask has one; give --executor dask too.")
    if asked == "serial":
        return None
    if asked == "processes":
        from exactsel.solving.processes import ProcessExecutor

        return ProcessExecutor(workers)
    if asked == "dask" or hasattr(asked, "scheduler_info"):
        return _dask(None if asked == "dask" else asked, workers, scheduler)
    if not all(hasattr(asked, name) for name in ("begin", "submit", "close", "name")):
        raise InputError(f"executor is {asked!r}, but it must be {', '.join(NAMES)}, a Dask client or an executor.")
    made: Executor = asked
    return made


def _dask(client: Any, workers: int | None, scheduler: str | None) -> Executor:
    try:
        from exactsel.solving.dask_executor import DaskExecutor
    except ImportError:
        raise UnsupportedError("the executor dask needs Dask; pip install 'exactsel[dask]'.") from None
    return DaskExecutor(client, workers=workers, scheduler=scheduler)
