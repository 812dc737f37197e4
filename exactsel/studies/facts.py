"""The description of an instance as plain data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactsel.data.instance import Instance
from exactsel.errors import InputError
from exactsel.losses.base import CLASSES, Loss
from exactsel.problem.frames import Column
from exactsel.problem.interface import SubsetProblem
from exactsel.problem.objective import ROWS_AT_ONCE
from exactsel.problem.reduction import Reduction
from exactsel.problem.regression import Problem
from exactsel.solving.choose import company_of
from exactsel.solving.settings import Settings
from exactsel.solving.small import begun_without_compiler
from exactsel.solving.solver import Search
from exactsel.to_plain import finite, log10_choices
from exactsel.types import FloatArray
from exactsel_mapped import is_kept


def instance_facts(
    instance: Instance, family: str = "regression", *, k: int | None = None, loss: str | Loss | None = None,
    lam: float | None = None, delta: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Sizes, parameters and what makes an instance hard; usable also for a file without k or lam."""
    named = {"k": k, "loss": loss, "lam": lam, "delta": delta}
    parameters: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    k = instance.k if k is None else k
    if family == "css":
        columns = instance.columns_problem(k=1 if k is None else k)
        return {
            "problem": family, "n": columns.n, "d": columns.d, "k": None if k is None else columns.k,
            **_choice_facts(columns, k), **_matrix_facts(columns),
            "squared_norm": columns.null_objective,
            "best_rank_k_error": None if k is None else columns.objective.best_rank_error(columns.k),
            "feature_names": columns.feature_names is not None,
            "problem_hash": None if k is None else columns.hash,
        }  # fmt: skip
    # k and lam may be absent from a file that is only to be shown; any value lets the data be checked.
    stand_in: dict[str, Any] = {"k": 1 if k is None else k}
    if parameters.get("lam", instance.lam) is None:
        stand_in["lam"] = 1.0
    problem = instance.problem(**{**parameters, **stand_in})
    return {
        "problem": family, "n": problem.n, "d": problem.d, "k": None if k is None else problem.k,
        "loss": problem.loss.name, **problem.loss_parameters, "lam": parameters.get("lam", instance.lam),
        **_choice_facts(problem, k), **_matrix_facts(problem),
        **(_target_facts(problem) if instance.reduction is None else _facts_of_all_rows(instance.reduction, problem)),
        "feature_names": problem.feature_names is not None,
        "problem_hash": _hash(problem, instance, parameters),
    }  # fmt: skip


def table_facts(columns: Sequence[Column]) -> dict[str, Any]:
    """What is known of a table before its target is named."""
    held = [{"name": column.name, "holds": column.kind, "missing": column.missing} for column in columns]
    return {
        "problem": "regression", "n": max(map(_rows, columns), default=0), "columns": held,
        "missing": sum(column.missing for column in columns), "target": None,
    }  # fmt: skip


def _rows(column: Column) -> int:
    """How many rows a column has, as far as its entries say so."""
    values = column.partial if column.values is None else column.values
    return len(column.texts) + column.missing if values is None else len(values)


def problem_facts(problem: SubsetProblem) -> dict[str, Any]:
    """What makes it this problem, and how many groups there are to choose from where there are any; it replaces what
    is said of the instance alone.
    """
    facts = {**problem.objective.loss_parameters, "problem_hash": problem.hash}
    if not problem.units.grouped:
        return facts
    largest = max(len(columns) for columns in problem.units.groups)
    choice = _choice_facts(problem, problem.k)
    return {"groups": problem.d, "largest_group": largest, "k": problem.k, **choice, **facts}


def _choice_facts(problem: SubsetProblem, k: int | None) -> dict[str, Any]:
    """How many supports there are."""
    if k is None:
        return {"supports": None, "log10_supports": None}
    digits = log10_choices(problem.d, problem.k)
    return {"supports": None if digits >= 300 else math.comb(problem.d, problem.k), "log10_supports": digits}


def _target_facts(problem: Problem) -> dict[str, Any]:
    """What the target is like: how many rows of each class, or its range."""
    y = problem.target
    if problem.loss.name in CLASSES:
        return {"rows_plus": int(np.count_nonzero(y > 0)), "rows_minus": int(np.count_nonzero(y < 0))}
    return {"target_min": float(y.min()), "target_max": float(y.max()), "target_values": int(np.unique(y).size)}


def _facts_of_all_rows(reduction: Reduction, problem: Problem) -> dict[str, Any]:
    """What is known of the rows that those of the problem stand for, and how far these may be off."""
    size = float(np.linalg.norm(problem.y))
    return {
        "all_rows": reduction.rows, "all_weights": reduction.weight, "intercept": reduction.intercept,
        "row_error": reduction.row_error, "target_size": size,
        "target_mean": None if reduction.means is None else float(reduction.means[-1]),
    }  # fmt: skip


@begun_without_compiler
def root_facts(problem: SubsetProblem, seconds: float = 5.0) -> dict[str, Any]:
    """How hard the problem looks: the gap that starting models and the root's bound leave, and what bounds it."""
    search = Search(problem, Settings(node_limit=1, time_limit=seconds, subtrees=False), signals=())
    result = search.run()
    name, curvature = result.settings["bound"], None if search.bound is None else search.bound.curvature
    ridge = result.problem["lam"] if company_of(name).ridge else None
    return {
        "root_upper": finite(result.upper), "root_lower": finite(result.lower), "root_gap": finite(result.gap),
        "root_found_by": result.source, "bound": name,
        "curvature_median": ridge if curvature is None else float(np.median(curvature)),
        "root_seconds": result.time,
    }  # fmt: skip


def _matrix_facts(problem: SubsetProblem) -> dict[str, Any]:
    """What the columns are like."""
    A = (problem.objective.before or problem.objective).A
    norms = np.sqrt(np.einsum("ij,ij->j", A, A))
    spread = norms[norms > 0]
    values = np.linalg.svd(_with_the_same_values(A), compute_uv=False)
    rank = int(np.count_nonzero(values > values[0] * max(A.shape) * np.finfo(np.float64).eps))
    return {
        "rank": rank,
        "condition": float(values[0] / values[rank - 1]) if rank else None,
        "constant_columns": int(np.count_nonzero(np.ptp(A, axis=0) == 0)),
        "duplicate_columns": problem.d - _distinct(A.T),
        "column_norms_min": float(spread.min()) if spread.size else 0.0,
        "column_norms_max": float(norms.max()),
        "largest_correlation": _largest_correlation(A, norms),
    }


def _with_the_same_values(A: FloatArray) -> FloatArray:
    """A matrix with the singular values of A: A, or where that is to stay in its file a triangle."""
    if not is_kept(A) or len(A) <= A.shape[1]:
        return A
    rows = range(0, len(A), ROWS_AT_ONCE)
    parts = [np.linalg.qr(A[first : first + ROWS_AT_ONCE], mode="r") for first in rows]
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"), dtype=np.float64)


def _distinct(columns: FloatArray) -> int:
    """How many rows differ, by digests: sorting them takes minutes where many are equal. Adding 0 makes -0 to 0."""
    return len({hashlib.sha256((column + 0.0).tobytes()).digest() for column in columns})


def _largest_correlation(A: FloatArray, norms: FloatArray) -> float | None:
    """Largest absolute cosine between two different columns; None for many columns."""
    if not 2 <= A.shape[1] <= 3000:
        return None
    scale = np.where(norms > 0, norms, 1.0)
    cosines = np.abs((A.T @ A) / np.outer(scale, scale))
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())


def _hash(problem: Problem, instance: Instance, parameters: dict[str, Any]) -> str | None:
    try:
        return instance.problem(**parameters).hash
    except InputError:
        return None
