"""Types used throughout: arrays, the name of a file, and a value of JSON."""

from __future__ import annotations

import os
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
StateArray: TypeAlias = NDArray[np.int8]
BoolArray: TypeAlias = NDArray[np.bool_]
PathName: TypeAlias = str | os.PathLike[str]
Scalar: TypeAlias = str | float | bool | None
"""A single value as JSON holds it; float stands for int, too."""
Json: TypeAlias = "Scalar | list[Json] | dict[str, Json]"
"""A value as JSON holds it."""
