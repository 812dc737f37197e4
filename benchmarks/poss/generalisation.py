"""Figures 1, 3 and 4: R² on the training and the test half over k, without and with a ridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import spearmanr

from benchmarks.differences import p_text, paired
from benchmarks.paper.tables import Row
from benchmarks.poss.data import Data, Half, half
from benchmarks.poss.methods import NAMES, methods
from exactsel import solve
from exactsel.problem.fit import Fit
from exactsel.problem.model import prepared_coef
from exactsel.problem.regression import Problem
from exactsel_heuristics.base import Context

OPTIMUM = "OPT"
"""The model of an exact search, as the paper calls it."""

RIDGE = 0.9615
"""The paper's weight of |α|² beside the mean square of the residual."""


@dataclass
class Scores:
    """Of one method at one k: the training criterion and the test R², by split."""

    training: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)


@dataclass
class Compared:
    """The scores on one data set at one k, by method; ``criterion`` is ``R²`` (large is good) or ``RSS`` (small is)."""

    data: str
    k: int
    criterion: str
    scores: dict[str, Scores] = field(default_factory=dict)
    proven: int = 0
    """On so many splits the model called OPT is proven to be optimal on the training half."""


def compare(
    data: Data, k: int, splits: int, seed: int, ridge: float = 0.0, time_limit: float = 0.0,
    names: Sequence[str] = tuple(NAMES),
) -> Compared:  # fmt: skip
    """Run methods on random halves and refit each support exactly; search for the optimum where there is time for it.

    The paper's objective with a ridge is the mean square of the residual + ridge |α|². Times the number of rows n, it
    is ||y - Aα||² + n ridge |α|² = 2 P(α) with lam = n ridge; its value is therefore 2 P / n.
    """
    compared = Compared(data.name, k, "RSS" if ridge else "R²")
    for number in range(splits):
        part = half(data, seed, number)
        rows, best = part.y.size, (np.inf, ())
        problem = Problem(part.A, part.y, min(k, part.A.shape[1]), lam=rows * ridge)
        for name, method in methods().items():
            if name in names:
                fit = problem.fit(method.run(problem, Context(seed=number)).support)
                best = min(best, (fit.value, fit.support))
                _note(compared, name, problem, part, fit)
        if time_limit > 0.0:
            result = solve(problem, start=best[1], time_limit=time_limit, threads=1)
            if not result.reached and compared.proven == number:
                # The first that proves nothing may have met a kernel that was to be compiled.
                result = solve(problem, start=best[1], time_limit=time_limit, threads=1)
            compared.proven += result.reached
            _note(compared, OPTIMUM, problem, part, problem.fit(result.support))
    return compared


def _note(compared: Compared, name: str, problem: Problem, part: Half, fit: Fit) -> None:
    scores = compared.scores.setdefault(name, Scores())
    share = 2.0 * fit.value / float(part.y @ part.y)
    scores.training.append(2.0 * fit.value / part.y.size if compared.criterion == "RSS" else 1.0 - share)
    scores.test.append(part.test_r2(prepared_coef(problem, fit.coef)))


def method_rows(compared: Compared) -> Iterator[Row]:
    """One row per method, with the best of each column marked."""
    best_of = min if compared.criterion == "RSS" else max
    training = {name: float(np.mean(scores.training)) for name, scores in compared.scores.items()}
    test = {name: float(np.mean(scores.test)) for name, scores in compared.scores.items()}
    for name, scores in compared.scores.items():
        yield {
            "data": compared.data,
            "k": compared.k,
            "method": name,
            "splits": len(scores.test),
            f"training {compared.criterion}": _marked(training[name], best_of(training.values())),
            "test R²": _marked(test[name], max(test.values())),
            "training, Wilcoxon p": _against_poss(compared, name, "training"),
            "test, Wilcoxon p": _against_poss(compared, name, "test"),
            "proven optimal": f"{compared.proven}/{len(scores.test)}" if name == OPTIMUM else "–",
        }


def _against_poss(compared: Compared, name: str, what: str) -> str:
    """Whether POSS differs from a method on the same splits."""
    poss = compared.scores.get("POSS")
    if poss is None or name == "POSS":
        return "–"
    return p_text(paired(getattr(poss, what), getattr(compared.scores[name], what)))


def agreement_rows(comparisons: Sequence[Compared]) -> Iterator[Row]:
    """Whether better on the training half is better on the test half: the rank correlation of the methods' means."""
    for compared in comparisons:
        sign = -1.0 if compared.criterion == "RSS" else 1.0
        # Methods that differ by rounding only share a rank.
        training = np.round([sign * np.mean(scores.training) for scores in compared.scores.values()], 9)
        test = np.round([np.mean(scores.test) for scores in compared.scores.values()], 9)
        telling = min(np.unique(training).size, np.unique(test).size) > 1
        yield {
            "data": compared.data,
            "k": compared.k,
            "rank correlation of training and test": f"{spearmanr(training, test).statistic:+.2f}" if telling else "–",
        }


def _marked(value: float, best: float) -> str:
    return f"**{value:.4f}**" if abs(value - best) < 5e-5 else f"{value:.4f}"
