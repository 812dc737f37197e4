"""Hard thresholding, in the primal and in the dual."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from instances_for_heuristics import each_loss, make_problem
from loss_sums import loss_conjugate

from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.rows import loss_gradient
from exactsel.problem.regression import Problem
from exactsel_heuristics import (
    Context,
    DualIterativeHardThresholding,
    HardThresholdingPursuit,
)
from exactsel_heuristics._scoring import largest
from exactsel_heuristics.dual_iht import _ascend, _DataAscent, _GramAscent


def correlated_problem():
    """Equally correlated columns, on which the largest correlations with y mislead; and the planted support."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 20)) + rng.standard_normal((60, 1))
    planted = tuple(sorted(rng.choice(20, 4, replace=False).tolist()))
    y = A[:, planted] @ np.array([1.0, -1.0, 1.0, 1.0]) + 0.1 * rng.standard_normal(60)
    problem = Problem(A, y, 4, lam=1.0)
    assert tuple(largest(np.abs(A.T @ y), 4).tolist()) != planted
    return problem, planted


def test_htp_lengthens_its_steps_on_correlated_columns():
    problem, planted = correlated_problem()
    assert HardThresholdingPursuit(lengthen=np.inf).run(problem, Context()).support != planted
    assert HardThresholdingPursuit().run(problem, Context()).support == planted


def test_dual_iht_moves_on_from_the_largest_correlations():
    problem, planted = correlated_problem()
    assert DualIterativeHardThresholding(max_steps=1).run(problem, Context()).support != planted
    assert DualIterativeHardThresholding().run(problem, Context()).support == planted


@each_loss
def test_dual_iht_climbs_to_the_primal_value_where_nothing_is_cut_off(loss):
    problem = make_problem(0, 20, 4, 4, loss, lam=5.0)
    beta = np.zeros(problem.n)
    loss_gradient(problem.loss, beta.copy(), problem.y, beta)
    for t in range(3000):
        step = problem.loss.smoothness / (1.0 + t + problem.loss.smoothness * problem.spectral_norm_squared / 5.0)
        _ascend(problem.loss, beta, problem.AT.T @ (problem.AT @ beta) / -5.0, step, problem.y)
    dual = -loss_conjugate(problem.loss, beta, problem.y) - np.sum((problem.AT @ beta) ** 2) / 10.0
    best = problem.fit(range(4)).value
    assert dual <= best + 1e-9
    assert dual == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("k", [0, 1, 3, 12])
def test_dual_iht_takes_the_same_steps_on_the_gram_matrix(k):
    """The slow twin: beta itself, from the data, one step at a time."""
    problem = make_problem(2, 20, 12, k, "quadratic", lam=0.5, awkward=False)
    slow, fast = _DataAscent(problem), _GramAscent(problem)
    for begin, end in ((0, 1), (1, 7), (7, 40)):
        assert slow.advance(begin, end, 30.0, Context()) == fast.advance(begin, end, 30.0, Context()) == end
        assert fast.correlation == pytest.approx(slow.correlation, rel=1e-9, abs=1e-12)
    assert fast.advance(40, 50, 30.0, Context(should_stop=lambda: True)) == 40


@each_loss
def test_htp_with_lengthening_steps_is_no_worse(loss):
    for seed in range(5):
        problem = make_problem(seed, 40, 12, 4, loss, awkward=False)
        short, long = (HardThresholdingPursuit(lengthen=f).run(problem, Context()).support for f in (np.inf, 2.0))
        assert problem.fit(long).value <= problem.fit(short).value


def test_htp_refuses_a_step_that_does_not_grow():
    with pytest.raises(InputError, match="give a factor above 1"):
        HardThresholdingPursuit(lengthen=1.0)


def test_dual_iht_refuses_a_loss_without_a_conjugate():
    class Half(NamedTuple):
        """A loss of someone else, with the primal functions only."""

        name, smoothness, infimum = "half", 1.0, 0.0
        point_value = point_derivative = point_curvature = staticmethod(lambda loss, z, y: 0.0)
        point_majorizer = point_prox = point_value

        def check_target(self, y):
            pass

        def check_parameters(self):
            pass

    problem = Problem(np.eye(3), np.ones(3), 1, loss=Half(), lam=1.0)
    with pytest.raises(UnsupportedError, match="half loss lacks point_conjugate_derivative and point_project"):
        DualIterativeHardThresholding().run(problem, Context())
