"""First files of one's own: ugly tables, each read, or answered by a sentence that leads to a command that works."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactsel
from exactsel.cli.main import main
from exactsel.data import read_data
from exactsel.data.cells import as_number, bare, decimal_mark, is_date, read_cells
from exactsel.errors import InputError
from exactsel.studies.crossval import cross_validate, random_folds

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(50.0, 20.0, (24, 3)), 2)
PAY = np.round(X @ [2.0, -1.0, 0.5] + 7.0 + RNG.normal(0.0, 0.5, 24), 2)


def lines(*texts: str, delimiter: str = ",", end: str = "\n") -> str:
    """A table of three columns and the target, ``pay``, with further columns in front."""
    more = [text.split(delimiter) for text in texts]
    header = [*(column[0] for column in more), "age", "rooms", "noise", "pay"]
    rows = [
        [*(column[1 + i % (len(column) - 1)] for column in more), *map(str, X[i]), str(PAY[i])] for i in range(len(X))
    ]
    return end.join(delimiter.join(row) for row in [header, *rows]) + end


def european(text: str) -> str:
    """The same with semicolons and decimal commas."""
    return text.replace(",", ";").replace(".", ",")


def large(text: str) -> str:
    """Numbers of thousands with marks between them, in double quotes."""
    return re.sub(r"-?\d+\.\d+", lambda found: f'"{float(found[0]) * 1000:,.2f}"', text)


def swapped(text: str) -> str:
    """Points for commas and commas for points."""
    return text.translate(str.maketrans(",.", ".,"))


PLAIN = lines()

# name: bytes of the file, further options, what is said (warnings)
READ = {
    "decimal commas": (european(PLAIN), "", "decimal commas in age, rooms, noise, pay"),
    "decimal commas, tabs": (PLAIN.replace(",", "\t").replace(".", ","), "", "decimal commas"),
    "commas between thousands": (large(PLAIN), "", "commas between thousands in age"),
    "points between thousands": (
        re.sub(r"-?\d+\.\d+", lambda found: swapped(f"{float(found[0]) * 1000:,.2f}"), PLAIN.replace(",", ";")), "",
        "decimal commas",
    ),
    "dollars": (re.sub(r",(-?[\d.]+)\n", r",$\1\n", PLAIN), "", "'$' left out in pay"),
    "euros behind": (re.sub(r",(-?[\d.]+)\n", ",\\1 €\n", PLAIN), "", "'€' left out in pay"),
    "per cent": (re.sub(r",(-?[\d.]+)\n", r",\1%\n", PLAIN), "", "'%' left out in pay"),
    "spaces behind commas": (PLAIN.replace(",", ", "), "", ""),
    "spaces between thousands": (
        re.sub(r"-?\d+\.\d+", lambda found: f"{float(found[0]) * 1000:,.2f}".replace(",", " "), PLAIN), "",
        "spaces or apostrophes between thousands",
    ),
    "windows encoding": (lines("stra\xdfe,1,2,3").encode("cp1252"), "", "is not UTF-8 text and read as Windows-1252"),
    "utf-16": (lines("straße,1,2,3").encode("utf-16"), "", ""),
    "utf-8 with a mark": (lines("straße,1,2,3").encode("utf-8-sig"), "", ""),
    "latin-1 said so": (lines("stra\xdfe,1,2,3").encode("latin-1"), "--encoding latin-1", ""),
    "carriage returns": (lines(end="\r\n"), "", ""),
    "empty lines": (PLAIN.replace("\n", "\n\n"), "", ""),
    "sep line": ("sep=;\n" + european(PLAIN), "", "decimal commas"),
    "bars": (PLAIN.replace(",", "|"), "", ""),
    "row labels": (lines(",a,b,c"), "", "has no name; it is taken for row names"),
    "a column without a name": (lines("x,1,2,3", ",4,7,6"), "", "there is no name for column 1"),
    "two of a name": (lines("age,1,2,3,5"), "", "more than one column is called age"),
    "truths": (lines("old,TRUE,FALSE,FALSE"), "", ""),
    "no header": (PLAIN.partition("\n")[2], "", ""),
    "no header, decimal commas": (european(PLAIN.partition("\n")[2]), "", "decimal commas"),
    "gaps and rows dropped": (lines("size,1,NA,3,4,2"), "--missing drop-rows", "5 of 24 rows are left out"),
    "gaps and a mean": (lines("size,1,.,3,4,2"), "--missing mean", "filled in (by the mean"),
    "gaps and an indicator": (lines("size,1,#N/A,3,4,2"), "--missing mean-indicator", "filled in (by the mean"),
    "gaps and columns dropped": (lines("size,1,-,3,4,2"), "--missing drop-columns", "left out, as values are missing"),
    "a category with gaps": (
        lines("city,Rome,Oslo,,Oslo"), "--missing median --factors city", "or as 'missing')",
    ),
    "a name with a comma": (lines("_,7,2,3,9").replace("_", '"size, m2"', 1), '--drop "\\"size, m2\\""', ""),
}  # fmt: skip

# name: bytes, what the sentence says, the command it leads to
ANSWERED = {
    "either mark": (
        "age;rooms;pay\n" + "".join(f"{x[0]:.0f};{x[1]:.0f},125;{y:.0f}\n" for x, y in zip(X + 100, PAY, strict=True)),
        "may be a decimal one or group thousands", "--decimal .",
    ),
    "a category": (
        lines("city,Rome,Oslo,Lima"), "city ('Rome', 'Oslo', …) holds text; make it a factor", "--factors auto",
    ),
    "per cent and fractions": (
        lines("rate,12%,0.12,3%"), "rate ('12%', '0.12') holds numbers in different units", "--drop rate",
    ),
    "two currencies": (
        lines("cost,$1,€2,€0"), "cost ('$1', '€2') holds numbers in different units", "--drop cost",
    ),
    "feet and inches": (lines("tall,5’10,6’1,5’9"), "tall ('5’10', '6’1', …) holds text", "--drop tall"),
    "dates": (lines("sold,2024-01-02,2024-02-03,2023-12-31 10:30"), "holds dates; turn them", "--drop sold"),
    "german dates": (lines("sold;1.2.2024;13.11.2023", delimiter=";"), "holds dates", "--drop sold"),
    "gaps": (
        lines("size,1,NA,3", "tax,4,5,?,7"), "size (8 missing), tax (6 missing) have missing values; fill them in",
        "--missing mean",
    ),
    "infinite": (lines("size,1,inf,3"), "column size holds infinite values", "--drop size"),
    "another case": (PLAIN.replace("pay", "Pay"), "no column called 'pay'; did you mean 'Pay'", "--target Pay"),
    "all at once": (
        lines("city,Rome,Oslo,Lima", "size,1,NA,3,4,2", "sold,2024-01-02,2023-02-03"),
        "make it a factor", "--factors auto --drop sold --missing median",
    ),
    "a target with gaps": (re.sub(r"(?s),[^,]*\n$", ",\n", PLAIN), "target pay has 1 missing", "--missing drop-rows"),
    "nonsense bytes": (lines("city,a\x81,b").encode("latin-1"), "not UTF-8 text", "--encoding latin-1 --drop city"),
    "utf-16 without a mark": (PLAIN.encode("utf-16-le"), "holds NUL bytes", "--encoding utf-16-le"),
}  # fmt: skip


def solved(file: Path, options: str, capsys) -> tuple[int, str, str]:
    """Exit code, answer and talk of ``exactsel solve``."""
    target = "-1" if "no header" in file.name else "pay"
    words = shlex.split(options)
    given_target = [] if "--target" in words else ["--target", target]
    with pytest.raises(SystemExit) as ended:
        main(["solve", str(file), *given_target, "-k", "2", "--intercept", *words])
    shown = capsys.readouterr()
    return ended.value.code, shown.out, shown.err


def as_file(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / f"{name}.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize("name", READ)
def test_read_at_once(name, tmp_path, capsys):
    content, options, said = READ[name]
    code, out, err = solved(as_file(tmp_path, name, content), options, capsys)
    assert code == 0, err
    assert (said or "") in err
    if said == "":
        assert "Warning" not in err
    if name not in ("gaps and rows dropped", "two of a name", "no header", "no header, decimal commas"):
        assert {"age", "rooms"} <= set(out.split())


@pytest.mark.parametrize("name", ANSWERED)
def test_answered_by_a_sentence_that_leads_on(name, tmp_path, capsys):
    content, said, options = ANSWERED[name]
    file = as_file(tmp_path, name, content)
    code, _, err = solved(file, "", capsys)
    assert code == 2
    assert err.count("\n") == 1
    assert said in err
    assert options.split()[0] in err or "did you mean" in err
    code, out, err = solved(file, options, capsys)
    assert code == 0, err
    assert {"age", "rooms"} <= set(out.split())


def test_all_that_is_wrong_is_told_at_once(tmp_path, capsys):
    text = lines("city,Rome,Oslo,Lima", "size,1,NA,3", "sold,2024-01-02,2023-02-03", "far,inf,2")
    file = as_file(tmp_path, "all", re.sub(r"(?s),[^,]*\n$", ",\n", text))
    _, _, err = solved(file, "", capsys)
    for said in ("target pay has 1 missing", "--factors auto", "sold holds dates", "size (8 missing)", "far holds inf"):
        assert said in err


def test_an_id_is_no_category(tmp_path, capsys):
    rows = PLAIN.splitlines()
    text = "\n".join(["who," + rows[0], *(f"p{i}-{j},{row}" for j in range(5) for i, row in enumerate(rows[1:]))])
    _, _, err = solved(as_file(tmp_path, "id", text), "", capsys)
    assert "who (120, 'p0-0', 'p1-0', …) holds text of too many values for a category; leave it out: --drop who" in err
    assert "--factors" not in err


class TestNumbers:
    """Whatever is read in the place of what is written is the number that was meant."""

    @pytest.mark.parametrize(
        ("cells", "mark"),
        [
            (["1,5", "2"], ","), (["1.5", "2"], "."), (["1,000"], "?"), (["1.000"], "?"), (["1,000", "0,5"], ","),
            (["1,000.5"], "."), (["1.000,5"], ","), (["1,000,000"], "."), (["1.000.000"], ","), (["0,125"], ","),
            (["1234,567"], ","), (["1,5", "1.5"], ",."), (["12"], ""), (["-1,000"], "?"), ([], ""),
        ],
    )  # fmt: skip
    def test_marks(self, cells, mark):
        assert decimal_mark(cells) == mark

    @given(
        st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=1, max_size=8), st.sampled_from(",."),
        st.booleans(), st.sampled_from(["", "$", "€ ", "%"]),
    )  # fmt: skip
    def test_written_and_read(self, values, decimal, grouped, sign):
        grouping = "." if decimal == "," else ","
        texts = [f"{value:,.2f}" if grouped else f"{value:.2f}" for value in values]
        texts = [text.translate(str.maketrans({",": grouping, ".": decimal})) for text in texts]
        texts = [text + "%" if sign == "%" else text.replace("-", "-" + sign) if sign else text for text in texts]
        assert decimal_mark(map(bare, texts)) == decimal
        np.testing.assert_array_equal(read_cells(texts, decimal).values, values)

    @pytest.mark.parametrize(
        ("cell", "value"),
        [("1'000", 1000.0), ("1’234’567.5", 1234567.5), ("-12 345", -12345.0), ("1 000 €", 1000.0),
         ("044 123 456", None), ("5'10", None), ("5’10", None), ("1'0000", None), ("1234'567", None),
         ("1'000’000", None)],
    )  # fmt: skip
    def test_apostrophes_and_spaces_group_by_three(self, cell, value):
        values = read_cells([cell], ".").values
        assert (None if values is None else values[0]) == value

    def test_units(self):
        assert read_cells(["12%", "0.12"], ".").clash == ("12%", "0.12")
        assert read_cells(["$1", "2", "0"], ".").clash is None  # as accounts are written: some cells without the sign
        assert read_cells(["12%", "0"], ".").clash is None
        assert read_cells(["12%", "0.12", "text"], ".").clash is None

    @pytest.mark.parametrize("cell", ["1,2,3", "1.2.3", "1,00", "12,34,567", "1,000,00", "a", "1 2", "1_0", "$", "--5"])
    def test_what_is_no_number(self, cell):
        assert as_number(bare(cell), ".") is None
        assert read_cells(["1", cell], ".").values is None

    @pytest.mark.parametrize(
        ("cell", "expected"),
        [("2024-01-31", True), ("31.1.2024", True), ("1/31/24 10:15", True), ("2024-01-31T10:15:00Z", True),
         ("1.2.3", False), ("12", False), ("1.5", False), ("1-2", False)],
    )  # fmt: skip
    def test_dates(self, cell, expected):
        assert is_date(cell) == expected

    def test_a_point_between_thousands_where_commas_are_decimal(self, tmp_path):
        """Read alone, 1.234 is a plain number."""
        file = as_file(tmp_path, "points", "a;b;y\n1.234;0,5;1\n2.500;0,25;2\n1.250;1,75;3\n")
        with pytest.warns(UserWarning, match="decimal commas in a, b"):
            read = read_data(file)
        np.testing.assert_array_equal(read.A, [[1234, 0.5], [2500, 0.25], [1250, 1.75]])
        with pytest.warns(UserWarning, match="decimal commas in b"):  # here the column shows what its points are
            read = read_data(as_file(tmp_path, "mixed", "a;b;y\n1.234;0,5;1\n2.5;0,25;2\n1.250;1,75;3\n"))
        np.testing.assert_array_equal(read.A[:, 0], [1.234, 2.5, 1.25])

    @pytest.mark.parametrize(("cells", "asked"), [("1.234 950", True), ("1.234 0.5", False), ("1.234 12.5", False)])
    def test_points_where_commas_are_likely(self, cells, asked, tmp_path):
        """Semicolons are for tables with decimal commas, so that a point may be no decimal one."""
        one, other = cells.split()
        file = as_file(tmp_path, "semicolons", f"a;y\n{one};1\n{other};2\n")
        if asked:
            with pytest.raises(InputError, match=r"column a holds numbers like '1.234'.*decimal="):
                read_data(file)
            with pytest.warns(UserWarning, match="decimal commas in a"):
                assert read_data(file, decimal=",").A[0, 0] == 1234.0
            assert read_data(file, decimal=".").A[0, 0] == 1.234
        else:
            assert read_data(file).A[0, 0] == 1.234
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_data(as_file(tmp_path, "commas", f"a,y\n{one},1\n{other},2\n")).A[0, 0] == 1.234

    def test_what_somebody_says_holds(self, tmp_path):
        file = as_file(tmp_path, "said", "a;b;y\n1,234;7;1\n2,500;8;2\n")
        with pytest.raises(InputError, match=r"column a holds numbers like '1,234'.*decimal="):
            read_data(file)
        with pytest.warns(UserWarning, match="decimal commas"):
            assert read_data(file, decimal=",").A[0, 0] == 1.234
        with pytest.warns(UserWarning, match="commas between thousands"):
            assert read_data(file, decimal=".").A[0, 0] == 1234.0
        with pytest.raises(InputError, match="decimal is 'x'"):
            read_data(file, decimal="x")

    @pytest.mark.parametrize("decimal", [",", "."])
    def test_a_text_column_may_hold_what_looks_like_numbers(self, decimal, tmp_path):
        file = as_file(tmp_path, "text", "a;b;y\n1,000;7;1\nmany;8;2\n")
        with pytest.raises(InputError, match=r"a .'1,000', 'many'. holds text"):
            read_data(file, decimal=decimal)


class TestGaps:
    FRAME_TEXT = "a,b,c,y\n1,u,2,1\n,v,3,2\n3,,4,3\n5,u,,4\n8,v,6,\n"

    @pytest.mark.parametrize(
        ("way", "rows", "column"),
        [
            ("drop-rows", 1, [1.0]), ("mean", 4, [1.0, 3.0, 3.0, 5.0]), ("median", 4, [1.0, 3.0, 3.0, 5.0]),
            ("mean-indicator", 4, [1.0, 3.0, 3.0, 5.0]),
        ],
    )  # fmt: skip
    def test_each_way(self, way, rows, column, tmp_path):
        file = as_file(tmp_path, "gaps", self.FRAME_TEXT)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read = read_data(file, missing=way, factors=["b"])
        assert read.A.shape[0] == len(read.y) == rows
        np.testing.assert_array_equal(read.A[:, read.feature_names.index("a")], column)
        assert any("rows are left out" in str(each.message) for each in caught)
        if way == "mean-indicator":
            np.testing.assert_array_equal(read.A[:, read.feature_names.index("a missing")], [0, 1, 0, 0])
        if rows == 4:
            columns = [read.A[:, read.feature_names.index(name)] for name in ("b[u]", "b[v]")]
            np.testing.assert_array_equal(columns, [[1, 0, 0, 1], [0, 1, 0, 0]])  # the reference is "missing"

    def test_frames_and_files_are_the_same(self, tmp_path):
        frames = [pytest.importorskip(name) for name in ("pandas", "polars")]
        file = as_file(tmp_path, "gaps", self.FRAME_TEXT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for way in ("drop-rows", "mean-indicator", "median"):
                expected = read_data(file, missing=way, factors=["b"])
                for library in frames:
                    frame = library.read_csv(file)
                    problem = exactsel.load(frame, missing=way, factors=["b"], k=1)
                    np.testing.assert_array_equal(problem.A, expected.A)

    @pytest.mark.filterwarnings("ignore:in the data, missing values are filled in")
    def test_folds_are_filled_by_their_training_rows(self):
        """A mean of all rows would know the rows held out."""
        rng = np.random.default_rng(1)
        A = rng.normal(size=(30, 4))
        y = A @ [1.0, 2.0, 0.0, 0.0] + 0.1 * rng.normal(size=30)
        holes = A.copy()
        holes[rng.random(A.shape) < 0.15] = np.nan
        folds = random_folds(30, 3, 0)
        found = cross_validate(holes, y, cv=folds, ks=[1, 2], lams=[0.1], missing="mean", intercept=True)
        for number, (train, held_out) in enumerate(folds):
            middle = np.nanmean(holes[train], axis=0)
            inside, outside = (np.where(np.isnan(holes[part]), middle, holes[part]) for part in (train, held_out))
            result = exactsel.solve(inside, y[train], 2, lam=0.1, intercept=True)
            error = 0.5 * np.mean((y[held_out] - result.predict(outside)) ** 2)
            assert found.errors[number, 0, 1] == pytest.approx(error, rel=1e-9)

    def test_on_the_command_line(self, tmp_path, capsys):
        file = as_file(tmp_path, "cv", lines("size,1,NA,3,4,2"))
        with pytest.raises(SystemExit) as ended:
            main(
                [
                    "path",
                    str(file),
                    "--target",
                    "pay",
                    "--k-max",
                    "2",
                    "--cv",
                    "3",
                    "--missing",
                    "median",
                    "--intercept",
                ]
            )
        assert ended.value.code == 0
        assert "held" in capsys.readouterr().out

    def test_an_unknown_way(self, tmp_path):
        with pytest.raises(InputError, match="missing is 'guess', but it must be one of drop-rows"):
            read_data(as_file(tmp_path, "gaps", self.FRAME_TEXT), missing="guess")
        with pytest.raises(InputError, match="every row lacks a value"):
            read_data(as_file(tmp_path, "all", "a,b,y\n1,,1\n,2,2\n"), missing="drop-rows")
