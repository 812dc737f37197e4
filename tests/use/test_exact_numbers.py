"""Numbers that are no doubles: exact where they can be, refused where rounding would be seen, said where it would not.

The id of a row is 2^53 plus a small number v, and y = v: as doubles ids cannot predict y, as they are they do exactly.
"""

from __future__ import annotations

import json
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, Instance, Problem, gram, load, solve
from exactsel.data import read_data
from exactsel.data.instance import write_instance
from exactsel.errors import InputError
from exactsel.problem.doubles import rounding_between, rounding_of, to_doubles

BASE = 2**53
V = np.arange(12)
Y = V.astype(float)
ONE = np.array([2.0, 0, 1, 3, 1, 0, 2, 2, 1, 0, 3, 1])
IDS = [BASE + int(v) for v in V]

TIMES = [1672531200000000000 + int(v) * 86_400 * 10**9 for v in V]
"""Nanoseconds at midnight: each is a double."""

ROUNDED = [1672531200000000001 + int(v) * 86_400 * 10**9 for v in V]
"""The same one nanosecond later: none is."""

REFUSED = r"no double is equal to.*vary by 11 only; take a constant \(9007199254740992, say\) off"
SAID = r"holds whole numbers beyond 2\^53.*12 of 12 are rounded.*what is proven is about the rounded numbers\."

ARRAYS = {
    "int64": lambda numbers: np.array(numbers, dtype=np.int64),
    "uint64": lambda numbers: np.array(numbers, dtype=np.uint64),
    "long double": lambda numbers: np.array([np.longdouble(str(number)) for number in numbers]),
    "Python integers": lambda numbers: np.array(numbers, dtype=object),
    "decimals": lambda numbers: np.array([Decimal(number) for number in numbers], dtype=object),
    "fractions": lambda numbers: np.array([Fraction(number) for number in numbers], dtype=object),
    "texts": lambda numbers: np.array([str(number) for number in numbers]),
    "numpy integers": lambda numbers: np.array([np.int64(number) for number in numbers], dtype=object),
}
LONG = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="long doubles are doubles here")
KINDS = [pytest.param(kind, marks=[LONG] if kind == "long double" else []) for kind in ARRAYS]


def table(kind: str, numbers: list[int]) -> np.ndarray:
    """Two columns, the numbers second."""
    own = ARRAYS[kind](numbers)
    first = ONE.astype(own.dtype) if own.dtype.kind in "iuf" else np.array([own.dtype.type(int(v)) for v in ONE])
    return np.column_stack([ONE.astype(int).astype(str) if own.dtype.kind == "U" else first, own])


@pytest.mark.parametrize("kind", KINDS)
class TestArrays:
    def test_a_table_whose_ids_would_become_equal_is_refused(self, kind):
        A = table(kind, IDS)
        for make in (Problem, Problem.prepared, lambda A, y, k: Instance(A, y, k=k).problem(), solve):
            with pytest.raises(InputError, match="column 1 of A.*" + REFUSED):
                make(A, Y, 1)
        with pytest.raises(InputError, match=REFUSED):
            ColumnSubsetProblem(A, 1)

    def test_the_way_on_leads_to_the_optimum_of_the_file(self, kind):
        less = ARRAYS[kind]([number - 9007199254740992 for number in IDS]).reshape(-1, 1)
        with pytest.warns(UserWarning, match="holds the same numbers as the target"):
            assert solve(less, Y, 1, intercept=True).upper < 1e-20

    def test_times_that_are_doubles_are_taken_without_a_word(self, kind):
        A = Problem.prepared(table(kind, TIMES), Y, 1, intercept=True).preparation.AT.T
        assert [int(number) for number in A[:, 1]] == TIMES

    def test_times_that_are_rounded_a_little_are_said(self, kind):
        with pytest.warns(UserWarning, match="column 1 of A " + SAID):
            Problem.prepared(table(kind, ROUNDED), Y, 1, intercept=True)

    def test_targets_and_offsets(self, kind):
        for name in ("y", "offset"):
            given = {"A": ONE.reshape(-1, 1), "y": Y, "k": 1}
            with pytest.raises(InputError, match=f"{name} .*" + REFUSED):
                Problem.prepared(**given | {name: ARRAYS[kind](IDS)})
            with pytest.warns(UserWarning, match=f"{name} " + SAID):
                Problem.prepared(**given | {name: ARRAYS[kind](ROUNDED)})

    def test_weights_are_rounded_and_said(self, kind):
        with pytest.warns(UserWarning, match=r"the weights holds? whole numbers beyond 2\^53.*5 of 12|6 of 12"):
            Problem.prepared(ONE.reshape(-1, 1), Y, 1, weights=ARRAYS[kind](IDS))


class TestLists:
    def test_numbers_of_a_list_are_looked_at_before_they_become_doubles(self):
        for A in ([[0.5, number] for number in IDS], [[1, number] for number in IDS]):
            with pytest.raises(InputError, match=REFUSED):
                Problem(A, Y, 1)
        with pytest.raises(InputError, match="y .*" + REFUSED):
            Problem(ONE.reshape(-1, 1), [*IDS[:-1], IDS[-1]], 1)

    @pytest.mark.parametrize("numbers", [[0.1, 0.2, 0.3], [1e300, 1.0, 2.0][1:], [1, 2, 3], [True, False, True]])
    def test_common_numbers_are_taken_without_a_word(self, numbers):
        A = [[number] for number in numbers]
        np.testing.assert_array_equal(Problem(A, numbers, 1).A, np.array(A, dtype=float))


class TestWhatIsMaterial:
    @pytest.mark.parametrize("numbers", [
        ["0.1"] * 4, ["0.1", "0.2"], ["6.02e23", "6.03e23"], ["1.2345678901234567e+17", "1.2345678901234569e+17"],
        ["1e22", "1e23"], ["9007199254740994.0", "9007199254740996.0"],
    ])  # fmt: skip
    def test_what_a_double_is_written_as_loses_nothing(self, numbers):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            to_doubles(np.array(numbers), "x")

    @pytest.mark.parametrize("numbers", [
        ["9007199254740993.0", "9007199254740994.0"], ["1.00000000000000000001", "1.00000000000000000002"],
        ["18446744073709551617", "18446744073709551616"], [str(10**22 + 1), str(10**22 + 2)],
    ])  # fmt: skip
    def test_digits_beyond_those_of_a_double_are_refused_where_they_tell_numbers_apart(self, numbers):
        with pytest.raises(InputError, match="no double is equal to"):
            to_doubles(np.array(numbers), "x")

    def test_a_constant_varies_by_nothing(self):
        with pytest.warns(UserWarning, match="3 of 3 are rounded"):
            to_doubles(np.full(3, BASE + 1), "x")

    @pytest.mark.parametrize("dtype", [np.int64, np.uint64])
    def test_the_rounding_of_integers_is_that_of_fractions(self, dtype):
        rng = np.random.default_rng(5)
        info = np.iinfo(dtype)
        for size in range(50, 65):
            low = max(info.min, -(2 ** (size - 1)))
            values = rng.integers(low, min(info.max, 2 ** (size - 1) - 1), 50, dtype=dtype, endpoint=True)
            values[:2] = info.min, info.max
            nearest = values.astype(np.float64)
            fast = rounding_of(values, nearest)
            slow = rounding_between([Fraction(int(v)) for v in values], nearest)
            assert fast is not None
            assert slow is not None
            assert (fast.count, fast.error, fast.low, fast.high) == (slow.count, slow.error, slow.low, slow.high)

    @pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 20_000, "nan", "inf", "-inf"])
    def test_numbers_that_would_take_for_ever_are_not_looked_at(self, text):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            to_doubles(np.array([text, "1"]), "x")


class TestFiles:
    @pytest.fixture
    def write(self, tmp_path):
        def made(ending: str, numbers: list[int]):
            file = tmp_path / f"t{ending}"
            rows = list(zip(ONE.astype(int), numbers, V, strict=True))
            if ending == ".npz":
                np.savez(file, A=np.array([row[:2] for row in rows], dtype=np.int64), y=Y, k=1)
            elif ending == ".npy":
                np.save(file, np.array(rows, dtype=np.int64))
            elif ending in (".csv", ".tsv"):
                mark = "," if ending == ".csv" else "\t"
                file.write_text("\n".join(mark.join(map(str, row)) for row in [("a", "id", "y"), *rows]) + "\n")
            elif ending == ".mtx":
                lines = [f"{i + 1} {j + 1} {row[j]}" for i, row in enumerate(rows) for j in range(2)]
                head = f"%%MatrixMarket matrix coordinate integer general\n12 2 {len(lines)}\n"
                file.write_text(head + "\n".join(lines) + "\n")
                np.save(tmp_path / "y.npy", Y)
            elif ending == ".svm":
                file.write_text("\n".join(f"{row[2]} 1:{row[0]} 2:{row[1]}" for row in rows) + "\n")
            elif ending == ".jsonl":
                named = (dict(zip(("a", "id", "y"), map(int, row), strict=True)) for row in rows)
                file.write_text("\n".join(map(json.dumps, named)) + "\n")
            elif ending == "sparse.npz":
                scipy = pytest.importorskip("scipy.sparse")
                scipy.save_npz(file, scipy.csr_matrix(np.array([row[:2] for row in rows], dtype=np.int64)))
                np.save(tmp_path / "y.npy", Y)
            else:
                pyarrow = pytest.importorskip("pyarrow")
                for part in ("parquet", "feather"):
                    pytest.importorskip(f"pyarrow.{part}")
                columns = {"a": ONE.astype(int), "id": pyarrow.array(numbers, pyarrow.int64()), "y": V}
                writer = pyarrow.parquet.write_table if ending == ".parquet" else pyarrow.feather.write_feather
                writer(pyarrow.table(columns), file)
            target = str(tmp_path / "y.npy") if ending in (".mtx", "sparse.npz") else 2 if ending == ".npy" else None
            return file, target

        return made

    ENDINGS = (".npz", ".npy", ".csv", ".tsv", ".mtx", ".svm", ".jsonl", "sparse.npz", ".parquet", ".feather")

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_every_kind(self, write, ending):
        file, target = write(ending, IDS)
        with pytest.raises(InputError, match="no double is equal to"):
            load(file, target=target, k=1)
        file, target = write(ending, ROUNDED)
        with pytest.warns(UserWarning, match=SAID):
            load(file, target=target, k=1)
        file, target = write(ending, TIMES)
        problem = load(file, target=target, k=1)
        assert [int(number) for number in problem.A[:, 1]] == TIMES

    @pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
    def test_a_column_that_is_left_out_may_hold_anything(self, write, ending):
        assert load(write(ending, IDS)[0], drop=["id"], k=1).d == 1

    @pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
    def test_the_command(self, write, run, ending):
        refused = run("solve", write(ending, IDS)[0], "-k", 1, "--intercept", "--quiet")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "no double is equal to" in refused.err
        told = run("solve", write(ending, ROUNDED)[0], "-k", 1, "--intercept", "--json")
        assert "what is proven is about the rounded numbers" in told.err
        assert told.json["upper"] < 1e-20

    def test_the_way_on_from_the_command(self, write, run):
        assert run("solve", write(".csv", IDS)[0], "-k", 1, "--drop", "id", "--intercept").code in (0, 1)

    @pytest.mark.parametrize("text", ["9.007.199.254.740.993", "9'007'199'254'740'993", "9 007 199 254 740 993"])
    def test_marks_between_thousands(self, tmp_path, text):
        (tmp_path / "t.csv").write_text(f"id;y\n{text};1\n{text[:-1]}5;2\n")
        with (
            pytest.warns(UserWarning, match="between thousands|decimal commas"),
            pytest.raises(InputError, match="no dou"),
        ):
            read_data(tmp_path / "t.csv", decimal=",")

    @pytest.mark.parametrize("ending", [".txt", ".npy"])
    @pytest.mark.parametrize("what", ["target", "offset", "weights"])
    def test_files_beside_the_data(self, tmp_path, run, ending, what):
        (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(f"{one:g},{v}" for one, v in zip(ONE, V, strict=True)))
        file = tmp_path / f"f{ending}"
        if ending == ".txt":
            file.write_text("\n".join(map(str, IDS)))
        else:
            np.save(file, np.array(IDS))
        done = run("solve", tmp_path / "t.csv", "-k", 1, "--intercept", f"--{what}", file)
        assert done.code in ((0, 1) if what == "weights" else (2,))
        assert ("beyond 2^53" if what == "weights" else "no double is equal to") in done.err

    def test_an_instance_file_is_not_written_with_other_numbers(self, tmp_path):
        instance = Instance(np.array([[number] for number in IDS]), Y)
        with pytest.raises(InputError, match="no double is equal to"):
            write_instance(tmp_path / "t.npz", instance)
        assert not (tmp_path / "t.npz").exists()

    def test_categories_that_would_become_equal(self, write):
        with pytest.raises(InputError, match="values could become equal"):
            load(write(".csv", IDS)[0], factors=["id"], k=1)

    def test_gaps_do_not_hide_it(self, tmp_path):
        (tmp_path / "t.csv").write_text("id,y\n" + "".join(f"{n},{v}\n" for n, v in zip(IDS, V, strict=True)) + ",3\n")
        for missing in ("mean", "drop-rows", "mean-indicator"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises(InputError, match="no double is equal to"):
                    read_data(tmp_path / "t.csv", missing=missing)


class TestFrames:
    @pytest.fixture(params=["pandas", "pandas Int64", "pandas object", "polars", "polars decimal", "pyarrow"])
    def frame(self, request):
        library = pytest.importorskip(request.param.split()[0])

        def made(numbers):
            columns = {"a": ONE.tolist(), "id": numbers, "y": V.tolist()}
            if request.param == "pyarrow":
                return library.table(columns)
            if request.param == "polars decimal":
                columns["id"] = [Decimal(number) for number in numbers]
            found = library.DataFrame(columns)
            kinds = {"pandas Int64": "Int64", "pandas object": object}
            if request.param in kinds:
                found["id"] = found["id"].astype(kinds[request.param])
            return found

        return made

    def test_every_library(self, frame):
        with pytest.raises(InputError, match=r"column id .*no double is equal to"):
            load(frame(IDS), k=1)
        with pytest.raises(InputError, match=r"drop=\[.id.\]"):
            Problem(frame(IDS), Y, 1)
        with pytest.warns(UserWarning, match="column id " + SAID):
            load(frame(ROUNDED), k=1)
        assert [int(number) for number in load(frame(TIMES), k=1).A[:, 1]] == TIMES

    def test_a_prediction_is_no_claim(self):
        pandas = pytest.importorskip("pandas")
        model = solve(pandas.DataFrame({"t": TIMES}), Y, 1, intercept=True).model
        assert np.all(np.isfinite(model.predict(pandas.DataFrame({"t": ROUNDED[:2]}))))


def test_sparse_matrices():
    scipy = pytest.importorskip("scipy.sparse")
    with pytest.raises(InputError, match=REFUSED):
        Problem(scipy.csr_matrix(table("int64", IDS)), Y, 1)


@pytest.mark.parametrize("kind", ["int64", "Python integers", "sparse", "frame"])
def test_estimators(kind):
    sklearn = pytest.importorskip("exactsel.sklearn")
    made = {
        "sparse": lambda numbers: pytest.importorskip("scipy.sparse").csr_matrix(table("int64", numbers)),
        "frame": lambda numbers: pytest.importorskip("pandas").DataFrame({"a": ONE, "id": numbers}),
    }.get(kind, lambda numbers: table(kind, numbers))
    with pytest.raises(InputError, match="no double is equal to"):
        sklearn.BestSubsetRegressor(k=1).fit(made(IDS), Y)
    with pytest.raises(InputError, match="y holds"):
        sklearn.BestSubsetRegressor(k=1).fit(ONE.reshape(-1, 1), np.array(IDS))
    with pytest.warns(UserWarning, match="beyond 2"):
        sklearn.BestSubsetRegressor(k=1).fit(made(ROUNDED), Y)


class TestRowsInBlocks:
    DOORS = ("array", "npy", "csv", "parquet", "pandas", "blocks", "frames in blocks")

    @pytest.fixture
    def reduced(self, tmp_path):
        def made(door, numbers):
            A = np.array([ONE, numbers, V], dtype=object).T.astype(np.int64)
            if door == "array":
                return gram(A[:, :2], Y, k=1, intercept=True)
            if door == "npy":
                np.save(tmp_path / "t.npy", A)
                return gram(tmp_path / "t.npy", target=2, k=1, intercept=True)
            if door == "csv":
                (tmp_path / "t.csv").write_text("a,id,y\n" + "\n".join(",".join(map(str, row)) for row in A) + "\n")
                return gram(tmp_path / "t.csv", k=1, intercept=True)
            if door == "blocks":
                return gram([(A[:6, :2], Y[:6]), (A[6:, :2], Y[6:])], k=1, intercept=True)
            pandas = pytest.importorskip("pandas")
            frame = pandas.DataFrame(A, columns=["a", "id", "y"])
            if door == "frames in blocks":
                parts = [frame[:6], frame[6:]]
                return gram([(part[["a", "id"]], part["y"]) for part in parts], k=1, intercept=True)
            if door == "parquet":
                pytest.importorskip("pyarrow")
                frame.to_parquet(tmp_path / "t.parquet")
                return gram(tmp_path / "t.parquet", k=1, intercept=True)
            return gram(frame, k=1, intercept=True)

        return made

    @pytest.mark.parametrize("door", DOORS)
    def test_every_door(self, reduced, door):
        with pytest.raises(InputError, match="no double is equal to"):
            reduced(door, IDS)
        with pytest.warns(UserWarning, match=SAID):
            reduced(door, ROUNDED)
        reduced(door, TIMES)
