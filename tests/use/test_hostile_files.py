"""Damaged, forged and hostile files: exit code 2 and one sentence, or 0; little memory; nothing raw on the terminal."""

from __future__ import annotations

import ast
import gzip
import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel.cli.main import main
from exactsel.data import read_columns, read_data
from exactsel.data.arrays import floats, read_vector
from exactsel.data.sizes import SMALLEST_LIMIT, VARIABLE
from exactsel.data.sparse import read_matrix_market, read_sparse_archive
from exactsel.errors import ExactselError, InputError, escaped
from exactsel.problem.checks import column_number

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
from benchmarks.attacks import structural  # noqa: E402
from benchmarks.attacks.damaged import KINDS, NASTY_IN_UTF8, bomb  # noqa: E402
from benchmarks.attacks.files import UNPRINTABLE, attacked, tried  # noqa: E402

RNG = np.random.default_rng(11)
A = np.round(RNG.standard_normal((5, 4)), 2)
A[RNG.random((5, 4)) < 0.4] = 0.0


def refused(path: Path, match: str, reader=read_data, **options) -> None:
    with pytest.raises(InputError, match=match) as caught:
        reader(path, **options)
    text = str(caught.value)
    assert text.endswith(".")
    assert text.isprintable()


def packed(path: Path, **members) -> Path:
    """An archive of arrays, or of raw bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(f"{name}.npy", value if isinstance(value, bytes) else structural.npy(np.asarray(value)))
    return path


def end(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_a_small_campaign(kind, tmp_path, monkeypatch):
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)
    for number in range(14):
        outcome = tried(*attacked(number, 77, (kind,)), tmp_path)
        assert outcome.code in (0, 2), outcome
        assert not outcome.fault, outcome


CSR = {"format": np.array(b"csr"), "shape": (2, 3), "indices": [0, 2, 1], "indptr": [0, 2, 3], "data": [1.0, 2.0, 3.0]}


class TestSparseArchives:
    @pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
    @pytest.mark.parametrize("dtype", [float, np.float32, int, bool])
    def test_scipy_reads_the_same(self, tmp_path, kind, dtype):
        made = scipy.sparse.coo_matrix(np.round(2 * A).astype(dtype)).asformat(kind)
        scipy.sparse.save_npz(tmp_path / "m.npz", made)
        np.testing.assert_array_equal(read_sparse_archive(tmp_path / "m.npz"), made.toarray().astype(float))

    def test_this_one_is_good(self, tmp_path):
        found = read_data(packed(tmp_path / "m.npz", **CSR)).A
        np.testing.assert_array_equal(found, [[1, 0, 2], [0, 3, 0]])

    @pytest.mark.parametrize(
        ("part", "value", "match"),
        [
            ("indices", [0, 3, 1], r"an entry in row 0 and column 3 .*but its size is 2 x 3"),
            ("indices", [0, -1, 1], r"row 0 and column -1"),
            ("indices", [0, 2**31 - 1, 1], "column 2147483647"),
            ("indices", [0, 0, 1], "holds an entry twice"),
            ("indices", [0.0, 1.0, 2.0], "indices in .* is of type float64"),
            ("indices", [0, 2], "3 entries and 2 indices"),
            ("indices", np.array([2**63, 0, 1], dtype=np.uint64), "indices in .* is of type uint64"),
            ("indptr", [0, 2, 4], "indptr ends with 4"),
            ("indptr", [0, 3, 2], "indptr does not rise"),
            ("indptr", [1, 2, 3], "indptr does not rise from 0"),
            ("indptr", [0, 3], "indptr does not rise from 0 in 2 steps"),
            ("indptr", [[0, 2, 3]], "with 2 dimension"),
            ("data", [1.0, 2.0], "2 entries and 3 indices"),
            ("data", [[1.0, 2.0, 3.0]], "data has 2 dimensions"),
            ("data", [1j, 2, 3], "has entries of type complex128; store real numbers"),
            ("shape", (2, -3), "has the shape"),
            ("shape", (10**9, 10**9), "for each row and column takes .* EXACTSEL_READ_LIMIT"),
            ("format", np.array(b"lil"), "of the format 'lil'"),
        ],
    )
    def test_every_part_is_checked(self, tmp_path, part, value, match):
        refused(packed(tmp_path / "m.npz", **CSR | {part: value}), match)


class TestMatrixMarket:
    @pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
    @pytest.mark.parametrize("field", ["real", "integer", "pattern"])
    @pytest.mark.parametrize("sparse", [True, False])
    def test_scipy_reads_the_same(self, tmp_path, symmetry, field, sparse):
        if field == "pattern" and (symmetry == "skew-symmetric" or not sparse):
            pytest.skip("there is no such file")
        matrix = np.round(3 * RNG.standard_normal((4, 4))) if field != "real" else RNG.standard_normal((4, 4))
        matrix[RNG.random((4, 4)) < 0.4] = 0
        matrix = {"general": matrix, "symmetric": matrix + matrix.T, "skew-symmetric": matrix - matrix.T}[symmetry]
        made = scipy.sparse.coo_matrix(matrix.astype(int if field == "integer" else float)) if sparse else matrix
        field = field if sparse else "real"
        scipy.io.mmwrite(tmp_path / "m.mtx", made, field=field, symmetry=symmetry, precision=17, comment="a\n remark")
        expected = scipy.io.mmread(tmp_path / "m.mtx", spmatrix=False)
        expected = expected.toarray() if sparse else expected
        np.testing.assert_array_equal(read_matrix_market(tmp_path / "m.mtx"), expected)

    @pytest.mark.parametrize(
        ("body", "match"),
        [
            ("2 2 1\n1 1\0 2", "could not convert|cannot be read as"), ("2 2 1\n3 1 2",
                    "an entry in row 2 and column 0"),
            ("2 2 1\n0 1 2", "a row is no whole number from 1"), ("2 2 1\n1 1.5 2", "a column is no whole number"),
            ("2 2 2\n1 1 2", "2 entries are declared, but 3 numbers follow"), ("2 2 2\n1 1 2\n1 1 3", "an entry twice"),
            ("99999999 99999999 1\n1 1 2", VARIABLE), ("2 2\n1 1 2", "the line of sizes holds 2 numbers"),
            ("", "before the line with its size"), ("2 2 1\n1 1 1_0", "'_' in a number"),
            ("nan 2 1\n1 1 2", "a size is no whole number"),
        ],
    )  # fmt: skip
    def test_every_number_is_checked(self, tmp_path, body, match):
        (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate real general\n" + body)
        refused(tmp_path / "m.mtx", match)

    def test_complex_numbers(self, tmp_path):
        scipy.io.mmwrite(tmp_path / "m.mtx", np.eye(2) * 1j)
        refused(tmp_path / "m.mtx", "holds a matrix of the kind 'array complex")


BOMBS = {
    "d.csv.gz": lambda: bomb(8, b"1,2\n"), "d.tsv.gz": lambda: bomb(8, b"\t"), "d.svm.gz": lambda: bomb(8, b"1 1:1\n"),
    "d.mtx.gz": lambda: bomb(8, b"1 "), "d.npz": lambda: structural.zip_bomb(np.random.default_rng(2)),
    "d.parquet": lambda: structural.frame_bomb("parquet")(np.random.default_rng(1)),
    "d.feather": lambda: structural.frame_bomb("feather")(np.random.default_rng(1)),
    "d.npy": lambda: structural.npy_header("<f8", False, (10**6, 10**6)) + bytes(80),
}  # fmt: skip


class TestSizes:
    @pytest.mark.parametrize("name", BOMBS)
    def test_a_bomb_is_refused_before_it_goes_off(self, tmp_path, name):
        data = BOMBS[name]()
        assert len(data) < SMALLEST_LIMIT / 64
        (tmp_path / name).write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(InputError):
                read_data(tmp_path / name)
            assert tracemalloc.get_traced_memory()[1] < 4 * SMALLEST_LIMIT
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        "name", ["d.csv", "d.npy", "d.npz", "sparse.npz", "d.mtx", "d.svm", "d.parquet", "d.feather"]
    )
    def test_the_limit_holds_for_every_kind_and_can_be_raised(self, tmp_path, name, monkeypatch):
        matrix, path = np.round(RNG.standard_normal((60, 40)), 2), tmp_path / name
        if name.endswith("csv"):
            np.savetxt(path, matrix, delimiter=",")
        elif name.endswith("npy"):
            np.save(path, matrix)
        elif name == "sparse.npz":
            scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(matrix))
        elif name.endswith("npz"):
            np.savez(path, A=matrix, y=matrix[:, 0])
        elif name.endswith("mtx"):
            scipy.io.mmwrite(path, matrix)
        elif name.endswith("svm"):
            pytest.importorskip("sklearn.datasets").dump_svmlight_file(matrix, matrix[:, 0], str(path))
        else:
            made = pyarrow.table({f"x{j}": matrix[:, j] for j in range(40)})
            (parquet.write_table if name.endswith("parquet") else feather.write_feather)(made, path)
        assert read_data(path).A.shape == (60, 40)
        monkeypatch.setenv(VARIABLE, "0.01")
        refused(path, rf"more than the 10485 that are read; .*set {VARIABLE} to more than 0\.00999")
        monkeypatch.setenv(VARIABLE, "4096")
        assert read_data(path).A.shape == (60, 40)

    @pytest.mark.parametrize("value", ["much", "-1", "0", "nan", "inf"])
    def test_a_limit_that_is_none(self, tmp_path, monkeypatch, value):
        np.save(tmp_path / "d.npy", A)
        monkeypatch.setenv(VARIABLE, value)
        refused(tmp_path / "d.npy", f"{VARIABLE} is '{value}', but a number of MiB was expected")

    def test_vectors_too(self, tmp_path):
        (tmp_path / "y.npy").write_bytes(structural.npy_header("<f8", False, (10**12,)) + bytes(80))
        refused(tmp_path / "y.npy", "declares 8000000000000 bytes but holds 80", reader=read_vector)
        (tmp_path / "y.txt.gz").write_bytes(bomb(8, b"1\n"))
        refused(tmp_path / "y.txt.gz", VARIABLE, reader=read_vector)


class TestArchives:
    def test_version_encryption_and_method(self, tmp_path):
        np.savez(tmp_path / "d.npz", A=A, y=A[:, 0])
        good = (tmp_path / "d.npz").read_bytes()
        place = good.index(b"PK\x01\x02")
        for offset, value, match in ((6, 99, "zip file version"), (8, 1, "encrypted"), (10, 14, "zip method 14")):
            raw = bytearray(good)
            raw[place + offset] = value
            raw[offset] = raw[offset] | 1 if offset == 8 else raw[offset]
            raw[6] |= int(offset == 8)
            (tmp_path / "d.npz").write_bytes(raw)
            refused(tmp_path / "d.npz", match)

    def test_more_behind_the_array_than_the_directory_says(self, tmp_path):
        raw = bytearray(structural.archive({"A.npy": structural.npy_header("<f8", False, (1, 1)) + bytes(10**6)}))
        place, claimed = raw.index(b"PK\x01\x02"), len(structural.npy_header("<f8", False, (1, 1))) + 8
        raw[place + 24 : place + 28] = claimed.to_bytes(4, "little")
        (tmp_path / "d.npz").write_bytes(raw)
        refused(tmp_path / "d.npz", "truncated or damaged")

    @pytest.mark.parametrize("names", [("a", "b"), ("a",) * 9])
    def test_names_that_do_not_fit(self, tmp_path, names):
        np.savez(tmp_path / "d.npz", A=A, y=A[:, 0], feature_names=names)
        refused(tmp_path / "d.npz", f"{len(names)} feature names were given for 4 columns", target=-1)

    def test_no_table(self, tmp_path):
        np.savez(tmp_path / "d.npz", A=A[0], y=A[:, 0])
        refused(tmp_path / "d.npz", "A has 1 dimension")
        assert end("data", "convert", tmp_path / "d.npz", tmp_path / "out.npz") == 2


class TestFrames:
    def write(self, path: Path, table) -> Path:
        (parquet.write_table if path.suffix == ".parquet" else feather.write_feather)(table, path)
        return path

    @pytest.mark.parametrize("name", ["d.parquet", "d.feather"])
    def test_every_type(self, tmp_path, name):
        held = {
            "i": pyarrow.array([1, 2, 3], pyarrow.int8()), "b": pyarrow.array([True, False, True]),
            "d": pyarrow.array([1, 2, 3], pyarrow.decimal128(9, 2)), "f": pyarrow.array([1.5, 2.5, 3.5],
                    pyarrow.float32()),
            "e": pyarrow.array([1.5, 1.5, 2.0]).dictionary_encode(),
        }  # fmt: skip
        found = read_data(self.write(tmp_path / name, pyarrow.table(held)))
        np.testing.assert_array_equal(found.A, [[1, 1, 1, 1.5, 1.5], [2, 0, 2, 2.5, 1.5], [3, 1, 3, 3.5, 2]])
        others = {
            "text": pyarrow.array(["x", None, "z"]), "cat": pyarrow.array(["x", "z", None]).dictionary_encode(),
            "when": pyarrow.array([1, 2, 3], pyarrow.timestamp("s")), "list": pyarrow.array([[1], [2], [3]]),
            "none": pyarrow.nulls(3), "gap": pyarrow.array([1, None, 3]),
        }  # fmt: skip
        columns = read_columns(self.write(tmp_path / name, pyarrow.table(others)))
        assert [column.kind[:4] for column in columns] == ["text", "text", "date", "entr", "numb", "numb"]
        assert [column.missing for column in columns] == [1, 1, 0, 0, 3, 1]
        assert [column.texts for column in columns[:2]] == [("x", "z"), ("x", "z")]
        refused(
            tmp_path / name,
            r"[Cc]olumn list \(entries of type list<.*neither numbers nor text",
            drop=["text", "cat", "when"],
        )
        refused(tmp_path / name, "holds entries of type list.* cannot be a factor", factors=["list"])

    @pytest.mark.parametrize("name", ["d.parquet", "d.feather"])
    def test_what_polars_writes(self, tmp_path, name):
        polars = pytest.importorskip("polars")
        texts = ["red", "a text too long for a view to hold within", "red"]
        frame = polars.DataFrame({"x": [1.0, 2.0, 3.0], "cat": texts, "b": [True, None, False]})
        frame = frame.with_columns(polars.col("cat").cast(polars.Categorical).alias("c"))
        frame.write_parquet(tmp_path / name) if name.endswith("parquet") else frame.write_ipc(tmp_path / name)
        columns = read_columns(tmp_path / name)
        assert [(column.kind, column.missing) for column in columns] == [
            ("numbers", 0),
            ("text", 0),
            ("numbers", 1),
            ("text", 0),
        ]
        assert [column.texts for column in columns] == [(), tuple(texts), (), tuple(texts)]

    @pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4"])
    def test_pages_are_counted_for_every_codec(self, tmp_path, codec):
        for version in ("1.0", "2.0"):
            made = pyarrow.table({"a": np.arange(3000.0), "b": ["x", "y", "z"] * 1000})
            parquet.write_table(
                made, tmp_path / "d.parquet", compression=codec, data_page_version=version, row_group_size=700
            )
            assert read_data(tmp_path / "d.parquet", drop=["b"]).A.shape == (3000, 1)


class TestGroups:
    @pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"g": [["x0"]]}', '{"g": [true]}', "9" * 5000])
    def test_json(self, tmp_path, text, capsys):
        (tmp_path / "g.json").write_text(text)
        (tmp_path / "d.csv").write_text("x0,x1,y\n1,2,3\n2,1,4\n3,5,6\n")
        assert end("info", tmp_path / "d.csv", "-k", 1, "--lam", 1, "--groups", tmp_path / "g.json") == 2
        assert capsys.readouterr().err.endswith('write {"group": ["column", "column"]}.\n')

    @pytest.mark.parametrize("column", ["²", "9" * 5000, "--5", "٣"])
    def test_numbers_that_are_none(self, tmp_path, column, capsys):
        (tmp_path / "d.csv").write_text("x0,x1,y\n1,2,3\n2,1,4\n3,5,6\n")
        for option in (f"--groups=g={column}", f"--force-in={column}"):
            assert end("info", tmp_path / "d.csv", "-k", 1, "--lam", 1, option) == 2
            assert capsys.readouterr().err.startswith("Error: ")
        assert column_number(column) is None
        assert (column_number("12"), column_number("-3")) == (12, -3)

    def test_a_name_too_long_for_a_file(self, tmp_path):
        (tmp_path / "d.csv").write_text("x0,y\n1,2\n2,1\n")
        assert end("info", tmp_path / "d.csv", "--target", "t" * 5000) == 2


class TestEscaping:
    @given(st.text())
    @examples(300, 600)
    def test_whatever_comes_out_is_printable(self, text):
        shown = escaped(text)
        assert shown.isprintable()
        assert UNPRINTABLE.search(shown) is None
        assert escaped(shown) == shown
        assert str(ExactselError(text)) == shown
        assert text.isprintable() == (shown == text)

    @pytest.mark.parametrize(
        ("raw", "shown"),
        [("\x1b[2J", r"\x1b[2J"), ("a\nb\tc\r", r"a\nb\tc\r"), ("\x9b", r"\x9b"), ("\u202e", r"\u202e"), ("\ud800",
                r"\ud800"),
         ("\U000e0001", r"\U000e0001"), ("größe 重さ", "größe 重さ"), ("\x7f", r"\x7f"), ("\u2028", r"\u2028")],
    )  # fmt: skip
    def test_examples(self, raw, shown):
        assert escaped(raw) == shown
        assert escaped("\n" + raw.replace("\n", ""), keep="\n").startswith("\n")

    @pytest.mark.parametrize("name", [name for name in NASTY_IN_UTF8 if "\0" not in name])
    def test_names_in_a_table(self, tmp_path, name, capsys):
        path = tmp_path / "d.csv"
        path.write_text(f'"{name}",b,y\nu,1,2\nv,2,3\nu,4,1\n', encoding="utf-8")
        path_of_groups = tmp_path / "g.json"
        path_of_groups.write_text(json.dumps({name: ["b"]}))
        for options in ([], ["--drop", name], ["--target", name], ["--target", name + "?"], ["--factors", name, "-k",
                "1"],
                        ["--drop", name, "-k", "1", "--lam", "1", "--groups", str(path_of_groups)],
                        ["--drop", name, "-k", "1", "--lam", "1", "--loss", name],
                                ["--no-such-option" + name]):  # fmt: skip
            assert end("info", path, *options) in (0, 2)
            said = capsys.readouterr()
            assert UNPRINTABLE.search(said.out + said.err) is None, options
            assert "Internal" not in said.err

    def test_everything_is_printed_through_the_door(self):
        folder = Path(main.__code__.co_filename).parent
        for path in folder.glob("*.py"):
            calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
            raw = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in ("echo", "secho")]
            raw += [call for call in calls if isinstance(call, ast.Name) and call.id == "print"]
            assert path.name == "talk.py" or not raw, path.name


@pytest.mark.parametrize("text", [b"1 2.5\n-3e5", b"", b" \n ", b"inf nan"])
def test_floats(text):
    np.testing.assert_array_equal(floats(text), np.array([float(word) for word in text.split()]))


def test_floats_in_pieces():
    values = RNG.standard_normal(200_000)
    stream = io.BytesIO()
    np.savetxt(stream, values, fmt="%.17g")
    np.testing.assert_array_equal(floats(stream.getvalue()), values)


def test_nul_in_text(tmp_path):
    (tmp_path / "d.csv").write_bytes(b"a,y\n1\0,2\n")
    refused(tmp_path / "d.csv", "holds NUL bytes")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n")[:-3])
    refused(tmp_path / "d.csv.gz", "cannot be read as what its name says")


def test_a_column_of_numbers_that_turns_out_to_be_text(tmp_path):
    lines = ["0" + str(i % 7) for i in range(140_000)] + ["x"]
    (tmp_path / "d.csv").write_text("cat,y\n" + "".join(f"{line},1\n" for line in lines))
    column = read_columns(tmp_path / "d.csv")[0]
    assert column.kind == "text"
    assert [*column.texts] == lines
