"""The disk cache of one kernel: every file ends with a hash of what it holds, and one that is damaged is not read.

A kernel that is given a loss from elsewhere is cached in a folder named by what the compiler takes from that loss.
Where a kernel's own file lies plays no part: a second checkout or environment finds what the first has compiled.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import config, sigutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.types import BaseNamedTuple, BaseTuple, Optional  # type: ignore[attr-defined]

from exactsel._jit.fingerprint import PREFIX, fingerprint
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


class _Place(FunctionCache._impl_class._locator_classes[0]):  # type: ignore[misc]
    """Where the files of one kernel are, and what its source holds."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """A folder named as that of the source, wherever that is; the name of the one above tells what is in it."""
        return Path(py_file).absolute().parent.name

    def get_source_stamp(self) -> str:
        """Of the content, not of the file."""
        return hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()


class _Places(FunctionCache._impl_class):  # type: ignore[misc]
    _locator_classes = (_Place,)  # the other places numba knows are looked at by nobody for who may write there


@contextmanager
def caching_in(folder: str | None) -> Iterator[None]:
    """Let numba look for its caches in a folder; None for where it would."""
    before = config.CACHE_DIR
    config.CACHE_DIR = before if folder is None else folder
    try:
        yield
    finally:
        config.CACHE_DIR = before


class KernelCache(FunctionCache):  # type: ignore[misc]
    """A disk cache that may fail: then the kernel is compiled as if there were none.

    Parameters
    ----------
    py_function : function
        The kernel.
    folder : str, optional
        Where to keep it; numba's own folder without.
    """

    _impl_class = _Places

    def __init__(self, py_function: Any, folder: str | None = None) -> None:
        with caching_in(folder):
            super().__init__(py_function)
        self._cache_file.__class__ = _Files
        self._folder = folder
        self._parts: dict[str, KernelCache] = {}

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None."""
        loaded = None
        with suppress(Exception):  # whatever the files of another version make of themselves
            part = self._part_for(sig)
            loaded = None if part is None else FunctionCache.load_overload(part, sig, target_context)
        if loaded is None:
            compiling_begins(self._py_func.__name__)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write it, if that can be done."""
        with suppress(OSError, RuntimeError):  # a full disk, say, or a folder that is gone
            part = self._part_for(sig)
            if part is not None:
                FunctionCache.save_overload(part, sig, data)

    def _part_for(self, signature: Any) -> KernelCache | None:
        """The cache for these types; None where nothing may be kept for them."""
        names = [fingerprint(cls) for cls in classes_from_elsewhere(sigutils.normalize_signature(signature)[0])]
        if not names:
            return self
        name = "-".join(found for found in names if found is not None)
        if None in names or self._folder is None:
            return None
        if name not in self._parts:
            self._parts[name] = KernelCache(self._py_func, str(Path(self._folder) / f"loss-{name}"))
        return self._parts[name]


def classes_from_elsewhere(arguments: Iterable[Any]) -> list[type]:
    """The classes of the losses among the types of arguments that are not our own."""
    found: dict[type, None] = {}
    for kind in arguments:
        if isinstance(kind, BaseNamedTuple):
            cls = kind.instance_class
            ours = cls.__module__.partition(".")[0] == "exactsel"
            if not ours and any(name.startswith(PREFIX) for name in dir(cls)):
                found[cls] = None
        if isinstance(kind, BaseTuple):
            found |= dict.fromkeys(classes_from_elsewhere(kind.types))
        elif isinstance(kind, Optional):
            found |= dict.fromkeys(classes_from_elsewhere([kind.type]))
    return list(found)
