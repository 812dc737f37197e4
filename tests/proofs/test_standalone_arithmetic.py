"""The arithmetic of the checker without numpy: roots, logarithms, fits and eigenvalues, rounded the safe way."""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction as F

import pytest
from hand_written import CLOSE, EIGENVALUES, SPLIT_IN, USE, written
from standalone_says import HUGE, established
from tiny_problems import Case, fitted, random_case

from exactsel_certificates.standalone import LOSSES, Regression, semidefinite
from exactsel_certificates.standalone.algebra import as_float, inverse_root, near, positives, root
from exactsel_certificates.standalone.losses.logistic import entropy, softplus


def test_roots_and_roundings():
    rng = random.Random(3)
    for _ in range(300):
        value = F(rng.getrandbits(200) + 1, rng.getrandbits(100) + 1) * F(2) ** rng.randint(-2500, 2500)
        assert root(value, above=False) ** 2 <= value < root(value, above=True) ** 2
        assert root(value, above=True) ** 2 - value <= value / 2**70
        assert abs(near(-value) + value) <= value / 2**59
        assert abs(inverse_root(value) ** 2 * value - 1) <= F(1, 2**50)
    assert near(F(0)) == 0
    assert as_float(F(10) ** 400) == sys.float_info.max == -as_float(-(F(10) ** 400))
    assert as_float(F(1, 3)) == 1 / 3


def test_logarithms_are_rounded_outwards():
    """Against series and known values; and none is far off."""
    half = F(69314718055994530941723212145817656807550, 10**41)
    assert half - F(1, 10**39) <= entropy(F(1, 2)) <= half + F(1, 10**40)
    assert -F(1, 10**40) <= entropy(F(0)) <= 0
    for t in (F(0), F(1), F(-1), F(300), F(-300), F(10) ** 400, -(F(10) ** 400), F(1, 3)):
        value = softplus(t)
        assert value >= max(t, 0)
        assert abs(float(value - max(t, 0)) - math.log1p(math.exp(-min(float(min(abs(t), F(10**4))), 700)))) <= 1e-15
    assert half <= softplus(F(0)) <= half + F(1, 10**39)


def test_the_fit_is_the_least_of_all():
    case = random_case(random.Random("fit"), "quadratic")._replace(k=2, groups=[], force_in=[], force_out=[])
    r = Regression(case.A, case.y, 2, LOSSES["quadratic"](1.0), case.lam, case.weights, case.level, (), case.scale)
    everything = {*range(len(case.A[0]))}
    assert r.at_fit(everything, set(), [], False) == fitted(case, sorted(everything)).value


def test_eigenvalues_of_columns_left():
    """A region with two places and more, against doubles; the bound is what the largest eigenvalues leave."""
    import numpy as np

    for seed in range(18):
        rng = random.Random(f"eigen {seed}")
        n, d = rng.randint(4, 6), rng.randint(4, 6)
        A = [[rng.gauss(0, 1) for _ in range(d)] for _ in range(n)]
        if seed % 3 == 0:
            A = [[*row[:-1], row[0] + row[1]] for row in A]
        k, size = rng.randint(2, 3), 10.0 ** rng.choice([0, -50, 50])
        case = Case([[size * v for v in row] for row in A], [], k, "", 0.0)
        S = rng.randint(0, k - 2)
        tree = [8 * EIGENVALUES + USE, *(8 * j + SPLIT_IN for j in range(S)), *[CLOSE] * (S + 1)]
        E = np.array(A)
        bounds = []
        for included in range(S, -1, -1):  # the regions: the first S columns in, then the first i in and column i out
            basis = np.linalg.qr(E[:, :included])[0] if included else np.zeros((n, 0))
            left = E - basis @ (basis.T @ E)
            free = left[:, included + (included < S) :]
            span = np.linalg.svd(free, full_matrices=False)
            Q = span[0][:, span[1] > 1e-9]
            values = np.linalg.eigvalsh(Q.T @ left @ left.T @ Q)[::-1]
            bounds.append(float(np.sum(left**2) - np.sum(values[: k - included])))
        lower = established(case, written(case, tree, {0: 1}, 0, HUGE))[0]
        assert lower == pytest.approx(size**2 * min(bounds), rel=1e-9, abs=1e-11 * size**2), seed


def test_signs_of_eigenvalues():
    """Whole-number matrices, singular ones among them, against doubles."""
    import numpy as np

    rng = np.random.default_rng(8)
    singular = 0
    for _ in range(400):
        m = int(rng.integers(1, 5))
        M = rng.integers(-2, 3, (m, int(rng.integers(1, 5))))
        M = M @ M.T - int(rng.integers(0, 3)) * np.diag(rng.integers(0, 2, m))
        values = np.linalg.eigvalsh(M.astype(float))
        rows = [[F(int(v)) for v in row] for row in M]
        singular += min(abs(values)) < 1e-9
        found = positives(rows)
        assert found in (-1, int(np.sum(values > 1e-9)))
        assert found >= 0 or min(M.diagonal()) <= 0 or min(values) < 1e-9
        assert semidefinite(rows) == (values[0] > -1e-9)
    assert singular > 50


@pytest.mark.parametrize("loss", ["huber", "logistic", "squared_hinge", "poisson"])
@pytest.mark.parametrize("far", [1e308, -1e308, 1.2e280])
def test_predictions_beyond_doubles_have_some_intercept(loss, far):
    y = {"huber": [1, 2, 3], "poisson": [0, 2, 3]}.get(loss, [1, 1, -1])
    z = [F(far) * F(v) for v in (11, 23, 37)]
    found = LOSSES[loss](1.0).intercept(z, [F(v) for v in y], [F(1), F(10) ** 30, F(1, 10**30)])
    assert isinstance(found, F)
