"""The check of a file's claim about a problem, for the second checker.

Bounds are exact rational numbers; only logarithms are rounded, outwards. Claims about column subset selection with a
scope are beyond this checker.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import time
from collections.abc import Callable, Sequence
from fractions import Fraction as F
from typing import Any

from .algebra import as_float, semidefinite
from .counting import Semidefinite, least_squares, taken
from .demands import Demands
from .domain import Problem, problem_of
from .estimate import Asked, Most, asked, default_limits
from .file import BY_COUNTING, FIRST_LIKE, FIRST_STRONG, FLAGS, point, read, regions, split
from .limits import sizes, sizes_in_bounds, sizes_in_scope
from .minorant import below_minorant
from .mismatch import difference
from .near import DISTANCES, NearColumns
from .patterns import LEAF, LeafRegions, Patterns
from .polishing import improved
from .regression import Bound, Regression
from .screened import Stated, as_table, is_screened, mismatch_of_screened, on_active, stated, work_of
from .screened import bounds as bounds_of_others
from .selections import Selections
from .sparse import Sparse
from .strong import StrongColumns
from .values import Outside
from .work import Beyond, TooMuch, at_most, leave_undone, left_undone

POLISHED = 1000
"""Regions of a file whose points are improved at most: a claim that is far too high is not to take for ever."""


def problem_hash(problem: Problem) -> str:
    """sha256 over everything that defines the problem."""
    about: dict[str, Any] = {"n": len(problem.A), "d": len(problem.A[0]), "k": problem.k}
    if problem.loss:
        about |= {"loss": problem.loss.name, "lam": problem.lam.hex(), "parameters": problem.loss.parameters}
    else:
        about |= {"problem": "css"}
    if problem.force_in or problem.force_out:
        about |= {"force_in": problem.force_in, "force_out": problem.force_out}
    about |= {name: True for name, flag in flags_of(problem).items() if flag and name not in ("bounds", "equalities")}
    about |= {"groups": problem.groups} if problem.groups else {}
    if problem.hierarchy:
        about |= {problem.hierarchy.name: problem.hierarchy.entry()}
    if problem.bounds:
        about |= {"bounds": [[v.hex() for v in side] for side in problem.bounds]}
    if problem.equalities:
        about |= {"equalities": problem.equalities.entry()}
    digest = hashlib.sha256(b"exactsel-problem-v1\0" + json.dumps(about, sort_keys=True).encode())
    for row in [*problem.A, problem.y, problem.weights or []]:
        digest.update(struct.pack(f"<{len(row)}d", *row))
    return digest.hexdigest()


def flags_of(problem: Problem) -> dict[str, bool | None]:
    """The flags of a problem's proofs: true or null."""
    has = (problem.weights is not None, problem.level, problem.scale, bool(problem.bounds), bool(problem.equalities))
    return {name: flag or None for name, flag in zip(FLAGS, has, strict=True)}


def kind_of(problem: Problem) -> str | None:
    """What a file calls a problem's constraint, if it has one."""
    return problem.hierarchy.kind if problem.hierarchy else None


def mismatch(p: dict[str, Any], problem: Problem) -> str:
    """Why a proof is not about this problem; empty when it is."""
    family, loss = ("regression", problem.loss.name) if problem.loss else ("css", "")
    sizes_of = {"n": len(problem.A), "d": len(problem.A[0]), "k": problem.k, "groups": len(problem.groups) or None}
    ours = {"family": family, "loss": loss, **sizes_of, "hierarchy": kind_of(problem), **flags_of(problem)}
    return difference(p, ours | {"problem_hash": problem_hash(problem)}, problem.loss, problem.lam)


def check(
    data: bytes, A: list[list[float]] | Sparse, y: list[float], k: int, loss: str, lam: float, delta: float,
    force_in: Sequence[int] = (), force_out: Sequence[int] = (), weights: Sequence[float] | None = None,
    level: bool = False, groups: Sequence[Sequence[int]] = (), scale: bool = False,
    bounds: Sequence[Sequence[float]] | None = None, work_limit: float | None = None, time_limit: float = math.inf,
    begin: Callable[[Asked, float], None] | None = None, clock: Callable[[], float] = time.monotonic,
    equalities: Sequence[Any] | None = None, **related: object,
) -> str:  # fmt: skip
    """Empty when the file proves its claim about this problem (``loss`` "" for column subset selection), else why not.

    Data, weights included, are those given, before anything is done to them; ``level`` says whether models have an
    intercept, ``scale`` whether columns are scaled. ``bounds`` are the lower and the upper limits of all coefficients,
    infinite where there is none, ``equalities`` the numbers of each by column, and the right-hand sides. A problem
    outside the domain is a reason, too.
    ``related``: the constraints, see .constraints.

    ``work_limit`` operations on fractions are done at most, by default what :func:`.estimate.default_limits` makes of
    the sizes of the proof and of the problem; ``time_limit`` is in seconds of the ``clock``. ``begin`` is called with
    the resources the proof is known to need, and their limit, before the first region is checked.

    Raises
    ------
    Malformed, Beyond
        TooMuch, a kind of Beyond, where a limit is reached.
    """
    screened: Stated | None = None
    p: dict[str, Any] = {}
    try:
        demands: tuple[Any, ...] = (weights, level, groups, scale, bounds)
        if equalities is None and (isinstance(A, Sparse) or is_screened(data)):
            p = read(data)
            if p.get("columns") is None:
                A = as_table(A)
            else:
                screened = stated(A, y, k, loss, lam, delta, force_in, force_out, *demands, **related)
                reason = mismatch_of_screened(p, screened)
                if reason:
                    return reason
                A, k, force_in, force_out, bounds = on_active(p, screened)
                demands = (*demands[:-1], bounds)
        if equalities is not None:
            p = read(data)
            demands = (*demands, [*equalities, list(p["equality_size"])])
        problem = problem_of(A, y, k, loss, lam, delta, force_in, force_out, *demands, **related)
    except Outside as error:
        return str(error)
    p = p or read(data)
    reason = "" if screened else mismatch(p, problem)
    model = {j: F(v) for j, v in zip(p["model_index"], p["model_value"], strict=True) if v}
    reason = reason or refused(p, problem, model)
    if reason:
        return reason
    if not problem.loss and p["valid_for"]:
        raise Beyond("a claim about bounded reconstructions is beyond this checker; ask the other one.")
    most = default_limits(p, problem) if work_limit is None else Most(work_limit, work_limit)
    if screened and work_limit is None:
        most = Most(*(limit + 10 * work_of(p, screened) for limit in most))
    with at_most(most.total, time_limit, clock):
        return shortfall(p, problem, model, most.known, begin, screened)


def refused(p: dict[str, Any], problem: Problem, model: dict[int, F]) -> str:
    """Why the model a file shows is none of this problem; empty when it is one."""
    units = problem.groups or [[j] for j in range(len(problem.A[0]))]
    held = {g for g, group in enumerate(units) if {*model} & {*group}}
    if len(held | {*problem.force_in}) > problem.k or held & {*problem.force_out}:
        return "columns that are not allowed"
    if problem.bounds and not all(problem.bounds[0][j] <= v <= problem.bounds[1][j] for j, v in model.items()):
        return "coefficients outside their bounds"
    if problem.equalities and (problem.equalities.missed(model) or len(p["dual_value"])):
        return "a model that misses the equalities, or dual vectors with these"
    if problem.hierarchy:
        # The columns listed are those chosen, coefficient zero or not.
        chosen_units = {g for g, group in enumerate(units) if {*p["model_index"]} & {*group}} | {*problem.force_in}
        if not problem.hierarchy.allows(chosen_units, {*problem.force_out}, len(units), problem.k):
            return "columns that a hierarchy, limits on groups or pairs do not allow together"
    return ""


def shortfall(
    p: dict[str, Any], problem: Problem, model: dict[int, F], most: float,
    begin: Callable[[Asked, float], None] | None, screened: Stated | None = None,
) -> str:  # fmt: skip
    """What of the claim a file does not prove; empty when it proves all of it."""
    work = asked(p, problem)
    if screened:
        work = work._replace(
            entries=work.entries + screened.A.entries, operations=work.operations + work_of(p, screened)
        )
    if begin is not None:
        begin(work, most)
    if work.operations > most:
        raise TooMuch(f"the proof asks for {work.operations:.3g} operations, but {most:.3g} is the most")
    whole, others = bounds_of_others(p, screened) if screened else (F(0), math.inf)
    if screened and whole >= F(p["lower"]):
        lower, upper = whole, objective(problem, model)
    else:
        lower, upper = regression(p, problem, model) if problem.loss else selection(p, problem, model)
        lower = max(whole, min(lower, F(others))) if others < math.inf else max(whole, lower)
    if lower >= F(p["lower"]) and upper <= F(p["upper"]):
        return ""
    reason = f"only {as_float(lower)!r} is proven, the model costs {as_float(upper)!r}"
    if left_undone():
        raise TooMuch(reason)
    return reason


def selection(p: dict[str, Any], problem: Problem, model: dict[int, F]) -> tuple[F, F]:
    """The bounds a proof establishes for a problem of column subset selection."""
    selections = Selections(problem.A, problem.k)
    closed = regions(p["tree"], len(problem.A[0]), problem.k)
    bounds = {2: selections.bound, BY_COUNTING: selections.counted}
    lower = min(max(F(0), bounds[w](S, C)) if w in bounds else F(0) for S, C, w in closed)
    return lower, selections.objective({*model})


def regression_of(problem: Problem) -> Regression:
    """The exact bounds of a problem."""
    assert problem.loss is not None
    return Regression(
        allowed(problem), problem.y, problem.k, problem.loss, problem.lam, problem.weights,
        problem.level, problem.groups, problem.scale, problem.bounds,
        problem.equalities.appended() if problem.equalities else (),
    )  # fmt: skip


def objective(problem: Problem, model: dict[int, F]) -> F:
    """What a model costs."""
    return regression_of(problem).objective(model)


def regression(p: dict[str, Any], problem: Problem, model: dict[int, F]) -> tuple[F, F]:
    """The bounds a proof establishes for a regression problem."""
    r = regression_of(problem)
    D = [F(v) for v in p["curvature"]]
    has_curvature = bool(D) and r.loss.by_products and not p["curvature_split"]
    curvatures = [D] if has_curvature and semidefinite(r.left(D)) else []
    r.after_split = after_split(p, r, D)
    curvatures += [[r.lam] * len(r.columns)] if r.lam > 0 else []
    claim, upper = F(p["lower"]), r.objective(model)
    limited = limits(p, r, r.columns_of(problem.force_out))
    low = upper
    cache: dict[int, list[Bound]] = {}
    polished, level, last = 0, None, None
    near_columns: list[NearColumns] = []
    # A ridge is paid for every coefficient, so with one a column cannot do the work of its copy.
    nearly = p["valid_for"] != "" and r.lam == 0 and r.loss.by_products and claim > 0 and not problem.groups
    for S, C, w in regions(p["tree"], len(r.groups), problem.k, problem.force_in, problem.force_out, problem.hierarchy):
        bounds = [F(0)]
        if w == 1 and r.loss.by_products:
            bounds.append(r.at_fit(S, C, curvatures, p["valid_for"] != ""))
        elif w == LEAF and r.loss.by_leaves and claim > 0:
            last = last or LeafRegions(r, claim)
            bounds += [claim] if last.closes(S, C) else []
        elif w < 0 and claim > 0:
            level = level or below(p, r, claim, problem.hierarchy)
            bounds += [claim] if closes(p, level, S, C, w) else []
        elif w >= 3:
            if w not in cache:
                # Regions next to each other mostly share their witness; more than one would fill the memory.
                cache = {w: witnessed(p, r, w, curvatures)}
            bounds += [r.least(S, C, bound) for bound in cache[w]]
        number, dual = divmod(w - 3, 2)
        if max(bounds) < claim and nearly:
            near_columns = near_columns or [NearColumns(r.free(), claim, D, farthest) for farthest in DISTANCES]
            bounds += [claim] if any(without.closes(S, C, w, p) for without in near_columns) else []
        short = max(bounds) < claim and not dual and not limited and 0 <= number < len(p["points"]) - 1
        # What is improved is a point, not the lack of one: the empty model says nothing of where to look.
        if short and polished == POLISHED:
            leave_undone()
        elif short and any(point(p, number).values()):
            polished += 1
            bounds.append(improved(r, S, C, r.given(point(p, number)), curvatures, claim))
        low = min(low, max(bounds))
    # The empty model need not meet equalities, and so may cost less than any that does.
    return min(low, r.c if problem.equalities else r.objective({})), upper


def allowed(problem: Problem) -> list[list[float]]:
    """The data; without a ridge, where coefficients have limits, with zeros for columns no model may hold."""
    if problem.lam or not problem.loss or problem.loss.by_products or not problem.force_out:
        return problem.A
    units = problem.groups or [[j] for j in range(len(problem.A[0]))]
    banned = {j for g in problem.force_out for j in units[g]}
    return [[0.0 if j in banned else v for j, v in enumerate(row)] for row in problem.A]


def limits(p: dict[str, Any], r: Regression, out: Sequence[int]) -> bool:
    """Whether what limits coefficients takes part in bounds, which is then taken down; always where there is no ridge.

    Columns in ``out`` are in no model.
    """
    named = [*p["limit_point"]]
    if r.loss.by_products:
        r.sizes = sizes_in_bounds(r, p["valid_for"] != "", out) if r.bounds and not r.lam else []
        return bool(r.sizes) and not p["curvature"]
    has_point = bool(named and 0 <= named[0] < len(p["points"]) - 1)
    if has_point:
        scoped = p["valid_for"] and not r.lam and r.loss.bounded_models
        r.sizes = sizes_in_scope(r) if scoped else sizes(r, r.given(point(p, named[0])), out)
    return has_point or bool(r.lam == 0)


def below(p: dict[str, Any], r: Regression, claim: F, demands: Demands | None) -> Semidefinite | Patterns:
    """The test that regions hold nothing below the claim."""
    if r.loss.pattern_logs is not None and not p["minorant_point"]:
        return Patterns(r, claim, demands)
    touched, widths = p["minorant_point"], p["minorant_width"]
    if r.loss.by_products:
        return Semidefinite(r, least_squares(r, claim), demands, StrongColumns(r, claim))
    matrix = None
    if touched and all(0 <= t < len(p["points"]) - 1 for t in touched):
        points = [r.given(point(p, number)) for number in touched]
        matrix = below_minorant(r, claim, points, [(widths[i], widths[p["n"] + i]) for i in r.rows])
    return Semidefinite(r, matrix or [], demands)


def closes(p: dict[str, Any], level: Semidefinite | Patterns, S: set[int], C: set[int], w: int) -> bool:
    """Whether a region is closed by counting, by the minorant, by strong columns or by a split."""
    if w == BY_COUNTING:
        return level.counted(S, C)
    if isinstance(level, Patterns):
        return False
    if level.strong is None:
        return w == ~0 and level.on_all(S, C)
    if ~w >= FIRST_STRONG:
        together = ~w >= FIRST_LIKE
        number = ~w - (FIRST_LIKE if together else FIRST_STRONG)
        if number + 1 >= len(p["points"]):
            return False
        columns = point(p, number)
        return level.strong.closes(S, C, columns, max(columns.values(), default=F(0)) if together else None)
    return ~w + 1 < len(p["splits"]) and level.split(S, C, split(p, ~w))


def after_split(p: dict[str, Any], r: Regression, D: list[F]) -> tuple[list[F], dict[tuple[int, int], F]] | None:
    """The curvature and E where the file names a split that leaves it; None where it does not."""
    if not p["curvature_split"] or not D or not r.loss.by_products or len(r.groups) < len(r.columns):
        return None
    E = taken(r.k, {*range(len(r.columns))}, split(p, p["curvature_split"][0]), r.squares)
    matrix = [[v - E.get((i, j), F(0)) for j, v in enumerate(row)] for i, row in enumerate(r.left(D))]
    return (D, E) if semidefinite(matrix) else None


def witnessed(p: dict[str, Any], r: Regression, witness: int, curvatures: list[list[F]]) -> list[Bound]:
    """What a point or a dual vector proves; nothing where there is none of that number."""
    number, dual = divmod(witness - 3, 2)
    n = p["n"]
    if dual:
        return (
            r.at_dual(p["dual_value"][number * n : number * n + n]) if (number + 1) * n <= len(p["dual_value"]) else []
        )
    return r.at_point(point(p, number), curvatures) if number + 1 < len(p["points"]) else []
