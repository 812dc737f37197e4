"""Every output of every command where it cannot be written: one sentence, the exit code, the result, nothing left."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import click
import numpy as np
import pytest
from command_line import COMMAND
from full_disk import FULL, needs_full, needs_posix
from no_room import a_folder_of_somebody_else, a_reader_that_has_gone, no_file_larger_than, stdout_into

from exactsel import Problem, heuristics, solve
from exactsel.cli.main import main
from exactsel.cli.output import UNWRITTEN
from exactsel.errors import OutputError
from exactsel.search.spilling import TemporaryNodeStore

INSTANCES = Path(__file__).parents[2] / "instances"
TRAP = INSTANCES / "greedy-trap.npz"
CSV = INSTANCES / "cars.csv"
OUT = "@out"

LISTING = ["--criterion", "objective", "--within", "1"]

BESIDE = {
    ("solve", "--proof"): ["solve", TRAP, "--json", "--quiet", "--proof", OUT],
    ("solve", "--trace"): ["solve", TRAP, "--json", "--quiet", "--trace", OUT],
    ("solve", "--report"): ["solve", TRAP, "--json", "--quiet", "--report", OUT],
    ("certify", "--proof"): ["certify", TRAP, "--support", "0,1", "--json", "--quiet", "--proof", OUT],
    ("compare", "--html"): ["compare", TRAP, "--heuristic", "omp", "--json", "--html", OUT],
    ("best", "--proof"): ["best", TRAP, "--k-max", "2", "--json", "--proof", OUT],
    ("best", "--report"): ["best", TRAP, "--k-max", "2", "--json", "--report", OUT],
    ("path", "--report"): ["path", TRAP, "--k-max", "2", "--json", "--report", OUT],
    ("path", "--plot"): ["path", TRAP, "--k-max", "2", "--json", "--plot", f"{OUT}.svg"],
}
"""Outputs beside a result, which is printed all the same."""

SAVING = {
    ("solve", "--checkpoint"): ["solve", TRAP, "--json", "--quiet", "--checkpoint", OUT],
    ("path", "--checkpoint"): ["path", TRAP, "--k-max", "2", "--json", "--checkpoint", OUT],
    ("best", "--checkpoint"): ["best", TRAP, *LISTING, "--json", "--checkpoint", OUT],
}
"""Those without which nothing is begun."""

ALONE = {
    ("convert", "out"): ["data", "convert", TRAP, f"{OUT}.npz"],
    ("gram", "out"): [
        "data",
        "gram",
        CSV,
        f"{OUT}.npz",
        "--target",
        "mpg",
        "--drop",
        "name,model year,origin",
        "--missing",
        "drop-rows",
    ],
    ("generate", "out"): ["data", "generate", "huber", f"{OUT}.npz"],
    ("instances", "--copy"): ["data", "instances", "--copy", OUT],
    ("play", "--out"): ["play", TRAP, "--dot", "-o", OUT],
    ("play", "--html"): ["play", TRAP, "--html", OUT],
    ("sweep", "--out"): ["dev", "sweep", "@config", "--quiet", "--out", f"{OUT}.csv"],
}
"""Outputs that are all a command makes."""

READ = {
    *((name, option) for name in COMMAND for option in ("instance", "--bounds", "--weights")),
    ("solve", "--status"), ("certify", "--coef"), ("verify", "proof"), ("sweep", "config"), ("gram", "data"),
    ("reduce", "path"),
}  # fmt: skip
SAID_OF_OTHERS = {
    ("solve", "--resume"), ("path", "--resume"), ("best", "--resume"),  # of checkpoints that are there, below
    ("fuzz", "--out"),  # only where fuzz has found something
}  # fmt: skip

WRITERS = BESIDE | SAVING | ALONE

pytestmark = pytest.mark.untrue
"""Not that anything is untrue: the proofs that tests have every search write would not be written either."""

FAILURES = ("no byte", "few bytes", "no folder", "not the user's")


@pytest.fixture
def run(capsys, monkeypatch):
    """Exit code and streams of a command in this process."""
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)

    def call(arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return ended.value.code, *capsys.readouterr()

    return call


@pytest.fixture
def config(tmp_path):
    """A sweep of two jobs."""
    file = tmp_path / "config" / "sweep.toml"
    file.parent.mkdir()
    shutil.copy(TRAP, file.parent)
    file.write_text('[[sweep]]\ninstances = ["greedy-trap.npz"]\nk = [1, 2]\nmethod = ["omp"]\n')
    return file


def filled(arguments, folder, config):
    """A command with its output in a folder."""
    words = [str(word).replace(OUT, str(folder / "made")) for word in arguments]
    return [str(config) if word == "@config" else word for word in words]


@pytest.fixture(autouse=True, scope="module")
def _compiler():
    """Loaded while there is room for the lock it asks for, of which it warns."""
    solve(Problem(np.eye(6), np.arange(6.0), 2, lam=0.1), signals=())


def test_no_output_is_forgotten():
    """A new option that names a file is to be entered in one of the tables."""
    found = set()
    for name in COMMAND:
        for parameter in COMMAND[name].params:
            if isinstance(parameter.type, click.Path):
                found.add((name, max(parameter.opts, key=len)))
    assert found - READ - SAID_OF_OTHERS == {*WRITERS}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("writer", WRITERS, ids=" ".join)
@needs_posix
def test_an_output_that_cannot_be_written(writer, failure, run, config, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    if writer == ("sweep", "--out") and failure == "not the user's" and os.getuid() == 0:
        pytest.skip("its config is not to be read then")
    if writer == ("path", "--plot"):
        pytest.importorskip("matplotlib")
    if failure == "no folder":
        if writer in (("instances", "--copy"), ("best", "--proof")):
            pytest.skip("makes its folder")
        code, out, err = run(filled(WRITERS[writer], folder / "none", config))
    elif failure == "not the user's":
        run(filled(WRITERS[writer], folder, config))  # what it needs is imported
        with a_folder_of_somebody_else() as locked:
            code, out, err = run(filled(WRITERS[writer], locked, config))
        assert not locked.exists()
        return check(writer, code, out, err, full=False)
    else:
        with no_file_larger_than(0 if failure == "no byte" else 20):
            code, out, err = run(filled(WRITERS[writer], folder, config))
    check(writer, code, out, err, failure in ("no byte", "few bytes"))
    left = {path.name for path in folder.rglob("*")}
    growing = {("solve", "--trace"): {"made"}, ("best", "--proof"): {"made"}, ("instances", "--copy"): {"made"}}
    if writer == ("sweep", "--out"):
        assert left <= {"made.csv.store"}, "the jobs noted before"
    else:
        assert left <= growing.get(writer, set()), left


def check(writer, code, out, err, full):
    """One sentence, the exit code for it, and the result beside."""
    lines = [line for line in err.splitlines() if not line.startswith(("Warning: ", "sweep: "))]
    assert "Internal error" not in err
    assert code in ((UNWRITTEN,) if full else (2, UNWRITTEN)), (code, out, err)
    assert len(lines) == 1 or (writer == ("best", "--proof") and len(lines) == err.count("made")), err
    assert all(line.startswith("Error: ") and line.endswith(".") and "made" in line for line in lines)
    if writer in BESIDE and code == UNWRITTEN:
        assert json.loads(out)


@pytest.mark.parametrize("size", [0, 20])
@pytest.mark.parametrize("writer", [one for one in WRITERS if one not in SAVING], ids=" ".join)
@needs_posix
def test_what_was_there_before_stays(writer, size, run, config, tmp_path):
    if writer in (("solve", "--trace"), ("best", "--proof"), ("instances", "--copy"), ("sweep", "--out")):
        pytest.skip("grows as it goes, or is a folder")
    (command,) = [filled(WRITERS[writer], tmp_path, config)]
    target = next(Path(word) for word in command if "made" in word)
    target.write_bytes(b"as it was")
    with no_file_larger_than(size):
        code, _, _ = run(command)
    assert code == UNWRITTEN
    assert target.read_bytes() == b"as it was"


@pytest.mark.parametrize("command", ["solve", "path", "best"])
@needs_posix
def test_a_search_goes_on_where_its_checkpoint_cannot(command, run, tmp_path):
    file = tmp_path / "run.ckpt"
    words = {
        "solve": ["solve", TRAP, "--quiet"], "path": ["path", TRAP, "--k-max", "2"],
        "best": ["best", TRAP, "--criterion", "objective"],
    }[command]  # fmt: skip
    more = ["--within", "1"] if command == "best" else []
    assert run([*words, *more, "--json", "--checkpoint", file])[0] == 0
    before = file.read_bytes()
    with no_file_larger_than(100):
        code, _, err = run([*words, "--json", "--resume", file])
    assert code in (2, UNWRITTEN)
    assert len(err.splitlines()) == 1
    assert err.startswith("Error: ")
    assert code == 2 or "cannot be written" in err
    assert (file.read_bytes() == before) or sqlite3.connect(file).execute("PRAGMA quick_check").fetchone() == ("ok",)


PRINTS = {
    "solve": ["solve", TRAP, "--quiet"], "certify": ["certify", TRAP, "--support", "0,1", "--quiet"],
    "method": ["solve", TRAP, "--method", "omp"], "compare": ["compare", TRAP, "--heuristic", "omp"],
    "path": ["path", TRAP, "--k-max", "2"], "list": ["best", TRAP, *LISTING],
    "best": ["best", TRAP, "--k-max", "2"],
    "info": ["info", TRAP], "instances": ["data", "instances"],
    "play": ["play", TRAP, "--dot"], "plugins": ["dev", "plugins"],
    "status": ["solve", "--status", "@checkpoint"], "verify": ["verify", "@proof", TRAP],
    "sweep": ["dev", "sweep", "@config", "--quiet"],
    "help": ["--help"], "fuzz": ["dev", "fuzz", "--count", "1"],
}  # fmt: skip


@pytest.mark.parametrize("end", ["a full disk", "nobody reads"])
@pytest.mark.parametrize("command", PRINTS)
@needs_full
def test_stdout_takes_nothing(command, end, capsys, config, tmp_path, monkeypatch):
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)
    checkpoint, proof = tmp_path / "run.ckpt", tmp_path / "run.exsel"
    if command in ("status", "verify"):
        solve(_trap(), checkpoint=checkpoint, proof=proof)
    named = {"@checkpoint": checkpoint, "@proof": proof, "@config": config}
    words = [str(named.get(word, word)) for word in PRINTS[command]]
    descriptor = os.open(FULL, os.O_WRONLY) if end == "a full disk" else a_reader_that_has_gone()
    with stdout_into(descriptor, monkeypatch), pytest.raises(SystemExit) as ended:
        main(words)
    err = capsys.readouterr().err
    assert ended.value.code == UNWRITTEN, err
    sentence = err.splitlines()[-1]
    assert sentence.startswith("Error: stdout ")
    assert sentence.endswith(".")
    assert "Internal error" not in err
    if end == "a full disk":
        assert len(err.splitlines()) > 1, "the result stands on stderr instead"


def _trap():
    from exactsel import load

    return load(TRAP)


class TestTemporaryFiles:
    """The folder for temporary files takes nothing."""

    @pytest.fixture
    def no_temporary_folder(self, monkeypatch, tmp_path):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    @needs_posix
    def test_processes_need_none(self):
        """Their problem is sent to them."""
        rng = np.random.default_rng(2)
        A = rng.standard_normal((30, 12))
        problem = Problem(A, A[:, :4].sum(axis=1) + rng.standard_normal(30), 4, lam=0.5)
        options = {"shard": 1, "batch": 4, "heuristics": (), "subtrees": False, "signals": ()}
        serial = solve(problem, executor="serial", **options)
        with no_file_larger_than(0):
            result = solve(problem, executor="processes", workers=1, **options)
        assert (result.tree_hash, result.lower) == (serial.tree_hash, serial.lower)

    def test_islands_run_here_instead(self, no_temporary_folder):
        rng = np.random.default_rng(3)
        A = rng.standard_normal((20, 8))
        problem = Problem(A, A[:, 0] + 0.1 * rng.standard_normal(20), 2, lam=0.1)
        method = heuristics.named("islands", iterations=40) if hasattr(heuristics, "named") else "islands"
        assert heuristics.run(method, problem, time_limit=20.0, signals=()).support

    def test_a_proof_for_a_special_file(self, no_temporary_folder, run):
        code, _, err = run(["certify", TRAP, "--support", "0,1", "--json", "--quiet", "--proof", "/dev/stdout"])
        assert (code, len(err.splitlines())) == (UNWRITTEN, 1) or code == 2
        assert "Internal error" not in err

    def test_open_nodes_that_are_there_stay(self):
        room, data, stored = TemporaryNodeStore(), np.random.default_rng(0).bytes(2**20), []
        with no_file_larger_than(6 * 2**20), pytest.raises(OutputError, match="folder for temporary files"):
            stored += (room.add_chunk(data, b"keys") for _ in range(40))
        assert len(stored) > 2
        assert all(room.chunk(number) == data and room.keys(number) == b"keys" for number in stored)

    def test_an_error_that_comes_from_anywhere_is_a_sentence(self, run, monkeypatch):
        def full(*arguments, **options):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("exactsel.registry.origins", full)
        code, out, err = run(["dev", "plugins"])
        assert (code, out) == (UNWRITTEN, "")
        assert err.startswith("Error: a temporary file cannot be written (No space left on device); free space in the")
