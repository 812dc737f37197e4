"""Limits on the unpacked size of a file, checked before memory is allocated.

A small file can claim, or be compressed from, far more than any machine holds. What is read from one file is added up
in a :class:`Budget`, which refuses what goes beyond the limit.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from exactsel.errors import InputError

VARIABLE = "EXACTSEL_READ_LIMIT"
"""Environment variable with another limit, in MiB."""

SMALLEST_LIMIT = 64 * 2**20
"""Bytes any file may unpack to ..."""

TIMES_ITS_SIZE = 64
"""... or this many times its own size, if that is more ..."""

LARGEST_LIMIT = 16 * 2**30
"""... but no more than this."""

ROW_BYTES = 64
"""Allowed for each row of a table beside its entries ..."""

COLUMN_BYTES = 10 * 2**10
"""... and for each column: its name, and the numbers a search keeps of it."""

SPARSE_COLUMN_BYTES = 256
"""Allowed for each column of a matrix that stays sparse: some vectors with a number for each."""


def read_limit(size: int) -> int:
    """Bytes a file of ``size`` bytes may unpack to.

    Raises
    ------
    InputError
        When :data:`VARIABLE` is set, but not to a positive number.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return min(max(SMALLEST_LIMIT, TIMES_ITS_SIZE * size), LARGEST_LIMIT)
    try:
        mebibytes = float(text)
    except ValueError:
        mebibytes = math.nan
    if not 0 < mebibytes < 2.0**40:
        raise InputError(f"{VARIABLE} is '{text}', but a number of MiB was expected; set it to 4096, say, or unset it.")
    return int(mebibytes * 2**20)


class Budget:
    """What may still be unpacked from one file."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)
        self.limit = read_limit(self.file.stat().st_size)
        self.taken = 0

    def take(self, size: int, what: str = "") -> None:
        """Set ``size`` bytes aside for ``what``, by default the file itself.

        Raises
        ------
        InputError
            When that is more than is left.
        """
        if self.taken + size > self.limit:
            raise InputError(f"{what or self.file} unpacks to {self.taken + size} bytes{self._too_much()}")
        self.taken += size

    def take_lines(self, rows: int, columns: int) -> None:
        """Set aside what is kept for each row and column of a sparse matrix; :class:`InputError` as for a table."""
        size = ROW_BYTES * rows + SPARSE_COLUMN_BYTES * columns
        if self.taken + size > self.limit:
            raise InputError(
                f"{self.file} has {rows} x {columns} entries, and what is kept for each row and column takes {size} "
                f"bytes{self._too_much()}"
            )
        self.taken += size

    def take_table(self, rows: int, columns: int) -> None:
        """Set aside what a dense table of floats takes; :class:`InputError` when that is more than is left."""
        size = 8 * rows * columns
        if self.taken + size + ROW_BYTES * rows + COLUMN_BYTES * columns > self.limit:
            raise InputError(
                f"{self.file} has {rows} x {columns} entries, which take {size} bytes when none is left out (and some "
                f"for each row and column){self._too_much()}"
            )
        self.taken += size

    def _too_much(self) -> str:
        return (
            f", more than the {self.limit} that are read; keep fewer rows or columns, or set {VARIABLE} to more than "
            f"{self.limit / 2**20:.6g} (MiB)."
        )
