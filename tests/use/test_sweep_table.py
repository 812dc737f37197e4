"""The CSV of a sweep: no cell of it is a formula to a spreadsheet."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from exactsel.studies.sweeps import sweep
from exactsel.studies.sweeps.table import COLUMNS, table_bytes


@pytest.mark.parametrize("name", ["=cmd.csv", "+1.csv", "-2.csv", "@SUM(A1).csv", "=HYPERLINK(1)-x.csv", "plain.csv"])
def test_no_cell_is_a_formula_to_a_spreadsheet(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("=a,-b,y\n1,2,3\n2,1,4\n4,4,1\n")
    jobs = {"instances": [name], "node_limit": 50, "k": 1, "lam": 1.0, "method": ["solve", "omp"], "force_in": ["=a"]}
    found = sweep({"sweep": [jobs]}, "t.csv", jobs=0)
    for row in csv.DictReader(Path("t.csv").read_text(encoding="utf-8").splitlines()):
        texts = {key for key, kind in COLUMNS.items() if kind is str}
        assert not [row[key] for key in texts if row[key].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
        assert row["instance"] == (name if name == "plain.csv" else f"'{name}")
    assert [row["instance"] for row in found.rows] == [name] * 2  # in Python nothing is changed


def test_negative_numbers_stay_numbers_and_errors_are_texts():
    row = {"upper": -1.5, "lower": -2.0, "d": -3, "error": "-x is no name.", "version": "\tx"}
    (written,) = csv.DictReader(table_bytes([row], "t.csv").decode().splitlines())
    assert (written["upper"], written["lower"], written["d"]) == ("-1.5", "-2.0", "-3")
    assert (written["error"], written["version"]) == ("'-x is no name.", "'\tx")
