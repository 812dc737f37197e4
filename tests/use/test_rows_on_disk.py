"""``exactsel data gram --loss huber``: an instance whose rows stay in its file, its use, and what is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import exactsel
from exactsel.cli.main import main
from exactsel.data import blocks, columns
from exactsel.data.columns import MARK
from exactsel.data.instance import read_instance, write_instance
from exactsel.errors import InputError, OutputError
from exactsel_certificates.__main__ import main as check_alone
from exactsel_mapped import is_kept

RNG = np.random.default_rng(5)
N, D = 60, 4
A = np.round(RNG.standard_normal((N, D)), 3)
Y = np.round(A[:, 0] - 2.0 * A[:, 2] + RNG.standard_normal(N), 3)
W = np.round(RNG.uniform(0.5, 2.0, N), 2)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES", 50)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "rows.csv"
    lines = ["a,b,c,d,w,y", *(",".join(map(str, row)) for row in np.column_stack([A, W, Y]))]
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def run(capsys):
    """Run a command in this process: its exit code, stdout and stderr."""

    def command(*words):
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        said = capsys.readouterr()
        return ended.value.code or 0, said.out + said.err

    return command


def made(folder, **more):
    return exactsel.gram(A, Y, loss="huber", k=2, lam=1.0, out=folder / "rows.npz", **more)


def test_the_commands_take_it_as_any_other(table, tmp_path, run):
    out, proof = tmp_path / "out.npz", tmp_path / "out.exsel"
    gram = ("data", "gram", table, out, "--weights", "w", "--intercept", "--loss", "huber", "-k", 2, "--lam", 1)
    code, text = run(*gram)
    assert code == 0
    assert f"n={N} d={D}, to stay on disk" in text
    code, text = run("solve", out, "--proof", proof, "--json", "--quiet")
    assert code == 0
    assert json.loads(text[text.index("{") :])["support"] == [0, 2]
    assert run("verify", proof, out)[0] == 0
    near = exactsel.Problem.prepared(A, Y, 2, loss="huber", lam=1.0, weights=W, intercept=True)
    assert exactsel.verify(near, proof).verified
    for words in (
        ("info", out), ("path", out, "-k", 2), ("certify", out, "--support", "a,c"),
        ("best", out, "--criterion", "objective", "--within", "0.1"),
        ("solve", out, "--drop", "b"), ("solve", out, "--loss", "quadratic"),
    ):  # fmt: skip
        code, text = run(*words)
        assert code in (0, 1), (words, text)
    assert {file.name for file in tmp_path.iterdir()} == {"rows.csv", "out.npz", "out.exsel"}
    before = out.read_bytes()
    assert run(*gram)[0] == 0
    assert out.read_bytes() == before


def test_the_checker_alone_reads_it_too(tmp_path, capsys):
    instance = made(tmp_path)
    exactsel.solve(instance.problem(), proof=tmp_path / "p.exsel")
    delta = instance.problem().loss_parameters["delta"]
    assert check_alone([str(tmp_path / "p.exsel"), str(tmp_path / "rows.npz"), "--delta", repr(delta)]) == 0
    assert "VERIFIED" in capsys.readouterr().out


def test_it_is_written_again_as_it_was(tmp_path):
    instance = made(tmp_path, intercept=True)
    write_instance(tmp_path / "again.npz", instance)
    again = read_instance(tmp_path / "again.npz")
    assert is_kept(again.A)
    assert np.array_equal(again.A, A)
    assert again.problem().hash == instance.problem().hash
    with np.load(tmp_path / "again.npz") as archive:
        assert np.array_equal(archive["A"], A)


def test_rows_with_gaps_are_left_out(tmp_path):
    holed = A.copy()
    holed[3, 1] = np.nan
    with pytest.warns(UserWarning, match="1 of 60 rows"):
        instance = exactsel.gram(holed, Y, loss="huber", out=tmp_path / "rows.npz", missing="drop-rows")
    assert np.array_equal(instance.A, np.delete(A, 3, axis=0))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": "huber"}, "name it with out"),
        ({"loss": "quadratic", "out": "rows.npz"}, "leave out out"),
        ({"loss": "logistic", "delta": 1.0, "out": "rows.npz"}, "no such parameter"),
        ({"loss": "huberr", "out": "rows.npz"}, "huber"),
        ({"loss": "huber", "out": "rows.csv"}, "ends in .npz"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, monkeypatch, options, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence):
        exactsel.gram(A, Y, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, place):
    made(tmp_path)
    file = tmp_path / "rows.npz"
    with zipfile.ZipFile(file) as archive:
        end = archive.getinfo("A.npy").header_offset + archive.getinfo("A.npy").compress_size
    content = bytearray(file.read_bytes())
    content[end - 8 * N * D + 64 + place * 19] ^= 4
    file.write_bytes(content)
    with pytest.raises(InputError, match="damaged") as caught:
        read_instance(file)
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize("kept", [0.0, 0.2, 0.7, 0.99])
def test_a_truncated_file_is_refused(tmp_path, kept):
    made(tmp_path)
    file = tmp_path / "rows.npz"
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    with pytest.raises(InputError):
        read_instance(file)


@pytest.mark.parametrize("kind", ["rows first", "packed", "single", "a vector"])
def test_a_mark_without_columns_is_refused(tmp_path, kind):
    file = tmp_path / "rows.npz"
    table = {"rows first": A, "packed": np.asfortranarray(A), "single": np.asfortranarray(A, dtype=np.float32)}
    write = np.savez_compressed if kind == "packed" else np.savez
    write(file, A=table.get(kind, A[0]), y=Y, **{MARK: 1})
    with pytest.raises(InputError, match=MARK):
        read_instance(file)


def test_what_breaks_off_leaves_nothing_behind(tmp_path, monkeypatch):
    def broken():
        yield A, Y
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exactsel.gram(broken(), loss="huber", out=tmp_path / "rows.npz")
    assert not list(tmp_path.iterdir())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(columns, "write_array", full)
    with pytest.raises(OutputError, match="No space left"):
        made(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_read_only_map_in_column_order_stays_where_it_is(tmp_path):
    np.save(tmp_path / "A.npy", np.asfortranarray(A))
    mapped = np.load(tmp_path / "A.npy", mmap_mode="r")
    problem = exactsel.Problem(mapped, Y, 2, loss="huber", lam=1.0)
    assert np.shares_memory(problem.A, mapped)
    writable = np.load(tmp_path / "A.npy", mmap_mode="r+")
    assert not np.shares_memory(exactsel.Problem(writable, Y, 2, loss="huber", lam=1.0).A, writable)
    assert Path(tmp_path / "A.npy").exists()


def test_the_benchmark_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    monkeypatch.setattr(blocks, "ENTRIES", 2**13)
    from benchmarks.tall.on_disk import main as benchmark

    shown = CliRunner().invoke(benchmark, ["--quick"], catch_exceptions=False).output
    assert shown.count("| found | verified | the same |") == 2
    assert shown.count("| found | verified | not tried |") == 2
