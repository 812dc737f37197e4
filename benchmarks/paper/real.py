"""Section 4.2: real data, quadratic loss, over a range of permitted errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.folder import MissingData, read
from benchmarks.paper.mip import SCIP, MipRun, mip_run
from benchmarks.paper.runs import DEFAULT, FAITHFUL, Run, proposals, timed, warm_up
from benchmarks.paper.tables import AtLeast, Cell, Row, shown
from benchmarks.warming import warm
from exactsel.problem.regression import Problem

Table = tuple[NDArray[np.float64], NDArray[np.float64]]


def diabetes() -> Table:
    """The Diabetes data as scikit-learn has them, 10 columns."""
    try:
        from sklearn.datasets import load_diabetes
    except ImportError:
        raise MissingData("Diabetes is skipped: it comes with scikit-learn, which is not installed.") from None
    data = load_diabetes()
    return data.data, data.target


def table(name: str, folder: Path | None = None) -> Table:
    """Diabetes, Boston (housing.npz of the folder), or another data set of the folder."""
    if name == "diabetes":
        return diabetes()
    A, y = read("housing" if name == "boston" else name, folder)
    return A, y


def expanded(raw: Table, centred: bool) -> Table:
    """Columns, squares of those with more than two values, products of two; columns and y scaled to unit norm."""
    X, y = raw
    d = X.shape[1]
    squares = [X[:, j] ** 2 for j in range(d) if np.unique(X[:, j]).size > 2]
    products = [X[:, i] * X[:, j] for i, j in combinations(range(d), 2)]
    A = np.column_stack([X, *squares, *products])
    if centred:
        A, y = A - A.mean(axis=0), y - y.mean()
    return A / np.linalg.norm(A, axis=0), y / np.linalg.norm(y)


@dataclass(frozen=True)
class Real:
    """Parameters; ``centred`` makes of Diabetes the instance that exactsel ships."""

    data: str
    centred: bool
    ks: Sequence[int]
    lams: Sequence[float]
    epss: Sequence[float]
    limit: float
    folder: Path | None = None
    mip: Sequence[str] = ()
    """MIP solvers to run beside, of :data:`benchmarks.paper.mip.MIP` ..."""
    python: str = sys.executable
    """... and the interpreter that has them."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return f"{self.name}, quadratic loss, limit {self.limit:g} s"

    @property
    def name(self) -> str:
        """The data and how they were prepared."""
        return f"{self.data.capitalize()}{', centred' if self.centred else ''}"

    def rows(self) -> Iterator[Row]:
        """One row per k, lam and eps; :class:`MissingData` when there is nothing to run on."""
        A, y = expanded(table(self.data, self.folder), self.centred)
        warm_up(["quadratic"], [FAITHFUL, DEFAULT])
        for k, lam in product(self.ks, self.lams):
            yield from self._rows(Problem(A, y, k, lam=lam))

    def _rows(self, problem: Problem) -> Iterator[Row]:
        warm(problem, DEFAULT)
        pairs = [
            (timed(problem, FAITHFUL, limit=self.limit, eps=eps), timed(problem, DEFAULT, limit=self.limit, eps=eps))
            for eps in self.epss
        ]
        proposed = proposals(problem)
        inexact = {name: problem.fit(answer.support).value for name, answer in proposed.items()}
        upper = min(inexact.values())
        mip = {(eps, name): run for eps in self.epss for name, run in self._mip_runs(problem, eps, upper)}
        values = [run.value for pair in pairs for run in pair] + [run.value for run in mip.values()]
        best = min([*inexact.values(), *values])
        proven = any(run.solved for eps, pair in zip(self.epss, pairs, strict=True) if eps == 0.0 for run in pair)
        for eps, (faithful, default) in zip(self.epss, pairs, strict=True):
            yield {
                "n": problem.n,
                "d": problem.d,
                "k": problem.k,
                "lam": problem.lam,
                "eps": eps,
                **_cells("faithful", faithful, best, proven),
                **_cells("default", default, best, proven),
                **{
                    key: cell
                    for name in self.mip
                    for key, cell in _mip_cells(name, mip[eps, name], best, proven).items()
                },
                "faithful s, total": faithful.seconds,
                "default s, same instances": default.seconds,
                **{f"{name} error": _error(value, best, proven) for name, value in inexact.items()},
                **{f"{name}: seconds": answer.seconds for name, answer in proposed.items()},
            }

    def _mip_runs(self, problem: Problem, eps: float, upper: float) -> Iterator[tuple[str, MipRun]]:
        """SCIP where Gurobi's free licence ends, or where there is no Gurobi."""
        served = False
        for name in self.mip:
            run = MipRun(refused="–")
            if not (name == SCIP and served):
                run = mip_run(problem, name, self.python, eps=eps, limit=self.limit, upper=upper)
            served = served or not run.refused
            yield name, run


def _cells(mode: str, run: Run, best: float, proven: bool) -> Row:
    return {
        f"{mode}: calls": f"{'' if run.solved else '≥ '}{run.calls:,}",
        f"{mode}: seconds": f"{'' if run.solved else '≥ '}{shown(run.seconds)}",
        f"{mode}: error": _error(run.value, best, proven),
    }


def _mip_cells(name: str, run: MipRun, best: float, proven: bool) -> Row:
    if run.refused:
        return {f"{name}: nodes": "–", f"{name}: seconds": run.refused, f"{name}: error": "–"}
    mark = "" if run.solved else "≥ "
    return {
        f"{name}: nodes": f"{mark}{run.nodes:,}",
        f"{name}: seconds": f"{mark}{shown(run.seconds)}",
        f"{name}: error": _error(run.value, best, proven) if np.isfinite(run.value) else "–",
    }


def _error(value: float, best: float, proven: bool) -> Cell:
    """The objective error; without a proven optimum, only the distance to the best model seen."""
    difference = max(0.0, value - best) if value - best > 1e-10 else 0.0
    return difference if proven else AtLeast(difference)
