"""The checker without numpy: other versions, other problems and broken files, each refused for its own reason."""

from __future__ import annotations

import math
import random
import re
import struct
import sys

import pytest
from forged import forged
from hand_written import CLOSE, FIT, PUT_IN, SPLIT_IN, USE, slopes, strong_file, written
from samples import many
from standalone_says import HUGE, above, established, said
from tiny_problems import Case, fitted, optimum, random_case, within_scope

from exactsel_certificates.standalone import Beyond, Malformed, check

LOSSES = ("quadratic", "huber", "logistic", "")


def test_other_versions_are_rejected():
    plain = random_case(random.Random("old"), "quadratic")._replace(level=False, weights=None, scale=False)
    data = strong_file(plain, optimum(plain))
    assert check(data.data(), **plain._asdict()) == ""
    for version in (2, 3, 0, 1.0, True, "1", None):
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
            assert "another problem" in check(changed.data(), **case._asdict())
        else:
            with pytest.raises(Malformed, match="flags"):
                check(changed.data(), **case._asdict())
    name = "level" if flag == "intercept" else flag
    other = case._replace(**{name: None if flag == "weights" else False})
    assert "another problem" in check(file.data(), **other._asdict())


def test_other_data_are_another_problem():
    case = random_case(random.Random("data"), "huber")
    case = case._replace(weights=[1.0] * len(case.y), delta=1.0)
    data = strong_file(case, optimum(case)).data()
    for other in (
        case._replace(y=[v + 1 for v in case.y]), case._replace(weights=[2.0] * len(case.y)), case._replace(lam=7.0),
        case._replace(delta=2.0), case._replace(A=[[-v for v in row] for row in case.A]),
        case._replace(A=[*case.A, case.A[0]], y=[*case.y, 0.0], weights=[*case.weights, 0.0]),
    ):  # fmt: skip
        assert "another problem" in check(data, **other._asdict())


def test_a_scope_is_about_centred_and_weighted_columns():
    """With near copies and lam = 0 only bounded models can be spoken of; the limit moves with the data's spread."""
    A = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0 + 2**-40], [5.0, 5.0]]
    case = Case([[v + 1024 for v in row] for row in A], [0.0, 1.0, 3.0, 4.0], 2, lam=0.0, level=True)
    best = optimum(case)
    assert not within_scope(case, best)
    file = written(case, [8 * FIT + USE, CLOSE], {}, 0, HUGE, valid_for="bounded models")
    alone = optimum(case._replace(k=1)).value
    lower = established(case, file)[0]
    assert float(best.value) * 1.01 < lower <= float(alone)
    wide = case._replace(A=[[10 * v for v in row] for row in case.A], weights=[0.25] * 4)
    again = written(wide, [8 * FIT + USE, CLOSE], {}, 0, HUGE, valid_for="bounded models")
    assert established(wide, again)[0] == pytest.approx(lower / 4, rel=1e-6)


def test_models_that_are_none_of_the_problem():
    """With too many columns, or one that is forced out, or no room left for those forced in; zeros do not count."""
    A = [[1.0, 0.0, 2.0, 1.0], [0.0, 1.0, 1.0, 3.0]]
    case = Case(A, [1.0, 2.0], 2, force_in=[0], force_out=[3])
    for model, allowed in (
        ({}, True), ({1: 1.0}, True), ({0: 1.0, 1: 1.0}, True), ({1: 1.0, 2: 0.0, 3: 0.0}, True),
        ({1: 1.0, 2: 1.0}, False), ({0: 1.0, 1: 1.0, 2: 1.0}, False), ({3: 1.0}, False), ({0: 1.0, 3: -5e-324}, False),
    ):  # fmt: skip
        assert said(case, written(case, [CLOSE], model, 0, HUGE)) == ("" if allowed else "columns that are not allowed")
    grouped = case._replace(force_in=[], force_out=[1], k=1, groups=[[0, 2], [1], [3]])
    for model, allowed in (({0: 1.0, 2: 1.0}, True), ({0: 1.0, 3: 1.0}, False), ({1: 1.0}, False), ({3: 1.0}, True)):
        file = written(grouped, [CLOSE], model, 0, HUGE)
        assert said(grouped, file) == ("" if allowed else "columns that are not allowed")


# --- what is refused ---


@pytest.mark.smoke
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
    for seed in range(many(3, 6)):
        case = random_case(random.Random(f"huge {seed}"), loss)
        if len(case.A[0]) <= len(case.force_out) or case.k == 0:
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
    "d": [-1, 2**31, "3"], "k": [-1, 2**31, None], "valid_for": ["any", None, 1], "family": [None, 1], "loss": [None,
    0], "problem_hash": [None, 1], "lower": ["nan", "inf", "-inf", 1.0, None, "0x1p+9999", "x"],
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


@pytest.mark.smoke
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
    case = random_case(random.Random("tree"), "quadratic")._replace(k=1, groups=[], force_in=[], force_out=[])
    assert len(case.A[0]) > 1
    put = [8 * 0 + PUT_IN, 8 * 1 + PUT_IN, CLOSE]
    split = [8 * 9 + SPLIT_IN, CLOSE, CLOSE]
    for tree in (put, split, [], [CLOSE, CLOSE], [SPLIT_IN, CLOSE], [6, 6], [7], [-3], [8 * 5 + USE]):
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
        check(written(case, [CLOSE], {0: 1}, 0, HUGE, valid_for="bounded models").data(), **case._asdict())
