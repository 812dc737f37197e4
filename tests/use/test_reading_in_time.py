"""Time limits are asked for while data are read, and in passes over data that stay in their file."""

from __future__ import annotations

import io
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from samples import many
from sklearn.datasets import load_svmlight_file

from exactsel import Problem, solve
from exactsel.cli.main import main
from exactsel.data import arrays, read_data, svmlight, text
from exactsel.deadlines import ask, within
from exactsel.errors import TimeLimitError
from exactsel.problem import mapped_columns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.studies import heuristics

ROWS, COLUMNS = 40, 9


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(svmlight, "BYTES_AT_ONCE", 100)
    monkeypatch.setattr(text, "CELLS_AT_ONCE", 4 * COLUMNS)
    monkeypatch.setattr(arrays, "CHUNK", 200)
    monkeypatch.setattr(mapped_columns, "AT_ONCE", 3 * COLUMNS)


def written(folder, ending):
    """A file with a small table, and how many questions reading it asks at least."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((ROWS, COLUMNS)), rng.standard_normal(ROWS)
    file = folder / f"table.{ending}"
    if ending == "csv":
        lines = [",".join([*(f"c{j}" for j in range(COLUMNS)), "y"])]
        lines += [",".join(map(str, (*row, value))) for row, value in zip(A, y, strict=True)]
    elif ending == "mtx":
        lines = ["%%MatrixMarket matrix coordinate real general", f"{ROWS} {COLUMNS} {A.size}"]
        lines += [f"{i + 1} {j + 1} {A[i, j]}" for i in range(ROWS) for j in range(COLUMNS)]
    else:
        entries = [" ".join(f"{j + 1}:{value}" for j, value in enumerate(row)) for row in A]
        lines = [f"{value} {row}" for row, value in zip(entries, y, strict=True)]
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.smoke
@pytest.mark.parametrize("ending", ["csv", "mtx", "svm"])
def test_reading_asks_between_blocks_and_ends_with_the_limit(ending, clock, small_blocks, tmp_path):
    file = written(tmp_path, ending)
    read_data(file)
    assert clock.reads == 0  # nobody has set a limit
    with within(5.0):
        read_data(file)
    asked = clock.reads - 1
    assert asked >= 20
    for read in (2, asked // 2, asked + 1):
        clock.jumped, clock.jump_at_read = False, clock.reads + read
        with pytest.raises(TimeLimitError, match="the time limit of 5 s ended while the data were read"), within(5.0):
            read_data(file)


@pytest.mark.parametrize("command", [["solve"], ["solve", "--method", "forward"], ["path"]])
def test_a_command_whose_limit_ends_while_it_reads_says_so(command, clock, small_blocks, tmp_path, capsys):
    file = written(tmp_path, "csv")
    clock.jump_at_read = 6
    with pytest.raises(SystemExit) as ended:
        main([command[0], str(file), *command[1:], "-k", "2", "--time-limit", "5"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: the time limit of 5 s ended while the data were read")
    assert "--time-limit" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("begin", [0, 1])
def test_a_text_in_pieces_is_read_as_a_whole(begin, small_blocks, tmp_path):
    rng = np.random.default_rng(begin)
    for number in range(many(20, 200)):
        A = scipy.sparse.random(
            int(rng.integers(1, 30)), int(rng.integers(1, 9)), density=0.3, random_state=rng
        ).tocsr()
        lines = []
        for i, row in enumerate(A.toarray()):
            entries = " ".join(f"{j + begin}:{value}" for j, value in enumerate(row) if value)
            lines.append(f"{i} {entries}" + "\n" * (1 + i % 2))
        words = "".join(lines).rstrip("\n") if number % 2 else "# a remark\n" + "".join(lines)
        expected, y = load_svmlight_file(io.BytesIO(words.encode()))
        found, target = svmlight._loaded(words.encode())
        assert found.shape == expected.shape
        assert np.array_equal(found.toarray(), expected.toarray())
        assert np.array_equal(target, y)


def mapped(seed, lam):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((15, COLUMNS))
    A[:, 3] = A[:, 2]
    y = A[:, 1] - A[:, 4] + rng.standard_normal(15)
    return A, y, Problem.prepared(MappedColumns(A).T, y, 2, lam=lam, fit_intercept=True)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_wherever_a_limit_ends_in_a_pass_what_is_said_holds(lam, clock, small_blocks):
    A, y, _ = mapped(0, lam)
    truth = min(Problem.prepared(A, y, 2, lam=lam, fit_intercept=True).fit(pair).value
                for pair in combinations(range(COLUMNS), 2))  # fmt: skip
    for run in (
        lambda problem: solve(problem, time_limit=5.0, signals=()),
        lambda problem: heuristics.run("forward", problem, time_limit=5.0, signals=()),
        lambda problem: heuristics.run("iht", problem, time_limit=5.0, signals=()),
    ):
        for read in range(1, 60, 1 if many(0, 1) else 4):
            problem = mapped(0, lam)[2]
            clock.jumped, clock.jump_at_read = False, clock.reads + read
            result = run(problem)
            assert result.lower <= truth * (1 + 1e-12) <= result.upper * (1 + 2e-12)


def test_a_pass_asks_between_blocks_and_not_without_a_limit(clock, small_blocks):
    A, y, problem = mapped(1, 1.0)
    before = clock.reads
    assert problem.AT @ y == pytest.approx((A - A.mean(axis=0)).T @ y)
    assert clock.reads == before
    with within(5.0):
        _ = problem.AT @ y
    assert clock.reads - before >= 5
    hash_before = clock.reads
    with within(5.0):
        _ = problem.hash
    assert clock.reads == hash_before + 1  # what is known of the numbers says it without a pass


def test_poss_on_a_file_ends_between_two_offspring(small_blocks):
    problem, asked = mapped(2, 1.0)[2], []

    def stop():
        asked.append(1)
        return len(asked) > 1

    method = heuristics.make("poss", {"iterations": 10**9})
    assert method.run(problem, heuristics.Context(0, should_stop=stop)).evaluations < 10**9


def test_limits_within_limits(clock):
    ask()
    with within(None), within("soon"), within(-1.0):
        ask()
    with within(5.0), within(50.0):
        clock.jump(7.0)
        with pytest.raises(TimeLimitError, match="5 s"):
            ask()
    ask()
