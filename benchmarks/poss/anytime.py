"""Figure 2: R² of POSS over its running time, beside forward regression, and how soon it is better."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.curves import Curves, landmarks
from benchmarks.paper.tables import Row
from benchmarks.poss.data import Data, whole
from benchmarks.poss.methods import methods
from benchmarks.poss.published import share
from benchmarks.poss.table2 import Certified, certify, training_r2, warm_up
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray
from exactsel_heuristics.base import Context

NOTHING = "–"


@dataclass(frozen=True)
class Race:
    """POSS against FR on all rows of a data set, without a split, as the paper does it."""

    data: str
    problem: Problem
    forward: float
    """Training R² of FR."""

    curves: Curves
    certified: Certified | None

    @property
    def unit(self) -> int:
        """Evaluations in k d, the time of FR and the unit of the figure's axis."""
        return self.problem.k * self.problem.d

    def r2(self, marks: float) -> FloatArray:
        """Training R² of every run after so many times k d evaluations, (runs,)."""
        return np.array([training_r2(self.problem, value) for value in self.curves.at(marks * self.unit)])

    @property
    def passing(self) -> float:
        """When the mean of the runs is better than FR, in units of k d evaluations; nan where it never is."""
        return self.curves.passing((1.0 - self.forward) * self.nothing) / self.unit

    @property
    def nothing(self) -> float:
        """The objective of no column at all."""
        return 0.5 * float(self.problem.y @ self.problem.y)


def race(data: Data, k: int, runs: int, seed: int, time_limit: float) -> Race:
    """Run POSS from ``runs`` seeds and FR once; solve from the best model for ``time_limit`` seconds if that is > 0."""
    A, y = whole(data)
    problem = Problem(A, y, min(k, A.shape[1]), lam=0.0)
    known = methods()
    forward = problem.fit(known["FR"].run(problem, Context()).support)
    proposals = [known["POSS"].run(problem, Context(seed=seed + number)) for number in range(runs)]
    end = max(proposal.evaluations for proposal in proposals)
    curves = Curves.of([proposal.curve for proposal in proposals], end, 0.5 * float(y @ y))
    best = min(proposals, key=lambda proposal: problem.fit(proposal.support).value)
    if time_limit > 0.0:
        warm_up(problem)
    certified = certify(problem, best.support, time_limit) if time_limit > 0.0 else None
    return Race(data.name, problem, training_r2(problem, forward.value), curves, certified)


def curve_rows(raced: Race) -> Iterator[Row]:
    """The figure's curve at the landmarks."""
    for marks in landmarks(raced.problem.k):
        values = raced.r2(marks)
        yield {
            "data": raced.data,
            "k": raced.problem.k,
            "runs": len(values),
            "evaluations / kd": f"{marks:.4g}",
            "POSS R²": f"{values.mean():.4f}",
            "worst run": f"{values.min():.4f}",
            "best run": f"{values.max():.4f}",
            "FR R²": f"{raced.forward:.4f}",
        }


def summary_row(raced: Race) -> Row:
    """When POSS is better than FR, beside what the paper says, and what is proven of its end."""
    final, printed = raced.r2(landmarks(raced.problem.k)[-1]), share(raced.data)
    passed, certified = raced.passing, raced.certified
    theory = landmarks(raced.problem.k)[-1]
    return {
        "data": f"{raced.data} ({raced.problem.n}, {raced.problem.d})",
        "k": raced.problem.k,
        "FR R²": f"{raced.forward:.4f}",
        "POSS R² at the end": f"{final.mean():.4f}",
        "mean better than FR after, in kd": f"{passed:.3g}" if np.isfinite(passed) else "never",
        "share of 2ek²d": f"{100.0 * passed / theory:.1f} %" if np.isfinite(passed) else NOTHING,
        "paper": NOTHING if printed is None else f"{100.0 * printed:.0f} %",
        "optimum": NOTHING if certified is None or not certified.proven else f"{certified.r2:.4f}",
        "no model above": NOTHING if certified is None else f"{certified.most:.4f}",
        "runs that end in the best model": _count(raced, final),
    }


def picture(raced: Race) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The lines of the figure, over evaluations / kd."""
    mean = np.array([training_r2(raced.problem, value) for value in raced.curves.values.mean(axis=0)])
    seen = raced.curves.counts >= 0.1 * raced.unit
    lines = {
        "POSS, mean": (raced.curves.counts[seen] / raced.unit, mean[seen]),
        "FR": (np.zeros(1), np.array([raced.forward])),
    }
    if raced.certified is not None:
        said = "optimum" if raced.certified.proven else "no model above"
        lines[said] = (np.zeros(1), np.array([raced.certified.most]))
    return lines


def _count(raced: Race, final: FloatArray) -> str:
    best = final.max() if raced.certified is None else max(float(final.max()), raced.certified.r2)
    return f"{int(np.sum(final >= best - 1e-9))}/{len(final)}"
