"""Checkpoints that say something else, under hashes that fit: in their JSON, their packed nodes and their proof."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.forged_tables import Forgery, Rng, opened
from exactsel.search.packed_bytes import from_bytes, to_bytes
from exactsel.search.packing import Packed

TEXTS = ("about", "owner", "saved", "progress")
ABSURD = (
    None, True, False, -1, 0, 1, 2, 10**6, 2**31, 2**53, 2**63, 10**400, 0.5, -1e308, 1e308, 5e-324, "", "x", "\x1b[2J",
    "optimal", "0x1p-1074", "-0x1.8p+900", "inf", "nan", [], [[]], [None], [0, 0], [-1], [10**9], {}, {"k": 1},
)  # fmt: skip
RAW = ("1e999", "-1e999", "NaN", "Infinity", "[" * 100_000, '{"a":' * 50_000, "1" * 5000, '"' + "x" * 3_000_000 + '"',
       "[" + "[]," * 400_000 + "[]]", "nonsense", "\u0000")  # fmt: skip
ARRAYS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 100, 10**6, 2**31 - 1, 2**53, 2**62, 2**63 - 1)
FLOATS = (float("nan"), float("inf"), -float("inf"), -1.0, 0.0, 0.5, 1e300, 5e-324)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text_of(connection: sqlite3.Connection, table: str) -> str:
    """The JSON in a table."""
    found = connection.execute(f"SELECT text FROM {table}").fetchone()
    return "{}" if found is None else str(found[0])


def put(connection: sqlite3.Connection, table: str, text: str) -> None:
    """Another text, and its hash where it has one."""
    connection.execute(f"UPDATE {table} SET text = ?", (text,))
    if table in ("about", "saved"):
        connection.execute(f"UPDATE {table} SET digest = ?", (_hash(text.encode()),))


def places_in(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where entries are."""
    included = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [place for key, one in included for place in [(*at, key), *places_in(one, (*at, key))]]


def _holder(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        value = value[key]
    return value


def entry(file: Path, rng: Rng) -> str:
    """Entries of the JSON become something else, or go, or come."""
    table, said = str(rng.choice(TEXTS)), []
    with opened(file) as connection:
        held = json.loads(text_of(connection, table))
        for _ in range(int(rng.integers(1, 3))):
            places = places_in(held)
            if not places:
                break
            place = places[int(rng.integers(len(places)))]
            holder, value = _holder(held, place), ABSURD[int(rng.integers(len(ABSURD)))]
            how = rng.random()
            if how < 0.15:
                del holder[place[-1]]
            elif how < 0.25 and isinstance(holder, list):
                holder.insert(place[-1], holder[place[-1]])
            elif how < 0.3 and isinstance(holder, dict):
                holder["more"] = value
            elif how < 0.45 and type(holder[place[-1]]) in (int, float):
                holder[place[-1]] = holder[place[-1]] * 2 + 1
            else:
                holder[place[-1]] = value
            said.append(".".join(str(key) for key in place if isinstance(key, str)))
        put(connection, table, json.dumps(held))
    return f"entry of {table}: {' '.join(said[:1])}"


def raw_text(file: Path, rng: Rng) -> str:
    """Text that is no JSON, or too much of it, in the place of an entry or of all."""
    table, text = str(rng.choice(TEXTS)), RAW[int(rng.integers(len(RAW)))]
    with opened(file) as connection:
        held = json.loads(text_of(connection, table))
        places = places_in(held)
        if places and rng.random() < 0.8:
            place = places[int(rng.integers(len(places)))]
            _holder(held, place)[place[-1]] = "@@@"
            text = json.dumps(held).replace('"@@@"', text)
        put(connection, table, text)
    return f"raw text of {table}"


def _blobs(connection: sqlite3.Connection) -> list[tuple[str, int, bytes]]:
    """The packed data in a checkpoint: table, number, bytes."""
    return [
        (table, number, data)
        for table in ("part", "chunk")
        for number, data in connection.execute(f"SELECT number, data FROM {table}")
    ]


def _put_blob(connection: sqlite3.Connection, table: str, number: int, data: bytes) -> None:
    connection.execute(f"UPDATE {table} SET data = ? WHERE number = ?", (data, number))
    if table == "chunk":
        (keys,) = connection.execute("SELECT keys FROM chunk WHERE number = ?", (number,)).fetchone()
        connection.execute("UPDATE chunk SET digest = ? WHERE number = ?", (_hash(keys + data), number))
        return
    held = json.loads(text_of(connection, "saved"))
    digests = b"".join(
        hashlib.sha256(connection.execute("SELECT data FROM part WHERE number = ?", (one,)).fetchone()[0]).digest()
        for one in held["parts"]
    )
    put(connection, "saved", json.dumps(held | {"digest": _hash(digests)}))


def _changed(array: Any, rng: Rng) -> Any:
    """An array that is damaged somehow."""
    how = int(rng.integers(6))
    if how < 3 and array.size:
        array = array.copy()
        values = FLOATS if array.dtype.kind == "f" else ARRAYS
        with np.errstate(all="ignore"):
            array.flat[int(rng.integers(array.size))] = np.array(values[int(rng.integers(len(values)))]).astype(
                array.dtype
            )
        return array
    if how == 3:
        return array[: len(array) // 2] if array.ndim else array
    if how == 4:
        return np.concatenate([array, array[:1]]) if array.ndim else array
    return array[::-1].copy() if array.ndim else array


def packed(file: Path, rng: Rng) -> str:
    """Arrays and headers of the packed nodes."""
    where = "none"
    with opened(file) as connection:
        blobs = _blobs(connection)
        table, number, data = blobs[int(rng.integers(len(blobs)))]
        one = from_bytes(data)
        header, arrays = json.loads(json.dumps(one.header)), dict(one.arrays)
        for _ in range(int(rng.integers(1, 3))):
            if rng.random() < 0.75:
                where = str(rng.choice(sorted(arrays)))
                arrays[where] = _changed(arrays[where], rng)
            else:
                places = places_in(header)
                place = places[int(rng.integers(len(places)))]
                where = ".".join(str(key) for key in place if isinstance(key, str))
                _holder(header, place)[place[-1]] = ABSURD[int(rng.integers(len(ABSURD)))]
        _put_blob(connection, table, number, to_bytes(Packed(header, arrays)))
    return f"packed {where}"


def raw_packed(file: Path, rng: Rng) -> str:
    """Bytes that unpack to very much, or announce it."""
    announced = {"header": {"version": 11}, "arrays": [["places", "int64", [10**12, 2]], ["x", "int8", [0] * 5]]}
    text = json.dumps(announced).encode()
    deep = ("[" * 200_000).encode()
    made = (
        b"", b"nonsense", zlib.compress(b"\0" * 600_000_000, 1), zlib.compress(len(text).to_bytes(8, "little") + text),
        zlib.compress(len(deep).to_bytes(8, "little") + deep), zlib.compress((2**63).to_bytes(8, "little") + b"x"),
        zlib.compress(b"{}")[:-3], zlib.compress(b"\x02" + bytes(7) + b"{}"),
    )  # fmt: skip
    with opened(file) as connection:
        blobs = _blobs(connection)
        table, number, data = blobs[int(rng.integers(len(blobs)))]
        choice = int(rng.integers(len(made) + 1))
        _put_blob(connection, table, number, data + b"more" if choice == len(made) else made[choice])
    return "raw packed"


def keys(file: Path, rng: Rng) -> str:
    """The order of nodes on the disk."""
    with opened(file) as connection:
        found = connection.execute("SELECT number, keys, data FROM chunk").fetchall()
        number, held, data = found[int(rng.integers(len(found)))]
        rows = np.frombuffer(held, dtype=[("bound", "<f8"), ("id", "<i8")]).copy()
        if rows.size and rng.random() < 0.8:
            rows["bound" if rng.random() < 0.5 else "id"][int(rng.integers(rows.size))] = rng.choice([-1, 0, 7, 1e18])
        made = rows.tobytes() if rng.random() < 0.7 else held[: int(rng.integers(len(held) + 1))] + b"x"
        connection.execute("UPDATE chunk SET keys = ?, digest = ? WHERE number = ?", (made, _hash(made + data), number))
    return "keys"


def spool(file: Path, rng: Rng) -> str:
    """What the proof consists of so far, and what is said of it."""
    with opened(file) as connection:
        rows = connection.execute("SELECT number, name, data FROM spool ORDER BY number").fetchall()
        at = int(rng.integers(len(rows)))
        number, name, data = rows[at]
        how = int(rng.integers(5))
        raw = bytearray(data)
        if how == 0:
            name = str(rng.choice(["pieces", "records", "point_value", "nothing", "tree", ""]))
        elif how == 1:
            raw = raw[: int(rng.integers(len(raw) + 1))]
        elif how == 2 and len(raw) >= 4:
            place = 4 * int(rng.integers(len(raw) // 4))
            raw[place : place + 4] = int(rng.choice([-1, -2, 0, 1, 77, 2**31 - 1, -(2**31)])).to_bytes(
                4, "little", signed=True
            )
        elif how == 3:
            raw = raw + raw
        elif raw:
            raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        connection.execute("UPDATE spool SET name = ?, data = ? WHERE number = ?", (name, bytes(raw), number))
        digest = hashlib.sha256().hexdigest()
        for _, one, held in connection.execute("SELECT number, name, data FROM spool ORDER BY number").fetchall():
            digest = _hash(digest.encode() + one.encode() + hashlib.sha256(held).digest())
        put(connection, "saved", json.dumps(json.loads(text_of(connection, "saved")) | {"spools": digest}))
    return f"spool {how}"


def elsewhere(file: Path, rng: Rng) -> str:
    """Another file for the proof: one of the user's."""
    with opened(file) as connection:
        about = json.loads(text_of(connection, "about"))
        about["proof"] = str(
            rng.choice([str(file.with_name("canary")), "canary", "/dev/full", "/no/such/folder/x", "\0"])
        )
        put(connection, "about", json.dumps(about))
    return "proof elsewhere"


def repeated(file: Path, rng: Rng) -> str:
    """Parts and chunks named twice, in another order, or not at all."""
    with opened(file) as connection:
        held = json.loads(text_of(connection, "saved"))
        name = str(rng.choice(["parts", "chunks"]))
        numbers = held[name] or [0]
        choice = int(rng.integers(4))
        held[name] = (numbers * 2, numbers[::-1], numbers * 50_000, numbers[1:])[choice]
        if name == "parts":
            blobs = dict(connection.execute("SELECT number, data FROM part"))
            digests = b"".join(hashlib.sha256(blobs.get(one, b"")).digest() for one in held["parts"])
            held["digest"] = _hash(digests)
        put(connection, "saved", json.dumps(held))
    return f"repeated {name}"


def believed(file: Path, rng: Rng) -> str:
    """What can only be believed: bounds, and that nothing else is open. Says so by its name."""
    how = int(rng.integers(3))
    with opened(file) as connection:
        table, number, data = _blobs(connection)[0]
        one = from_bytes(data)
        arrays = {name: array.copy() for name, array in one.arrays.items()}
        for name in arrays:
            if name.endswith(("node.bound", "_SavedState.min_pruned_bound", "_SavedState.proven")):
                with np.errstate(all="ignore"):
                    arrays[name][...] = (1e300, np.inf, arrays[name] + abs(arrays[name]) * 0.1)[how]
        _put_blob(connection, table, number, to_bytes(Packed(one.header, arrays)))
    return "believed bounds"


FORGERIES: tuple[Forgery, ...] = (
    *[entry] * 8, *[raw_text] * 2, *[packed] * 7, *[raw_packed] * 2, keys, spool, spool, elsewhere, repeated, believed,
)  # fmt: skip
