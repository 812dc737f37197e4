"""Damaged proof files: bytes flipped, trees cut and swapped, points and claims changed; and what must hold of them.

The rule is not that every damaged file is rejected, since much damage is harmless. It is that whatever is accepted is
true: the claimed lower bound is not above the optimum, found by trying every support.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from checked_solve import random_options
from grouped_cases import random_grouped
from instances_for_tests import optimum_of, random_case

from exactsel.errors import UnsupportedError
from exactsel.proofs.writer import instance_of
from exactsel.solving.solver import solve
from exactsel_certificates.checking import Verdict, verify
from exactsel_certificates.container import (
    ARRAYS,
    CLOSE,
    FIT,
    FLAGS,
    SPLIT_IN,
    SPLIT_OUT,
    USE,
    MalformedError,
    header_bytes,
    parse_proof,
)

HEADER = ("family", "loss", "n", "d", "k", "groups", "problem_hash", "lower", "upper", "scope")

SLIVER = 1e-9
"""Times the optimum: a claim this much above it must be rejected."""


class Subject(NamedTuple):
    """A small problem, its proof, and the optimum."""

    instance: object
    data: bytes
    low: float
    high: float


def subject(seed):
    """A random problem solved with random options; None where the claim is not plain (a scope, an optimum of zero)."""
    case = random_case(seed)
    problem, optimum = case.problem(), optimum_of(case)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        solve(problem, proof=file, signals=(), **random_options(seed, case))
        data = file.read_bytes()
    if parse_proof(data).scope or not optimum.high > 1e-9:
        return None
    return Subject(instance_of(problem), data, optimum.low, optimum.high)


def grouped_subject(seed):
    """The same for a problem whose columns are in groups; None also where it cannot be served (lam = 0)."""
    case = random_grouped(seed)
    problem, optimum = case.problem(), case.optimum()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        try:
            solve(problem, proof=file, signals=())
        except UnsupportedError:
            return None
        data = file.read_bytes()
    return Subject(instance_of(problem), data, optimum.low, optimum.high) if optimum.high > 1e-9 else None


def as_bytes(proof, **flags):
    """A proof as the bytes of a file, whatever nonsense it holds."""
    entries = {name: getattr(proof, name) for name in HEADER}
    entries |= {name: True for name in FLAGS if getattr(proof, name)} | flags
    entries |= {name: float(entries[name]).hex() for name in ("lower", "upper")}
    arrays = {name: np.ascontiguousarray(getattr(proof, name)) for name in ARRAYS}
    described = {name: (_type(array), array.size) for name, array in arrays.items()}
    return header_bytes(entries, described) + b"".join(arrays[name].tobytes() for name in ARRAYS)


def _type(array):
    return "u1" if array.dtype == np.uint8 else array.dtype.newbyteorder("<").str


def check(data, instance):
    """The verdict on a file, None where it is malformed; any other exception is a fault of the checker."""
    try:
        verdict = verify(parse_proof(data), instance, exact_limit=1e6)
    except MalformedError:
        return None
    assert isinstance(verdict, Verdict)
    return verdict


def outcome(data, at):
    """``malformed``, ``rejected`` or ``accepted``; AssertionError where something untrue is accepted or established."""
    verdict = check(data, at.instance)
    if verdict is None:
        return "malformed"
    ceiling = at.high * (1.0 + 1e-12)
    if not verdict.scope:
        assert verdict.lower <= ceiling, f"established {verdict.lower!r}, but the optimum is {at.high!r}"
    if not verdict.verified:
        return "rejected"
    assert verdict.claimed_upper >= at.low * (1.0 - 1e-9), f"accepted an objective of {verdict.claimed_upper!r}"
    return "accepted"


def _bits(rng, data):
    raw = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(raw)


def _cut(rng, data):
    return data[: int(rng.integers(len(data)))] if rng.random() < 0.7 else data + bytes(int(rng.integers(1, 9)))


def _swapped(rng, data):
    raw = bytearray(data)
    size = int(rng.choice([1, 4, 8]))
    if len(raw) > 3 * size:
        a, b = sorted(int(v) for v in rng.integers(0, len(raw) - size, 2))
        raw[a : a + size], raw[b : b + size] = raw[b : b + size], raw[a : a + size]
    return bytes(raw)


def _tree_word(rng, proof):
    tree = proof.tree.copy()
    place = int(rng.integers(tree.size))
    tree[place] = 8 * int(rng.integers(-1, proof.d + 2)) + int(rng.integers(8))
    return replace(proof, tree=tree)


def _tree_order(rng, proof):
    tree = proof.tree.copy()
    a, b = rng.integers(0, tree.size, 2)
    tree[a], tree[b] = tree[b], tree[a]
    return replace(proof, tree=tree)


def _closed_early(rng, proof):
    """A split, with everything below it, becomes the end of a region."""
    splits = np.flatnonzero((proof.tree & 7 == SPLIT_IN) | (proof.tree & 7 == SPLIT_OUT))
    if not splits.size:
        return replace(proof, tree=proof.tree[:-1])
    start = int(rng.choice(splits))
    missing, end = 1, start
    while missing and end < proof.tree.size:
        kind = proof.tree[end] & 7
        missing += {SPLIT_IN: 1, SPLIT_OUT: 1, CLOSE: -1}.get(int(kind), 0)
        end += 1
    middle = np.array([CLOSE], dtype=np.int32)
    return replace(proof, tree=np.concatenate([proof.tree[:start], middle, proof.tree[end:]]))


def _witness(rng, proof):
    tree = proof.tree.copy()
    places = np.flatnonzero(tree & 7 == USE)
    if places.size:
        most = 4 + 2 * max(proof.point_size.size, 1)
        tree[int(rng.choice(places))] = 8 * int(rng.choice([FIT, rng.integers(0, most)])) + USE
    return replace(proof, tree=tree)


def _numbers(rng, proof):
    name = str(rng.choice(["point_value", "dual_value", "curvature", "model_value"]))
    values = getattr(proof, name).copy()
    if values.size:
        place = int(rng.integers(values.size))
        how = float(rng.choice([np.nan, np.inf, 1e308, -1e300, 0.0, 1e-300, values[place] * 1.5, -values[place]]))
        values[place] = how
        if rng.random() < 0.3:
            with np.errstate(over="ignore", invalid="ignore"):
                values *= float(rng.choice([1.001, 2.0, 1e6, 1e150]))
    return replace(proof, **{name: values})


def _permuted(rng, proof):
    return replace(proof, point_value=rng.permutation(proof.point_value.copy()))


def _scope(rng, proof):
    return replace(proof, scope="bounded models")


def _header(rng, proof):
    name = str(rng.choice(["n", "d", "k", "loss", "family"]))
    value = getattr(proof, name)
    other = value + int(rng.choice([-1, 1])) if isinstance(value, int) else str(rng.choice(["quadratic", "css", ""]))
    return replace(proof, **{name: other})


BYTES = {"bits": _bits, "cut or lengthened": _cut, "swapped bytes": _swapped}

PARTS = {
    "word of the tree": _tree_word, "swapped words": _tree_order, "dropped subtree": _closed_early,
    "another witness": _witness, "numbers": _numbers, "permuted points": _permuted, "scope": _scope, "header": _header,
}  # fmt: skip


def damaged(rng, at):
    """A damaged file, and what was done; every third one also claims slightly too much."""
    proof = parse_proof(at.data)
    lower = at.high * (1.0 + SLIVER) if rng.random() < 1 / 3 else None
    if lower is not None:
        proof = replace(proof, lower=lower, upper=max(proof.upper, at.high * (1.0 + 1e-6)))
    kind = str(rng.choice([*BYTES, *PARTS]))
    data = BYTES[kind](rng, as_bytes(proof)) if kind in BYTES else as_bytes(PARTS[kind](rng, proof))
    return data, kind


def campaign(seeds, each, subject_of=subject):
    """Damage the proof of every seed ``each`` times; counts of (kind, outcome)."""
    counts: dict[tuple[str, str], int] = {}
    for seed in seeds:
        at = subject_of(seed)
        if at is None:
            continue
        rng = np.random.default_rng([77, seed])
        for number in range(each):
            data, kind = damaged(rng, at)
            try:
                result = outcome(data, at)
            except Exception as error:
                raise AssertionError(f"seed {seed}, damage {number} ({kind}): {error!r}") from error
            counts[kind, result] = counts.get((kind, result), 0) + 1
    return counts
