"""Numbers made doubles: exactly where that can be, and else what is lost is worked out and said.

Whole numbers beyond 2^53, as numbers of rows, keys and times in nanoseconds are, need not be doubles; neither need long
doubles, decimals, fractions, and texts of many digits. They become the nearest doubles:

* nothing is said where each is a double, or the nearest one to a number with a fraction, as 0.1 is in any text;
* of whole numbers that are rounded a warning says how many and by how much: what is proven is about the rounded ones;
* where a column varies so little that rounding is more than :data:`MATERIAL` of what it varies by, it is refused.
  A constant that is taken off its values leaves the same problem, if there is an intercept, and one without rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactsel.errors import InputError, warn_of_data
from exactsel.types import FloatArray

EXACT = 2.0**53
"""Whole numbers up to this are doubles."""

MATERIAL = 2.0**-20
"""Rounding by a larger part of what a column varies by could be seen in an objective: its effect on that of an exact
fit is the square of this part, and on others about the part itself, which is the tolerance of a search."""

NARROW = 2.0**-32
"""Only a column that varies by less than this part of its largest entry can be rounded so much if it has fractions."""

DIGITS = 17
"""A double is written with no more digits than this, so that a fraction, or a number with an exponent, that has no more
is read as the nearest double and nothing is lost of what was written."""

MOST_EXPONENT, MOST_DIGITS = 400, 10_000
"""Texts of larger numbers, or with more digits, are not evaluated: no double comes near them, or they are no data."""


@dataclass(frozen=True)
class Rounding:
    """What the numbers of one column lose as doubles."""

    count: int
    """Numbers that are rounded."""
    error: Fraction
    """The largest difference."""
    whole: bool
    """Whether some of those that are rounded are whole numbers."""
    low: Fraction
    high: Fraction
    """The least and the largest number."""
    example: str
    """A number that is rounded by so much."""
    size: int
    """Numbers there are."""

    @property
    def material(self) -> bool:
        """Whether so much is lost that the column is refused."""
        return self.high > self.low and self.error > Fraction(MATERIAL) * (self.high - self.low)

    def with_also(self, other: Rounding) -> Rounding:
        """That of both parts of a column."""
        worse = self if self.error >= other.error else other
        return replace(
            worse, count=self.count + other.count, whole=self.whole or other.whole, low=min(self.low, other.low),
            high=max(self.high, other.high), size=self.size + other.size,
        )  # fmt: skip

    def refusal(self, advice: str = "") -> str:
        """What is wrong with a column, to be put behind its name; ``advice`` follows what can be done in any case."""
        return (
            f"holds {self.example} and other numbers that no double is equal to, and rounding changes them by up to "
            f"{float(self.error):.3g} where they vary by {float(self.high - self.low):.6g} only; take a constant "
            f"({self._shown(self.low)}, say) off all of them, which with an intercept changes no other "
            f"coefficient{advice}."
        )

    def remark(self) -> str:
        """What a warning says of a column, to be put behind its name."""
        part = f" ({float(self.error / (self.high - self.low)):.2g} of their range)" if self.high > self.low else ""
        return (
            f"holds whole numbers beyond 2^53, such as {self.example}: {self.count} of {self.size} are rounded to the "
            f"nearest double, by up to {float(self.error):.3g}{part}, and what is proven is about the rounded numbers."
        )

    @staticmethod
    def _shown(number: Fraction) -> str:
        return str(number.numerator) if number.denominator == 1 else f"{float(number):.17g}"


def to_doubles(values: NDArray[Any], name: str, *, refuse: bool = True) -> FloatArray:
    """An array as doubles (a copy), with a word about what is lost.

    Parameters
    ----------
    values : array (n,) or (n, d)
    name : str
        What messages call it.
    refuse : bool
        Whether to refuse what is rounded too much; a warning says it otherwise.

    Raises
    ------
    InputError
        For rounding that is material, and for whole numbers that no double comes near.
    TypeError, ValueError, OverflowError
        For what is no number.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        array: FloatArray = np.array(values, dtype=np.float64)
    tell_of_rounding(values, array, name, refuse=refuse)
    return array


def tell_of_rounding(values: NDArray[Any], nearest: FloatArray, name: str, *, refuse: bool = True) -> None:
    """A word, as for :func:`to_doubles`, about what an array loses that has been made doubles."""
    if not may_round(values, nearest):
        return
    apart = values.ndim == 2 and (values.shape[1] > 1 or name == "A")
    for j in range(values.shape[1] if apart else 1):
        column, doubles = (values[:, j], nearest[:, j]) if apart else (values.reshape(-1), nearest.reshape(-1))
        say(rounding_of(column, doubles), f"column {j} of {name}" if apart else name, refuse=refuse)


def say(rounding: Rounding | None, name: str, *, advice: str = "", refuse: bool = True) -> None:
    """Warn of what a column loses, or refuse it (:class:`InputError`); nothing where it loses nothing to speak of."""
    if rounding is None:
        return
    if refuse and rounding.material:
        raise InputError(f"{name} {rounding.refusal(advice)}")
    if rounding.whole:
        warn_of_data(f"{name} {rounding.remark()}")


def as_array(values: object) -> NDArray[Any]:
    """An array of what is given; numbers of a list stay as they are where doubles do not hold them."""
    array = np.asarray(values)
    is_list = not hasattr(values, "dtype") and not hasattr(values, "__array__") and array.dtype == np.float64
    if is_list and array.size and not _largest(np.nan_to_num(array)) < EXACT:
        return np.array(values, dtype=object)
    return array


def may_round(values: NDArray[Any], nearest: FloatArray) -> bool:
    """Whether numbers of this type, with these nearest doubles, can be other than them."""
    kind = values.dtype
    if kind.kind in "bc" or (kind.kind == "f" and kind.itemsize <= 8) or not nearest.size:
        return False
    return kind.kind not in "iu" or (kind.itemsize > 4 and not _largest(nearest) < EXACT)


def rounding_of(values: NDArray[Any], nearest: FloatArray, ends: bool = False) -> Rounding | None:
    """What numbers (n,) lose as doubles (n,); None where each is one, ``ends`` as for :func:`rounding_between`."""
    if values.dtype.kind in "iu":
        return _of_integers(values, nearest, ends)
    if values.dtype.kind == "f":
        exact = [_of_long_double(entry) for entry in values]
    else:
        exact = [exactly(entry) for entry in values.tolist()]
    return rounding_between(exact, nearest, ends)


def _of_integers(values: NDArray[Any], nearest: FloatArray, ends: bool) -> Rounding | None:
    """That of 64-bit integers: the upper half of each is taken off its double, then the lower half, both exactly."""
    values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64, copy=False)
    high, low = values >> 32, values & 0xFFFFFFFF
    off = np.abs((nearest - high.astype(np.float64) * 2.0**32) - low.astype(np.float64))
    count = int(np.count_nonzero(off))
    if not (count or ends):
        return None
    worst = int(off.argmax())
    least, most = Fraction(int(values.min())), Fraction(int(values.max()))
    return Rounding(count, Fraction(float(off[worst])), count > 0, least, most, str(values[worst]), values.size)


def _of_long_double(entry: np.longdouble) -> Fraction | None:
    return Fraction(*entry.as_integer_ratio()) if np.isfinite(entry) else None


def rounding_between(exact: Iterable[Fraction | None], nearest: FloatArray, ends: bool = False) -> Rounding | None:
    """The rounding errors of numbers stored as doubles; None stands for a number that is a double or is not examined.

    With ``ends`` there is an answer where nothing is lost, too, for the least and the largest of a part of a column.
    """
    count, error, whole, example = 0, Fraction(0), False, Fraction(0)
    low = high = None
    for number, double in zip(exact, nearest.tolist(), strict=True):
        if not np.isfinite(double):
            continue
        value = Fraction(double)
        truth = value if number is None else number
        low, high = truth if low is None else min(low, truth), truth if high is None else max(high, truth)
        if truth != value:
            count, whole = count + 1, whole or truth.denominator == 1
            if abs(truth - value) > error:
                error, example = abs(truth - value), truth
    if not (count or ends) or low is None or high is None:
        return None
    text = str(example.numerator) if example.denominator == 1 else f"{float(example):.17g}"
    return Rounding(count, error, whole, low, high, text, nearest.size)


def rounding_of_texts(
    cells: Iterable[str], nearest: FloatArray, read: Callable[[str], str | None] = lambda cell: cell,
    ends: bool = False,
) -> Rounding | None:  # fmt: skip
    """What numbers written in cells lose as doubles (n,); ``read`` gives a cell the way Python writes numbers, and
    ``ends`` is as for :func:`rounding_between`.
    """
    texts = [read(cell) for cell in cells]
    try:
        whole = np.array([int(text) for text in texts if text is not None])
    except ValueError:
        whole = np.empty(0)
    if whole.dtype.kind in "iu" and whole.size == nearest.size:
        return rounding_of(whole, nearest, ends)  # much quicker
    exact = (None if text is None else exactly(text) for text in texts)
    return rounding_between(exact, nearest, ends)


def may_round_texts(nearest: FloatArray) -> bool:
    """Whether numbers that were written in cells, with these nearest doubles, can lose anything to speak of."""
    finite = nearest[np.isfinite(nearest)]
    if not finite.size:
        return False
    largest = _largest(finite)
    return largest >= EXACT or float(finite.max() - finite.min()) < NARROW * largest


def exactly(entry: object) -> Fraction | None:
    """The number that an integer, decimal, fraction, long double or text is; None for doubles, and anything else."""
    if isinstance(entry, bool | float | np.floating | np.bool_):
        return _of_long_double(entry) if isinstance(entry, np.longdouble) else None
    if isinstance(entry, int | np.integer):
        return Fraction(int(entry))
    if isinstance(entry, Fraction):
        return entry
    if isinstance(entry, bytes):
        entry = entry.decode("ascii", "replace")
    if isinstance(entry, str):
        try:
            entry = Decimal(entry.strip())
        except InvalidOperation:
            return None
    if not isinstance(entry, Decimal) or not entry.is_finite() or abs(entry.adjusted()) > MOST_EXPONENT:
        return None
    digits, exponent = len(entry.as_tuple().digits), int(entry.as_tuple().exponent)
    fraction = None if digits > MOST_DIGITS or (exponent > 0 and digits <= DIGITS) else Fraction(entry)
    return None if fraction is not None and fraction.denominator > 1 and digits <= DIGITS else fraction


def _largest(values: FloatArray) -> float:
    return max(float(values.max()), -float(values.min()))
