"""``exactsel info`` of a table before it is decided what is predicted."""

from __future__ import annotations

import json

from click.testing import CliRunner

from exactsel.cli.main import cli
from exactsel.errors import InputError


def run(*arguments: object):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], standalone_mode=False)


def test_a_table_whose_target_is_not_named_yet(tmp_path):
    (tmp_path / "d.csv").write_text("sex,a,b,price\nf,1,NA,2\nm,2,3,4\nf,3,4,5\n")
    facts = json.loads(run("info", tmp_path / "d.csv", "--json").stdout)
    assert (facts["n"], facts["missing"], facts["target"]) == (3, 1, None)
    assert facts["columns"][2] == {"name": "b", "holds": "numbers", "missing": 1}
    shown = run("info", tmp_path / "d.csv")
    assert shown.exit_code == 0
    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    assert " ".join(" ".join(lines[1:5]).split()) == "n 3 columns 4 missing 1 target -"
    assert "2  b            1  numbers" in shown.stdout
    assert "no column is called y; name the target with --target" in lines[-1]
    shown = run("info", tmp_path / "d.csv", "--drop", "sex,b")
    assert "numbers from 2 to 5" in shown.stdout
    assert "name its column (a, price)" in shown.stdout
    shown = run("info", tmp_path / "d.csv", "--drop", "sex,b", "--target", "price")
    assert shown.stdout.startswith("problem              regression\nn                    3\n")
    assert isinstance(run("info", tmp_path / "d.csv", "--problem", "css").exception, InputError)
