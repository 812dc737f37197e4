"""Tables as R's write.table leaves them: the names of the rows stand in a first column without a name."""

from __future__ import annotations

import gzip
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from exactsel import InputError, gram, load
from exactsel.data import read_data

ROWS = [("1", 1.0, 2.0, 3.5), ("2", 2.0, 1.0, 0.5), ("3", 3.5, 0.0, 1.5), ("4", 3.0, 0.2, 1.1)]
"""What the data of the tables below are: name, y, a, b."""

SAID = "has no name; it is taken for row names"


def table(mark: str, quote: str = '"', header: str = "y,a,b", rows: list[tuple] = ROWS) -> str:
    names = mark.join(f"{quote}{name}{quote}" for name in header.split(","))
    lines = (mark.join([f"{quote}{row[0]}{quote}", *map(str, row[1:])]) for row in rows)
    return "\n".join([names, *lines]) + "\n"


def written(folder: Path, text: str, ending: str = ".csv") -> Path:
    file = folder / f"t{ending}"
    data = text.encode()
    file.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    return file


@pytest.mark.parametrize("mark", [",", ";", "\t", "|", " ", "   "])
@pytest.mark.parametrize("quote", ['"', ""])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_the_first_column_is_the_names_of_the_rows(tmp_path, mark, quote, ending):
    file = written(tmp_path, table(mark, quote), ending)
    with pytest.warns(UserWarning, match=SAID):
        found = read_data(file)
    assert found.feature_names == ("a", "b")
    np.testing.assert_array_equal(found.A, [row[2:] for row in ROWS])
    np.testing.assert_array_equal(found.y, [row[1] for row in ROWS])


@pytest.mark.parametrize("mark", [",", "\t", " "])
def test_names_of_rows_are_texts_too(tmp_path, mark):
    rows = [(name, *row[1:]) for name, row in zip(["Mazda RX4", "Datsun 710", "Fiat", "2"], ROWS, strict=True)]
    with pytest.warns(UserWarning, match=SAID):
        found = read_data(written(tmp_path, table(mark, rows=rows)))
    np.testing.assert_array_equal(found.A, [row[2:] for row in ROWS])


@pytest.mark.parametrize("mark", [",", "\t", " "])
def test_rows_in_blocks(tmp_path, mark):
    file = written(tmp_path, table(mark))
    with pytest.warns(UserWarning, match=SAID):
        reduced = gram(file, k=1, intercept=False)
    assert reduced.feature_names == ("a", "b")
    A, y = (np.array([row[2:] for row in ROWS]), np.array([row[1] for row in ROWS]))
    np.testing.assert_allclose(reduced.A.T @ reduced.A, A.T @ A, rtol=1e-12)
    np.testing.assert_allclose(reduced.A.T @ reduced.y, A.T @ y, rtol=1e-12)


def test_the_plain_command_solves_it(tmp_path, run):
    answer = run("solve", written(tmp_path, table(",")), "-k", 1, "--json")
    assert (answer.code, answer.json["support"]) == (0, [0])
    assert SAID in answer.err


REFUSED = {
    "ragged, a short row below": ("y,a,b\nr,1,2,3\ns,2,3\n", "row 3 of .* has 3 cells, but the second has 4"),
    "ragged, a long row below": ("y,a,b\nr,1,2,3\ns,2,3,4,5\n", "row 3 of .* has 5 cells, but the second has 4"),
    "short only later": ("y,a,b\n1,2,3\nr,2,3,4\n", "row 3 of .* has 4 cells, but the first has 3"),
    "two short": ("y,a\nr,s,1,2\nt,u,2,3\n", "row 2 of .* has 4 cells, but the first has 2"),
    "a mark at the end of each row": ("y,a,b\n1,2,3,\n2,3,4,\n", "every row ends with an empty cell"),
    "no names, for one is there twice": ("y,a,b\n7,1,2,3\n7,2,3,5\n", "no row names, as one is there twice"),
    "no line of names": ("1,2,3\n7,1,2,3\n8,2,3,5\n", "row 2 of .* has 4 cells, but the first has 3"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("mark", [",", "\t", " "])
def test_no_other_table_loses_its_first_column(tmp_path, case, mark):
    text, match = REFUSED[case]
    if mark == " " and "end of each row" in case:
        pytest.skip("a blank at the end of a row separates nothing")
    file = written(tmp_path, text.replace(",", mark))
    with pytest.raises(InputError, match=match if mark != " " else "cells|twice|holds text"):
        read_data(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # blocks are read after the first rows have been looked at
        with pytest.raises(InputError):
            gram(file, target=0, k=1)


def test_a_last_column_without_values_is_a_column(tmp_path):
    """NA is what R writes for no value, and no empty cell."""
    text = table(",").replace("3.5\n", "NA\n").replace("0.5\n", "NA\n").replace("1.5\n", "NA\n")
    text = text.replace("1.1\n", "NA\n")
    with pytest.warns(UserWarning, match=SAID), pytest.warns(UserWarning, match=r"values are missing: b \(4\)"):
        found = read_data(written(tmp_path, text), missing="drop-columns")
    assert found.feature_names == ("a",)


@pytest.mark.filterwarnings("ignore:.*spaces or apostrophes between thousands")
@pytest.mark.parametrize("text", ["life expectancy\n70\n71\n", "pop\n1 234\n2 345\n", "y\n1\n2\n"])
def test_one_column_with_blanks_stays_one(tmp_path, text):
    with pytest.raises(InputError, match="no columns left beside the target"):
        read_data(written(tmp_path, text), target=0)


@pytest.mark.skipif("EXACTSEL_DATA" not in os.environ, reason="needs the folder EXACTSEL_DATA")
def test_the_file_that_was_reported():
    with pytest.warns(UserWarning, match=SAID):
        problem = load(Path(os.environ["EXACTSEL_DATA"]) / "reports" / "wt.csv", k=1)
    assert (problem.n, problem.feature_names) == (4, ("a", "b"))
