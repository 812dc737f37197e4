"""Forged problems: archives that hold what no problem may hold, each with a proof made for it that claims too much.

The hash in the proof is that of the forged problem, so that nothing but the problem or the claim can be the reason for
a rejection. Whatever a checker makes of it, it must not accept it, and must not raise.
"""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from exactsel_certificates import checking
from exactsel_certificates.container import CLOSE, EIGENVALUES, FIRST_POINT, FIT, USE, Proof
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.given import GivenInstance

Checker = Callable[[list[str]], int]
"""A command line: takes its arguments, returns an exit code."""

ODD = (float("nan"), float("inf"), -float("inf"), -1.0, 5e-324, 1e-300, 1e300, -0.5)


@dataclass(frozen=True)
class Forgery:
    """A problem in an archive, and the proof of a claim that does not hold."""

    name: str
    entries: dict[str, Any]
    data: bytes
    css: bool = False


def forgeries(seed: int) -> Iterator[Forgery]:
    """Forged problems about random data; equal seeds give equal problems."""
    rng = np.random.default_rng([88, seed])
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    A, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    labels = np.where(y > 0, 1.0, -1.0)
    level = np.full(n, float(rng.uniform(1.0, 9.0)))
    column = int(rng.integers(d))
    odd = float(rng.choice(ODD))
    spoiled, short = A.copy(), A.copy()
    spoiled[int(rng.integers(n)), column] = float(rng.choice([np.nan, np.inf, 1e200, -1e308]))
    short[:, column] = rng.choice([5e-324, 1e-200, -1e-162], n)
    weights = 10.0 ** rng.uniform(-3, 3, n)
    negative = np.where(np.arange(n) == rng.integers(n), -weights, weights)
    listed: list[tuple[str, dict[str, Any]]] = [
        ("intercept with quadratic loss", {"y": level, "intercept": 1}),
        ("weights with quadratic loss", {"weights": 1e-3 * weights / weights.max()}),
        ("negative weights", {"loss": "huber", "weights": negative}),
        ("no weights but zero", {"loss": "huber", "weights": np.zeros(n)}),
        ("weights beyond reason", {"loss": "huber", "y": np.full(n, 1.7e-162), "weights": np.full(n, 1e300)}),
        (f"lam {odd}", {"lam": odd}),
        (f"lam {odd} with huber loss", {"lam": odd, "loss": "huber"}),
        (f"delta {odd}", {"delta": odd, "loss": "huber"}),
        ("lam below zero with huber loss", {"lam": -1e-3, "loss": "huber"}),
        ("labels 0 and 1", {"loss": "logistic", "y": (labels > 0).astype(float)}),
        ("labels of any size", {"loss": "logistic", "y": 5.0 * labels}),
        ("A spoiled", {"A": spoiled}),
        ("a column near underflow", {"A": short, "lam": 0.0}),
        ("y near underflow", {"y": np.full(n, 1.7e-162)}),
        ("y beyond reason", {"y": y * 1e300}),
        ("k negative", {"k": -1}),
        ("k too large", {"k": d + 5}),
        ("k no whole number", {"k": 0.5}),
        ("shorter floats", {"A": A.astype(np.float32), "y": y.astype(np.float32)}),
        ("half floats", {"A": A.astype(np.float16), "y": y.astype(">f2")}),
        ("big end first", {"A": A.astype(">f8"), "y": y.astype(">f8")}),
        ("whole numbers", {"A": np.round(9 * A).astype(np.int32), "y": np.round(9 * y).astype(np.int64)}),
        ("yes and no", {"A": A > 0, "y": (y > 0).astype("u1")}),
        ("whole numbers beyond doubles", {"A": np.full((n, d), 2**53 + 1), "y": np.full(n, 2**53 + 1)}),
        ("complex numbers", {"A": A + 1j}),
        ("texts", {"A": A.astype("U12")}),
        ("long doubles", {"A": A.astype(np.longdouble)}),
        ("columns stored first", {"A": np.asfortranarray(A)}),
        ("a y of another length", {"y": np.append(y, 1.0)}),
        ("a loss nobody knows", {"loss": "cubic"}),
    ]
    base = {"A": A, "y": y, "k": 1, "loss": "quadratic", "lam": float(10.0 ** rng.uniform(-3, 1))}
    for name, changes in listed:
        entries = {**base, **changes}
        if entries["loss"] == "logistic" and "y" not in changes:
            entries["y"] = labels
        entries.setdefault("delta", 1.0)
        yield Forgery(name, entries, _claiming(rng, entries, False))
    for name, matrix in (("A spoiled", spoiled), ("a column near underflow", short * 1e-150), ("wholes", A > 0)):
        entries = {"A": matrix, "k": 1}
        yield Forgery(f"css: {name}", entries, _claiming(rng, entries, True), True)


def _claiming(rng: Any, entries: dict[str, Any], css: bool) -> bytes:
    """A proof whose lower bound is above what the empty model costs, with every witness there is."""
    from corrupted import as_bytes

    with np.errstate(all="ignore"), contextlib.suppress(ValueError):
        A = np.real(entries["A"]).astype(np.float64)
        y = np.zeros(len(A)) if css else np.asarray(entries["y"]).astype(np.float64)[: len(A)]
        n, d = A.shape
        k = int(max(0, min(entries["k"], d)))
        instance = _unchecked(entries, A, y, css)
        size = float(np.sum(A * A) if css else y @ y)
        lower = float(rng.choice([1.01, 10.0])) * size + 1e-290 if np.isfinite(size) else 1.0
        if entries.get("intercept"):
            lower = 0.4 * size / 2 / (1.0 + d)
        elif not css and entries.get("weights") is not None and entries["loss"] == "quadratic":
            lower = 0.45 * size
        witness = int(rng.choice([FIT, FIRST_POINT, FIRST_POINT + 1, EIGENVALUES]))
        point = float(rng.choice([0.0, 1e-3, 1e300])) * rng.standard_normal(d)
        proof = Proof(
            family="css" if css else "regression", loss="" if css else str(entries["loss"]), n=n, d=d, k=k, groups=None,
            problem_hash=checking.problem_hash(instance), lower=lower, upper=float(np.finfo(float).max),
            weights=not css and entries.get("weights") is not None, intercept=bool(entries.get("intercept")),
            scale=False, valid_for="", curvature=np.zeros(0), model_value=np.zeros(0), point_value=point,
            dual_value=-y * float(rng.choice([1.0, 0.5])), model_index=np.zeros(0, dtype=np.int32),
            point_size=np.array([d], dtype=np.int32), point_index=np.arange(d, dtype=np.int32),
            tree=np.array([8 * witness + USE, CLOSE], dtype=np.int32),
        )  # fmt: skip
        return bytes(as_bytes(proof))
    return b""


def _unchecked(entries: dict[str, Any], A: Any, y: Any, css: bool) -> Any:
    """An instance made without the checks of its class."""
    if css:
        return ColumnInstance(A, entries["k"])
    given = entries.get("intercept") or entries.get("weights") is not None
    instance = object.__new__(GivenInstance if given else Instance)
    values = {"force_in": (), "force_out": (), "groups": (), "weights": None, "intercept": False, **entries}
    for field in fields(Instance):
        if field.name in values:
            object.__setattr__(instance, field.name, values[field.name])
    object.__setattr__(instance, "A", A)
    object.__setattr__(instance, "y", y)
    return instance


def checkers() -> dict[str, Checker]:
    """The command lines of both checkers."""
    from exactsel_certificates.__main__ import main
    from exactsel_certificates.standalone.__main__ import main as standalone

    return {"main": main, "standalone": standalone}


def attempt(forgery: Forgery, folder: Path, check: Checker) -> str:
    """``rejected``, ``malformed`` or ``accepted``, or the exception that came out."""
    archive, file = folder / "forged.npz", folder / "forged.exsel"
    np.savez(archive, **forgery.entries)
    file.write_bytes(forgery.data)
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            code = check([str(file), str(archive), *(("--problem", "css") if forgery.css else ())])
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except Exception as error:
        return f"raised {type(error).__name__}"
    return {0: "accepted", 2: "malformed", 3: "rejected", 4: "too much"}.get(code, f"exit {code}")


def campaign(first: int, count: int, folder: Path, check: Checker) -> Counter[tuple[str, str]]:
    """So many forged problems, seed after seed; counts of (name, outcome)."""
    counts: Counter[tuple[str, str]] = Counter()
    seed = first
    while sum(counts.values()) < count:
        for forgery in forgeries(seed):
            counts[forgery.name, attempt(forgery, folder, check)] += 1
        seed += 1
    return counts
