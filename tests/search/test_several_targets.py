"""Several targets, each on columns of its own or all on the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from samples import sample

from exactsel import InputError, solve, solve_targets


def data(seed, n=14, d=5, m=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, (n, d)) * 10.0 ** rng.integers(-6, 7, d) + rng.integers(0, 3)
    return X, X[:, :2] @ rng.standard_normal((2, m)) / abs(X[:, :2]).max() + rng.standard_normal((n, m)) + [0, 5, 10]


def fits(X, Y, columns, lam=0.0, weights=None):
    """The sum over targets of the best objectives on these columns, with an intercept each."""
    w = np.ones(len(X)) if weights is None else weights
    centre, middle = np.average(X, axis=0, weights=w), np.average(Y, axis=0, weights=w)
    Z, T = np.sqrt(w)[:, None] * (X - centre)[:, columns], np.sqrt(w)[:, None] * (Y - middle)
    size = np.sqrt((Z**2).sum(axis=0)) + (np.abs(Z).sum(axis=0) == 0)
    ridge = np.sqrt(lam) * np.diag(1 / size)
    A, B = np.vstack([Z / size, ridge]), np.vstack([T, np.zeros((len(columns), Y.shape[1]))])
    return 0.5 * float(np.sum((B - A @ np.linalg.lstsq(A, B, rcond=None)[0]) ** 2))


@pytest.mark.parametrize("seed", sample(40, 40))
@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_shared_columns_against_every_set(seed, lam):
    X, Y = data(seed)
    weights = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float) if seed % 2 else None
    k = 1 + seed % 3
    models = solve_targets(X, Y, k, shared=True, lam=lam, weights=weights, signals=())
    best = min(fits(X, Y, list(s), lam, weights) for s in combinations(range(X.shape[1]), k))
    assert models.reached
    assert models.lower <= best * (1 + 1e-9)
    assert models.upper == pytest.approx(best, rel=1e-7)
    assert len(set(models.supports)) == 1
    if lam == 0.0:
        w = np.ones(len(X)) if weights is None else weights
        left = 0.5 * np.sum(w[:, None] * (Y - models.predict(X)) ** 2)
        assert left == pytest.approx(best, rel=1e-6)


def test_each_on_its_own_is_a_solve_each():
    X, Y = data(1)
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    models = solve_targets(X, frame, [1, 2, 3], signals=())
    assert models.names == ("a", "b", "c")
    for t, k in enumerate((1, 2, 3)):
        alone = solve(X, Y[:, t], k, signals=())
        assert models.supports[t] == alone.support
        assert models.results[t].upper == alone.upper
        np.testing.assert_array_equal(models.coef[t], alone.coef)
    assert "a" in str(models)
    assert models.as_dict()["targets"] == ["a", "b", "c"]
    assert "<table>" in models._repr_html_()


def test_columns_that_every_model_must_have_or_not():
    X, Y = data(3)
    models = solve_targets(X, Y, 2, shared=True, force_in=[4], force_out=[0], signals=())
    assert 4 in models.supports[0]
    assert 0 not in models.supports[0]
    best = min(fits(X, Y, [4, j]) for j in (1, 2, 3))
    assert models.upper == pytest.approx(best, rel=1e-7)


def test_names_of_scikit_learn_mean_the_same():
    X, Y = data(4)
    weights = np.linspace(0.5, 2.0, len(X))
    models = solve_targets(X, Y, 2, shared=True, fit_intercept=False, sample_weight=weights, signals=())
    other = solve_targets(X, Y, 2, shared=True, intercept=False, weights=weights, signals=())
    assert models.upper == other.upper
    assert not models.intercept.any()
    loss = 0.5 * float(np.sum(weights[:, None] * (Y - models.predict(X)) ** 2))
    assert models.upper == pytest.approx(loss, rel=1e-7)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"shared": True, "factors": "auto"},
            "factors is given, but models with the same features take only fit_intercept",
        ),
        ({"shared": True, "loss": "huber"}, "squared errors"),
        ({"shared": True, "k": [1, 2, 3]}, "one k"),
        ({"k": [1, 2]}, "2 sizes for 3 targets"),
    ],
)
def test_what_cannot_be_is_said(options, said):
    X, Y = data(2)
    with pytest.raises(InputError, match=said):
        solve_targets(X, Y, **{"k": 2, **options})


def test_shared_columns_know_the_names_of_arguments():
    rng = np.random.default_rng(3)
    X, Y, weights = rng.normal(size=(30, 4)), rng.normal(size=(30, 2)), rng.uniform(0.5, 2.0, 30)
    shared = {"shared": True, "lam": 0.5, "signals": ()}
    for name, word, value in (
        ("sample_weight", "weights", weights),
        ("fit_intercept", "intercept", False),
        ("standardize", "scale", True),
    ):
        named, other = (solve_targets(X, Y, 2, **shared, **{called: value}) for called in (name, word))
        assert named.upper == other.upper
        assert named.upper != solve_targets(X, Y, 2, **shared).upper
    with pytest.raises(
        InputError, match="factors is given, but models with the same features take only fit_intercept, "
    ):
        solve_targets(X, Y, 2, **shared, factors="auto")


def test_targets_of_text_are_refused():
    X, _ = data(2)
    with pytest.raises(InputError, match="Y is not numeric; encode text"):
        solve_targets(X, [["a", "b"]] * len(X), 2)
