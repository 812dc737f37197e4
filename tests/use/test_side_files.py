"""Files beside the data: weights, offsets, targets, coefficients, bounds, groups, hierarchies, configs of sweeps.

One reader takes them all, in every encoding a text can say it is in.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

RNG = np.random.default_rng(11)
A = RNG.integers(-5, 6, (12, 4)).astype(float)
Y = A @ [2.0, 0.0, -1.0, 0.5] + RNG.integers(-2, 3, 12)
NUMBERS = "\n".join(map(str, RNG.integers(1, 5, 12))) + "\n"

WAYS = {
    "with a byte order mark": lambda text: text.encode("utf-8-sig"),
    "in UTF-16": lambda text: text.encode("utf-16"),
    "with carriage returns and a mark": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
}
"""How a text may be stored beside plain UTF-8."""

FILES = {
    "weights": ("solve --intercept --weights", ".txt", NUMBERS),
    "offset": ("solve --intercept --offset", ".txt", NUMBERS),
    "target": ("solve --intercept --target", ".txt", NUMBERS),
    "coef": ("certify --coef", ".txt", "1\n0\n-1\n0\n"),
    "bounds": ("solve --bounds", ".csv", "column,lower,upper\na,0,1\n"),
    "groups as a table": ("solve --lam 1 --groups", ".csv", "a,first\nb,first\n"),
    "groups as an object": ("solve --lam 1 --groups", ".json", '{"first": ["a", "b"]}\n'),
    "hierarchy": ("solve --lam 1 --hierarchy", ".txt", "weak\na: b, c\n"),
    "not both": ("solve --lam 1 --not-both", ".txt", "a, b\n"),
}
"""What is read: the command, the ending of the file, and a text."""


@pytest.fixture
def table(tmp_path) -> Path:
    lines = [",".join(map(str, [*row, y])) for row, y in zip(A, Y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,y", *lines]) + "\n")
    return tmp_path / "t.csv"


def answered(run, words: str, table: Path, file: Path) -> dict:
    command, *options = words.split()
    done = run(command, table, "-k", 2, *options, file, "--json", "--quiet")
    assert done.code in (0, 1), done.err  # coefficients need not be the best ones
    return {name: done.json.get(name) for name in ("support", "upper", "lower", "candidate")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FILES)
def test_a_mark_at_the_beginning_changes_nothing(tmp_path, table, run, what, way):
    words, ending, text = FILES[what]
    plain, marked = tmp_path / f"plain{ending}", tmp_path / f"marked{ending}"
    plain.write_text(text, encoding="utf-8")
    marked.write_bytes(WAYS[way](text))
    assert answered(run, words, table, marked) == answered(run, words, table, plain)


@pytest.mark.parametrize("what", FILES)
def test_what_is_no_text_is_one_sentence(tmp_path, table, run, what):
    words, ending, text = FILES[what]
    packed = gzip.compress(text.encode() * 500)
    for name, content in (("f" + ending, b"\xff\xff\x00a"), (f"f{ending}.gz", packed[:-20])):
        (tmp_path / name).write_bytes(content)
        command, *options = words.split()
        done = run(command, table, "-k", 2, *options, tmp_path / name, "--quiet")
        assert done.code == 2
        assert done.err.count("\n") == 1


@pytest.mark.parametrize("way", WAYS)
def test_the_config_of_a_sweep(tmp_path, table, run, way):
    config = '[[sweep]]\ninstances = ["t.csv"]\nk = [1]\nlam = [1.0]\n'
    (tmp_path / "s.toml").write_bytes(WAYS[way](config))
    done = run("dev", "sweep", tmp_path / "s.toml", "--dry-run", "--json")
    assert (done.code in (0, 1), json.loads(done.out)["jobs"]) == (True, 1), done.err


@pytest.mark.parametrize(("ending", "text"), [
    (".mtx", "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\n7\n"),
    (".svm", "1 1:1 2:4\n2 1:2 2:5\n3 1:3 2:7\n"),
])  # fmt: skip
def test_matrices_too(tmp_path, ending, text):
    from exactsel.data import read_data

    (tmp_path / f"m{ending}").write_bytes(text.encode("utf-8-sig"))
    np.testing.assert_array_equal(read_data(tmp_path / f"m{ending}").A, [[1, 4], [2, 5], [3, 7]])
