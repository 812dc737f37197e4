"""What an instance holds, as plain data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from exactsel.errors import InputError
from exactsel.instance import Instance
from exactsel.problem import Problem


def instance_facts(instance: Instance, **overrides: Any) -> dict[str, Any]:
    """Sizes, parameters and what makes an instance hard; usable also for a file without k or lam."""
    given = {name: value for name, value in overrides.items() if value is not None}
    k = given.get("k", instance.k)
    # k and lam may be absent from a file one only wants to look at; any value lets the data be checked.
    stand_in = {"k": 1 if k is None else k}
    if given.get("lam", instance.lam) is None:
        stand_in["lam"] = 1.0
    problem = instance.problem(**{**given, **stand_in})
    A = problem.A
    norms = np.linalg.norm(A, axis=0)
    spread = norms[norms > 0]
    return {
        "n": problem.n,
        "d": problem.d,
        "k": None if k is None else problem.k,
        "loss": problem.loss.name,
        **problem.loss_parameters,
        "lam": given.get("lam", instance.lam),
        "supports": None if k is None or log10_supports(problem) >= 300 else math.comb(problem.d, problem.k),
        "log10_supports": None if k is None else log10_supports(problem),
        "rank": int(np.linalg.matrix_rank(A)),
        "constant_columns": int(np.count_nonzero(np.ptp(A, axis=0) == 0)),
        "duplicate_columns": problem.d - len(np.unique(problem.AT, axis=0)),
        "column_norms_min": float(spread.min()) if spread.size else 0.0,
        "column_norms_max": float(norms.max()),
        "largest_correlation": _largest_correlation(problem),
        "feature_names": problem.feature_names is not None,
        "problem_hash": _hash(problem, instance, given),
    }


def log10_supports(problem: Problem) -> float:
    """The decimal logarithm of the number of supports of size k, which itself can be too large for a float."""
    d, k = problem.d, problem.k
    return (math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)) / math.log(10)


def _largest_correlation(problem: Problem) -> float | None:
    """Largest absolute cosine between two different columns; None for large d."""
    if problem.d > 3000 or problem.d < 2:
        return None
    scale = np.where(problem.norms > 0, problem.norms, 1.0)
    cosines = np.abs((problem.AT @ problem.A) / np.outer(scale, scale))
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())


def _hash(problem: Problem, instance: Instance, given: dict[str, Any]) -> str | None:
    try:
        return instance.problem(**given).hash
    except InputError:
        return None
