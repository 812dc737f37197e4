"""Table 2: training R² of every method on random halves, and how far from the optimum they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import ttest_rel

from benchmarks.differences import p_text, paired
from benchmarks.paper.tables import Row
from benchmarks.poss.data import Data, generated, half
from benchmarks.poss.methods import methods
from benchmarks.poss.published import figures
from benchmarks.warming import warm
from exactsel import solve
from exactsel.problem.regression import Problem
from exactsel.types import FloatArray
from exactsel_heuristics.base import Context

SIGNIFICANCE = 0.05
"""Level of the paired t-test, as in the paper."""

CLOSE = 0.005
"""POSS is close to an optimum when it misses no more than this share of its R²."""


@dataclass(frozen=True)
class Certified:
    """What :func:`exactsel.solve` says of one split: no model has an R² above ``most``, and its own has ``r2``."""

    r2: float
    most: float
    proven: bool


@dataclass
class Measured:
    """Training R² by method and split, and the certificates of the first splits."""

    data: str
    k: int
    r2: dict[str, list[float]] = field(default_factory=dict)
    certified: list[Certified] = field(default_factory=list)


def measure(data: Data, k: int, splits: int, solved: int, time_limit: float, seed: int) -> Measured:
    """Run every method on ``splits`` halves, and solve the first ``solved`` of them for ``time_limit`` seconds."""
    measured = Measured(data.name, k)
    for number in range(splits):
        part = half(data, seed, number)
        problem = Problem(part.A, part.y, min(k, part.A.shape[1]), lam=0.0)
        if number == 0 and solved:
            warm_up(problem)
        best: tuple[float, tuple[int, ...]] = (-np.inf, ())
        for name, method in methods().items():
            support = method.run(problem, Context(seed=number)).support
            r2 = training_r2(problem, problem.fit(support).value)
            measured.r2.setdefault(name, []).append(r2)
            best = max(best, (r2, support))
        if number < solved:
            again = all(certificate.proven for certificate in measured.certified)
            measured.certified.append(certify(problem, best[1], time_limit, again))
    return measured


def warm_up(problem: Problem) -> None:
    """Compile the kernels of searches like this one, so that no time limit is spent on that.

    Besides the problem itself made-up data are searched, with dependent columns, which a half of the rows may have
    where another has none, and with fewer rows than columns.
    """
    part = half(generated("generated"), 0, 0)
    dependent = np.column_stack([part.A, np.zeros(len(part.A)), part.A[:, 0], part.A[:, 1] + part.A[:, 2]])
    few = part.A[: part.A.shape[1] // 2]
    for A in (part.A, dependent, few):
        warm(Problem(A, part.y[: len(A)], 3, lam=0.0))
    warm(problem)


def training_r2(problem: Problem, value: float) -> float:
    """1 - 2 P / ||y||² for an objective P without ridge."""
    return 1.0 - 2.0 * value / float(problem.y @ problem.y)


def certify(problem: Problem, start: tuple[int, ...], time_limit: float, again: bool = True) -> Certified:
    """Solve, starting from the best model the methods found.

    A search that goes on for long may come to kernels that no other did. With ``again`` one that has not proven its
    optimum is therefore repeated, and only the second counts.
    """
    result = solve(problem, start=start, time_limit=time_limit, threads=1)
    if again and not result.reached:
        result = solve(problem, start=start, time_limit=time_limit, threads=1)
    return Certified(training_r2(problem, result.upper), training_r2(problem, result.lower), result.reached)


def method_rows(measured: Measured) -> Iterator[Row]:
    """One row per method: its mean and deviation beside the paper's, and the t-test against POSS."""
    published = figures(measured.data, measured.k)
    poss = measured.r2.get("POSS")
    for name, values in measured.r2.items():
        mean, paper = float(np.mean(values)), published.get(name)
        yield {
            "data": measured.data,
            "method": name,
            "splits": len(values),
            "training R²": _pair(mean, _deviation(values)),
            "paper": "–" if paper is None else _pair(paper.mean, paper.sd),
            "difference": "–" if paper is None else f"{mean - paper.mean:+.4f}",
            "within one sd of the paper": "–" if paper is None else _yes(abs(mean - paper.mean) <= paper.sd),
            "POSS, t-test": "–" if poss is None or name == "POSS" else verdict(poss, values),
            "Wilcoxon p": "–" if poss is None or name == "POSS" else p_text(paired(poss, values)),
        }


def verdict(poss: Sequence[float], other: Sequence[float]) -> str:
    """Whether POSS is better, worse or neither by the paired t-test."""
    differences: FloatArray = np.subtract(poss, other)
    if len(differences) < 2 or np.ptp(differences) <= 1e-12:
        return "tie"
    if ttest_rel(poss, other).pvalue >= SIGNIFICANCE:
        return "tie"
    return "better" if differences.mean() > 0.0 else "worse"


def certificate_row(measured: Measured) -> Row:
    """How many splits are proven, the optimum over these, and the bound over the others."""
    proven = [number for number, certificate in enumerate(measured.certified) if certificate.proven]
    open_ones = [certificate for certificate in measured.certified if not certificate.proven]
    optima = np.array([measured.certified[number].r2 for number in proven])
    poss = np.array([measured.r2["POSS"][number] for number in proven]) if "POSS" in measured.r2 else None
    paper = figures(measured.data, measured.k).get("OPT")
    compared = poss is not None and bool(proven)
    return {
        "data": measured.data,
        "splits solved": len(measured.certified),
        "proven": len(proven),
        "OPT, mean over proven": f"{optima.mean():.4f}" if proven else "–",
        "paper's OPT": "–" if paper is None else _pair(paper.mean, paper.sd),
        "POSS on the proven": f"{poss.mean():.4f}" if poss is not None and proven else "–",
        "POSS optimal": f"{np.sum(poss >= optima - 1e-9)}/{len(proven)}" if compared else "–",
        f"POSS within {100 * CLOSE:g} %": f"{np.sum(poss >= (1 - CLOSE) * optima)}/{len(proven)}" if compared else "–",
        "not proven: best model": _mean([certificate.r2 for certificate in open_ones]),
        "not proven: upper bound": _mean([certificate.most for certificate in open_ones]),
        "not proven: gap in R²": _mean([certificate.most - certificate.r2 for certificate in open_ones]),
    }


def _pair(mean: float, sd: float) -> str:
    return f"{mean:.4f} ± {sd:.4f}"


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.4f}" if values else "–"


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"
