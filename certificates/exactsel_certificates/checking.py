"""The check of a proof file against the caller's problem.

The problem is the caller's: data, loss, k and lam never come from the file. The verdict is what was established here,
not what the file says of itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from exactsel_certificates.boxes import outlier
from exactsel_certificates.container import EIGENVALUES, MalformedError, Proof
from exactsel_certificates.entries import SparseInstance
from exactsel_certificates.equalities import refused
from exactsel_certificates.estimate import Estimate, WorkLimits, default_limits, estimate
from exactsel_certificates.exact import RADIUS
from exactsel_certificates.formula import ColumnInstance, FloatArray, Instance, inadmissible
from exactsel_certificates.given import GivenInstance, exactly_above, objective_above
from exactsel_certificates.identity import problem_hash
from exactsel_certificates.mismatch import mismatch
from exactsel_certificates.points import shown_radii
from exactsel_certificates.radii import MODEL_RADIUS, of_allowed_columns
from exactsel_certificates.reduced_regions import AllRegions
from exactsel_certificates.screened import Screening, in_domain, on_active
from exactsel_certificates.selection_counting import SelectionCounting
from exactsel_certificates.selections import RECONSTRUCTION, SelectionBounds, selection_objective_above
from exactsel_certificates.verdict import Verdict
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, Leaves, closed_regions, first_region
from exactsel_certificates.work import Budget, TooMuchWorkError, refuse, within

SearchedInstance: TypeAlias = Instance | ColumnInstance
AnyInstance: TypeAlias = SearchedInstance | SparseInstance

BATCH_BYTES = 16 * 2**20
"""What the tables of one batch of regions may take, roughly."""

EXACT_LIMIT = 5e9
"""Multiplications exact arithmetic may take (about ten minutes)."""

ASSUMED = "doubles follow IEEE 754, matrix products are sums of products in any order"
ASSUMED_LOGARITHMS = "logarithms and exponentials of doubles are right to 16 units of 2^-53"
ASSUMED_SINGULAR_VALUES = "singular values are right to 16 (n + d) 2^-53 ||A||"


def verify(
    proof: Proof, instance: AnyInstance, exact_limit: float | None = None, *, work_limit: float | None = None,
    time_limit: float = math.inf, now: Callable[[], float] = time.monotonic,
    begin: Callable[[Estimate, float], None] | None = None,
) -> Verdict:  # fmt: skip
    """Check a proof against the caller's own problem.

    Parameters
    ----------
    proof : Proof
        See :func:`exactsel_certificates.container.read_proof`.
    instance : Instance, ColumnInstance or SparseInstance
        The problem as the caller knows it.
    exact_limit : float, optional
        Multiplications exact arithmetic may take, and 200 times as many sets of columns may be counted; by default
        5e9, and without such a limit where there is a ``work_limit``.
    work_limit : float, optional
        Elementary operations the check may take, infinity for any number; by default what
        :func:`exactsel_certificates.estimate.default_limits` makes of the sizes of the proof and of the problem.
    time_limit : float
        Seconds by the clock ``now``.
    begin : callable, optional
        Called with the resources the proof is known to need, and their limit, before the first region is checked.

    Returns
    -------
    Verdict
        Its ``lower`` and ``upper`` hold also when the claim does not. A check that ends at a limit is ``unfinished``:
        neither verified nor rejected.

    Raises
    ------
    MalformedError
        When the file's tree is no tree.

    Notes
    -----
    A problem outside the domain of FORMAT.md is rejected before a region is read.
    """
    outside, instance = in_domain(proof, instance)
    if outside:
        return _outside(proof, outside)
    about = _About(instance)
    another = mismatch(proof, instance, about.hash)
    if another:
        return about.verdict(proof, another, 0.0, math.inf, np.zeros(about.d))
    coef, screening, reason = _model(proof, about.d), None, ""
    problem: SearchedInstance | None
    if isinstance(instance, SparseInstance):
        screening = Screening(instance, proof)
        searched, problem, reason = on_active(proof, instance)
    else:
        searched, problem = proof, instance
    if problem is not None and not reason:
        reason = _refused(searched, problem, _model(searched, searched.d))
    if problem is None or reason:
        return about.verdict(proof, reason, 0.0, math.inf, coef)
    return _verdict(about, searched, problem, screening, coef, exact_limit, work_limit, time_limit, now, begin)


def _verdict(
    about: _About, proof: Proof, instance: SearchedInstance, screening: Screening | None, coef: FloatArray,
    exact_limit: float | None, work_limit: float | None, time_limit: float, now: Callable[[], float],
    begin: Callable[[Estimate, float], None] | None,
) -> Verdict:  # fmt: skip
    """The verdict on a proof that is about this problem, within limits of work and time."""
    exact = (EXACT_LIMIT if work_limit is None else math.inf) if exact_limit is None else exact_limit
    limits = default_limits(proof, instance) if work_limit is None else WorkLimits(work_limit, work_limit)
    if screening is not None and work_limit is None:
        limits = WorkLimits(*(limit + 2.0 * screening.operations for limit in limits))
    with within(Budget(limits.total, time_limit, now)) as budget:
        outcome = _checked(proof, instance, exact, limits.known, begin, screening)
    reason = outcome.shortfall
    unfinished = bool(reason) and (outcome.ended or budget.refused)
    if unfinished:
        reason = f"too much work: {reason.removesuffix('.')}. A higher limit lets the check go on."
    verdict = about.verdict(proof, reason, outcome.lower, outcome.upper, coef, outcome.regions, outcome.exact_regions)
    return replace(verdict, unfinished=unfinished, operations=budget.spent, estimate=outcome.estimate)


@dataclass
class _Found:
    """The state of a check so far."""

    lower: float = 0.0
    upper: float = math.inf
    regions: int = 0
    exact_regions: int = 0
    estimate: Estimate | None = None
    ended: bool = False
    """Whether a limit was reached."""
    shortfall: str = ""
    """What of the claim is not established, or why that is not known; empty when all of it is."""


def _checked(
    proof: Proof, instance: SearchedInstance, exact_limit: float, most: float,
    begin: Callable[[Estimate, float], None] | None, screening: Screening | None,
) -> _Found:  # fmt: skip
    """The outcome of a check that begins where the tree needs no more than ``most``."""
    outcome = _Found()
    try:
        work = estimate(proof, instance)
        if screening is not None:
            work = work.with_more(screening.entries, screening.operations)
        outcome.estimate = work
        if begin is not None:
            begin(work, most)
        if work.operations > most:
            raise TooMuchWorkError(
                f"the proof asks for {work.operations:.3g} elementary operations or more, but no more than {most:.3g} "
                f"are done"
            )
        outcome.upper = _objective(instance, _model(proof, proof.d), proof.upper)
        whole, others = (0.0, math.inf) if screening is None else screening.bounds()
        if screening is None or not whole >= proof.lower:
            _bound_all(outcome, proof, instance, exact_limit)
            outcome.lower = min(outcome.lower, others)
        outcome.lower = max(outcome.lower, min(whole, outcome.upper))
    except TooMuchWorkError as error:
        outcome.lower, outcome.ended, outcome.shortfall = 0.0, True, str(error)
        return outcome
    if not outcome.lower >= proof.lower:
        outcome.shortfall = f"a lower bound of {proof.lower!r} is claimed, but only {outcome.lower!r} is proven."
    elif not outcome.upper <= proof.upper:
        outcome.shortfall = (
            f"the model is said to cost at most {proof.upper!r}, but {outcome.upper!r} is what it costs."
        )
    return outcome


def _model(proof: Proof, d: int) -> FloatArray:
    """The coefficients of the model shown."""
    coef = np.zeros(d)
    place = proof.model_index if proof.columns is None else proof.active_column[proof.model_index]
    coef[place] = proof.model_value
    return coef


def _refused(proof: Proof, instance: SearchedInstance, coef: FloatArray) -> str:
    """Why the model shown is none of this problem; empty when it is one."""
    related = isinstance(instance, Instance) and instance.hierarchy is not None
    # With a hierarchy the file lists what was chosen, columns with coefficient zero too.
    reason = _inadmissible(instance, (proof.model_index if related else np.flatnonzero(coef)).tolist())
    if not reason and isinstance(instance, Instance) and instance.box is not None:
        reason = str(outlier(instance.box, coef) or "")
    met = instance.equalities if isinstance(instance, GivenInstance) else None
    return reason if reason or met is None else refused(met, coef, proof.dual_value.size)


def _outside(proof: Proof, reason: str) -> Verdict:
    """The verdict on any proof about a problem outside the domain."""
    return Verdict(
        verified=False, reason=reason, lower=0.0, upper=math.inf, claimed_lower=proof.lower, claimed_upper=proof.upper,
        support=(), coef=np.zeros(0), valid_for="", regions=0, exact_regions=0, problem_hash="",
        problem="outside the domain of proof files", assumed=(),
    )  # fmt: skip


def _inadmissible(instance: SearchedInstance, support: list[int]) -> str:
    """Why a support is none of this problem; empty when it is one."""
    what = "columns"
    if isinstance(instance, Instance):
        what = "groups" if instance.groups else what
        units = instance.units_of(support)
        banned = units & {*instance.force_out}
        if banned:
            return f"the model holds {what[:-1]} {min(banned)}, which no model may hold."
        support = sorted({*units, *instance.force_in})
    if len(support) > instance.k:
        return f"the model has {len(support)} {what}, but k is {instance.k}."
    return inadmissible(instance, support) if isinstance(instance, Instance) else ""


def _bound_all(outcome: _Found, proof: Proof, instance: SearchedInstance, exact_limit: float) -> None:
    """What the closed regions prove together, how many they are, and how many needed exact arithmetic."""
    smallest = math.inf
    try:
        for bounds, so_far in _bounds(*_as_searched(proof, instance, outcome.upper), exact_limit):
            smallest, outcome.exact_regions = min(smallest, float(np.min(bounds))), so_far
            outcome.regions += len(bounds)
    except MemoryError:
        smallest = 0.0  # which no objective is below, for any regions that were not checked
        refuse()
    if isinstance(instance, GivenInstance):
        smallest = instance.transfer.lower(smallest, outcome.upper, proof.valid_for != "")
    # The model's own objective bounds nothing from below but what is claimed may not exceed it.
    outcome.lower = min(smallest, outcome.upper)


def _as_searched(proof: Proof, instance: SearchedInstance, upper: float) -> tuple[Proof, SearchedInstance]:
    """The problem whose regions are bounded, and the proof with what they must reach for the claim to hold."""
    if not isinstance(instance, GivenInstance):
        return proof, of_allowed_columns(instance) if isinstance(instance, Instance) else instance
    radii = shown_radii(instance.plain, _of_used_rows(proof, instance))
    if radii is not None:
        instance.limit(radii, proof.valid_for != "")
    needed = instance.transfer.needed(proof.lower, upper, proof.valid_for != "")
    proof = replace(proof, lower=needed if math.isfinite(needed) else proof.lower)
    return _of_used_rows(proof, instance), instance.plain


def _of_used_rows(proof: Proof, instance: GivenInstance) -> Proof:
    """The proof with dual vectors and widths for the rows alone that count."""
    n = instance.plain.A.shape[0]
    if n < proof.n and instance.weights is not None:
        used = instance.weights > 0
        duals, widths = (
            proof.dual_value.reshape(-1, proof.n)[:, used],
            proof.minorant_width.reshape(-1, proof.n)[:, used],
        )
        proof = replace(proof, n=n, dual_value=duals.ravel(), minorant_width=widths.ravel())
    return proof


def _objective(instance: SearchedInstance, coef: FloatArray, claimed: float) -> float:
    """An upper estimate of the model's objective, exact where doubles do not reach the claim."""
    if isinstance(instance, ColumnInstance):
        return selection_objective_above(instance, np.flatnonzero(coef).tolist())
    value = objective_above(instance, coef)
    return value if value <= claimed else min(value, exactly_above(instance, coef))


def _bounds(proof: Proof, instance: SearchedInstance, exact_limit: float) -> Iterator[tuple[FloatArray, int]]:
    """Bounds of the closed regions, batch by batch, and how many needed exact arithmetic so far."""
    n, d = instance.A.shape
    batch = int(max(1, min(1024, BATCH_BYTES // (8 * (n + 8 * d)))))
    if isinstance(instance, ColumnInstance):
        selections = SelectionBounds(instance, proof.valid_for != "", proof.lower, exact_limit)
        for leaves in closed_regions(proof.tree, first_region(d), instance.k, batch):
            yield _selection_bounds(selections, leaves), selections.exact_regions
        return
    regions = AllRegions(instance, proof, exact_limit)
    root = first_region(instance.units, instance.force_in, instance.force_out)
    implied = None if instance.hierarchy is None else instance.hierarchy.rule(instance.k).implied
    for leaves in closed_regions(proof.tree, root, instance.k, batch, implied):
        yield regions.bounds(leaves), regions.exact_regions


def _selection_bounds(selections: SelectionBounds, leaves: Leaves) -> FloatArray:
    result, counting = np.zeros(len(leaves.states)), SelectionCounting(selections)
    for row in range(len(leaves.states)):
        state, witness = leaves.states[row], int(leaves.witness[row])
        included, candidates = np.flatnonzero(state == IN).tolist(), np.flatnonzero(state == FREE).tolist()
        if witness == EIGENVALUES:
            result[row] = selections.bound(included, candidates)
        elif witness == BY_COUNTING and counting.counted(included, candidates):
            result[row] = selections.target
    return result


class _About:
    """The caller's problem, in words."""

    def __init__(self, instance: AnyInstance) -> None:
        self.instance = instance
        self.n, self.d = instance.A.shape
        self.groups = len(getattr(instance, "groups", ()))
        self.bounds = getattr(instance, "box", None) is not None
        self.hash = problem_hash(instance)

    def verdict(
        self, proof: Proof, reason: str, lower: float, upper: float, coef: FloatArray, regions: int = 0, exact: int = 0
    ) -> Verdict:
        """Everything in one place."""
        return Verdict(
            verified=not reason, reason=reason, lower=lower, upper=upper,
            claimed_lower=proof.lower, claimed_upper=proof.upper,
            support=tuple(np.flatnonzero(coef).tolist()), coef=coef, valid_for=self.valid_for(proof),
            regions=regions, exact_regions=exact,
            problem_hash=self.hash, problem=self.words(), assumed=self.assumed(),
        )  # fmt: skip

    def valid_for(self, proof: Proof) -> str:
        """The claim's restriction in words."""
        if not proof.valid_for:
            return ""
        if isinstance(self.instance, ColumnInstance):
            return f"reconstructions with |x_jl| ||a_j|| <= {RECONSTRUCTION:g} ||a_l||"
        radius = RADIUS if self.instance.formulas.quadratic and not self.bounds else MODEL_RADIUS
        return f"models with |x_j| ||a_j|| <= {radius:g} ||y||"

    def words(self) -> str:
        """The problem in words."""
        instance = self.instance
        size = f"n={self.n}, d={self.d}, k={instance.k}"
        if isinstance(instance, ColumnInstance):
            return f"||A - S S+ A||_F^2 over at most k columns S of A, {size}"
        model = "Ax + c" if instance.intercept else "Ax"
        loss = f"{'weighted ' if instance.weights is not None else ''}{instance.formulas.words()}, lam={instance.lam!r}"
        for name in ("force_in", "force_out"):
            columns = getattr(instance, name)
            loss += f", {name}={','.join(map(str, columns))}" if columns else ""
        limit = f"on at most k of {self.groups} groups of columns" if self.groups else "with at most k non-zeros"
        if instance.hierarchy is not None:
            loss += f", {instance.hierarchy.words()}"
        if instance.box is not None:
            limited = int(np.count_nonzero(np.isfinite(instance.box.lower) | np.isfinite(instance.box.upper)))
            loss += f", coefficients of {limited} columns within limits"
        if isinstance(instance, GivenInstance) and instance.equalities is not None:
            loss += f", linear equalities of coefficients: {len(instance.equalities.right)}"
        ridge = "||Sx||^2, S the columns' sizes," if getattr(instance, "scale", False) else "||x||^2"
        return f"L({model}) + (lam/2){ridge} over x {limit}, {loss}, {size}"

    def assumed(self) -> tuple[str, ...]:
        """What is taken for granted about this machine's arithmetic."""
        if isinstance(self.instance, ColumnInstance):
            return (ASSUMED, ASSUMED_SINGULAR_VALUES)
        plugin = self.instance.plugin
        rests = () if plugin is None else (f"the formulas of {plugin.name} loss in {type(plugin).__module__} hold",)
        return (ASSUMED, *((ASSUMED_LOGARITHMS,) if self.instance.formulas.logarithms else ()), *rests)


__all__ = ["AnyInstance", "MalformedError", "Verdict", "problem_hash", "verify"]
