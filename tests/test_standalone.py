"""The checker without numpy: what it verifies is true, what is true and exact it verifies, and nothing surprises it."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from fractions import Fraction as F
from pathlib import Path

import pytest
from click.testing import CliRunner
from forged import forged
from hand_written import (
    CLOSE,
    EIGENVALUES,
    FIT,
    LEAVE_OUT,
    PUT_IN,
    SPLIT_IN,
    USE,
    Case,
    fitted,
    objective,
    optimum,
    prepared,
    random_case,
    random_file,
    slopes,
    strong_file,
    within_scope,
    written,
)

from exactsel_certificates.standalone import Beyond, Malformed, Regression, check, checking, semidefinite
from exactsel_certificates.standalone.algebra import as_float, inverse_root, near, positives, root
from exactsel_certificates.standalone.rows import entropy, logistic

ROOT = Path(__file__).resolve().parents[1]
LOSSES = ("quadratic", "huber", "logistic", "")
HUGE = 1e300


def said(case, file, **claims):
    """The checker's word on a file with these claims."""
    header = file.header | {name: float(value).hex() for name, value in claims.items()}
    return check(file._replace(header=header).data(), **case._asdict())


def established(case, file):
    """The bounds a file proves, told by a claim too high for any."""
    found = re.fullmatch(r"only (\S+) is proven, the model costs (\S+)", said(case, file, lower=1e299, upper=1e299))
    assert found
    return float(found[1]), float(found[2])


def below(value):
    """The largest double that is not above a fraction."""
    near_by = float(value)
    return near_by if F(near_by) <= value else math.nextafter(near_by, -math.inf)


def above(value):
    return math.nextafter(below(value), math.inf)


def soundness(seed):
    """One random problem with a proof of any quality: nothing untrue is established; claims at the bounds."""
    rng = random.Random(seed)
    case = random_case(rng)
    best = optimum(case)
    file = random_file(rng, case, best)
    try:
        lower, upper = established(case, file)
    except Beyond:
        assert not case.loss
        assert file.header["scope"]
        return "beyond"
    slack = 0 if case.loss in ("quadratic", "") else best.value / 10**9 + F(1, 10**12)
    if not file.header["scope"] or within_scope(case, best):
        assert F(math.nextafter(lower, -1.0)) <= best.value + slack, (seed, lower, float(best.value))
        assert said(case, file, lower=above(best.value + slack), upper=HUGE) != "", seed
    assert F(math.nextafter(upper, HUGE)) >= best.value - slack, (seed, upper, float(best.value))
    assert said(case, file, lower=math.nextafter(lower, -1.0), upper=math.nextafter(upper, HUGE)) == "", seed
    assert said(case, file, lower=math.nextafter(lower, HUGE), upper=HUGE) != "", seed
    assert said(case, file, lower=0.0, upper=math.nextafter(upper, -1.0)) != "" or upper == 0, seed
    return "tight" if lower >= float(best.value) * (1 - 1e-6) else "loose"


def test_what_is_verified_is_true():
    outcomes = [soundness(seed) for seed in range(80)]
    assert outcomes.count("tight") > 30
    assert outcomes.count("loose") > 15


@pytest.mark.long
def test_what_is_verified_is_true_thousands_of_times():
    for seed in range(1000, 9000):
        soundness(seed)


@pytest.mark.parametrize("loss", ["quadratic", ""])
def test_the_last_bit_counts(loss):
    """Fits are exact, so the largest double below the optimum is verified and the next one is not."""
    prepared_ones = 0
    for seed in range(120):
        case = random_case(random.Random(f"bit {seed}"), loss)
        best = optimum(case)
        file = strong_file(case, best)
        assert said(case, file, lower=below(best.value), upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value), upper=HUGE) != "", seed
        prepared_ones += case.level and case.scale and case.weights is not None
    assert prepared_ones > 3 or not loss


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("with_duals", [False, True])
def test_points_and_dual_vectors_prove_nearly_everything(loss, with_duals):
    """At the best model of each region, whatever weights, intercept and scale do: bounds lose rounding errors only."""
    tried = 0
    for seed in range(24):
        case = random_case(random.Random(f"points {seed}"), loss)
        if loss != "quadratic" and case.level and len({*case.y}) == 1:
            continue
        best = optimum(case)
        if case.lam < 0.1 or (loss == "logistic" and best.value < F(1, 10**6)):
            continue
        file = strong_file(case, best, with_duals, by_fit=False)
        lower, upper = established(case, file)
        size = max(float(best.value), 1e-9 * float(objective(case, {}, best.c)))
        assert lower >= float(best.value) - 1e-5 * size, (seed, lower, float(best.value))
        assert upper <= float(best.value) + 1e-9 * size, seed
        tried += 1
    assert tried > 7


def test_with_one_place_left_a_fit_looks_at_each_column():
    """So a root with k = 1 needs no tree, and what it proves is the optimum itself."""
    for seed in range(40):
        case = random_case(random.Random(f"one {seed}"), "quadratic")
        case = case._replace(k=1, must_have=[], must_not=[])
        best = optimum(case)
        file = written(case, [8 * FIT + USE, CLOSE], best.x, 0, HUGE)
        assert said(case, file, lower=below(best.value), upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value), upper=HUGE) != "", seed


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_margins_thinner_than_the_digits_of_a_point(loss, monkeypatch):
    """Columns far from zero, a small ridge: the best model in doubles does not prove what the best model costs."""
    alone = []
    for seed in range(12):
        rng = random.Random(f"thin {seed}")
        A = [[rng.gauss(0, 1) * 100.0**j + 1e6 for j in range(3)] for _ in range(6)]
        y = [float(rng.choice([-1, 1])) if loss == "logistic" else rng.gauss(0, 100) for _ in range(6)]
        case = Case(A, y, 2, loss, 1e-5, 50.0, level=rng.random() < 0.5, scale=rng.random() < 0.3)
        best = optimum(case)
        if loss == "logistic" and best.value < F(1, 10):
            continue  # labels that columns tell apart: what the tests find in doubles is not the best model
        file = strong_file(case, best, by_fit=False)
        claim = float(best.value * (1 - F(1, 10**13)))
        assert said(case, file, lower=claim, upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value * (1 + F(1, 10**13))), upper=HUGE) != "", seed
        with monkeypatch.context() as patched:
            patched.setattr(checking, "improved", lambda *_: F(0))
            alone.append(said(case, file, lower=claim, upper=HUGE))
    assert sum(map(bool, alone)) > 2


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_columns_that_share_a_place(loss, monkeypatch):
    """With A = I, y = (1, 1), k = 1 and lam = 1 the relaxation is worth 2/3: both columns have half a place."""
    case = Case([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 1, loss, 1.0, 10.0)
    file = written(case, [8 * 3 + USE, CLOSE], {0: 0.5}, 0, HUGE, [{0: 0.3, 1: 0.5}])
    assert said(case, file, lower=below(F(2, 3)), upper=HUGE) == ""
    assert said(case, file, lower=above(F(2, 3)), upper=HUGE) != ""
    monkeypatch.setattr(checking, "improved", lambda *_: F(0))
    assert said(case, file, lower=0.65, upper=HUGE) != ""


def test_nothing_costs_less_than_zero():
    """Eigenvalues are rounded upwards, so those of columns that two span come to more than there is."""
    case = Case([[1.0, 0.0, 1.0], [0.0, 3.0, 1.0]], [], 2, "", 0.0)
    file = written(case, [8 * EIGENVALUES + USE, CLOSE], {0: 1.0, 1: 1.0}, 0, HUGE)
    assert said(case, file, lower=0.0, upper=0.0) == ""


def test_only_so_many_regions_are_improved(monkeypatch):
    case = random_case(random.Random("many"), "huber")._replace(k=1)
    file = strong_file(case, optimum(case), by_fit=False)
    calls = []
    monkeypatch.setattr(checking, "improved", lambda *_: calls.append(1) or F(0))
    monkeypatch.setattr(checking, "POLISHED", 1)
    assert said(case, file, lower=1e299) != ""
    assert len(calls) == 1


def smallest_eigenvalue(case):
    """Of the prepared 2 x 2 Gram matrix, by hand."""
    w, s = case.row_weights(), case.squares()
    columns = [[F(row[j]) for row in case.A] for j in range(2)]
    total = sum(w)
    means = [sum(a * b for a, b in zip(w, c, strict=True)) / total if case.level else F(0) for c in columns]
    (p, q), (_, r) = [
        [
            float(sum(a * (u - means[i]) * (v - means[j]) for a, u, v in zip(w, columns[i], columns[j], strict=True)))
            / math.sqrt(s[i] * s[j])
            for j in range(2)
        ]
        for i in range(2)
    ]
    return (p + r) / 2 - math.hypot((p - r) / 2, q)


def test_curvature_is_about_prepared_columns(monkeypatch):
    """Just below the smallest eigenvalue it is taken, just above it is not; at the best model it proves the most."""
    monkeypatch.setattr(checking, "improved", lambda *_: F(0))
    tried = 0
    for seed in range(60):
        rng = random.Random(f"curved {seed}")
        A = [[rng.gauss(0, 1), rng.gauss(3, 5)] for _ in range(5)]
        weights = [rng.choice([0.5, 1.0, 3.0, 20.0]) for _ in range(5)] if rng.random() < 0.6 else None
        case = Case(
            A, [rng.gauss(2, 1) for _ in range(5)], 1, "quadratic", rng.choice([0.0, 0.01]), 1.0, weights,
            rng.random() < 0.5, rng.random() < 0.7,
        )  # fmt: skip
        eigenvalue = smallest_eigenvalue(case)
        best = fitted(case, [0, 1])
        tree = [8 * 3 + USE, 8 * 0 + LEAVE_OUT, CLOSE]
        bounds = []
        for factor in (0.999999, 1.000001):
            file = written(
                case, tree, {}, 0, HUGE, [prepared(case, best.x)], curvature=[case.lam + factor * eigenvalue] * 2
            )
            bounds.append(established(case, file)[0])
        assert F(math.nextafter(bounds[0], -1)) <= optimum(case).value, seed
        lost = (
            best.value
            + (F(case.lam) + F(eigenvalue))
            * min(v * v * s for v, s in zip(best.x.values(), case.squares(), strict=True))
            / 2
        )
        assert bounds[0] == pytest.approx(float(lost), rel=1e-5), seed
        without = written(case, tree, {}, 0, HUGE, [prepared(case, best.x)])
        assert bounds[1] == established(case, without)[0] < bounds[0], seed
        tried += case.scale and case.weights is not None and case.level
    assert tried > 5


def test_an_intercept_far_away():
    """The case that was verified 200 times too high, preparation included."""
    case = Case([[0.0], [1.0], [0.0], [1.0], [2.0]], [2.0**52 + v for v in (1, 2, 1, 2, 3)], 1, lam=0.001, level=True)
    best = optimum(case)
    assert float(best.value) == pytest.approx(0.00049982, abs=1e-8)
    for with_fit in (True, False):
        file = strong_file(case, best, by_fit=with_fit)
        assert said(case, file, lower=below(best.value * (1 - F(1, 10**9))), upper=above(best.value * 2)) == ""
        assert said(case, file, lower=0.1005, upper=HUGE) != ""
    assert said(case, file, lower=0, upper=above(best.value * 2)) == ""


def test_scaling_is_that_of_the_rows_that_count():
    case = Case([[1.0], [3.0], [1e9]], [1.0, 5.0, 7.0], 1, lam=2.0, weights=[1.0, 1.0, 0.0], level=True, scale=True)
    # Prepared: columns -1 and 1, targets -2 and 2; 1/2 (2 (2 - x)^2 + 2 x^2) is least at x = 1.
    assert optimum(case).value == 2
    file = strong_file(case, optimum(case))
    assert said(case, file, lower=2.0, upper=2.0) == ""
    assert file.arrays["model_value"] == [1.0]


# --- versions, flags, scope ---


def test_older_versions_are_rejected_where_they_meant_something_else():
    case = random_case(random.Random("old"), "quadratic")._replace(level=True, weights=None, scale=False)
    file = strong_file(case, optimum(case))
    header = file.header | {"version": 1}
    assert "older version" in check(file._replace(header=header).data(), **case._asdict())
    plain = case._replace(level=False)
    data = strong_file(plain, optimum(plain))
    assert check(data.data(), **plain._asdict()) == ""
    for version in (2, 3, 0, True, "1", None):
        with pytest.raises(Malformed, match="is no proof"):
            check(data._replace(header=data.header | {"version": version}).data(), **plain._asdict())


@pytest.mark.parametrize("flag", ["weights", "intercept", "scale"])
def test_flags_that_are_not_the_problems(flag):
    case = random_case(random.Random("flags"), "quadratic")
    case = case._replace(weights=[1.0] * len(case.y), level=True, scale=True)
    file = strong_file(case, optimum(case))
    assert check(file.data(), **case._asdict()) == ""
    for value in (None, False, 1, "true"):
        changed = file._replace(header=file.header | {flag: value})
        if value is None:
            assert check(changed.data(), **case._asdict()) == "another problem"
        else:
            with pytest.raises(Malformed, match="flags"):
                check(changed.data(), **case._asdict())
    name = "level" if flag == "intercept" else flag
    other = case._replace(**{name: None if flag == "weights" else False})
    assert check(file.data(), **other._asdict()) == "another problem"


def test_other_data_are_another_problem():
    case = random_case(random.Random("data"), "huber")
    case = case._replace(weights=[1.0] * len(case.y), delta=1.0)
    data = strong_file(case, optimum(case)).data()
    for other in (
        case._replace(y=[v + 1 for v in case.y]), case._replace(weights=[2.0] * len(case.y)), case._replace(lam=7.0),
        case._replace(delta=2.0), case._replace(A=[[-v for v in row] for row in case.A]),
        case._replace(A=[*case.A, case.A[0]], y=[*case.y, 0.0], weights=[*case.weights, 0.0]),
    ):  # fmt: skip
        assert check(data, **other._asdict()) == "another problem"


def test_a_scope_is_about_centred_and_weighted_columns():
    """With near copies and lam = 0 only bounded models can be spoken of; the limit moves with the data's spread."""
    A = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0 + 2**-40], [5.0, 5.0]]
    case = Case([[v + 1024 for v in row] for row in A], [0.0, 1.0, 3.0, 4.0], 2, lam=0.0, level=True)
    best = optimum(case)
    assert not within_scope(case, best)
    file = written(case, [8 * FIT + USE, CLOSE], {}, 0, HUGE, scope="bounded models")
    alone = optimum(case._replace(k=1)).value
    lower = established(case, file)[0]
    assert float(best.value) * 1.01 < lower <= float(alone)
    wide = case._replace(A=[[10 * v for v in row] for row in case.A], weights=[0.25] * 4)
    again = written(wide, [8 * FIT + USE, CLOSE], {}, 0, HUGE, scope="bounded models")
    assert established(wide, again)[0] == pytest.approx(lower / 4, rel=1e-6)


def test_models_that_are_none_of_the_problem():
    """With too many columns, or one that is forced out, or no room left for those forced in; zeros do not count."""
    A = [[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, 3.0]]
    case = Case(A, [1.0, 2.0], 2, must_have=[0], must_not=[3])
    for model, allowed in (
        ({}, True), ({1: 1.0}, True), ({0: 1.0, 1: 1.0}, True), ({1: 1.0, 2: 0.0, 3: 0.0}, True),
        ({1: 1.0, 2: 1.0}, False), ({0: 1.0, 1: 1.0, 2: 1.0}, False), ({3: 1.0}, False), ({0: 1.0, 3: -5e-324}, False),
    ):  # fmt: skip
        assert said(case, written(case, [CLOSE], model, 0, HUGE)) == ("" if allowed else "columns that are not allowed")
    grouped = case._replace(must_have=[], must_not=[1], k=1, groups=[[0, 2], [1], [3]])
    for model, allowed in (({0: 1.0, 2: 1.0}, True), ({0: 1.0, 3: 1.0}, False), ({1: 1.0}, False), ({3: 1.0}, True)):
        file = written(grouped, [CLOSE], model, 0, HUGE)
        assert said(grouped, file) == ("" if allowed else "columns that are not allowed")


# --- what is refused ---


@pytest.mark.parametrize("loss", LOSSES)
def test_problems_outside_the_domain_are_refused(loss):
    """Each file proves what it claims, which is nothing; so only the problem itself can be the reason."""
    count = 0
    for arguments, data, word in forged(random.Random(7), loss):
        reason = check(data, **arguments)
        assert re.search(word, reason), (word, reason)
        assert "another problem" not in reason
        assert reason.endswith(".")
        assert "\n" not in reason
        count += 1
    assert count > 30


@pytest.mark.parametrize("loss", LOSSES)
def test_the_edges_of_the_domain_are_inside(loss):
    y = [1.0, -1.0, 1.0] if loss == "logistic" else [1e60, -1e60, 1e-60]
    case = Case(
        [[1e60, 1e-60, 0.0], [-1e60, 0.0, 0.0], [3, -1e-60, 0.0]], y, 1, loss, 1e60, 1e-60,
        [1e30, 1e-30, 0.0] if loss else None, bool(loss), bool(loss),
    )  # fmt: skip
    small = case._replace(lam=1e-60, delta=1e60)
    for at in (case, small, case._replace(lam=0.0) if loss == "quadratic" else small):
        best = optimum(at) if loss in ("quadratic", "") else fitted(at._replace(k=0), [])
        file = strong_file(at, best)
        lower, upper = established(at, file)
        assert 0.0 <= lower <= above(best.value)
        assert said(at, file, lower=lower * (1 - 1e-15), upper=upper * (1 + 1e-15)) == ""


def test_labels_in_whole_numbers_and_arguments_of_numpy():
    import numpy as np

    case = Case([[1, 2], [3, -1], [0, 1]], [1, -1, 1], 1, "logistic", 1)
    file = strong_file(case, optimum(case))
    assert said(case, file, lower=0, upper=HUGE) == ""
    A = np.array(case.A)
    other = case._replace(A=[list(row) for row in A], k=np.int64(1), groups=((np.int64(0),), (np.int64(1),)))
    grouped = case._replace(groups=[[0], [1]])
    assert said(other, written(grouped, [CLOSE], {}, 0, HUGE), lower=0, upper=HUGE) == ""


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("value", [1.7976931348623157e308, -1e200, 5e-324])
def test_numbers_of_any_size_in_a_proof(loss, value):
    """They prove nothing, or little; they do not overflow."""
    for seed in range(6):
        case = random_case(random.Random(f"huge {seed}"), loss)
        if len(case.A[0]) <= len(case.must_not) or case.k == 0:
            continue
        best = optimum(case)
        columns = range(len(case.A[0]))
        model = dict.fromkeys(sorted(best.x)[:1], value)
        for point in ({j: value for j in columns}, {0: value}):
            file = written(
                case, [8 * (3 + seed % 2) + USE, CLOSE], model, 0, HUGE, [point], [[value] * len(case.y)],
                [abs(value)] * len(columns),
            )  # fmt: skip
            assert said(case, file, lower=above(best.value * 2 + 1), upper=sys.float_info.max) != ""
            assert said(case, file, lower=0, upper=sys.float_info.max) in ("", said(case, file, lower=0, upper=1e308))


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"\0" * 8, struct.pack("<Q", 2**63) + b"{}", struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 60000) + b"[" * 60000, struct.pack("<Q", 20000) + b"9" * 20000, b"\xff" * 64,
        struct.pack("<Q", 4) + b"null",
    ],
)  # fmt: skip
def test_bytes_that_are_no_proof(damage):
    case = random_case(random.Random(1), "quadratic")
    with pytest.raises(Malformed, match="is no proof"):
        check(damage, **case._asdict())


BROKEN_HEADERS = {
    "format": ["exsl", None], "groups": [0, -1, True, 2**31, "1", []], "n": [True, -1, 2**31, 4.0, None],
    "d": [-1, 2**31, "3"], "k": [-1, 2**31, None], "scope": ["any", None, 1], "family": [None, 1], "loss": [None, 0],
    "problem_hash": [None, 1], "lower": ["nan", "inf", "-inf", 1.0, None, "0x1p+9999", "x"],
    "upper": ["nan", "inf", None],
}  # fmt: skip

BROKEN_ARRAYS = {
    "curvature": [[1.0], [1.0, 0.0, 1.0], [1.0, 1.0, -1.0], [math.inf, 1.0, 1.0], [1.0] * 4],
    "model_value": [[1.0], [1.0, math.nan], [1.0, 1.0, 1.0]],
    "model_index": [[1, 0], [0, 0], [0, 3], [-1, 0], [0, 1, 2]],
    "point_value": [[1.0, 2.0], [1.0, 2.0, math.inf], [1.0] * 4],
    "point_index": [[1, 0, 1], [0, 0, 1], [0, 3, 1], [0, 1]],
    "point_size": [[2], [3], [2, 2], [4, -1], [-1, 4], [2, 1, 1]], "dual_value": [[1.0], [1.0] * 3, [math.nan] * 4],
}  # fmt: skip


def sound_file():
    A = [[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [3.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    case = Case(A, [1.0, 2.0, 0.0, 1.0], 1)
    duals = [[1.0, 0.0, 0.0, 2.0]]
    return case, written(case, [CLOSE], {0: 1.0, 1: 0.0}, 0, HUGE, [{0: 1.0, 1: 2.0}, {1: 1.0}], duals, [1.0] * 3)


def test_each_rule_of_the_format():
    """One entry at a time; the file itself is in order."""
    case, file = sound_file()
    data = file.data()
    assert check(data, **case._asdict()) == ""
    files = [
        file._replace(header=file.header | {name: value}) for name, values in BROKEN_HEADERS.items() for value in values
    ]
    files += [
        file._replace(arrays=file.arrays | {name: value}) for name, values in BROKEN_ARRAYS.items() for value in values
    ]
    for name, kind in (
        ("tree", "H"),
        ("point_value", "i"),
        ("model_index", "B"),
        ("point_index", "d"),
        ("curvature", "f"),
    ):
        whole = {**file.arrays, name: [int(v) for v in file.arrays[name]]}
        files.append(file._replace(arrays=whole, types=file.types | {name: kind}))
    for broken in files:
        with pytest.raises(Malformed, match="is no proof"):
            check(broken.data(), **case._asdict())
    for broken in (data + b"\0", data[:-1], data.replace(b'"tree"', b'"three"'), data.replace(b'"u1", 3', b'"u1", 1')):
        with pytest.raises(Malformed, match="is no proof"):
            check(broken, **case._asdict())
    for kind in ("i", "H", "B"):
        assert check(file._replace(types=file.types | {"point_index": kind}).data(), **case._asdict()) == ""
    assert check(file._replace(types=file.types | {"point_value": "f"}).data(), **case._asdict()) == ""


def test_the_length_of_the_header():
    case, file = sound_file()
    data = file.data()
    size = struct.unpack("<Q", data[:8])[0]
    for length, read in ((65536, True), (65537, False)):
        padded = struct.pack("<Q", length) + data[8 : 8 + size].ljust(length) + data[8 + size :]
        if read:
            assert check(padded, **case._asdict()) == ""
        else:
            with pytest.raises(Malformed, match="length of the header"):
                check(padded, **case._asdict())


def test_a_tree_that_is_none():
    case = random_case(random.Random("tree"), "quadratic")._replace(k=1, groups=[], must_have=[], must_not=[])
    assert len(case.A[0]) > 1
    put = [8 * 0 + PUT_IN, 8 * 1 + PUT_IN, CLOSE]
    split = [8 * 9 + SPLIT_IN, CLOSE, CLOSE]
    for tree in (put, split, [], [CLOSE, CLOSE], [SPLIT_IN, CLOSE], [6], [7], [-3], [8 * 5 + USE]):
        with pytest.raises(Malformed, match="tree"):
            check(written(case, tree, {}, 0, HUGE).data(), **case._asdict())


def test_witnesses_that_are_not_there_prove_zero():
    case = random_case(random.Random("none"), "quadratic")
    best = optimum(case)
    for witness in (2, 5, 6, 2**27):
        file = written(case, [8 * witness + USE, CLOSE], best.x, 0, HUGE, [{}], [slopes(case, best)])
        assert established(case, file)[0] == 0.0


def test_a_claim_about_bounded_reconstructions_is_beyond_it():
    case = Case([[1.0, 2.0], [3.0, 4.0]], [], 1, "", 0.0)
    with pytest.raises(Beyond, match="beyond this checker"):
        check(written(case, [CLOSE], {0: 1}, 0, HUGE, scope="bounded models").data(), **case._asdict())


# --- arithmetic ---


def test_roots_and_roundings():
    rng = random.Random(3)
    for _ in range(300):
        value = F(rng.getrandbits(200) + 1, rng.getrandbits(100) + 1) * F(2) ** rng.randint(-2500, 2500)
        assert root(value, above=False) ** 2 <= value < root(value, above=True) ** 2
        assert root(value, above=True) ** 2 - value <= value / 2**70
        assert abs(near(-value) + value) <= value / 2**59
        assert abs(inverse_root(value) ** 2 * value - 1) <= F(1, 2**50)
    assert near(F(0)) == 0
    assert as_float(F(10) ** 400) == sys.float_info.max == -as_float(-(F(10) ** 400))
    assert as_float(F(1, 3)) == 1 / 3


def test_logarithms_are_rounded_outwards():
    """Against series and known values; and none is far off."""
    half = F(69314718055994530941723212145817656807550, 10**41)
    assert half - F(1, 10**39) <= entropy(F(1, 2)) <= half + F(1, 10**40)
    assert -F(1, 10**40) <= entropy(F(0)) <= 0
    for t in (F(0), F(1), F(-1), F(300), F(-300), F(10) ** 400, -(F(10) ** 400), F(1, 3)):
        value = logistic(t)
        assert value >= max(t, 0)
        assert abs(float(value - max(t, 0)) - math.log1p(math.exp(-min(float(min(abs(t), F(10**4))), 700)))) <= 1e-15
    assert half <= logistic(F(0)) <= half + F(1, 10**39)


def test_the_fit_is_the_least_of_all():
    case = random_case(random.Random("fit"), "quadratic")._replace(k=2, groups=[], must_have=[], must_not=[])
    r = Regression(case.A, case.y, 2, "quadratic", case.lam, 1.0, case.weights, case.level, (), case.scale)
    everything = {*range(len(case.A[0]))}
    assert r.at_fit(everything, set(), [], False) == fitted(case, sorted(everything)).value


def test_eigenvalues_of_columns_left():
    """A region with two places and more, against doubles; the bound is what the largest eigenvalues leave."""
    import numpy as np

    for seed in range(18):
        rng = random.Random(f"eigen {seed}")
        n, d = rng.randint(4, 6), rng.randint(4, 6)
        A = [[rng.gauss(0, 1) for _ in range(d)] for _ in range(n)]
        if seed % 3 == 0:
            A = [[*row[:-1], row[0] + row[1]] for row in A]
        k, size = rng.randint(2, 3), 10.0 ** rng.choice([0, -50, 50])
        case = Case([[size * v for v in row] for row in A], [], k, "", 0.0)
        S = rng.randint(0, k - 2)
        tree = [8 * EIGENVALUES + USE, *(8 * j + SPLIT_IN for j in range(S)), *[CLOSE] * (S + 1)]
        E = np.array(A)
        bounds = []
        for inside in range(S, -1, -1):  # the regions: the first S columns in, then the first i in and column i out
            basis = np.linalg.qr(E[:, :inside])[0] if inside else np.zeros((n, 0))
            left = E - basis @ (basis.T @ E)
            free = left[:, inside + (inside < S) :]
            span = np.linalg.svd(free, full_matrices=False)
            Q = span[0][:, span[1] > 1e-9]
            values = np.linalg.eigvalsh(Q.T @ left @ left.T @ Q)[::-1]
            bounds.append(float(np.sum(left**2) - np.sum(values[: k - inside])))
        lower = established(case, written(case, tree, {0: 1}, 0, HUGE))[0]
        assert lower == pytest.approx(size**2 * min(bounds), rel=1e-9, abs=1e-11 * size**2), seed


def test_signs_of_eigenvalues():
    """Whole-number matrices, singular ones among them, against doubles."""
    import numpy as np

    rng = np.random.default_rng(8)
    singular = 0
    for _ in range(400):
        m = int(rng.integers(1, 5))
        M = rng.integers(-2, 3, (m, int(rng.integers(1, 5))))
        M = M @ M.T - int(rng.integers(0, 3)) * np.diag(rng.integers(0, 2, m))
        values = np.linalg.eigvalsh(M.astype(float))
        rows = [[F(int(v)) for v in row] for row in M]
        singular += min(abs(values)) < 1e-9
        found = positives(rows)
        assert found in (-1, int(np.sum(values > 1e-9)))
        assert found >= 0 or min(M.diagonal()) <= 0 or min(values) < 1e-9
        assert semidefinite(rows) == (values[0] > -1e-9)
    assert singular > 50


# --- it stands alone ---


FOLDER = ROOT / "certificates" / "exactsel_certificates" / "standalone"


def test_it_imports_the_standard_library_and_itself():
    files = sorted(FOLDER.rglob("*.py"))
    assert len(files) >= 11
    for file in files:
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                # One dot is this folder; more would lead out of it.
                assert node.level <= 1, (file.name, node.module)
                names += [] if node.level else [node.module]
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names, (file.name, name)


@pytest.mark.parametrize(
    ("file", "word", "code"), [("valid/points.exsel", "VERIFIED", 0), ("instance.npz", "Error", 2)]
)
def test_a_copy_of_its_folder_is_the_whole_checker(file, word, code, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "standalone", ignore=shutil.ignore_patterns("__pycache__"))
    proofs = next((ROOT / "tests").rglob("valid/points.exsel")).parents[1]
    command = [sys.executable, "-S", "-m", "standalone", str(proofs / file), str(proofs / "instance.npz")]
    # -S: nothing that is installed is found, neither numpy nor exactsel.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert (done.stdout + done.stderr).startswith(word)


# --- the campaign ---


def test_the_campaign_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.attacks.standalone_mutants import standalone_mutants

    result = CliRunner().invoke(standalone_mutants, ["--count", "300", "--seed", "5", "--forged", "20"])
    assert result.exit_code == 0, result.output
    *_, row, _, _ = result.output.strip().splitlines()
    assert re.fullmatch(r"\| all \|( [\d,]+ \|){3} 0 \| 0 \|", row), row


def test_the_campaign_notices_what_is_untrue(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.attacks.standalone_mutants import Subject

    for seed in range(30):
        subject = Subject(seed)
        if subject.high == 0 or not subject.all_in_scope:
            continue
        for claims, untrue in (
            ({"lower": float(subject.high) * (1 + 1e-6), "upper": HUGE}, True),
            ({"lower": 0.0, "upper": float(subject.low) * (1 - 1e-6)}, True),
            ({"lower": 0.0, "upper": HUGE}, False),
        ):
            header = subject.file.header | {name: value.hex() for name, value in claims.items()}
            assert subject.untrue(subject.file._replace(header=header).data()) == untrue
            assert json.dumps(header)
