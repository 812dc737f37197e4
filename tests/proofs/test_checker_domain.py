"""What the checker refuses before it reads a region, and that no file or number makes it raise anything else."""

from __future__ import annotations

import io
import itertools
import json
import os
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from corrupted import as_bytes

from exactsel import Problem, solve
from exactsel.proofs.writer import instance_of
from exactsel_certificates.__main__ import main
from exactsel_certificates.archive import read_archive
from exactsel_certificates.checking import problem_hash, verify
from exactsel_certificates.container import ARRAYS, CLOSE, MalformedError, Proof, parse_proof, read_proof
from exactsel_certificates.domain import OutsideError, admitted
from exactsel_certificates.formula import ColumnInstance, Instance

A = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0]])
Y = np.array([1.0, -1.0, 1.0])


def instance(**changes):
    return Instance(**{"A": A, "y": Y, "k": 1, "loss": "huber", "lam": 1.0, "delta": 1.0, **changes})


def claim(about, **changes):
    """A proof that claims nothing of a problem but what everybody knows."""
    n, d = about.A.shape
    none, number = np.zeros(0, dtype=np.int32), np.zeros(0)
    entries = {
        "family": "regression", "loss": about.loss, "n": n, "d": d, "k": about.k, "groups": len(about.groups) or None,
        "problem_hash": problem_hash(about), "lower": 0.0, "upper": 1e300, "weights": about.weights is not None,
        "intercept": about.intercept, "scale": False, "valid_for": "",
        "curvature": number, "model_value": number, "point_value": number,
        "dual_value": number, "model_index": none, "point_size": none,
        "tree": np.array([CLOSE], dtype=np.int32), "point_index": none,
    }  # fmt: skip
    return Proof(**(entries | changes))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lam": np.nan}, "lam is nan, no finite double"),
        ({"lam": -1.0}, "lam is -1.0, but a finite number between 1e-60 and 1e\\+60 was expected."),
        ({"lam": 5e-324}, "lam is 5e-324, but"),
        ({"lam": 1e61}, "lam is 1e\\+61, but"),
        ({"lam": 1e-61}, "lam is 1e-61, but a finite number between 1e-60 and 1e\\+60 was expected, or 0."),
        ({"lam": -1.0, "loss": "quadratic"}, "expected, or 0."),
        ({"lam": 10**400}, "int too large"),
        ({"lam": 2**53 + 1}, "no finite double"),
        ({"lam": "1"}, "lam is '1', no number"),
        ({"delta": 0.0}, "delta is 0.0, but"),
        ({"delta": np.inf}, "delta is inf, no finite double"),
        ({"delta": -1.0}, "delta is -1.0, but"),
        ({"loss": "logistic", "y": np.array([0.0, 1.0, 1.0])}, "y holds other values than -1 and 1"),
        ({"y": np.array([np.nan, 1.0, 1.0])}, "y holds NaN or infinite values"),
        ({"y": np.array([1e-61, 0.0, 0.0])}, "y has no entry larger than 1e-61 in size, but it must be zero or reach"),
        ({"y": np.array([1e61, 0.0, 0.0])}, "y holds a number of size 1e\\+61, larger than 1e\\+60"),
        ({"A": A * [1.0, 1e-70]}, "column 1 of A has no entry larger than 2e-70"),
        ({"A": A * 1e61}, "A holds a number of size 3e\\+61"),
        ({"A": A * [1.0, np.inf]}, "A holds NaN or infinite"),
        ({"A": A + 0j}, "A is no array of doubles, nor of numbers that convert to them exactly"),
        ({"A": A.astype(object)}, "A is no array of doubles"),
        ({"A": A.astype(np.longdouble)}, "A is no array of doubles"),
        ({"A": np.ma.masked_array(A)}, "A is no array of doubles"),
        ({"A": A.astype("U9")}, "A is no array of doubles"),
        ({"A": np.full((3, 2), 2**53 + 1)}, "A holds an integer of 9007199254740993"),
        ({"A": np.zeros((3, 0)), "k": 0}, "A has shape"),
        ({"k": 3}, "k is 3, but at least 0 and at most 2"),
        ({"k": True}, "k is True, no whole number"),
        ({"k": 1.0}, "integer"),
        ({"force_in": (1.0,)}, "integer"),
        ({"intercept": 2}, "intercept is 2, neither"),
        ({"weights": np.array([1e31, 1.0, 1.0])}, "the weights range from 1 to 1e\\+31"),
        ({"weights": np.array([1e-31, 1.0, 1.0])}, "the weights range from 1e-31 to 1"),
    ],
)
def test_what_lies_outside_is_rejected_in_one_sentence(changes, sentence):
    about = instance(**changes)
    with pytest.raises(OutsideError, match=sentence):
        admitted(about)
    verdict = verify(claim(instance(), loss=about.loss), about)
    assert not verdict.verified
    assert verdict.lower == 0.0
    assert verdict.regions == 0
    assert "REJECTED" in str(verdict)
    assert verdict.as_dict()["upper"] is None


@pytest.mark.parametrize("k", [4, -1])
def test_column_subset_selection_has_the_same_domain(k):
    for about in (ColumnInstance(A, k), ColumnInstance(A * 1e-200, 1), ColumnInstance(A * np.nan, 1)):
        with pytest.raises(OutsideError):
            admitted(about)


def test_what_converts_exactly_is_converted():
    reference = admitted(instance(A=np.round(A), lam=2.0))
    for kind in (">f8", "<f4", ">f4", "<f2", "i1", ">i4", "i8"):
        about = admitted(instance(A=np.round(A).astype(kind), y=Y.astype(kind), k=np.int32(1), lam=np.float32(2.0)))
        assert problem_hash(about) == problem_hash(reference)
        assert about.A.dtype == np.float64
    assert admitted(instance(A=A > 0)).A.tolist() == (A > 0).astype(float).tolist()


def test_a_threshold_only_huber_loss_has_enters_no_formula():
    about = instance(loss="quadratic", delta=1e-3)
    proof = claim(about, upper=0.01)
    assert verify(proof, about).upper >= 1.5


def test_a_proof_about_integers_is_about_the_doubles_they_are(tmp_path):
    problem = Problem(np.round(A), Y, 1, lam=1.0)
    solve(problem, proof=tmp_path / "run.exsel", signals=())
    about = instance_of(problem)
    whole = replace(about, A=about.A.astype(int), y=about.y.astype(np.float32))
    assert verify(read_proof(tmp_path / "run.exsel"), whole).verified


@pytest.mark.smoke
@pytest.mark.parametrize("value", [1e300, -1e308, 5e-324])
@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("adjusted", [False, True])
def test_numbers_beyond_reason_prove_nothing_and_raise_nothing(value, loss, adjusted):
    if adjusted and loss == "quadratic":
        pytest.skip("they are in the data")
    about = instance(loss=loss, k=2, intercept=adjusted, weights=np.array([1e30, 1e-30, 1.0]) if adjusted else None)
    for witness in range(3, 7):
        tree = np.array([8 * witness + 5, CLOSE], dtype=np.int32)
        sizes, both = np.array([2, 0], dtype=np.int32), np.array([0, 1], dtype=np.int32)
        proof = claim(
            about, tree=tree, lower=1e3, point_value=np.array([value, value]), point_size=sizes,
            point_index=both, dual_value=np.full(6, value), model_index=both,
            model_value=np.array([value, -value]), curvature=np.full(2, abs(value)),
        )  # fmt: skip
        verdict = verify(parse_proof(as_bytes(proof)), about)
        assert not verdict.verified
        assert 0.0 <= verdict.lower <= 1e60


# --- sizes that are not to be believed ---


def test_an_endless_file_is_not_read_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    taken = []
    start = as_bytes(claim(instance()))

    def fill():
        with pipe.open("wb", buffering=0) as stream:
            try:
                stream.write(start)
                while True:
                    taken.append(stream.write(bytes(4096)))
            except BrokenPipeError:
                return

    writer = threading.Thread(target=fill)
    writer.start()
    with pytest.raises(MalformedError, match=r"bytes follow the last array|1 bytes"):
        read_proof(pipe)
    writer.join(60)
    assert not writer.is_alive()
    assert sum(taken) < 10**6


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null"])
def test_devices_are_no_proofs(device):
    with pytest.raises(MalformedError):
        read_proof(device)


def test_more_than_the_limit_is_not_read(tmp_path):
    data = as_bytes(claim(instance(), dual_value=np.zeros(300)))
    (tmp_path / "run.exsel").write_bytes(data)
    assert read_proof(tmp_path / "run.exsel", len(data)).dual_value.size == 300
    with pytest.raises(MalformedError, match=f"announces {len(data)} bytes, but no more than 100 are read; raise this"):
        read_proof(tmp_path / "run.exsel", 100)


def test_what_a_file_says_is_shown_short_and_plain():
    nested = "[" * 900 + "]" * 900
    for said, shown in ((nested, "a list"), ('"\\u001b[31m"', "'\\\\x1b"), ('"' + "x" * 9999 + '"', "x{59}\\.\\.\\.")):
        text = '{"format": "exsel", "version": 1, "arrays": [], "n": ' + said + "}"
        with pytest.raises(MalformedError, match=shown) as caught:
            parse_proof(len(text).to_bytes(8, "little") + text.encode())
        assert len(str(caught.value)) < 200


def test_headers_with_any_value_anywhere():
    """Whatever JSON a header holds is malformed in one short sentence, or harmless."""
    data = as_bytes(claim(instance()))
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    odd = [None, True, -1, 0, 1, 2**31, 2**63, 10**4000, 1e308, np.nan, np.inf, "", "x" * 5000, "\ud800", [], {}, [[]]]
    for name, value in itertools.product(header, odd):
        assert len(said(header_with(data, size, {**header, name: value}))) < 250
    assert header["arrays"] == [["tree", "<i4", 1]]
    every = [[name, kinds[0], int(name == "tree")] for name, kinds in ARRAYS.items()]
    assert said(header_with(data, size, {**header, "arrays": every})) == ""
    for place, part, value in itertools.product(range(len(every)), range(3), odd):
        listed = [[*entry] for entry in every]
        listed[place][part] = value
        assert len(said(header_with(data, size, {**header, "arrays": listed}))) < 250


def header_with(data, size, header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def said(data):
    """Why these bytes are malformed; empty when they are not."""
    try:
        parse_proof(data)
    except MalformedError as error:
        return str(error)
    return ""


def archive_of(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def array_bytes(array, shape=None):
    """An array in numpy's format that claims another shape."""
    stream = io.BytesIO()
    header = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape or array.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue() + array.tobytes()


@pytest.mark.parametrize(
    "member",
    [
        array_bytes(A, (10**12, 2)), array_bytes(A, (2**62, 2**62)), array_bytes(A, (-3, -2)), b"", b"\x93NUMPY\1\0",
        b"\x93NUMPY\1\0\xff\xff" + b"(" * 65535, b"\x93NUMPY\1\0\x10\0" + b"'''" + b" " * 13,
        b"\x93NUMPY\7\0" + bytes(99), array_bytes(np.array([None], dtype=object)[:0], (1,)),
    ],
)  # fmt: skip
def test_an_archive_is_not_believed(tmp_path, member, capsys):
    path = tmp_path / "data.npz"
    archive_of(path, {"A.npy": member, "y.npy": array_bytes(Y)})
    with pytest.raises(ValueError, match=r"the instance is no \.npz archive of plain arrays, or it is damaged"):
        read_archive(path)
    (tmp_path / "run.exsel").write_bytes(as_bytes(claim(instance())))
    assert main([str(tmp_path / "run.exsel"), str(path), "-k", "1", "--lam", "1"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_archive_with_more_than_the_limit_is_not_read(tmp_path):
    archive_of(tmp_path / "data.npz", {"A.npy": array_bytes(np.zeros((1000, 1000)))})
    with pytest.raises(ValueError, match="holds 8000128 bytes, but no more than 100000 are read; raise this limit"):
        read_archive(tmp_path / "data.npz", 100_000)


def test_a_damaged_archive_is_exit_2(tmp_path, capsys):
    np.savez_compressed(tmp_path / "data.npz", A=A, y=Y, k=1, lam=1.0, loss="quadratic")
    whole = (tmp_path / "data.npz").read_bytes()
    (tmp_path / "run.exsel").write_bytes(as_bytes(claim(instance(loss="quadratic"))))
    rng = np.random.default_rng(5)
    for _ in range(300):
        raw = bytearray(whole)
        for place in rng.integers(0, len(raw), 3):
            raw[place] = int(rng.integers(256))
        (tmp_path / "data.npz").write_bytes(bytes(raw))
        assert main([str(tmp_path / "run.exsel"), str(tmp_path / "data.npz")]) in (0, 2, 3)
    capsys.readouterr()


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"lam": np.nan}, 3),
        ({"k": 1.5}, 2),
        ({"lam": "x"}, 2),
        ({"y": Y[:2]}, 2),
        ({"A": A * 1e61}, 3),
        ({"lam": 1j}, 2),
    ],
)
def test_exit_codes(tmp_path, given, expected, capsys):
    np.savez(tmp_path / "data.npz", **{"A": A, "y": Y, "k": 1, "lam": 1.0, "loss": "quadratic", **given})
    (tmp_path / "run.exsel").write_bytes(as_bytes(claim(instance(loss="quadratic"))))
    assert main([str(tmp_path / "run.exsel"), str(tmp_path / "data.npz")]) == expected
    assert "Traceback" not in capsys.readouterr().err


def test_forged_problems_are_not_accepted(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2]))
    from benchmarks.attacks.forged import campaign

    counts = campaign(0, 60, tmp_path, main)
    assert {outcome for _, outcome in counts} == {"rejected", "malformed"}


@pytest.mark.parametrize("command", ["main", "standalone"])
def test_what_a_file_says_does_not_reach_the_terminal_raw(command, tmp_path, capsys):
    from exactsel_certificates import __main__
    from exactsel_certificates.standalone import __main__ as standalone

    np.savez(tmp_path / "odd.npz", A=A, y=Y, k=1, lam=1.0, delta=1.0, loss="\x1b[31mred\x9b2J")
    (tmp_path / "odd.exsel").write_bytes(b"\0" * 64)
    checker = __main__.main if command == "main" else standalone.main
    assert checker([str(tmp_path / "odd.exsel"), str(tmp_path / "odd.npz")]) in (2, 3)
    said = "".join(capsys.readouterr())
    assert said.replace("\n", "").isprintable()
