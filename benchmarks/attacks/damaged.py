"""Healthy files of every kind, and what a hostile hand or a bad disk makes of them; everything from a seed."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import scipy.io
import scipy.sparse

Rng = np.random.Generator

KINDS = (
    "npz", "sparse", "npy", "csv", "tsv", "csv.gz", "parquet", "feather", "svm", "svm.gz", "mtx", "mtx.gz",
    "weights.txt", "weights.npy", "target.txt", "target.npy", "groups.json", "groups.csv",
)  # fmt: skip

NASTY = (
    "\x1b[2J\x1b[31mred",
    "a\u202egnp",
    "c1\x9b2J",
    "tab\there",
    "line\nbreak",
    "nul\0",
    "\ud800",
    "\u2066x",
    "\x07",
)
NASTY_IN_UTF8 = tuple(name for name in NASTY if name != "\ud800")
SPECIAL = (0, 1, 127, 128, 255, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)


class Table(NamedTuple):
    """The data every file holds."""

    A: np.ndarray
    y: np.ndarray
    cat: list[str]


def table(rng: Rng) -> Table:
    """Small random data with some zeros, and a category."""
    n, d = int(rng.integers(6, 30)), int(rng.integers(3, 7))
    A = np.round(rng.standard_normal((n, d)), 3)
    A[rng.random((n, d)) < 0.3] = 0.0
    return Table(A, np.round(rng.standard_normal(n), 3), [str(c) for c in rng.choice(["red", "green", "blue"], n)])


def healthy(kind: str, rng: Rng) -> bytes:
    """The bytes of a good file."""
    held = table(rng)
    n, d = held.A.shape
    stream = io.BytesIO()
    base = kind.removesuffix(".gz")
    if kind == "npz":
        names = [f"x{j}" for j in range(d)]
        save = np.savez if rng.random() < 0.5 else np.savez_compressed
        save(stream, A=held.A, y=held.y, k=2, lam=0.1, loss="quadratic", feature_names=names)
    elif kind == "sparse":
        made = scipy.sparse.coo_matrix(held.A).asformat(str(rng.choice(["csr", "csc", "coo", "bsr", "dia"])))
        scipy.sparse.save_npz(stream, made, compressed=bool(rng.random() < 0.5))
    elif kind == "npy":
        np.save(stream, np.asarray(held.A, order=str(rng.choice(["C", "F"]))))
    elif kind.endswith((".npy", ".txt")):
        values = np.abs(held.y[: (n if kind.startswith("target") else 12)]) + 0.1
        if kind.endswith("npy"):
            np.save(stream, np.resize(values, 12))
        else:
            np.savetxt(stream, np.resize(values, 12))
    elif base in ("csv", "tsv"):
        stream.write(text_table(held, "\t" if base == "tsv" else ","))
    elif kind in ("parquet", "feather"):
        write_frame(kind, frame(held), rng, stream)
    elif base == "svm":
        lines = [f"{t} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row) if v) for t, row in zip(held.y, held.A,
                strict=True)]  # fmt: skip
        stream.write("\n".join(lines).encode())
    elif base == "mtx":
        matrix = scipy.sparse.coo_matrix(held.A) if rng.random() < 0.6 else held.A
        scipy.io.mmwrite(stream, matrix, precision=17)
    elif kind == "groups.json":
        stream.write(json.dumps({"one": ["x0", 1], "two": ["x2"]}).encode())
    else:
        stream.write(b"column,group\nx0,one\nx1,one\nx2,two\n")
    data = stream.getvalue()
    return gzip.compress(data, 6, mtime=0) if kind.endswith(".gz") else data


def text_table(held: Table, delimiter: str) -> bytes:
    names = [f"x{j}" for j in range(held.A.shape[1])]
    rows = [[*names, "cat", "y"]]
    for row, cat, target in zip(held.A.tolist(), held.cat, held.y.tolist(), strict=True):
        rows.append([*map(repr, row), cat, repr(target)])
    return "\n".join(delimiter.join(row) for row in rows).encode()


def frame(held: Table) -> pyarrow.Table:
    columns = {f"x{j}": held.A[:, j] for j in range(held.A.shape[1])}
    return pyarrow.table(columns | {"cat": held.cat, "y": held.y})


def write_frame(kind: str, made: pyarrow.Table, rng: Rng, stream: io.BytesIO) -> None:
    if kind == "feather":
        pyarrow.feather.write_feather(made, stream, compression=str(rng.choice(["uncompressed", "lz4", "zstd"])))
        return
    pyarrow.parquet.write_table(
        made, stream, compression=str(rng.choice(["none", "snappy", "zstd", "gzip"])),
        use_dictionary=bool(rng.random() < 0.5), data_page_version=str(rng.choice(["1.0", "2.0"])),
    )  # fmt: skip


def repacked(data: bytes, change, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with members changed, and their checksums with them."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(stream, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return stream.getvalue()


def mutated(data: bytes, rng: Rng) -> bytes:
    """One to three random changes."""
    raw = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if len(raw) < 2:
            break
        raw = CHANGES[int(rng.integers(len(CHANGES)))](raw, rng)
    return bytes(raw)


def _place(raw: bytearray, rng: Rng) -> int:
    """Any place, but headers and footers more often."""
    where = rng.random()
    size = len(raw)
    if where < 0.3:
        return int(rng.integers(min(size, 200)))
    return int(rng.integers(max(0, size - 600), size)) if where < 0.6 else int(rng.integers(size))


def _bits(raw: bytearray, rng: Rng) -> bytearray:
    for _ in range(int(rng.integers(1, 9))):
        raw[_place(raw, rng)] ^= 1 << int(rng.integers(8))
    return raw


def _bytes(raw: bytearray, rng: Rng) -> bytearray:
    raw[_place(raw, rng)] = int(rng.choice([0, 1, 10, 27, 32, 44, 127, 128, 255]))
    return raw


def _forged(raw: bytearray, rng: Rng) -> bytearray:
    place, width = _place(raw, rng), int(rng.choice([2, 4, 8]))
    value = int(SPECIAL[int(rng.integers(len(SPECIAL)))]) % 2 ** (8 * width)
    raw[place : place + width] = value.to_bytes(width, "little" if rng.random() < 0.8 else "big")
    return raw


def _cut(raw: bytearray, rng: Rng) -> bytearray:
    return raw[: int(rng.integers(len(raw)))]


def _removed(raw: bytearray, rng: Rng) -> bytearray:
    place = _place(raw, rng)
    del raw[place : place + int(rng.integers(1, 40))]
    return raw


def _inserted(raw: bytearray, rng: Rng) -> bytearray:
    place, what = _place(raw, rng), rng.integers(0, 256, int(rng.integers(1, 40)), dtype=np.uint8).tobytes()
    raw[place:place] = what
    return raw


def _spliced(raw: bytearray, rng: Rng) -> bytearray:
    a, b, size = _place(raw, rng), _place(raw, rng), int(rng.integers(1, 80))
    raw[a : a + size] = raw[b : b + size]
    return raw


def _other(raw: bytearray, rng: Rng) -> bytearray:
    """The beginning of this file and the end of one of another kind."""
    other = healthy(KINDS[int(rng.integers(len(KINDS)))], rng)
    return raw[: int(rng.integers(len(raw)))] + other[int(rng.integers(len(other))) :]


def _digits(raw: bytearray, rng: Rng) -> bytearray:
    """A digit of some text becomes many."""
    places = [i for i, byte in enumerate(raw) if 48 <= byte < 58]
    if places:
        place = int(rng.choice(places))
        raw[place : place + 1] = rng.choice([b"99999999", b"-1", b"0", b"1e400", b"nan", b"1_0", b"4294967296"])
    return raw


CHANGES = (_bits, _bytes, _forged, _cut, _removed, _inserted, _spliced, _other, _digits)


@lru_cache(maxsize=32)
def bomb(times: int, text: bytes = b"\0") -> bytes:
    """The same text ten million times and more, gzipped."""
    return gzip.compress(text * 10**7, 9, mtime=0) * times
