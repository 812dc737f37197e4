"""Parquet and feather files, read with pyarrow after what they unpack to has been found out."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel.data.arrays import TEXT_BYTES
from exactsel.data.sizes import Budget
from exactsel.data.unpacked import feather_bytes, parquet_bytes
from exactsel.errors import UnsupportedError
from exactsel.problem.doubles import Rounding, rounding_of
from exactsel.problem.frames import Column
from exactsel.types import FloatArray

if TYPE_CHECKING:
    import pyarrow

INDEX = "__index_level_"
"""The prefix of the index columns that pandas stores along; they are dropped."""

ROWS_AT_ONCE = 2**14


def read_frame(file: Path, feather: bool) -> list[Column]:
    """The columns of a parquet or feather file.

    Raises
    ------
    InputError
        When it unpacks to more than may be read, or pyarrow is missing.
    Exception
        Every exception of pyarrow for a damaged file.
    """
    try:
        import pyarrow
        import pyarrow.feather
        import pyarrow.parquet
    except ImportError:
        raise UnsupportedError(f"reading {file.name} needs pyarrow; run: pip install 'exactsel[frames]'.") from None
    budget = Budget(file)
    data = file.read_bytes()
    batches: Iterable[Any]
    if feather:
        rows, columns = feather_bytes(data, budget)
        reader = pyarrow.ipc.open_file(pyarrow.BufferReader(data))
        schema = reader.schema
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        opened = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
        schema = opened.schema_arrow
        rows, columns = opened.metadata.num_rows, opened.metadata.num_columns
        parquet_bytes(data, opened.metadata, budget)
        # As a dictionary a text that stands in many rows takes its memory once.
        texts = [field.name for field in schema if _is_text(pyarrow, field.type)]
        opened = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data), read_dictionary=texts)
        batches = opened.iter_batches(batch_size=ROWS_AT_ONCE, use_threads=False)
    budget.take_table(rows, max(columns, len(schema.names)))
    parts: list[list[Any]] = [[] for _ in schema.names]
    for batch in batches:
        batch.validate(full=True)  # or an offset out of range is followed to wherever it points
        for part, array in zip(parts, batch.columns, strict=True):
            part.append(array)
    return [
        _column(pyarrow, name, schema.field(place).type, part, budget)
        for place, (name, part) in enumerate(zip(schema.names, parts, strict=True))
        if not name.startswith(INDEX)
    ]


def _is_text(pyarrow: ModuleType, kind: object) -> bool:
    predicates = (
        "is_string",
        "is_large_string",
        "is_string_view",
    )  # the last, which polars writes, not in every version
    return any(getattr(pyarrow.types, name)(kind) for name in predicates if hasattr(pyarrow.types, name))


def _column(
    pyarrow: ModuleType, name: str, kind: pyarrow.DataType, parts: Sequence[pyarrow.Array], budget: Budget
) -> Column:
    types = pyarrow.types
    missing = sum(part.null_count for part in parts)
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return Column(name, None, missing=sum(len(part) for part in parts))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        if missing:
            return Column(name, None, missing=missing)
        values = np.concatenate([np.zeros(0), *(floats_of(pyarrow, part) for part in parts)])
        lost = int(np.count_nonzero(np.isnan(values)))
        return Column(name, None, missing=lost) if lost else Column(name, values, rounding=_rounding(pyarrow, parts))
    if types.is_temporal(kind):
        return Column(name, None, kind="dates", missing=missing)
    if _is_text(pyarrow, kind):
        entries = [text for part in parts for text in _texts(part, budget) if text is not None]
        return Column(name, None, kind="text", missing=missing, texts=tuple(entries))
    return Column(name, None, kind=f"entries of type {kind}"[:60], missing=missing)


def _rounding(pyarrow: ModuleType, parts: Sequence[pyarrow.Array]) -> Rounding | None:
    """What a column loses as doubles."""
    roundings = [lost for part in parts if (lost := rounding_in(pyarrow, part)) is not None]
    whole = reduce(Rounding.with_also, roundings) if roundings else None
    return whole if whole is not None and whole.count else None


def rounding_in(pyarrow: ModuleType, part: pyarrow.Array) -> Rounding | None:
    """What an array of integers or decimals loses as doubles, or its least and largest entry; None for other kinds."""
    if pyarrow.types.is_dictionary(part.type):
        part = part.dictionary_decode()
    exact = part.drop_null()
    if not (pyarrow.types.is_integer(part.type) or pyarrow.types.is_decimal(part.type)) or not len(exact):
        return None
    if pyarrow.types.is_decimal(part.type):
        values = np.array(exact.to_pylist(), dtype=object)
    else:
        values = exact.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "iu" and values.dtype.itemsize <= 4:
        return None
    return rounding_of(values, values.astype(np.float64), ends=True)


def floats_of(pyarrow: ModuleType, part: pyarrow.Array) -> FloatArray:
    """The numbers of an array, nan where there is none."""
    if pyarrow.types.is_dictionary(part.type):
        part = part.dictionary_decode()
    floats: FloatArray = part.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    return floats


def _texts(part: pyarrow.Array, budget: Budget) -> list[str | None]:
    """The texts of an array; those of a dictionary are made once each."""
    texts: list[str | None] = (part.dictionary if hasattr(part, "dictionary") else part).to_pylist()
    budget.take(sum(TEXT_BYTES + sys.getsizeof(text) for text in texts) + 16 * len(part))
    if not hasattr(part, "dictionary"):
        return texts
    return [None if place is None else texts[place] for place in part.indices.to_pylist()]
