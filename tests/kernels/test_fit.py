"""Values, gradients and exact fits on a support: as defined, and by an independent minimiser."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.optimize

from exactsel import Huber, Problem

LOSSES = ("quadratic", "huber", "logistic")
each_loss = pytest.mark.parametrize("loss", LOSSES)


def random_problem(rng, loss, n, d, kind="plain", lam=0.1, k=None) -> Problem:
    matrix = rng.standard_normal((n, d))
    if kind == "duplicates":
        matrix[:, 1], matrix[:, 2] = matrix[:, 0], -2.0 * matrix[:, 0]
    elif kind == "constant":
        matrix[:, 0], matrix[:, 1] = 1.0, 0.0
    elif kind == "scales":
        matrix *= 10.0 ** rng.uniform(-4, 4, d)
    y = matrix @ (rng.standard_normal(d) / (1.0 + np.abs(matrix).max(axis=0))) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(matrix, y, d if k is None else k, loss=Huber(0.9) if loss == "huber" else loss, lam=lam)


def plain_objective(problem: Problem, x) -> float:
    """P(x) by the formulas of docs/reference/problem.md, in plain numpy."""
    z, y = problem.AT.T @ x, problem.y
    if problem.loss.name == "quadratic":
        value = 0.5 * np.sum((z - y) ** 2)
    elif problem.loss.name == "huber":
        r, delta = np.abs(z - y), problem.loss.delta
        value = np.sum(np.where(r <= delta, 0.5 * r**2, delta * r - 0.5 * delta**2))
    else:
        value = np.sum(np.logaddexp(0.0, -y * z))
    return float(value + 0.5 * problem.lam * np.sum(np.square(x)))


def plain_gradient(problem: Problem, x):
    z, y = problem.AT.T @ x, problem.y
    if problem.loss.name == "quadratic":
        slope = z - y
    elif problem.loss.name == "huber":
        slope = np.clip(z - y, -problem.loss.delta, problem.loss.delta)
    else:
        slope = -y / (1.0 + np.exp(np.clip(y * z, -700, 700)))
    return problem.AT.T.T @ slope + problem.lam * x


def independent_minimum(problem: Problem, support) -> float:
    """The smallest objective scipy's quasi-Newton method finds on a support."""
    columns = list(support)

    def lift(part):
        x = np.zeros(problem.d)
        x[columns] = part
        return x

    found = scipy.optimize.minimize(
        lambda part: plain_objective(problem, lift(part)),
        np.zeros(len(columns)),
        jac=lambda part: plain_gradient(problem, lift(part))[columns],
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-12},
    )
    return float(found.fun)


@pytest.mark.smoke
class TestValues:
    @each_loss
    @pytest.mark.parametrize("kind", ["plain", "duplicates", "scales"])
    def test_objective_and_gradient_are_those_of_the_definition(self, loss, kind):
        rng = np.random.default_rng(3)
        for n, d in ((1, 1), (1, 7), (40, 5), (6, 20)):
            problem = random_problem(rng, loss, n, d, kind if d > 2 else "plain", lam=0.3)
            for x in (np.zeros(d), rng.standard_normal(d), rng.standard_normal(d) * (rng.random(d) < 0.4)):
                assert problem.objective(x) == pytest.approx(plain_objective(problem, x), rel=1e-12)
                expected = plain_gradient(problem, x)
                np.testing.assert_allclose(problem.gradient(x), expected, atol=1e-11 * (1 + np.abs(expected).max()))
            assert problem.gradient_scale == pytest.approx(np.linalg.norm(problem.gradient(np.zeros(d))))

    def test_far_from_zero_nothing_overflows(self):
        problem = Problem([[1e3], [-1e3]], [1, 1], 1, loss="logistic", lam=1e-3)
        assert problem.objective([1e3]) == pytest.approx(1e6 + 0.5 * 1e3)
        assert problem.gradient([1e3])[0] == pytest.approx(1e3 + 1.0)


def fits():
    rng = np.random.default_rng(11)
    for kind in ("plain", "duplicates", "constant", "scales"):
        for n, d in ((30, 8), (5, 8), (3, 12), (60, 20)):
            for _ in range(2):
                yield rng, kind, n, d, rng.choice(d, rng.integers(1, d + 1), replace=False)


class TestFit:
    @each_loss
    @pytest.mark.parametrize("lam", [1e-8, 1e-3, 0.1, 10.0, 1e8])
    def test_the_gradient_vanishes(self, loss, lam):
        for rng, kind, n, d, support in fits():
            problem = random_problem(rng, loss, n, d, kind, lam)
            fit = problem.fit(support)
            gradient = plain_gradient(problem, fit.coef)[np.sort(support)]
            scale = 1.0 + np.linalg.norm(plain_gradient(problem, np.zeros(d)))
            assert fit.gradient_norm <= 1e-10 * scale
            assert np.linalg.norm(gradient) <= 1e-10 * scale + 1e-13 * scale * np.abs(problem.AT.T).max()
            assert fit.value == pytest.approx(plain_objective(problem, fit.coef), rel=1e-12)
            assert set(fit.support) <= set(fit.columns.tolist()) == set(support.tolist())

    @pytest.mark.parametrize("lam", [1e-12, 1e-8, 1e-4])
    def test_huber_far_from_the_data(self, lam):
        rng = np.random.default_rng(2)
        for _ in range(40):
            problem = Problem(
                rng.standard_normal((20, 30)), 100 * rng.standard_normal(20), 30, loss=Huber(0.05), lam=lam
            )
            assert problem.fit(rng.choice(30, 25, replace=False)).gradient_norm <= 1e-10 * problem.gradient_scale

    @pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
    @each_loss
    def test_an_independent_method_finds_the_same_minimum(self, loss, every):
        for rng, kind, n, d, support in islice(fits(), 0, None, every):
            problem = random_problem(rng, loss, n, d, "plain" if kind == "scales" else kind, 0.05)
            value = problem.fit(support).value
            assert value == pytest.approx(independent_minimum(problem, support), rel=1e-9, abs=1e-12)

    def test_without_ridge_it_is_least_squares(self):
        for rng, kind, n, d, support in fits():
            problem = random_problem(rng, "quadratic", n, d, kind, lam=0.0)
            columns = np.sort(support)
            matrix = problem.AT.T[:, columns]
            unit = matrix / np.where(matrix.any(axis=0), np.linalg.norm(matrix, axis=0), 1.0)
            residual = problem.y - unit @ np.linalg.lstsq(unit, problem.y, rcond=1e-12)[0]
            fit = problem.fit(support)
            assert fit.value == pytest.approx(0.5 * residual @ residual, rel=1e-9, abs=1e-14 * (problem.y @ problem.y))
            assert fit.gradient_norm <= 1e-10 * problem.gradient_scale

    @each_loss
    def test_no_columns(self, loss):
        problem = random_problem(np.random.default_rng(0), loss, 6, 4)
        fit = problem.fit([])
        assert fit.support == ()
        assert fit.gradient_norm == 0.0
        assert fit.value == pytest.approx(plain_objective(problem, np.zeros(4)), rel=1e-14)

    def test_order_and_repetition_do_not_matter(self):
        problem = random_problem(np.random.default_rng(0), "huber", 9, 5)
        once = problem.fit([1, 3])
        again = problem.fit(iter((3, 1, 3)))
        assert again.value == once.value
        np.testing.assert_array_equal(again.coef, once.coef)
        assert again.columns.tolist() == [1, 3]

    def test_separable_labels(self):
        x = np.linspace(-1, 1, 11)[:, None]
        problem = Problem(x, np.where(x[:, 0] > 0.05, 1.0, -1.0), 1, loss="logistic", lam=1e-10)
        fit = problem.fit([0])
        assert fit.gradient_norm <= 1e-10 * problem.gradient_scale
        assert fit.coef[0] > 50

    @each_loss
    @pytest.mark.parametrize("threads", [1, 2])
    def test_objectives_are_the_values_of_fits(self, loss, threads):
        rng = np.random.default_rng(5)
        problem = random_problem(rng, loss, 25, 9, lam=0.2)
        supports = [rng.choice(9, size, replace=False) for size in (0, 1, 2, 3, 4, 4, 4)]
        padded = np.full((len(supports), 4), -1)
        for row, support in enumerate(supports):
            padded[row, : support.size] = support
        expected = [problem.fit(support).value for support in supports]
        np.testing.assert_allclose(problem.objectives(padded, threads), expected, rtol=1e-9)

    def test_objectives_are_nan_where_columns_are_dependent(self):
        matrix = np.random.default_rng(0).standard_normal((8, 3))
        problem = Problem(matrix[:, [0, 0, 1, 2]], np.arange(8.0), 2, lam=0.0)
        values = problem.objectives(np.array([[0, 1], [0, 2]]))
        assert np.isnan(values[0]) or values[0] == pytest.approx(problem.fit([0, 1]).value, rel=1e-6)
        assert values[1] == pytest.approx(problem.fit([0, 2]).value, rel=1e-10)
