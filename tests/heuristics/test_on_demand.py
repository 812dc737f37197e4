"""Methods on data that are not held as a table: the same answers as on the table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner
from samples import kernels_of_its_own, many, whole

from exactsel import ColumnSubsetProblem, Problem, boxed, load, solve
from exactsel.cli.main import cli
from exactsel.data import arrays, read_data
from exactsel.kernels.columns import centred_dot, centred_products
from exactsel.problem import design, mapped_columns
from exactsel.problem.design import SparseColumns
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.problem.storing import columns_by_entries
from exactsel.sklearn import BestSubsetRegressor
from exactsel.studies import heuristics

METHODS = ("forward", "omp", "greedy-rls", "exchange", "foba", "swap", "htp", "iht")


def drawn(seed, n=60, d=25):
    rng = np.random.default_rng(seed)
    A = (rng.random((n, d)) < 0.2) * rng.choice([1.0, 1.0, 2.5], (n, d))
    A[:, 3] = A[:, 2]
    A[:, 4] = 0.0
    y = A @ (rng.standard_normal(d) * (rng.random(d) < 0.3)) + 0.5 * rng.standard_normal(n) + 3.0
    return A, y


@pytest.fixture
def on_demand(monkeypatch):
    monkeypatch.setattr(design, "MOST_TABLE_BYTES", -1)
    monkeypatch.setattr(design, "MOST_ENTRIES", 2.0)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [0.0, 2.0])
@pytest.mark.parametrize("method", METHODS)
def test_methods_find_on_sparse_columns_what_they_find_on_a_table(method, lam, intercept, on_demand):
    for seed in range(many(1, 3)):
        A, y = drawn(seed)
        options = {"lam": lam, "fit_intercept": intercept}
        found = [
            heuristics.run(method, Problem.prepared(data, y, 4, **options), signals=())
            for data in (A, scipy.sparse.csc_matrix(A))
        ]
        assert found[0].upper == pytest.approx(found[1].upper, rel=1e-9)
        assert found[1].lower <= found[0].upper * (1 + 1e-12)
        assert found[1].evaluations == found[0].evaluations or method in ("exchange", "swap")


WITHIN_LIMITS = ("forward", "swap", "omp", "htp", "iht")


@pytest.mark.parametrize("loss", ["quadratic", "logistic", "poisson"])
@pytest.mark.parametrize("size", [0.3, 1e6])
@pytest.mark.parametrize("method", WITHIN_LIMITS)
def test_methods_within_limits_find_on_sparse_columns_what_they_find_on_a_table(method, size, loss, on_demand):
    for seed in range(many(1, 8)):
        A, y = drawn(seed)
        y = {"logistic": np.where(y > np.median(y), 1.0, -1.0), "poisson": np.floor(np.abs(y))}.get(loss, y)
        lam = 0.0 if loss == "quadratic" and seed % 2 else 2.0
        options = {"lam": lam, "fit_intercept": bool((seed + (loss == "logistic")) % 3), "loss": loss}
        problems = [
            boxed(Problem.prepared(data, y, 4, **options), max_coef=size) for data in (A, scipy.sparse.csc_matrix(A))
        ]
        found = [heuristics.run(method, problem, signals=()) for problem in problems]
        assert found[0].upper == pytest.approx(found[1].upper, rel=1e-8)
        assert found[1].lower <= found[0].upper * (1 + 1e-12)
        assert np.all(np.abs(found[1].coef) <= size)


@pytest.mark.parametrize(
    ("method", "loss"),
    [
        ("poss", "quadratic"),
        ("pposs", "logistic"),
        kernels_of_its_own("poss", "logistic"),
        kernels_of_its_own("pposs", "quadratic"),
    ],
)
def test_pareto_optimisation_within_limits_makes_the_same_offspring(method, loss, on_demand):
    A, y = drawn(1)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    chosen = heuristics.make(method, {"iterations": 300})
    options = {"lam": 0.5, "fit_intercept": True, "loss": loss}
    table, sparse = (
        heuristics.run(chosen, boxed(Problem.prepared(data, y, 3, **options), max_coef=0.4), seed=2, signals=())
        for data in (A, scipy.sparse.csr_matrix(A))
    )
    assert sparse.proposal.support == table.proposal.support
    assert sparse.evaluations == table.evaluations
    assert sparse.upper == pytest.approx(table.upper, rel=1e-8)


@pytest.mark.parametrize("criterion", ["squared", "zero-one"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_greedy_rls_takes_the_same_path_with_the_same_errors(lam, intercept, criterion, on_demand):
    for seed in range(many(3, 8)):
        A, y = drawn(seed)
        y = np.where(y > np.median(y), 1.0, -1.0) if criterion == "zero-one" else y
        method = heuristics.make("greedy-rls", {"criterion": criterion})
        if criterion == "zero-one" and intercept:
            continue  # a centred target holds no labels
        table, sparse = (
            heuristics.run(method, Problem.prepared(data, y, 6, lam=lam, fit_intercept=intercept), signals=())
            for data in (A, scipy.sparse.csr_matrix(A))
        )
        assert sparse.proposal.path == table.proposal.path
        assert sparse.proposal.criterion == pytest.approx(table.proposal.criterion, rel=1e-9)


@pytest.mark.parametrize("method", ["poss", "pposs"])
def test_pareto_optimisation_makes_the_same_offspring(method, on_demand):
    A, y = drawn(1)
    chosen = heuristics.make(method, {"iterations": 300})
    table, sparse = (
        heuristics.run(chosen, Problem.prepared(data, y, 3, fit_intercept=True), seed=2, signals=())
        for data in (A, scipy.sparse.csr_matrix(A))
    )
    assert sparse.proposal.support == table.proposal.support
    assert sparse.evaluations == table.evaluations


@pytest.mark.parametrize("loss", ["logistic", kernels_of_its_own("huber")])
def test_other_losses(loss, on_demand):
    A, y = drawn(2)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y
    for method in ("forward", "omp", "poss"):
        options = {"iterations": 200} if method == "poss" else {}
        table, sparse = (
            heuristics.run(
                heuristics.make(method, options),
                Problem.prepared(data, y, 3, loss=loss, lam=0.5, fit_intercept=True),
                signals=(),
            )
            for data in (A, scipy.sparse.csr_matrix(A))
        )
        assert sparse.support == table.support
        assert sparse.upper == pytest.approx(table.upper, rel=1e-9)
        assert 0.0 < sparse.lower <= sparse.upper


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_tables_that_stay_in_their_file(kind, order, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    A, y = np.array(rng.standard_normal((20, 50)), dtype=kind, order=order), rng.standard_normal(20)
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "y.npy", y)
    table = load(tmp_path / "A.npy", target=tmp_path / "y.npy", k=3, lam=1.0)
    monkeypatch.setattr(mapped_columns, "MOST_BYTES", 4000)
    monkeypatch.setattr(mapped_columns, "AT_ONCE", 130)
    mapped = load(tmp_path / "A.npy", target=tmp_path / "y.npy", k=3, lam=1.0)
    assert isinstance(mapped.AT, MappedColumns)
    b, x = rng.standard_normal(20), rng.standard_normal(50)
    assert mapped.AT @ b == pytest.approx(table.AT @ b, abs=1e-12)
    assert x @ mapped.AT == pytest.approx(x @ table.AT, abs=1e-12)
    assert mapped.AT[[4, 1]] == pytest.approx(table.AT[[4, 1]], abs=1e-12)
    assert mapped.norms == pytest.approx(table.norms)
    for lam, size in ((1.0, 0.2), (0.0, 0.2)):
        limited = [boxed(problem.replace(lam=lam), max_coef=size) for problem in (table, mapped)]
        methods = ("forward", "omp", "iht", "htp", *(("poss", "pposs") if whole() and kind is np.float32 else ()))
        for method in methods:
            given = heuristics.make(method, {"iterations": 200} if "poss" in method else {})
            found = [heuristics.run(given, problem, signals=()) for problem in limited]
            assert found[0].support == found[1].support
            assert 0.0 < found[1].lower <= found[0].upper * (1 + 1e-9)
        results = [solve(problem, signals=()) for problem in limited]
        assert results[0].upper == pytest.approx(results[1].upper, rel=1e-6)
        assert results[1].reached
    chosen = [(name, {}) for name in ("forward", "omp", "iht", "greedy-rls")]
    # What is compiled for tables of each kind takes long.
    if whole() or (kind, order) == (np.float32, "C"):
        chosen.append(("exchange", {}))
    if whole() or (kind, order) == (np.float64, "C"):
        chosen.append(("poss", {"iterations": 200}))
    if whole():
        chosen.append(("pposs", {"iterations": 200}))
    for method, options in chosen:
        given = heuristics.make(method, options)
        found = [heuristics.run(given, problem, signals=()) for problem in (table, mapped)]
        assert found[0].support == found[1].support
        assert found[1].lower <= found[0].upper * (1 + 1e-12)
        assert found[1].lower > 0.0


@pytest.mark.parametrize("loss", ["logistic", "huber", *map(kernels_of_its_own, ("poisson", "squared_hinge"))])
def test_other_losses_on_tables_that_stay_in_their_file(loss, tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((30, 60)).astype(np.float32)
    z = A[:, 0] - A[:, 1] + 0.3 * rng.standard_normal(30)
    y = {"huber": z, "poisson": np.floor(np.exp(np.clip(z, -2, 2)))}.get(loss, np.sign(z))
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "y.npy", y)
    given = {"target": tmp_path / "y.npy", "k": 2, "lam": 2.0, "loss": loss}
    table = load(tmp_path / "A.npy", **given)
    monkeypatch.setattr(mapped_columns, "MOST_BYTES", 4000)
    mapped = load(tmp_path / "A.npy", **given)
    assert isinstance(mapped.AT, MappedColumns)
    for one, other in ((table, mapped), (boxed(table, max_coef=0.3), boxed(mapped, max_coef=0.3))):
        results = [solve(problem, signals=()) for problem in (one, other)]
        assert results[0].support == results[1].support
        assert results[0].upper == pytest.approx(results[1].upper, rel=1e-9)
        assert results[1].reached
        for method in ("forward", "omp", "swap", "htp", "iht"):
            found = heuristics.run(method, other, signals=())
            assert 0.0 < found.lower <= results[0].upper * (1 + 1e-12)
            assert found.upper >= results[0].upper * (1 - 1e-9)


def test_a_file_that_claims_more_than_it_holds_is_not_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_columns, "MOST_BYTES", 4000)
    file = tmp_path / "A.npy"
    np.save(file, np.zeros((20, 50)))
    file.write_bytes(file.read_bytes()[:-8])
    assert arrays.map_npy_file(file) is None
    with pytest.raises(Exception, match="damaged"):
        load(file, target=tmp_path / "y.npy", k=1)


@pytest.mark.parametrize("ending", ["npz", "svm", "mtx"])
def test_sparse_files_stay_sparse_from_the_command_line_to_the_result(ending, on_demand, tmp_path):
    A, y = drawn(5)
    np.save(tmp_path / "y.npy", y)
    data, words = tmp_path / f"A.{ending}", ["--target", str(tmp_path / "y.npy")]
    if ending == "npz":
        scipy.sparse.save_npz(data, scipy.sparse.csc_matrix(A))
    elif ending == "mtx":
        scipy.io.mmwrite(data, scipy.sparse.coo_matrix(A))
    else:
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(A, y, str(data), zero_based=False)
        words = []
    done = CliRunner().invoke(cli, ["solve", str(data), *words, "-k", "3", "--quiet"])
    assert done.exit_code == 0, done.output
    best = Problem.prepared(A, y, 3, fit_intercept=True)
    shown = {int(line.split()[0]) for line in done.output.splitlines() if line.split()[0].isdigit()}
    assert best.fit(sorted(shown)).value == pytest.approx(heuristics.run("exchange", best, signals=()).upper, rel=1e-6)


def test_estimators_keep_sparse_matrices_sparse(on_demand):
    A, y = drawn(6)
    table = BestSubsetRegressor(k=3).fit(A, y)
    sparse = BestSubsetRegressor(k=3).fit(scipy.sparse.csr_matrix(A), y)
    assert "of 25 features by" in sparse.result_.settings["method"]
    assert sparse.objective_ == pytest.approx(table.objective_, rel=1e-9)
    assert sparse.predict(scipy.sparse.csr_matrix(A)) == pytest.approx(table.predict(A), rel=1e-6)


def test_products_of_columns_stored_by_entries():
    A, _ = drawn(7)
    A[:, 5] = 1.0
    n, d = A.shape
    for centred in (False, True):
        rows, columns = np.nonzero(A)
        made = SparseColumns.of(rows, columns, A[rows, columns], A.shape)
        made = made.centred(A.mean(axis=0)) if centred else made
        table = (A - A.mean(axis=0) if centred else A).T
        stored, out = columns_by_entries(made), np.empty(d)
        assert made[np.arange(d)] == pytest.approx(table, abs=1e-14)
        assert made.squares() == pytest.approx((table**2).sum(axis=1), abs=1e-11)
        for i in (0, 2, 4, 5):
            assert [centred_dot(stored, i, j, n) for j in range(d)] == pytest.approx(table @ table[i], abs=1e-11)
            if centred:
                centred_products(stored, i, out)
                assert out == pytest.approx(table @ table[i], abs=1e-11)


@pytest.mark.parametrize("shape", [(10, 2**40), (2**40, 10), (2**20, 2**20)])
def test_claimed_sizes_are_refused_before_memory_is_taken(shape, tmp_path):
    scipy.sparse.save_npz(tmp_path / "A.npz", scipy.sparse.coo_matrix(([1.0], ([0], [5])), shape=shape))
    with pytest.raises(Exception, match=r"more than the \d+ that are read"):
        read_data(tmp_path / "A.npz")


@pytest.mark.parametrize(
    ("rows", "columns", "said"), [([0, 70], [1, 2], "damaged or forged"), ([4, 4], [2, 2], "twice")]
)
def test_forged_entries_are_refused(rows, columns, said, on_demand, tmp_path):
    scipy.sparse.save_npz(tmp_path / "A.npz", scipy.sparse.coo_matrix(([1.0, 2.0], ([0, 1], [0, 1])), shape=(60, 9)))
    with np.load(tmp_path / "A.npz") as archive:
        parts = dict(archive)
    parts["row"], parts["col"] = np.array(rows), np.array(columns)
    np.savez(tmp_path / "A.npz", **parts)
    with pytest.raises(Exception, match=said):
        read_data(tmp_path / "A.npz")


def test_numbers_that_cannot_be_used_are_refused(on_demand):
    A, y = drawn(8)
    for value, said in ((np.nan, "NaN or infinite"), (1e70, "squares?"), (1e-70, "squares?")):
        A[3, 3] = value
        with pytest.raises(Exception, match=said):
            Problem.prepared(scipy.sparse.csr_matrix(A), y, 2)


def test_what_needs_a_table_gets_one_while_it_is_small(on_demand):
    A, y = drawn(9)
    sparse, weights = scipy.sparse.csr_matrix(A), np.arange(1.0, 61.0)
    for options in ({"standardize": True}, {"sample_weight": weights}, {"groups": [j // 2 for j in range(25)]}):
        made = Problem.prepared(sparse, y, 2, **options)
        assert not made.objective.on_demand
        assert made.hash == Problem.prepared(A, y, 2, **options).hash
    assert ColumnSubsetProblem(sparse, 2).hash == ColumnSubsetProblem(A, 2).hash
    model = solve(sparse, y, k=2).model
    assert model.predict(sparse) == pytest.approx(model.predict(A), abs=1e-12)
