"""Fifty problems on which generators of incumbents are compared: shipped, generated, and those of real data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.incumbents.cases import standardised
from benchmarks.speed.instances import HARD_SEED, hardlogit
from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, load
from exactsel.data.generate import diabetes, hard, huber, quadratic
from exactsel.data.instance import Instance
from exactsel.problem.boxed import with_bounds
from exactsel.problem.interface import SubsetProblem
from exactsel.types import FloatArray

INSTANCES = Path(__file__).resolve().parents[2] / "instances"

Make = Callable[[], SubsetProblem]

REAL: dict[str, dict[str, tuple[int, ...]]] = {
    "sonar": {"quadratic": (8, 20), "logistic": (8,), "css": (20,)},
    "arrhythmia": {"quadratic": (20, 50, 100), "huber": (8, 20), "css": (10, 50)},
    "communities": {"quadratic": (20, 50), "huber": (8,), "css": (20,)},
    "colon-cancer": {"quadratic": (5, 20), "logistic": (5, 10), "squared_hinge": (5,), "css": (20,)},
    "riboflavin": {"quadratic": (5, 20), "huber": (5,)},
    "mushrooms": {"quadratic": (20,), "logistic": (8,), "css": (20,)},
    "triazines": {"quadratic": (20,)},
    "ionosphere": {"logistic": (8,), "squared_hinge": (10,)},
    "german.numer": {"logistic": (10,)},
    "dna": {"css": (50,)},
}
"""The sizes by real data set and loss."""


class Case(NamedTuple):
    """One problem, made when it is asked for."""

    name: str
    make: Make


def fifty(folder: Path | None, pattern: str = "*") -> Iterator[Case]:
    """All whose names match one of the patterns, separated by commas; those of real data where there is a folder."""
    made = dict(generated())
    if folder is not None:
        for data, losses in REAL.items():
            for loss, k in ((loss, k) for loss, sizes in losses.items() for k in sizes):
                made[f"{data}, {loss}, k = {k}"] = lambda data=data, loss=loss, k=k: real(folder, data, loss, k)
    for name, make in made.items():
        if any(fnmatch(name, each.strip()) for each in pattern.split(";")):
            yield Case(name, make)


def real(folder: Path, data: str, loss: str, k: int) -> SubsetProblem:
    """A problem on one of the data sets, standardised."""
    with np.load(folder / f"{data}.npz", allow_pickle=False) as arrays:
        A, y = arrays["A"].astype(np.float64), arrays["y"].astype(np.float64)
    return standardised(A[:, np.ptp(A, axis=0) > 0.0], y, loss, k)


def generated() -> Mapping[str, Make]:
    """What needs no data: long plateaus, many columns, large k, counts, constraints."""
    return {
        "hidden-six, k = 6": lambda: load(INSTANCES / "hidden-six.npz"),
        "overlap, k = 2": lambda: load(INSTANCES / "overlap.npz"),
        "hidden-span, css, k = 4": lambda: hidden_span(),
        "hidden parts, 2 x 4, k = 8": lambda: hidden_parts(2, 4, 60).problem(),
        "hidden parts, 3 x 3, k = 12": lambda: hidden_parts(3, 3, 100, spare=3).problem(),
        "correlated, d = 200, k = 20": lambda: hard(400, 200, 20, HARD_SEED, rho=0.7).problem(),
        "correlated, d = 1000, k = 50": lambda: hard(500, 1000, 50, HARD_SEED, rho=0.9).problem(),
        "correlated, d = 2000, k = 100": lambda: hard(1000, 2000, 100, HARD_SEED, rho=0.9).problem(),
        "planted, d = 3000, k = 20": lambda: quadratic(300, 3000, 20, 1, lam=0.1, rho=0.9).problem(),
        "diabetes64c, k = 20": lambda: diabetes(k=20, lam=0.001).problem(),
        "outliers, huber, d = 300, k = 20": lambda: huber(200, 300, 20, 1).problem(),
        "labels, logistic, d = 100, k = 10": lambda: hardlogit(200, 100, 10, 0.7).problem(),
        "counts, poisson, d = 80, k = 10": lambda: counts(),
        "clusters, css, d = 600, k = 30": lambda: ColumnSubsetProblem(clusters(200, 600, 40), 30),
        "spectra, css, d = 2000, k = 20": lambda: ColumnSubsetProblem(clusters(100, 2000, 60), 20),
        "nonnegative, d = 200, k = 20": lambda: with_bounds(
            correlated(400, 200, 20), np.zeros(200), np.full(200, np.inf)
        ),
        "groups of 3, d = 300, k = 10": lambda: GroupedProblem(correlated(400, 300, 10), [j // 3 for j in range(300)]),
        "hierarchy, diabetes64c, k = 12": hierarchy,
    }


def correlated(n: int, d: int, k: int) -> Problem:
    """The regression that constraints are laid on."""
    return hard(n, d, k, HARD_SEED, rho=0.7).problem()


def hierarchy() -> SubsetProblem:
    """Squares and products of the Diabetes data only beside what they are of."""
    instance = diabetes(k=12, lam=0.001)
    assert instance.feature_names is not None
    base = {name: j for j, name in enumerate(instance.feature_names[:10])}
    parents = {}
    for j, name in enumerate(instance.feature_names[10:], 10):
        parents[j] = sorted(
            {base[part] for part in name.replace("^2", "").replace("*", ":").split(":") if part in base}
        )
    return instance.problem(hierarchy={j: of for j, of in parents.items() if of})


def hidden_parts(sets: int, parts: int, hints: int, spare: int = 0, noise: float = 3.0) -> Instance:
    """As ``hidden-six``, several times: y is the sum of sets of columns of which each but one tells nothing of y."""
    width = sets * parts + hints
    e = np.eye(width)
    columns: list[FloatArray] = []
    for number in range(sets):
        signal, inner = e[number * parts], e[number * parts + 1 : (number + 1) * parts]
        columns += [noise * inner[0], *(noise * (b - a) for a, b in pairwise(inner))]
        columns.append(signal - noise * inner[-1])
    total = np.sum([e[number * parts] for number in range(sets)], axis=0)
    columns += [total + 2.0 * (1.0 + 0.02 * j) * e[sets * parts + j] for j in range(hints)]
    return Instance(np.column_stack(columns), 4.0 * total, sets * parts + spare, 0.01, "quadratic")


def counts(n: int = 300, d: int = 80, k: int = 10) -> Problem:
    """Counts with a logarithmic mean that many correlated columns share."""
    instance = hard(n, d, k, HARD_SEED, rho=0.7)
    rng = np.random.default_rng(HARD_SEED)
    A = instance.A / instance.A.std(axis=0)
    mean = A @ rng.normal(size=d) / d**0.5
    y = rng.poisson(np.exp(np.clip(mean, -3.0, 3.0))).astype(np.float64)
    problem: Problem = Problem.prepared(A, y, k, lam=1.0, loss="poisson", intercept=True)
    return problem


def clusters(n: int, d: int, rank: int) -> FloatArray:
    """Columns that are mixtures of a few directions with falling weight, and noise."""
    rng = np.random.default_rng(HARD_SEED)
    directions = rng.normal(size=(n, rank)) * np.arange(1, rank + 1) ** -0.5
    A = directions @ np.where(rng.random((rank, d)) < 0.1, rng.normal(size=(rank, d)), 0.0)
    A += 0.1 * rng.normal(size=(n, d))
    A -= A.mean(axis=0)
    return np.asarray(A / np.linalg.norm(A, axis=0))


def hidden_span() -> ColumnSubsetProblem:
    """The shipped instance of column subset selection."""
    problem = load(INSTANCES / "hidden-span.npz")
    assert isinstance(problem, Problem)
    return ColumnSubsetProblem(np.array(problem.A), problem.k)
