"""Data with far more rows than memory holds: reduced to a small instance with the same objective, or kept in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from exactsel import registry
from exactsel.arguments import with_aliases
from exactsel.data.arrays import read_vector
from exactsel.data.blocks import ArrayRows, Rows, Sliceable, rows_of
from exactsel.data.column_lists import Choice, meant
from exactsel.data.columns import ColumnFile
from exactsel.data.instance import Instance, read_instance
from exactsel.data.long_data import Reducer
from exactsel.data.lost import WEIGHTS, Lost
from exactsel.data.npz import npz_name, storable
from exactsel.data.tables import place_of, target_place
from exactsel.errors import InputError, option, warn_of_data
from exactsel.files import is_file, named_files, refuse_shared
from exactsel.problem.checks import LARGEST_ENTRY, checked_names
from exactsel.problem.doubles import as_array
from exactsel.problem.frames import frame_columns, is_frame, numeric_matrix
from exactsel.problem.preparing import SMALLEST_WEIGHT
from exactsel.problem.row_labels import check_rows
from exactsel.types import FloatArray


class _Block(NamedTuple):
    """Some rows, not processed yet."""

    A: FloatArray
    y: FloatArray
    weights: FloatArray | None


class _Parts(NamedTuple):
    """Where blocks come from."""

    blocks: Iterator[_Block]
    names: tuple[str, ...] | None
    where: str
    lost: tuple[Lost, ...]
    """What has been lost of the numbers, once all blocks have been taken."""


@with_aliases
def gram(
    data: object, y: ArrayLike | None = None, *, target: Choice | None = None, drop: Sequence[Choice] = (),
    sample_weight: ArrayLike | str | None = None, fit_intercept: bool = True, k: int | None = None,
    lam: float | None = None, missing: str | None = None, feature_names: Sequence[str] | None = None,
    decimal: str | None = None, encoding: str | None = None, threads: int | None = None,
    loss: str = "quadratic", delta: float | None = None, out: str | os.PathLike[str] | None = None,
) -> Instance:  # fmt: skip
    """Read rows once, in blocks, and make an instance of them that memory holds.

    With quadratic loss it is a small one that has the same objective. Other losses need the rows themselves: they are
    written to a file column by column, and stay in it.

    Parameters
    ----------
    data : path, frame, array, or iterable of blocks
        A ``.npy``, ``.parquet``, ``.csv`` or ``.tsv`` file; a pandas, polars (also lazy), pyarrow or dask frame; an
        array (n, d) or what is sliced like one (memory maps, dask, h5py, zarr); or an iterable of (A, y) or (A, y,
        weights), blocks of any number of rows, A an array (m, d) or a frame.
    y : array (n,), optional
        The target of an array, or what is sliced like one.
    target, drop : optional
        The column to predict (name, number from 0, or a file; ``y`` by default), and columns to drop.
    sample_weight : str, int, path or array (n,), optional
        A column, a file, or numbers: the weights of the rows, not negative.
    fit_intercept : bool
        Whether models have an unpenalised intercept. It is worked in, and comes back in the answer.
    k, lam : optional
        Stored in the instance.
    missing : str, optional
        ``drop-rows``: rows with a missing value are dropped; they are refused by default.
    feature_names, decimal, encoding : optional
        Names of columns that have none; decimal mark and encoding of a text.
    threads : int, optional
        All cores by default. The answer does not depend on them.
    loss, delta : optional
        The loss the instance is for, and its threshold, to be stored.
    out : path, optional
        The instance file, ``.npz``, which other losses than the quadratic one need, and it does not write. It must stay
        as it is for as long as the instance is used.

    Returns
    -------
    Instance
        Of quadratic loss at most d + 1 rows, and ``reduction``, which says how far they may be off from all. Of other
        losses the one in ``out``, all its rows; A is a memory map of the file.

    Raises
    ------
    InputError
        For unknown columns, none that count, and numbers that cannot be used, named by block and column.
    """
    _check(missing, threads, loss, out, delta)
    refuse_shared(named_files(out=out), named_files(data=data, target=target, weights=sample_weight))
    parts = _parts_of(data, y, target, drop, sample_weight, decimal, encoding)
    stored: dict[str, Any] = {"k": k, "lam": lam, "loss": loss}
    if out is not None:
        return _in_file(parts, feature_names, missing, out, stored | {"delta": delta, "intercept": fit_intercept})
    with _taken(parts, feature_names, missing, lambda d: Reducer(d, intercept=fit_intercept, threads=threads)) as taken:
        reduction = taken[0].end()
    return Instance(reduction.A, reduction.y, **stored, feature_names=taken[1], reduction=reduction.reduction)


def _parts_of(
    data: Any, y: ArrayLike | None, target: Choice | None, drop: Sequence[Choice], weights: ArrayLike | str | None,
    decimal: str | None, encoding: str | None,
) -> _Parts:  # fmt: skip
    """Where blocks of these data come from."""
    check_rows(data, y=y, sample_weight=weights)
    # Of the class: a lazy frame computes its columns when they are read.
    if isinstance(data, str | os.PathLike) or hasattr(data, "shape") or hasattr(type(data), "columns"):
        return _of_table(rows_of(data, decimal, encoding), y, target, drop, weights)
    if y is not None or target is not None or drop or weights is not None:
        raise InputError("blocks bring target and weights themselves, as (A, y) or (A, y, weights); leave them out.")
    return _of_blocks(data)


def _in_file(
    parts: _Parts, names: Sequence[str] | None, missing: str | None, out: str | os.PathLike[str], stored: dict[str, Any]
) -> Instance:  # fmt: skip
    """The rows in a file, with what else is stored beside them."""
    with _taken(parts, names, missing, lambda d: ColumnFile(npz_name(out), d)) as (file, named):
        if not file.rows:
            raise InputError(f"all rows of {parts.where} have missing values; fill gaps before.")
        fields = stored | {"feature_names": named}
        file.end({name: storable(name, value) for name, value in fields.items() if value is not None})
    return read_instance(out)


class _Taking(Protocol):
    """A consumer of rows."""

    def take(self, A: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> None: ...

    def close(self) -> None: ...


_Any = TypeVar("_Any", bound=_Taking)


def _check(missing: str | None, threads: int | None, loss: str, out: object, delta: float | None) -> None:
    """:class:`InputError` for unknown words, and where the loss requires another way than was taken."""
    if missing not in (None, "drop-rows"):
        raise InputError(f"missing is '{missing}', but of blocks of rows only 'drop-rows' is known; fill gaps before.")
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}, but at least 1 was expected; leave it out for all cores.")
    registry.load("losses", loss)
    if loss == "quadratic" and out is not None:
        raise InputError("rows of quadratic loss become a small instance; leave out out, and write it yourself.")
    if loss != "quadratic" and out is None:
        raise InputError(f"rows of {loss} loss are kept in a file; name it with out='rows.npz', say.")
    if delta is not None and not registry.has_delta(loss):
        raise InputError(
            f"delta is given, but {loss} loss has no such parameter; use {option('loss', 'huber')} or leave delta out."
        )


@contextmanager
def _taken(
    parts: _Parts, names: Sequence[str] | None, missing: str | None, begin: Callable[[int], _Any]
) -> Iterator[tuple[_Any, tuple[str, ...] | None]]:
    """The consumer after all rows, begun with the number of columns, and the names of these; closed at the end."""
    taker, first, gone, named = None, 0, 0, None
    try:
        for number, raw_block in enumerate(parts.blocks):
            where = f"block {number} of {parts.where} (from row {first} on)"
            if taker is None:
                d = raw_block.A.shape[1]
                named = checked_names(parts.names if names is None else names, d)
                taker = begin(d)
            block = _checked(raw_block, d, named, where, missing is not None)
            taker.take(*block)
            first, gone = first + len(raw_block.A), gone + len(raw_block.A) - len(block.A)
        if taker is None:
            raise InputError(f"{parts.where} holds no rows; give at least one.")
        for lost in parts.lost:
            lost.tell()
        yield taker, named
    finally:
        if taker is not None:
            taker.close()
    if gone:
        warn_of_data(f"{gone} of {first} rows of {parts.where} have missing values and are left out.")


def _checked(block: _Block, d: int, names: Sequence[str] | None, where: str, drop: bool) -> _Block:
    """The block, known to be usable; with ``drop`` without its rows that have gaps."""
    A, y, weights = block
    if A.shape[1] != d:
        raise InputError(f"{where} has {A.shape[1]} columns, but the first has {d}; give all blocks the same.")
    for what, vector in (("numbers in y", y), ("weights", weights)):
        if vector is not None and len(vector) != len(A):
            raise InputError(f"{where} has {len(A)} rows, but {len(vector)} {what}; give one number per row.")
    if drop:
        gaps = np.isnan(A).any(axis=1) | np.isnan(y) | (False if weights is None else np.isnan(weights))
        A, y, weights = A[~gaps], y[~gaps], None if weights is None else weights[~gaps]
    if len(A):
        # Least and largest show nan and inf, and no table of truths is needed.
        _refuse(np.maximum(A.max(axis=0), -A.min(axis=0)), A, names, where)
        _refuse(np.array([np.abs(y).max()]), y[:, None], ["the target"], where)
        if weights is not None:
            _check_weights(weights, where)
    return _Block(A, y, weights)


def _refuse(sizes: FloatArray, A: FloatArray, names: Sequence[str] | None, where: str) -> None:
    """:class:`InputError` where a column (m, d) with these largest sizes (d,) cannot be used."""
    wrong = np.flatnonzero(~(sizes <= LARGEST_ENTRY))
    if not wrong.size:
        return
    j = int(wrong[0])
    called = f"column {j}" if names is None else names[j] if names == ["the target"] else f"column {names[j]}"
    row = int(np.flatnonzero(~(np.abs(A[:, j]) <= LARGEST_ENTRY))[0])
    value = float(A[row, j])
    if np.isfinite(value):
        raise InputError(
            f"in {where}, {called} holds {value:.3g}, but computing with more than {LARGEST_ENTRY:g} would overflow; "
            f"rescale it."
        )
    defect = "no value (or NaN)" if np.isnan(value) else "an infinite value"
    raise InputError(
        f"in {where}, {called} holds {defect} in the block's row {row}; correct it, leave such rows out with "
        f"{option('missing', 'drop-rows')}, or leave out the column with {option('drop')}."
    )


def _check_weights(weights: FloatArray, where: str) -> None:
    counted = weights[weights != 0]
    if not counted.size or (counted.min() >= SMALLEST_WEIGHT and counted.max() <= 1 / SMALLEST_WEIGHT):
        return
    wrong = counted[~((counted >= SMALLEST_WEIGHT) & (counted <= 1 / SMALLEST_WEIGHT))][0]
    raise InputError(
        f"in {where}, a weight is {wrong:g}, but 0 or something between {SMALLEST_WEIGHT:g} and "
        f"{1 / SMALLEST_WEIGHT:g} was expected; correct it."
    )


def _of_table(
    rows: Rows, y: object, target: Choice | None, drop: Sequence[Choice], weights: ArrayLike | str | None
) -> _Parts:
    """Blocks of a table, its columns chosen."""
    where, names = rows.where, rows.names
    left_out = {place_of(names, name, where) for name in meant(drop, names)}
    place, file = (None, None) if y is not None else target_place(names, target, where)
    apart = y if file is None else file
    of_weights = place_of(names, weights, where) if _is_column(weights, names) else None
    beside = (
        None if apart is None else _vector(apart, "target"),
        None if weights is None or of_weights is not None else _vector(weights, "weights"),
    )
    if place is None and beside[0] is None:
        raise InputError(f"{where} has no target y; name its column or its file with {option('target')}.")
    used = [j for j in (place, of_weights) if j is not None]
    columns = [j for j in range(len(names)) if j not in left_out and j not in used]
    if not columns:
        raise InputError(f"{where} has no columns left beside the target; drop fewer.")
    named = tuple(names[j] for j in columns) if any(names) else None
    lost = tuple(vector.lost for vector in (rows, *beside) if vector is not None)
    return _Parts(_chosen(rows, len(columns), [*columns, *used], place is not None, beside), named, where, lost)


def _is_column(weights: ArrayLike | None, names: Sequence[str]) -> TypeGuard[str | int]:
    """Whether weights are named by their column, and not by a file, or given as numbers."""
    return isinstance(weights, int) or (isinstance(weights, str) and (weights in names or not is_file(weights)))


def _chosen(
    rows: Rows, d: int, places: Sequence[int], with_target: bool, beside: Sequence[Rows | None]
) -> Iterator[_Block]:
    """Blocks of the columns at ``places``: d of A, then the target and weights as far as they are not ``beside``."""
    vectors = [None if vector is None else _Along(vector) for vector in beside]
    target, weights = vectors
    for block in rows.blocks(places):
        m = len(block)
        y = block[:, d] if target is None else target.next(m)
        last = block[:, -1] if len(places) > d + int(with_target) else None
        yield _Block(block[:, :d], y, last if weights is None else weights.next(m))
    for vector in (target, weights):
        if vector is not None:
            vector.end()


class _Along:
    """Numbers from another place, row by row beside a table."""

    def __init__(self, vector: Rows) -> None:
        self._where, self._blocks, self._left = vector.where, vector.blocks([0]), np.zeros(0)

    def next(self, count: int) -> FloatArray:
        """The next so many; :class:`InputError` where there are fewer."""
        while self._left.size < count:
            block = next(self._blocks, None)
            if block is None:
                raise InputError(f"{self._where} holds fewer numbers than there are rows; give one number per row.")
            self._left = np.concatenate([self._left, block.reshape(-1)])
        numbers, self._left = self._left[:count], self._left[count:]
        return numbers

    def end(self) -> None:
        """:class:`InputError` where more are left."""
        if self._left.size or next(self._blocks, None) is not None:
            raise InputError(f"{self._where} holds more numbers than there are rows; give one number per row.")


def _is_array(values: object) -> TypeGuard[Sliceable]:
    return hasattr(values, "shape") and isinstance(getattr(values, "dtype", None), np.dtype)


def _vector(values: object, what: str) -> Rows:
    """Numbers, one a row: an array, or a file."""
    if not isinstance(values, str | os.PathLike):
        rows: Rows = ArrayRows(values if _is_array(values) else as_array(values), f"the {what}")
    elif Path(values).suffix.lower() == ".npy":
        rows = rows_of(values)
    else:
        rows = ArrayRows(read_vector(values), str(values))
    if len(rows.names) != 1:
        raise InputError(f"{rows.where} has {len(rows.names)} columns, but one number per row was expected.")
    return rows


def _of_blocks(data: Iterable[Any]) -> _Parts:
    """Blocks that are brought along; names come from the first, where it is a frame."""
    where = "the blocks"
    try:
        iterator = iter(data)
    except TypeError:
        raise InputError(
            f"a {type(data).__name__} cannot be read in blocks; give a file, a frame, an array, or pairs (A, y)."
        ) from None
    first = next(iterator, None)
    if first is None:
        raise InputError("there are no blocks; give at least one pair (A, y).")
    A = first[0] if isinstance(first, tuple | list) and first else None
    names = tuple(column.name for column in frame_columns(A)) if is_frame(A) else None

    lost = Lost()

    def blocks() -> Iterator[_Block]:
        for number, block in enumerate(_and_then(first, iterator)):
            yield _block_of(block, number, names, lost)

    return _Parts(blocks(), names, where, (lost,))


def _doubles(part: object, name: str, lost: Lost) -> FloatArray:
    """A part of a block as doubles; what that loses is taken note of."""
    array = as_array(part)
    doubles = np.asarray(array, dtype=np.float64)
    if array.ndim == 2 and array.shape[1] > 1:
        lost.add_table([f"column {j} of {name}" for j in range(array.shape[1])], array, doubles)
    elif array.ndim in (1, 2):
        lost.add_table([name], array.reshape(-1, 1), doubles.reshape(-1, 1))
    return doubles


def _and_then(first: object, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def _block_of(block: object, number: int, names: tuple[str, ...] | None, lost: Lost) -> _Block:
    if not (isinstance(block, tuple | list) and len(block) in (2, 3)):
        raise InputError(f"block {number} is a {type(block).__name__}, but (A, y) or (A, y, weights) was expected.")
    A, y, weights = (*block, None)[:3]
    check_rows(A, y=y, weights=weights)
    if is_frame(A):
        columns = frame_columns(A)
        if names is not None and tuple(column.name for column in columns) != names:
            raise InputError(f"block {number} has other columns than the first; give all blocks the same.")
        A = numeric_matrix(columns, f"block {number}", rounded=True)
        for column in columns:
            lost.add(f"in the blocks, column {column.name}", np.asarray(column.values), column.rounding)
    try:
        values = [
            None if part is None else _doubles(part, name, lost)
            for name, part in (("the blocks", A), ("y of the blocks", y), (WEIGHTS, weights))
        ]
    except (TypeError, ValueError):
        raise InputError(f"block {number} holds something that is no number; encode texts before.") from None
    matrix, target, counts = values
    if matrix is None or target is None or matrix.ndim != 2:
        raise InputError(f"block {number} has no table A of rows and columns (2 dimensions) with a target y.")
    return _Block(matrix, target.reshape(-1), None if counts is None else counts.reshape(-1))
