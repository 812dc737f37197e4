"""Validation of a problem's input: data, k, lam, names and losses, refused in one sentence or returned clean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactsel import registry
from exactsel.arguments import shown
from exactsel.errors import InputError, did_you_mean, either, option, warn_of_data
from exactsel.losses.base import POINT_FUNCTIONS, Loss, NamedTupleLoss, is_named_tuple
from exactsel.problem.design import DesignMatrix, checked_design, typed_as_array, with_table_for
from exactsel.problem.doubles import as_array, tell_of_rounding, to_doubles
from exactsel.problem.frames import frame_matrix
from exactsel.problem.loss_class import check_class
from exactsel.problem.numbered import as_name, check_position
from exactsel.types import FloatArray
from exactsel_certificates.prepared import weighted_median
from exactsel_mapped import is_kept

LARGEST_ENTRY = 1e60
"""Data beyond this are refused: squared norms of gradients, of the fourth order in the data, must stay finite."""

SMALLEST_SIZE = 1e-60
"""Columns that are not zero but smaller than this are refused, and so is a smaller positive lam: their squares would
underflow, and a column that counts as empty by mistake makes a lower bound wrong."""

ROWS_AT_ONCE = 64
"""Rows brought into column order in one go."""

_LOSS_PARTS = ("name", "smoothness", "infimum", *POINT_FUNCTIONS, "check_target", "check_parameters")


def checked_matrix(A: ArrayLike) -> FloatArray:
    """A as a table of finite floats, column by column, as all the work is. A copy, unless it is a read-only memory map
    of just that (:func:`exactsel_mapped.is_kept`): this stays in its file.
    """
    matrix = _as_floats(A, "A", by_columns=True)
    if matrix.ndim != 2:
        raise InputError(f"A has {matrix.ndim} dimension(s), expected a table of rows and columns (2 dimensions).")
    if 0 in matrix.shape:
        raise InputError(f"A is empty (shape {matrix.shape[0]} x {matrix.shape[1]}); give at least one row and column.")
    sizes = np.maximum(matrix.max(axis=0), -matrix.min(axis=0))
    tiny = np.flatnonzero((sizes > 0) & (sizes < SMALLEST_SIZE))
    if tiny.size:
        raise InputError(
            f"column {tiny[0]} of A holds values of at most {sizes[tiny[0]]:.3g} in size, but below {SMALLEST_SIZE:g} "
            f"their squares would underflow; rescale the column."
        )
    return matrix


def checked_vector(y: ArrayLike) -> FloatArray:
    """The target as a vector of finite floats, always a copy."""
    vector = _as_floats(y, "y")
    if vector.ndim == 2 and 1 in vector.shape:
        vector = vector.reshape(-1)
    if vector.ndim != 1:
        raise InputError(f"y has {vector.ndim} dimensions, expected one number per row (1 dimension).")
    size = float(np.abs(vector).max(initial=0.0))
    if 0 < size < SMALLEST_SIZE:
        raise InputError(
            f"y holds values of at most {size:.3g} in size, but below {SMALLEST_SIZE:g} their squares would underflow; "
            f"rescale y."
        )
    return vector


def row_numbers(values: ArrayLike, name: str, refuse: bool = True) -> FloatArray:
    """Weights or an offset as a vector of floats, which may be infinite or nan; ``refuse`` is about their rounding."""
    refuse_masked(values, name)
    try:
        return to_doubles(as_array(values).reshape(-1), name, refuse=refuse)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        verb = "are" if name.endswith("s") else "is"
        raise InputError(f"{name} {verb} not numeric; give one number per row.") from None


def checked_data(
    A: ArrayLike, y: ArrayLike, names: Sequence[str] | None, *needs: object
) -> tuple[FloatArray, FloatArray, Sequence[str] | None]:
    """The data column by column (d, n), the target (n,), and the column names, which a data frame brings itself."""
    data, names = with_table_for(needs, *frame_matrix(A, names))
    matrix = (
        checked_design(data, SMALLEST_SIZE, LARGEST_ENTRY) if isinstance(data, DesignMatrix) else checked_matrix(data)
    )
    target = checked_vector(y)
    if matrix.shape[0] != target.size:
        raise InputError(
            f"the data have {matrix.shape[0]} rows but y has {target.size} entries; they must describe the same rows."
        )
    AT = typed_as_array(matrix.T) if isinstance(matrix, DesignMatrix) else np.ascontiguousarray(matrix.T)
    return AT, target, names


def refuse_masked(values: object, name: str) -> None:
    """:class:`InputError` for a masked array, whose mask numpy would drop without a word."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array; leave out or fill in the masked entries and pass a plain array.")


def _as_floats(values: ArrayLike, name: str, by_columns: bool = False) -> FloatArray:
    refuse_masked(values, name)
    try:
        cells: NDArray[Any] = as_array(values)
        kinds = {np.asarray(entry).dtype.kind for entry in cells.flat} if cells.dtype == object else {cells.dtype.kind}
        if "c" in kinds:
            raise InputError(f"{name} holds complex numbers; only real numbers are supported.")
        if kinds & {"m", "M"}:
            raise InputError(f"{name} holds dates or durations; turn them into numbers first.")
        with np.errstate(over="ignore", invalid="ignore"):
            array: FloatArray = _by_columns(cells) if by_columns else np.array(cells, dtype=np.float64)
        tell_of_rounding(cells, array, name)
    except InputError:
        raise
    except OverflowError:
        raise InputError(f"{name} holds a whole number too large for a float; rescale {name}.") from None
    except (TypeError, ValueError):
        frame = either(', or give a data frame with factors="auto"', "") if name == "A" else ""
        classes = f", or give {option('loss', 'logistic')} for two classes" if name == "y" else ""
        raise InputError(
            f"{name} is not numeric; encode text and categories as numbers first{frame or classes}."
        ) from None
    largest = max(float(array.max()), -float(array.min())) if array.size else 0.0
    if not largest < np.inf:
        bad = int(np.size(array) - np.count_nonzero(np.isfinite(array)))
        raise InputError(
            f"{name} holds {bad} value(s) that are NaN or infinite; remove or fill in those entries first."
        )
    if largest > LARGEST_ENTRY:
        raise InputError(
            f"{name} holds values up to {largest:.3g} in size, but computing with more than {LARGEST_ENTRY:g} would "
            f"overflow; rescale {name}."
        )
    return array


def _by_columns(table: NDArray[Any]) -> FloatArray:
    """A copy in column order. Some rows at a time: entry by entry it would take three times as long."""
    if is_kept(table):
        return np.asarray(table)  # of the plain type: another one takes a slower way into each kernel
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        return np.array(table, dtype=np.float64, order="F")
    array = np.empty(table.shape, order="F")
    for first in range(0, len(table), ROWS_AT_ONCE):
        array[first : first + ROWS_AT_ONCE] = table[first : first + ROWS_AT_ONCE]
    return array


def checked_k(k: int | None, d: int) -> int:
    """The largest number of columns, at most d; the warning about that points at the caller's caller."""
    if k is None:
        raise InputError(
            f"k, the largest number of features in the model, is missing; give {either('k=5', '-k 5')}, say, "
            "or store k in the file."
        )
    try:
        whole = not isinstance(k, bool) and int(k) == k
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise InputError(f"k is {shown(k)}, but the number of features must be a whole number.")
    if k < 0:
        raise InputError(f"k is {int(k)}, but the number of features cannot be negative.")
    if k > d:
        warn_of_data(f"k = {int(k)} is more than the {d} features there are; using k = {d}.")
        return d
    return int(k)


def checked_lam(lam: object, loss: str = "", zero: bool = True, free: bool = True) -> float:
    """The ridge weight; ``zero`` says whether 0 is the default, ``free`` whether the ``loss`` allows it."""
    if lam is None and zero:
        return 0.0
    if lam is None:
        without = f"{option('lam', 0)} for none, as in R, or " if free else ""
        same = ", which is C = 1 of scikit-learn," if loss in ("logistic", "squared_hinge") else ""
        raise InputError(
            f"lam, the ridge weight, is missing, and {loss} loss needs one; give {without}{option('lam', 1)} to begin "
            f"with{same} where features have about the size 1 (see {option('standardize', True)})."
        )
    value = _real(lam)
    if value is None:
        raise InputError(f"lam is {shown(lam)}, but the ridge weight must be a number.")
    if not math.isfinite(value) or value < 0:
        raise InputError(f"lam is {value:g}, but the ridge weight must be a finite number that is not negative.")
    if 0 < value < SMALLEST_SIZE:
        raise InputError(f"lam is {value:g}, too small to compute with; give 0 or at least {SMALLEST_SIZE:g}.")
    if value > LARGEST_ENTRY:
        raise InputError(f"lam is {value:g}, too large to compute with; give at most {LARGEST_ENTRY:g}.")
    if value == 0 and not free:
        raise InputError(
            f"lam is 0, which only quadratic, huber, logistic and poisson loss allow; give a positive {option('lam')} "
            f"for {loss} loss."
        )
    return value


def checked_names(names: Sequence[str] | None, d: int) -> tuple[str, ...] | None:
    """One name per column, if there are names."""
    if names is None:
        return None
    try:
        checked = None if isinstance(names, str | bytes) else tuple(map(as_name, names))
    except TypeError:
        checked = None
    if checked is None:
        raise InputError(f"feature_names is {shown(names)}, but a list was expected; give one name per feature.")
    if len(checked) != d:
        raise InputError(f"{len(checked)} feature names were given for {d} features; give one name per feature.")
    odd = next((name for name in checked if not name.isprintable()), None)
    if odd is not None:
        raise InputError(f"the feature name {odd!r} holds a line break or control character; rename the feature.")
    return checked


def column_meant(entry: int | str, names: tuple[str, ...] | None, d: int, which: str) -> int:
    """The number of a column given by number or name; a text that is no name but reads as a number is one."""
    single = _single(entry)
    if isinstance(entry, str):
        matches = [j for j, name in enumerate(names or ()) if name == entry]
        if len(matches) == 1:
            return matches[0]
        number = column_number(entry)
        if matches or number is None:
            what = "no feature is" if not matches else f"{len(matches)} features are"
            advice = "give the feature's number" + (either("", " (in Python)") if number is not None else "")
            meant = "" if matches else did_you_mean(entry, names or ())
            raise InputError(f"{which} names {entry!r}, but {what} called that{meant}; {advice}.")
        single = number
    elif isinstance(single, int) and not isinstance(single, bool):
        check_position(single, names, which)
    if isinstance(single, bool) or not isinstance(single, int) or not 0 <= single < d:
        raise InputError(f"{which} names feature {shown(single)}, but the features are numbered 0 to {d - 1}.")
    return single


def column_number(text: str) -> int | None:
    """The number a text writes out in decimal digits, perhaps with a sign; None for any other text."""
    digits = text.removeprefix("-")
    # Python refuses to read numbers of thousands of digits, and no column has one.
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= 18 else None


def name_of_loss(loss: str | Loss) -> str:
    """The name of a loss that is given by name or as an object; :class:`InputError` for anything else."""
    return loss if isinstance(loss, str) else _with_float_parameters(loss).name


def make_loss(loss: str | Loss, delta: float | None, y: FloatArray) -> Loss:
    """Turn a name or an object into a checked loss; ``delta`` is its threshold, from the scale of y by default."""
    threshold = None if delta is None else _real(delta)
    if delta is not None and threshold is None:
        called = loss if isinstance(loss, str) else getattr(loss, "name", "the")
        what = f"delta of {called} loss must be a number"
        raise InputError(f"delta is {shown(delta)}, but {what}; give {option('delta')}.")
    made = _loss_by_name(loss, threshold, y) if isinstance(loss, str) else loss
    made = _with_float_parameters(made)
    knot = getattr(made, "delta", None)
    if threshold is not None and knot is None:
        raise InputError(
            f"delta is given, but {made.name} loss has no such parameter; use {option('loss', 'huber')} or leave "
            "delta out."
        )
    made.check_parameters()
    for name, value in _parameters(made).items():
        if not math.isfinite(value):
            raise InputError(f"{name} of {made.name} loss is {value}, but parameters must be finite; change {name}.")
    if threshold is not None and knot != threshold:
        raise InputError(f"delta is {threshold}, but the loss object has delta={knot}; give one of the two.")
    return made


def default_delta(y: FloatArray, weights: FloatArray | None = None) -> float:
    """1.345 times the robust scale of y (median absolute deviation / 0.6745); ``weights`` (n,) count as repeats."""
    scale = weighted_median(np.abs(y - weighted_median(y, weights)), weights) / 0.6745
    if scale == 0.0:
        what = "y has the same value" if weights is None else "the weight is on rows with the same y"
        raise InputError(f"more than half of {what}, so the default threshold would be 0; give {option('delta')}.")
    return 1.345 * scale


def _loss_by_name(name: str, delta: float | None, y: FloatArray) -> Loss:
    kind = registry.load("losses", name)
    fields, defaults = getattr(kind, "_fields", ()), getattr(kind, "_field_defaults", {})
    arguments = (
        {"delta": default_delta(y) if delta is None and "delta" not in defaults else delta} if "delta" in fields else {}
    )
    arguments = {field: value for field, value in arguments.items() if value is not None}
    needed = [field for field in fields if field not in arguments and field not in defaults]
    if needed:
        raise InputError(
            f"loss '{name}' has the parameters {', '.join(fields)}, of which {', '.join(needed)} must be given; pass a "
            f"loss object instead, or give the class defaults."
        )
    loss: Loss = kind(**arguments)
    return loss


def _with_float_parameters(loss: Loss) -> NamedTupleLoss:
    """The loss, found to be what kernels can take, with Python floats for parameters."""
    missing = [name for name in _LOSS_PARTS if not hasattr(loss, name)]
    if missing:
        way_on = "; give the name of a loss, such as 'quadratic'" if len(missing) == len(_LOSS_PARTS) else ""
        raise InputError(f"{shown(loss)} cannot be used as a loss: it lacks {', '.join(missing)}{way_on}.")
    if isinstance(loss, type):
        raise InputError(
            f"the class {loss.__name__} cannot be used as a loss; make an object of it, {loss.__name__}(…)."
        )
    if not is_named_tuple(loss):
        raise InputError(f"an object of type {type(loss).__name__} cannot be used as a loss; make it a NamedTuple.")
    check_class(type(loss))
    smoothness, infimum = _real(loss.smoothness), _real(loss.infimum)
    if smoothness is None or not smoothness > 0:
        raise InputError(
            f"the smoothness of {loss.name} loss is {shown(loss.smoothness)}, but it must be a positive number, or "
            f"inf where there is no such constant."
        )
    if infimum is None or math.isnan(infimum) or infimum == math.inf:
        raise InputError(
            f"the infimum of {loss.name} loss is {shown(loss.infimum)}, but it must be a number or -inf if unknown."
        )
    values = {name: _real(value) for name, value in _parameters(loss).items()}
    for name, value in values.items():
        if value is None:
            text = shown(getattr(loss, name))
            raise InputError(f"{name} of {loss.name} loss is {text}, but parameters must be numbers; change {name}.")
    if all(type(value) is float for value in loss):
        return loss
    return loss._make(values.values())


def _parameters(loss: NamedTupleLoss) -> dict[str, float]:
    return dict(zip(loss._fields, loss, strict=True))


def _real(value: Any) -> float | None:
    """The value as a float, or None where it is not one real number."""
    try:
        if isinstance(value, str | bytes) or np.ndim(value) != 0 or np.iscomplexobj(value):
            return None
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _single(value: object) -> object:
    """The value inside a numpy scalar or an array of one entry; anything else unchanged."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        return value.reshape(-1)[0].item()
    return value


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {' x '.join(map(str, value.shape)) or 'one'} entries of type {value.dtype}"
    return shown(value)


def one_number(name: str, value: object) -> float:
    """A stored number: a scalar or an array of one entry."""
    single = _single(value)
    if isinstance(single, bool) or not isinstance(single, int | float) or _real(single) is None:
        raise InputError(f"{name} is {_described(single)}, but one number was expected; store it as {name}=0.1, say.")
    return float(single)


def one_whole_number(name: str, value: object) -> int:
    """A stored whole number."""
    single = _single(value)
    if isinstance(single, float) and single.is_integer():
        single = int(single)
    if isinstance(single, bool) or not isinstance(single, int):
        raise InputError(
            f"{name} is {_described(single)}, but one whole number was expected; store it as {name}=5, say."
        )
    return single


def one_text(name: str, value: object) -> str:
    """A stored text."""
    single = _single(value)
    if not isinstance(single, str):
        raise InputError(f'{name} is {_described(single)}, but one text was expected; store it as {name}="huber", say.')
    return single


def list_of_texts(name: str, value: object) -> tuple[str, ...]:
    """A stored list of texts."""
    entries = value.tolist() if isinstance(value, np.ndarray) else value
    names = tuple(entries) if isinstance(entries, Iterable) and not isinstance(entries, str) else (None,)
    if not all(isinstance(entry, str) for entry in names):
        raise InputError(f"{name} is {_described(value)}, but a list of texts was expected; give one name per feature.")
    return names
