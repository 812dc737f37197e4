"""Tables of named columns: what a data frame, or a text file, holds before it is known to be numbers."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from exactsel.errors import InputError, UnsupportedError, option
from exactsel.problem.design import DesignMatrix, SparseColumns, stays_sparse
from exactsel.problem.doubles import EXACT, Rounding, exactly, rounding_between, rounding_of, say, to_doubles
from exactsel.problem.numbered import as_name
from exactsel.types import BoolArray, FloatArray

if TYPE_CHECKING:
    import narwhals
    from scipy.sparse import sparray, spmatrix

FRAME_LIBRARIES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")
"""Libraries whose frames are recognised; none of them is imported to find out."""

MOST_LEVELS = 100
"""A column of more different values than this is hardly a category."""

SHOWN = 6
"""Columns, or values of a column, that a message names one by one."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    values: FloatArray | None
    """Its numbers (n,); None where they cannot be had, for one of the reasons below."""
    kind: str = "numbers"
    """What it holds instead: ``text``, ``dates``, ``units`` (numbers in different ones), or words for anything else."""
    missing: int = 0
    """Entries without a value."""
    texts: tuple[str, ...] = ()
    """The entries of a text column that are there; of one in different units two that show it."""
    partial: FloatArray | None = None
    """(n,) numbers, nan where there is none, of a column that has some."""
    absent: BoolArray | None = None
    """(n,) where a text column has no entry, if some are missing."""
    rounding: Rounding | None = None
    """What its numbers lose as doubles."""
    levels: tuple[Any, ...] | None = None
    """The values a categorical column of a frame may have, in their order; None for any other column."""


def is_frame(value: object) -> bool:
    """Whether ``value`` is a data frame (columns with names and types of their own)."""
    library = type(value).__module__.partition(".")[0]
    return library in FRAME_LIBRARIES and hasattr(type(value), "columns")


def frame_columns(frame: Any) -> list[Column]:
    """The columns of a pandas, polars, pyarrow or other frame that narwhals knows.

    Raises
    ------
    InputError
        When narwhals is missing, or does not know this kind of frame.
    """
    try:
        import narwhals as nw
    except ImportError:
        raise UnsupportedError("data frames need narwhals; run: pip install 'exactsel[frames]'.") from None
    # For a pyarrow table these are the columns themselves; narwhals distinguishes its names.
    names = Counter(name for name in frame.columns if isinstance(name, str))
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise InputError(f"the data frame holds {names[twice]} columns called '{twice}'; give each a name of its own.")
    try:
        nw_frame = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise InputError(
            f"a {type(frame).__module__}.{type(frame).__name__} cannot be read as a table; collect it into a pandas, "
            f"polars or pyarrow frame first."
        ) from None
    return [_column(nw, as_name(name), nw_frame[:, place]) for place, name in enumerate(nw_frame.columns)]


def table_columns(table: Any) -> tuple[list[Column], int]:
    """The columns of a data frame, or of a mapping of names to values, and the number of rows.

    Raises
    ------
    InputError
        As for :func:`frame_columns`, and for columns of different lengths.
    """
    if not isinstance(table, Mapping):
        columns = frame_columns(table)
        return columns, int(table.shape[0])
    entries = {as_name(name): np.atleast_1d(np.asarray(values)) for name, values in table.items()}
    sizes = {name: values.shape for name, values in entries.items()}
    first = next(iter(sizes.items()), ("", (0,)))
    other = next((item for item in sizes.items() if item[1] != first[1] or len(item[1]) != 1), None)
    if other is not None:
        raise InputError(
            f"column '{other[0]}' has the shape {other[1]}, but one value for each row was expected, as many as "
            f"'{first[0]}' has ({first[1][0]}); correct it."
        )
    return [_of_entries(name, values) for name, values in entries.items()], first[1][0]


def _of_entries(name: str, entries: NDArray[Any]) -> Column:
    """A column of numbers or texts; None and nan are missing values."""
    cells = [None if entry is None or entry != entry else entry for entry in entries.tolist()]
    absent = np.array([entry is None for entry in cells], dtype=np.bool_)
    missing = int(absent.sum())
    texts = tuple(entry for entry in cells if isinstance(entry, str))
    if texts and len(texts) == len(cells) - missing:
        return Column(name, None, "text", missing, texts, absent=absent if missing else None)
    try:
        numbers = np.array([np.nan if entry is None else entry for entry in cells], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return Column(name, None, kind=type(entries.flat[0]).__name__, missing=missing)
    return Column(name, None, missing=missing, partial=numbers) if missing else Column(name, numbers)


def numeric_matrix(columns: Sequence[Column], where: str = "the data frame", rounded: bool = False) -> FloatArray:
    """The columns side by side (n, d); with ``rounded`` nothing is said of what numbers lose as doubles.

    Raises
    ------
    InputError
        Naming the columns that hold text, dates or missing values, and what to do about them.
    """
    _refuse(columns, where)
    for column in columns if not rounded else ():
        tell_of_column(column, where)
    vectors = [column.values for column in columns if column.values is not None]
    return np.column_stack(vectors) if vectors else np.zeros((0, 0))


def tell_of_column(column: Column, where: str) -> None:
    """A word about what a column loses as doubles; :class:`InputError` where that is too much."""
    say(column.rounding, f"in {where}, column {column.name}", advice=f", or leave it out with {_option([column])}")


def frame_matrix(A: Any, names: Sequence[str] | None, rounded: bool = False) -> tuple[Any, Sequence[str] | None]:
    """A matrix and its column names: a data frame brings both, others pass through, small sparse ones dense.

    ``rounded`` as for :func:`numeric_matrix`.
    """
    if is_frame(A):
        columns = frame_columns(A)
        return numeric_matrix(columns, rounded=rounded), [column.name for column in columns] if names is None else names
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(A):
        if A.ndim == 2 and A.dtype.kind in "biuf" and stays_sparse(A.shape[0], A.shape[1], A.nnz):
            return _sparse_design(A), names
        return A.toarray(), names
    return A, names


def _sparse_design(A: sparray | spmatrix) -> DesignMatrix:
    """A matrix of scipy.sparse as it is worked on; entries in one place count together, as they do there."""
    entries = A.tocoo(copy=True)
    entries.sum_duplicates()
    filled = entries.data != 0
    rows, columns = (np.asarray(part, dtype=np.int64)[filled] for part in (entries.row, entries.col))
    values = to_doubles(entries.data[filled], "A")
    return SparseColumns.of(rows, columns, values, A.shape).T


def _column(nw: ModuleType, name: str, series: narwhals.Series[Any]) -> Column:
    if series.dtype not in (nw.Categorical, nw.Enum):
        return _of_values(nw, name, series)
    declared = getattr(series.dtype, "categories", None)
    if declared is None:  # of pandas also where they have no order; polars keeps none
        declared = getattr(getattr(series.to_native(), "dtype", None), "categories", ())
    levels = tuple(declared) if isinstance(declared, Iterable) else ()
    return replace(_of_values(nw, name, series), levels=levels)


def _of_values(nw: ModuleType, name: str, series: narwhals.Series[Any]) -> Column:
    missing, dtype = int(series.null_count()), series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = _doubles(nw, series)
        lost = max(missing, int(np.count_nonzero(np.isnan(values))))
        rounding = None if dtype.is_float() or dtype == nw.Boolean else _rounding(series, values)
        if lost:
            return Column(name, None, missing=lost, partial=values, rounding=rounding)
        return Column(name, values, rounding=rounding)
    if dtype.is_temporal():
        return Column(name, None, kind="dates", missing=missing)
    absent = series.is_null().to_list()
    cells = [None if gone else entry for entry, gone in zip(series.to_list(), absent, strict=True)]
    entries = [entry for entry in cells if entry is not None]
    if not any(isinstance(entry, str) for entry in entries):
        try:
            partial = np.array([np.nan if entry is None else entry for entry in cells], dtype=np.float64)
            missing = int(np.count_nonzero(np.isnan(partial)))
            whole = Column(name, partial, rounding=rounding_between(map(exactly, cells), partial))
            return replace(whole, values=None, missing=missing, partial=partial) if missing else whole
        except (TypeError, ValueError, OverflowError):
            pass
    places = np.array(absent) if missing else None
    return Column(name, None, kind="text", missing=missing, texts=tuple(map(str, entries)), absent=places)


def _doubles(nw: ModuleType, series: narwhals.Series[Any]) -> FloatArray:
    """The numbers of a column, nan where there is none; a library may refuse to round them."""
    try:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    except Exception:
        return np.array([np.nan if entry is None else float(entry) for entry in series.to_list()])


def _rounding(series: narwhals.Series[Any], values: FloatArray) -> Rounding | None:
    """What a column of integers or decimals loses as the doubles ``values``, nan where there is none."""
    numbers = values[~np.isnan(values)]
    if series.dtype.is_integer() and not (numbers.size and np.abs(numbers).max() >= EXACT):
        return None
    entries = np.asarray(series.drop_nulls().to_numpy())
    if entries.dtype.kind not in "iuO" or entries.size != numbers.size:
        entries = np.array(series.drop_nulls().to_list(), dtype=object)
    return rounding_of(entries, numbers) if entries.size == numbers.size else None


def _refuse(columns: Sequence[Column], where: str) -> None:
    """:class:`InputError` for all the trouble there is."""
    trouble = [*_texts(columns), *_gaps(columns), *_infinite(columns)]
    if trouble:
        first, *others = trouble
        raise InputError(" ".join([f"in {where}, {first}", *(text[0].upper() + text[1:] for text in others)]))


def _texts(columns: Sequence[Column]) -> Iterator[str]:
    """A sentence for each kind of column that holds no numbers."""
    text = [column for column in columns if column.kind == "text"]
    few = [column for column in text if len(set(column.texts)) <= MOST_LEVELS]
    if few:
        labels = [f"{column.name} ({_examples(column.texts)})" for column in few]
        factors, them = ("it a factor", "it") if len(few) == 1 else ("them factors", "them")
        yield (
            f"{_listed(labels, 'holds', 'hold')} text; make {factors} with {option('factors', 'auto')} (k counts a "
            f"factor once), or leave {them} out with {_option(few)}."
        )
    many = [column for column in text if column not in few]
    if many:
        labels = [f"{column.name} ({len(set(column.texts))}, {_examples(column.texts)})" for column in many]
        what = _listed(labels, "holds", "hold")
        yield f"{what} text of too many values for a category; leave it out: {_option(many)}."
    dates = [column for column in columns if column.kind == "dates"]
    if dates:
        yield (
            f"{_listed([c.name for c in dates], 'holds', 'hold')} dates; turn them into numbers (days "
            f"since a start, month, weekday), or leave them out with {_option(dates)}."
        )
    units = [column for column in columns if column.kind == "units"]
    if units:
        labels = [f"{column.name} ({_examples(column.texts)})" for column in units]
        yield (
            f"{_listed(labels, 'holds', 'hold')} numbers in different units; write all of a column in one, or leave it "
            f"out with {_option(units)}."
        )
    kinds = ("numbers", "text", "dates", "units")
    others = [column for column in columns if column.values is None and column.kind not in kinds]
    if others:
        labels = [f"{column.name} ({column.kind})" for column in others]
        yield f"{_listed(labels, 'holds', 'hold')} neither numbers nor text; leave it out with {_option(others)}."


def _gaps(columns: Sequence[Column]) -> Iterator[str]:
    """A sentence for columns with missing values, and what can be done about those."""
    gaps = [column for column in columns if column.missing]
    if gaps:
        labels = [f"{column.name} ({column.missing} missing)" for column in gaps]
        yield (
            f"{_listed(labels, 'has', 'have')} missing values; fill them in with {option('missing', 'mean')} (or "
            f"median, mean-indicator), remove those rows with {option('missing', 'drop-rows')}, or leave the columns "
            f"out with {_option(gaps)}."
        )


def _infinite(columns: Sequence[Column]) -> Iterator[str]:
    """A sentence for columns with infinite values."""
    wrong = [column for column in columns if column.values is not None and bool(np.isinf(column.values).any())]
    if wrong:
        labels = [column.name for column in wrong]
        what = _listed(labels, "holds", "hold")
        yield f"{what} infinite values; correct those, or leave it out with {_option(wrong)}."


def _listed(labels: Sequence[str], singular: str, plural: str) -> str:
    words = ", ".join(labels[:SHOWN]) + (f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else "")
    return f"column {words} {singular}" if len(labels) == 1 else f"columns {words} {plural}"


def _examples(texts: Sequence[str]) -> str:
    examples = list(dict.fromkeys(texts[:1000]))
    return ", ".join(repr(text[:20]) for text in examples[:2]) + (", …" if len(examples) > 2 else "")


def _option(columns: Sequence[Column], name: str = "drop") -> str:
    return option(name, [*(column.name for column in columns[:SHOWN]), *(["…"] if len(columns) > SHOWN else [])])
