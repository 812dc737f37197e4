"""Data as people have them: every kind of file holds the same problem, and trouble is named in one sentence."""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

from exactsel import ColumnSubsetProblem, Problem, load, solve
from exactsel.cli.main import cli
from exactsel.data import FORMATS, instance_from, read_data
from exactsel.data.foreign import FOREIGN
from exactsel.data.instance import Instance, read_instance, write_instance
from exactsel.errors import InputError, UnsupportedError

RNG = np.random.default_rng(7)
NAMES = ("age", "bmi", "größe", "x 4")
A = np.round(RNG.standard_normal((12, 4)), 3)
A[:, 2] = RNG.integers(0, 2, 12)
A[3:8, 1] = 0.0
Y = np.round(A @ [1.0, -2.0, 0.5, 0.0] + RNG.standard_normal(12), 3)
RAW = Problem(A, Y, 2, lam=0.1).hash
EXPECTED = Problem.prepared(A, Y, 2, lam=0.1, intercept=True).hash
"""Of all files but instances, which say themselves whether models have an intercept."""


def text_table(path: Path, delimiter: str = ",", names=NAMES) -> Path:
    rows = [
        [*names, "price"],
        *([*map(repr, row), repr(value)] for row, value in zip(A.tolist(), Y.tolist(), strict=True)),
    ]
    text = "\n".join(delimiter.join(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode("utf-8-sig"))
    return path


def foreign_table(path: Path) -> Path:
    """The data as another program writes them."""
    names = ["a", "b", "c", "d", "e", "f"] if path.suffix in (".dta", ".sav") else NAMES  # they take no other names
    frame = pytest.importorskip("pandas").DataFrame(dict(zip(names, A.T, strict=False)) | {"price": Y})
    if path.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        frame.to_excel(path, index=False)
    elif path.suffix == ".dta":
        frame.to_stata(path, write_index=False)
    elif path.suffix == ".sav":
        pytest.importorskip("pyreadstat").write_sav(frame, path)
    else:
        path.write_text("\n".join(map(json.dumps, frame.to_dict("records"))))
    return path


def written(path: Path) -> tuple[Path, str | None]:
    """The data in a file of the kind its ending says, and the target to ask for."""
    name = path.name
    vector = str(path.parent / "target.npy")
    np.save(vector, Y)
    if name.endswith((".csv", ".csv.gz", ".tsv")):
        return text_table(path, "\t" if name.endswith("tsv") else ","), "price"
    if name.endswith((".parquet", ".feather")):
        frame = pytest.importorskip("polars").DataFrame(dict(zip(NAMES, A.T, strict=True)) | {"price": Y})
        frame.write_ipc(path) if name.endswith("feather") else frame.write_parquet(path)
        return path, "price"
    if name.endswith((".xlsx", ".dta", ".sav", ".jsonl", ".ndjson")):
        return foreign_table(path), "price"
    if name.endswith(("svm", "svmlight")):
        pytest.importorskip("sklearn.datasets").dump_svmlight_file(A, Y, str(path))
        return path, None
    if name.endswith(".mtx"):
        scipy.io.mmwrite(path, scipy.sparse.coo_matrix(A), precision=17)
        return path, vector
    if name == "sparse.npz":
        scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(A))
        return path, vector
    if name.endswith(".npz"):
        write_instance(path, Instance(A, Y, feature_names=NAMES))
        return path, None
    np.save(path, np.column_stack([A, Y]) if name == "both.npy" else A)
    return path, "-1" if name == "both.npy" else vector


FILES = [
    "d.npz", "sparse.npz", "d.csv", "d.csv.gz", "d.tsv", "d.parquet", "d.feather", "d.svm", "d.svmlight", "d.libsvm",
    "d.mtx", "d.npy", "both.npy", "d.xlsx", "d.dta", "d.sav", "d.jsonl", "d.ndjson",
]  # fmt: skip


@pytest.mark.smoke
class TestEveryKindHoldsTheSameProblem:
    @pytest.mark.parametrize("name", FILES)
    def test_same_hash(self, tmp_path, name):
        path, target = written(tmp_path / name)
        problem = load(path, target=target, k=2, lam=0.1)
        assert problem.hash == (RAW if name == "d.npz" else EXPECTED)
        assert load(path, target=target, k=2, lam=0.1, intercept=False).hash == RAW
        assert load(path, target=target, k=2, lam=0.1, intercept=True).hash == EXPECTED
        named = name.endswith((".csv", ".gz", ".tsv", ".parquet", ".feather", *FOREIGN)) or name == "d.npz"
        if not name.endswith((".dta", ".sav")):
            assert problem.feature_names == (NAMES if named else None)

    def test_every_format_is_tried(self):
        assert {Path(name).suffix for name in FILES} - {".gz"} == {*FORMATS}

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_frames(self, library):
        made = pytest.importorskip(library)
        data = dict(zip(NAMES, A.T, strict=True)) | {"price": Y}
        frame = made.table(data) if library == "pyarrow" else made.DataFrame(data)
        problem = load(frame, target="price", k=2, lam=0.1)
        assert (problem.hash, problem.feature_names) == (EXPECTED, NAMES)
        features = frame.drop(columns="price") if library == "pandas" else frame.drop(["price"])
        assert Problem(features, frame["price"], 2, lam=0.1).hash == RAW
        assert Problem(features, Y, 2, lam=0.1).feature_names == NAMES
        assert ColumnSubsetProblem(features, 2).feature_names == NAMES
        instance = Instance(features, frame["price"], k=2, lam=0.1)
        assert (instance.problem().hash, instance.feature_names) == (RAW, NAMES)

    @pytest.mark.parametrize("kind", ["csr_matrix", "csc_array", "coo_matrix"])
    def test_sparse_matrices(self, kind):
        matrix = getattr(scipy.sparse, kind)(A)
        assert Problem(matrix, Y, 2, lam=0.1).hash == Instance(matrix, Y, k=2, lam=0.1).problem().hash == RAW
        np.testing.assert_array_equal(ColumnSubsetProblem(matrix, 2).A, A)

    def test_nullable_and_categorical_types_of_pandas(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(A, columns=NAMES)
        frame["größe"] = frame["größe"].astype("boolean")
        frame["age"] = frame["age"].astype("Float64")
        frame["bmi"] = frame["bmi"].astype(object)
        assert Problem(frame, Y, 2, lam=0.1).hash == RAW

    def test_a_parquet_file_of_pandas_with_an_index(self, tmp_path):
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        frame = pd.DataFrame(A, columns=NAMES, index=list("abcdefghijkl")).assign(price=Y)
        frame.to_parquet(tmp_path / "d.parquet")
        assert load(tmp_path / "d.parquet", target="price", k=2, lam=0.1).hash == EXPECTED

    def test_without_polars_pyarrow_reads(self, tmp_path, monkeypatch):
        pytest.importorskip("pyarrow")
        for name in ("d.parquet", "d.feather"):
            path, target = written(tmp_path / name)
            with monkeypatch.context() as patched:
                patched.setitem(sys.modules, "polars", None)
                assert load(path, target=target, k=2, lam=0.1).hash == EXPECTED

    @pytest.mark.parametrize(
        ("name", "absent", "extra"),
        [("d.parquet", "pyarrow", "frames"), ("d.feather", "pyarrow", "frames"), ("d.svm", "sklearn.datasets", "data")],
    )
    def test_a_missing_library_is_named(self, tmp_path, monkeypatch, name, absent, extra):
        path, _ = written(tmp_path / name)
        monkeypatch.setitem(sys.modules, absent, None)
        with pytest.raises(UnsupportedError, match=rf"needs .*pip install 'exactsel\[{extra}\]'\.$"):
            read_data(path)

    def test_frames_without_narwhals(self, monkeypatch):
        pd = pytest.importorskip("pandas")
        monkeypatch.setitem(sys.modules, "narwhals", None)
        with pytest.raises(UnsupportedError, match=r"need narwhals; run: pip install 'exactsel\[frames\]'"):
            load(pd.DataFrame(A), target=0, k=1, lam=1.0)


class TestTextTables:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_delimiters(self, tmp_path, delimiter):
        path = text_table(tmp_path / "d.csv", delimiter)
        assert load(path, target="price", k=2, lam=0.1).hash == EXPECTED

    def test_no_names(self, tmp_path):
        np.savetxt(tmp_path / "d.csv", np.column_stack([Y, A]), delimiter=",", fmt="%.17g")
        problem = load(tmp_path / "d.csv", target=0, k=2, lam=0.1)
        assert (problem.hash, problem.feature_names) == (EXPECTED, tuple(f"column {j}" for j in range(1, 5)))

    def test_the_index_pandas_writes(self, tmp_path):
        pd = pytest.importorskip("pandas")
        pd.DataFrame(A, columns=NAMES).assign(price=Y).to_csv(tmp_path / "d.csv")
        with pytest.warns(UserWarning, match="first column of .* has no name; it is taken for row names"):
            assert load(tmp_path / "d.csv", target="price", k=2, lam=0.1).hash == EXPECTED

    def test_a_column_called_y_is_the_target(self, tmp_path):
        path = text_table(tmp_path / "d.csv")
        path.write_text(path.read_text(encoding="utf-8-sig").replace("price", "y"), encoding="utf-8")
        assert load(path, k=2, lam=0.1).hash == EXPECTED

    def test_truth_values_and_quotes(self, tmp_path):
        (tmp_path / "d.csv").write_text('"a, b",c,y\nTrue,"1",2\nfalse,2,3\n')
        found = read_data(tmp_path / "d.csv")
        assert found.feature_names == ("a, b", "c")
        np.testing.assert_array_equal(found.A, [[1, 1], [0, 2]])

    @pytest.mark.parametrize("digits", ["0.1", "1e-320", "123456789.123456789", "-2.2250738585072014e-308"])
    def test_numbers_are_the_nearest_floats(self, tmp_path, digits):
        (tmp_path / "d.csv").write_text(f"a,y\n{digits},1\n1,2\n")
        assert read_data(tmp_path / "d.csv").A[0, 0] == float(digits)


def refused(path: Path, match: str, **options) -> None:
    with pytest.raises(InputError, match=match) as caught:
        read_data(path, **options)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.smoke
class TestTrouble:
    @pytest.fixture
    def table(self, tmp_path):
        def write(*lines: str) -> Path:
            (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
            return tmp_path / "d.csv"

        return write

    def test_text_is_named_with_examples(self, table):
        path = table("sex,city,a,y", "f,Bonn,1,2", "m,Kiel,2,3", "f,Ulm,3,4")
        refused(
            path, r"columns sex \('f', 'm'\), city \('Bonn', 'Kiel', …\) hold text; .*drop=\[\"sex\", \"city\"\]\.$"
        )
        assert read_data(path, drop=["sex", "city"]).feature_names == ("a",)

    def test_missing_values_are_counted(self, table):
        path = table("a b,c,y", "1,NA,2", "?,2,3", ",3,4")
        refused(path, r"columns a b \(2 missing\), c \(1 missing\) have missing values; .*drop=\[\"a b\", \"c\"\]\.$")
        refused(path, r"column c \(1 missing\) has missing values", drop=["a b"])

    def test_frames_say_the_same(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame({"sex": ["f", "m"], "when": pd.to_datetime(["2020-01-01", "2021-01-01"]), "a": [1, None]})
        for drop, match in (
            ([], r"[Cc]olumn sex \('f', 'm'\) holds text"),
            (["sex"], "[Cc]olumn when holds dates; turn them into numbers"),
            (["sex", "when"], r"[Cc]olumn a \(1 missing\) has missing values"),
        ):
            with pytest.raises(InputError, match=match):
                instance_from(frame, drop=drop)
        frame["sex"] = frame["sex"].astype("category")
        with pytest.raises(InputError, match=r"column sex .* holds text"):
            Problem(frame, [1, 2], 1, lam=1.0)

    @pytest.mark.parametrize(
        ("lines", "match"),
        [
            ([""], "is empty; a table has"),
            (["a,y"], "has a line of names but no observations"),
            (["a,y", "1,2", "3"], "row 3 of .* has 1 cells, but the first has 2"),
            (["y", "1", "2"], "has no columns left beside the target"),
        ],
    )
    def test_no_table(self, table, lines, match):
        refused(table(*lines), match)

    def test_unknown_columns(self, table):
        path = table("a,b,c,y", "1,2,3,4")
        refused(path, "has no column called 'd'; its columns are a, b, c, y", target="d")
        path.write_text(path.read_text().replace("c", "a"))
        with pytest.warns(UserWarning, match="more than one column is called a; such columns"):
            assert read_data(path).feature_names == ("a", "b", "a")
        warnings.simplefilter("ignore")
        refused(path, "has no column called 'c'; its columns are a, b, a, y", target="c")
        refused(path, "has no column called 'c'", drop=["c"])
        refused(path, "has 2 columns called 'a'; give the column's number", drop=["a"])
        refused(path, "has no column 7; its 4 columns are numbered from 0", target=7)
        np.testing.assert_array_equal(read_data(path, target=2, drop=[0]).A, [[2, 4]])

    def test_targets(self, table):
        path = table("a,y,three,two", "1,,u,no", "2,1,v,yes", "3,2,w,no")
        refused(path, "the target y has 1 missing values", drop=["three", "two"])
        refused(path, "the target three holds text with 3 different values", target="three", drop=["two", "y"])
        with pytest.warns(UserWarning, match="'no' is read as -1 and 'yes' as \\+1"):
            found = read_data(path, target="two", drop=["y", "three"])
        np.testing.assert_array_equal(found.y, [-1, 1, -1])

    def test_labels_0_and_1(self, table):
        path = table("a,y", "1,0", "2,1", "3,1")
        with pytest.warns(UserWarning, match="holds 0 and 1; logistic loss reads them as -1 and \\+1"):
            assert load(path, k=1, lam=1.0, loss="logistic").y.tolist() == [-1, 1, 1]
        assert load(path, k=1, lam=1.0).target.tolist() == [0, 1, 1]

    def test_other_files(self, tmp_path):
        refused(tmp_path / "absent.csv", "there is no file")
        refused(tmp_path, "is a folder, but an instance is one file")
        (tmp_path / "d.ods").write_bytes(b"x")
        refused(tmp_path / "d.ods", r"is of no kind that is read; the kinds are \.npz, \.csv")
        for name in ("d.parquet", "d.feather", "d.svm", "d.mtx", "d.npy", "d.xlsx", "d.dta", "d.sav", "d.jsonl"):
            if name in ("d.parquet", "d.feather", "d.xlsx", "d.sav"):
                for needed in ("polars", "openpyxl", "pyreadstat"):
                    pytest.importorskip(needed)
            (tmp_path / name).write_bytes(b"\x00\x01 nonsense: 1\n")
            refused(tmp_path / name, "cannot be read as what its name says it is")
        (tmp_path / "d.csv").write_bytes(b"a,y\n\x81\xfe,1\n")
        refused(tmp_path / "d.csv", "is not UTF-8 text; save it as UTF-8, or say what it is with encoding")
        np.save(tmp_path / "d.npy", Y)
        refused(tmp_path / "d.npy", r"has 1 dimension\(s\), but a table")

    def test_a_sparse_matrix_too_large_to_hold(self, tmp_path):
        scipy.sparse.save_npz(tmp_path / "d.npz", scipy.sparse.csr_matrix((10**6, 10**6)))
        refused(tmp_path / "d.npz", "has 1000000 x 1000000 entries, and what is kept .* takes 320000000 bytes")


class TestCommandLine:
    def run(self, *arguments: object):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], standalone_mode=False)

    @pytest.fixture
    def csv(self, tmp_path):
        return text_table(tmp_path / "d.csv")

    def test_every_command_that_reads_takes_target_and_drop(self, csv):
        chosen = [csv, "--target", "price", "--drop", "age, x 4", "-k", 1, "--lam", 0.1]
        commands = {
            "solve": ["--json", "--quiet"], "certify": ["--support", "bmi", "--json", "--quiet"], "path": ["--json"],
            "compare": ["--json", "--heuristic", "omp"], "play": ["--dot", "--format", "json"], "info": ["--json"],
        }  # fmt: skip
        for command, options in commands.items():
            shown = self.run(command, *chosen, *options)
            assert shown.exception is None, (command, shown.output)
            assert json.loads(shown.stdout)
        shown = self.run("solve", *chosen, "--method", "omp", "--json")
        assert json.loads(shown.stdout)["feature_names"] == ["bmi"]

    def test_names_are_everywhere(self, csv):
        chosen = [csv, "--target", "price", "-k", 2, "--lam", 0.1]
        for command in (["solve"], ["certify", "--support", "age,bmi"], ["path"], ["compare", "--heuristic", "omp"]):
            assert "bmi" in self.run(command[0], *chosen, *command[1:]).stdout
        for command in (["solve"], ["certify", "--support", "age,bmi"], ["path"], ["compare", "--heuristic", "omp"]):
            shown = self.run(command[0], *chosen, *command[1:], "--json")
            assert "bmi" in json.dumps(json.loads(shown.stdout))

    def test_convert(self, csv, tmp_path):
        out = tmp_path / "out.npz"
        shown = self.run("data", "convert", csv, out, "--target", "price", "-k", 2, "--lam", 0.1)
        assert shown.stderr == f"{out}: n=12 d=4, with a target\n"
        assert read_instance(out).problem().hash == EXPECTED
        direct = tmp_path / "direct.npz"
        write_instance(direct, Instance(A, Y, k=2, lam=0.1, feature_names=NAMES, intercept=True))
        assert out.read_bytes() == direct.read_bytes()
        self.run("data", "convert", csv, out, "--target", "price", "-k", 2, "--lam", 0.1, "--no-intercept")
        assert read_instance(out).problem().hash == RAW

    def test_no_target(self, csv):
        error = self.run("solve", csv, "-k", 1, "--lam", 1).exception
        assert isinstance(error, InputError)
        assert "no target" in str(error)
        assert "--target" in str(error)

    def test_info_says_how_hard_it_looks(self, csv):
        chosen = [csv, "--target", "price", "-k", 2, "--lam", 0.1]
        facts = json.loads(self.run("info", *chosen, "--json").stdout)
        assert facts["problem_hash"] == EXPECTED
        assert facts["condition"] == pytest.approx(np.linalg.cond(A - A.mean(axis=0)))
        assert (facts["target_min"], facts["target_max"]) == (Y.min(), Y.max())
        optimum = solve(A, Y, 2, lam=0.1).upper
        assert facts["root_lower"] <= optimum * (1 + 1e-9) <= facts["root_upper"] * (1 + 1e-8)
        assert facts["bound"] == "split"
        assert facts["curvature_median"] > 0.1
        bare = json.loads(self.run("info", *chosen, "--no-root", "--json").stdout)
        of_the_root = {name for name in facts if name.startswith("root_")}
        assert {*facts} - {*bare} == {*of_the_root, "bound", "curvature_median"}

    def test_info_of_labels(self, tmp_path):
        (tmp_path / "d.csv").write_text("a,b,y\n" + "".join(f"{i},{i % 3},{i % 2}\n" for i in range(9)))
        shown = self.run("info", tmp_path / "d.csv", "--loss", "logistic", "--json", "-k", 1, "--lam", 1)
        facts = json.loads(shown.stdout)
        assert (facts["rows_plus"], facts["rows_minus"], facts["bound"]) == (4, 5, "apg")
        assert shown.stderr.count("Warning: the target holds 0 and 1") == 1


def test_reading_warns_of_nothing_else(tmp_path):
    for name in FILES:
        path, target = written(tmp_path / name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_data(path, target=target)
