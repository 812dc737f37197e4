"""Read a file of any known kind as an instance.

=================================  =============================================================================
ending                             what it holds
=================================  =============================================================================
``.npz``                           arrays A, y and parameters (:mod:`exactsel.instance`), or a scipy.sparse matrix
``.csv``, ``.tsv`` (also ``.gz``)  text table, names in the first line
``.parquet``, ``.feather``         columns with names; needs polars or pyarrow
``.svm``, ``.svmlight``,           svmlight: the target first in each line; needs scikit-learn
``.libsvm`` (also ``.gz``)
``.mtx`` (also ``.mtx.gz``)        Matrix Market, the target in another file
``.npy``                           one numpy array, the target in another file or one of its columns
=================================  =============================================================================

Only ``.npz`` can say what k, lam and loss are; elsewhere they come from options.
"""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from exactsel.data.tables import Choice, choose_columns, instance_from, with_labels
from exactsel.data.text import read_text_table
from exactsel.errors import ExactselError, InputError, UnsupportedError
from exactsel.frames import Column, frame_columns, is_frame
from exactsel.grouped import GroupedProblem, GroupSpec
from exactsel.instance import MAX_ARRAY_BYTES, Instance, read_instance
from exactsel.losses.base import Loss
from exactsel.problem import Problem

FORMATS = (".npz", ".csv", ".tsv", ".parquet", ".feather", ".svm", ".svmlight", ".libsvm", ".mtx", ".npy")
"""Endings of file names that are read."""


def load(
    source: Any,
    *,
    target: Choice | None = None,
    drop: Sequence[Choice] = (),
    k: int | None = None,
    lam: float | None = None,
    loss: str | Loss | None = None,
    delta: float | None = None,
    groups: GroupSpec | None = None,
    one_hot: Sequence[Choice] = (),
) -> Problem | GroupedProblem:
    """Read a file, or a data frame, as a problem.

    Parameters
    ----------
    source : path or data frame
        A file of one of the :data:`FORMATS`, or a pandas, polars, pyarrow, ... frame.
    target : str or int, optional
        The column to predict, by name or number from 0, or a file that holds it; a column ``y`` by default.
    drop : sequence of str or int
        Columns to leave out.
    k, lam, loss, delta : optional
        Take precedence over the file, see :meth:`exactsel.instance.Instance.problem`. Logistic loss reads a target of
        0 and 1 as -1 and +1, with a warning.

    groups : mapping or sequence of labels, optional
        Columns that count as one, see :class:`exactsel.grouped.GroupedProblem`; takes precedence over the file's.
    one_hot : sequence of str or int
        Columns to replace by a group of 0/1 columns, one for each value.

    Returns
    -------
    Problem, or GroupedProblem where there are groups

    Raises
    ------
    InputError
        When the file cannot be read or states no usable problem.
    """
    reader = instance_from if is_frame(source) else read_data
    instance = with_labels(reader(source, target=target, drop=drop, one_hot=one_hot), loss)
    if groups is not None or instance.groups is not None:
        return instance.grouped_problem(groups=groups, k=k, lam=lam, loss=loss, delta=delta)
    return instance.problem(k=k, lam=lam, loss=loss, delta=delta)


def read_data(
    path: str | os.PathLike[str],
    *,
    target: Choice | None = None,
    drop: Sequence[Choice] = (),
    one_hot: Sequence[Choice] = (),
) -> Instance:
    """Read a file of one of the :data:`FORMATS` as an instance.

    Parameters
    ----------
    path : path
    target, drop, one_hot
        See :func:`load`.

    Returns
    -------
    Instance
        With a target where the file, or ``target``, gives one.

    Raises
    ------
    InputError
        When the file is missing, damaged or of another kind, a library is missing, or a column cannot be used.
    """
    file = Path(path)
    ending = _ending(file)
    if ending == ".npz" and not _is_sparse_archive(file):
        _refuse_encoding(one_hot, file)
        return choose_columns(read_instance(file), target=target, drop=drop, where=str(file))
    if not file.is_file():
        if file.is_dir():
            raise InputError(f"{file} is a folder, but an instance is one file; name a file inside it.")
        raise InputError(f"there is no file {file}; check the name and the folder.")
    if ending not in _READERS:
        raise InputError(f"{file} is of no kind that is read; the kinds are {', '.join(FORMATS)}.")
    with _refusing_damage(file):
        found = _READERS[ending](file)
    if isinstance(found, Instance):
        _refuse_encoding(one_hot, file)
        return choose_columns(found, target=target, drop=drop, where=str(file))
    return instance_from(found, target=target, drop=drop, one_hot=one_hot, where=str(file))


def _refuse_encoding(one_hot: Sequence[Choice], file: Path) -> None:
    if one_hot:
        raise InputError(
            f"--one-hot {one_hot[0]} is for tables with named columns, but {file} holds numbers only; encode the "
            f"column yourself and name its columns with --groups."
        )


def read_columns(path: str | os.PathLike[str]) -> list[Column] | None:
    """The columns of a table with names, whatever they hold; None for a file of another kind.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    file = Path(path)
    if _ending(file) not in (".csv", ".tsv", ".parquet", ".feather") or not file.is_file():
        return None
    with _refusing_damage(file):
        found = _READERS[_ending(file)](file)
    return frame_columns(found) if is_frame(found) else list(found)


def _ending(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    if suffixes and suffixes[-1] == ".gz":
        return suffixes[0] if suffixes[0] in (".csv", ".tsv", ".svm", ".svmlight", ".libsvm", ".mtx") else ".gz"
    return suffixes[-1] if suffixes else ""


@contextmanager
def _refusing_damage(file: Path) -> Iterator[None]:
    """Say that the file cannot be read, whatever the library that reads it stumbles over."""
    try:
        yield
    except (ExactselError, MemoryError):
        raise
    except Exception as error:
        # A damaged file makes these libraries raise nearly anything, and none of it is a fault of this program.
        reason = f"{type(error).__name__}: {error}".partition("\n")[0][:100]
        raise InputError(
            f"{file} cannot be read as what its name says it is ({reason}); check the file or its ending."
        ) from None


def _is_sparse_archive(file: Path) -> bool:
    """Whether scipy.sparse.save_npz wrote it."""
    try:
        with zipfile.ZipFile(file) as archive:
            return {"format.npy", "shape.npy", "data.npy"} <= {*archive.namelist()}
    except (OSError, zipfile.BadZipFile):
        return False


def _frame(file: Path) -> Any:
    """A parquet or feather file as a frame, by the first library there is; index columns of pandas are left out."""
    feather = _ending(file) == ".feather"
    for library, reader in (
        ("polars", "read_ipc" if feather else "read_parquet"),
        ("pyarrow.feather" if feather else "pyarrow.parquet", "read_table"),
    ):
        try:
            read = getattr(import_module(library), reader)
        except ImportError:
            continue
        frame = read(file)
        names = frame.columns if library == "polars" else frame.column_names
        index = [name for name in names if name.startswith("__index_level_")]
        return frame.drop(index) if index else frame
    raise UnsupportedError(f"reading {file.name} needs polars or pyarrow; run: pip install 'exactsel[frames]'.")


def _svmlight(file: Path) -> Instance:
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError:
        raise UnsupportedError(f"reading {file.name} needs scikit-learn; run: pip install 'exactsel[data]'.") from None
    matrix, y = load_svmlight_file(str(file))
    return Instance(_dense(matrix, file), y)


def _matrix_market(file: Path) -> Instance:
    from scipy.io import mmread

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about the class of a sparse result, made dense here
        return Instance(_dense(mmread(file), file))


def _sparse_archive(file: Path) -> Instance:
    from scipy.sparse import load_npz

    return Instance(_dense(load_npz(file), file))


def _array(file: Path) -> Instance:
    array = np.load(file, allow_pickle=False)
    if array.ndim != 2:
        raise InputError(f"{file} has {array.ndim} dimension(s), but a table of rows and columns (2) was expected.")
    return Instance(array)


def _dense(matrix: Any, file: Path) -> Any:
    size = 8 * int(matrix.shape[0]) * int(matrix.shape[1])
    if size > MAX_ARRAY_BYTES:
        raise InputError(
            f"{file} has {matrix.shape[0]} x {matrix.shape[1]} entries, which take {size} bytes when none is left out, "
            f"more than the {MAX_ARRAY_BYTES} that are read; keep fewer rows or columns."
        )
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npz": _sparse_archive,
    ".csv": read_text_table,
    ".tsv": read_text_table,
    ".parquet": _frame,
    ".feather": _frame,
    ".svm": _svmlight,
    ".svmlight": _svmlight,
    ".libsvm": _svmlight,
    ".mtx": _matrix_market,
    ".npy": _array,
}
