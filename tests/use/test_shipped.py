"""The instances that come with exactsel: listed, copied, and named where somebody looks for one in vain."""

from __future__ import annotations

import json

import pytest

from exactsel.cli.main import main
from exactsel.data import load, shipped
from exactsel.errors import InputError


def ran(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([*arguments])
    out, err = capsys.readouterr()
    return end.value.code, out, err


def test_listed(capsys):
    code, out, err = ran(capsys, "data", "instances")
    assert code == 0
    assert "greedy-trap.npz" in out
    assert "442 x 64" in out
    assert "exactsel data instances --copy instances" in err


def test_as_json(capsys):
    rows = json.loads(ran(capsys, "data", "instances", "--json")[1])["instances"]
    assert {row["file"] for row in rows} == {
        path.name for ending in ("*.npz", "*.csv") for path in shipped.folder().glob(ending)
    }
    assert all(row["rows"] > 0 and row["columns"] > 0 and row["point"] for row in rows)


def test_copied_and_solved(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = ran(capsys, "solve", "instances/twins.npz")
    assert code == 2
    assert "it comes with exactsel: exactsel data instances --copy instances." in err
    assert ran(capsys, "data", "instances", "--copy", "instances")[0] == 0
    assert ran(capsys, "solve", "instances/twins.npz")[0] == 0
    assert ran(capsys, "data", "instances", "--copy", "instances")[0] == 0, "those that are there stay"


def test_another_file_is_not_overwritten(tmp_path):
    (tmp_path / "twins.npz").write_text("mine")
    with pytest.raises(InputError, match=r"twins.npz is there already and is another file; choose another folder"):
        shipped.copy_to(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["twins.npz"]
    assert (tmp_path / "twins.npz").read_text() == "mine"


@pytest.mark.parametrize("name", ["mine.npz", "mine.csv"])
def test_any_other_missing_file(name):
    with pytest.raises(InputError, match="check the name and the folder"):
        load(name, target="y") if name.endswith("csv") else load(name)
