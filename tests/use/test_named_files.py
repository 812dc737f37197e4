"""No command writes a file that another of its parameters names: every pair of them, from the commands' own lists."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from command_line import CALLED, COMMAND

from exactsel import Instance, Problem, solve, write_report
from exactsel.cli.main import cli
from exactsel.cli.named_files import READ, WRITTEN, FileCommand, FileOrText, OutputFile, OutputFolder, label
from exactsel.data.gram import gram
from exactsel.data.instance import write_instance
from exactsel.errors import InputError
from exactsel.files import same_file
from exactsel.studies.sweeps import sweep

CONTENT = b"what must not be lost\n"


def parameters(name: str, kinds: object) -> list[click.Parameter]:
    """The parameters of a command that have one of these types."""
    return [each for each in COMMAND[name].params if isinstance(each.type, kinds)]


def of_one_search(*two: click.Parameter) -> bool:
    """Whether one file may be both: a search continues in the checkpoint it resumes from."""
    return {each.name for each in two} == {"checkpoint", "resume"}


def pairs() -> list[tuple[str, click.Parameter, click.Parameter]]:
    """Each output of each command with each input and each other output."""
    found = []
    for name in COMMAND:
        outputs = parameters(name, OutputFile)
        found += [(name, out, other) for out in outputs for other in parameters(name, READ)]
        found += [(name, one, other) for one, other in combinations(outputs, 2) if not of_one_search(one, other)]
    return found


def written(name: str, parameter: click.Parameter, value: object) -> list[str]:
    """A parameter on a command line."""
    return [str(value)] if isinstance(parameter, click.Argument) else [label(parameter), str(value)]


def line(name: str, given: dict[str, Path], folder: Path) -> list[str]:
    """A command line in which some parameters are given, and arguments that are needed besides."""
    words = [*CALLED[name]]
    for each in COMMAND[name].params:
        if each.name in given:
            words += written(name, each, given[each.name])
        elif isinstance(each, click.Argument) or each.required:
            words += written(name, each, folder / f"{each.name}.npz")
    return words


def refusal(words: list[str]) -> str:
    """The sentence with which a command is refused."""
    with pytest.raises((InputError, click.UsageError)) as raised:
        CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    return str(raised.value)


def test_there_are_pairs_of_all_commands_that_write():
    """So that an empty list of pairs is no success."""
    writing = {name for name, _, _ in pairs()}
    assert {"solve", "certify", "path", "best", "compare", "convert", "gram", "sweep", "play"} <= writing
    assert len(pairs()) > 80


@pytest.mark.parametrize("name", COMMAND)
def test_every_parameter_that_names_a_file_says_what_becomes_of_it(name):
    """A new one of click's own type, or a text that speaks of files, has to be given one of ours."""
    for each in COMMAND[name].params:
        ours = isinstance(each.type, (*READ, *WRITTEN))
        assert ours or not isinstance(each.type, click.Path | click.File), f"{name}: {label(each)}"
        about_files = isinstance(each, click.Option) and "file" in (each.help or "").lower().split()
        assert ours or not about_files or each.name in ("report", "most_bytes"), f"{name}: {label(each)} and its file"
    assert isinstance(COMMAND[name], FileCommand) or not parameters(name, WRITTEN)


@pytest.mark.parametrize(
    ("name", "one", "other"), [pytest.param(*pair, id=f"{pair[0]}-{pair[1].name}-{pair[2].name}") for pair in pairs()]
)
def test_no_output_is_an_input_or_another_output(name, one, other, tmp_path, monkeypatch):
    """By the same name, another spelling, a symbolic or a hard link: refused before anything is read or written."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "data.npz"
    file.write_bytes(CONTENT)
    (tmp_path / "link.npz").symlink_to("data.npz")
    os.link(file, tmp_path / "hard.npz")
    before = sorted(path.name for path in tmp_path.iterdir())
    for spelling in ("data.npz", "./data.npz", "link.npz", "hard.npz"):
        said = refusal(line(name, {one.name: Path(spelling), other.name: file}, tmp_path / "other"))
        if not said.endswith("leave it out."):  # one that this command has no use for is refused even before
            assert label(one) in said
            assert label(other) in said
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert file.read_bytes() == (tmp_path / "hard.npz").read_bytes() == CONTENT


@pytest.mark.parametrize("name", [name for name in COMMAND if len(parameters(name, OutputFile)) > 1])
def test_outputs_that_are_not_there_yet(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for one, other in combinations(parameters(name, OutputFile), 2):
        if of_one_search(one, other):
            continue
        (tmp_path / "link").symlink_to("new.npz")
        for spelling in ("new.npz", "./new.npz", "link"):
            assert "both" in refusal(line(name, {one.name: Path(spelling), other.name: tmp_path / "new.npz"}, tmp_path))
        (tmp_path / "link").unlink()
    assert [*tmp_path.iterdir()] == []


def test_what_is_written_beside_a_checkpoint_is_no_other_output(tmp_path):
    given = {"checkpoint": tmp_path / "run", "proof": tmp_path / "run-wal"}
    assert "--checkpoint are both" in refusal(line("solve", given, tmp_path))


def test_folders_of_outputs(tmp_path):
    """A proof of `best` has a name of its own in its folder; no input may be called so."""
    (tmp_path / "k3.exsel").write_bytes(CONTENT)
    words = line("best", {"proof": tmp_path, "weights": tmp_path / "k3.exsel"}, tmp_path)
    assert "--proof is" in refusal(words)
    assert [each.name for each in parameters("best", OutputFolder)] == ["proof"]
    report = {"proof": tmp_path, "report": tmp_path / "k3.exsel"}
    assert "--report is that file, too" in refusal(line("best", report, tmp_path))


def test_a_text_is_a_file_only_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_instance("d.npz", Instance(np.eye(4), np.arange(4.0), k=1, feature_names=("a", "b", "c", "d")))
    assert any(isinstance(each.type, FileOrText) and each.name == "offset" for each in COMMAND["solve"].params)
    done = CliRunner().invoke(
        cli, ["solve", "d.npz", "--offset", "a", "--proof", "p", "--trace", "t", "--quiet"], standalone_mode=False
    )
    assert done.return_value == 0
    assert {"p", "t"} <= {path.name for path in tmp_path.iterdir()}


def test_the_file_behind_stdout_is_no_other_output(tmp_path):
    write_instance(tmp_path / "d.npz", Instance(np.eye(4), np.arange(4.0), k=1))
    words = [sys.executable, "-m", "exactsel", "solve", str(tmp_path / "d.npz"), "--json", "--quiet", "--proof", "out"]
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "to which stdout goes" in done.stderr


def test_special_files_may_be_named_twice():
    if os.path.exists(os.devnull):
        assert not same_file(os.devnull, os.devnull)


def test_where_letters_do_not_matter(tmp_path, monkeypatch):
    """As the file system has it, which is told by the name of the folder."""
    from exactsel import files

    assert not same_file(tmp_path / "new", tmp_path / "NEW") or (tmp_path.with_name(tmp_path.name.swapcase())).exists()
    monkeypatch.setattr(files, "_ignores_case", lambda folder: True)
    assert same_file(tmp_path / "new", tmp_path / "NEW")
    assert not same_file(tmp_path / "new", tmp_path / "newer")
    assert not same_file(tmp_path / "new\0", tmp_path / "new\0")


class TestPython:
    """The same in Python, where inputs are known."""

    @pytest.fixture
    def problem(self):
        rng = np.random.default_rng(0)
        return Problem(rng.standard_normal((12, 4)), rng.standard_normal(12), 2, lam=0.1)

    @pytest.mark.parametrize(("one", "other"), [*combinations(("proof", "trace", "checkpoint"), 2)])
    def test_solve(self, problem, tmp_path, one, other):
        with pytest.raises(InputError, match=f"{one} and {other} are both"):
            solve(problem, **{one: tmp_path / "out", other: f"{tmp_path}/./out"})
        assert [*tmp_path.iterdir()] == []

    def test_data_that_stay_in_their_file(self, tmp_path):
        rng = np.random.default_rng(1)
        file = tmp_path / "rows.npz"
        kept = gram(rng.standard_normal((30, 3)), rng.standard_normal(30), loss="huber", k=1, lam=1.0, out=file)
        content = file.read_bytes()
        for problem in (kept.problem(), kept.problem(intercept=True)):
            for output in ("proof", "trace"):
                with pytest.raises(InputError, match=f"{output} is .*, but the file of the data is that file"):
                    solve(problem, **{output: tmp_path / "." / "rows.npz"})
        assert file.read_bytes() == content

    def test_a_report_does_not_replace_the_proof(self, problem, tmp_path):
        result = solve(problem, proof=tmp_path / "p.exsel")
        proof = (tmp_path / "p.exsel").read_bytes()
        with pytest.raises(InputError, match=r"the report is .*, but the result's proof is that file"):
            write_report(tmp_path / "p.exsel", result)
        assert (tmp_path / "p.exsel").read_bytes() == proof

    def test_gram(self, tmp_path):
        file = tmp_path / "rows.npz"
        np.save(tmp_path / "rows.npy", np.eye(5))
        (tmp_path / "rows.npy").rename(file)
        content = file.read_bytes()
        with pytest.raises(InputError, match=r"out is .*, but data is that file"):
            gram(file, target=0, loss="huber", out=file)
        assert file.read_bytes() == content

    @pytest.mark.parametrize("which", ["the table", "the table's store"])
    def test_a_sweep_does_not_replace_its_config_or_an_instance(self, tmp_path, which):
        write_instance(tmp_path / "d.npz", Instance(np.eye(4), np.arange(4.0)))
        table = tmp_path / "t.csv"
        config = tmp_path / "c.toml"
        config.write_text(f'[[sweep]]\ninstances = ["{tmp_path}/d.npz"]\nk = [1]\n')
        (table if which == "the table" else tmp_path / "t.csv.store").symlink_to(config)
        content = config.read_bytes()
        with pytest.raises(InputError, match=f"{which} is .*, but the config is that file"):
            sweep(config, table, jobs=0)
        assert config.read_bytes() == content
