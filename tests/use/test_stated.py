"""The oracle of the command matrix."""

from __future__ import annotations

import numpy as np
import pytest
from stated import Stated


def test_the_oracle_knows_a_problem_by_heart() -> None:
    """Least squares on two columns, and the mean where there is no column."""
    A, y = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([3.0, 4.0, 6.0])
    stated = Stated(A, y, ("a", "b"), lam=0.0, intercept=False)
    assert stated.value(()) == pytest.approx(30.5)
    assert stated.value((0, 1)) == pytest.approx(18.0)
    assert Stated(A, y, ("a", "b")).value(()) == pytest.approx(0.5 * np.sum((y - y.mean()) ** 2))
    assert len(stated.sets(1)) == 3
