"""Sakaue and Marumo, best-first search: figures 2 to 7."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.folder import MissingData
from benchmarks.paper import plans
from benchmarks.paper.ablation import Ablation
from benchmarks.paper.cost import Cost
from benchmarks.paper.dual_solvers import DualSolvers
from benchmarks.paper.mip import MIP, solvers
from benchmarks.paper.real import Real
from benchmarks.paper.recovery import Recovery
from benchmarks.paper.runs import INEXACT
from benchmarks.paper.tables import Row
from benchmarks.papers.exhibit import Exhibit, grouped, line, lines
from benchmarks.papers.pictures import Panel
from benchmarks.papers.request import Request

TITLE = "Sakaue and Marumo, Best-first Search Algorithm for Non-convex Sparse Minimization"

MODES = ("faithful", "default")

COST = (
    "BFS is far below the number of supports that exhaustive search examines, and solves every Huber and logistic "
    "instance; OMP, HTP and DIHT solve 598, 172 and 233 Huber and 464, 7 and 82 logistic instances."
)
RECOVERY = (
    "BFS recovers the true support more often than the inexact methods, most of all from few rows, and becomes faster "
    "as n grows; accepting an error is compared beside."
)
REAL = (
    "BFS and MIP (Gurobi 8.1.0) become faster as the permitted error grows, and BFS is faster than MIP at every value; "
    "one call suffices at the largest. No inexact method solves both instances."
)
DUAL = "The running times of PDAL and SGA are almost the same; PDAL needs fewer solver calls."
ABLATION = (
    "Warm start alone does not always accelerate; pruning and warm start together greatly reduce the running time, "
    "which grows sub-linearly in d in the semi-logarithmic plot."
)
STRONGER = "With stronger regularization BFS becomes faster while support recovery deteriorates."


def exhibits(request: Request) -> Iterator[Exhibit]:
    """Figures 2 to 7, each as soon as it is measured."""
    if request.wants("figure-2"):
        yield _cost(_costs(request.quick))
    if request.wants("figure-3"):
        yield _recovery("figure-3", _recoveries(request.quick, 1.0), RECOVERY)
    if request.wants("figure-4"):
        yield _real(request)
    if request.wants("figure-5"):
        yield _dual_solvers(_duals(request.quick))
    if request.wants("figure-6"):
        yield _ablation(_ablated(request.quick))
    if request.wants("figure-7"):
        yield _recovery("figure-7", _recoveries(request.quick, plans.STRONGER), STRONGER)


def _costs(quick: bool) -> Sequence[Cost]:
    if quick:
        return (
            Cost("huber", (2, 3), 30, 20, 0.01, instances=2, faithful=2, limit=5.0),
            Cost("logistic", (2, 3), 60, 20, 1.0, instances=2, faithful=2, limit=5.0),
        )
    huber, logistic = plans.cost("huber"), plans.cost("logistic")
    return (
        replace(huber, ks=range(2, 8), instances=20, faithful=6, limit=10.0),
        replace(logistic, ks=range(2, 6), instances=20, faithful=6, limit=10.0),
    )


def _recoveries(quick: bool, times: float) -> Sequence[Recovery]:
    if quick:
        return (
            Recovery("huber", (20, 40), 20, 4, 0.01 * times, rel=0.1, instances=3, limit=5.0),
            Recovery("logistic", (60, 120), 20, 3, 1.0 * times, rel=0.1, instances=3, limit=5.0),
        )
    return tuple(replace(plans.recovery(loss, times > 1.0), instances=30, limit=5.0) for loss in ("huber", "logistic"))


def _duals(quick: bool) -> Sequence[DualSolvers]:
    if quick:
        return (DualSolvers("huber", (2, 3), 30, 20, 0.01, instances=2, limit=5.0),)
    return (replace(plans.dual_solvers("huber"), ks=range(2, 6), instances=10, limit=10.0),)


def _ablated(quick: bool) -> Ablation:
    return Ablation((10, 15), 30, 3, 0.01, instances=2, limit=5.0) if quick else plans.ablation()


def _cost(experiments: Sequence[Cost]) -> Exhibit:
    rows: list[Row] = []
    panels = []
    for experiment in experiments:
        own: list[Row] = [{"loss": experiment.loss, **row} for row in experiment.rows()]
        rows += own
        seconds = {name: f"{name}: seconds" for name in (*MODES, *INEXACT)}
        calls = {**{name: f"{name}: calls" for name in MODES}, "supports of k columns": "C(d, k)"}
        shown = {name: points for name, points in lines(own, "k", calls).items() if max(points.y) > 0}
        panels.append(Panel(f"{experiment.loss}: running time", "k", "seconds", lines(own, "k", seconds), log_y=True))
        panels.append(Panel(f"{experiment.loss}: solver calls", "k", "calls", shown, log_y=True))
    return Exhibit("figure-2", "; ".join(one.title for one in experiments), COST, rows, panels)


def _recovery(name: str, experiments: Sequence[Recovery], printed: str) -> Exhibit:
    rows: list[Row] = []
    panels = []
    for experiment in experiments:
        own: list[Row] = [{"loss": experiment.loss, **row} for row in experiment.rows()]
        rows += own
        methods = ("exact", f"rel_eps {experiment.rel:g}", *INEXACT)
        found = lines(own, "n", {method: method for method in methods})
        seconds = lines(own, "n", {method: f"{method}: seconds" for method in methods})
        panels.append(Panel(f"{experiment.loss}: supports recovered", "n", "per cent", found))
        panels.append(Panel(f"{experiment.loss}: running time", "n", "seconds", seconds, log_y=True))
    return Exhibit(name, "; ".join(one.title for one in experiments), printed, rows, panels)


def _dual_solvers(experiments: Sequence[DualSolvers]) -> Exhibit:
    rows: list[Row] = []
    panels = []
    for experiment in experiments:
        own = list(experiment.rows())
        rows += own
        for what in ("seconds", "calls"):
            drawn = lines(own, "k", {name: f"{name}: {what}" for name in ("PDAL", "SGA")})
            panels.append(Panel(f"{experiment.loss}: {what}", "k", what, drawn, log_y=True))
    return Exhibit("figure-5", "; ".join(one.title for one in experiments), DUAL, rows, panels)


def _ablation(experiment: Ablation) -> Exhibit:
    rows = list(experiment.rows())
    variants = grouped(rows, "accelerated by")
    panels = [
        Panel(what, "d", what, {name: line(own, "d", what) for name, own in variants.items()}, log_y=True)
        for what in ("seconds", "calls", "iterations")
    ]
    return Exhibit("figure-6", experiment.title, ABLATION, rows, panels)


def _real(request: Request) -> Exhibit:
    present, remarks = solvers(request.mip_python)
    epss = (0.0, 1e-2) if request.quick else (0.0, 1e-4, 1e-3, 1e-2, 1e-1)
    ks, limit = ((2,), 3.0) if request.quick else ((5,), 30.0)
    rows: list[Row] = []
    panels = []
    for data in ("diabetes", "boston"):
        experiment = Real(
            data, True, ks, (0.01,), epss, limit, folder=request.folder, mip=present, python=request.mip_python
        )
        try:
            own: list[Row] = [{"data": experiment.name, **row} for row in experiment.rows()]
        except MissingData as missing:
            remarks.append(str(missing))
            continue
        rows += own
        panels += _real_panels(experiment.name, own, epss)
    return Exhibit("figure-4", f"Real data, quadratic loss, limit {limit:g} s", REAL, rows, panels, remarks)


def _real_panels(name: str, rows: Sequence[Row], epss: Sequence[float]) -> Iterator[Panel]:
    # Not a logarithmic axis, which has no place for 0: the values of eps stand side by side.
    placed: list[Row] = [{**row, "at": place} for place, row in enumerate(rows)]
    ticks = {float(place): f"{eps:g}" for place, eps in enumerate(epss)}
    seconds = {method: f"{method}: seconds" for method in (*MODES, *MIP, *INEXACT)}
    calls = {**{mode: f"{mode}: calls" for mode in MODES}, **{method: f"{method}: nodes" for method in MIP}}
    errors = {**{method: f"{method}: error" for method in (*MODES, *MIP)}, **{m: f"{m} error" for m in INEXACT}}
    counted = {method: points for method, points in lines(placed, "at", calls).items() if max(points.y) > 0}
    yield Panel(f"{name}: time", "permitted error", "seconds", lines(placed, "at", seconds), log_y=True, ticks=ticks)
    yield Panel(f"{name}: calls, MIP nodes", "permitted error", "calls", counted, log_y=True, ticks=ticks)
    yield Panel(f"{name}: error", "permitted error", "objective error", lines(placed, "at", errors), ticks=ticks)
