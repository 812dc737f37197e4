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


def test_info_shows_the_columns_of_a_table_that_cannot_be_used(tmp_path):
    (tmp_path / "d.csv").write_text("sex,a,b,price\nf,1,NA,2\nm,2,3,4\nf,3,4,5\n")
    shown = run("info", tmp_path / "d.csv", "--target", "price")
    assert isinstance(shown.exception, InputError)
    facts, table = shown.stdout.split("\n\n")
    assert " ".join(facts.split()) == "problem regression n 3 columns 4 missing 1 target price"
    assert [line.split(maxsplit=3) for line in table.splitlines()] == [
        ["column", "name", "missing", "holds"],
        ["0", "sex", "0", "text, 2 different: 'f', 'm'"],
        ["1", "a", "0", "numbers from 1 to 3, 3 different"],
        ["2", "b", "1", "numbers from 3 to 4, 2 different"],
        ["3", "price", "0", "numbers from 2 to 5, 3 different"],
    ]
    assert run("info", tmp_path / "d.csv", "--target", "price", "--json").stdout == ""


def test_info_shows_the_facts_of_data_whose_options_are_refused(tmp_path):
    (tmp_path / "d.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i * i}\n" for i in range(9)))
    shown = run("info", tmp_path / "d.csv", "-k", 1, "--lam", 1, "--groups", "x=q")
    assert isinstance(shown.exception, InputError)
    lines = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines() if line)
    assert (lines["n"], lines["rank"], lines["problem_hash"]) == ("9", "2", "-")
