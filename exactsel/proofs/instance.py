"""The problem in the form the checker of proofs takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from exactsel.errors import UnsupportedError
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.quadratic import Quadratic
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.regression import Problem
from exactsel_certificates.checking import AnyInstance
from exactsel_certificates.columns import ColumnInstance
from exactsel_certificates.formula import Instance
from exactsel_certificates.given import GivenInstance

CHECKABLE: tuple[type, ...] = (Quadratic, Huber, Logistic)
"""Losses the checker knows."""


def instance_of(problem: Any) -> AnyInstance:
    """The problem, with the data as they were given; :class:`UnsupportedError` where the checker cannot know it."""
    if isinstance(problem, ColumnSubsetProblem):
        return ColumnInstance(problem.A, problem.k)
    inner = problem.inner if isinstance(problem, GroupedProblem) else problem
    if not isinstance(inner, Problem) or type(inner.loss) not in CHECKABLE:
        name = getattr(getattr(inner, "loss", None), "name", type(problem).__name__)
        raise UnsupportedError(
            f"a proof file cannot speak of '{name}', which its checker does not know; leave the proof out, or use "
            f"quadratic, huber or logistic loss."
        )
    chosen: dict[str, Any] = {
        "k": problem.k, "loss": inner.loss.name, "lam": inner.lam, "delta": inner.loss_parameters.get("delta", np.inf),
        "must_have": problem.must_have, "must_not": problem.must_not,
        "groups": problem.groups if isinstance(problem, GroupedProblem) else (),
    }  # fmt: skip
    made = inner.preparation
    if made is None:
        return Instance(inner.A, inner.y, **chosen)
    return GivenInstance(made.AT.T, made.y, **chosen, weights=made.weights, intercept=made.centred, scale=made.scaled)
