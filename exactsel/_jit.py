"""The only module that imports numba: compile kernels, or run them as plain Python.

``EXACTSEL_JIT=0`` turns compilation off (debugging, coverage). Compiled kernels are cached on disk in a folder
whose name is a hash of every file a kernel can inline (our kernels and losses, and the kernel's own folder), because
numba's own cache does not notice an edit in another file and would silently return the old numbers. Every cached file
ends with a hash of what it holds: one that is damaged is thrown away unread, and built anew. A folder that cannot be
written, or that others can write, is not used, and then nothing is cached.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import stat
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from exactsel.interrupts import aside, half_written
from exactsel.turns import turn

F = TypeVar("F", bound=Callable[..., Any])

ENABLED = os.environ.get("EXACTSEL_JIT", "1") != "0"

_PACKAGE = Path(__file__).resolve().parent
_dispatchers: list[Any] = []
_parallel_lock = threading.RLock()


def _hash_of(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _source_hash() -> str:
    folders = (_PACKAGE / "kernels", _PACKAGE / "losses")
    return _hash_of(
        [
            Path(__file__),
            _PACKAGE / "rounding.py",
            *(path for folder in folders for path in sorted(folder.glob("*.py"))),
        ]
    )


def _user_cache() -> Path | None:
    """Where the user's caches are, or None where the user has no home."""
    given = os.environ.get("EXACTSEL_CACHE_DIR")
    if given:
        return Path(given).absolute()
    if sys.platform == "win32":
        base, name = os.environ.get("LOCALAPPDATA") or "~", "exactsel/cache"
    elif sys.platform == "darwin":
        base, name = "~/Library/Caches", "exactsel"
    else:
        base, name = os.environ.get("XDG_CACHE_HOME") or "~/.cache", "exactsel"
    try:
        folder = Path(base).expanduser() / name
    except RuntimeError:  # no HOME, and nobody knows this user
        return None
    return folder if folder.is_absolute() else None


def _trusted(folder: Path) -> bool:
    """Whether nobody else can have put files into a folder: what is cached is code that will be run."""
    if not hasattr(os, "getuid"):
        return True
    state = folder.stat()
    return state.st_uid in (os.getuid(), 0) and not state.st_mode & stat.S_IWOTH


def _writable_cache() -> str | None:
    """The kernel cache folder of this very source, or None where nothing can be written."""
    base = _user_cache()
    if base is None:
        return None
    try:
        folder = base / f"kernels-{_source_hash()}"
        base.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder) if os.access(folder, os.W_OK | os.X_OK) and _trusted(folder) else None
    except OSError:
        return None


if ENABLED:
    # Threads that wait by spinning starve each other on a busy machine (measured: seven times slower); a user's own
    # choice stands.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

    import numba
    from numba import prange, types
    from numba.core import cgutils
    from numba.core import config as _config
    from numba.core.caching import FunctionCache, IndexDataCacheFile
    from numba.core.compiler_lock import global_compiler_lock
    from numba.extending import intrinsic, overload

    _CACHE = _writable_cache()

    @cache
    def _cache_of(folder: Path) -> str | None:
        """Where kernels defined in ``folder`` are cached: elsewhere than our own, and anew after any edit there."""
        if _CACHE is None or folder.parent == _PACKAGE:
            return _CACHE
        return str(Path(_CACHE) / f"{folder.name}-{_hash_of(sorted(folder.glob('*.py')))}")

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

    class _Cache(FunctionCache):  # type: ignore[misc]
        """A disk cache that may fail: then the kernel is compiled as if there were none."""

        def __init__(self, py_function: Any) -> None:
            super().__init__(py_function)
            self._cache_file.__class__ = _Files

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # whatever the files of another version make of themselves
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            with suppress(OSError):  # a full disk, say
                super().save_overload(sig, data)

    def _cached(dispatcher: Any, py_function: Any) -> None:
        """Give a dispatcher our cache."""
        previous = _config.CACHE_DIR
        _config.CACHE_DIR = _cache_of(Path(py_function.__code__.co_filename).resolve().parent) or previous
        try:
            dispatcher._cache = _Cache(py_function)
            _compiled_in_turn(dispatcher)
        except (OSError, RuntimeError):  # the folder has gone, or nothing can be written into it any more
            pass
        finally:
            _config.CACHE_DIR = previous

    _compiling: set[int] = set()

    def _compiled_in_turn(dispatcher: Any) -> None:
        """Let one process compile a kernel while others that need it wait for its file, as when tests run in parallel.

        The compiler's own lock comes first, so that threads of one process cannot wait for each other. A kernel asks
        for those it calls while it has its turn; as none calls its caller but itself, there is no circle.
        """
        compile_it, file = dispatcher.compile, Path(f"{dispatcher._cache._cache_file._index_path}.lock")

        def in_turn(signature: Any) -> Any:
            with global_compiler_lock:
                if id(dispatcher) in _compiling or tuple(signature) in dispatcher.overloads:
                    return compile_it(signature)
                _compiling.add(id(dispatcher))
                try:
                    with turn(file):
                        return compile_it(signature)
                finally:
                    _compiling.discard(id(dispatcher))

        dispatcher.compile = in_turn

    def _compiled_aside(dispatcher: Any) -> None:
        """Compile in a thread that can be left alone, so that an interrupt does not wait for the compiler.

        What is needed for the result after an interrupt runs as plain Python, where it is not compiled yet.
        """
        compile_for, plain = dispatcher._compile_for_args, dispatcher.py_func
        dispatcher._compile_for_args = lambda *arguments: aside(lambda: compile_for(*arguments), plain)

    def njit(function: F | None = None, *, parallel: bool = False, sums: bool = False, inline: bool = False) -> Any:
        """Compile a kernel; it releases the interpreter lock and is cached on disk.

        ``inline`` copies it into its callers, for what is called once and short beside the cost of a call.
        ``sums`` lets the compiler reorder additions so that dot products use vector instructions. The rounding
        allowance of a bound (:mod:`exactsel.kernels.dual`) holds for every order of summation.
        """

        def decorate(py_function: F) -> F:
            fastmath: Any = {"reassoc", "contract"} if sums else False
            dispatcher = numba.njit(
                nogil=True, parallel=parallel, fastmath=fastmath, error_model="numpy", forceinline=inline
            )(py_function)
            if _CACHE is not None:
                _cached(dispatcher, py_function)
            _compiled_aside(dispatcher)
            _dispatchers.append(dispatcher)
            return dispatcher  # type: ignore[no-any-return]

        return decorate(function) if function is not None else decorate

    @contextmanager
    def parallel_section(threads: int) -> Iterator[None]:
        """Run a parallel kernel on ``threads`` threads; one at a time, as numba's simplest backend demands."""
        with _parallel_lock:
            previous = numba.get_num_threads()
            numba.set_num_threads(max(1, min(threads, numba.config.NUMBA_NUM_THREADS)))
            try:
                yield
            finally:
                numba.set_num_threads(previous)

    def available_threads() -> int:
        """How many threads a parallel kernel can use in this process."""
        return int(numba.config.NUMBA_NUM_THREADS)

    def _atomic(operation: str) -> Any:
        """A function (cells, index, value) -> old value that no other thread can come between; int64 cells."""

        def change(_typing: Any, cells: Any, index: Any, value: Any) -> Any:
            def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                kind = signature.args[0]
                array = context.make_array(kind)(context, builder, arguments[0])
                place = cgutils.get_item_pointer(context, builder, kind, array, [arguments[1]])
                return builder.atomic_rmw(operation, place, arguments[2], "seq_cst")

            return types.int64(cells, types.int64, types.int64), emit

        return intrinsic(change)

    _wait = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32())

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def yield_thread() -> None:
        """Let another thread run on this core."""
        _wait()

    atomic_add = _atomic("add")
    atomic_swap = _atomic("xchg")

else:
    prange = range

    def overload(_stub: Any, jit_options: Any = None) -> Any:
        """Do nothing: without compilation the Python stub itself runs."""
        return lambda implementation: implementation

    def njit(function: F | None = None, *, parallel: bool = False, sums: bool = False, inline: bool = False) -> Any:
        """Return the function unchanged."""
        return function if function is not None else lambda py_function: py_function

    @contextmanager
    def parallel_section(threads: int) -> Iterator[None]:
        """Do nothing: plain Python runs on one thread."""
        yield

    def available_threads() -> int:
        """One: plain Python runs on one thread."""
        return 1

    def yield_thread() -> None:
        """Do nothing: plain Python runs on one thread."""

    def atomic_add(cells: Any, index: int, value: int) -> int:
        """Add to an int64 cell and return what it held; plain Python runs on one thread."""
        before = int(cells[index])
        cells[index] += value
        return before

    def atomic_swap(cells: Any, index: int, value: int) -> int:
        """Replace an int64 cell and return what it held; plain Python runs on one thread."""
        before = int(cells[index])
        cells[index] = value
        return before


def without_annotations(function: Callable[..., Any]) -> FunctionType:
    """A copy of a function without annotations: numba compares those of an overload literally."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)


def choose_by_type(argument: str) -> Callable[[Callable[..., Any]], Any]:
    """Let the type of one argument, a named tuple or None, choose what a call runs.

    As functools.singledispatch, for kernels: the decorated function serves every type that has none of its own by
    ``@function.register(Type, ...)``. Those have its parameters by name, in its order. A kernel chooses while it is
    compiled, at no cost when it runs.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        signature = inspect.signature(without_annotations(function))
        place = list(signature.parameters).index(argument)
        special: dict[type, Callable[..., Any]] = {}

        @wraps(function)
        def stub(*arguments: Any) -> Any:
            return special.get(type(arguments[place]), function)(*arguments)

        def choose(*arguments: Any) -> FunctionType:  # the compiler asks with its own types in the place of values
            kind = getattr(arguments[place], "instance_class", type(None))
            return without_annotations(special.get(kind, function))

        def register(*kinds: type) -> Callable[[F], F]:
            def add(body: F) -> F:
                special.update(dict.fromkeys(kinds, body))
                return body

            return add

        choose.__signature__ = signature  # type: ignore[attr-defined]
        stub.register = register  # type: ignore[attr-defined]
        overload(stub, jit_options={"forceinline": True})(choose)
        return stub

    return decorate


_session_lock = threading.RLock()
_sessions = 0


def kernels_are_cached() -> bool:
    """Whether a first call is spared the compilation of most kernels."""
    return not ENABLED or (_CACHE is not None and any(Path(_CACHE).rglob("*.nbi")))


@contextmanager
def loss_session(loss: Any) -> Iterator[None]:
    """Around every call of a kernel that takes a loss.

    A stranger's loss may change in a file our cache key does not see, so kernels for it are compiled anew in each
    process, with the disk cache neither read nor written. Built-in losses pass straight through.
    """
    if not ENABLED or type(loss).__module__.startswith("exactsel."):
        yield
        return
    global _sessions
    with _session_lock:
        _sessions += 1
        _set_disk_cache(False)
    try:
        yield
    finally:
        with _session_lock:
            _sessions -= 1
            if _sessions == 0:
                _set_disk_cache(True)


def _set_disk_cache(on: bool) -> None:
    for dispatcher in _dispatchers:
        switch = getattr(dispatcher._cache, "enable" if on else "disable", None)
        if switch is not None:
            switch()
