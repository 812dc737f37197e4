"""Local search on second-order models of the objective."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from exactsel import registry
from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows
from exactsel.start.models import starting_models
from exactsel.start.portfolio import AUTO, OTHER_LOSSES, first_is_enough
from exactsel_heuristics._second_order import second_order_model
from exactsel_heuristics.base import Context
from exactsel_heuristics.newton_swap import NewtonSwap


def problem_of(loss, n=200, d=8, k=3, seed=0, **options):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) @ (np.eye(d) + 0.4)
    y = A[:, :k] @ rng.uniform(0.5, 1.5, k) + rng.normal(size=n)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    return Problem.prepared(A, y, k, loss=loss, lam=0.5, **options)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_finds_the_best_model_of_easy_problems(loss, intercept):
    """On all of thirty problems with a strong signal: far more often than chance, which has one in 56."""
    for seed in range(30):
        problem = problem_of(loss, seed=seed, intercept=intercept)
        found = NewtonSwap().run(problem, Context()).support
        best = min(combinations(range(8), 3), key=lambda support: problem.fit(support).value)
        assert problem.fit(found).value == pytest.approx(problem.fit(best).value, rel=1e-9)


@pytest.mark.parametrize("loss", ["huber", "logistic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_model_has_the_slopes_and_bends_of_the_objective(loss, intercept):
    problem = problem_of(loss, d=4, k=2, intercept=intercept)
    rng = np.random.default_rng(3)
    coef = 0.3 * rng.normal(size=4)
    rows = Rows(problem.objective)
    model = second_order_model(problem, rows, rows.model(coef, problem.objective))
    step = 1e-4
    for direction in rng.normal(size=(5, 4)):
        at = [problem.objective(coef + t * step * direction) for t in (-1, 0, 1)]
        of_model = [model.objective(coef + t * step * direction) for t in (-1, 0, 1)]
        assert at[2] - at[0] == pytest.approx(of_model[2] - of_model[0], rel=1e-4, abs=1e-7)
    if loss == "logistic":  # the bends of Huber loss jump
        for direction in rng.normal(size=(5, 4)):
            at = [problem.objective(coef + t * 1e-2 * direction) for t in (-1, 0, 1)]
            of_model = [model.objective(coef + t * 1e-2 * direction) for t in (-1, 0, 1)]
            assert at[2] + at[0] - 2 * at[1] == pytest.approx(of_model[2] + of_model[0] - 2 * of_model[1], rel=1e-2)


def test_demands_are_met():
    problem = problem_of("logistic", force_in=(7,), force_out=(0,))
    support = NewtonSwap().run(problem, Context()).support
    names = {fit.support for fit, _ in starting_models(problem, ("newton-swap",), problem.fit(()), Context())}
    assert all(7 in found and 0 not in found for found in names)
    assert len(support) <= 3


def test_what_it_does_not_serve_is_refused():
    with pytest.raises(UnsupportedError, match="at most, but there are 2001"):
        NewtonSwap().run(problem_of("logistic", n=3, d=2001), Context())
    with pytest.raises(InputError, match="max_steps"):
        NewtonSwap(max_steps=0)


def test_searches_begin_with_it_and_go_on_where_it_does_not_do(monkeypatch):
    def found(problem, heuristics=AUTO):
        tried = []
        for name in OTHER_LOSSES.begin:
            kind = type(registry.load("heuristics", name)())

            def noted(self, *args, run=kind.run):
                tried.append(self.name)
                return run(self, *args)

            monkeypatch.setattr(kind, "run", noted)
        list(starting_models(problem, heuristics, problem.fit(()), Context()))
        monkeypatch.undo()
        return [name for name in tried if name in ("newton-swap", "omp")]  # the others it uses itself

    assert OTHER_LOSSES.begin[0] == "newton-swap"
    assert found(problem_of("logistic", n=2000)) == ["newton-swap"], "next to nothing is lost by leaving out columns"
    assert found(problem_of("quadratic")) == [], "it has a portfolio of its own"
    noisy = Problem(
        np.random.default_rng(0).normal(size=(60, 30)), np.repeat([1.0, -1.0], 30), 3, loss="logistic", lam=0.1
    )
    assert found(noisy) == ["newton-swap", "omp"]
    assert found(problem_of("logistic"), ("omp",)) == ["omp"]
    monkeypatch.setattr("exactsel.start.portfolio.MANY_ENTRIES", 1000)
    monkeypatch.setattr("exactsel.start.portfolio.ROWS_PER_COLUMN", 2)
    assert first_is_enough(noisy, 1e9)
    list(starting_models(noisy, (), noisy.fit(()), Context()))
