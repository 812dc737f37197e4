"""The smallest eigenvalues of a symmetric matrix and their eigenvectors, in single precision, by LAPACK's ssyevr.

scipy has the same routine, but holds the interpreter's lock while it runs; what scipy offers to Cython is called
without it here, so that several nodes can be bounded at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from exactsel.algebra import dense
from exactsel.algebra.threads import hold_loaded

SingleArray = NDArray[np.float32]

_INTEGER, _REAL, _LETTER = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_float), ctypes.c_char_p

_ARGUMENTS = (
    _LETTER, _LETTER, _LETTER, _INTEGER, _REAL, _INTEGER, _REAL, _REAL, _INTEGER, _INTEGER, _REAL, _INTEGER, _REAL,
    _REAL, _INTEGER, _INTEGER, _REAL, _INTEGER, _INTEGER, _INTEGER, _INTEGER,
)  # fmt: skip
"""jobz, range, uplo, n, a, lda, vl, vu, il, iu, abstol, m, w, z, ldz, isuppz, work, lwork, iwork, liwork, info."""

LARGEST = 3e38
"""Nearly the largest number in single precision."""

WORK, WHOLE_WORK = 26, 10
"""Numbers of work space for each column that ssyevr requires at least."""


def smallest_eigenvectors(matrix: NDArray[np.float64], below: float) -> tuple[SingleArray, SingleArray]:
    """The eigenvalues below a number, ascending (q,), and their eigenvectors (m, q), of a symmetric matrix (m, m).

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the iteration does not end, or numbers are too large or none.
    """
    if not np.abs(matrix).max(initial=0.0) < LARGEST:
        raise np.linalg.LinAlgError("A matrix holds numbers that single precision does not know.")
    if len(matrix) == 0:
        return np.zeros(0, dtype=np.float32), np.zeros((0, 0), dtype=np.float32)
    routine = _routine()
    if routine is None:
        values, vectors = dense.eigh(
            matrix.astype(np.float32), subset_by_value=(-np.inf, below), driver="evr", check_finite=False
        )
        return values, vectors
    m = len(matrix)
    a = matrix.astype(np.float32, order="F")
    w, z = np.empty(m, dtype=np.float32), np.empty((m, m), dtype=np.float32, order="F")
    isuppz, iwork = np.empty(2 * m, dtype=np.intc), np.empty(WHOLE_WORK * m, dtype=np.intc)
    work, count, info = np.empty(max(WORK, m) * m, dtype=np.float32), ctypes.c_int(0), ctypes.c_int(0)
    size, none, zero = ctypes.c_int(m), ctypes.c_int(0), ctypes.c_float(0.0)
    lowest, highest = ctypes.c_float(-LARGEST), ctypes.c_float(below)
    lwork, liwork = ctypes.c_int(work.size), ctypes.c_int(iwork.size)
    ref = ctypes.byref
    routine(
        b"V", b"V", b"L", ref(size), _real(a), ref(size), ref(lowest), ref(highest), ref(none), ref(none), ref(zero),
        ref(count), _real(w), _real(z), ref(size), _whole(isuppz), _real(work), ref(lwork), _whole(iwork), ref(liwork),
        ref(info),
    )  # fmt: skip
    if info.value != 0:
        raise np.linalg.LinAlgError("The eigenvalues of a matrix were not found.")
    return w[: count.value], z[:, : count.value]


def _real(array: SingleArray) -> ctypes._Pointer[ctypes.c_float]:
    return array.ctypes.data_as(_REAL)


def _whole(array: NDArray[np.intc]) -> ctypes._Pointer[ctypes.c_int]:
    return array.ctypes.data_as(_INTEGER)


@cache
def _routine() -> Callable[..., None] | None:
    """ssyevr as scipy offers it to Cython; None where it is not of the form known here."""
    try:
        from scipy.linalg import cython_lapack

        hold_loaded()
        capsule = cython_lapack.__pyx_capi__["ssyevr"]
        name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
        name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
        address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        name = name_of(capsule)
        if name.count(b",") + 1 != len(_ARGUMENTS) or b"int64" in name or b"long" in name:
            return None
        return ctypes.CFUNCTYPE(None, *_ARGUMENTS)(address_of(capsule, name))
    except (ImportError, KeyError, AttributeError, TypeError, ValueError):
        return None
