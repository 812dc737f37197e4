"""Instance files (.npz, .npy) and texts, for the second checker; nothing is taken on the word of a header."""

from __future__ import annotations

import io
import math
import re
import struct
import sys
import zipfile
from collections.abc import Sequence
from typing import Any

LIMIT = 2**26
"""Bytes of a file, and of an array in it. This checker is for small instances."""

MOST = 2**22
"""Numbers in an array."""

KNOWN = ("A", "y", "k", "lam", "loss", "delta", "weights", "intercept", "scale", "groups")
"""Besides the constraints."""

_MAGIC = b"\x93NUMPY"
_CODES = {"f2": "e", "f4": "f", "f8": "d", "b1": "B"} | {
    f"{kind}{size}": code.upper() if kind == "u" else code
    for kind in "iu"
    for size, code in zip((1, 2, 4, 8), "bhiq", strict=True)
}
_ENTRY = re.compile(
    r"\s*(?:'descr'\s*:\s*'(?P<kind>[^']{1,16})'|'fortran_order'\s*:\s*(?P<fortran>True|False)"
    r"|'shape'\s*:\s*\((?P<shape>[\d\s,]*)\))\s*,?"
)


class Unreadable(Exception):
    """A file is none that can be read; the text says why, in one sentence."""


def read_bytes(path: str) -> bytes:
    """The content of a file, of which no more than the limit is read."""
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT + 1)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path!a} cannot be read ({error}); give a file that exists.") from None
    if len(data) > LIMIT:
        raise Unreadable(f"{path!a} has more than {LIMIT} bytes, too many for this checker; ask the other one.")
    return data


def read_instance(path: str, names: Sequence[str] = KNOWN) -> dict[str, Any]:
    """The arrays of these names of an .npz file as numbers, texts and (nested) lists of them."""
    data = read_bytes(path)
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            for name in names:
                matches = [member for member in members if member.filename == f"{name}.npy"]
                if len(matches) > 1:
                    raise Unreadable(f"{path!a} holds {name} twice; write the file again.")
                if matches:
                    arrays[name] = numbers_of(name, unpacked(archive, matches[0]))
    except Unreadable:
        raise
    except Exception as error:  # what zipfile and zlib raise for damaged archives is nowhere said
        raise Unreadable(f"{path!a} is no sound .npz archive ({type(error).__name__}); write it again.") from None
    return arrays


def read_weights(path: str) -> list[Any]:
    """Row weights from an .npy file, or a text with one number a line."""
    data = read_bytes(path)
    if data.startswith(_MAGIC):
        values = numbers_of("weights", data)
        return values if isinstance(values, list) else [values]
    try:
        lines = data.decode().splitlines()
        return [float(word) for line in lines for word in line.split("#")[0].split()]
    except ValueError:
        raise Unreadable(f"{path!a} holds something else than one number a line; correct it.") from None


def read_lines(path: str) -> list[str]:
    """The lines of a text."""
    try:
        return read_bytes(path).decode("utf-8-sig").splitlines()
    except ValueError:
        raise Unreadable(f"{path!a} is no text in UTF-8; save it as one.") from None


def unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """A member's bytes, of which no more than the limit is unpacked."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unreadable(f"{member.filename!a} is packed in a way numpy does not know; write the file again.")
    with archive.open(member) as stream:
        data = stream.read(LIMIT + 1)
    if len(data) > LIMIT:
        raise Unreadable(f"{member.filename!a} unpacks to more than {LIMIT} bytes; ask the other checker.")
    return data


def numbers_of(name: str, raw: bytes) -> object:
    """What an array in numpy's format holds: a number or text, a list, or a list of rows."""
    kind, fortran, shape, body = _parts(name, raw)
    order = {"<": "<", ">": ">", "|": "<", "=": "<" if sys.byteorder == "little" else ">"}.get(kind[:1])
    count = math.prod(shape)
    if len(shape) > 2 or max(count, *shape, 0) > MOST:
        raise Unreadable(f"array {name} has the shape {shape}, which is too large for this checker; ask the other one.")
    values = _texts(name, kind, order, body, count) if kind[1:2] == "U" else _reals(name, kind, order, body, count)
    if len(shape) == 2:
        n, d = shape
        return [values[i::n] if fortran else values[i * d : i * d + d] for i in range(n)]
    return values if shape else values[0]


def text_of(name: str, raw: bytes) -> str:
    """What an array of one text, or of one text in bytes, holds."""
    kind, _, _, body = _parts(name, raw)
    if kind[1:2] == "S":
        return body.rstrip(b"\0").decode("latin-1")[:20]
    value = numbers_of(name, raw)
    return str(value[0] if isinstance(value, list) and value else value)[:20]


def _parts(name: str, raw: bytes) -> tuple[str, bool, tuple[int, ...], bytes]:
    """Type, order, shape and content of an array."""
    start = 10 if raw[6:7] == b"\1" else 12
    end = start + int.from_bytes(raw[8:start], "little")
    if not raw.startswith(_MAGIC) or raw[6:8] not in (b"\1\0", b"\2\0", b"\3\0") or not start < end <= len(raw):
        raise Unreadable(f"array {name} is not in numpy's format; write it with numpy.savez.")
    text = raw[start : min(end, start + 10_000)].decode("latin-1").strip()
    entries: dict[str, str] = {}
    position, last = 1, len(text) - 1
    while match := _ENTRY.match(text, position, last):
        entries |= {key: value for key, value in match.groupdict().items() if value is not None}
        position = match.end()
    if text[:1] + text[-1:] != "{}" or text[position:last].strip() or len(entries) < 3:
        raise Unreadable(f"array {name} holds something else than plain numbers or texts; convert it to doubles.")
    sizes = [size.strip() for size in entries["shape"].split(",") if size.strip()]
    if not all(size.isdecimal() and len(size) < 16 for size in sizes):
        raise Unreadable(f"array {name} has a shape that cannot be read; write it with numpy.savez.")
    return entries["kind"], entries["fortran"] == "True", tuple(map(int, sizes)), raw[end:]


def _reals(name: str, kind: str, order: str | None, body: bytes, count: int) -> list[Any]:
    code = _CODES.get(kind[1:])
    if order is None or code is None:
        raise Unreadable(f"array {name} is of type {kind!a}, not one of real numbers; convert it to doubles.")
    form = f"{order}{count}{code}"
    _fits(name, struct.calcsize(form), body)
    return list(struct.unpack(form, body))


def _texts(name: str, kind: str, order: str | None, body: bytes, count: int) -> list[Any]:
    width = int(kind[2:]) if kind[2:].isdecimal() and len(kind) < 8 else 0
    if order is None or width == 0:
        raise Unreadable(f"array {name} is of type {kind!a}, which is none of numpy's; write it with numpy.savez.")
    _fits(name, 4 * count * width, body)
    try:
        text = body.decode("utf-32-le" if order == "<" else "utf-32-be")
    except UnicodeDecodeError:
        raise Unreadable(f"array {name} holds something else than text; write it with numpy.savez.") from None
    return [text[i : i + width].rstrip("\0") for i in range(0, len(text), width)]


def _fits(name: str, expected: int, body: bytes) -> None:
    if len(body) != expected:
        raise Unreadable(f"array {name} has {len(body)} bytes where its header says {expected}; write the file again.")
