"""Types used throughout: arrays, and the name of a file."""

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
