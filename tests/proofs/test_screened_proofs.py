"""Proofs of sparse problems whose columns were screened: both checkers, brute force, and files that claim too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner
from samples import sample
from sparse_cases import brute_force, drawn, drawn_limits, on_demand

from exactsel import Problem, solve, verify
from exactsel.bounds.column_bounds import column_bounds
from exactsel.cli.main import cli
from exactsel.problem.boxed import with_bounds
from exactsel.proofs.instance import checked_instance_of
from exactsel.solving import screening
from exactsel_certificates import __main__ as command
from exactsel_certificates import standalone
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import MalformedError, parse_proof, read_proof, written
from exactsel_certificates.formula import Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.left_out import left_out
from exactsel_certificates.standalone import __main__ as second
from exactsel_certificates.standalone.file import Malformed
from exactsel_certificates.standalone.screened import bounds, stated
from exactsel_certificates.standalone.sparse import of_table
from exactsel_dev.reference.screened import dual_bounds, touched_bound

__all__ = ["on_demand"]  # a fixture

ROOM, ROOM_WITHIN_LIMITS = 1e-12, 1e-9
"""Parts of the empty model's objective that fits of brute force may be off."""


def problems(A, y, k, options, limits):
    """The problem on sparse columns, and on a table."""
    sparse, table = (Problem.prepared(data, y, k, **options) for data in (scipy.sparse.csc_matrix(A), A))
    return (sparse, table) if limits is None else (with_bounds(sparse, *limits), with_bounds(table, *limits))


def sides_of(limits):
    return None if limits is None else [side.tolist() for side in limits]


def said(data, A, y, k, options, limits=None):
    """What the second checker says."""
    more = (options.get("delta", 1.0), (), options["force_out"], None, options["fit_intercept"])
    within = {"bounds": sides_of(limits)}
    return standalone.check(data, of_table(A.tolist()), y.tolist(), k, options["loss"], options["lam"], *more, **within)


@pytest.fixture(params=["free", "within limits"])
def drawn_problem(request):
    """Draws data, k, options and limits of a problem."""

    def draw(seed):
        A, y, k, options = drawn(seed)
        return A, y, k, options, None if request.param == "free" else drawn_limits(seed, A.shape[1])

    return draw


@pytest.mark.parametrize("seed", sample(100, 3000, smoke=10))
def test_bounds_of_both_checkers_hold_and_are_those_of_the_reference(seed, drawn_problem, on_demand):
    A, y, k, options, limits = drawn_problem(seed)
    rng = np.random.default_rng(seed)
    problem, table = problems(A, y, k, options, limits)
    instance, (best, with_column) = checked_instance_of(problem), brute_force(table, k)
    found = column_bounds(problem, np.zeros(problem.d), lambda: False)
    spread = np.ptp(y) + 1.0
    levels = [np.array(found.levels), np.sort(spread * rng.standard_normal(int(rng.integers(0, 4))))]
    duals = [np.array(found.duals).reshape(-1, y.size), rng.standard_normal((1, y.size))]
    others = [int(j) for j in np.flatnonzero(rng.random(problem.d) < 0.6)]
    room = (ROOM if limits is None else ROOM_WITHIN_LIMITS) * (table.null_objective + abs(float(np.mean(y))) ** 2)
    for at, some in zip(levels, duals, strict=True):
        mine = left_out(instance, at, some)
        assert mine.whole <= best + room
        assert np.all(mine.with_column <= with_column + room)
        p = {
            "active_column": [j for j in range(problem.d) if j not in others], "screen_level": at.tolist(),
            "screen_dual": [*range(len(some))], "dual_value": some.ravel().tolist(),
        }  # fmt: skip
        more = (options.get("delta", 1.0), (), options["force_out"], None, options["fit_intercept"])
        within = {"bounds": sides_of(limits)}
        exact = bounds(p, stated(A.tolist(), y.tolist(), k, options["loss"], options["lam"], *more, **within))
        theirs = mine.whole, float(np.min(mine.with_column[others], initial=np.inf))
        # An end test that just fails in doubles, but not exactly, says less.
        for value, true in zip(theirs, exact, strict=True):
            assert value <= float(true) * (1.0 + ROOM) + room
        if options["loss"] == "quadratic":
            about = table_instance(instance, A, y)
            slow = [touched_bound(about, at.tolist())]
            allowed = [j for j in range(A.shape[1]) if j not in options["force_out"]]
            held = limits is not None and bool(np.all(np.isfinite(np.array(limits)[:, allowed])))
            slow += [dual_bounds(about, dual) for dual in some if options["lam"] > 0 or held]
            whole = max([0.0, *(bound for bound, _ in slow)])
            each = [max(0.0, *(values[j] for _, values in slow)) for j in others]
            near = {"rel": 1e-6, "abs": 1e-6 * (1.0 + float(y @ y))}
            assert float(exact[0]) == pytest.approx(whole, **near)
            assert float(exact[1]) == pytest.approx(min(each, default=np.inf), **near)


@pytest.mark.parametrize("seed", sample(40, 1500, smoke=6))
def test_both_checkers_verify_what_a_search_proves_and_nothing_more(
    seed, drawn_problem, on_demand, tmp_path, monkeypatch
):
    A, y, k, options, limits = drawn_problem(seed)
    rng = np.random.default_rng(seed)
    problem, on_table = problems(A, y, k, options, limits)
    best, _ = brute_force(on_table, k)
    monkeypatch.setattr(screening, "FIRST_COLUMNS", int(rng.choice([1, 2, 250])))
    file = tmp_path / "p.exsel"
    result = solve(problem, proof=file, signals=())
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.exsel"]
    proof = read_proof(file)
    verdict = verify(problem, file)
    assert verdict.verified, verdict
    assert verdict.lower >= proof.lower == result.lower
    assert said(file.read_bytes(), A, y, k, options, limits) == ""
    assert verdict.support == result.support
    assert check(proof, table_instance(checked_instance_of(problem), A, y)).verified
    for forged in () if result.valid_for else forgeries(proof, best, rng):
        data = written(forged)
        try:
            assert not check(parse_proof(data), checked_instance_of(problem)).verified
            assert said(data, A, y, k, options, limits) != ""
        except (MalformedError, Malformed):
            continue


def table_instance(about, A, y):
    """The problem as a checker knows it where it is handed a table."""
    more = {"force_out": about.force_out, "intercept": about.intercept, "box": about.box}
    return (GivenInstance if about.intercept else Instance)(A, y, about.k, about.loss, about.lam, about.delta, **more)


def forgeries(proof, best, rng):
    """Files that claim more than there is, each with something else changed besides."""
    above = best * (1.0 + 1e-6) + 1e-9 * (1.0 + proof.upper)
    proof = replace(proof, lower=above, upper=max(proof.upper, above))
    yield proof
    levels = proof.screen_level
    for changed in (levels[1:], levels[:-1], levels[::2], 0.1 * levels, levels[len(levels) // 2 :][:1], levels[:0]):
        yield replace(proof, screen_level=changed)
    for most in (1e155, 1e308):
        yield replace(proof, screen_level=np.array([-most, most]))
    for scale in (0.0, 0.5, 3.0):
        yield replace(proof, dual_value=scale * proof.dual_value + rng.standard_normal(proof.dual_value.size))
    if proof.d < proof.columns:
        moved = np.sort(rng.choice(proof.columns, proof.d, replace=False)).astype(np.int32)
        yield replace(proof, active_column=moved)
    yield replace(proof, screen_dual=proof.screen_dual[:0])
    yield replace(proof, columns=None)
    yield replace(proof, columns=proof.columns + 1)
    yield replace(proof, active_column=proof.active_column[::-1].copy(), screen_level=levels[::-1].copy())
    yield replace(proof, screen_dual=np.array([proof.duals], dtype=np.int32))


def test_a_model_of_a_column_that_is_not_active_is_malformed(on_demand, tmp_path):
    A, y, k, options = drawn(5)
    file = tmp_path / "p.exsel"
    solve(problems(A, y, max(k, 1), options, None)[0], proof=file, signals=())
    proof = read_proof(file)
    data = written(replace(proof, model_index=np.array([proof.d], dtype=np.int32), model_value=np.ones(1)))
    with pytest.raises(MalformedError, match="columns"):
        parse_proof(data)
    with pytest.raises(Malformed):
        said(data, A, y, max(k, 1), options)


def test_forced_columns_must_be_active(on_demand, tmp_path):
    rng = np.random.default_rng(1)
    A, y = (rng.random((30, 6)) < 0.2) * 1.0, rng.standard_normal(30)
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, 2, force_in=[3], force_out=[0])
    file = tmp_path / "p.exsel"
    solve(problem, proof=file, signals=())
    assert verify(problem, file).verified
    proof, about = read_proof(file), checked_instance_of(problem)
    assert 3 in proof.active_column
    active = proof.active_column.copy()
    active[active == 3] = next(j for j in range(6) if j not in active)
    assert not check(replace(proof, active_column=np.sort(active)), about).verified


@pytest.mark.parametrize("ending", ["svm", "mtx", "npz"])
@pytest.mark.parametrize(("loss", "lam"), [("quadratic", "0"), ("logistic", "2")])
def test_every_checker_reads_the_sparse_file(ending, loss, lam, on_demand, tmp_path, capsys):
    rng = np.random.default_rng(2)
    A = (rng.random((40, 25)) < 0.1) * 1.0
    y = A[:, 3] - A[:, 7] + 0.1 * rng.standard_normal(40)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    data, target, proof = tmp_path / f"d.{ending}", tmp_path / "y.npy", tmp_path / "run.exsel"
    if ending == "svm":
        pytest.importorskip("sklearn.datasets").dump_svmlight_file(A, y, str(data))
    elif ending == "mtx":
        scipy.io.mmwrite(data, scipy.sparse.coo_matrix(A), precision=17)
    else:
        scipy.sparse.save_npz(data, scipy.sparse.csr_matrix(A))
    np.save(target, y)
    given = [data, "-k", 2, "--loss", loss, "--lam", lam, *([] if ending == "svm" else ["--target", target])]
    for asked in (["solve", *given, "--proof", proof, "--intercept"], ["verify", proof, *given, "--intercept"]):
        done = CliRunner().invoke(cli, [*map(str, asked)])
        assert done.exit_code == 0, done.output
    assert read_proof(proof).columns == 25
    for main in (command.main, second.main):
        assert main([str(proof), *map(str, given), "--intercept"]) == 0
        assert main([str(proof), *map(str, given)]) == 3
        capsys.readouterr()


@pytest.mark.parametrize("ending", ["svm", "mtx", "npz"])
def test_damaged_sparse_files_are_refused_in_a_sentence(ending, on_demand, tmp_path, capsys):
    rng = np.random.default_rng(3)
    A, y = (rng.random((12, 9)) < 0.3) * 1.0, rng.standard_normal(12)
    data, target, proof = tmp_path / f"d.{ending}", tmp_path / "y.npy", tmp_path / "run.exsel"
    if ending == "svm":
        pytest.importorskip("sklearn.datasets").dump_svmlight_file(A, y, str(data))
    elif ending == "mtx":
        scipy.io.mmwrite(data, scipy.sparse.coo_matrix(A))
    else:
        parts = {"format": b"csr", "shape": np.array(A.shape), "data": np.ones(5), "row": np.zeros(2)}
        np.savez(data, **parts)
        assert command.main([str(proof), str(data), "-k", "2", "--lam", "0"]) == 2
        scipy.sparse.save_npz(data, scipy.sparse.csr_matrix(A), compressed=False)
    np.save(target, y)
    solve(Problem.prepared(scipy.sparse.csr_matrix(A), y, 2), proof=proof, signals=())
    whole = data.read_bytes()
    given = [str(proof), str(data), "-k", "2", "--lam", "0", "--target", str(target)]
    assert [main(given) for main in (command.main, second.main)] == [0, 0]
    for _ in range(120):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), int(rng.integers(1, 4))).tolist():
            damaged[place] = int(rng.choice([*b"0 9:-.\n%x", 255, 0]))
        data.write_bytes(bytes(damaged[: int(rng.integers(1, len(whole) + 1))] if rng.random() < 0.2 else damaged))
        for main in (command.main, second.main):
            assert main(given) in (0, 2, 3, 4)
    capsys.readouterr()


def test_limits_of_the_proof_are_those_of_the_problem(on_demand, tmp_path):
    """A proof within limits proves nothing without them, within wider ones, or of a model outside."""
    A, y, k, options = drawn(6)
    d, size = A.shape[1], 0.05
    file, limits = tmp_path / "p.exsel", (np.full(A.shape[1], -size), np.full(A.shape[1], size))
    problem, _ = problems(A, y, k, options, limits)
    result = solve(problem, proof=file, signals=())
    assert result.support
    assert verify(problem, file).verified
    data, wider = file.read_bytes(), (limits[0], 2.0 * limits[1])
    for others in (None, wider):
        assert not verify(problems(A, y, k, options, others)[0], file).verified
        assert "another problem" in said(data, A, y, k, options, others)
    proof = read_proof(file)
    for forged in (replace(proof, model_value=3.0 * proof.model_value), replace(proof, bounds=False)):
        verdict = check(parse_proof(written(forged)), checked_instance_of(problem))
        assert not verdict.verified
        assert said(written(forged), A, y, k, options, limits) != ""
    assert d == problem.d


def test_a_table_of_columns_that_nothing_limits(on_demand, tmp_path, monkeypatch):
    """The one column with limits is left out, so the tree is about free coefficients."""
    monkeypatch.setattr(screening, "FIRST_COLUMNS", 1)
    rng = np.random.default_rng(0)
    A = (rng.random((40, 12)) < 0.15) * 1.0
    y = 3.0 * A[:, 1] + 0.01 * rng.standard_normal(40)
    limits = np.full(12, -np.inf), np.full(12, np.inf)
    limits[1][11] = 0.5
    options = {"loss": "quadratic", "lam": 0.0, "fit_intercept": True, "force_out": []}
    problem, _ = problems(A, y, 1, options, limits)
    file = tmp_path / "p.exsel"
    result = solve(problem, proof=file, signals=())
    assert result.support == (1,)
    assert 11 not in read_proof(file).active_column
    assert verify(problem, file).verified
    assert said(file.read_bytes(), A, y, 1, options, limits) == ""


@pytest.mark.parametrize("option", [["--max-coef", "0.5"], ["--bounds", "limits.csv"], ["--nonnegative", "all"]])
def test_limits_from_the_command_line_to_the_verified_proof(option, on_demand, tmp_path, capsys, monkeypatch):
    rng = np.random.default_rng(3)
    A = (rng.random((60, 30)) < 0.1) * 1.0
    y = A[:, 3] - A[:, 7] + 0.1 * rng.standard_normal(60)
    monkeypatch.chdir(tmp_path)
    scipy.sparse.save_npz("d.npz", scipy.sparse.csr_matrix(A))
    np.save("y.npy", y)
    with open("limits.csv", "w", encoding="utf-8") as out:
        out.write("column,lower,upper\n3,,0.25\n")
    given = ["d.npz", "-k", "2", "--lam", "0", "--target", "y.npy", "--intercept", *option]
    for asked in (["solve", *given, "--proof", "p.exsel"], ["verify", "p.exsel", *given]):
        done = CliRunner().invoke(cli, asked)
        assert done.exit_code == 0, done.output
    assert read_proof("p.exsel").columns == 30
    for main in (command.main, second.main):
        assert main(["p.exsel", *given]) == 0
        assert main(["p.exsel", *given[:-2]]) == 3
        capsys.readouterr()
