"""What commands do where a file or stdout cannot be written: a result is never lost."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from full_disk import FULL, needs_full, needs_posix

from exactsel import load, solve, verify
from exactsel.cli.main import main
from exactsel.cli.output import UNWRITTEN, Stdout

DIABETES = Path(__file__).parents[2] / "instances" / "diabetes.npz"
TRAP = Path(__file__).parents[2] / "instances" / "greedy-trap.npz"


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, *capsys.readouterr()

    return call


def start(*arguments, before: str = "", **options) -> subprocess.CompletedProcess:
    """The command in a process of its own, after the statements ``before``."""
    code = f"{before}\nfrom exactsel.cli.main import main\nmain()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, **{"stdout": -1, "stderr": -1, "timeout": 600, "check": False, **options})


@needs_full
class TestCommands:
    def linked(self, tmp_path, name: str) -> Path:
        """A file of that name on a full disk."""
        (tmp_path / name).symlink_to(FULL)
        return tmp_path / name

    @pytest.mark.parametrize("option", ["--proof", "--trace", "--report"])
    def test_solve(self, run, option):
        code, out, err = run("solve", TRAP, "--json", "--quiet", option, FULL)
        assert (code, json.loads(out)["proof"]) == (UNWRITTEN, None)
        assert len(err.splitlines()) == 1
        assert err.startswith("Error: ")
        assert "/dev/full cannot be written (No space left on device); make room for it" in err
        assert stat.S_ISCHR(FULL.stat().st_mode)

    def test_each_output_is_told_of(self, run):
        code, out, err = run("solve", TRAP, "--quiet", "--proof", FULL, "--trace", FULL, "--report", FULL)
        assert (code, len(err.splitlines())) == (UNWRITTEN, 3)
        assert "first_half" in out

    def test_certify(self, run):
        code, out, err = run("certify", TRAP, "--support", "0,1", "--json", "--quiet", "--proof", FULL)
        assert code == UNWRITTEN
        assert json.loads(out)["candidate"]["support"] == [0, 1]
        assert "/dev/full cannot be written" in err

    def test_compare(self, run):
        code, out, err = run("compare", TRAP, "--heuristic", "omp", "--json", "--html", FULL)
        assert (code, len(json.loads(out)["methods"]), len(err.splitlines())) == (UNWRITTEN, 1, 1)

    def test_path(self, run, tmp_path):
        pytest.importorskip("matplotlib")
        code, out, err = run("path", TRAP, "--json", "--plot", self.linked(tmp_path, "path.svg"))
        assert code == UNWRITTEN
        assert json.loads(out)
        assert "path.svg cannot be written (No space left on device)" in err

    @pytest.mark.parametrize(
        "command",
        [
            ["data", "convert", TRAP],
            ["data", "generate", "huber"],
            ["play", TRAP, "--dot", "-o"],
            ["play", TRAP, "--html"],
        ],
    )
    def test_what_is_nothing_but_a_file(self, run, tmp_path, command):
        path = self.linked(tmp_path, "made.npz")
        code, out, err = run(*command, path)
        assert (code, out) == (UNWRITTEN, "")
        why = "No space left on device"
        assert err == f"Error: {path} cannot be written ({why}); make room for it, or choose another place.\n"
        assert path.is_symlink()

    def test_worse_news_keeps_its_code(self, run, tmp_path):
        solve(load(TRAP), proof=tmp_path / "run.exsel")
        with FULL.open("wb") as full:
            rejected = start("verify", tmp_path / "run.exsel", TRAP, "-k", "1", stdout=full)
        assert rejected.returncode == 3
        assert b"REJECTED" in rejected.stderr

    def test_a_small_file_size_limit(self, tmp_path):
        """The proof outgrows what the process may write; so does the kernel cache, if there is anything to add."""
        pytest.importorskip("resource")
        limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))"
        files_of = (
            "--proof",
            tmp_path / "run.exsel",
            "--trace",
            tmp_path / "run.jsonl",
            "--report",
            tmp_path / "r.html",
        )
        done = start("solve", DIABETES, "--json", "--quiet", *files_of, before=limit)
        assert done.returncode == UNWRITTEN
        assert json.loads(done.stdout)["claim"] == "optimal"
        told = done.stderr.decode().splitlines()
        assert len(told) == 3
        assert all("cannot be written (File too large); make room for it" in line for line in told)
        assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


class TestStdout:
    @needs_full
    def test_a_full_disk_behind_stdout(self):
        with FULL.open("wb") as full:
            done = start("solve", TRAP, "--json", "--quiet", stdout=full)
        result, sentence = done.stderr.decode().splitlines()
        assert done.returncode == UNWRITTEN
        assert json.loads(result)["termination"]
        assert sentence.startswith("Error: stdout cannot be written (No space left on device), so what belongs there")

    @needs_posix
    def test_a_reader_that_has_gone(self):
        heard, told = os.pipe()
        os.close(heard)
        done = start("solve", TRAP, "--json", "--quiet", stdout=told)
        os.close(told)
        assert done.returncode == UNWRITTEN
        assert (
            done.stderr == b"Error: stdout was closed before everything was written; let its reader read to the end.\n"
        )

    @needs_posix
    def test_no_stdout_at_all(self):
        code = "import os\nos.close(1)\nos.execv(sys.executable, [sys.executable, '-m', 'exactsel', *sys.argv[1:]])"
        done = start("solve", TRAP, "--json", "--quiet", before=f"import sys\n{code}")
        assert done.returncode == UNWRITTEN
        assert json.loads(done.stderr.decode().splitlines()[0])["termination"]

    @needs_posix
    def test_no_stderr_at_all(self, tmp_path):
        """Nor does a file opened later get what is meant for it."""
        code = "import os\nos.close(2)\nos.execv(sys.executable, [sys.executable, '-m', 'exactsel', *sys.argv[1:]])"
        done = start("solve", TRAP, "--json", "--trace", tmp_path / "run.jsonl", before=f"import sys\n{code}")
        assert done.returncode == 0
        assert json.loads(done.stdout)["claim"] in ("optimal", "within_eps")
        assert all(json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines())

    @needs_full
    def test_a_full_disk_behind_stderr(self):
        with FULL.open("wb") as full:
            done = start("solve", TRAP, "--json", stderr=full)
        assert done.returncode == 0
        assert json.loads(done.stdout)["termination"]

    @pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="stdout has no name here")
    def test_a_file_behind_stdout_gets_both(self, tmp_path):
        with (tmp_path / "out").open("wb") as out:
            done = start("solve", TRAP, "--json", "--quiet", "--proof", "/dev/stdout", stdout=out)
        assert (done.returncode, done.stderr) == (0, b"")
        proof, brace, result = (tmp_path / "out").read_bytes().rpartition(b'{"upper"')
        assert json.loads(brace + result)["proof"] == "/dev/stdout"
        (tmp_path / "run.exsel").write_bytes(proof)
        assert verify(load(TRAP), tmp_path / "run.exsel").verified

    def test_other_errors_pass(self):
        with pytest.raises(TypeError):
            Stdout(io.StringIO()).write(b"bytes")

    def test_what_was_written_before_the_failure_is_not_lost(self, capsys):
        class Late(io.StringIO):
            def flush(self):
                raise OSError(errno.EDQUOT, "Disk quota exceeded")

        stream = Stdout(Late())
        stream.write("one ")
        stream.write("two")
        stream.flush()
        stream.write(" three")
        assert capsys.readouterr().err == "one two three"
        assert stream.sentence.startswith("stdout cannot be written (Disk quota exceeded)")
