"""Probes of single functions of the checker, at inputs no honest proof has: for the battery of mutants.py.

Bounds of ordinary proofs leave room, so that a wrong allowance for rounding would not show. Here every allowance is
visible in a number.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

PACKAGE = "exactsel_certificates"


def loaded(name: str) -> Any:
    """A module of whichever version of the checker is loaded."""
    return importlib.import_module(f"{PACKAGE}.{name}")


def _instance(loss: str = "quadratic", scale: float = 1.0, lam: float = 0.3, n: int = 9, d: int = 6) -> Any:
    rng = np.random.default_rng(11)
    A = rng.standard_normal((n, d)) * scale
    y = rng.standard_normal(n) * (scale if loss != "logistic" else 1.0)
    y = np.sign(y) if loss == "logistic" else y
    return loaded("formula").Instance(A, y, 3, loss, lam, 0.5 * scale if loss == "huber" else np.inf)


def _states(d: int = 6) -> Any:
    return np.array(
        [[1] * d, [2, 2, *[1] * (d - 2)], [2, 0, *[1] * (d - 2)], [2, 2, 2, *[0] * (d - 3)]], dtype=np.uint8
    )


def numbers_of(value: Any) -> str:
    """Every digit of an array."""
    return repr(np.asarray(value).tolist())


def bounds(scale: float) -> str:
    """Points with every kind of curvature, on data of a scale where squares may vanish or overflow."""
    parts = []
    for loss in ("quadratic", "huber", "logistic"):
        instance = _instance(loss, scale, lam=0.3 * scale * scale)
        plain = loaded("rigorous").RigorousBounds(instance)
        W = np.random.default_rng(5).standard_normal((4, 6)) * np.array([[0.0], [1.0], [1e3], [1e-3]])
        which = np.arange(4)
        B = plain.gradients(W)
        B[1, :3] = [0.0, 1.0, -1.0]
        evaluated = [plain.at_duals(plain.projected(B))]
        if loss == "quadratic":
            evaluated += [plain.at_models(W, plain.ridge), plain.at_models(W, np.full(6, 0.9 * scale * scale))]
        parts += [[*map(numbers_of, e), numbers_of(plain.bounds(e, which, _states()))] for e in evaluated]
        parts.append([numbers_of(loaded("rigorous").model_objective(instance, w)) for w in W])
    return repr(parts)


def lengths() -> str:
    """Rows of zeros, of tiny and of huge numbers."""
    rows = np.array([[0.0, 0.0, 0.0], [1e-200, 2e-200, 0.0], [1e200, 1.0, -3e200], [np.inf, 0.0, 0.0], [3.0, 4.0, 0.0]])
    with np.errstate(all="ignore"):
        return numbers_of(loaded("rigorous").lengths(rows)) + repr([loaded("rigorous").gamma(m) for m in (0, 1, 100)])


def convex() -> str:
    """The largest multiple of a curvature, and the largest shift of one, that is still accepted."""
    found = []
    for n, d, lam in ((9, 6, 0.0), (9, 6, 0.5), (40, 3, 0.0), (6, 6, 1e-9)):
        instance = _instance(lam=lam, n=n, d=d)
        smallest = float(np.linalg.eigvalsh(instance.A.T @ instance.A)[0]) + lam
        for direction in (np.ones(d), np.arange(1.0, d + 1) / d):
            low, high = 0.0, 3.0 * d * smallest
            for _ in range(80):
                middle = 0.5 * (low + high)
                fine = middle > 0 and loaded("rigorous").leaves_convex(instance, middle * direction)
                low, high = (middle, high) if fine else (low, middle)
            found.append(low)
        bad = [np.full(d, -1.0), np.zeros(d), np.full(d, np.nan), np.full(d, 1e308)]
        found += [loaded("rigorous").leaves_convex(instance, D) for D in bad]
    return repr(found)


def semidefinite(scale: float, lam: float) -> str:
    """Levels found by bisection up to which counts, fits and splits hold, and what is in doubt near them."""
    instance = _instance(scale=scale, lam=lam * scale * scale)
    instance.A[:, 5] = instance.A[:, 4] + 1e-3 * scale * instance.A[:, 0]
    instance.A[:, 3] = -2.0 * instance.A[:, 1]
    plain, module = loaded("rigorous").RigorousBounds(instance), loaded("semidefinite")
    N = np.tril(np.random.default_rng(1).standard_normal((4, 4)), -1)
    split = module.Split(np.array([0, 1, 2, 4]), np.array([0.1, 0.2, 0.1, 0.3]) * scale, 0.02 * (N + N.T))
    c, parts = 0.5 * float(plain.y @ plain.y), []
    states = np.array([[2, 2, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [2, 1, 0, 0, 1, 0], [2, 0, 2, 0, 2, 1]], dtype=np.uint8)
    for k in (3,):
        for state in states:
            ways = {
                "counted": lambda at, state=state, k=k: at.counted(state[None], k)[0],
                "fits": lambda at, state=state: at.on_all(state[None] > 0)[0],
                "split": lambda at, state=state, k=k: at.split(state, k, split),
            }
            for name, holds in ways.items():
                low, high = 0.0, 1.0
                for _ in range(46):
                    middle = 0.5 * (low + high)
                    at = module.Semidefinite(plain, middle * c, 1e6, np.array([4, 2]))
                    low, high = (middle, high) if holds(at) else (low, middle)
                at = module.Semidefinite(plain, high * c, 1e6, np.array([4, 2]))
                parts.append((name, low, list(at.undecided(state, k)) if name == "counted" and at.usable else 0))
    at = module.Semidefinite(plain, 0.5 * c, 20.0, np.array([4, 2]))
    return repr([parts, at.counted(states, 4).tolist(), at.Q.tolist(), at.room(3), at.order.tolist(), at.size.tolist()])


def counts() -> str:
    """Counts at matrices with ties, and what is in doubt."""
    module, rng, parts = loaded("counting"), np.random.default_rng(2), []
    for m, r, s in ((1, 1, 0), (2, 2, 1), (4, 2, 0), (4, 3, 1), (5, 3, 2), (5, 4, 0), (3, 3, 1), (300, 2, 1)):
        G = rng.standard_normal((2, m, m + 3))
        for less in (0.0, 0.3, 0.9):
            M = G @ G.swapaxes(1, 2) / m - less * np.eye(m)
            M[1, 0, m - 1] = M[1, m - 1, 0] = np.sqrt(abs(M[1, 0, 0] * M[1, m - 1, m - 1]))
            F = 0.1 * rng.standard_normal((2, s, m))
            diagonal = np.diagonal(M, axis1=1, axis2=2) - np.sum(F * F, axis=1)
            for sound in (True, False):
                arguments = (np.array([True, sound]), M.copy(), F, F, diagonal, r)
                parts.append(module.all_hold(*arguments).tolist())
            parts.append(list(module.unproven(M[1] - F[1].T @ F[1], diagonal[1], r))[:200])
    return repr(parts)


def fits() -> str:
    """Fits on regions, some of dependent columns."""
    parts = []
    for lam in (0.0, 0.2):
        instance = _instance(lam=lam)
        instance.A[:, 3] = instance.A[:, 2]
        instance.A[:, 1] = 0.0
        plain = loaded("rigorous").RigorousBounds(instance)
        solver = loaded("fits").Fits(instance, plain)
        parts.append(numbers_of(solver.on_regions(_states(), 3)))
        parts.append(numbers_of(solver.scale))
    return repr(parts)


def exact() -> str:
    """Exact bounds, exactly, and roots."""
    parts: list[Any] = []
    module = loaded("exact")
    for loss in ("quadratic", "huber", "logistic"):
        instance = _instance(loss)
        bounds = module.ExactBounds(instance)
        w = np.array([0.5, 0.0, -1.25, 0.0, 1e-3, 3.0])
        for S, C in (([], range(6)), ([0, 1], [2, 3]), ([0, 1, 2], []), ([0], [1, 4, 5])):
            beta = instance.A @ w * 0.1 if loss != "logistic" else -instance.y * 0.25
            parts += [bounds.at_dual(S, list(C), v) for v in (module.scaled(beta), bounds.dual_vector(w))]
            if loss == "quadratic":
                x = [module.Fraction(v) for v in w]
                parts += [bounds.at_model(S, list(C), x, np.full(6, D)) for D in (0.3, 0.7)]
                parts += [bounds.for_bounded_models(S, list(C), x), bounds.gradient([0, 3], x).tolist()]
        parts += [bounds.objective(w), bounds.objective(np.zeros(6))]
    for value in (module.Fraction(2), module.Fraction(10**40, 3), module.Fraction(1, 10**40), module.Fraction(0)):
        parts += [
            module.root_above(value),
            module.root_below(value),
            module.float_below(value),
            module.float_above(value),
        ]
    parts += [module.float_below(module.Fraction(10) ** 400), module.float_below(-(module.Fraction(10) ** 400))]
    parts += [module.float_below(module.Fraction(1, 3)), module.float_above(module.Fraction(1, 3))]
    return repr(parts)


def selections() -> str:
    """RedundantColumns, single additions and directions of a matrix with near copies."""
    module, kind = loaded("selections"), loaded("formula").ColumnInstance
    rng = np.random.default_rng(8)
    A = rng.standard_normal((8, 4))
    A = np.column_stack([A, A[:, 0] + 1e-7 * A[:, 1], 3.0 * A[:, 1] + 1e-12 * A[:, 2], -2.0 * A[:, 3], 0.0 * A[:, 0]])
    parts: list[Any] = []
    for bounded in (False, True):
        for k in (1, 2, 3, 4):
            at = module.SelectionBounds(kind(A, k), bounded)
            for S, C in (
                ([], range(8)),
                ([0], [1, 2, 4]),
                ([0, 4], [1, 2, 3]),
                ([1, 5], [0, 2, 3]),
                ([3], [6, 7]),
                ([7], [1]),
            ):
                if len(S) <= k:
                    parts.append(at.bound(list(S), list(C)))
        parts.append((at.rounding, at.size, at.norms.tolist()))
    for error in (0.0, 1e-6, 0.5):
        span = module.verified_span(A[:, :4] / np.linalg.norm(A[:, :4], axis=0), error)
        parts.append((span.angle, span.residual(A).tolist()))
    parts.append(module.verified_span(np.eye(3)[:, [0, 0]], 0.0).angle)
    parts.append(module.verified_span(rng.standard_normal((2, 3)), 0.0).angle)
    parts.append(
        [module.selection_objective_above(kind(A, 4), chosen) for chosen in ([], [0], [0, 4, 5], [7], [1, 2, 3])]
    )
    return repr(parts)


def doubtful_eigenvalues() -> str:
    """The largest eigenvalue a span's factorisation still confirms, when told a wrong one."""
    module = loaded("selections")
    rng = np.random.default_rng(2)
    parts: list[Any] = []
    honest = np.linalg.eigvalsh
    for n, m in ((8, 3), (5, 5), (30, 2), (6, 1)):
        units = rng.standard_normal((n, m))
        units /= np.linalg.norm(units, axis=0)
        low, high = 0.5, 2.0
        try:
            for _ in range(60):
                middle = 0.5 * (low + high)
                np.linalg.eigvalsh = lambda M, factor=middle: honest(M) * factor / 0.9  # type: ignore[assignment,misc]
                fine = np.isfinite(module.verified_span(units, 0.0).angle)
                low, high = (middle, high) if fine else (low, middle)
        finally:
            np.linalg.eigvalsh = honest
        parts += [low, module.verified_span(units, 0.0).angle, module.verified_span(units, 1e-3).angle]
    return repr(parts)


def header() -> str:
    """The bytes of a header, and headers at the edges of what is allowed."""
    container = loaded("container")
    entries = {
        "family": "regression", "loss": "quadratic", "n": 2, "d": 2, "k": 1, "problem_hash": "", "valid_for": "",
        "lower": "0x0p+0", "upper": "0x1p+0",
    }  # fmt: skip
    arrays = {name: (types[0], 0) for name, types in container.ARRAYS.items()}
    parts: list[str] = []

    def attempt(data: bytes) -> None:
        try:
            parts.append(repr(container.parse_proof(data)))
        except container.MalformedError as error:
            parts.append(str(error))

    for changes in ({}, {"pad": "x"}, {"pad": "xx"}, {"n": 2**31 - 1}, {"n": 2**31}, {"n": 0}, {"d": -1}, {"k": True},
                    {"upper": 1.0}, {"upper": "inf"}, {"upper": "0x1p+9999"}, {"valid_for": "x"},
                    {"loss": 3}):  # fmt: skip
        data = container.header_bytes({**entries, **changes}, arrays)
        parts.append(data.hex())
        attempt(data)
    whole = json.loads(container.header_bytes(entries, arrays)[8:])
    whole["arrays"] = [[name, *described] for name, described in arrays.items()]
    first = (["curvature", "<f8", -1], ["curvature", "<f8", 1.0], ["curvature", "<f8"], ["curvature", "<f8", 10**9])
    lists = [{}, [], whole["arrays"][:-1], [["tree", "<i4", 0]] * 8, [["curvature", "<f8", "0"]] * 8]
    for listed in [*lists, *([entry, *whole["arrays"][1:]] for entry in first)]:
        text = json.dumps({**whole, "arrays": listed}).encode()
        attempt(len(text).to_bytes(8, "little") + text)
    for size in (65535, 65536, 65537):
        text = json.dumps(whole).encode()
        text += b" " * (size - len(text))
        attempt(size.to_bytes(8, "little") + text)
    for data in (b"", b"\0" * 7, b"\0" * 8, (2).to_bytes(8, "little") + b"{}", (3).to_bytes(8, "little") + b"{}"):
        attempt(data)
    return "".join(parts)


def arrays() -> str:
    """Arrays that break one rule each."""
    container = loaded("container")
    entries = {
        "family": "regression", "loss": "quadratic", "n": 2, "d": 3, "k": 1, "problem_hash": "", "valid_for": "",
        "lower": "0x0p+0", "upper": "0x1p+0",
    }  # fmt: skip
    good: dict[str, Any] = {
        "curvature": [1.0, 2.0, 3.0], "model_value": [1.0], "point_value": [1.0, 2.0, 3.0], "dual_value": [1.0, 2.0],
        "model_index": [2], "point_size": [1, 0, 2], "tree": [4], "point_index": [2, 0, 1],
    }  # fmt: skip
    changes = [
        {}, {"curvature": []}, {"curvature": [1.0]}, {"curvature": [1.0, 0.0, 1.0]}, {"curvature": [1.0, -1.0, 1.0]},
        {"model_index": [3]}, {"model_index": [-1]}, {"model_index": [0, 1]}, {"model_index": []},
        {"model_index": [1, 1], "model_value": [1.0, 1.0]}, {"model_index": [1, 0], "model_value": [1.0, 1.0]},
        {"dual_value": [1.0]}, {"dual_value": []}, {"point_size": [1, 2, 0]}, {"point_size": [2, 1]},
        {"point_size": [-1, 2, 2]}, {"point_size": [1, 2, 1]}, {"point_size": [3]}, {"point_size": []},
        {"point_index": [2, 1, 0]}, {"point_index": [2, 0, 3]}, {"point_index": [2, 0]}, {"point_value": [1.0, 2.0]},
        {"point_value": [1.0, np.nan, 2.0]}, {"dual_value": [np.inf, 1.0]}, {"point_size": [-1, 4]},
        {"point_size": [], "point_value": [], "point_index": []},
    ]  # fmt: skip
    parts = []
    for change in changes:
        whole = {**good, **change}
        types = {name: kinds[0] for name, kinds in container.ARRAYS.items()}
        stored = {name: np.array(whole.get(name, []), dtype=types[name]) for name in container.ARRAYS}
        data = container.header_bytes(entries, {name: (types[name], stored[name].size) for name in stored})
        try:
            parts.append(repr(container.parse_proof(data + b"".join(a.tobytes() for a in stored.values()))))
        except container.MalformedError as error:
            parts.append(str(error))
    return repr(parts)


PROBES: dict[str, Callable[[], str]] = {
    "lengths": lengths, "convex": convex, "fits": fits, "exact": exact, "selections": selections,
    "doubtful eigenvalues": doubtful_eigenvalues, "header": header, "arrays": arrays, "counts": counts,
}  # fmt: skip

for _scale in (1.0, 1e-80, 1e-158, 1e100, 1e160):
    PROBES[f"bounds at {_scale:g}"] = partial(bounds, _scale)
for _scale in (1.0, 1e-50, 1e50):
    for _lam in (0.0, 0.3):
        PROBES[f"semidefinite at {_scale:g}, {_lam:g}"] = partial(semidefinite, _scale, _lam)
