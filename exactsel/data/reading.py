"""Read a file of any known kind as an instance.

=================================  =============================================================================
ending                             what it holds
=================================  =============================================================================
``.npz``                           arrays A, y and parameters (:mod:`exactsel.data.instance`), or a scipy.sparse matrix
``.csv``, ``.tsv`` (also ``.gz``)  text table, names in the first line
``.parquet``, ``.feather``         columns with names; needs pyarrow
``.xlsx``, ``.dta``, ``.sav``,     the first sheet, a Stata or SPSS file, one JSON object a line; needs pandas, and for
``.jsonl``, ``.ndjson``            sheets openpyxl, for SPSS pyreadstat
``.svm``, ``.svmlight``,           svmlight: the target first in each line; needs scikit-learn
``.libsvm`` (also ``.gz``)
``.mtx`` (also ``.mtx.gz``)        Matrix Market, the target in another file
``.npy``                           one numpy array, the target in another file or one of its columns
=================================  =============================================================================

Only ``.npz`` can say what k, lam and loss are; elsewhere they come from options. Models of an instance file have an
intercept where it says so, those of all other files by default.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from exactsel.arguments import entries, shown, with_aliases
from exactsel.data.arrays import map_npy_file, read_npy_file, refusing_damage
from exactsel.data.column_lists import Choice
from exactsel.data.foreign import FOREIGN, read_foreign
from exactsel.data.instance import Instance, read_instance
from exactsel.data.shipped import no_such_file
from exactsel.data.sizes import Budget
from exactsel.data.sparse import is_sparse_archive, read_matrix_market, read_sparse_archive
from exactsel.data.svmlight import read_svmlight
from exactsel.data.tables import Coding, Factors, choose_columns, instance_from, with_labels
from exactsel.data.text import Written, read_text_table
from exactsel.errors import InputError, option, warn_of_data
from exactsel.files import is_file
from exactsel.losses.base import Loss
from exactsel.problem.checks import row_numbers
from exactsel.problem.design import DesignMatrix, typed_as_array
from exactsel.problem.factors import AUTO as AUTOMATIC
from exactsel.problem.frames import Column, is_frame
from exactsel.problem.grouped import GroupedProblem, GroupSpec
from exactsel.problem.mapped_columns import MappedColumns
from exactsel.problem.preparing import AUTO, needs_all_levels
from exactsel.problem.regression import Problem
from exactsel.problem.row_labels import check_rows
from exactsel.problem.targets import better_loss
from exactsel.types import FloatArray

FORMATS = (".npz", ".csv", ".tsv", ".parquet", ".feather", *FOREIGN, ".svm", ".svmlight", ".libsvm", ".mtx", ".npy")
"""Endings of file names that are read."""


@with_aliases
def load(
    source: object, *, target: Choice | None = None, drop: Sequence[Choice] = (), k: int | None = None,
    lam: float | None = None, loss: str | Loss | None = None, delta: float | None = None,
    groups: GroupSpec | None = None, factors: Factors = (), missing: str | None = None,
    decimal: str | None = None, encoding: str | None = None, hierarchy: Mapping[Any, Any] | None = None,
    hierarchy_kind: str = "strong", per_group: int | None = None, not_both: Iterable[Any] | None = None,
    offset: ArrayLike | None = None, sample_weight: ArrayLike | None = None, fit_intercept: bool | None = None,
    formula: str | None = None,
) -> Problem | GroupedProblem:  # fmt: skip
    """Read a file of one of the :data:`FORMATS`, or a pandas, polars, pyarrow, ... frame, as a problem.

    Parameters
    ----------
    source : path or data frame
    target : str or int, optional
        The column to predict, by name or number from 0, or a file that holds it; a column ``y`` by default.
    drop : sequence of str or int
    k, lam, loss, delta : optional
        Take precedence over the file, see :meth:`exactsel.Instance.problem`.
    groups : mapping or sequence of labels, optional
        Columns that count as one, see :class:`exactsel.GroupedProblem`; takes precedence over the file's.
    factors : "auto", or sequence of str or int
        Columns to replace by 0/1 columns that count once (:func:`exactsel.problem.factors.factor_columns`); "auto" for
        all that hold text or that a frame calls categorical.
    missing : str, optional, what to do about gaps (:data:`exactsel.data.missing.WAYS`); they are refused by default
    decimal, encoding : str, optional, the decimal mark and the encoding of a text, where the default is wrong
    hierarchy, hierarchy_kind : optional
        What is chosen only together with others, see :class:`exactsel.Problem`; takes precedence over the file's.
    per_group, not_both : optional
        See :class:`exactsel.Problem`; ``not_both`` takes precedence over the file's.
    offset : array (n,), optional
        A known part of each prediction, see :class:`exactsel.Problem`.
    sample_weight : array (n,), optional
        Weights of the rows, for means and medians that are filled in, too.
    fit_intercept : bool, optional
        Whether models have an intercept; by default all but those of an instance file that does not say so.
    formula : str, optional
        The target and the terms to choose from, ``"y ~ (a + b)^2 + C(c)"`` (:mod:`exactsel.problem.formula`).

    Returns
    -------
    Problem, a GroupedProblem where there are groups

    Raises
    ------
    InputError
        When the file cannot be read or states no usable problem.
    """
    check_rows(source, sample_weight=sample_weight, offset=offset)
    coding = Coding(factors, needs_all_levels(fit_intercept, loss), formula)
    chosen: dict[str, Any] = {"target": target, "drop": drop, "coding": coding, "missing": missing}
    chosen |= {"sample_weight": sample_weight}
    chosen |= {} if is_frame(source) else {"decimal": decimal, "encoding": encoding}
    instance = with_labels((instance_from if is_frame(source) else _read)(source, **chosen), loss)
    _warn_of_loss(instance, loss)
    options: dict[str, Any] = {"k": k, "lam": lam, "loss": loss, "delta": delta, "fit_intercept": fit_intercept}
    options |= {"hierarchy": hierarchy, "hierarchy_kind": hierarchy_kind, "not_both": not_both, "offset": offset}
    if groups is not None or instance.groups is not None or per_group is not None:
        return instance.grouped_problem(groups=groups, per_group=per_group, **options)
    return instance.problem(**options)


def _warn_of_loss(instance: Instance, loss: str | Loss | None) -> None:
    if loss is None and instance.loss is None and (hint := better_loss(instance.y)) is not None:
        warn_of_data(hint.advice)


@with_aliases
def read_data(
    path: str | os.PathLike[str],
    *,
    target: Choice | None = None,
    drop: Sequence[Choice] = (),
    factors: Factors = (),
    all_levels: bool = False,
    missing: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sample_weight: ArrayLike | None = None,
    formula: str | None = None,
    beside: str | None = None,
) -> Instance:
    """Read a file of one of the :data:`FORMATS` as an instance.

    Parameters
    ----------
    path : path
    target, drop, factors, missing, decimal, encoding, sample_weight, formula
        See :func:`load`; weights take precedence over the file's. Given to a problem later, they come too late for what
        ``missing`` fills in.
    all_levels : bool
        Keep the reference level of factors, as for models without an intercept.
    beside : str, optional
        A column to keep beside those of the formula.

    Returns
    -------
    Instance
        With a target where the file, or ``target``, gives one; with an intercept but for instance files.

    Raises
    ------
    InputError
        When the file is missing, damaged or of another kind, a library is missing, or a column cannot be used.
    """
    coding = Coding(factors, all_levels, formula, beside)
    return _read(
        path, target=target, drop=drop, coding=coding, missing=missing, decimal=decimal, encoding=encoding,
        sample_weight=sample_weight,
    )  # fmt: skip


def _read(
    path: object, *, target: Choice | None, drop: Sequence[Choice], coding: Coding, missing: str | None,
    decimal: str | None, encoding: str | None, sample_weight: ArrayLike | None,
) -> Instance:  # fmt: skip
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{shown(path)} was given, but a file or a data frame was expected; name or give one.")
    file = Path(path)
    ending = _ending(file)
    if not isinstance(decimal, str | None) or decimal not in (None, ",", "."):
        raise InputError(f"{option('decimal')} is {shown(decimal)}, but it must be ',' or '.'.")
    if not isinstance(encoding, str | None):
        raise InputError(
            f"{option('encoding')} is {shown(encoding)}, but a name such as 'cp1252' was expected; give one."
        )
    if ending == ".npz" and not is_sparse_archive(file):
        _refuse_coding(coding, missing, file)
        instance = _weighted(_checked(read_instance(file), file), sample_weight)
        return choose_columns(instance, target=target, drop=drop, where=str(file))
    if not is_file(file):
        if file.is_dir():
            raise InputError(f"{file} is a folder, but an instance is one file; name a file inside it.")
        raise no_such_file(file)
    if ending not in _READERS and ending not in _TEXTS:
        raise InputError(f"{file} is of no kind that is read; the kinds are {', '.join(FORMATS)}.")
    with _refusing_damage(file):
        content = _TEXTS[ending](file, Written(decimal, encoding)) if ending in _TEXTS else _READERS[ending](file)
    if isinstance(content, Instance):
        _refuse_coding(coding, missing, file)
        return choose_columns(_weighted(content, sample_weight), target=target, drop=drop, where=str(file))
    more: dict[str, Any] = {"missing": missing, "sample_weight": sample_weight}
    return instance_from(content, target=target, drop=drop, coding=coding, where=str(file), **more)


def _weighted(instance: Instance, weights: ArrayLike | None) -> Instance:
    """The instance with these weights, if there are any."""
    return instance if weights is None else replace(instance, weights=row_numbers(weights, "the weights", False))


def _checked(instance: Instance, file: Path) -> Instance:
    """The instance, its table found to be one, and its columns to have a name (and a group) each or none."""
    if instance.A.ndim != 2:
        raise InputError(
            f"in {file}, A has {instance.A.ndim} dimension(s), expected a table of rows and columns (2 dimensions)."
        )
    d = instance.A.shape[1]
    for what, noun, labels in (
        ("feature names", "name", instance.feature_names), ("groups", "group", instance.groups),
    ):  # fmt: skip
        if labels is not None and len(labels) != d:
            raise InputError(f"in {file}, {len(labels)} {what} were given for {d} columns; give one {noun} per column.")
    return instance


def _refuse_coding(coding: Coding, missing: str | None, file: Path) -> None:
    if missing is not None:
        raise InputError(
            f"{option('missing', missing)} is for tables with named columns, but {file} holds numbers only; fill gaps "
            f"before."
        )
    if coding.formula is not None:
        raise InputError(
            f"{option('formula')} is for tables with named columns, but {file} holds none; leave it out, or "
            f"store the table as .csv."
        )
    names = entries("factors", coding.factors)
    if names and names != [AUTOMATIC]:
        raise InputError(
            f"{option('factors', names[0])} is for tables with named columns, but {file} holds numbers only; code the "
            f"column yourself and name its columns with {option('groups')}."
        )


def read_columns(
    path: str | os.PathLike[str], decimal: str | None = None, encoding: str | None = None
) -> list[Column] | None:
    """The columns of a table with names, with any content; None for a file of another kind.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    file = Path(path)
    ending = _ending(file)
    if ending not in (*_TEXTS, ".parquet", ".feather", *FOREIGN) or not is_file(file):
        return None
    with _refusing_damage(file):
        return list(_TEXTS[ending](file, Written(decimal, encoding)) if ending in _TEXTS else _READERS[ending](file))


def _ending(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    if suffixes and suffixes[-1] == ".gz":
        return suffixes[0] if suffixes[0] in (".csv", ".tsv", ".svm", ".svmlight", ".libsvm", ".mtx") else ".gz"
    return suffixes[-1] if suffixes else ""


def _refusing_damage(file: Path) -> AbstractContextManager[None]:
    return refusing_damage(file, "cannot be read as what its name says it is", "check the file or its ending")


def _frame(file: Path) -> list[Column]:
    from exactsel.data.arrow import read_frame

    return read_frame(file, feather=_ending(file) == ".feather")


def _matrix_market(file: Path) -> Instance:
    return _instance_of(read_matrix_market(file))


def _sparse_archive(file: Path) -> Instance:
    return _instance_of(read_sparse_archive(file))


def _instance_of(matrix: FloatArray | DesignMatrix) -> Instance:
    return Instance(typed_as_array(matrix) if isinstance(matrix, DesignMatrix) else matrix, intercept=AUTO)


def _array(file: Path) -> Instance:
    if (mapped := map_npy_file(file)) is not None:
        return _instance_of(MappedColumns(mapped).T)
    budget = Budget(file)
    array = read_npy_file(file, budget)
    if array.ndim != 2:
        raise InputError(f"{file} has {array.ndim} dimension(s), but a table of rows and columns (2) was expected.")
    Budget(file).take_table(*array.shape)
    return Instance(array, intercept=AUTO)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".npz": _sparse_archive,
    ".parquet": _frame,
    ".feather": _frame,
    ".svm": read_svmlight,
    ".svmlight": read_svmlight,
    ".libsvm": read_svmlight,
    ".mtx": _matrix_market,
    ".npy": _array,
    **dict.fromkeys(FOREIGN, read_foreign),
}
_TEXTS = {".csv": read_text_table, ".tsv": read_text_table}
