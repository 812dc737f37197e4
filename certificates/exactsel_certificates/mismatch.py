"""Why a proof is about another problem than the caller's, in one sentence. The second checker says the same."""

from __future__ import annotations

from collections.abc import Iterator

from exactsel_certificates.container import Proof
from exactsel_certificates.formula import ColumnInstance
from exactsel_certificates.identity import AnyInstance

ANOTHER = "the proof is about another problem"

FLAG_WORDS = {
    "weights": "row weights", "intercept": "an intercept", "scale": "scaled columns",
    "bounds": "limits on coefficients", "equalities": "linear equalities on coefficients",
}  # fmt: skip

OPTIONS = {"bounds": "--nonnegative, --bounds and --max-coef", "equalities": "--sum-to and --equality"}


def mismatch(proof: Proof, instance: AnyInstance, own_hash: str) -> str:
    """What differs between the proof and the problem, whose hash is ``own_hash``; empty when nothing does."""
    for what, theirs, ours, option in _compared(proof, instance):
        if theirs != ours:
            asks = "leave out" if (what, theirs) in (("number of groups", 0), ("constraint", "none")) else "give"
            return f"{ANOTHER}: its {what} is {theirs!r}, but {ours!r} was given; {asks} {option} as for the solve."
    for name, words in FLAG_WORDS.items():
        theirs, ours = bool(getattr(proof, name)), name in _flags(instance)
        if theirs != ours:
            has, asks = ("has", "leave out") if ours else ("lacks", "give")
            return (
                f"{ANOTHER}: this one {has} {words}, unlike that of the proof; {asks} "
                f"{OPTIONS.get(name, f'--{name}')} as for the solve."
            )
    return "" if proof.problem_hash == own_hash else _other_hash(instance)


def _compared(proof: Proof, instance: AnyInstance) -> Iterator[tuple[str, object, object, str]]:
    """What is compared, in the proof and in the problem, and the option that says it."""
    css, (n, d) = isinstance(instance, ColumnInstance), instance.A.shape
    related = getattr(instance, "hierarchy", None)
    yield "family", proof.family, "css" if css else "regression", "--problem"
    yield "loss", proof.loss, "" if css else getattr(instance, "loss", ""), "--loss"
    yield "number of rows", proof.n, n, "the same data"
    yield "number of columns", proof.columns or proof.d, d, "the same data"
    yield "k", proof.k, instance.k, f"-k {proof.k}"
    yield "number of groups", proof.groups or 0, len(getattr(instance, "groups", ())), "--groups"
    constraint = "none" if related is None else str(related.kind)
    yield "constraint", proof.hierarchy or "none", constraint, "--hierarchy, --not-both and --per-group"


def _flags(instance: AnyInstance) -> set[str]:
    """The flags of the problem that are set."""
    has = {name for name in ("weights", "equalities") if getattr(instance, name, None) is not None}
    has |= {name for name in ("intercept", "scale") if getattr(instance, name, False)}
    return has | ({"bounds"} if getattr(instance, "box", None) is not None else set())


def _other_hash(instance: AnyInstance) -> str:
    if isinstance(instance, ColumnInstance):
        return f"{ANOTHER}: its hash is not that of the given data; give the same data as for the solve."
    values = {"lam": float(instance.lam), **instance.formulas.parameters}
    parameters = " and ".join(f"{name} = {float(value)!r}" for name, value in values.items())
    return (
        f"{ANOTHER}: its hash is not that of the given data with {parameters}; give the data and options of the solve, "
        "such as --lam and --force-in."
    )
