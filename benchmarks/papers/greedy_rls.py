"""Pahikkala, Airola and Salakoski, greedy RLS: table 1, figures 1 to 15."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.folder import MissingData
from benchmarks.greedy_rls.accuracy import Accuracy
from benchmarks.greedy_rls.commands import QUICK_COMPARISON, QUICK_SCALING
from benchmarks.greedy_rls.comparison import Comparison
from benchmarks.greedy_rls.data import GENERATED, NAMES, SHAPES, load
from benchmarks.greedy_rls.scaling import Scaling
from benchmarks.paper.tables import Row
from benchmarks.papers.exhibit import Exhibit, data_sets, grouped, line, lines
from benchmarks.papers.pictures import Line, Panel
from benchmarks.papers.request import Request

TITLE = "Pahikkala, Airola and Salakoski, Linear Time Feature Selection for Regularized Least-Squares"

AGAINST = "the low-rank updated LS-SVM grows quadratically in the number of examples, greedy RLS linearly."
LINEAR = "running time is linear up to 50,000 examples; 50 of 1000 features take a bit less than twelve minutes there."
ACCURATE = (
    "greedy RLS is better than random selection on all six data sets, and on most of them a small subset performs as "
    "well as all features."
)
RELIABLE = "leave-one-out accuracy is over-optimistic on the small data sets and reliable on the larger ones."

OTHERS = ("sonar", "ionosphere", "svmguide3")
"""Sets that the paper does not have, for a small version of the curves that are missing."""


def exhibits(request: Request) -> Iterator[Exhibit]:
    """The table and the figures, each as soon as it is measured."""
    if request.wants("table-1"):
        yield _table_1(request)
    if request.wants("figures-1-and-2"):
        yield _figures_1_and_2(request)
    if request.wants("figure-3"):
        yield _figure_3(request)
    if request.wants("figures-4-to-9", "figures-10-to-15"):
        yield from _figures_4_to_15(request)


def _table_1(request: Request) -> Exhibit:
    return data_sets("six data sets and their sizes.", SHAPES, lambda name: load(name, request.folder).A.shape)


def _figures_1_and_2(request: Request) -> Exhibit:
    experiment = QUICK_COMPARISON if request.quick else Comparison(rows_=(250, 500, 1000, 2000))
    rows = list(experiment.rows())
    columns = {"greedy RLS": "greedy RLS s", "low-rank updated LS-SVM": "low-rank LS-SVM s"}
    drawn = lines(rows, "rows", columns)
    panels = [
        Panel("figure 1: linear axis", "training examples", "seconds", drawn),
        Panel("figure 2: logarithmic axis", "training examples", "seconds", drawn, log_x=True, log_y=True),
    ]
    return Exhibit("figures-1-and-2", experiment.title, AGAINST, rows, panels)


def _figure_3(request: Request) -> Exhibit:
    experiment = QUICK_SCALING if request.quick else Scaling(repeats=3, threads=(1,))
    rows = list(experiment.rows())
    drawn: dict[str, Line] = {}
    for threads, own in grouped(rows, "threads").items():
        drawn[f"greedy RLS, threads: {threads}"] = line(own, "rows", "seconds")
        drawn[f"limit of the memory, threads: {threads}"] = line(own, "rows", "limit s (2 passes)")
    return Exhibit(
        "figure-3", experiment.title, LINEAR, rows, [Panel("running time", "training examples", "seconds", drawn)]
    )


def _figures_4_to_15(request: Request) -> Iterator[Exhibit]:
    remarks: list[str] = []
    sizes = {"folds": 3, "orders": 2, "steps": 5} if request.quick else {}
    rows: list[Row] = []
    test, leave_one_out = [], []
    for name in (GENERATED,) if request.quick else (*NAMES, *OTHERS):
        experiment = Accuracy(name, folder=request.folder, **sizes)
        try:
            rows += [{"data": name, **row} for row in experiment.rows()]
        except MissingData as missing:
            remarks.append(str(missing))
            continue
        curves = experiment.curves
        steps = range(1, curves.steps + 1)
        greedy = _curve(steps, curves.mean("greedy"))
        drawn = {
            "greedy RLS, test": greedy,
            "random selection, test": _curve(steps, curves.mean("random")),
            "majority voter": Line([1.0], [curves.majority], style="level"),
        }
        both = {"greedy RLS, test": greedy, "greedy RLS, leave-one-out": _curve(steps, curves.mean("leave_one_out"))}
        many = curves.steps > 100
        test.append(Panel(name, "selected features", "accuracy", drawn, log_x=many))
        leave_one_out.append(Panel(name, "selected features", "accuracy", both, log_x=many))
    title = f"{{}}, criterion zero-one, {sizes.get('folds', 10)} folds; {', '.join(OTHERS)} are not the paper's"
    yield Exhibit("figures-4-to-9", title.format("Test accuracy"), ACCURATE, rows, test, remarks)
    yield Exhibit(
        "figures-10-to-15", title.format("Leave-one-out and test accuracy"), RELIABLE, rows, leave_one_out, remarks
    )


def _curve(steps: Sequence[int], values: Sequence[float]) -> Line:
    return Line([float(step) for step in steps], [float(value) for value in values], style="curve")
