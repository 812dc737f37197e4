"""Offsets: the same objective as a prediction that is shifted, what refuses them, and how (brute force: the matrix of
test_conformance.py)."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from prepared_cases import offset_data
from samples import sample
from scipy.optimize import minimize
from scipy.special import gammaln, xlogy

from exactsel import Instance, Problem, load, registry, solve
from exactsel.cli.main import cli
from exactsel.data.instance import write_instance
from exactsel.errors import InputError, UnsupportedError
from exactsel.losses.huber import Huber
from exactsel.solving.likelihood import Likelihood


def test_criteria_count_rows_and_counts_not_exposures():
    A, y, offset, weights, k, _ = offset_data(1, "poisson")
    plain = Problem.prepared(A, y, k, loss="poisson", lam=0.4, weights=weights)
    shifted = Problem.prepared(A, y, k, loss="poisson", lam=0.4, weights=weights, offset=offset)
    for problem in (plain, shifted):
        found = Likelihood.of(problem)
        assert found.rows == pytest.approx(weights.sum())
        assert found.constant == pytest.approx(2.0 * np.sum(weights * (gammaln(y + 1.0) - xlogy(y, y) + y)))


def test_refused():
    A, y, offset, *_ = offset_data(0, "poisson")
    labels = np.where(y > np.median(y), 1.0, -1.0)
    for loss in ("logistic", "squared_hinge"):
        with pytest.raises(UnsupportedError, match=f"^{loss} loss takes no offset: it cannot be put into the target"):
            Problem.prepared(A, labels, 1, loss=loss, lam=1.0, offset=offset)
    for wrong, message in (
        (offset[:-1], r"^the offset holds \d+ numbers, but there are \d+ rows"),
        (np.where(offset > 0, np.nan, offset), "^the offset holds NaN or infinite values"),
        (["a"] * len(y), "^the offset is not numeric"),
        (offset + 100.0, r"^the offset goes up to 10\d\.?\d* in size, but 60 is the most for poisson loss"),
    ):
        with pytest.raises(InputError, match=message):
            Problem.prepared(A, y, 1, loss="poisson", lam=1.0, offset=wrong)


@pytest.mark.parametrize("intercept", [False, True])
def test_exposures_are_no_weights_in_the_sizes_of_columns(intercept):
    """They would be, and the ridge with them: refused. The way on: scale in the table."""
    rng = np.random.default_rng(3)
    A, offset = rng.standard_normal((20, 3)) * [1.0, 30.0, 0.1], rng.normal(0.0, 2.0, 20)
    y, options = rng.poisson(np.exp(offset)).astype(float), {"loss": "poisson", "lam": 0.5, "intercept": intercept}
    with pytest.raises(UnsupportedError, match=r"standardize does not go with an offset of poisson loss"):
        Problem.prepared(A, y, 1, scale=True, offset=offset, **options)
    centre = A.mean(axis=0) if intercept else 0.0
    sizes = np.sqrt(np.mean((A - centre) ** 2, axis=0))
    by_hand = Problem.prepared(A / sizes, y, 1, offset=offset, **options)
    without = Problem.prepared(A, y, 1, scale=True, **options)
    np.testing.assert_allclose(without.preparation.scale, sizes)
    assert solve(by_hand).reached
    for loss in ("quadratic", "huber"):  # an offset is taken off the target
        scaled = Problem.prepared(A, y, 1, scale=True, offset=offset, loss=loss, lam=0.5, intercept=intercept)
        np.testing.assert_allclose(scaled.preparation.scale, sizes)


def test_command_line(tmp_path, monkeypatch):
    """From a file or a column, which is then no candidate; a proof needs the same offset."""
    monkeypatch.chdir(tmp_path)
    A, y, offset, _, k, _ = offset_data(2, "poisson")
    names = [f"v{j}" for j in range(A.shape[1])]
    lines = [",".join([*names, "exposed", "y"])]
    lines += [",".join(repr(float(v)) for v in (*row, o, t)) for row, o, t in zip(A, offset, y, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    np.savetxt("o.txt", offset)
    usual = ["--loss", "poisson", "--lam", "0.4", "-k", str(k)]

    def run(*arguments):
        return CliRunner().invoke(cli, arguments, standalone_mode=False, catch_exceptions=False)

    assert run("solve", "a.csv", *usual, "--offset", "exposed", "--proof", "p.exsel", "--quiet").return_value == 0
    assert run("verify", "p.exsel", "a.csv", *usual, "--offset", "exposed").return_value == 0
    assert run("verify", "p.exsel", "a.csv", *usual, "--drop", "exposed", "--offset", "o.txt").return_value == 0
    assert run("verify", "p.exsel", "a.csv", *usual, "--drop", "exposed").return_value == 3
    assert load("a.csv", k=1, loss="poisson", lam=0.4, offset=offset).preparation.exposure is not None


@pytest.mark.parametrize("seed", sample(3, 40, smoke=1))
def test_gamma_models_are_poisson_models_of_ones(seed):
    """For a gamma variable of mean exp(z) the loss is z + t exp(-z): that of a count of 1 with exposure t, at -z."""
    A, _, offset, _, k, intercept = offset_data(seed, "poisson")
    t = np.random.default_rng([42, seed]).gamma(1.5, size=len(A)) * np.exp(0.7 * A[:, 0] + 0.3 * offset)
    options = {"loss": "poisson", "offset": np.log(t), "lam": 0.4, "intercept": intercept}
    result = solve(Problem.prepared(A, np.ones(len(t)), k, **options), signals=())

    def value(p, X):
        z = X @ p
        return float(np.sum(z + t * np.exp(-z)) + 0.2 * p[: X.shape[1] - intercept] @ p[: X.shape[1] - intercept])

    def on(columns):
        X = A[:, list(columns)]
        X = np.column_stack([X, np.ones(len(X))]) if intercept else X
        start = minimize(value, np.zeros(X.shape[1]), args=(X,), method="BFGS", options={"gtol": 1e-9})
        return min(start.fun, minimize(value, start.x, args=(X,), method="Nelder-Mead", options={"xatol": 1e-10}).fun)

    optimum = min(on(columns) for columns in combinations(range(A.shape[1]), k))
    X = np.column_stack([A, np.ones(len(A))]) if intercept else A
    shown = -np.append(result.model.coef, result.model.intercept) if intercept else -result.model.coef
    assert result.reached
    assert value(shown, X) == pytest.approx(optimum, rel=1e-6)
    # The two objectives differ by a number that does not depend on the model.
    assert result.upper - value(shown, X) == pytest.approx(result.lower - optimum, abs=1e-5 * abs(optimum))


class OfResidual(Huber):
    name = "of-residual"


class OfLabels(Huber):
    name, of_residuals = "of-labels", False


@pytest.fixture
def plug_ins(monkeypatch):
    entries = registry._entries
    own = {kind.name: SimpleNamespace(load=lambda kind=kind: kind) for kind in (OfResidual, OfLabels)}
    monkeypatch.setattr(registry, "_entries", lambda kind: entries(kind) | own if kind == "losses" else entries(kind))


@pytest.mark.usefixtures("plug_ins")
def test_a_plug_in_takes_the_threshold_of_a_file_and_an_offset_if_it_is_of_the_residual(tmp_path):
    rng = np.random.default_rng(4)
    A, y, offset = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=12)
    write_instance(tmp_path / "own.npz", Instance(A, y, k=2, lam=0.1, loss="of-residual", delta=0.4))
    problem = load(tmp_path / "own.npz")
    assert problem.objective.loss == OfResidual(0.4)
    twin = Problem(A, y - offset, 2, loss="huber", delta=0.4, lam=0.1)
    taken = Instance(A, y, k=2, lam=0.1, loss="of-residual", delta=0.4).problem(offset=offset)
    assert taken.fit([0, 1]).value == twin.fit([0, 1]).value
    with pytest.raises(UnsupportedError, match="of-labels loss takes no offset"):
        Instance(A, y, k=2, lam=0.1, loss="of-labels", delta=0.4).problem(offset=offset)
