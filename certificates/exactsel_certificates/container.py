"""The proof file `.exsel`: a header, then raw arrays (FORMAT.md defines the layout).

Reading never believes a size: what the header announces is compared with the size of the file, or where that has none
(a pipe) against a limit, before memory is set aside, and the arrays are views of the bytes read.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactsel_certificates.parts import MalformedError as MalformedError
from exactsel_certificates.parts import check_parts, is_ascending

VERSION = 1

MOST_HEADER_BYTES = 65536

MOST_BYTES = 4 * 2**30
"""A larger file is not read unless the caller says so."""

CHUNK_BYTES = 2**20
"""What is read at a time where the size of a file is not known."""

MOST_SHOWN = 60
"""Characters of what a file says that go into a sentence."""

ARRAYS: dict[str, tuple[str, ...]] = {
    "curvature": ("<f8",),
    "model_value": ("<f8",),
    "point_value": ("<f8", "<f4"),
    "dual_value": ("<f8",),
    "split_scale": ("<f8",),
    "equality_size": ("<f8",),
    "model_index": ("<i4",),
    "point_size": ("<i4",),
    "tree": ("<i4",),
    "split_size": ("<i4",),
    "minorant_point": ("<i4",),
    "minorant_width": ("<f4",),
    "limit_point": ("<i4",),
    "curvature_split": ("<i4",),
    "active_column": ("<i4",),
    "screen_dual": ("<i4",),
    "screen_level": ("<f8",),
    "split_value": ("<f2",),
    "point_index": ("<i4", "<u2", "u1"),
    "split_column": ("<i4", "<u2", "u1"),
}
"""Names in the order they are stored, each with the types it may have; empty arrays are omitted."""

VALUES = (
    "curvature", "model_value", "point_value", "dual_value", "split_scale", "split_value", "minorant_width",
    "screen_level", "equality_size",
)  # fmt: skip
"""Those that hold real numbers."""

SCREENING = ("active_column", "screen_dual", "screen_level")
"""Those of a problem whose columns were screened."""

MOST_TOUCHED = 8
"""Points a minorant may come with, and dual vectors that bound the removed columns."""

MOST_LEVELS = 1000
"""Levels of the intercept at which removed columns are bounded."""

FLAGS = ("weights", "intercept", "scale", "bounds", "equalities")
"""What the problem has besides: true, or absent where it has not."""

ENTRIES = (
    "family", "loss", "n", "d", "k", "columns", "groups", "hierarchy", *FLAGS, "problem_hash", "lower", "upper",
    "valid_for",
)  # fmt: skip
"""The header, beside its arrays."""

SCOPES = ("", "bounded models")

SPLIT_IN, SPLIT_OUT, PUT_IN, LEAVE_OUT, CLOSE, USE, COUNTED, SPLIT = range(8)
"""Kinds of the words of ``tree``, each 8 * argument + kind (see FORMAT.md)."""

MINORANT = SPLIT
"""The same kind, where the loss is not quadratic ..."""

LEAF = 8 + SPLIT
"""... and the word by which regions with few places left are closed by their last columns (logistic loss)."""

FIRST_STRONG = 1 << 24
"""Where SPLIT has an argument from here on, that much more than the number of a point, this names strong columns."""

FIRST_LIKE = 2 * FIRST_STRONG
"""The same from here on: strong columns, the others taken together where they are like each other."""

INFIMUM, FIT, EIGENVALUES, FIRST_POINT = 0, 1, 2, 3
"""Witnesses as the argument of USE: 3 + 2p is point p, 4 + 2p dual vector p."""


@dataclass(frozen=True)
class Proof:
    """A proof file as read: its header's entries, checked for their type alone, and its arrays."""

    family: str
    """``regression`` or ``css``."""
    loss: str
    n: int
    d: int
    k: int
    groups: int | None
    """How many groups the columns are chosen in; None where each is chosen on its own."""
    problem_hash: str
    lower: float
    """Claimed: no model within ``valid_for`` has a smaller objective."""
    upper: float
    """Claimed: the model in ``model_index`` and ``model_value`` has no larger objective."""
    weights: bool
    """Whether the rows have weights."""
    intercept: bool
    """Whether models have an unpenalised intercept."""
    scale: bool
    """Whether the ridge term is about columns of equal size."""
    valid_for: str
    """Empty, or ``bounded models``: the lower bound speaks of models with abs(x_j) ||a_j|| <= 10^6 ||y||."""
    curvature: NDArray[np.float64]
    model_value: NDArray[np.float64]
    point_value: NDArray[Any]
    dual_value: NDArray[np.float64]
    model_index: NDArray[np.int32]
    point_size: NDArray[np.int32]
    tree: NDArray[np.int32]
    point_index: NDArray[Any]
    bounds: bool = False
    """Whether there are limits on coefficients."""
    equalities: bool = False
    """Whether coefficients meet linear equalities."""
    equality_size: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """What the rows that stand for these are multiplied by, powers of two."""
    hierarchy: str | None = None
    """What the file calls the constraint on which units go together; None where there is none."""
    split_size: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    split_column: NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int32))
    split_scale: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    split_value: NDArray[np.float16] = field(default_factory=lambda: np.zeros(0, np.float16))
    minorant_point: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """The point a minorant touches at, and others that show it; none where there is no minorant."""
    minorant_width: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    """(2n,) how far intervals go below the predictions at the first of these, and above."""
    limit_point: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """(1,) the point around which dual vectors limit the coefficients of models; (0,) where they do not."""
    curvature_split: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """(1,) the split after which the curvature is left; (0,) where it is that of A'A + lam I."""
    columns: int | None = None
    """Where only some columns are active, how many there are in all; everything else is about the d active ones."""
    active_column: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """(d,) the active columns, ascending."""
    screen_dual: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """Numbers of the dual vectors that bound the models with a removed column, ..."""
    screen_level: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """... and levels of the intercept between which the rows that columns touch do, ascending."""

    @property
    def duals(self) -> int:
        """How many dual vectors there are."""
        return len(self.dual_value) // max(self.n, 1)


def written(proof: Proof) -> bytes:
    """The bytes of a file."""
    arrays = {name: np.ascontiguousarray(getattr(proof, name)) for name in ARRAYS}
    kinds = {name: array.dtype.newbyteorder("<").str.removeprefix("|") for name, array in arrays.items()}
    entries = {name: getattr(proof, name) for name in ENTRIES}
    entries |= {name: float(entries[name]).hex() for name in ("lower", "upper")}
    described = {name: (kinds[name], array.size) for name, array in arrays.items()}
    return header_bytes(entries, described) + b"".join(array.tobytes() for array in arrays.values())


def header_bytes(entries: Mapping[str, Any], arrays: Mapping[str, tuple[str, int]]) -> bytes:
    """The first bytes of a proof file: ``entries``, then each array's type and number of entries, padded to 8.

    Parts that the problem does not have and arrays without entries are omitted.
    """
    said = {name: value for name, value in entries.items() if value is not None and value is not False}
    listing = [[name, *arrays[name]] for name in ARRAYS if name in arrays and arrays[name][1]]
    whole = {"format": "exsel", "version": VERSION, **said, "arrays": listing}
    text = json.dumps(whole, allow_nan=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def read_proof(path: str | os.PathLike[str], most_bytes: int = MOST_BYTES) -> Proof:
    """Read a proof file: no more of it than its header announces, and no more than ``most_bytes``.

    Raises
    ------
    MalformedError
        When it is not one, or too large, in one sentence.
    OSError
        When it cannot be read at all.
    """
    try:
        with Path(path).open("rb") as stream:
            first = _some(stream, 8)
            size = _header_size(first, 8 + MOST_HEADER_BYTES)
            text = _some(stream, size)
            total = 8 + _header_size(first, 8 + len(text)) + sum(entry.bytes for entry in _listed(_header(text)))
            if total > most_bytes:
                raise MalformedError(
                    f"the header announces {total} bytes, but no more than {most_bytes} are read; raise this limit if "
                    f"the file is meant to be so large."
                )
            # One byte more shows whether anything follows.
            return parse_proof(first + text + _some(stream, total - 8 - size + 1))
    except MemoryError:
        raise MalformedError("the file needs more memory than there is; check it on a larger machine.") from None


def _some(stream: IO[bytes], count: int) -> bytes:
    """The next ``count`` bytes, or what there is of them; memory grows with what has come."""
    parts: list[bytes] = []
    while count > 0:
        part = stream.read(min(count, CHUNK_BYTES))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _header_size(data: bytes, available: int) -> int:
    size = int.from_bytes(data[:8], "little")
    if len(data) == 8 and size > MOST_HEADER_BYTES:
        raise MalformedError(
            f"the file announces a header of {size} bytes, but {MOST_HEADER_BYTES} is the most there may be; it is no "
            f"proof."
        )
    if len(data) < 8 or size > available - 8:
        raise MalformedError(
            f"the file has {available if len(data) == 8 else len(data)} bytes and announces a header of {size}; it is "
            f"cut off or no proof."
        )
    return size


def parse_proof(data: bytes) -> Proof:
    """A proof from the bytes of its file; :class:`MalformedError` as for :func:`read_proof`."""
    size = _header_size(data[:8], len(data))
    header = _header(data[8 : 8 + size])
    entries: dict[str, Any] = {**_entries(header), **_arrays(header, data, 8 + size)}
    proof = Proof(**entries)
    _check_arrays(proof)
    return proof


def _shown(value: object) -> str:
    """What a file says, for a sentence: nothing that is long or deep."""
    if not isinstance(value, str | int | float | None):
        return f"a {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise MalformedError("the header is not JSON.") from None
    if not isinstance(header, dict) or header.get("format") != "exsel":
        raise MalformedError("the header does not say that this is a proof file.")
    if type(header.get("version")) is not int or header["version"] != VERSION:
        raise MalformedError(f"the file's version is {_shown(header.get('version'))}; this program reads {VERSION}.")
    return header


def _is_size(value: object, least: int = 0) -> bool:
    return type(value) is int and least <= value < 2**31


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(FLAGS, (lambda value: value is None or value is True, "neither true nor null")),
    **dict.fromkeys(("n", "d", "k"), (_is_size, "not a size")),
    **dict.fromkeys(("family", "loss", "problem_hash"), (lambda value: isinstance(value, str), "not a text")),
    "groups": (lambda value: value is None or _is_size(value, 1), "neither null nor a number of groups"),
    "columns": (lambda value: value is None or _is_size(value, 1), "neither null nor a number of columns"),
    "hierarchy": (lambda value: value is None or isinstance(value, str), "neither null nor a text"),
    "valid_for": (lambda value: value in SCOPES, "which this format does not know"),
}


def _entries(header: dict[str, Any]) -> dict[str, Any]:
    """The header's entries with their types checked."""
    entries: dict[str, Any] = {name: header.get(name) for name in ENTRIES}
    for name, (holds, what) in _RULES.items():
        if not holds(entries[name]):
            raise MalformedError(f"the header's {name} is {_shown(entries[name])}, {what}.")
    entries |= {name: entries[name] is True for name in FLAGS}
    return entries | {name: _finite(name, entries[name]) for name in ("lower", "upper")}


def _finite(name: str, text: str) -> float:
    try:
        value = float.fromhex(text)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise MalformedError(f"the header's {name} is {_shown(text)}, not a finite number in hexadecimal.")
    return value


def _arrays(header: dict[str, Any], data: bytes, start: int) -> dict[str, NDArray[Any]]:
    """Views of the arrays, which fill the rest of the file without holes; absent ones are empty."""
    arrays: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype=kinds[0]) for name, kinds in ARRAYS.items()}
    for entry in _listed(header):
        end = start + entry.bytes
        if end > len(data):
            cut = f"the array {entry.name} is cut off: {entry.size} entries do not fit into the file"
            raise MalformedError(f"{cut}; take the whole file.")
        arrays[entry.name] = np.frombuffer(data, dtype=entry.kind, count=entry.size, offset=start)
        start = end
    if start != len(data):
        raise MalformedError(f"{len(data) - start} bytes follow the last array; take the file as it was written.")
    return arrays


class _Listed(NamedTuple):
    """An array, as the header has it."""

    name: str
    kind: str
    size: int

    @property
    def bytes(self) -> int:
        return self.size * np.dtype(self.kind).itemsize


def _listed(header: dict[str, Any]) -> list[_Listed]:
    """The arrays a header announces: any of those there are, in their order."""
    listing, names = header.get("arrays"), iter(ARRAYS)
    if not isinstance(listing, list):
        raise MalformedError("the header must list the arrays.")
    for entry in listing:
        # Names that the search passes over are absent.
        if not (isinstance(entry, list) and len(entry) == 3 and entry[0] in names and entry[1] in ARRAYS[entry[0]]):
            raise MalformedError("the header lists an array that is none, or not in its place, or of another type.")
        if type(entry[2]) is not int or not 0 <= entry[2] < 2**60:
            raise MalformedError(f"the array {entry[0]} is said to have {_shown(entry[2])} entries.")
    return [_Listed(*entry) for entry in listing]


def _check_arrays(proof: Proof) -> None:
    """Numbers must be finite, and indices columns in ascending order."""
    for name in VALUES:
        if not np.all(np.isfinite(getattr(proof, name))):
            raise MalformedError(f"the array {name} holds a number that is not finite.")
    if proof.curvature.size not in (0, proof.d) or not np.all(proof.curvature > 0):
        raise MalformedError("the curvature is not one positive number for every column.")
    if proof.model_index.size != proof.model_value.size or not is_ascending(proof.model_index, proof.d):
        raise MalformedError("the model's columns are not distinct columns in ascending order, one for each value.")
    if proof.dual_value.size % max(proof.n, 1):
        raise MalformedError(f"the dual vectors do not have {proof.n} entries each.")
    check_parts("point", proof.point_size, proof.point_index, proof.point_value, proof.d)
    check_parts("split", proof.split_size, proof.split_column, proof.split_scale, proof.d)
    sizes = proof.split_size.astype(np.float64)  # which are exact as long as their squares can be the file's
    if float(np.sum(sizes * (sizes - 1.0))) != 2.0 * proof.split_value.size or not np.all(proof.split_scale > 0):
        raise MalformedError("the splits are not positive scales and one entry for each two columns.")
    touched = len(proof.minorant_point)
    if touched > MOST_TOUCHED or len(proof.minorant_width) != (2 * proof.n if touched else 0):
        raise MalformedError(f"a minorant is one to {MOST_TOUCHED} points and two widths for each row.")
    if len(proof.limit_point) > 1:
        raise MalformedError("the limits on coefficients are around more than one point.")
    named = proof.curvature_split
    if named.size > 1 or np.any((named < 0) | (named >= proof.split_size.size)):
        raise MalformedError("the curvature is not after one of the splits.")
    _check_screening(proof)


def _check_screening(proof: Proof) -> None:
    """What screens columns must be in order, and absent where all columns are active."""
    many = proof.columns
    if many is None and proof.active_column.size + proof.screen_dual.size + proof.screen_level.size:
        raise MalformedError("columns are said to be active, but not of how many.")
    if many is not None and (proof.active_column.size != proof.d or not is_ascending(proof.active_column, many)):
        raise MalformedError("the active columns are not distinct columns in ascending order.")
    if proof.screen_dual.size > MOST_TOUCHED or np.any((proof.screen_dual < 0) | (proof.screen_dual >= proof.duals)):
        raise MalformedError(f"columns left out are bounded by no more than {MOST_TOUCHED} of the dual vectors.")
    if proof.screen_level.size > MOST_LEVELS or np.any(proof.screen_level[1:] <= proof.screen_level[:-1]):
        raise MalformedError(f"the levels are not up to {MOST_LEVELS} numbers in ascending order.")
