"""The disk cache of one kernel: every file ends with a hash of what it holds, and one that is damaged is not read."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from exactsel._jit.telling import compiling_begins
from exactsel.interrupts import half_written

_PROCESS = uuid.uuid4().hex[:12]
_HASH_BYTES = hashlib.sha256().digest_size


def _intact(file: str) -> bool:
    """Whether a cached file can be read and holds what was written; one that does not is removed."""
    try:
        content = Path(file).read_bytes()
        if hashlib.sha256(content[:-_HASH_BYTES]).digest() == content[-_HASH_BYTES:]:
            return True
        os.unlink(file)
    except OSError:
        pass
    return False


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel, each with a hash behind it."""

    def _data_name(self, number: int) -> str:
        # Numba numbers these files, so two processes that compile a kernel for two losses at once can pick the same
        # number, and the index then sends one loss to the other's machine code. A fork copies _PROCESS.
        return str(self._data_name_pattern.format(number=number)).replace(
            f".{number}.nbc", f".{_PROCESS}-{os.getpid()}-{number}.nbc"
        )

    def _load_index(self) -> Any:
        return super()._load_index() if _intact(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _intact(path):
            raise FileNotFoundError(path)
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        yield content
        held = content.getvalue()
        temporary = f"{filepath}.{_PROCESS}-{os.getpid()}-{threading.get_ident()}"
        with half_written(temporary):
            try:
                Path(temporary).write_bytes(held + hashlib.sha256(held).digest())
                os.replace(temporary, filepath)
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise


class KernelCache(FunctionCache):  # type: ignore[misc]
    """A disk cache that may fail: then the kernel is compiled as if there were none."""

    def __init__(self, py_function: Any) -> None:
        super().__init__(py_function)
        self._cache_file.__class__ = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None."""
        loaded = None
        with suppress(Exception):  # whatever the files of another version make of themselves
            loaded = super().load_overload(sig, target_context)
        if loaded is None:
            compiling_begins(self._py_func.__name__)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write it, if that can be done."""
        with suppress(OSError):  # a full disk, say
            super().save_overload(sig, data)
