"""Feng, Qian and Tang, POCSS: table 1, figures 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.folder import MissingData
from benchmarks.paper.tables import Row
from benchmarks.papers.exhibit import Exhibit, deviation, grouped, lines, number
from benchmarks.papers.pictures import Line, Panel
from benchmarks.papers.request import Request
from benchmarks.pocss import published
from benchmarks.pocss.anytime import Figure2
from benchmarks.pocss.data import GENERATED
from benchmarks.pocss.experiments import Comparison, Figure1, Table1
from benchmarks.pocss.methods import ALL
from exactsel.errors import UnsupportedError

TITLE = "Feng, Qian and Tang, Unsupervised Feature Selection by Pareto Optimization"

TABLE = (
    "POCSS has the smallest error ratio on all ten data sets at k = 50, then IterFS, Greedy, WA*, ApproxSVD, Two-stage."
)
OVER_K = (
    "POCSS is consistently better than the other methods for k = 50, 60, ..., 100, on mediamill, musk, dna and scene."
)
OVER_TIME = "the time of POCSS to be better than Greedy and IterFS is much less than 2ek²n = 271 kn, on RlCTs and sEMG."

HERE = ("sonar", "dna", "arrhythmia")
"""The data sets of table 1 that stand in for those of the figures that are not available."""


def exhibits(request: Request) -> Iterator[Exhibit]:
    """The table and the figures, each as soon as it is measured."""
    if request.wants("table-1"):
        yield _table_1(request)
    if request.wants("figure-1"):
        yield _figure_1(request)
    if request.wants("figure-2"):
        yield _figure_2(request)


def _rows(
    request: Request, kind: type[Comparison], names: Sequence[str], remarks: list[str], **given: Any
) -> Iterator[Row]:
    """The rows of every data set that is there; a sentence for each other."""
    for name in (GENERATED,) if request.quick else names:
        runs = {"seeds": 2, "pocss_seeds": 2} if request.quick else {}
        try:
            yield from kind(name, complaints=remarks, folder=request.folder, **(given | runs)).rows()
        except (MissingData, UnsupportedError) as reason:
            remarks.append(str(reason))


def _table_1(request: Request) -> Exhibit:
    remarks: list[str] = []
    k = 3 if request.quick else published.K
    rows = list(_rows(request, Table1, tuple(published.TABLE_1), remarks, ks=(k,)))
    if not request.quick:
        # Files as the paper is likely to have had them: docs/development/pocss-experiments.md.
        said = {"sonar, columns in [-1, 1]": {"scaling": "symmetric"}, "dna, 1400 rows": {"first": 1400}}
        for name, how in said.items():
            own = _rows(request, Table1, (name.split(",")[0],), remarks, ks=(k,), **how)
            rows += [{**row, "data": name} for row in own]
    panels = []
    for data, own_rows in grouped(rows, "data").items():
        ticks = {float(at): str(row["method"]) for at, row in enumerate(own_rows)}
        columns = {"measured": "error ratio", "printed": "paper"}
        drawn = {
            name: Line(
                [at + shift for at, row in enumerate(own_rows) if row[column] != published.NOTHING],
                [number(row[column]) for row in own_rows if row[column] != published.NOTHING],
                [deviation(row[column]) for row in own_rows if row[column] != published.NOTHING],
            )
            for shift, (name, column) in zip((-0.1, 0.1), columns.items(), strict=True)
        }
        drawn = {name: points for name, points in drawn.items() if points.x}
        panels.append(Panel(data, "", "error ratio", drawn, ticks=ticks, joined=False))
    return Exhibit("table-1", f"Error ratios at k = {k}", TABLE, rows, panels, remarks)


def _figure_1(request: Request) -> Exhibit:
    remarks: list[str] = []
    ks = (2, 4) if request.quick else (50, 60, 70, 80, 90, 100)
    rows = list(_rows(request, Figure1, published.FIGURE_1, remarks, ks=ks, pocss_seeds=1))
    panels = [
        Panel(data, "k", "error ratio", lines(own, "k", {name: name for name in ALL}))
        for data, own in grouped(rows, "data").items()
    ]
    return Exhibit("figure-1", "Error ratios over k", OVER_K, rows, panels, remarks)


def _figure_2(request: Request) -> Exhibit:
    remarks: list[str] = []
    pictures: dict[str, Any] = {}
    k = 3 if request.quick else published.K
    names = (*published.FIGURE_2, *HERE)
    rows = list(_rows(request, Figure2, names, remarks, ks=(k,), pictures=pictures))
    panels = [
        Panel(
            title,
            "evaluations / kd",
            "error ratio",
            {name: Line(list(x), list(y), style="level" if len(x) == 1 else "steps") for name, (x, y) in drawn.items()},
        )
        for title, drawn in pictures.items()
    ]
    return Exhibit("figure-2", f"Error ratio of POCSS over time, k = {k}", OVER_TIME, rows, panels, remarks)
