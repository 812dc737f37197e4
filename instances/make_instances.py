"""Write every instance of this folder, and MANIFEST.toml, anew: ``python make_instances.py [FOLDER]``.

The Diabetes data come from scikit-learn through exactsel.data.generate; the others are small enough to be written
down here and to be solved by trying every support. Same program, same bytes (those of the Diabetes data can change
with the version of scikit-learn, which scales them).
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from exactsel.data.generate import generate
from exactsel.data.instance import Instance, write_instance
from exactsel.problem.regression import Problem

OURS = "BSD-3-Clause, as exactsel"
BY_HAND = "made by hand for teaching"
BRUTE_FORCE = "brute force over all supports"
TIE = 1e-12
"""Two supports whose objectives differ by no more than this are both optimal."""


@dataclass(frozen=True)
class Entry:
    """One file of the folder, with what its numbers alone do not say.

    ``optimum`` and ``supports`` are found by brute force when they are None.
    """

    file: str
    instance: Instance
    point: str
    origin: str = BY_HAND
    licence: str = OURS
    optimum: float | None = None
    supports: tuple[tuple[int, ...], ...] | None = None
    known_by: str = BRUTE_FORCE
    fails: tuple[str, ...] = ()
    """Methods that do not find the optimum here; the tests check it. Of those that draw lots, with most seeds."""
    problem: str = "regression"
    """``css`` where the optimum is that of column subset selection, which has no use for y."""


def diabetes() -> Entry:
    """The standard real instance of the literature."""
    return Entry(
        "diabetes.npz",
        generate("diabetes"),
        "the Diabetes study with squares and products, the standard real instance of best-subset papers",
        origin="Efron, Hastie, Johnstone, Tibshirani: Least angle regression, Annals of Statistics 32 (2004); "
        "https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html; data as distributed with "
        "scikit-learn (load_diabetes), expanded, centred and scaled by exactsel.data.generate.diabetes",
        licence="published with the paper, no licence stated; redistributed by scikit-learn (BSD-3-Clause)",
        optimum=0.247095476927,
        supports=((1, 2, 3, 6, 8),),
        known_by="proven by search",
    )


def greedy_trap() -> Entry:
    """y is the sum of columns 0 and 1, but column 2 resembles y more than either does."""
    h = _walsh()
    A = np.column_stack([h[1], h[2], h[1] + h[2] + h[3], h[1] + h[4], h[5]])
    names = ("first_half", "second_half", "blurred_sum", "mixed", "unrelated")
    return Entry(
        "greedy-trap.npz",
        Instance(A, h[1] + h[2], 2, 0.01, "quadratic", feature_names=names),
        "forward selection and OMP take column 2 first and can never give it back; the best model does not use it",
        fails=("forward", "omp", "lasso"),
    )


def duplicates() -> Entry:
    """Columns 1 and 3 are equal."""
    h = _walsh()
    twin = np.array([2.0, 1.0, 0.0, -1.0, -2.0, 0.0, 1.0, -1.0])
    names = ("signal", "twin", "unrelated", "twin_again", "weak")
    return Entry(
        "twins.npz",
        Instance(
            np.column_stack([h[1], twin, h[4], twin, h[6]]),
            2.0 * h[1] + twin + 0.5 * h[6],
            2,
            0.1,
            "quadratic",
            feature_names=names,
        ),
        "columns 1 and 3 are equal, so two supports are optimal and no method can say which column matters",
    )


def outlier() -> Entry:
    """y is column 0 plus twice column 2, but for its last entry."""
    trend = np.array([-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0])
    spike = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, -3.0])
    wave = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    slow_wave = np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    y = trend + 2.0 * wave
    y[-1] = -12.0
    return Entry(
        "outlier.npz",
        Instance(
            np.column_stack([trend, spike, wave, slow_wave]),
            y,
            2,
            0.1,
            "huber",
            1.0,
            feature_names=("trend", "spike", "wave", "slow_wave"),
        ),
        "one wild entry of y: Huber loss finds the true columns 0 and 2, quadratic loss spends column 1 on the outlier",
    )


def labels() -> Entry:
    """Column 0 separates the labels, with one row on each side far out."""
    y = np.repeat([-1.0, 1.0], 6)
    separates = np.array([-1.0, -1.0, -1.0, -1.0, -1.0, -20.0, 1.0, 1.0, 1.0, 1.0, 1.0, 20.0])
    mostly_right = y.copy()
    mostly_right[[0, 6]] *= -1.0
    A = np.column_stack(
        [
            separates,
            mostly_right,
            np.tile([1.0, -1.0], 6),
            np.tile([1.0, 1.0, -1.0, -1.0], 3),
            [0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 2.0, 0.0],
        ]
    )
    names = ("separates", "mostly_right", "alternating", "pairs", "stray")
    return Entry(
        "labels.npz",
        Instance(A, y, 2, 0.1, "logistic", feature_names=names),
        "column 0 separates the labels: logistic loss uses it, quadratic loss does not, because a point far on the "
        "right side counts as an error there",
    )


def exponential_decay() -> Entry:
    """Example 1 of Qian, Yu and Zhou with the numbers of their Proposition 1: X_i = r_i X_(i-1) + Y_i.

    Every column and y have mean 0 and variance 1 over the eight rows, with exactly the covariances of the example.
    """
    r2, r3, delta = 0.03, 0.5, 0.6
    h = _walsh()
    spread = np.sqrt([1.0, 1.0 - r2**2, 1.0 - r3**2])
    first = h[1]
    second = r2 * first + spread[1] * h[2]
    third = r3 * second + spread[2] * h[3]
    weights = np.array([delta, delta, 0.505 * delta]) / spread
    y = weights[0] * h[1] + weights[1] * h[2] + weights[2] * h[3] + np.sqrt(1.0 - weights @ weights) * h[4]
    return Entry(
        "exponential-decay.npz",
        Instance(np.column_stack([first, second, third]), y, 2, 0.0, "quadratic", feature_names=("X1", "X2", "X3")),
        "columns along a line, correlated the less the farther apart: forward selection and OMP take the middle one, "
        "the best model consists of the outer ones, and POSS with minimum-index isolation finds it",
        origin="made after C. Qian, Y. Yu and Z.-H. Zhou: Subset selection by Pareto optimization, NeurIPS 2015, "
        "Proposition 1",
    )


def cancelling_pair() -> Entry:
    """A reading with a drift, and the drift alone: useless one by one, exact together."""
    h = _walsh()
    A = np.column_stack([h[1] + 3 * h[2], h[2], h[1] + 2 * h[3], 2 * h[1] + 5 * h[4], h[5], h[6] + h[7]])
    names = ("reading", "drift", "proxy_a", "proxy_b", "unrelated_a", "unrelated_b")
    return Entry(
        "cancelling-pair.npz",
        Instance(A, 4 * h[1], 2, 0.01, "quadratic", feature_names=names),
        "column 1 has nothing to do with y and column 0 little, but together they give it: greedy methods and Lasso "
        "take the two proxies, and no exchange of a single column leads away from them",
        fails=("forward", "omp", "lasso", "swap"),
    )


def three_parts() -> Entry:
    """y is the sum of three columns; sums of them with something added resemble it more than each part does."""
    two = np.array([[1.0, 1.0], [1.0, -1.0]])
    h = np.kron(two, _walsh())
    total = h[1] + h[2] + h[3]
    A = np.column_stack(
        [
            h[1], h[2], h[3], total + h[4], h[1] + h[2] + h[5], h[2] + h[3] + h[6], h[1] + h[3] + h[7],
            h[8] + h[1], h[9] + h[2], h[10],
        ]
    )  # fmt: skip
    names = (
        "part_a", "part_b", "part_c", "rough_total", "a_and_b", "b_and_c", "a_and_c", "hint_a", "hint_b", "unrelated",
    )  # fmt: skip
    return Entry(
        "three-parts.npz",
        Instance(A, total, 3, 0.1, "quadratic", feature_names=names),
        "the rough total resembles y more than any part of it: greedy methods and Lasso take it and then pay for what "
        "is added to it; big enough for a search tree one can watch",
        fails=("forward", "omp", "lasso"),
    )


def mixed_signals() -> Entry:
    """Labels that two columns decide together, and one column that is right for most rows by itself."""
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
    level = np.array([3.0, 2.0, 1.0, -1.0, -2.0, -3.0, 3.0, 2.0, 1.0, -1.0, -2.0, -3.0])
    mostly_right = y.copy()
    mostly_right[[0, 6]] *= -1.0
    A = np.column_stack([level + y, level, mostly_right, np.tile([1.0, -1.0], 6), np.tile([1.0, 1.0, -1.0], 4)])
    names = ("level_and_signal", "level", "mostly_right", "alternating", "threes")
    return Entry(
        "mixed-signals.npz",
        Instance(A, y, 2, 0.1, "logistic", feature_names=names),
        "logistic loss: the difference of columns 0 and 1 is the label, but column 2 alone is right ten times out of "
        "twelve; forward selection and Lasso take it and can then use only one of the pair",
        fails=("forward", "lasso"),
    )


def hidden_six() -> Entry:
    """y is the sum of columns 0 to 5, in which all else cancels; every five of them tell nothing of y."""
    parts, noise, decoys = 6, 3.0, 34
    e = np.eye(1 + (parts - 1) + decoys)
    chain = [noise * (e[i + 1] - e[i]) for i in range(1, parts - 1)]
    hints = [e[0] + 2.0 * (1.0 + 0.02 * j) * e[parts + j] for j in range(decoys)]
    A = np.column_stack([noise * e[1], *chain, e[0] - noise * e[parts - 1], *hints])
    names = (*(f"part_{i}" for i in range(parts)), *(f"hint_{j}" for j in range(decoys)))
    return Entry(
        "hidden-six.npz",
        Instance(A, 4.0 * e[0], parts, 0.01, "quadratic", feature_names=names),
        "the six parts add up to y, but fewer of them are worth less than as many hints: POSS would have to take all "
        "six in one step, and exchanges that change one column at a time only lead back to hints",
        optimum=0.448534836246,
        supports=(tuple(range(parts)),),
        known_by="proven by search",
        fails=(
            "forward", "omp", "foba", "swap", "exchange", "newton-swap", "iht", "htp", "lasso", "scad", "mcp",
            "greedy-rls", "poss", "pposs",
        ),
    )  # fmt: skip


def overlap() -> Entry:
    """Six columns on eight rows that stand in for one another."""
    A = np.array(
        [
            [0, 3, -2, -1, 2, -2], [-1, -1, 2, 2, 2, 0], [1, 1, 2, -3, -1, 2], [-2, -2, 3, -2, 3, 3],
            [-2, 0, -1, 0, 1, 3], [3, -3, -2, 1, -2, -1], [1, -2, 3, 1, -2, -1], [1, -1, 1, 3, -1, -2],
        ],
        dtype=float,
    )  # fmt: skip
    return Entry(
        "overlap.npz",
        Instance(
            A,
            np.array([-2.0, 0.0, 1.0, -4.0, 1.0, -3.0, 1.0, 3.0]),
            2,
            0.5,
            "quadratic",
            feature_names=tuple(f"x{j}" for j in range(6)),
        ),
        "columns that stand in for one another: coefficients of the fit with all of them say little of the best two, "
        "and rfe, which goes by these coefficients, drops one of them; dual-iht stops at the same wrong pair",
        fails=("rfe", "dual-iht"),
    )


def hidden_span() -> Entry:
    """Four columns that together hold what the 24 others share; a part of them does not."""
    parts, noise, shares = 4, 1.0, 24
    e = np.eye(1 + (parts - 1) + shares)
    chain = [noise * (e[i + 1] - e[i]) for i in range(1, parts - 1)]
    sharing = [e[0] + 1.5 * (1.0 + 0.01 * j) * e[parts + j] for j in range(shares)]
    A = np.column_stack([noise * e[1], *chain, e[0] - noise * e[parts - 1], *sharing])
    names = (*(f"part_{i}" for i in range(parts)), *(f"share_{j}" for j in range(shares)))
    return Entry(
        "hidden-span.npz",
        Instance(A, e[0], parts, 0.0, "quadratic", feature_names=names),
        "column subset selection: the four parts together span what all other columns share, three of them do not, so "
        "methods that add or exchange one at a time take other columns, and POCSS would have to change many at once",
        optimum=67.3929,
        supports=(tuple(range(parts)),),
        known_by="proven by search",
        fails=("greedy-css", "iterative-css", "two-stage", "approx-svd", "pocss"),
        problem="css",
    )


def entries() -> list[Entry]:
    """Every instance of the folder."""
    return [
        diabetes(),
        greedy_trap(),
        duplicates(),
        outlier(),
        labels(),
        exponential_decay(),
        cancelling_pair(),
        three_parts(),
        mixed_signals(),
        hidden_six(),
        overlap(),
        hidden_span(),
    ]


def brute_force(problem: Problem) -> tuple[float, tuple[tuple[int, ...], ...]]:
    """The optimum and every optimal support with k columns, by fitting all of them."""
    values = {columns: problem.fit(columns).value for columns in combinations(range(problem.d), problem.k)}
    optimum = min(values.values())
    return optimum, tuple(columns for columns, value in values.items() if value <= optimum + TIE)


def manifest_lines(entry: Entry, path: Path) -> list[str]:
    """One table of MANIFEST.toml."""
    problem = entry.instance.problem()
    optimum, supports = entry.optimum, entry.supports
    if optimum is None or supports is None:
        optimum, supports = brute_force(problem)
    facts = {
        "file": entry.file,
        "point": entry.point,
        "origin": entry.origin,
        "licence": entry.licence,
        "n": problem.n,
        "d": problem.d,
        "k": problem.k,
        "lam": problem.lam,
        "loss": problem.loss.name,
        **problem.loss_parameters,
        **({"problem": entry.problem} if entry.problem != "regression" else {}),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        # As many digits as every machine agrees on.
        "optimum": float(f"{optimum:.12g}"),
        "supports": [list(columns) for columns in supports],
        "known_by": entry.known_by,
        **({"fails": list(entry.fails)} if entry.fails else {}),
    }
    # Texts, numbers and lists of numbers look the same in JSON and TOML.
    return ["[[instance]]", *(f"{key} = {json.dumps(value)}" for key, value in facts.items()), ""]


CARS = {
    "file": "cars.csv",
    "point": "a first file of one's own: names of rows, a date, a category, missing values; mpg is the target",
    "target": "mpg",
    "origin": "Donoho and Ramos, PRIMDATA: Data sets for use with PRIM-H (1982), the American Statistical "
    "Association's Data Exposition of 1983; http://lib.stat.cmu.edu/datasets/; as distributed with vega-datasets",
    "licence": "public at StatLib; redistributed by vega-datasets (BSD-3-Clause)",
}
"""The table of the folder that no program makes."""


def table_lines(facts: dict[str, str], path: Path) -> list[str]:
    """The table of MANIFEST.toml for a file of text."""
    text = path.read_bytes()
    names = text.split(b"\n", 1)[0].split(b",")
    whole = {
        **facts, "rows": text.count(b"\n") - 1, "columns": len(names), "sha256": hashlib.sha256(text).hexdigest()
    }  # fmt: skip
    return ["[[table]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in whole.items()), ""]


def main(folder: Path) -> None:
    """Write all files into ``folder``."""
    lines = [
        "# Written by make_instances.py. Columns are counted from 0; the objective is that of exactsel.Problem.",
        "",
    ]
    for entry in entries():
        write_instance(folder / entry.file, entry.instance)
        lines += manifest_lines(entry, folder / entry.file)
    lines += table_lines(CARS, Path(__file__).parent / CARS["file"])
    (folder / "MANIFEST.toml").write_text("\n".join(lines), encoding="utf-8")


def _walsh() -> np.ndarray:
    """The eight Walsh functions on eight points: orthogonal columns of +1 and -1, the first constant."""
    two = np.array([[1.0, 1.0], [1.0, -1.0]])
    return np.kron(np.kron(two, two), two)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
