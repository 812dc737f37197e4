"""``exactsel data gram`` and ``exactsel.gram``: where rows come from, what is refused, what it is good for."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from own_threshold import OwnHuber

import exactsel
from exactsel import registry
from exactsel.cli.main import main
from exactsel.data import blocks
from exactsel.data.instance import read_instance, write_instance
from exactsel.errors import InputError, UnsupportedError

RNG = np.random.default_rng(11)
N, D = 60, 4
A = np.round(RNG.standard_normal((N, D)) + 3.0, 3)
Y = np.round(A[:, 0] - 2.0 * A[:, 2] + RNG.standard_normal(N), 3)
W = np.round(RNG.uniform(0.5, 2.0, N), 2)
NAMES = ("a", "b", "c", "d")
TABLE = {**dict(zip(NAMES, A.T, strict=True)), "w": W, "y": Y}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "ENTRIES", 50)


def expect(instance, weights=W, names=NAMES, intercept=True):
    """The instance stands for the rows above."""
    counts = np.ones(N) if weights is None else weights
    x = np.array([1.0, -0.5, 0.25, 2.0])
    residual = A @ x - Y
    residual -= counts @ residual / counts.sum() if intercept else 0.0
    assert np.linalg.norm(instance.A @ x - instance.y) == pytest.approx(np.sqrt(counts @ residual**2), rel=1e-12)
    assert instance.A.shape == (D + 1, D)
    assert instance.feature_names == names
    assert instance.reduction.rows == N
    assert instance.reduction.weight == pytest.approx(counts.sum())


def write(folder, kind):
    """The table as a file."""
    file = folder / f"rows.{kind}"
    cells = [[f"{value}" for value in row] for row in np.column_stack([*TABLE.values()])]
    text = "\n".join([",".join(TABLE), *(",".join(row) for row in cells)])
    match kind:
        case "csv":
            file.write_text(text)
        case "csv.gz":
            file.write_bytes(gzip.compress(text.encode()))
        case "tsv":
            file.write_text(text.replace(",", "\t"), encoding="utf-16")
        case "parquet":
            parquet = pytest.importorskip("pyarrow.parquet")
            parquet.write_table(sys.modules["pyarrow"].table(TABLE), file, row_group_size=17)
    return file


@pytest.mark.smoke
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet"])
def test_tables_are_read_in_blocks(tmp_path, kind):
    expect(exactsel.gram(write(tmp_path, kind), weights="w", intercept=True))


def test_decimal_commas(tmp_path):
    file = tmp_path / "rows.csv"
    lines = [";".join(f"{value}".replace(".", ",") for value in row) for row in np.column_stack([A, Y])]
    file.write_text("\n".join([";".join([*NAMES, "y"]), *lines]))
    with pytest.raises(InputError, match=r"column a holds cells like '[\d,]+', in which .* say which with decimal="):
        exactsel.gram(file)
    expect(exactsel.gram(file, decimal=",", intercept=True), weights=None)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_arrays_in_files(tmp_path, order, kind):
    np.save(tmp_path / "A.npy", np.asarray(A, order=order))
    np.save(tmp_path / "y.npy", Y)
    np.savetxt(tmp_path / "w.txt", W)
    options = {"target": str(tmp_path / "y.npy"), "weights": str(tmp_path / "w.txt"), "intercept": True}
    expect(exactsel.gram(tmp_path / "A.npy", **options), names=None)
    np.save(tmp_path / "all.npy", np.asarray(np.column_stack([A, Y]).astype(kind), order=order))
    left = exactsel.gram(str(tmp_path / "all.npy"), target=D, intercept=False)
    x = np.arange(4.0)
    rows = np.load(tmp_path / "all.npy").astype(np.float64)
    assert np.linalg.norm(left.A @ x - left.y) == pytest.approx(np.linalg.norm(rows[:, :4] @ x - rows[:, 4]), rel=1e-12)


def test_arrays_and_blocks():
    expect(exactsel.gram(A, Y, weights=W, intercept=True, feature_names=NAMES))
    expect(exactsel.gram(A, Y), None, None)
    expect(exactsel.gram(A, Y, intercept=False), None, None, intercept=False)
    pairs = [(A[:1], Y[:1]), (A[1:1], Y[1:1]), (A[1:], Y[1:])]
    expect(exactsel.gram(iter(pairs), intercept=False), None, None, intercept=False)
    expect(exactsel.gram(((A[i : i + 7], Y[i : i + 7], W[i : i + 7]) for i in range(0, N, 7)), intercept=True), W, None)


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy", "pyarrow", "dask", "dask array"])
def test_frames(library):
    options = {"weights": "w", "intercept": True}
    match library:
        case "pandas":
            frame = pytest.importorskip("pandas").DataFrame(TABLE)
        case "polars":
            frame = pytest.importorskip("polars").DataFrame(TABLE)
        case "lazy":
            frame = pytest.importorskip("polars").LazyFrame({**TABLE, "name": ["x"] * N})
            options["drop"] = ["name"]
        case "pyarrow":
            frame = pytest.importorskip("pyarrow").table(TABLE)
        case "dask":
            frame = pytest.importorskip("dask.dataframe")
            frame = frame.from_pandas(pytest.importorskip("pandas").DataFrame(TABLE), npartitions=3)
        case _:
            array = pytest.importorskip("dask.array")
            parts = [array.from_array(part, chunks=13) for part in (A, Y)]
            expect(exactsel.gram(*parts, weights=W, intercept=True), names=None)
            return
    expect(exactsel.gram(frame, **options))


def test_blocks_that_are_frames_bring_names():
    pandas = pytest.importorskip("pandas")
    frames = [(pandas.DataFrame(A[i : i + 20], columns=NAMES), Y[i : i + 20]) for i in range(0, N, 20)]
    expect(exactsel.gram(frames), None)
    frames[1] = (frames[1][0].rename(columns={"b": "e"}), frames[1][1])
    with pytest.raises(InputError, match="block 1 has other columns than the first"):
        exactsel.gram(frames)


def spoilt(row, column, value):
    rows = A.copy()
    rows[row, column] = value
    return [(rows[:30], Y[:30]), (rows[30:], Y[30:])]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (spoilt(31, 2, np.nan), r"in block 1 of the blocks \(from row 30 on\), column 2 holds no value \(or NaN\)"),
        (spoilt(3, 1, np.inf), r"in block 0 of the blocks \(from row 0 on\), column 1 holds an infinite value"),
        (spoilt(3, 1, -1e70), r"in block 0 .*, column 1 holds -1e\+70, but computing with more than 1e\+60 would"),
        ([(A, np.where(Y[5] == Y, np.nan, Y))], r"in block 0 .*, the target holds no value .* in the block's row 5"),
        ([(A, Y, -W)], r"in block 0 .*, a weight is -[\d.]+, but 0 or something between 1e-30 and 1e\+30 was expected"),
        ([(A, Y, np.full(N, np.nan))], "a weight is nan"),
        ([(A, Y, 0 * W)], "all rows have the weight 0, so there is nothing to fit"),
        ([(A[:0], Y[:0])], "there are no rows"),
        ([], "there are no blocks; give at least one pair"),
        ([A], "block 0 is a ndarray, but"),
        ([(A, Y[:-1])], "block 0 of the blocks .* has 60 rows, but 59 numbers in y"),
        ([(A, Y), (A[:, :2], Y)], "block 1 of the blocks .* has 2 columns, but the first has 4"),
        ([("text", Y)], "block 0 holds something that is no number"),
        (7, "a int cannot be read in blocks"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_used_is_named(data, said):
    with pytest.raises(InputError, match=said):
        exactsel.gram(data)


def test_files_that_cannot_be_used(tmp_path):
    file = write(tmp_path, "csv")
    for options, said in (
        ({"target": "z"}, "has no column called 'z'"), ({"weights": "none"}, "has no column called 'none'"),
        ({"drop": ["a,b,c,d,w"]}, "has no columns left"), ({"missing": "mean"}, "only 'drop-rows' is known"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            exactsel.gram(file, **options)
    file.write_text("a,y\n1,2\nred,3\n")
    with pytest.raises(InputError, match="column a holds text, such as 'red', but blocks of rows must hold numbers"):
        exactsel.gram(file)
    file.write_text("a,y\n1,2\n3\n")
    with pytest.raises(InputError, match=r"row 3 of .* has 1 cells, but the first has 2"):
        exactsel.gram(file)
    file.write_text("a,y\n")
    with pytest.raises(InputError, match="holds no rows"):
        exactsel.gram(file)
    file.write_text("")
    with pytest.raises(InputError, match="is empty"):
        exactsel.gram(file)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "short.npy", Y[:-1])
    np.save(tmp_path / "long.npy", np.append(Y, 1.0))
    np.save(tmp_path / "texts.npy", A.astype(str))
    for name, said in (
        ("short", "holds fewer numbers"),
        ("long", "holds more numbers"),
        ("A", "has 4 columns"),
    ):
        with pytest.raises(InputError, match=said):
            exactsel.gram(tmp_path / "A.npy", target=str(tmp_path / f"{name}.npy"))
    with pytest.raises(InputError, match="has no target y"):
        exactsel.gram(tmp_path / "A.npy")
    with pytest.raises(InputError, match="entries of type"):
        exactsel.gram(tmp_path / "texts.npy", target=0)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "A.npy").read_bytes()[:-9])
    (tmp_path / "A.xyz").write_text("")
    for name, said in (("cut.npy", "cannot be read as what"), ("A.xyz", "of no kind"), ("none.csv", "none.csv")):
        with pytest.raises(InputError, match=said):
            exactsel.gram(tmp_path / name, target=0)


def test_rows_with_gaps_can_be_left_out(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {name: [None if i == 9 and name == "b" else float(v) for i, v in enumerate(column)] for name, column in
             TABLE.items()}  # fmt: skip
    parquet.write_table(sys.modules["pyarrow"].table(table), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="column b holds no value"):
        exactsel.gram(tmp_path / "rows.parquet", weights="w")
    with pytest.warns(UserWarning, match="1 of 60 rows of .* have missing values and are left out"):
        left = exactsel.gram(tmp_path / "rows.parquet", weights="w", missing="drop-rows", intercept=False)
    kept = np.arange(N) != 9
    assert left.reduction.rows == N - 1
    assert np.linalg.norm(left.y) == pytest.approx(np.sqrt(W[kept] @ Y[kept] ** 2))


def test_what_to_install_is_said(tmp_path, monkeypatch):
    file = write(tmp_path, "parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UnsupportedError, match=r"reading rows.parquet needs pyarrow; run: pip install"):
        exactsel.gram(file)


def test_a_file_keeps_all(tmp_path):
    small = exactsel.gram(A, Y, weights=W, intercept=True, k=2, lam=0.5, feature_names=NAMES)
    write_instance(tmp_path / "small.npz", small)
    again = read_instance(tmp_path / "small.npz")
    assert (again.k, again.lam, again.feature_names, again.reduction.rows) == (2, 0.5, NAMES, N)
    for one, other in (
        (small.reduction.errors, again.reduction.errors),
        (small.reduction.means, again.reduction.means),
    ):
        np.testing.assert_array_equal(one, other)
    arrays = dict(np.load(tmp_path / "small.npz"))
    for changed, said in (
        ({"tall_errors": arrays["tall_errors"][:-1]}, "damaged"), ({"tall_weight": -1.0}, "damaged"),
        ({"tall_errors": arrays["tall_errors"].astype(str)}, "no numbers"), ({"tall_rows": None}, "is missing"),
        ({"tall_errors": arrays["tall_errors"][1:], "tall_means": arrays["tall_means"][1:]}, "is about 3 features"),
    ):  # fmt: skip
        np.savez(tmp_path / "other.npz", **{key: v for key, v in {**arrays, **changed}.items() if v is not None})
        with pytest.raises(InputError, match=said):
            read_instance(tmp_path / "other.npz").problem()


def test_what_needs_the_rows_is_refused():
    small = exactsel.gram(A, Y, intercept=True, k=2)
    for options, said in (
        ({"loss": "huber"}, "say nothing of huber loss"), ({"intercept": True}, "leave fit_intercept=True out"),
        ({"scale": True}, "rescale them before"), ({"weights": np.ones(5)}, "give sample_weight to exactsel.gram"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            small.problem(**options)
    with pytest.raises(InputError, match=r"give fit_intercept=True to exactsel.gram"):
        exactsel.gram(A, Y, k=2, intercept=False).problem(intercept=True)
    with pytest.raises(InputError, match=r"give fit_intercept=False to exactsel.gram"):
        small.problem(intercept=False)
    with pytest.raises(InputError, match="say nothing of logistic loss"):
        small.problem().replace(loss="logistic", lam=1.0)


def test_the_threshold_of_a_plug_in_is_stored(tmp_path, monkeypatch):
    entries = registry._entries
    own = {"own-huber": SimpleNamespace(load=lambda: OwnHuber)}
    monkeypatch.setattr(registry, "_entries", lambda kind: entries(kind) | own if kind == "losses" else entries(kind))
    taken = exactsel.gram(A, Y, k=2, lam=1.0, loss="own-huber", delta=0.5, out=tmp_path / "rows.npz")
    assert taken.problem().loss == OwnHuber(0.5)
    with pytest.raises(InputError, match=r"delta is given, but logistic loss has no such parameter; use loss=.huber."):
        exactsel.gram(A, Y, k=2, lam=1.0, loss="logistic", delta=0.5, out=tmp_path / "rows.npz")


def test_groups_demands_and_paths_know_the_rows():
    small = exactsel.gram(A, Y, intercept=True, k=2)
    grouped = exactsel.solve(small.grouped_problem(groups={"g": [0, 2]}, k=1))
    assert grouped.support == (0,)
    assert grouped.full_data.rows == N
    assert exactsel.solve(small.problem(force_out=[0]).replace(k=3)).full_data.rows == N
    certified = exactsel.certify(small.problem(), support=[0, 2])
    assert certified.value == pytest.approx(exactsel.certify(exactsel.Problem.prepared(A, Y, 2, intercept=True),
                                                             support=[0, 2]).value, rel=1e-12)  # fmt: skip


def end(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return ended.value.code


@pytest.mark.smoke
def test_the_command_line(tmp_path, capsys):
    out, file = tmp_path / "small.npz", write(tmp_path, "csv")
    assert (
        end("data", "gram", file, out, "--weights", "w", "--intercept", "-k", "2", "--lam", ".1", "--threads", "1") == 0
    )
    assert "n=5 d=4, in place of 60 rows and an intercept; row_error" in capsys.readouterr().err
    assert end("solve", out, "--proof", tmp_path / "run.exsel") == 0
    shown = capsys.readouterr()
    assert "intercept " in shown.out
    assert "over 60 rows" in shown.err
    assert end("verify", tmp_path / "run.exsel", out) == 0
    assert end("info", out, "--no-root") == 0
    shown = capsys.readouterr().out
    assert "all_rows             60\n" in shown
    assert "row_error" in shown
    assert end("info", out, "--drop", "b", "--no-root") == 0
    assert end("path", out, "--k-max", "2", "--cv", "3") == 2
    assert "none can be held out" in capsys.readouterr().err
    assert end("solve", out, "--target", "a") == 2
    assert "its target stays" in capsys.readouterr().err
    assert end("data", "gram", file, tmp_path / "small.txt") == 2
    assert end("data", "gram", file, out, "--threads", "0") == 2
    assert end("data", "gram", tmp_path / "none.csv", out) == 2
    assert end("data", "convert", out, tmp_path / "copy.npz", "-k", "1") == 0
    assert read_instance(tmp_path / "copy.npz").reduction.rows == N


def test_the_report_speaks_of_all_rows(tmp_path):
    small = exactsel.gram(A, Y, intercept=True, k=2).problem()
    exactsel.write_report(tmp_path / "run.html", exactsel.solve(small), small)
    assert "over 60 rows" in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_the_benchmark_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    monkeypatch.setattr(blocks, "ENTRIES", 2**21)
    from benchmarks.tall.__main__ import main as benchmark

    shown = CliRunner().invoke(benchmark, ["--quick"], catch_exceptions=False).output
    assert shown.count("| verified | found |") == 2


def test_criteria_count_all_rows(tmp_path):
    from exactsel.studies.criteria import information

    whole = exactsel.solve(exactsel.Problem.prepared(A, Y, 2, intercept=True))
    small = exactsel.solve(exactsel.gram(A, Y, intercept=True).problem(k=2))
    assert information(small) == pytest.approx(information(whole))
    assert small.as_dict()["full_data"]["rows"] == N
    assert small.predict(A) == pytest.approx(whole.predict(A))


def test_memory_is_bounded_by_the_block(tmp_path):
    """What is allocated while rows pass does not depend on how many there are."""
    import tracemalloc

    peaks = []
    for n in (2_000, 50_000):
        pairs = ((np.random.default_rng(i).standard_normal((1_000, 5)), np.ones(1_000)) for i in range(n // 1_000))
        exactsel.gram([(A, Y)])  # so that what is imported and kept is there
        tracemalloc.start()
        exactsel.gram(pairs, intercept=True, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
