"""The disk cache of one kernel: every file ends with a hash of what it holds, and one that is damaged is not read.

The name of a file is that of the kernel and a hash of all it was made from (cache_key.py), so that files of another
state of the sources, or of another loss, lie beside it. Where a kernel's own file lies plays no part: a second checkout
or environment finds what the first has compiled.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.types import BaseNamedTuple, BaseTuple, Optional  # type: ignore[attr-defined]

from exactsel._jit.cache_key import cache_key
from exactsel._jit.compile_events import compiling_begins
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


class _Place:
    """Where the files of a kernel are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ensure_cache_path(self) -> None:
        """Make the folder."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class _Results(CompileResultCacheImpl):  # type: ignore[misc]
    """How what is compiled becomes plain content, and the other way round."""

    def __init__(self, folder: Path, name: str) -> None:
        self._locator, self._filename_base = _Place(folder), name


class _Kept(FunctionCache):  # type: ignore[misc]
    """What is kept of one kernel that was made from one state of its sources."""

    def __init__(self, py_func: Any, folder: Path, name: str, key: str) -> None:
        self._name, self._py_func, self._cache_path = repr(py_func), py_func, str(folder)
        self.file_name = name
        self._impl = _Results(folder, name)
        self._cache_file = _Files(self._cache_path, name, key)
        self.enable()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """The types of the arguments, and the processor; the rest is in the name of the file."""
        return sig, codegen.magic_tuple()


class KernelCache(NullCache):  # type: ignore[misc]
    """A disk cache that may fail: then the kernel is compiled as if there were none.

    Parameters
    ----------
    kernel : Kernel
        With a Python function ``py_func`` and ``options``.
    folder : Path
        Where kernels are kept.

    Raises
    ------
    OSError
        If no file can be made there.
    """

    def __init__(self, kernel: Any, folder: Path) -> None:
        source, self._kernel = Path(kernel.py_func.__code__.co_filename), kernel
        self._folder = folder / source.absolute().parent.name
        self._name = f"{source.stem}.{kernel.py_func.__qualname__}".replace("<", "").replace(">", "")
        self._kept: dict[tuple[type, ...], _Kept | None] = {}
        _Place(self._folder).ensure_cache_path()

    def lock_for(self, signature: object) -> Path:
        """The file that says that a process is compiling it for the classes among these types.

        Nothing else waits for it: a kernel is compiled for several losses at once, each in one process.
        """
        kept = None
        with suppress(Exception):  # as where it is read
            kept = self.kept_for(signature)
        return self._folder / f"{self._name if kept is None else kept.file_name}.lock"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel, or None."""
        loaded = None
        with suppress(Exception):  # files of another version may raise anything
            kept = self.kept_for(sig)
            loaded = None if kept is None else kept.load_overload(sig, target_context)
        if loaded is None:
            compiling_begins(self._kernel.py_func.__name__)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write it, if that can be done."""
        with suppress(OSError, RuntimeError):  # a full disk, say, or a folder that is gone
            kept = self.kept_for(sig)
            if kept is not None:
                kept.save_overload(sig, data)

    def kept_for(self, signature: Any) -> _Kept | None:
        """The files for the classes among these types; None where nothing may be kept for them."""
        classes = tuple(classes_in(sigutils.normalize_signature(signature)[0]))
        if classes not in self._kept:
            key = cache_key(self._kernel, classes)
            name = f"{self._name}-{key}.{sys.implementation.cache_tag}"
            self._kept[classes] = None if key is None else _Kept(self._kernel.py_func, self._folder, name, key)
        return self._kept[classes]


def classes_in(arguments: Iterable[Any]) -> list[type]:
    """The classes of the named tuples among the types of arguments, and of those in them."""
    found: dict[type, None] = {}
    for kind in arguments:
        if isinstance(kind, BaseNamedTuple):
            found[kind.instance_class] = None
        if isinstance(kind, BaseTuple):
            found |= dict.fromkeys(classes_in(kind.types))
        elif isinstance(kind, Optional):
            found |= dict.fromkeys(classes_in([kind.type]))
    return list(found)
