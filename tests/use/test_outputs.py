"""A result is never lost for a file that cannot be written, and no file is half-written or wrongly replaced."""

from __future__ import annotations

import errno
import io
import os
import socket
import stat
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from full_disk import FULL, needs_full, needs_posix

from exactsel import Problem, certify, files, solve, verify
from exactsel.errors import InputError, OutputError, OutputWarning
from exactsel.files import check_target, own_descriptor, replacing, write_bytes
from exactsel.observers.log import ProgressLog
from exactsel.observers.trace import Trace
from exactsel.proofs.writer import ProofWriter

HOURS = 60.0
"""Seconds after which a reader that hangs ends its test."""


def problem(seed: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((20, 9)), rng.standard_normal(20), 3, lam=0.1)


class Disk:
    """A file system that is full after so many bytes, whoever writes them."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.written = 0

    def take(self, data) -> None:
        if self.written + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.written += len(data)

    def open(self, path, mode="r", **options):
        stream = open(path, mode, **options)  # noqa: SIM115 (the caller closes it)
        return self.limited(stream) if "r" not in mode else stream

    def limited(self, stream):
        write = stream.write

        class Limited:
            def __getattr__(self, name):
                return getattr(stream, name)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                stream.close()

            def write(_, data):
                self.take(data)
                return write(data)

        return Limited()


@pytest.fixture
def disk(monkeypatch):
    """Everything written through exactsel.files goes to a small disk."""
    spool = files.spool

    def make(room: int) -> Disk:
        made = Disk(room)
        monkeypatch.setattr(files, "open", made.open, raising=False)
        monkeypatch.setattr("exactsel.proofs.spools.spool", lambda file: made.limited(spool(file)))
        return made

    return make


@pytest.mark.smoke
@pytest.mark.untrue  # the proofs that the other tests want of every search would fill the disk
class TestProofs:
    def size_of(self, disk, tmp_path) -> int:
        roomy = disk(10**9)
        solve(problem(), proof=tmp_path / "whole.exsel", subtrees=False)
        (tmp_path / "whole.exsel").unlink()
        return roomy.written

    @pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.49, 0.6, 0.9, 0.999])
    def test_a_full_disk_costs_the_proof_alone(self, disk, tmp_path, share):
        """Wherever the disk is full: while the search runs, while the tree is put in order, in the file itself."""
        disk(int(share * self.size_of(disk, tmp_path)))
        with pytest.warns(
            OutputWarning, match=r"^the proof .*run\.exsel cannot be written \(No space left on device\)"
        ):
            result = solve(problem(), proof=tmp_path / "run.exsel", subtrees=False)
        without = solve(problem(), subtrees=False)
        assert (result.proof, result.upper, result.lower) == (None, without.upper, without.lower)
        assert result.tree_hash == without.tree_hash
        assert list(tmp_path.iterdir()) == []

    def test_the_file_of_before_stays(self, disk, tmp_path):
        size = self.size_of(disk, tmp_path)
        (tmp_path / "run.exsel").write_bytes(b"of before")
        disk(size // 2)
        with pytest.warns(OutputWarning):
            solve(problem(), proof=tmp_path / "run.exsel", subtrees=False)
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("run.exsel", b"of before")]

    def test_an_observer_that_has_given_up_keeps_quiet(self, tmp_path, monkeypatch):
        calls = []

        def broken(self, event):
            calls.append(event)
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(ProofWriter, "_take_down", broken)
        with pytest.warns(OutputWarning, match=r"Input/output error"):
            assert solve(problem(), proof=tmp_path / "run.exsel").reached
        assert len(calls) == 1

    def test_what_cannot_be_begun_is_an_error_before_the_search(self, tmp_path):
        with pytest.raises(InputError, match=r"is a folder, but a file was expected"):
            solve(problem(), proof=tmp_path)
        with pytest.raises(InputError, match=r"cannot be written"):
            solve(problem(), proof=tmp_path / "no" / "run.exsel")

    def test_errors_of_callbacks_are_the_callers(self):
        def broken(event, state):
            raise OSError(errno.ENOSPC, "mine")

        with pytest.raises(OSError, match="mine"):
            solve(problem(), callback=broken)


class TestCertify:
    def candidate(self):
        """A model so far from the best that a second search is needed."""
        data = problem(5)
        best = solve(data)
        return data, best, {"support": best.support[:2], "eps": 0.9 * (data.fit(best.support[:2]).value - best.lower)}

    def arguments(self):
        data, best, options = self.candidate()
        value = data.fit(options["support"]).value
        return data, {**options, "eps": 1.2 * (value - best.upper) + 1e-3, "rel_eps": 0.0}

    def test_one_proof_reaches_a_regular_file(self, tmp_path):
        data, options = self.arguments()
        certified = certify(data, proof=tmp_path / "run.exsel", **options)
        assert certified.result.proof == str(tmp_path / "run.exsel")
        assert verify(data, tmp_path / "run.exsel").verified
        assert [path.name for path in tmp_path.iterdir()] == ["run.exsel"]

    def test_the_proof_may_be_named_in_a_roundabout_way(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        data, options = self.arguments()
        assert verify(data, certify(data, proof="./run.exsel", **options).result.proof).verified

    @needs_posix
    def test_a_fifo_gets_one_proof(self, tmp_path):
        data, options = self.arguments()
        os.mkfifo(tmp_path / "fifo")
        got = Reader(tmp_path / "fifo")
        certify(data, proof=tmp_path / "fifo", **options)
        (tmp_path / "run.exsel").write_bytes(got.all())
        assert verify(data, tmp_path / "run.exsel").verified
        assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)

    @needs_full
    def test_a_full_disk_costs_the_proof_alone(self):
        data, options = self.arguments()
        with pytest.warns(OutputWarning, match=r"/dev/full cannot be written \(No space left on device\)"):
            certified = certify(data, proof=FULL, **options)
        assert certified.result.proof is None
        assert certified.value > 0
        assert stat.S_ISCHR(FULL.stat().st_mode)


class Reader:
    """Reads a FIFO to its end in a thread."""

    def __init__(self, path: Path) -> None:
        self._got = b""
        self._thread = threading.Thread(target=self._read, args=(path,), daemon=True)
        self._thread.start()

    def _read(self, path: Path) -> None:
        self._got = path.read_bytes()

    def all(self) -> bytes:
        self._thread.join(HOURS)
        assert not self._thread.is_alive()
        return self._got


def half_write(path, error):
    with replacing(path) as stream:
        stream.write(b"half")
        raise error


class TestReplacing:
    def test_a_regular_file_is_replaced_in_one_step(self, tmp_path):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        with replacing(path) as stream:
            stream.write(b"new")
            stream.flush()
            assert path.read_bytes() == b"old"
        assert path.read_bytes() == b"new"

    @pytest.mark.parametrize(
        "error", [OSError(errno.EIO, "Input/output error"), ValueError("mine"), KeyboardInterrupt()]
    )
    def test_nothing_half_written_stays(self, tmp_path, error):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        with pytest.raises(OutputError if isinstance(error, OSError) else type(error)):
            half_write(path, error)
        assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("file", b"old")]

    @needs_posix
    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
    def test_permissions_are_kept(self, tmp_path, mode):
        path = tmp_path / "file"
        path.write_bytes(b"old")
        path.chmod(mode)
        write_bytes(path, b"new")
        assert stat.S_IMODE(path.stat().st_mode) == mode

    @needs_posix
    def test_a_new_file_has_the_usual_permissions(self, tmp_path):
        write_bytes(tmp_path / "file", b"new")
        (tmp_path / "usual").write_bytes(b"")
        assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode

    @needs_posix
    @pytest.mark.parametrize("exists", [True, False])
    def test_links_are_followed(self, tmp_path, exists):
        (tmp_path / "there").mkdir()
        target, link = tmp_path / "there" / "file", tmp_path / "link"
        if exists:
            target.write_bytes(b"old")
        (tmp_path / "middle").symlink_to(target)
        link.symlink_to("middle")
        write_bytes(link, b"new")
        assert link.is_symlink()
        assert (tmp_path / "middle").is_symlink()
        assert target.read_bytes() == b"new"
        assert len(list(tmp_path.rglob("*"))) == 4

    @needs_posix
    def test_a_link_to_itself(self, tmp_path):
        (tmp_path / "loop").symlink_to("loop")
        with pytest.raises(InputError, match=r"loop cannot be written \(Too many levels"):
            write_bytes(tmp_path / "loop", b"new")

    @needs_posix
    def test_a_device_stays_a_device(self):
        write_bytes(os.devnull, b"new")
        check_target(os.devnull)
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
        assert not list(Path("/dev").glob(".null*"))

    @needs_posix
    def test_a_fifo_is_written_to(self, tmp_path):
        os.mkfifo(tmp_path / "fifo")
        (tmp_path / "link").symlink_to("fifo")
        for name in ("fifo", "link"):
            got = Reader(tmp_path / "fifo")
            write_bytes(tmp_path / name, b"new" * 100_000)
            assert got.all() == b"new" * 100_000
        assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)

    @needs_posix
    def test_a_fifo_gets_nothing_of_what_ends_in_an_error(self, tmp_path):
        os.mkfifo(tmp_path / "fifo")
        with pytest.raises(ValueError, match="mine"):
            half_write(tmp_path / "fifo", ValueError("mine"))

    @needs_posix
    def test_a_socket_cannot_be_written(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # the name of a socket has to be short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
            with pytest.raises(OutputError, match=r"socket cannot be written \(No such device or address\); make room"):
                write_bytes("socket", b"new")
            assert stat.S_ISSOCK(os.stat("socket").st_mode)

    @needs_full
    def test_a_full_device(self):
        with pytest.raises(OutputError, match=r"^/dev/full cannot be written \(No space left on device\); make room"):
            write_bytes(FULL, b"new")

    @pytest.mark.skipif(not Path("/dev/fd").exists(), reason="descriptors have no names here")
    def test_an_open_descriptor_goes_on_where_it_is(self, tmp_path):
        with (tmp_path / "file").open("w+b", buffering=0) as stream:
            stream.write(b"before ")
            write_bytes(f"/dev/fd/{stream.fileno()}", b"and after")
            stream.write(b".")
        assert (tmp_path / "file").read_bytes() == b"before and after."

    @needs_posix
    def test_which_descriptor_a_name_means(self, tmp_path):
        (tmp_path / "out").symlink_to("/dev/stdout")
        assert own_descriptor(tmp_path / "file") is None
        assert own_descriptor("/dev/null") is None
        if Path("/dev/stdout").exists():
            assert [own_descriptor(name) for name in ("/dev/stdout", tmp_path / "out", "/dev/fd/7")] == [1, 1, 7]

    @needs_posix
    def test_the_target_of_a_link_is_what_is_checked(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "no" / "file")
        with pytest.raises(InputError, match="there is no such folder"):
            check_target(tmp_path / "link")

    def test_a_long_name(self, tmp_path):
        write_bytes(tmp_path / ("x" * 250), b"new")
        assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new"]


class TestObservers:
    @needs_full
    def test_a_trace_ends_and_the_search_goes_on(self):
        with pytest.warns(OutputWarning, match=r"^the rest of the trace /dev/full cannot be written \(No space"):
            assert solve(problem(), trace=FULL).reached

    @pytest.mark.parametrize("lines", [0, 1, 5])
    def test_a_trace_is_whole_up_to_its_end(self, tmp_path, monkeypatch, lines):
        written = []

        class Failing(io.TextIOWrapper):
            def write(self, text):
                if len(written) == lines:
                    raise OSError(errno.EDQUOT, "Disk quota exceeded")
                written.append(text)
                return super().write(text)

        monkeypatch.setattr("exactsel.observers.trace.io.TextIOWrapper", Failing)
        with pytest.warns(OutputWarning, match=r"the rest of the trace .* \(Disk quota exceeded\); make room"):
            result = solve(problem(), trace=tmp_path / "run.jsonl")
        assert result.reached
        assert (tmp_path / "run.jsonl").read_text() == "".join(written)
        assert len(written) == lines

    def test_a_trace_that_is_whole_warns_of_nothing(self, tmp_path):
        with Trace(tmp_path / "run.jsonl") as trace, warnings.catch_warnings():
            warnings.simplefilter("error")
        assert trace.failure is None

    def test_a_log_falls_silent(self):
        class Broken(io.StringIO):
            asked = 0

            def write(self, text):
                Broken.asked += 1
                raise BrokenPipeError(errno.EPIPE, "Broken pipe")

        assert solve(problem(), callback=ProgressLog(Broken(), 0.0)).reached
        assert Broken.asked == 1
