"""The disk cache of compiled kernels may be damaged, foreign, full or missing: kernels are then compiled as ever."""

from __future__ import annotations

import errno
import gc
import importlib.util
import os
import stat
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import numba
import pytest
from clocks import HANG

from exactsel import _jit, file_lock
from exactsel._jit import cache_paths, compiled
from exactsel.cli.main import main
from exactsel.file_lock import turn

pytestmark = pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")

KERNEL = "def twice(x):\n    return 2 * x\n"

as_root = hasattr(os, "getuid") and os.getuid() == 0
needs_posix = pytest.mark.skipif(os.name == "nt", reason="folders have no such permissions on Windows")


def module_in(folder: Path, source: str):
    """The module small_kernel, written into a folder and loaded from there."""
    folder.mkdir()
    (folder / "small_kernel.py").write_text(source)
    spec = importlib.util.spec_from_file_location("small_kernel", folder / "small_kernel.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["small_kernel"] = module  # what is cached names it
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Makes a kernel anew, as a new process would, with a cache of its own."""
    monkeypatch.setitem(sys.modules, "small_kernel", None)  # taken away afterwards
    module = module_in(tmp_path / "source", KERNEL)
    monkeypatch.setattr(compiled, "CACHE", tmp_path / "cache")
    before = list(compiled.dispatchers)
    yield lambda: _jit.njit(module.twice).compiled
    compiled.dispatchers[:] = before


def cached(tmp_path, ending: str) -> list[Path]:
    return sorted((tmp_path / "cache").rglob(f"*.{ending}"))


def hits(dispatcher) -> int:
    return sum(dispatcher.stats.cache_hits.values())


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


DAMAGE = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "truncated": lambda content: content[: len(content) // 2],
    "its hash cut off": lambda content: content[:-32],
    "its last byte cut off": lambda content: content[:-1],
    "garbage": lambda content: bytes(range(256)) * 9,
    "zeros": lambda content: bytes(len(content)),
    "a flipped bit in the middle": lambda content: flipped(content, 4 * len(content)),
    "a flipped bit in the hash": lambda content: flipped(content, 8 * len(content) - 3),
    "appended to": lambda content: content + b"x",
    "another content": lambda content: b"\x80\x04}\x94.",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_file_is_thrown_away_and_built_anew(kernel, tmp_path, ending, damage):
    assert kernel()(3) == 6
    assert len(cached(tmp_path, "nbi")) == len(cached(tmp_path, "nbc")) == 1
    (file,) = cached(tmp_path, ending)
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    second = kernel()
    assert (second(3), hits(second)) == (6, 0)
    third = kernel()
    assert (third(3), hits(third)) == (6, 1)


@pytest.mark.smoke
def test_an_intact_cache_is_used(kernel):
    first, second = kernel(), kernel()
    assert (first(3), hits(first), second(4), hits(second)) == (6, 0, 8, 1)


def test_another_checkout_finds_what_one_has_compiled(kernel, tmp_path):
    assert kernel()(3) == 6
    for at, (source, value, found) in enumerate([(KERNEL, 6, 1), (KERNEL.replace("2 *", "5 *"), 15, 0)]):
        (tmp_path / f"checkout{at}").mkdir()
        elsewhere = _jit.njit(module_in(tmp_path / f"checkout{at}" / "source", source).twice).compiled
        assert (elsewhere(3), hits(elsewhere)) == (value, found)


def test_a_default_that_is_given_and_one_that_is_left_out_are_one_kernel():
    @_jit.njit
    def scaled(x, by=3.0, more=1.0):
        return by * x + more

    before = list(compiled.dispatchers)
    results = (
        scaled(2.0), scaled(2.0, 3.0), scaled(2.0, more=1.0), scaled(x=2.0), scaled(2.0, by=3.0, more=1.0)
    )  # fmt: skip
    made, compiled.dispatchers[:] = scaled.compiled, before
    assert results == (7.0,) * 5
    assert len(made.overloads) == 1
    for wrong in (
        lambda: scaled(),
        lambda: scaled(2.0, x=1.0),
        lambda: scaled(2.0, other=1.0),
        lambda: scaled(1, 2, 3, 4),
    ):
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("on", [True, False])
def test_garbage_is_collected_after_a_compilation_as_before(kernel, on):
    assert gc.isenabled()
    if not on:
        gc.disable()
    try:
        assert kernel()(3) == 6
        assert gc.isenabled() == on
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")
def test_copies_of_a_process_have_names_of_their_own(kernel, tmp_path, monkeypatch):
    """Else two that compile for two kinds of data at once would each take the other's code for their own."""
    types = (numba.types.int64,)
    files = kernel()._cache.kept_for(types)._cache_file
    mine = files._data_name(1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: 0)
        assert files._data_name(1) != mine
    assert kernel()._cache.kept_for(types)._cache_file._data_name(1) == mine != files._data_name(2)


def test_what_is_intact_but_not_ours_is_not_believed(kernel, tmp_path, monkeypatch):
    """A file whose hash is right, but whose content another version made: any exception will do."""
    assert kernel()(3) == 6
    for error in (EOFError, AttributeError, ImportError, KeyError, TypeError, ValueError):

        def broken(self, name, error=error):
            raise error("of another version")

        with monkeypatch.context() as patched:
            patched.setattr("numba.core.caching.IndexDataCacheFile._load_data", broken)
            again = kernel()
            assert (again(3), hits(again)) == (6, 0)


def test_an_index_of_another_version_is_replaced(kernel, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("numba.__version__", "0.0.1")
        assert kernel()(3) == 6
    second, third = kernel(), kernel()
    assert (second(3), hits(second), third(3), hits(third)) == (6, 0, 6, 1)


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_folder_in_the_place_of_a_file(kernel, tmp_path, ending):
    assert kernel()(3) == 6
    (file,) = cached(tmp_path, ending)
    file.unlink()
    file.mkdir()
    again = kernel()
    assert (again(3), hits(again)) == (6, 0)


@pytest.mark.skipif(as_root or os.name == "nt", reason="root reads everything")
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_file_that_cannot_be_read(kernel, tmp_path, ending):
    assert kernel()(3) == 6
    cached(tmp_path, ending)[0].chmod(0)
    assert kernel()(3) == 6


@pytest.mark.smoke
def test_a_full_disk_costs_the_cache_alone(kernel, tmp_path, monkeypatch):
    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        assert kernel()(3) == 6
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_the_folder_may_go_at_any_time(kernel, tmp_path):
    first = kernel()
    cache = tmp_path / "cache"
    for path in sorted(cache.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    cache.rmdir()
    cache.write_text("a file")  # nor can it be made again
    assert first(3) == 6
    assert kernel()(3) == 6


# Where the cache is


@pytest.fixture
def nobody(monkeypatch):
    """No cache folder named, no HOME, and no entry for this user."""
    for name in (
        "EXACTSEL_CACHE_DIR",
        "XDG_CACHE_HOME",
        "HOME",
        "USERPROFILE",
        "HOMEPATH",
        "HOMEDRIVE",
        "LOCALAPPDATA",
    ):
        monkeypatch.delenv(name, raising=False)
    if os.name != "nt":

        def unknown(uid):
            raise KeyError(uid)

        monkeypatch.setattr("pwd.getpwuid", unknown)


def test_without_a_home_nothing_is_cached(nobody):
    assert cache_paths.user_cache() is None
    assert cache_paths.writable_cache() is None


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME"])
@needs_posix
def test_a_home_that_is_no_absolute_path_is_none(nobody, monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, "relative")
    assert cache_paths.writable_cache() is None
    assert list(tmp_path.iterdir()) == []


def test_an_empty_name_of_a_folder_names_none(nobody, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXACTSEL_CACHE_DIR", "")
    assert cache_paths.writable_cache() is None
    assert list(tmp_path.iterdir()) == []


def test_the_folder_belongs_to_the_user_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("EXACTSEL_CACHE_DIR", str(tmp_path / "cache"))
    folder = Path(cache_paths.writable_cache())
    assert folder.parent == tmp_path / "cache"
    if os.name != "nt":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_file_in_the_place_of_the_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXACTSEL_CACHE_DIR", str(tmp_path / "file"))
    assert cache_paths.writable_cache() is None


SCRIPT = """
import os
if os.name != "nt":
    import pwd
    def unknown(uid):
        raise KeyError(uid)
    pwd.getpwuid = unknown
from exactsel import _jit
from exactsel import file_lock
from exactsel._jit import cache_paths
@_jit.njit
def twice(x):
    return 2 * x
print(cache_paths.cache_folder(), twice(3))
"""


def test_a_process_without_home_works():
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=kept, capture_output=True, text=True, check=False, timeout=600
    )
    assert (done.stdout, done.stderr, done.returncode) == ("None 6\n", "", 0)


# What the command line makes of errors


@pytest.mark.parametrize("error", [EOFError("Ran out of input"), RuntimeError("no such thing"), OSError("odd")])
def test_only_an_interrupt_is_called_one(capsys, monkeypatch, error):
    def broken(*arguments, **options):
        raise error

    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)
    monkeypatch.setattr("exactsel.registry.origins", broken)
    with pytest.raises(SystemExit) as ended:
        main(["dev", "plugins"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (70, "")
    assert err.startswith(f"Internal error: {type(error).__name__}: {error}.")
    assert "interrupted" not in err


# --- turns ---


def lock_of(dispatcher) -> Path:
    return dispatcher._cache.lock_for((numba.types.int64,))


@needs_posix
def test_who_comes_second_waits_and_finds_what_the_first_has_compiled(kernel, tmp_path):
    assert kernel()(3) == 6
    files = {file: file.read_bytes() for file in cached(tmp_path, "nb?")}
    for file in files:
        file.unlink()
    second, found = kernel(), []
    with turn(lock_of(second)):
        waiting = threading.Thread(target=lambda: found.append(second(3)))
        waiting.start()
        waiting.join(5 * file_lock.PAUSE)
        assert waiting.is_alive()
        for file, content in files.items():
            file.write_bytes(content)
    waiting.join(60)
    assert (found, hits(second)) == ([6], 1)


@needs_posix
def test_nobody_waits_for_a_kernel_of_another_class(kernel):
    """As where two processes compile one kernel for two losses."""
    kind = namedtuple("Loss", ["x"])
    dispatcher = kernel()
    other = dispatcher._cache.lock_for((numba.types.NamedUniTuple(numba.types.int64, 1, kind),))
    assert other != lock_of(dispatcher)
    done = []
    with turn(other):
        compiling = threading.Thread(target=lambda: done.append(dispatcher(3)))
        compiling.start()
        compiling.join(file_lock.LONGEST / 2)
    assert done == [6]


@needs_posix
def test_who_has_waited_and_who_comes_anew_do_not_go_together(tmp_path):
    """The one before removes the file that is waited for; who then makes it anew must wait, too."""
    file, included, most = tmp_path / "file.lock", [], []

    def work():
        for _ in range(20):
            with turn(file):
                included.append(1)
                most.append(len(included))
                time.sleep(0.001)
                included.pop()

    at_work = [threading.Thread(target=work) for _ in range(4)]
    for thread in at_work:
        thread.start()
    for thread in at_work:
        thread.join(HANG)
    assert len(most) == 80
    assert max(most) == 1


def test_nobody_waits_for_ever(kernel, monkeypatch):
    monkeypatch.setattr(file_lock, "LONGEST", 2 * file_lock.PAUSE)
    dispatcher = kernel()
    with turn(lock_of(dispatcher)):
        assert dispatcher(3) == 6


def test_without_a_place_for_a_lock_there_is_none(tmp_path):
    with turn(tmp_path / "no such folder" / "file.lock"), turn(tmp_path / "no such folder" / "file.lock"):
        assert not list(tmp_path.iterdir())
