"""Problems outside the domain of FORMAT.md, each with what the refusal speaks of, and files about them."""

from __future__ import annotations

import math
import struct

from hand_written import CLOSE, Case, problem_hash, written

NAN, INF, TINY = math.nan, math.inf, 5e-324


def _entry(value):
    """One entry of A changed."""
    return lambda case: {"A": [[value, *case.A[0][1:]], *case.A[1:]]}


def _column(value):
    """The first column of A changed."""
    return lambda case: {"A": [[value, *row[1:]] for row in case.A]}


def _target(value):
    return lambda case: {"y": [value, *case.y[1:]]}


def _weight(value):
    return lambda case: {"weights": [value] + [1.0] * (len(case.y) - 1)}


def _is(**changes):
    return lambda case: changes


ANY = {
    "weights": [
        *(_weight(v) for v in (-1.0, NAN, INF, 1e300, 1e31, 1e-31, TINY, None, "1", True)),
        lambda case: {"weights": [0.0] * len(case.y)}, lambda case: {"weights": [1.0] * (len(case.y) + 1)},
        _is(weights=1.0), _is(weights="1"), _is(weights={}), _is(weights=[]),
    ],
    "lam": [_is(lam=v) for v in (-1.0, -TINY, NAN, INF, -INF, TINY, 9e-61, 1.1e60, 1e300, None, "1", True, 1j)],
    "A|column": [
        *(_entry(v) for v in (NAN, INF, -INF, 1e200, -1.1e60, None, "1", True, 2**53 + 1, 10**400, [1.0])),
        *(_column(v) for v in (TINY, 1e-300, -9e-61)),
        lambda case: {"A": [case.A[0][1:], *case.A[1:]]}, lambda case: {"A": [[] for _ in case.A]},
        _is(A=[]), _is(A=None), _is(A="A"), _is(A=[1.0]), _is(A=[None]), _is(A={}),
    ],
    "y": [
        *(_target(v) for v in (NAN, INF, 1e200, None, "1", True)), lambda case: {"y": [1e-162] * len(case.y)},
        lambda case: {"y": case.y[1:]}, _is(y=None), _is(y=1.0), _is(y=[]),
    ],
    "k": [_is(k=v) for v in (-1, 10, 1.0, True, None, "1", NAN, 10**400)],
    "loss": [_is(loss=v) for v in ("hinge", None, 3, "Quadratic", [])],
    "forced|must_have|k is": [
        _is(must_have=v) for v in ([0, 1, 2], [9], [-1], [0, 0], ["0"], [0.0], [True], None, "0", 0)
    ] + [_is(must_have=[0], must_not=[0])],
    "must_not": [_is(must_not=v) for v in ([9], [-1], [1, 1], ["x"], None)],
    "group": [
        _is(groups=v) for v in (
            [[0], [1]], [[0, 1], [1, 2]], [[0, 1, 2], []], [[1, 2], [0]], [[2, 1], [0]], [[0, 1, 2, 3]], [0, 1, 2],
            None, "012", [["0", 1, 2]], [[0, 1], [2], [True]],
        )
    ],
    "intercept": [_is(level=v) for v in (1, 0, "yes", None, [])],
    "scale": [_is(scale=v) for v in (1, "no", None)],
}  # fmt: skip

HUBER = {"delta": [_is(delta=v) for v in (0.0, -1.0, NAN, INF, TINY, 1e300, None, "1", True)], "lam": [_is(lam=0.0)]}

LOGISTIC = {"y": [_target(v) for v in (0.0, 2.0, -0.5, NAN)], "lam": [_is(lam=0.0)]}

SELECTION = {
    "column subset": [
        lambda case: {"weights": [1.0] * len(case.y)}, _is(level=True), _is(scale=True), _is(must_have=[0]),
        _is(must_not=[0]), _is(groups=[[0], [1], [2]]),
    ],
    "A|column": [*ANY["A|column"]],
    "k": [*ANY["k"]],
}  # fmt: skip

BY_LOSS = {"quadratic": ANY, "huber": ANY | HUBER, "logistic": ANY | LOGISTIC, "": SELECTION}


def forged(rng, loss):
    """Every forgery of one problem: the arguments of the check, a file that claims nothing, and the word expected."""
    n = rng.randint(3, 5)
    A = [[rng.gauss(0, 1) for _ in range(3)] for _ in range(n)]
    y = [float(rng.choice([-1, 1])) if loss == "logistic" else rng.gauss(0, 1) for _ in range(n)]
    case = Case(A, y, 2, loss, 1.0 if loss else 0.0)
    for word, changes in BY_LOSS[loss].items():
        for change in changes:
            other = case._replace(**change(case))
            file = written(case, [CLOSE], {}, 0.0, 1e300)
            for name in ("k", "loss"):
                file.header[name] = getattr(other, name)
            flags = {"weights": other.weights is not None, "intercept": other.level, "scale": other.scale}
            file.header.update({name: True if flag else None for name, flag in flags.items()})
            file.header["version"] = 2 if any(flags.values()) else 1
            try:
                file.header["problem_hash"] = problem_hash(other)
                data = file.data()
            except (TypeError, ValueError, OverflowError, LookupError, AttributeError, struct.error):
                data = written(case, [CLOSE], {}, 0.0, 1e300).data()
            yield other._asdict(), data, word
