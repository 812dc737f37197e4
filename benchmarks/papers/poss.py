"""Qian, Yu and Zhou, POSS: tables 1 and 2, figures 1 to 4, and proven optima for every k on every data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.folder import EVERY, MissingData, chosen
from benchmarks.paper.tables import Row
from benchmarks.papers.exhibit import Exhibit, data_sets, deviation, grouped, line, number
from benchmarks.papers.pictures import Line, Panel
from benchmarks.papers.request import Request
from benchmarks.poss import anytime, table2
from benchmarks.poss.data import Data, generated, load
from benchmarks.poss.generalisation import OPTIMUM, RIDGE, Compared, compare, method_rows
from benchmarks.poss.published import FIGURE_2, SHAPES, TABLE_2, K

TITLE = "Qian, Yu and Zhou, Subset Selection by Pareto Optimization"

TABLE = (
    "training R² for k = 8 over 100 random halves; by the t-test POSS is significantly better than all compared "
    "methods on all data sets."
)
TRAINING = (
    "POSS tightly follows OPT and has a clear advantage over the rest for k up to 8 (OPT on sonar for k <= 5 only)."
)
OVER_TIME = (
    "POSS takes about 14 and 23 per cent of the theoretical time 2ek²n to be better than FR, on gisette and farm-ads "
    "(30 runs, no split)."
)
TEST = "On svmguide3 test R² is consistent with training R²; on sonar better training R² leads to worse test R²."
WITH_RIDGE = "With the ridge POSS still does the best optimization on the training RSS, and generalizes best."
OPTIMA = "OPT is shown on housing, eunite2001, svmguide3 and ionosphere for k = 8, and on sonar for k <= 5."

WIDE = 500
"""More columns than this, and three splits have to do."""


def exhibits(request: Request) -> Iterator[Exhibit]:
    """The tables and figures, each as soon as it is measured."""
    if request.wants("table-1"):
        yield _table_1(request)
    if request.wants("table-2"):
        yield _table_2(request)
    if request.wants("figure-1", "figure-3"):
        yield from _figures_1_and_3(request)
    if request.wants("figure-2"):
        yield _figure_2(request)
    if request.wants("figure-4"):
        yield _figure_4(request)
    if request.wants("optima"):
        yield _optima(request)


def _data(request: Request, names: Sequence[str], remarks: list[str]) -> Iterator[Data]:
    """The data sets that are there; a sentence for each that is not. Made-up data where all is to be quick."""
    if request.quick:
        yield generated("generated")
        return
    for name in names:
        try:
            yield load(name, request.folder)
        except MissingData as missing:
            remarks.append(str(missing))


def _table_1(request: Request) -> Exhibit:
    return data_sets("twelve data sets and their sizes.", SHAPES, lambda name: load(name, request.folder).A.shape)


def _table_2(request: Request) -> Exhibit:
    remarks: list[str] = []
    rows: list[Row] = []
    splits, k = (2, 3) if request.quick else (30, K)
    for data in _data(request, tuple(TABLE_2), remarks):
        count = min(splits, 5) if data.A.size > 500_000 else splits
        rows += table2.method_rows(table2.measure(data, k, count, 0, 0.0, seed=0))
    panels = []
    for name, own in grouped(rows, "data").items():
        places = range(len(own))
        measured = Line([at - 0.12 for at in places], *_means(own, "training R²"))
        lines = {"measured": measured}
        if any(row["paper"] != "–" for row in own):
            printed = [(at, row) for at, row in zip(places, own, strict=True) if row["paper"] != "–"]
            lines["printed"] = Line([at + 0.12 for at, _ in printed], *_means([row for _, row in printed], "paper"))
        ticks = {float(at): str(row["method"]) for at, row in zip(places, own, strict=True)}
        panels.append(Panel(name, "", "training R²", lines, ticks=ticks, joined=False))
    return Exhibit("table-2", f"Training R², k = {k}, at most {splits} halves", TABLE, rows, panels, remarks)


def _means(rows: Sequence[Row], column: str) -> tuple[list[float], list[float]]:
    return [number(row[column]) for row in rows], [deviation(row[column]) for row in rows]


def _figures_1_and_3(request: Request) -> Iterator[Exhibit]:
    remarks: list[str] = []
    splits, ks, limit = (2, (2, 3), 5.0) if request.quick else (30, range(3, 9), 10.0)
    compared = [
        compare(data, k, splits, 0, time_limit=limit)
        for data in _data(request, ("svmguide3", "sonar"), remarks)
        for k in ks
    ]
    rows = [row for one in compared for row in method_rows(one)]
    title = f"{{}} R² over k, {splits} random halves, OPT within {limit:g} s"
    for name, what, printed in (("figure-1", "training", TRAINING), ("figure-3", "test", TEST)):
        own = [_only(row, what) for row in rows]
        panels = _over_k(own, f"{what} R²")
        yield Exhibit(name, title.format(what.capitalize()), printed, own, panels, remarks)


def _only(row: Row, what: str) -> Row:
    other = "test" if what == "training" else "training"
    return {name: cell for name, cell in row.items() if not name.startswith(other)}


def _over_k(rows: Sequence[Row], column: str) -> list[Panel]:
    return [
        Panel(data, "k", column, {name: line(points, "k", column) for name, points in grouped(own, "method").items()})
        for data, own in grouped(rows, "data").items()
    ]


def _figure_2(request: Request) -> Exhibit:
    remarks: list[str] = []
    names = (*FIGURE_2, "sonar", "svmguide3", "triazines", "ionosphere")
    k, runs, limit = (3, 2, 5.0) if request.quick else (K, 30, 10.0)
    races = [anytime.race(data, k, runs, 0, limit) for data in _data(request, names, remarks)]
    panels = []
    for raced in races:
        lines = {
            name: Line(list(x), list(y), style="level" if len(x) == 1 else "steps")
            for name, (x, y) in anytime.picture(raced).items()
        }
        panels.append(Panel(raced.data, "evaluations / kd", "training R²", lines))
    title = f"R² of POSS over time, k = {k}, mean of {runs} runs, all rows"
    return Exhibit("figure-2", title, OVER_TIME, [anytime.summary_row(raced) for raced in races], panels, remarks)


def _figure_4(request: Request) -> Exhibit:
    remarks: list[str] = []
    splits, ks = (2, (2, 3)) if request.quick else (100, range(3, 9))
    compared = [compare(data, k, splits, 0, RIDGE) for data in _data(request, ("sonar",), remarks) for k in ks]
    rows = [row for one in compared for row in method_rows(one)]
    panels = [*_over_k(rows, "training RSS"), *_over_k(rows, "test R²")]
    title = f"Training RSS and test R² over k with a ridge of {RIDGE}, {splits} random halves"
    return Exhibit("figure-4", title, WITH_RIDGE, rows, panels, remarks)


def _optima(request: Request) -> Exhibit:
    """POSS beside the optimum of the same half, on every data set of the folder and for every k."""
    remarks: list[str] = []
    splits, ks, limit = (2, (1, 2), 5.0) if request.quick else (5, range(1, 9), 3.0)
    compared = []
    for data in _data(request, chosen((EVERY,), (), request.folder), remarks):
        count = min(splits, 3) if data.A.shape[1] > WIDE or data.A.size > 500_000 else splits
        compared += [compare(data, k, count, 0, time_limit=limit, names=("POSS", "FR")) for k in ks]
    rows = [_optimum_row(one) for one in compared]
    panels = []
    for data_name, own in grouped(rows, "data").items():
        drawn = {name: line(own, "k", f"{name}: test R²") for name in (OPTIMUM, "POSS", "FR")}
        panels.append(Panel(data_name, "k", "test R²", drawn))
    title = (
        f"Optima of training halves and what they are worth on test halves, at most {splits} halves, {limit:g} s each"
    )
    return Exhibit("optima", title, OPTIMA, rows, panels, remarks)


def _optimum_row(compared: Compared) -> Row:
    row: Row = {"data": compared.data, "k": compared.k, "splits": len(compared.scores[OPTIMUM].test)}
    row["proven optimal"] = f"{compared.proven}/{len(compared.scores[OPTIMUM].test)}"
    best = np.array(compared.scores[OPTIMUM].training)
    for name in (OPTIMUM, "POSS", "FR"):
        scores = compared.scores[name]
        row[f"{name}: training R²"] = f"{np.mean(scores.training):.4f}"
        row[f"{name}: test R²"] = f"{np.mean(scores.test):.4f}"
        if name != OPTIMUM:
            row[f"{name}: as good as {OPTIMUM}"] = f"{np.sum(np.array(scores.training) >= best - 1e-9)}/{best.size}"
    test = next(one for one in method_rows(compared) if one["method"] == OPTIMUM)
    row["POSS against OPT, training, Wilcoxon p"] = test["training, Wilcoxon p"]
    row["POSS against OPT, test, Wilcoxon p"] = test["test, Wilcoxon p"]
    return row
