"""Attacks written by hand for each kind of file: each is a function of a random generator, and returns bytes."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib

import numpy as np
import pyarrow
import scipy.sparse

from benchmarks.attacks.damaged import NASTY, NASTY_IN_UTF8, Rng, bomb, healthy, repacked, table, write_frame

SHAPES = (
    (10**9, 10**9), (2**40,), (0, 10**18), (10**18, 0), (-1, -2), (2**31, 1), (1, 2**22), (3000, 3000), (1, 1), (),
            (0, 0),
    (1,) * 40, (2**63, 2), (12,), (12, 1), (5, 5, 5), (60000, 1), (1, 60000),
)  # fmt: skip
DTYPES = (
    "<f8", ">f8", "<f4", "<f2", "<f16", "|O", "|V8", "<U4", ">U4", "|S8", "<U0", "|S0", "<M8[s]", "<c16", "|b1", "<i8",
    [("a", "<f4"), ("b", "|O")], "<U1000000000", "(3,)f8", "f8,f8", "|u1", "<u8",
)  # fmt: skip


def one(rng: Rng, values):
    return values[int(rng.integers(len(values)))]


def npy_header(descr, order, shape, version=(1, 0), text: str | None = None) -> bytes:
    header = repr({"descr": descr, "fortran_order": order, "shape": shape}) if text is None else text
    raw = header.encode("latin1", "replace") + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(raw).to_bytes(2 if version[0] == 1 else 4, "little") + raw


def forged_npy(rng: Rng) -> bytes:
    descr, shape = one(rng, DTYPES), one(rng, SHAPES)
    body = rng.integers(0, 256, int(rng.choice([0, 8, 96, 480])), dtype=np.uint8).tobytes()
    try:
        fitting = np.dtype(descr).itemsize * int(np.prod(shape, dtype=object))
    except (TypeError, ValueError):
        fitting = -1
    if 0 <= fitting <= 2**20 and rng.random() < 0.7:
        body = rng.integers(0, 256, fitting, dtype=np.uint8).tobytes()
    return npy_header(descr, bool(rng.random() < 0.5), shape, one(rng, [(1, 0), (2, 0), (3, 0), (1, 1), (9, 0)])) + body


def garbage_npy_header(rng: Rng) -> bytes:
    text = one(rng, ["(" * 900, "[" * 3000, "-" * 4000 + "1", "{'descr':" * 400, "{}", "'\\d'",
            "{'descr': '<f8', 'fortran_order': 7, 'shape': (1,)}", "9" * 4090, "\0",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 12L)}"])  # fmt: skip
    return npy_header("", False, (), one(rng, [(1, 0), (2, 0)]), text) + bytes(96)


def huge_npy_header(rng: Rng) -> bytes:
    return b"\x93NUMPY\x02\x00" + int(one(rng, [2**32 - 1, 2**31, 10**6])).to_bytes(4, "little") + b"{" * 100


def odd_values(rng: Rng) -> bytes:
    values = np.array([np.nan, np.inf, -np.inf, 1e308, 1e61, 5e-324, 1e-61, 0.0, 1.0, -0.0, 2.0**53, 3.0])
    stream = io.BytesIO()
    np.save(stream, rng.choice(values, (12, 4)) if rng.random() < 0.7 else rng.choice(values, 12))
    return stream.getvalue()


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return stream.getvalue()


def npy(value) -> bytes:
    stream = io.BytesIO()
    np.save(stream, value, allow_pickle=False)
    return stream.getvalue()


def forged_member(rng: Rng) -> bytes:
    data, which = healthy("npz", rng), one(rng, ["A", "y", "k", "lam", "feature_names", "loss"])
    maker = one(rng, [forged_npy, garbage_npy_header, huge_npy_header, odd_values])
    return repacked(data, lambda name, held: maker(rng) if name == which + ".npy" else held)


def odd_parameter(rng: Rng) -> bytes:
    name = one(rng, ["k", "lam", "loss", "delta", "feature_names", "weights", "intercept", "groups", "y", "A"])
    value = one(rng, [np.nan, -1, 2**63 - 1, 1e300, "\x1b[2J", np.array(NASTY_IN_UTF8[:3]), np.zeros((3, 3)),
            np.array(["a"] * 4), 1j, True, np.zeros(0), "huber", np.full(12, 1e60), np.longdouble(3),
            np.array([b"x"])])  # fmt: skip
    held = {"A": table(rng).A[:6, :3], "y": np.arange(6.0), "k": 1, "lam": 1.0} | {name: value}
    return archive({f"{key}.npy": npy(part) for key, part in held.items()})


def nasty_names(rng: Rng) -> bytes:
    names = np.array([one(rng, NASTY_IN_UTF8) + str(j) for j in range(3)])
    which = one(rng, ["feature_names", "groups", "loss"])
    held = {"A": table(rng).A[:6, :3], "y": np.arange(6.0), "k": 1, "lam": 1.0,
            which: names[0] if which == "loss" else names}  # fmt: skip
    return archive({f"{key}.npy": npy(part) for key, part in held.items()} | {one(rng, NASTY_IN_UTF8): b""})


def surrogates(rng: Rng) -> bytes:
    data = healthy("npz", rng)
    text = np.frombuffer(NASTY[6].encode("utf-32-le", "surrogatepass") * 4, dtype="<U1")
    return repacked(data, lambda name, held: npy_header("<U1", False, (4,
            )) + text.tobytes() if name == "feature_names.npy" else held)  # fmt: skip


def zip_bomb(rng: Rng) -> bytes:
    size = int(one(rng, [30, 90])) * 2**20
    member = npy_header("<f8", False, (size // 8 // 1000, 1000)) + b"\0" * (size // 8000 * 8000)
    return archive({"A.npy": member, "y.npy": npy(np.zeros(5))}, one(rng, [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2]))


def lying_directory(rng: Rng) -> bytes:
    """A member whose directory says less, or more, than it unpacks to."""
    raw = bytearray(archive({"A.npy": npy_header("<f8", False, (1, 1)) + b"\0" * int(one(rng, [8, 10**6, 3 * 10**7]))}))
    place = raw.index(b"PK\x01\x02")
    claimed = int(one(rng, [0, 72, 10**6, 2**31, 2**32 - 1]))
    raw[place + 24 : place + 28] = claimed.to_bytes(4, "little")
    raw[22:26] = claimed.to_bytes(4, "little")
    return bytes(raw)


def odd_zip(rng: Rng) -> bytes:
    raw = bytearray(healthy(one(rng, ["npz", "sparse"]), rng))
    place = raw.index(b"PK\x01\x02")
    what = int(rng.integers(5))
    if what == 0:
        raw[place + 6] = int(rng.choice([64, 99, 255]))  # version needed
    elif what == 1:
        raw[6] |= 1  # encrypted
        raw[place + 8] |= 1
    elif what == 2:
        raw[place + 10] = int(rng.choice([1, 9, 12, 14, 93, 99]))  # method
    elif what == 3:
        raw[place + 42 : place + 46] = int(rng.choice([1, 2**31, 2**32 - 1])).to_bytes(4, "little")  # where it begins
    else:
        raw[-12:-8] = int(rng.choice([0, 2**31, 2**32 - 1])).to_bytes(4, "little")  # size of the directory
    return bytes(raw)


def lzma_member(rng: Rng) -> bytes:
    return repacked(healthy("npz", rng), lambda name, held: held, one(rng, [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]))


def bad_sparse(rng: Rng) -> bytes:
    kind = one(rng, ["csr", "csc", "coo", "bsr", "dia"])
    stream = io.BytesIO()
    scipy.sparse.save_npz(stream, scipy.sparse.coo_matrix(table(rng).A).asformat(kind))
    with zipfile.ZipFile(stream) as held:
        parts = {name: np.load(io.BytesIO(held.read(name)), allow_pickle=False) for name in held.namelist()}
    for _ in range(int(rng.integers(1, 3))):
        name = one(rng, sorted(parts))
        part = np.array(parts[name])
        if name == "format.npy":
            parts[name] = np.array(one(rng, [b"csr", b"csc", b"coo", b"bsr", b"dia", b"lil", b"\xff", b"", "csr"]))
            continue
        what = int(rng.integers(8))
        if what == 0 and part.size:
            part.reshape(-1)[int(rng.integers(part.size))] = one(rng, [-1, 2**31 - 1, 10**6, 5, 0, part.size])
        elif what == 1:
            part = part[:-1]
        elif what == 2:
            part = np.concatenate([part, part])
        elif what == 3:
            part = part.astype(one(rng, ["<f8", ">i8", "<u8", "<i2", "|S3", "<U2", "<c16", "?"]))
        elif what == 4:
            part = part[None] if rng.random() < 0.5 else part.reshape(-1)
        elif what == 5:
            part = part[:0]
        elif what == 6 and name == "shape.npy":
            part = np.array(one(rng, [(10**6, 10**6), (-1, 4), (2**62, 2**62), (0, 0), (3,), (1, 10**5), (2900, 2900)]))
        else:
            part = part[::-1].copy()
        parts[name] = part
    if rng.random() < 0.1:
        del parts[one(rng, sorted(parts))]
    return archive({name: npy(part) for name, part in parts.items()})


BANNERS = [
    "%%MatrixMarket matrix coordinate real general", "%%MatrixMarket matrix array real general",
    "%%MatrixMarket matrix coordinate pattern symmetric", "%%MatrixMarket matrix coordinate complex hermitian",
    "%%MatrixMarket matrix array integer skew-symmetric", "%%MatrixMarket matrix coordinate real skew-symmetric",
    "%%MatrixMarket vector coordinate real general", "%%MatrixMarket matrix array pattern general", "%%MatrixMarket",
]  # fmt: skip


def bad_mtx(rng: Rng) -> bytes:
    sizes = one(rng, ["3 3 2", "3 3", "1000000 1000000 1", "2147483648 4 1", "-3 3 2", "3 3 99999999999", "3.5 3 2",
            "3000 3000 1", "1 60000 1", "0 0 0", "", "nan 3 1", "3 3 2 9", "\0 3 2", "2 4 3"])  # fmt: skip
    lines = [one(rng, ["1 1 2.5", "3 3 1", "4 1 1", "0 1 1", "1 1", "2 3 nan", "1 2 1e400", "1 2\0 3", "1 1.5 2",
            "2 1 0x10", "1 2 1_0", "99999999999999999999 1 1", "2.5", "-1",
            "2 1 3"]) for _ in range(int(rng.integers(0, 9)))]  # fmt: skip
    remarks = ["% remark\x1b[2J"] * int(rng.integers(0, 3))
    return "\n".join([one(rng, BANNERS), *remarks, sizes, *lines]).encode()


def nul_in_mtx(rng: Rng) -> bytes:
    raw = bytearray(healthy("mtx", rng))
    for _ in range(int(rng.integers(1, 5))):
        raw[int(rng.integers(len(raw)))] = 0
    return bytes(raw)


def bad_csv(rng: Rng) -> bytes:
    text = one(rng, [
        "a,b,y\n1,2,3\n4,5\n", '"a,b\n1,2', "a" * 200_000 + ",b\n1,2\n", "," * 30_000 + "\n" + "1," * 30_000, "\n\n\n",
        "a,b,y\n" + "1,2,3\n" * 2 + "1e999,inf,-inf\n", "a,a,y\n1,2,3\n", "y\n1\n2\n", "a,y\n\0,1\n", "a,y\n1\r2,3\r\n",
        "٣,b\n1,2\n", "a,y\n" + "9" * 5000 + ",1\n1,2\n", "a;b,c\ty\n1,2\n", '"' * 1001, "a,y\n1_0,2\n3,4\n",
                ",y\n1,2\n3,4\n",
        "x0,cat,y\n1,a,2\n2,b\u202e,3\n", "\ufeff\ufeffa,y\n1,2\n", "a,b,y\n1,NA,3\n2,?,\n",
        "cat,y\n" + "".join(f"v{i},{i}\n" for i in range(150)), "a,y\n" + "1,2\n" * 50 + "abc,3\n",
    ])  # fmt: skip
    return text.encode()


def nasty_csv(rng: Rng) -> bytes:
    names = [one(rng, NASTY_IN_UTF8).replace("\0", "") for _ in range(3)]
    lines = [",".join(f'"{name}{j}"' for j, name in enumerate(names)) + ",y"]
    lines += [f"{one(rng, ['1', 'x', names[0]])!s},2,{i},{i}".replace("\n", " ") for i in range(8)]
    return "\n".join(lines).encode()


def other_encoding(rng: Rng) -> bytes:
    return "größe,y\n1,2\n3,4\n".encode(one(rng, ["utf-16", "utf-16-le", "latin1", "utf-32", "cp037"]))


def many_commas(rng: Rng) -> bytes:
    return b"a,b\n1,2\n" + b"," * int(one(rng, [10**5, 3 * 10**6])) + b"\n"


def text_bomb(rng: Rng) -> bytes:
    return bomb(int(one(rng, [7, 15, 40])), one(rng, [b"\0", b",", b"1", b"\n", b"a,", b"1\n", b'"']))


def bad_gzip(rng: Rng) -> bytes:
    good = gzip.compress(b"a,y\n1,2\n3,5\n4,4\n", mtime=0)
    return one(rng, [good + good, good + b"junk", good[:-4] + b"\0\0\0\0", good[:10], b"\x1f\x8b",
            zlib.compress(b"x"), good[:3] + b"\xff" + good[4:]])  # fmt: skip


def bad_svm(rng: Rng) -> bytes:
    lines = [one(rng, ["1 1:1 2:2", "-1 3:0.5", "1 99999999999:1", "1 -1:2", "1 2:1 1:1", "1 1:1 1:2", "nan 1:inf",
            "1,2 1:1", "x 1:1", "1 qid:3 1:2", "1 # \x1b[2J", "1 1:\0", "", "1 1", "1 1:1e400", "1 5000000:1", ":",
            "1 :1", "1 1:"]) for _ in range(int(rng.integers(1, 12)))]  # fmt: skip
    return "\n".join(lines).encode()


def _values(rng: Rng, n: int):
    return one(rng, [
        pyarrow.array([[1, 2]] * n, pyarrow.list_(pyarrow.int8())), pyarrow.array([{"a": 1}] * n,
                pyarrow.struct({"a": pyarrow.int8()})), pyarrow.nulls(n), pyarrow.array([b"\xff"] * n),
        pyarrow.array(range(n), pyarrow.timestamp("ns")), pyarrow.array(range(n), pyarrow.date32()),
        pyarrow.array([float("nan")] * n), pyarrow.array([None, *range(1, n)][:n]),
                pyarrow.array(["x"] * n).dictionary_encode(),
        pyarrow.array([True] * n), pyarrow.array(range(n), pyarrow.decimal128(9, 2)), pyarrow.array([2**63] * n,
                pyarrow.uint64()),
        pyarrow.array(["\x1b[2J"] * n), pyarrow.array([None] * n, pyarrow.string()), pyarrow.array(range(n),
                pyarrow.duration("s")),
        pyarrow.array([1.5] * n).dictionary_encode(), pyarrow.array(np.arange(n, dtype=np.float16)),
                pyarrow.array(["nul\0"] * n),
    ])  # fmt: skip


def odd_columns(kind: str):
    def odd_columns_of(rng: Rng) -> bytes:
        n = int(one(rng, [0, 1, 8]))
        names = ["y", one(rng, ["b", "y", *NASTY_IN_UTF8]), one(rng, ["cat", "c", "__index_level_0__", ""])]
        made = pyarrow.Table.from_arrays(
            [pyarrow.array(np.arange(float(n))), *(_values(rng, n) for _ in names[1:])], names
        )
        stream = io.BytesIO()
        try:
            write_frame(kind, made, rng, stream)
        except (pyarrow.ArrowException, OSError, ValueError, TypeError):
            return b"PAR1"
        return stream.getvalue()

    return odd_columns_of


def _one_text_often() -> pyarrow.Table:
    places = pyarrow.array(np.zeros(50_000, dtype=np.int32))
    return pyarrow.table({"x0": pyarrow.DictionaryArray.from_arrays(places, ["b" * 100_000]), "y": np.zeros(50_000)})


def frame_bomb(kind: str):
    def frame_bomb_of(rng: Rng) -> bytes:
        what = int(rng.integers(3))
        if what == 0:
            made = pyarrow.table({"x0": np.zeros(5_000_000), "y": np.zeros(5_000_000)})
        elif what == 1:
            made = pyarrow.table({"x0": ["a" * 70_000_000], "y": [1.0]})
        else:
            made = _one_text_often()
        stream = io.BytesIO()
        if kind == "parquet":
            pyarrow.parquet.write_table(made, stream, compression="zstd")
        else:
            pyarrow.feather.write_feather(made, stream, compression="zstd")
        return stream.getvalue()

    return frame_bomb_of


def bad_vector(rng: Rng) -> bytes:
    return one(rng, [b"", b"\0" * 50, b"1\n2\n3 4\n", b"1 " * 12, b"# only a remark\n", b"nan\n" * 12, b"-1\n" * 12,
            b"1e400\n" * 12, b"1,2,3", "١\n".encode() * 12, b"0\n" * 12, b"1_0\n" * 12, b"\x1b[2J", b"\xff\xfe",
            b"1\r" * 12, b"1e-300\n" * 11 + b"1e300\n", b"12345678901234567890\n" * 12, b"1\n" * 10**6])  # fmt: skip


def bad_json(rng: Rng) -> bytes:
    nested = "[" * 100_000
    return one(rng, [nested, '{"a":' * 100_000, '{"g": ' + "[" * 900 + "]" * 900 + "}", '{"g": [["x0"]]}', "[]", "{}",
            "null", '{"g": "x0"}', '{"g": [1e400]}', '{"g": [NaN]}', '{"g": [true]}', '{"g": [' + "9" * 5000 + "]}",
            '{"g": ["' + "9" * 5000 + '"]}', '{"g": ["²"]}', '{"g": []}', '{"\\u001b[2J": ["x0"]}',
            '{"a\\u202eb": ["x0", "x1"]}', '{"g": ["\\u001b[2J"]}', '{"g": ["x*", "?0"]}', '{"g": [-1, 99]}',
            '{"\\ud800": ["x0"]}', '{"x1": ["x0"]}', "\0", '{"g": ["x0"], "h": ["x0"]}']).encode()  # fmt: skip


def bad_group_rows(rng: Rng) -> bytes:
    return one(rng, ["", "x0", "x0,a,b", 'x0,"' + "a" * 200_000, "\0,\0", "x0,\n", "column,group\n", "²,one",
            "x0,\x1b[2J\n", "x0,a\u202e\nx1,a\u202e\n", "99,one", "--1,one", "x0,one\rx1,one", '"x0","one',
            "x0,one\n" * 3, "*,all\n", "x[0,a\n"]).encode()  # fmt: skip


NPY = (forged_npy, forged_npy, garbage_npy_header, huge_npy_header, odd_values)
CSV = (bad_csv, bad_csv, bad_csv, nasty_csv, nasty_csv, other_encoding, many_commas)
ATTACKS = {
    "npz": (forged_member, forged_member, forged_member, odd_parameter, odd_parameter, nasty_names, surrogates,
            lying_directory, odd_zip, odd_zip, lzma_member, zip_bomb),
    "sparse": (bad_sparse, bad_sparse, bad_sparse, bad_sparse, bad_sparse, bad_sparse, odd_zip),
    "npy": NPY,
    "csv": (*CSV, text_bomb, bad_gzip),
    "svm": (bad_svm, bad_svm, bad_svm, text_bomb, bad_gzip),
    "mtx": (bad_mtx, bad_mtx, bad_mtx, nul_in_mtx, text_bomb, bad_gzip),
    "parquet": (odd_columns("parquet"), odd_columns("parquet"), odd_columns("parquet"), odd_columns("parquet"),
            frame_bomb("parquet")),
    "feather": (odd_columns("feather"), odd_columns("feather"), odd_columns("feather"), odd_columns("feather"),
            frame_bomb("feather")),
    "txt": (bad_vector,),
    "groups.json": (bad_json,),
    "groups.csv": (bad_group_rows,),
}  # fmt: skip
