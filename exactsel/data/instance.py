"""Instance files: an ``.npz`` archive with the data ``A``, ``y`` and, optionally, what to minimise.

============== =================== ==========================================================
key            shape               meaning
============== =================== ==========================================================
A              (n, d)              one row per observation, one column per candidate variable
y              (n,)                target; labels -1 and +1 for losses of two classes; none for column subset selection
k              one number          largest number of non-zero coefficients
lam            one number          ridge weight
loss           one text            name of the loss
delta          one number          threshold of the loss
feature_names  (d,) texts          names of the columns
weights        (n,)                weights of the rows
intercept      one number          1 for an unpenalised intercept, 0 (as where it is not said) for none
groups         (d,) texts          the group of each column, empty for a column on its own
hierarchy      (m,) texts          lines of a hierarchy (:mod:`exactsel.data.hierarchy`)
not_both       (m,) texts          lines of pairs that exclude each other (:mod:`exactsel.data.not_both`)
tall_...       numbers             what is known of the rows that these stand for (:mod:`exactsel.problem.reduction`)
columns_stay   one number          1 where A lies column by column, to stay on disk (:mod:`exactsel.data.columns`)
============== =================== ==========================================================

Other keys are ignored. A file is read as data only: nothing pickled is opened, and no memory is set aside on the word
of a header. Equal instances are written as equal bytes, so that a file can be named by its sha256.
"""

from __future__ import annotations

import dataclasses
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exactsel.arguments import shown, switch, with_aliases
from exactsel.data.arrays import read_member, refusing_damage
from exactsel.data.columns import MARK, map_columns, write_array, write_columns
from exactsel.data.constraint_lines import MEMBERS, constraint_asked
from exactsel.data.npz import check_readable, how_to_write, npz_name, storable
from exactsel.data.sizes import Budget
from exactsel.errors import InputError, NoTargetError, either, option
from exactsel.files import replacing
from exactsel.losses.base import Loss
from exactsel.problem.checks import list_of_texts, one_number, one_text, one_whole_number, refuse_masked
from exactsel.problem.coding import ColumnCoding
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.constraints import ARGUMENTS
from exactsel.problem.design import DesignColumns, DesignMatrix, is_design, typed_as_array
from exactsel.problem.doubles import as_array
from exactsel.problem.frames import SHOWN, frame_matrix
from exactsel.problem.grouped import GroupedProblem, GroupSpec
from exactsel.problem.preparing import AUTO
from exactsel.problem.reduction import KEYS as TALL
from exactsel.problem.reduction import Reduction
from exactsel.problem.regression import Problem
from exactsel.problem.row_labels import check_rows, labels_of_rows
from exactsel.registry import has_delta
from exactsel_mapped import is_kept

_KEYS = ("A", "y", "k", "lam", "loss", "delta", "feature_names", "weights", "intercept", "groups", *MEMBERS, *TALL)


@dataclass(frozen=True, eq=False)
class Instance:
    """Data and, as far as they are known, the parameters of one subset-selection problem.

    ``A`` and ``y`` are kept as given; :class:`exactsel.Problem` checks and converts them. The other fields
    are checked for their type here and for their range by the problem.

    Parameters
    ----------
    A : array, sparse matrix or data frame (n, d)
        One row per observation, one column per candidate variable; a frame brings its names.
    y : array (n,), optional
        Target; labels -1 and +1 for logistic and squared hinge loss. Column subset selection needs none.
    k : int, optional
        Largest number of non-zero coefficients. An array of one number will do, here and for ``lam`` and ``delta``.
    lam : float, optional
        Ridge weight.
    loss : str, optional
        Name of the loss.
    delta : float, optional
        Threshold of Huber loss, or of a plug-in's loss; it has no meaning for another one.
    feature_names : sequence of str (d,), optional
        Names of the columns.
    weights : array (n,), optional
        Weights of the rows.
    intercept : bool or "auto", optional
        Whether models have an unpenalised intercept; by default they have none. "auto", which tables are read with, is
        one for every loss that can have one, and is stored as 1.
    groups : sequence of str (d,), optional
        The group of each column, where groups count once; empty for a column on its own.
    hierarchy : sequence of str, optional
        Lines ``child: parent, parent`` of units that are chosen only together, see :mod:`exactsel.data.hierarchy`.
    not_both : sequence of str, optional
        Lines ``a, b`` of units that exclude each other.
    reduction : Reduction, optional
        The rows that these stand for, where :func:`exactsel.gram` has reduced them.
    coding : ColumnCoding, optional
        How the columns were computed from those of a table with factors or by a formula; no file keeps it.

    Raises
    ------
    InputError
        When k is not one whole number, lam or delta not one number, loss not one text or a name not a text.
    """

    A: NDArray[Any]
    y: NDArray[Any] | None = None
    k: int | None = None
    lam: float | None = None
    loss: str | None = None
    delta: float | None = None
    feature_names: tuple[str, ...] | None = None
    weights: NDArray[Any] | None = None
    intercept: bool | str | None = None
    groups: tuple[str, ...] | None = None
    hierarchy: tuple[str, ...] | None = None
    not_both: tuple[str, ...] | None = None
    reduction: Reduction | None = None
    coding: ColumnCoding | None = None
    _rows: ClassVar[Any] = None
    """Labels of the rows that a frame has brought."""

    def __post_init__(self) -> None:
        check_rows(self.A, y=self.y, weights=self.weights)
        object.__setattr__(self, "_rows", labels_of_rows(self.A))
        matrix, names = frame_matrix(self.A, self.feature_names)
        object.__setattr__(self, "A", matrix)
        object.__setattr__(self, "feature_names", names)
        checks = {
            "A": _array,
            "y": _array,
            "k": one_whole_number,
            "lam": one_number,
            "loss": one_text,
            "delta": one_number,
            "feature_names": list_of_texts,
            "weights": _array,
            "intercept": _yes_or_no,
            "groups": list_of_texts,
            **dict.fromkeys(MEMBERS, list_of_texts),
        }
        for name, check in checks.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(name, value))
        if not isinstance(self.reduction, Reduction | None):
            raise InputError(f"tall is {shown(self.reduction)}, but it is made by exactsel.gram alone; leave it out.")
        if not isinstance(self.coding, ColumnCoding | None):
            raise InputError(f"coding is {shown(self.coding)}, but it is made by exactsel.load alone; leave it out.")

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.A.shape))
        settings = [f"{name}={getattr(self, name)!r}" for name in ("k", "lam", "loss", "delta")]
        return f"{type(self).__name__}(A: {shape}, {', '.join(settings)})"

    @with_aliases
    def problem(
        self,
        *,
        k: int | None = None,
        lam: float | None = None,
        loss: str | Loss | None = None,
        delta: float | None = None,
        force_in: Sequence[int | str] = (),
        force_out: Sequence[int | str] = (),
        fit_intercept: bool | str | None = None,
        standardize: bool = False,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        **constraint: object,
    ) -> Problem:
        """The problem this instance states, an argument that is given taking precedence over the instance.

        Parameters
        ----------
        k, lam, loss, delta, force_in, force_out, fit_intercept, standardize, sample_weight, offset
            As for :class:`exactsel.Problem` and its ``prepared``; quadratic loss when neither side names one. The
            instance's own ``delta`` is for Huber loss only, so that another loss can be tried on the same file.
        **constraint
            ``hierarchy``, ``hierarchy_kind`` and ``not_both`` of :class:`exactsel.Problem`.

        Returns
        -------
        Problem

        Raises
        ------
        InputError
            When the problem is incomplete (k or lam missing) or its data or parameters cannot be used.
        """
        check_rows(self._rows, sample_weight=sample_weight, offset=offset)
        chosen: str | Loss = "quadratic" if self.loss is None else self.loss
        if loss is not None:
            chosen = loss
        if delta is None and isinstance(chosen, str) and has_delta(chosen):
            delta = self.delta
        if self.reduction is not None:
            weighted = sample_weight is not None or self.weights is not None or offset is not None
            wanted = self.intercept if fit_intercept is None else fit_intercept
            centred = None if wanted is None else switch("fit_intercept", wanted)
            self.reduction.refuse(chosen, centred, switch("standardize", standardize), weighted)
        problem = Problem.prepared(
            self.A,
            self._target(),
            self.k if k is None else k,  # Problem says what to do when it is missing
            loss=chosen, lam=self.lam if lam is None else lam, delta=delta,
            feature_names=self.feature_names, force_in=force_in, force_out=force_out,
            fit_intercept=(self.intercept or False) if fit_intercept is None else fit_intercept,
            standardize=standardize, sample_weight=self.weights if sample_weight is None else sample_weight,
            offset=offset,
            **constraint_asked(constraint, vars(self), self.feature_names),
        )  # fmt: skip
        if self.coding is not None:
            units = dataclasses.replace(problem.units, coding=self.coding)
            problem = Problem.held(problem.objective, units, problem.k)
        return problem if self.reduction is None else problem.standing_for(self.reduction)

    def _target(self) -> NDArray[Any]:
        """What is to be predicted; :class:`InputError` where there is nothing."""
        if self.y is not None:
            return self.y
        names = self.feature_names or ()
        listing = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
        raise NoTargetError(
            f"the instance holds no target y; name its column {f'({listing}) ' if names else ''}or its file with "
            f"{option('target')}, or {either('call columns_problem', 'give --problem css')} for column subset "
            f"selection, which needs none."
        )

    def grouped_problem(
        self,
        *,
        groups: GroupSpec | None = None,
        force_in: Sequence[int | str] = (),
        force_out: Sequence[int | str] = (),
        per_group: int | None = None,
        **options: Any,
    ) -> Problem:
        """The problem of choosing at most k groups of columns, see :class:`exactsel.GroupedProblem`.

        With ``per_group`` that of choosing columns, at most so many from each group (:class:`exactsel.Problem`).
        ``groups``, ``force_in``, ``force_out`` and constraints are as for the class, and groups and constraints those
        of the instance by default; ``options``, and the errors raised, as for :meth:`problem`.
        """
        chosen: GroupSpec | None = groups
        if groups is None and self.groups is not None:
            chosen = [label or None for label in self.groups]
        if chosen is None:
            raise InputError(
                f"the instance names no groups of columns; give {option('groups')}{either(', or use problem()', '')}."
            )
        if per_group is not None:
            return self.problem(force_in=force_in, force_out=force_out, **options).limited(chosen, per_group)
        arguments = {name: options.pop(name) for name in ARGUMENTS if name in options}
        nothing: dict[str, Any] = dict.fromkeys(MEMBERS)
        columns = dataclasses.replace(self, **nothing).problem(**options)
        names = {label for label in self.groups or () if label} | {*(self.feature_names or ())}
        constraint = constraint_asked(arguments, vars(self), sorted(names))
        return GroupedProblem(columns, chosen, force_in=force_in, force_out=force_out, **constraint)

    def columns_problem(self, *, k: int | None = None) -> ColumnSubsetProblem:
        """The column subset selection problem on this instance's matrix; its target, if there is one, is ignored.

        Parameters
        ----------
        k : int, optional
            Takes precedence over the instance's own.

        Returns
        -------
        ColumnSubsetProblem

        Raises
        ------
        InputError
            When k is missing or the matrix cannot be used.
        """
        chosen = self.k if k is None else k
        return ColumnSubsetProblem(self.A, chosen, feature_names=self.feature_names)  # type: ignore[arg-type]


def read_instance(path: str | os.PathLike[str]) -> Instance:
    """Read an instance file.

    Parameters
    ----------
    path : path
        An ``.npz`` file, see :mod:`exactsel.data.instance`.

    Returns
    -------
    Instance

    Raises
    ------
    InputError
        When there is no such file, it is no ``.npz`` archive, it is damaged, A is missing, an array is pickled or
        larger than is read (:mod:`exactsel.data.sizes`), or k, lam, loss, delta or feature_names has the wrong type or
        shape.
    """
    file = Path(path)
    check_readable(file)
    with (
        refusing_damage(file, "is truncated or damaged", "copy it or write it again"),
        zipfile.ZipFile(file) as archive,
    ):
        budget = Budget(file)
        stored = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if "A" not in stored:
            raise InputError(
                f"{file} holds {_listed(stored)}, but an instance needs the arrays A and y; write it with "
                f"{how_to_write(file)}."
            )
        arrays: dict[str, Any] = {"A": map_columns(archive, stored.pop("A"), file)} if MARK in stored else {}
        arrays |= {key: read_member(archive, stored[key], budget) for key in _KEYS if key in stored}
        if MARK not in stored and np.ndim(arrays["A"]) == 2:
            Budget(file).take_table(*arrays["A"].shape)
        try:
            members = {key: arrays.pop(key) for key in TALL if key in arrays}
            return Instance(**arrays, reduction=Reduction.from_arrays(members) if members else None)
        except InputError as error:
            raise InputError(f"in {file}, {error}") from None


def write_instance(path: str | os.PathLike[str], instance: Instance) -> None:
    """Write an instance file; every field that is not None is stored, those of a subclass too.

    The arrays are stored uncompressed, as little-endian 64-bit numbers in row order and with a fixed date, so that the
    bytes depend on the instance alone; a table that is mapped from a file is stored in column order. The file appears
    under its name only when it is complete.

    Parameters
    ----------
    path : path
        Where to write; the name must end in ``.npz``. An existing file is replaced.
    instance : Instance
        What to write.

    Raises
    ------
    InputError
        When the name does not end in ``.npz``, the file cannot be written, or A or y is not real and numeric.
    """
    file = npz_name(path)
    if is_design(instance.A):
        raise InputError(
            "an instance file holds a table, but these data are sparse and stay so; keep the file they came from, or "
            "write them with scipy.sparse.save_npz."
        )
    values = {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}
    values["intercept"] = None if values["intercept"] is None else bool(values["intercept"])
    del values["coding"]
    values |= {} if (reduction := values.pop("reduction")) is None else reduction.as_arrays()
    if stays := is_kept(instance.A):
        del values["A"]
    arrays = {name: storable(name, value) for name, value in values.items() if value is not None}
    with replacing(file) as stream, zipfile.ZipFile(stream, "w") as archive:
        if stays:
            write_columns(archive, len(instance.A), instance.A.T, instance.A.shape[1])
        for name, array in arrays.items():
            write_array(archive, name, array)


def _listed(stored: dict[str, str]) -> str:
    names = sorted(stored) or ["nothing"]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _yes_or_no(name: str, value: object) -> bool | str:
    if isinstance(value, str) and value == AUTO:
        return value
    if isinstance(value, bool | np.bool_ | np.ndarray) and np.asarray(value).dtype == np.bool_ and np.ndim(value) == 0:
        number = float(value)
    else:
        number = one_number(name, value)
    if number not in (0.0, 1.0):
        raise InputError(f"{name} is {number:g}, but 1 (yes) or 0 (no) was expected; store one of them.")
    return bool(number)


def _array(name: str, value: object) -> NDArray[Any]:
    refuse_masked(value, name)
    if isinstance(value, DesignColumns | DesignMatrix):
        return typed_as_array(value)
    try:
        return as_array(value)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; give the same number of entries in each.") from None
