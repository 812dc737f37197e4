"""Does a proof file prove its claim about the problem at hand?

The problem is the caller's: data, loss, k and lam never come from the file. What comes out is what was established
here, whatever the file says of itself.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from exactsel_certificates.boxes import outlier
from exactsel_certificates.columns import ColumnInstance
from exactsel_certificates.container import VERSION, MalformedError, Proof
from exactsel_certificates.domain import OutsideError, admitted
from exactsel_certificates.exact import RADIUS
from exactsel_certificates.formula import LIMITS, FloatArray, Instance, Limits, row_blocks
from exactsel_certificates.given import GivenInstance, exactly_above, objective_above
from exactsel_certificates.hierarchy import inadmissible, rule_of
from exactsel_certificates.points import shown_radii
from exactsel_certificates.radii import of_allowed_columns
from exactsel_certificates.reduced_regions import AllRegions
from exactsel_certificates.regions import eigenvalue_rows
from exactsel_certificates.selections import RECONSTRUCTION, SelectionBounds, selection_objective_above
from exactsel_certificates.walk import Leaves, closed_regions, first_region

AnyInstance: TypeAlias = Instance | ColumnInstance

BATCH_BYTES = 16 * 2**20
"""What the tables of one batch of regions may take, roughly."""

EXACT_LIMIT = 5e9
"""Multiplications exact arithmetic may take (about ten minutes)."""

ASSUMED = "doubles follow IEEE 754, matrix products are sums of products in any order"
ASSUMED_LOGARITHMS = "logarithms and exponentials of doubles are right to 16 units of 2^-53"
ASSUMED_SINGULAR_VALUES = "singular values are right to 16 (n + d) 2^-53 ||A||"


@dataclass(frozen=True)
class Verdict:
    """What a check has established."""

    verified: bool
    """Whether both claimed numbers hold."""
    reason: str
    """One sentence; empty when verified."""
    lower: float
    """Established: no model with at most k columns, within ``scope``, has a smaller objective."""
    upper: float
    """Established: the model has no larger objective (inf where the file was rejected before this was looked at)."""
    claimed_lower: float
    claimed_upper: float
    support: tuple[int, ...]
    coef: FloatArray
    """(d,) the model shown; 1 at each chosen column for column subset selection."""
    scope: str
    """A restriction of ``lower``, in words; empty when there is none."""
    regions: int
    """Closed regions that were checked."""
    exact_regions: int
    """How many of these needed exact arithmetic."""
    problem_hash: str
    problem: str
    """The problem, in words: the caller's."""
    assumed: tuple[str, ...]

    @property
    def gap(self) -> float:
        """upper - lower, of the established numbers."""
        return self.upper - self.lower

    @property
    def tier(self) -> str:
        """How the bounds were established."""
        return "doubles with all rounding errors taken off" + (
            ", exact where margins are thin" if self.exact_regions else ""
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data; infinities become null."""
        entries = asdict(self) | {"coef": self.coef.tolist(), "gap": self.gap, "tier": self.tier}
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in entries.items()}

    def __str__(self) -> str:
        lines = [f"problem      {self.problem}", f"data         sha256 {self.problem_hash}"]
        if not math.isfinite(self.upper):
            return "\n".join([*lines, f"REJECTED     {self.reason}"])
        lines += [
            f"model        columns {', '.join(map(str, self.support)) or 'none'}: objective at most {self.upper!r}",
            f"lower bound  {self.lower!r}: no model is below{', among ' + self.scope if self.scope else ''}",
            f"gap          at most {self.gap:.6g}",
            f"checked      {self.regions} regions, {self.exact_regions} of them in exact arithmetic ({self.tier})",
            f"assuming     {'; '.join(self.assumed)}",
            "VERIFIED" if self.verified else f"REJECTED     {self.reason}",
        ]
        return "\n".join(lines)


def verify(proof: Proof, instance: AnyInstance, exact_limit: float = EXACT_LIMIT) -> Verdict:
    """Check a proof against the caller's own problem.

    Parameters
    ----------
    proof : Proof
        See :func:`exactsel_certificates.container.read_proof`.
    instance : Instance or ColumnInstance
        The problem as the caller knows it.
    exact_limit : float
        Multiplications exact arithmetic may take, and 200 times as many sets of columns may be counted; where that is
        not enough less is established.

    Returns
    -------
    Verdict
        Its ``lower`` and ``upper`` hold also when the claim does not.

    Raises
    ------
    MalformedError
        When the file's tree is no tree.

    Notes
    -----
    A problem outside the domain of FORMAT.md is rejected before a region is read.
    """
    try:
        instance = admitted(instance)
        if isinstance(instance, GivenInstance):
            admitted(instance.plain)
    except OutsideError as outside:
        return _outside(proof, str(outside))
    about = _About(instance)
    mismatch = about.mismatch(proof)
    if mismatch:
        return about.verdict(proof, mismatch, 0.0, math.inf, np.zeros(about.d), 0, 0)
    coef = np.zeros(about.d)
    coef[proof.model_index] = proof.model_value
    related = isinstance(instance, Instance) and instance.hierarchy is not None
    # With a hierarchy the file lists what was chosen, columns with coefficient zero too.
    reason = _inadmissible(instance, (proof.model_index if related else np.flatnonzero(coef)).tolist())
    if not reason and isinstance(instance, Instance) and instance.box is not None:
        reason = str(outlier(instance.box, coef) or "")
    if reason:
        return about.verdict(proof, reason, 0.0, math.inf, coef, 0, 0)
    upper = _objective(instance, coef, proof.upper)
    smallest, regions, exact = _least_bound(proof, instance, upper, exact_limit)
    # The model's own objective bounds nothing from below but what is claimed may not exceed it.
    lower = min(smallest, upper)
    if not lower >= proof.lower:
        reason = f"a lower bound of {proof.lower!r} is claimed, but only {lower!r} is proven."
    elif not upper <= proof.upper:
        reason = f"the model is said to cost at most {proof.upper!r}, but {upper!r} is what it costs."
    return about.verdict(proof, reason, lower, upper, coef, regions, exact)


def _outside(proof: Proof, reason: str) -> Verdict:
    """The verdict on any proof about a problem outside the domain."""
    return Verdict(
        verified=False, reason=reason, lower=0.0, upper=math.inf, claimed_lower=proof.lower, claimed_upper=proof.upper,
        support=(), coef=np.zeros(0), scope="", regions=0, exact_regions=0, problem_hash="",
        problem="outside the domain of proof files", assumed=(),
    )  # fmt: skip


def _inadmissible(instance: AnyInstance, support: list[int]) -> str:
    """Why a support is none of this problem; empty when it is one."""
    what = "columns"
    if isinstance(instance, Instance):
        what = "groups" if instance.groups else what
        units = instance.units_of(support)
        banned = units & {*instance.must_not}
        if banned:
            return f"the model holds {what[:-1]} {min(banned)}, which no model may hold."
        support = sorted({*units, *instance.must_have})
    if len(support) > instance.k:
        return f"the model has {len(support)} {what}, but k is {instance.k}."
    return inadmissible(instance, support) if isinstance(instance, Instance) else ""


def _least_bound(proof: Proof, instance: AnyInstance, upper: float, exact_limit: float) -> tuple[float, int, int]:
    """What the closed regions prove together, how many they are, and how many needed exact arithmetic."""
    smallest, regions, exact = math.inf, 0, 0
    try:
        for bounds, so_far in _bounds(*_as_searched(proof, instance, upper), exact_limit):
            smallest, regions, exact = min(smallest, float(np.min(bounds))), regions + len(bounds), so_far
    except MemoryError:
        smallest = 0.0  # which no objective is below, whatever the regions that were not looked at
    if isinstance(instance, GivenInstance):
        smallest = instance.transfer.lower(smallest, upper, proof.scope != "")
    return smallest, regions, exact


def _as_searched(proof: Proof, instance: AnyInstance, upper: float) -> tuple[Proof, AnyInstance]:
    """The problem whose regions are bounded, and the proof with what they must reach for the claim to hold."""
    if not isinstance(instance, GivenInstance):
        return proof, of_allowed_columns(instance) if isinstance(instance, Instance) else instance
    found = shown_radii(instance.plain, _of_used_rows(proof, instance))
    if found is not None:
        instance.limit(found)
    needed = instance.transfer.needed(proof.lower, upper, proof.scope != "")
    proof = replace(proof, lower=needed if math.isfinite(needed) else proof.lower)
    return _of_used_rows(proof, instance), instance.plain


def _of_used_rows(proof: Proof, instance: GivenInstance) -> Proof:
    """The proof with dual vectors and widths for the rows alone that count."""
    n = instance.plain.A.shape[0]
    if n < proof.n and instance.weights is not None:
        used = instance.weights > 0
        kept, widths = (
            proof.dual_value.reshape(-1, proof.n)[:, used],
            proof.minorant_width.reshape(-1, proof.n)[:, used],
        )
        proof = replace(proof, n=n, dual_value=kept.ravel(), minorant_width=widths.ravel())
    return proof


def _objective(instance: AnyInstance, coef: FloatArray, claimed: float) -> float:
    """An upper estimate of the model's objective, exact where doubles do not reach the claim."""
    if isinstance(instance, ColumnInstance):
        return selection_objective_above(instance, np.flatnonzero(coef).tolist())
    value = objective_above(instance, coef)
    return value if value <= claimed else min(value, exactly_above(instance, coef))


def _bounds(proof: Proof, instance: AnyInstance, exact_limit: float) -> Iterator[tuple[FloatArray, int]]:
    """Bounds of the closed regions, batch by batch, and how many needed exact arithmetic so far."""
    n, d = instance.A.shape
    batch = int(max(1, min(1024, BATCH_BYTES // (8 * (n + 8 * d)))))
    if isinstance(instance, ColumnInstance):
        selections = SelectionBounds(instance, proof.scope != "", proof.lower, exact_limit)
        for leaves in closed_regions(proof.tree, first_region(d), instance.k, batch):
            yield _eigenvalue_bounds(selections, leaves), selections.exact_regions
        return
    regions = AllRegions(instance, proof, exact_limit)
    root = first_region(instance.units, instance.must_have, instance.must_not)
    implied = None if instance.hierarchy is None else rule_of(instance.hierarchy, instance.k).implied
    for leaves in closed_regions(proof.tree, root, instance.k, batch, implied):
        yield regions.bounds(leaves), regions.exact_regions


def _eigenvalue_bounds(selections: SelectionBounds, leaves: Leaves) -> FloatArray:
    result = np.zeros(len(leaves.states))
    for row in eigenvalue_rows(leaves):
        state = leaves.states[row]
        result[row] = selections.bound(np.flatnonzero(state == 2).tolist(), np.flatnonzero(state == 1).tolist())
    return result


FLAG_WORDS = {
    "weights": "row weights", "intercept": "an intercept", "scale": "scaled columns",
    "bounds": "limits on coefficients",
}  # fmt: skip


class _About:
    """The caller's problem, for comparison and in words."""

    def __init__(self, instance: AnyInstance) -> None:
        self.instance = instance
        self.n, self.d = instance.A.shape
        self.css = isinstance(instance, ColumnInstance)
        self.groups = len(getattr(instance, "groups", ())) or None
        related = getattr(instance, "hierarchy", None)
        self.hierarchy = None if related is None else str(related.kind)
        self.bounds = getattr(instance, "box", None) is not None
        self.hash = problem_hash(instance)

    def mismatch(self, proof: Proof) -> str:
        """Why the proof is about another problem; empty when it is about this one."""
        plain = self.hierarchy is None and proof.hierarchy is None  # else data are as given, whatever else there is
        if plain and isinstance(self.instance, GivenInstance) and proof.version == VERSION:
            return f"the file's version {proof.version} is about data already prepared; write the proof anew."
        mine = ("css", "") if isinstance(self.instance, ColumnInstance) else ("regression", self.instance.loss)
        for name, theirs, ours in (
            ("family", proof.family, mine[0]), ("loss", proof.loss, mine[1]), ("n", proof.n, self.n),
            ("d", proof.d, self.d), ("k", proof.k, self.instance.k), ("groups", proof.groups, self.groups),
            ("hierarchy", proof.hierarchy, self.hierarchy),
            ("weights", proof.weights, getattr(self.instance, "weights", None) is not None),
            ("intercept", proof.intercept, getattr(self.instance, "intercept", False)),
            ("scale", proof.scale, getattr(self.instance, "scale", False)),
            ("bounds", proof.bounds, self.bounds),
        ):  # fmt: skip
            if theirs != ours and isinstance(ours, bool):
                has, asks = ("has", "leave out") if theirs is False else ("lacks", "give")
                option = "--nonnegative and --bounds" if name == "bounds" else f"--{name}"
                return (
                    f"the proof is about another problem: this one {has} {FLAG_WORDS[name]}, unlike that of the proof; "
                    f"{asks} {option} as for the solve."
                )
            if theirs != ours:
                return f"the proof is about another problem: its {name} is {theirs!r}, not {ours!r}."
        if proof.problem_hash != self.hash:
            return "the proof is about other data or parameters: its hash is not that of this problem."
        return ""

    def verdict(
        self, proof: Proof, reason: str, lower: float, upper: float, coef: FloatArray, regions: int, exact: int
    ) -> Verdict:
        """Everything in one place."""
        return Verdict(
            verified=not reason, reason=reason, lower=lower, upper=upper,
            claimed_lower=proof.lower, claimed_upper=proof.upper,
            support=tuple(np.flatnonzero(coef).tolist()), coef=coef, scope=self.scope(proof),
            regions=regions, exact_regions=exact,
            problem_hash=self.hash, problem=self.words(), assumed=self.assumed(),
        )  # fmt: skip

    def scope(self, proof: Proof) -> str:
        """The claim's restriction in words."""
        if not proof.scope:
            return ""
        if self.css:
            return f"reconstructions with |x_jl| ||a_j|| <= {RECONSTRUCTION:g} ||a_l||"
        return f"models with |x_j| ||a_j|| <= {RADIUS:g} ||y||"

    def words(self) -> str:
        """The problem in words."""
        instance = self.instance
        size = f"n={self.n}, d={self.d}, k={instance.k}"
        if isinstance(instance, ColumnInstance):
            return f"||A - S S+ A||_F^2 over at most k columns S of A, {size}"
        delta = f"(delta={instance.delta!r})" if instance.loss == "huber" else ""
        model = "Ax + c" if instance.intercept else "Ax"
        loss = f"{'weighted ' if instance.weights is not None else ''}{instance.loss}{delta}, lam={instance.lam!r}"
        for name in ("must_have", "must_not"):
            columns = getattr(instance, name)
            loss += f", {name}={','.join(map(str, columns))}" if columns else ""
        limit = f"on at most k of {self.groups} groups of columns" if self.groups else "with at most k non-zeros"
        if isinstance(instance.hierarchy, Limits):
            loss += f", at most {instance.hierarchy.most} from each of {len(instance.hierarchy.groups)} larger groups"
        elif instance.hierarchy is not None:
            loss += f", {self.hierarchy} hierarchy ({len(instance.hierarchy.parents)} with parents)"
        if instance.box is not None:
            limited = int(np.count_nonzero(np.isfinite(instance.box.lower) | np.isfinite(instance.box.upper)))
            loss += f", coefficients of {limited} columns within limits"
        ridge = "||Sx||^2, S the columns' sizes," if getattr(instance, "scale", False) else "||x||^2"
        return f"L({model}) + (lam/2){ridge} over x {limit}, {loss}, {size}"

    def assumed(self) -> tuple[str, ...]:
        """What is taken for granted about this machine's arithmetic."""
        if self.css:
            return (ASSUMED, ASSUMED_SINGULAR_VALUES)
        return (ASSUMED, ASSUMED_LOGARITHMS) if self.instance.loss in ("logistic", "poisson") else (ASSUMED,)


def problem_hash(instance: AnyInstance) -> str:
    """sha256 over everything that defines the problem (FORMAT.md)."""
    n, d = instance.A.shape
    header: dict[str, Any] = {"n": n, "d": d, "k": instance.k}
    if isinstance(instance, ColumnInstance):
        header |= {"problem": "css"}
    else:
        parameters = {"delta": float(instance.delta).hex()} if instance.loss == "huber" else {}
        header |= {"loss": instance.loss, "parameters": parameters, "lam": float(instance.lam).hex()}
        if instance.must_have or instance.must_not:
            header |= {"must_have": instance.must_have, "must_not": instance.must_not}
        header |= {"intercept": True} if instance.intercept else {}
        header |= {"weights": True} if instance.weights is not None else {}
        header |= {"scale": True} if getattr(instance, "scale", False) else {}
        header |= {"groups": instance.groups} if instance.groups else {}
        if instance.hierarchy is not None:
            name = LIMITS if isinstance(instance.hierarchy, Limits) else "hierarchy"
            header |= {name: instance.hierarchy._asdict()}
        if instance.box is not None:
            header |= {"bounds": [[float(v).hex() for v in side] for side in instance.box]}
    digest = hashlib.sha256(b"exactsel-problem-v1\0" + json.dumps(header, sort_keys=True).encode())
    for part in row_blocks(instance.A):
        digest.update(np.ascontiguousarray(part, dtype="<f8").data)
    if isinstance(instance, Instance):
        digest.update(np.asarray(instance.y, dtype="<f8").tobytes())
        if instance.weights is not None:
            digest.update(np.asarray(instance.weights, dtype="<f8").tobytes())
    return digest.hexdigest()


__all__ = ["AnyInstance", "MalformedError", "Verdict", "problem_hash", "verify"]
