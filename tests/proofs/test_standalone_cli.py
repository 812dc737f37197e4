"""The second checker's command: it reads every array of real numbers as it is, and refuses the rest in one sentence."""

from __future__ import annotations

import io
import os
import random
import re
import struct
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hand_written import CLOSE, strong_file, written
from tiny_problems import Case, optimum

from exactsel_certificates.standalone import arrays
from exactsel_certificates.standalone.__main__ import main
from exactsel_certificates.standalone.arrays import Unreadable, numbers_of, read_instance
from exactsel_certificates.standalone.constraints import READERS

ORDERS = "<>"
REALS = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def npy(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), version)
    return stream.getvalue()


def archive(path, members, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def whole_case(**changes):
    A = [[1.0, 0.0, 2.0], [3.0, 1.0, 0.0], [0.0, 5.0, 1.0], [2.0, 2.0, 7.0]]
    return Case(A, [1.0, 2.0, 3.0, 4.0], 1, lam=1.0)._replace(**changes)


@pytest.fixture
def files(tmp_path):
    """Write a problem and its proof; the arguments of the command."""

    def write(case, **arrays):
        proof, instance = tmp_path / "run.exsel", tmp_path / "instance.npz"
        proof.write_bytes(strong_file(case, optimum(case)).data())
        np.savez(instance, **{"A": np.array(case.A), "y": np.array(case.y), "k": case.k, "lam": case.lam, **arrays})
        return [str(proof), str(instance)]

    return write


def ends(capfd, arguments):
    """Exit code and the one line that was printed."""
    code = main(arguments)
    out, err = capfd.readouterr()
    text = (err if code == 2 else out).strip()
    assert text.count("\n") == 0, text
    assert text.startswith({0: "VERIFIED", 2: "Error: ", 3: "REJECTED"}[code]), text
    assert code != 2 or text.endswith("."), text
    return code, text


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [*REALS, "b1"])
@pytest.mark.parametrize("fortran", [False, True])
def test_arrays_of_every_type_of_real_numbers(files, capfd, order, kind, fortran):
    dtype = np.dtype(order + kind)
    case = whole_case()
    if kind == "b1":
        case = case._replace(A=[[float(v > 0) for v in row] for row in case.A], y=[1.0, 0.0, 1.0, 1.0])
    A = np.array(case.A).astype(dtype)
    code, _ = ends(
        capfd,
        files(case, A=np.asfortranarray(A) if fortran else A, y=np.array(case.y).astype(dtype), lam=np.array(1, dtype)),
    )
    assert code == 0
    other = A.copy()
    other[-1, 0] = not other[-1, 0]
    assert ends(capfd, files(case, A=other))[0] == 3


def test_numbers_are_read_to_the_last_bit():
    rng = np.random.default_rng(4)
    for kind in REALS:
        for order in ORDERS:
            raw = rng.bytes(np.dtype(kind).itemsize * 6)
            values = np.frombuffer(raw, order + kind).copy()
            values = values[np.isfinite(values)]
            for array in (values, values.reshape(-1, 1), values[:1].reshape(())) if values.size else ():
                for version in ((1, 0), (2, 0), (3, 0)):
                    assert numbers_of("A", npy(array, version)) == array.tolist()
    table = np.arange(12.0).reshape(3, 4)
    for array in (table, table.T, np.asfortranarray(table), table[::2], table[:, ::-1]):
        assert numbers_of("A", npy(array)) == array.tolist()
    for text in (np.array("huber"), np.array(["a", "", "épée", "𝔸"]), np.array(["x"], dtype=">U3")):
        assert numbers_of("loss", npy(text)) == text.tolist()
    for empty in (np.zeros((0, 3)), np.zeros((3, 0)), np.zeros(0)):
        assert numbers_of("A", npy(empty)) == empty.tolist()


def test_whole_numbers_no_double_holds_are_refused(files, capfd):
    case = whole_case()
    large = np.array(case.A).astype(np.int64)
    large[0, 0] = 2**53 + 1
    assert "9007199254740993" in ends(capfd, files(case, A=large))[1]
    large[0, 0] = 2**53
    case = case._replace(A=large.astype(float).tolist())
    assert ends(capfd, files(case, A=large))[0] == 0


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 2), dtype="c16"), np.zeros(2, dtype=[("a", "f8")]),
        np.zeros((2, 2), dtype="m8[s]"), np.zeros((2, 2), dtype="S4"), np.zeros((2, 2), dtype="V8"),
        np.zeros((2, 2, 2)), np.zeros((2, 2), dtype=np.longdouble), np.zeros((2, 2), dtype="c8"),
    ],
    ids=lambda array: str(array.dtype),
)  # fmt: skip
def test_arrays_of_other_types_are_refused(files, capfd, array):
    if array.dtype == np.float64 and array.ndim == 2:
        pytest.skip("long doubles are doubles here")
    arguments = files(whole_case())
    members = {"A.npy": npy(array), "y.npy": npy(np.ones(2)), "k.npy": npy(1)}
    archive(arguments[1], members)
    code, text = ends(capfd, arguments)
    assert code == 2
    assert "array A" in text


def header(text, body=b"", version=b"\1\0"):
    """An array file with this header."""
    size = struct.pack("<H" if version == b"\1\0" else "<I", len(text))
    return b"\x93NUMPY" + version + size + text.encode("latin-1") + body


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\x93NUMPY", b"\x93NUMPY\1\0\xff\xff{", b"\x93NUMPY\2\0\xff\xff\xff\xff{}", b"\x80\4]\x94.",
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000000000000), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 0), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 400 + ",), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }"),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", b"\0" * 31),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", b"\0" * 33),
        header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", b""),
        header("{'descr': '<f8', 'fortran_order': 3, 'shape': (1, 1), }", b"\0" * 8),
        header("{'descr': '<f8', 'fortran_order': False, }", b"\0" * 8),
        header("{'descr': '?f8', 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
        header("{'descr': '<f\xb2', 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
        header("{'descr': '<U\xb2', 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
        header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\xff" * 4),
        header("{'descr': '<U99999999999', 'fortran_order': False, 'shape': (1,), }", b"\0" * 4),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }", b"\x80\4]\x94."),
        header("(" * 60000), header("[" * 9000 + "]" * 9000), header("-" * 60000 + "1"), header("{" * 9000),
        header("{'descr': " + "9" * 9000 + "}"), header("__import__('os').abort()"), header("\0" * 5000),
        header("{" + " " * 50000 + "}"), header("{" + "'descr': '<f8'," * 4000 + "}"),
    ],
)  # fmt: skip
def test_headers_that_are_none(files, capfd, raw):
    arguments = files(whole_case())
    archive(arguments[1], {"A.npy": raw, "y.npy": npy(np.ones(2)), "k.npy": npy(1)})
    code, text = ends(capfd, arguments)
    assert code == 2
    assert "array A" in text


def test_archives_that_unpack_to_too_much(files, capfd, monkeypatch, tmp_path):
    """No more than the limit is unpacked or read, whatever comes after it."""
    monkeypatch.setattr(arrays, "LIMIT", 1 << 16)
    arguments = files(whole_case())
    bomb = header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", b"\0" * (1 << 20))
    archive(arguments[1], {"A.npy": bomb}, compression=zipfile.ZIP_DEFLATED)
    assert os.path.getsize(arguments[1]) < 1 << 14
    assert "unpacks to more than 65536 bytes" in ends(capfd, arguments)[1]
    archive(arguments[1], {"A.npy": bomb[:2000]}, compression=zipfile.ZIP_BZIP2)
    assert "packed in a way" in ends(capfd, arguments)[1]
    large = archive(tmp_path / "large.npz", {"A.npy": bomb})
    assert "more than 65536 bytes" in ends(capfd, [arguments[0], str(large)])[1]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no endless file here")
def test_files_without_an_end(files, capfd, monkeypatch, tmp_path):
    monkeypatch.setattr(arrays, "LIMIT", 1 << 16)
    arguments = files(whole_case())
    assert "more than 65536 bytes" in ends(capfd, ["/dev/zero", arguments[1]])[1]
    assert "more than 65536 bytes" in ends(capfd, [arguments[0], "/dev/zero"])[1]
    assert "more than 65536 bytes" in ends(capfd, [*arguments, "--weights", "/dev/zero"])[1]
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    data = Path(arguments[0]).read_bytes()
    writer = threading.Thread(target=lambda: Path(pipe).write_bytes(data))
    writer.start()
    assert ends(capfd, [pipe, arguments[1]])[0] == 0
    writer.join()


def test_what_is_missing_or_no_file(files, capfd, tmp_path):
    arguments = files(whole_case())
    for path in (str(tmp_path), str(tmp_path / "none"), "a\0b", "\ud800"):
        assert ends(capfd, [path, arguments[1]])[0] == 2
        assert ends(capfd, [arguments[0], path])[0] == 2
        assert ends(capfd, [*arguments, "--weights", path])[0] == 2
    for members in ({}, {"k.npy": npy(1)}, {"A.npy": npy(np.ones((2, 2)))}):
        archive(arguments[1], members)
        assert "give it" in ends(capfd, arguments)[1]
    with zipfile.ZipFile(arguments[1], "w") as file:
        file.writestr("A.npy", npy(np.ones((2, 2))))
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("A.npy", npy(np.ones((2, 2))))
    assert "holds A twice" in ends(capfd, arguments)[1]
    for bad in (["--lam", "x"], ["-k", "1.5"], ["-k", "9" * 5000], ["--force-in", "a"], ["--unknown"]):
        with pytest.raises(SystemExit) as stop:
            main([*arguments, *bad])
        assert stop.value.code == 2
    capfd.readouterr()


def test_values_outside_the_domain_are_rejections(files, capfd):
    arguments = files(whole_case())
    for extra in (
        ["-k", "99"],
        ["-k", "-1"],
        ["--lam", "nan"],
        ["--lam", "-1"],
        ["--lam", "1e400"],
        ["--loss", "x\ny"],
    ):
        assert ends(capfd, [*arguments, *extra])[0] == 3
    for name, value in (
        ("y", np.full(4, np.nan)),
        ("k", 1.5),
        ("k", [1]),
        ("loss", 3),
        ("intercept", 2),
        ("lam", [1.0]),
    ):
        assert ends(capfd, files(whole_case(), **{name: value}))[0] == 3


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_flags_and_arrays_for_the_data_as_given(files, capfd, tmp_path, loss):
    y = [1.0, -1.0, -1.0, 1.0] if loss == "logistic" else [1.0, 2.0, 3.0, 9.0]
    case = whole_case(y=y, loss=loss, weights=[1.0, 0.5, 0.0, 3.0], level=True, scale=True)
    text, array = tmp_path / "weights.txt", tmp_path / "weights.npy"
    text.write_text("# one a line\n1\n.5\n0.0\n\n3e0\n")
    np.save(array, np.array(case.weights, dtype=">f4"))
    arguments = [*files(case, loss=loss, delta=1.0), "--intercept", "--scale"]
    for path in (text, array):
        assert ends(capfd, [*arguments, "--weights", str(path)])[0] == 0
    for fewer, option in ((arguments, "--weights"), ([*arguments[:3], "--weights", str(text)], "--scale")):
        code, told = ends(capfd, fewer)
        assert code == 3
        assert told.startswith("REJECTED the proof is about another problem: this one lacks ")
        assert told.endswith(f"; give {option} as for the solve.")
    held = {"loss": loss, "delta": 1.0, "weights": np.array(case.weights), "intercept": True, "scale": 1}
    assert ends(capfd, files(case, **held))[0] == 0
    text.write_text("1\nmany\n")
    assert "one number a line" in ends(capfd, [*arguments, "--weights", str(text)])[1]
    text.write_text("1 2 3")
    assert "holds 3 numbers" in ends(capfd, [*arguments, "--weights", str(text)])[1]


def test_groups_forced_columns_and_selections(files, capfd, tmp_path):
    case = whole_case(groups=[[0, 2], [1]])
    assert ends(capfd, files(case, groups=np.array(["g", "", "g"])))[0] == 0
    assert ends(capfd, files(case._replace(k=2), groups=np.array(["g", "", "g"]), k=9))[0] == 0
    assert ends(capfd, files(case, groups=np.array(["g", "g", ""])))[0] == 3
    assert ends(capfd, files(case, groups=np.array(["g"])))[0] == 3
    forced = whole_case(force_in=[2], force_out=[0])
    assert ends(capfd, [*files(forced), "--force-in", "2", "--force-out", "0"])[0] == 0
    css = whole_case(loss="", y=[], k=2)
    proof, instance = files(whole_case())
    (tmp_path / "run.exsel").write_bytes(strong_file(css, optimum(css)).data())
    assert ends(capfd, [proof, instance, "--problem", "css", "-k", "2"])[0] == 0
    data = written(css, [CLOSE], {0: 1}, 0, 1e300, valid_for="bounded models").data()
    (tmp_path / "run.exsel").write_bytes(data)
    assert "beyond this checker" in ends(capfd, [proof, instance, "--problem", "css", "-k", "2"])[1]


ODD = [
    np.zeros((0, 0)), np.zeros((2, 0)), np.zeros(0), np.array(1.5), np.array("x\n\x1b[2J"), np.array(["a", ""]),
    np.array(""),
    np.array([[1, 2], [3, 4]]), np.array([True, False]), np.array(-(2**63)), np.array(2**64 - 1, dtype="u8"),
    np.array(np.nan), np.array([np.inf] * 4), np.array([["a", "b"]]), np.array(1e300), np.array(1, dtype="u1"),
]  # fmt: skip


@pytest.mark.parametrize("name", [*arrays.KNOWN, *READERS])
@pytest.mark.parametrize("problem", ["regression", "css"])
def test_any_array_under_any_name(files, capfd, name, problem):
    codes = []
    for value in ODD:
        codes.append(ends(capfd, [*files(whole_case(), **{name: value}), "--problem", problem])[0])
    assert problem == "css" or name == "delta" or codes.count(0) < 5
    assert {*codes} <= {0, 2, 3}


def test_memory_that_is_not_there(files, capfd, monkeypatch):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr("exactsel_certificates.standalone.__main__.check", fails)
    assert "take more memory" in ends(capfd, files(whole_case()))[1]


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_instance_files(files, capfd, packed):
    """Whatever happens to the bytes, the command ends with one of its three codes, and one sentence."""
    case = whole_case(level=True, scale=True)
    arguments = [*files(case), "--intercept", "--scale"]
    held = {
        "A": np.array(case.A),
        "y": np.array(case.y),
        "k": 1,
        "lam": 1.0,
        "loss": "quadratic",
        "weights": np.ones(4),
    }
    archive(arguments[1], {f"{name}.npy": npy(value) for name, value in held.items()}, compression=packed)
    data = Path(arguments[1]).read_bytes()
    rng, codes = random.Random(5), []
    for _ in range(600):
        raw = bytearray(data)
        how = rng.randrange(4)
        if how == 0:
            raw = raw[: rng.randrange(len(raw))]
        elif how == 1:
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        elif how == 2:
            place = rng.randrange(len(raw))
            raw[place : place + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\x7f" * 8, rng.randbytes(8)))
        else:
            for name in (b"PK\1\2", b"PK\3\4", b"PK\5\6"):
                place = raw.find(name, rng.randrange(len(raw)))
                if place >= 0:
                    raw[min(place + rng.randrange(4, 40), len(raw) - 1)] ^= 1 << rng.randrange(8)
        Path(arguments[1]).write_bytes(raw)
        codes.append(ends(capfd, arguments)[0])
    assert codes.count(2) > 100
    assert codes.count(3) > 10


def refusal(raw):
    try:
        assert numbers_of("A", raw) is not None
    except Unreadable as error:
        return re.fullmatch(r"array A (is|has|holds) .*\.", str(error))[0]
    return ""


def test_damaged_arrays():
    """The same without an archive around them, whose checksums find most damage."""
    rng = random.Random(6)
    data = npy(np.arange(6.0).reshape(2, 3))
    refused = 0
    for _ in range(3000):
        raw = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            raw[rng.randrange(128)] = rng.choice((rng.randrange(256), 39, 40, 44, 48, 57, 58))
        refused += refusal(bytes(raw)) != ""
    assert refused > 500


def test_instances_with_other_arrays_are_read(tmp_path):
    path = tmp_path / "more.npz"
    np.savez(path, A=np.ones((2, 2)), feature_names=np.array(["a", "b"]), other=np.array([1j]))
    assert read_instance(str(path)) == {"A": [[1.0, 1.0], [1.0, 1.0]]}
