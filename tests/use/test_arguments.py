"""Every named argument of the Python interface, given things it cannot be: one sentence, never Python's own error."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, GroupedProblem, Instance, Problem, boxed, certify, load, solve
from exactsel.errors import ExactselError, InputError
from exactsel.solving.settings import settings_of

RNG = np.random.default_rng(0)
A = RNG.integers(-4, 5, (12, 4)).astype(float)
Y = A @ [1.0, 0.0, 2.0, 0.0] + RNG.integers(-1, 2, 12)

ODD: dict[str, Any] = {
    "None": None, "object": object(), "text": "nonsense", "bytes": b"x", "list": [1], "list of None": [None],
    "dict": {}, "filled dict": {"a": 1}, "fraction": 1.5, "nan": float("nan"), "negative": -1, "True": True,
    "array": np.array([1.0, 2.0]), "ragged": [[1, 2], [3]], "huge": 10**400, "complex": 1j, "surrogate": "\ud800",
    "texts": np.array(["a", "b"]), "class": int, "set": {1, 2}, "range": range(3), "table": np.zeros((3, 3)),
    "ellipsis": ...,
}  # fmt: skip


def made(function: Callable[..., Any], **known: Any) -> Callable[[str], Callable[[Any], Any]]:
    """For the name of an argument the call with some value in its place."""
    return lambda name: lambda value: function(**{**known, name: value})


REGRESSION = {"A": A, "y": Y, "k": 2, "lam": 1.0}
FRAME = {"a": [1, 2, 3], "b": [2, 3, 1], "y": [3, 4, 1]}
OF_PROBLEM = [name for name in inspect.signature(Problem.__init__).parameters if name != "self"]
OF_PREPARED = ["intercept", "scale", "weights", "offset"]
OF_SOLVE = [name for name in inspect.signature(solve).parameters if name not in ("problem", "options")]


def _table() -> Any:
    return pytest.importorskip("pandas").DataFrame(FRAME)


DOORS: dict[str, tuple[Callable[[str], Callable[[Any], Any]], list[str]]] = {
    "Problem": (made(Problem, **REGRESSION), OF_PROBLEM),
    "Problem, Huber": (made(Problem, **REGRESSION | {"loss": "huber"}), ["delta"]),
    "Problem, hierarchy": (made(Problem, **REGRESSION, hierarchy={0: [1]}), ["hierarchy_kind", "per_group"]),
    "Problem, groups": (made(Problem, **REGRESSION, groups=["a", "a", "b", "b"]), ["per_group", "force_in", "k"]),
    "prepared": (made(Problem.prepared, **REGRESSION | {"intercept": True}), [*OF_PROBLEM, *OF_PREPARED]),
    "solve(X, y)": (made(solve, problem=A, y=Y, k=2, lam=1.0), [*OF_PROBLEM[3:], *OF_PREPARED]),
    "replace": (made(Problem(A, Y, 2, lam=1.0).replace), [*OF_PROBLEM[2:6], "force_in", "force_out", "feature_names"]),
    "Instance": (lambda name: lambda value: Instance(**{"A": A, "y": Y, "k": 2, "lam": 1.0, name: value}).problem(),
                 list(inspect.signature(Instance).parameters)),
    "Instance.problem": (made(Instance(A, Y, k=2, lam=1.0).problem),
                         [*sorted({*inspect.signature(Instance.problem).parameters} - {"self", "constraint"}),
                          "hierarchy", "hierarchy_kind", "not_both"]),
    "columns": (made(ColumnSubsetProblem, A=A, k=2), ["A", "k", "feature_names"]),
    "groups": (made(GroupedProblem, problem=Problem(A, Y, 2, lam=1.0)), ["groups"]),
    "boxed": (made(boxed, problem=Problem(A, Y, 2, lam=1.0)),
              ["nonnegative", "bounds", "max_coef", "equalities", "sum_to"]),
    "load": (lambda name: lambda value: load(**{"source": _table(), "k": 1, "lam": 1.0, name: value}),
             list(inspect.signature(load).parameters)),
    "solve": (made(solve, problem=Problem(A, Y, 2, lam=1.0)), ["problem", *OF_SOLVE, *settings_of()]),
    "certify": (made(certify, problem=Problem(A, Y, 2, lam=1.0)), ["candidate", "support", "coef"]),
}  # fmt: skip


def _refusal(call: Callable[[], Any]) -> str | None:
    """What a call says that refuses; any other error is passed on."""
    try:
        call()
    except ExactselError as error:
        return str(error)
    return None


CASES = [(door, name) for door, (_, names) in DOORS.items() for name in names]
HARMLESS = (
    "checkpoint", "trace", "proof", "failures", "missing", "feature_names", "hierarchy_kind", "decimal", "encoding",
    "workers", "scheduler",
)  # fmt: skip
"""Arguments that take anything a text or number can say, or mean nothing alone."""

CALLED = ("callback", "on_incumbent", "on_bound")
"""Arguments that are called: what they raise is theirs."""


@pytest.mark.parametrize(("door", "name"), CASES)
def test_one_sentence_for_what_it_cannot_be(door, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some odd things are names of files
    call = DOORS[door][0](name)
    refused = 0
    for word, value in ODD.items():
        if name in CALLED and callable(value):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = _refusal(lambda: call(value))  # noqa: B023
        if said is not None:
            refused += 1
            assert said.endswith("."), (word, said)
            assert "\n" not in said, (word, said)
    assert refused or name in HARMLESS


@pytest.mark.parametrize("loss", [None, 3, ["quadratic"], np.array(["huber"]), int])
def test_the_sentence_about_the_loss_says_what_to_give(loss):
    for make in (Problem, Problem.prepared):
        with pytest.raises(InputError, match=r"cannot be used as a loss: .*; give the name of a loss, such as 'quad"):
            make(A, Y, 2, loss=loss, lam=1.0)


def test_a_single_name_or_number_is_a_list_of_one():
    named = {"feature_names": ["long name", "b", "c", "d"], "lam": 1.0}
    assert Problem(A, Y, 2, force_in="long name", **named).force_in == (0,)
    assert Problem(A, Y, 2, force_out=2, **named).force_out == (2,)


def _estimators() -> list[tuple[str, Callable[..., Any], Any]]:
    sklearn = pytest.importorskip("exactsel.sklearn")
    return [
        ("regressor", lambda **more: sklearn.BestSubsetRegressor(**{"k": 2, **more}), Y),
        ("classifier", lambda **more: sklearn.BestSubsetClassifier(**{"k": 2, **more}), (Y > 0).astype(int)),
        ("selector", lambda **more: sklearn.BestSubsetSelector(**{"k": 2, **more}), Y),
        ("cross-validation", lambda **more: sklearn.BestSubsetCV(**{"ks": [1], "cv": 2, **more}), Y),
    ]


THEIRS = ("class_weight",)
"""Checked by scikit-learn, in its words."""


@pytest.mark.parametrize("which", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2, 3))])
def test_estimators(which):
    kind, make, target = _estimators()[which]
    for name in make().get_params():
        for word, value in ODD.items():
            if name in THEIRS or (name == "cv" and word != "list"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = _refusal(lambda: make(**{name: value}).fit(A, target))  # noqa: B023
            assert said is None or said.endswith("."), (kind, name, word)
