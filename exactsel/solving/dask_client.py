"""A connection to a Dask scheduler that opens nothing a worker has packed.

Dask's own client unpickles results, exceptions, types and the answers of plug-ins on arrival, and unpickling runs any
code in the sender's message. This one takes all of them unopened. Of a result it reads the bytes of a ``bytes`` object,
which lie in the message as they are; anything else is no answer.
"""

from __future__ import annotations

import gc
from typing import Any, cast

from distributed import Client, LocalCluster
from distributed.protocol.compression import decompress
from distributed.protocol.serialize import Serialized

from exactsel.errors import UnsupportedError

FAMILY, KINDS = "dask", ("bytes", "builtins.bytes")
"""How Dask marks the bytes of a ``bytes`` object."""


class UnopenedClient(Client):
    """A client whose results are what :func:`bytes_of` reads."""

    def start(self, **kwargs: object) -> None:
        """Connect."""
        if not getattr(self.rpc, "deserialize", False) or not isinstance(self.connection_args, dict):
            raise UnsupportedError("this version of Dask cannot leave answers unopened; install another version.")
        self.rpc.deserialize = False
        self.connection_args = {**self.connection_args, "deserialize": False}
        cast(Any, super()).start(**kwargs)

    def _handle_key_in_memory(self, key: object = None, type: object = None, workers: object = None) -> None:
        cast(Any, super())._handle_key_in_memory(key=key, type=None, workers=workers)

    def _handle_task_erred(self, key: object = None, exception: object = None, traceback: object = None) -> None:
        failed = RuntimeError("a worker failed in a way of its own, which is not looked at")
        cast(Any, super())._handle_task_erred(key=key, exception=failed, traceback=None)

    async def _handle_event(self, topic: object, event: object) -> None:
        """Workers can have nothing printed or warned of here."""

    def add_plugin(self, packed: bytes, name: str) -> None:
        """Send a packed plug-in to all workers; their answers are not read."""
        scheduler, run = cast(Any, self.scheduler), cast(Any, self.sync)
        run(scheduler.register_worker_plugin, plugin=packed, name=name, idempotent=False)

    def drop_plugin(self, name: str) -> None:
        """Take it back."""
        scheduler, run = cast(Any, self.scheduler), cast(Any, self.sync)
        run(scheduler.unregister_worker_plugin, name=name)

    def leave(self) -> None:
        """Close the connection."""
        cast(Any, self.close)(timeout=2)


def connected(address: str | LocalCluster, **options: object) -> UnopenedClient:
    """A connection to the scheduler at an address, or of a cluster; answers come by way of the scheduler by default."""
    factory: Any = UnopenedClient
    # Garbage may hold a client that was never closed. Closing it takes a lock of Dask's, which this thread holds while
    # a new one starts: it would wait for itself.
    collects = gc.isenabled()
    gc.disable()
    try:
        client: UnopenedClient = factory(address, **{"set_as_default": False, "direct_to_workers": False, **options})
    finally:
        if collects:
            gc.enable()
    return client


def bytes_of(answer: object) -> bytes | None:
    """What a worker has returned, where that is bytes; None otherwise."""
    if not isinstance(answer, Serialized):
        return None
    header, frames = answer.header, answer.frames
    if not (isinstance(header, dict) and header.get("serializer") == FAMILY and header.get("type") in KINDS):
        return None
    try:
        parts = decompress(header, frames) if "compression" in header else frames
        return b"".join(map(bytes, parts))
    except Exception:  # damaged frames may raise anything in Dask's compressions
        return None


__all__ = ["UnopenedClient", "bytes_of", "connected"]
