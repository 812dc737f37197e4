"""Proofs of sparse problems whose columns were screened: both checkers, brute force, and files that claim too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner
from samples import sample
from sparse_cases import brute_force, drawn, on_demand

from exactsel import Problem, solve, verify
from exactsel.bounds.column_bounds import column_bounds
from exactsel.cli.main import cli
from exactsel.proofs.instance import checked_instance_of
from exactsel.solving import screening
from exactsel_certificates import __main__ as command
from exactsel_certificates import standalone
from exactsel_certificates.checking import verify as check
from exactsel_certificates.container import MalformedError, parse_proof, read_proof, written
from exactsel_certificates.formula import Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.left_out import left_out
from exactsel_certificates.reference.screened import dual_bounds, touched_bound
from exactsel_certificates.standalone import __main__ as second
from exactsel_certificates.standalone.file import Malformed
from exactsel_certificates.standalone.screened import bounds, stated
from exactsel_certificates.standalone.sparse import of_table

__all__ = ["on_demand"]  # a fixture

ROOM = 1e-12


def sparse_problem(A, y, k, options):
    return Problem.prepared(scipy.sparse.csc_matrix(A), y, k, **options)


def said(data, A, y, k, options):
    """What the second checker says."""
    more = (options.get("delta", 1.0), (), options["must_not"], None, options["fit_intercept"])
    return standalone.check(data, of_table(A.tolist()), y.tolist(), k, options["loss"], options["lam"], *more)


@pytest.mark.parametrize("seed", sample(150, 3000, smoke=10))
def test_bounds_of_both_checkers_hold_and_are_those_of_the_reference(seed, on_demand):
    A, y, k, options = drawn(seed)
    rng = np.random.default_rng(seed)
    problem, table = sparse_problem(A, y, k, options), Problem.prepared(A, y, k, **options)
    instance, (best, with_column) = checked_instance_of(problem), brute_force(table, k)
    found = column_bounds(problem, np.zeros(problem.d), lambda: False)
    spread = np.ptp(y) + 1.0
    levels = [np.array(found.levels), np.sort(spread * rng.standard_normal(int(rng.integers(0, 4))))]
    duals = [np.array(found.duals).reshape(-1, y.size), rng.standard_normal((1, y.size))]
    others = [int(j) for j in np.flatnonzero(rng.random(problem.d) < 0.6)]
    room = ROOM * (table.null_objective + abs(float(np.mean(y))) ** 2)
    for at, some in zip(levels, duals, strict=True):
        mine = left_out(instance, at, some)
        assert mine.whole <= best + room
        assert np.all(mine.with_column <= with_column + room)
        p = {
            "active_column": [j for j in range(problem.d) if j not in others], "screen_level": at.tolist(),
            "screen_dual": [*range(len(some))], "dual_value": some.ravel().tolist(),
        }  # fmt: skip
        more = (options.get("delta", 1.0), (), options["must_not"], None, options["fit_intercept"])
        exact = bounds(p, stated(A.tolist(), y.tolist(), k, options["loss"], options["lam"], *more))
        theirs = mine.whole, float(np.min(mine.with_column[others], initial=np.inf))
        # An end test that just fails in doubles, but not exactly, says less.
        for value, true in zip(theirs, exact, strict=True):
            assert value <= float(true) * (1.0 + ROOM) + room
        if options["loss"] == "quadratic":
            about = Instance(A, y, k, "quadratic", options["lam"], must_not=tuple(options["must_not"]))
            if options["fit_intercept"]:
                about = GivenInstance(A, y, k, "quadratic", options["lam"], must_not=about.must_not, intercept=True)
            slow = [touched_bound(about, at.tolist())]
            slow += [dual_bounds(about, dual) for dual in some if options["lam"] > 0]
            whole = max([0.0, *(bound for bound, _ in slow)])
            each = [max(0.0, *(values[j] for _, values in slow)) for j in others]
            near = {"rel": 1e-6, "abs": 1e-6 * (1.0 + float(y @ y))}
            assert float(exact[0]) == pytest.approx(whole, **near)
            assert float(exact[1]) == pytest.approx(min(each, default=np.inf), **near)


@pytest.mark.parametrize("seed", sample(60, 1500, smoke=6))
def test_both_checkers_verify_what_a_search_proves_and_nothing_more(seed, on_demand, tmp_path, monkeypatch):
    A, y, k, options = drawn(seed)
    rng = np.random.default_rng(seed)
    problem = sparse_problem(A, y, k, options)
    best, _ = brute_force(Problem.prepared(A, y, k, **options), k)
    monkeypatch.setattr(screening, "FIRST_COLUMNS", int(rng.choice([1, 2, 250])))
    file = tmp_path / "p.exsel"
    result = solve(problem, proof=file, signals=())
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.exsel"]
    proof = read_proof(file)
    verdict = verify(problem, file)
    assert verdict.verified, verdict
    assert verdict.lower >= proof.lower == result.lower
    assert said(file.read_bytes(), A, y, k, options) == ""
    assert verdict.support == result.support
    about = checked_instance_of(problem)
    more = {"must_not": about.must_not, "intercept": about.intercept}
    table = (GivenInstance if about.intercept else Instance)(A, y, k, about.loss, about.lam, about.delta, **more)
    assert check(proof, table).verified
    for forged in forgeries(proof, best, rng):
        data = written(forged)
        try:
            assert not check(parse_proof(data), checked_instance_of(problem)).verified
            assert said(data, A, y, k, options) != ""
        except (MalformedError, Malformed):
            continue


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
    solve(sparse_problem(A, y, max(k, 1), options), proof=file, signals=())
    proof = read_proof(file)
    data = written(replace(proof, model_index=np.array([proof.d], dtype=np.int32), model_value=np.ones(1)))
    with pytest.raises(MalformedError, match="columns"):
        parse_proof(data)
    with pytest.raises(Malformed):
        said(data, A, y, max(k, 1), options)


def test_forced_columns_must_be_active(on_demand, tmp_path):
    rng = np.random.default_rng(1)
    A, y = (rng.random((30, 6)) < 0.2) * 1.0, rng.standard_normal(30)
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, 2, must_have=[3], must_not=[0])
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
