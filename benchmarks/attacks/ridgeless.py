"""Proofs about Huber and logistic loss with lam = 0, forged one part at a time, against both checkers.

Such a proof rests on limits of the coefficients, which a checker finds by itself around a point the file names. So that
point is changed a little and a lot, exchanged, and left out, and so is all else that could matter: the points of the
regions, the minorant, the tree, the model (of the empty one, too), the claim, its scope, the version, and files about
the same data with a ridge, another threshold or fewer columns under the name of this problem.

Every forgery makes three claims: that of the honest proof, one a billionth above the optimum, and one far above all.
What is accepted must be true, and so must be what a checker says it has established.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.cases import Case, quiet_problem
from benchmarks.attacks.honest import second_opinion
from benchmarks.attacks.judging import Finding
from benchmarks.attacks.raw_files import Array, RawFile
from benchmarks.attacks.running import Outcome, kind_of
from benchmarks.attacks.solves import delta_of

SECOND = 0.15
"""Of the forgeries those that the checker in fractions is asked about, too; about what is accepted it always is."""

SLIVER = 1e-9

FACTORS = (1.0 + 1e-9, 1.001, 0.5, 2.0, -1.0, 0.0, 1e6, 1e150, np.nan, np.inf)

CLOSE, USE, COUNTED, MINORANT = 4, 5, 6, 7
LIMIT = "limit_point"


@dataclass(frozen=True)
class Subject:
    """A problem, its proof, other files that are put into it, and the truth."""

    case: Case
    delta: float | None
    instance: Any
    file: RawFile
    others: dict[str, RawFile]
    truth: Any


def ridgeless_case(seed: int) -> Case:
    """A small problem without a ridge that mostly has a best model."""
    rng = np.random.default_rng([1210, seed])
    loss = ("huber", "logistic")[seed % 2]
    d = int(rng.integers(1, 5))
    n = 2 * d + int(rng.integers(4, 9))
    A = rng.integers(-2, 3, (n, d)).astype(float) if rng.random() < 0.3 else rng.standard_normal((n, d))
    if rng.random() < 0.2:
        A[:, int(rng.integers(d))] = 0.0
    if rng.random() < 0.3:
        A = A * 10.0 ** rng.integers(-3, 4, d)
    if rng.random() < 0.2:
        A = A + 100.0 * rng.integers(0, 2, d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if loss == "logistic" else np.round(2.0 * rng.standard_normal(n), 3)
    if loss == "huber":
        y[int(rng.integers(n))] += 50.0
    y[:2] = 1.0, -1.0
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.1, 0.3, 0.3, 0.3]) if rng.random() < 0.3 else None
    if weights is not None:
        weights[:2] = 1.0
    labels = tuple(f"g{j // 2}" for j in range(d)) if d > 1 and rng.random() < 0.15 else None
    units = d if labels is None else (d + 1) // 2
    k = int(rng.integers(0, units + 1)) if rng.random() < 0.3 else int(rng.integers(1, units + 1))
    outside = (int(rng.integers(units)),) if units > 1 and rng.random() < 0.15 else ()
    return Case(
        A, y, k, loss, 0.0, float(10.0 ** rng.uniform(-0.5, 0.5)) if loss == "huber" else None, weights,
        bool(rng.random() < 0.5), bool(rng.random() < 0.25), force_out=outside, labels=labels, kind="without a ridge",
    )  # fmt: skip


def subject_of(seed: int) -> Subject:
    """What is forged with this seed; InputError where the problem is refused."""
    from exactsel.proofs.writer import instance_of
    from exactsel_dev.campaigns.brute_force import Truth

    case = ridgeless_case(seed)
    problem, options = quiet_problem(case), dict[str, Any](threads=1)
    if seed % 3 == 1:  # all left to the tree
        options |= {"heuristics": "none", "subtrees": False, "batch": 1, "rel_eps": 0.0}
    delta = delta_of(problem)
    others = {
        "with a ridge": replace(case, lam=1.0), "with a thin ridge": replace(case, lam=1e-6),
        "of fewer columns": replace(case, k=max(0, case.k - 1)), "on other rows": replace(case, A=case.A[::-1]),
    }  # fmt: skip
    if case.loss == "huber":
        others["of another threshold"] = replace(case, delta=2.0 * (delta or 1.0))
    made = {name: file for name, other in others.items() if (file := _solved(other, options)) is not None}
    file = _solved(case, options)
    assert file is not None
    return Subject(case, delta, instance_of(problem), file, made, Truth(_tiny(case, delta)))


def _solved(case: Case, options: dict[str, Any]) -> RawFile | None:
    from exactsel import solve
    from exactsel.errors import InputError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.exsel"
        try:
            solve(quiet_problem(case), proof=path, signals=(), **options)
        except InputError:
            return None
        return RawFile.of(path.read_bytes())


def _tiny(case: Case, delta: float | None) -> Any:
    """The case for the oracle of ``exactsel dev fuzz``, which shares no line with the checkers."""
    from exactsel.testing.instances import TinyInstance

    groups = None if case.labels is None else tuple(label or "" for label in case.labels)
    return TinyInstance(
        case.A, case.y, case.k, case.loss, 0.0, 1.0 if delta is None else delta, case.weights, case.intercept,
        case.scale, case.force_in, case.force_out, groups,
    )  # fmt: skip


# Forgeries


def forgeries(rng: Any, at: Subject) -> Iterator[tuple[str, RawFile]]:
    """Names, and files with one thing wrong; the names without numbers are classes to count by."""
    yield "nothing", at.file
    yield from _limit_points(rng, at.file)
    yield from _numbers(rng, at.file)
    yield from _minorants(rng, at.file)
    yield from _trees(rng, at.file)
    yield from _headers(at.file)
    yield from _models(at)
    for name, other in at.others.items():
        yield from _transplants(name, at.file, other)


def _i4(*values: int) -> Array:
    return np.array(values, np.int32)


def _limit_points(rng: Any, file: RawFile) -> Iterator[tuple[str, RawFile]]:
    many = file.arrays["point_size"].size
    for number in (*range(many), -1, many, many + 1, 2**31 - 1, -(2**31)):
        yield "another limit point", file.holding(limit_point=_i4(number))
    yield "limit point: none", file.holding(limit_point=_i4())
    yield "limit point: two", file.holding(limit_point=_i4(0, 0))
    yield "limit point: not there", file.holding(limit_point=None)
    for value in (np.nan, np.inf, 0.0):
        yield "limit point: no whole number", file.holding(limit_point=np.array([value]))
    named = int(file.arrays[LIMIT][0])
    if not 0 <= named < many:
        return
    places, values = file.points()[named], file.arrays["point_value"]
    for factor in FACTORS:
        yield "its coefficients multiplied", file.holding(point_value=_times(values, places, factor))
        if places.size:
            one = places[[int(rng.integers(places.size))]]
            yield "one of its coefficients multiplied", file.holding(point_value=_times(values, one, factor))


def _times(values: Array, places: Array, factor: float) -> Array:
    made = values.copy()
    with np.errstate(all="ignore"):
        made[places] = made[places] * factor if factor else 0.0
    return made


def _numbers(rng: Any, file: RawFile) -> Iterator[tuple[str, RawFile]]:
    for name in ("point_value", "dual_value"):
        values = file.arrays[name]
        if not values.size:
            continue
        for factor in FACTORS:
            yield f"{name} multiplied", file.holding(**{name: _times(values, np.arange(values.size), factor)})
            one = rng.integers(0, values.size, 1)
            yield f"one of {name} multiplied", file.holding(**{name: _times(values, one, factor)})
        yield f"{name} in another order", file.holding(**{name: rng.permutation(values)})
        yield f"{name} cut off", file.holding(**{name: values[:-1]})
        yield f"{name}: none", file.holding(**{name: values[:0]})
    curvature = np.full(file.header["d"], 1e-3)
    yield "a curvature that is none", file.holding(curvature=curvature)


def _minorants(rng: Any, file: RawFile) -> Iterator[tuple[str, RawFile]]:
    many, n = file.arrays["point_size"].size, file.header["n"]
    points, widths = file.arrays["minorant_point"], file.arrays["minorant_width"]
    for factor in FACTORS if widths.size else ():
        everywhere = np.arange(widths.size)
        yield "minorant widths multiplied", file.holding(minorant_width=_times(widths, everywhere, factor))
        one = rng.integers(0, widths.size, 1)
        yield "one minorant width multiplied", file.holding(minorant_width=_times(widths, one, factor))
    for number in (-1, many, 2**31 - 1, 0):
        yield "another minorant point", file.holding(minorant_point=_i4(*[number] * max(1, points.size)))
    yield "minorant without widths", file.holding(minorant_point=_i4(0), minorant_width=widths[:0])
    for width in (0.0, 1e-3, 1.0, 1e30, -1.0, np.nan):
        made = file.holding(minorant_point=_i4(0), minorant_width=np.full(2 * n, width, np.float32))
        for word in (COUNTED, MINORANT):
            yield "minorant made up", made.holding(tree=_i4(8 * 0 + MINORANT, word if word == COUNTED else CLOSE))


def _trees(rng: Any, file: RawFile) -> Iterator[tuple[str, RawFile]]:
    tree, many = file.arrays["tree"], file.arrays["point_size"].size
    bare = file.holding(minorant_point=_i4(), minorant_width=np.zeros(0, np.float32))
    for witness in (0, 1, 2, *range(3, 3 + 2 * many + 4)):
        yield "closed at once", bare.holding(tree=_i4(8 * witness + USE, CLOSE))
        yield "closed at once", file.holding(tree=_i4(8 * witness + USE, CLOSE))
    yield "closed at once", bare.holding(tree=_i4(CLOSE))
    yield "counted at once", file.holding(tree=_i4(COUNTED))
    for _ in range(12):
        made = tree.copy()
        made[int(rng.integers(tree.size))] = 8 * int(rng.integers(-1, 6)) + int(rng.integers(8))
        yield "another word", file.holding(tree=made)
    yield "half a tree", file.holding(tree=tree[: tree.size // 2])
    yield "no tree", file.holding(tree=tree[:0])


def _headers(file: RawFile) -> Iterator[tuple[str, RawFile]]:
    for valid_for in ("bounded models", "all models", None, 1, ...):
        yield "valid_for", file.headed(valid_for=valid_for)
    for version in (0, 2, 6, 1.0, "1", True, None, ...):
        yield "version", file.headed(version=version)
        yield "version, limits left out", file.holding(limit_point=None).headed(version=version)
        plain = file.holding(limit_point=None, minorant_point=None, minorant_width=None)
        yield "version, limits and minorant left out", plain.headed(version=version)
    for name in ("loss", "family", "k", "n", "d", "problem_hash", "weights", "intercept", "scale", "groups"):
        for value in (None, True, 0, 1, -1, "huber", "logistic", "quadratic", "css", "regression", float("nan"), ...):
            yield "header", file.headed(**{name: value})


def _models(at: Subject) -> Iterator[tuple[str, RawFile]]:
    """What is said of the model, and of the empty one: lower bounds up to what it costs, and a little above."""
    file = at.file
    for factor in FACTORS:
        values = file.arrays["model_value"]
        yield "model multiplied", file.holding(model_value=_times(values, np.arange(values.size), factor))
    empty = file.holding(model_value=np.zeros(0), model_index=_i4())
    yield "the empty model", empty
    worth = float(at.truth.empty)
    for part in (1 - 1e-9, 1.0, 1 + 1e-9, 1.0005, 1.001, 1.002, 2.0):
        yield "the empty model as a bound", empty.headed(lower=(part * worth).hex(), upper=(2 * worth).hex())
        yield "the empty model's cost", empty.headed(upper=(part * worth).hex())


def _transplants(name: str, file: RawFile, other: RawFile) -> Iterator[tuple[str, RawFile]]:
    """Another problem's file under this one's name, whole or in part."""
    ours = {key: file.header.get(key) for key in ("problem_hash", "k", "weights", "intercept", "scale", "groups")}
    kept = other.arrays | {key: file.arrays[key] for key in (LIMIT, "minorant_point", "minorant_width")}
    whole = RawFile(other.header | ours, kept)
    yield f"file {name}", whole
    yield f"file {name}, no minorant", whole.holding(minorant_point=_i4(), minorant_width=np.zeros(0, np.float32))
    yield f"file {name}, as it is", RawFile(other.header | ours, other.arrays)
    yield f"header {name}", RawFile(other.header | ours, file.arrays)
    points = ("point_value", "point_size", "point_index")
    yield f"points {name}", file.holding(**{key: other.arrays[key] for key in points})
    yield f"tree {name}", file.holding(tree=other.arrays["tree"])


# Judging


def attacked(seed: int, share: float = 1.0) -> Outcome:
    """One trial: the forgeries of one proof, all or a share of them, with three claims each."""
    from exactsel.errors import InputError

    outcome = Outcome(seed)
    try:
        at = subject_of(seed)
    except InputError as error:
        outcome.counts[f"refused: {kind_of(error)}"] += 1
        return outcome
    outcome.counts["proofs"] += 1
    rng = np.random.default_rng([1211, seed])
    for what, file in forgeries(rng, at):
        if share < 1.0 and rng.random() > share:
            continue
        for claim, data in claims(file, at):
            judge(f"{what}, {claim}", data, at, rng.random() < SECOND, outcome)
    return outcome


def claims(file: RawFile, at: Subject) -> Iterator[tuple[str, bytes]]:
    """The file with each of the three claims."""
    yield "its own claim", file.data()
    if all(np.array_equal(file.arrays[name], at.file.arrays[name]) for name in ("model_index", "model_value")):
        # No more is ever established than what the model costs: the best one would hide what is wrong.
        file = file.holding(model_value=np.zeros(0), model_index=_i4())
    above = float(at.truth.high) * (1 + SLIVER)
    yield "slightly too much", file.headed(lower=above.hex(), upper=(1e300).hex()).data()
    yield "far too much", file.headed(lower=(1e299).hex(), upper=(1e300).hex()).data()


def judge(what: str, data: bytes, at: Subject, both: bool, outcome: Outcome) -> None:
    """What the checkers say of a file, held against the truth."""
    from exactsel_certificates.checking import verify
    from exactsel_certificates.container import MalformedError, parse_proof

    outcome.counts["forgeries"] += 1
    accepted = False
    try:
        verdict = verify(parse_proof(data), at.instance, exact_limit=1e6)
        accepted = verdict.verified
        outcome.counts["accepted, and true" if accepted else "rejected"] += 1
        claims = (verdict.claimed_lower, verdict.claimed_upper) if accepted else (verdict.lower, verdict.upper)
        outcome.findings += _untrue(what if accepted else f"established, {what}", *claims, at)
    except MalformedError:
        outcome.counts["malformed"] += 1
    except Exception as error:
        outcome.findings.append(Finding(f"exception {type(error).__name__}, {what}", 1.0, str(error)[:200]))
    if accepted or both:
        _second(what, data, at, outcome)


def _second(what: str, data: bytes, at: Subject, outcome: Outcome) -> None:
    from exactsel_certificates.standalone import Malformed

    try:
        said = second_opinion(at.case, at.delta, data)
    except Malformed:
        outcome.counts["second: malformed"] += 1
        return
    except Exception as error:
        outcome.findings.append(Finding(f"second: exception {type(error).__name__}, {what}", 1.0, str(error)[:200]))
        return
    outcome.counts["second: rejected" if said else "second: accepted, and true"] += 1
    established = re.search(r"only (\S+) is proven, the model costs (\S+)", said or "")
    if said == "":
        header = RawFile.of(data).header
        lower, upper = (float.fromhex(header[name]) for name in ("lower", "upper"))
        outcome.findings += _untrue(f"second: {what}", lower, upper, at)
    elif established:
        # Its fractions are shown as the doubles beside them.
        lower, upper = float(established[1]) * (1 - 1e-15), float(established[2]) * (1 + 1e-15)
        outcome.findings += _untrue(f"second: established, {what}", lower, upper, at)


def _untrue(what: str, lower: float, upper: float, at: Subject) -> Iterator[Finding]:
    if np.isfinite(lower) and Fraction(lower) > at.truth.high:
        yield Finding(f"false accept: {what}", 1.0, f"{lower!r} is above the optimum {float(at.truth.high)!r}")
    if np.isfinite(upper) and Fraction(upper) < at.truth.low:
        yield Finding(f"false accept: {what}", 1.0, f"{upper!r} is below the optimum {float(at.truth.low)!r}")
