"""Bounds of coefficients, for the second checker: checked, and as people write them, lines ``column,lower,upper``."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence

from .values import Outside, Unclear, listed

FREE = (float("-inf"), float("inf"))


def bounds(
    lines: Sequence[str], nonnegative: str, names: Sequence[str], d: int, most: float = float("inf")
) -> tuple[list[float], list[float]] | None:
    """Lower and upper limits of d coefficients; None where nothing is limited. Raises :class:`Unclear`.

    A first line ``column,lower,upper`` is skipped, a side left empty has no limit. ``nonnegative`` is ``all`` or
    names columns, with commas between them, whose lower limit is 0 at least. Names with commas stand in quotes. No
    coefficient exceeds ``most`` in size.
    """
    entries = [entry for entry in _parted(lines) if any(entry)]
    if entries and [part.lower() for part in entries[0]] == ["column", "lower", "upper"]:
        del entries[0]
    limits: dict[int, tuple[float, float]] = {}
    for entry in entries:
        if len(entry) != 3:
            raise Unclear(f"the bounds hold a line of {len(entry)} entries, but column,lower,upper was expected.")
        j = column_called(entry[0], names, d)
        if j in limits:
            raise Unclear(f"the bounds name {entry[0]!a} twice; name it once.")
        try:
            limits[j] = (float(entry[1] or "-inf"), float(entry[2] or "inf"))
        except ValueError:
            raise Unclear(f"the bounds of {entry[0]!a} are no numbers; correct them.") from None
    wanted = nonnegative.strip()
    labels = [wanted] if wanted in names else [part for entry in _parted([wanted.replace(", ", ",")]) for part in entry]
    positive = {*range(d)} if wanted == "all" else {column_called(name, names, d) for name in labels if name}
    pairs = [limits.get(j, FREE) for j in range(d)]
    whole = [(max(low, -most), min(high, most)) for low, high in pairs]
    whole = [(max(low, 0.0) if j in positive else low, high) for j, (low, high) in enumerate(whole)]
    return ([low for low, _ in whole], [high for _, high in whole]) if any(pair != FREE for pair in whole) else None


def _parted(lines: Sequence[str]) -> list[list[str]]:
    try:
        return [[part.strip() for part in row] for row in csv.reader(lines, strict=True)]
    except csv.Error as error:
        raise Unclear(f"the bounds cannot be read ({error}); write lines of column,lower,upper.") from None


def column_called(name: str, names: Sequence[str], d: int) -> int:
    """The number of a column that is named; :class:`Unclear` where there is none."""
    if list(names).count(name) == 1:
        return list(names).index(name)
    if name not in names and name.isascii() and name.isdecimal() and len(name) < 10 and int(name) < d:
        return int(name)
    raise Unclear(f"an option names {name!a}, but no single column is called that; give its number.")


def checked_bounds(bounds: object, d: int, scale: bool) -> list[list[float]]:
    """The limits of coefficients, lower ones and upper ones."""
    sides = listed("the bounds", bounds)
    if len(sides) != 2 or not all(isinstance(v, float) and v == v for side in sides for v in listed("bounds", side)):
        raise Outside("the bounds hold something else than lower and upper doubles, but these were expected.")
    lower, upper = ([v + 0.0 for v in side] for side in sides)  # 0 has no sign
    if len(lower) != d or len(upper) != d:
        raise Outside(f"there are {len(lower)} lower and {len(upper)} upper bounds, but {d} of each were expected.")
    if not all(v <= 0 for v in lower) or not all(v >= 0 for v in upper):
        raise Outside("0 does not lie between all bounds, but no coefficient may be kept away from it.")
    if not any(math.isfinite(v) for v in [*lower, *upper]):
        raise Outside("all bounds are infinite, but at least one that limits something was expected.")
    if scale and any(v and math.isfinite(v) for v in [*lower, *upper]):
        raise Outside("columns are scaled and have bounds other than 0, but only one of the two was expected.")
    return [lower, upper]
