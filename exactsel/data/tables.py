"""Conversion of columns to an instance: the target, the dropped columns, and numbers for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exactsel.arguments import entries, shown, with_aliases
from exactsel.data.arrays import read_vector
from exactsel.data.coded import CodedTable, as_taken, coded_factors, coded_terms
from exactsel.data.column_lists import Choice, meant
from exactsel.data.constraint_lines import CALLED
from exactsel.data.instance import Instance
from exactsel.data.missing import of_rows_left, without_gaps
from exactsel.errors import InputError, NoTargetError, did_you_mean, escaped, option
from exactsel.files import is_file
from exactsel.losses.base import Loss
from exactsel.problem.checks import row_numbers
from exactsel.problem.doubles import say, to_doubles
from exactsel.problem.factors import AUTO as AUTOMATIC
from exactsel.problem.factors import is_categorical
from exactsel.problem.formula import Formula
from exactsel.problem.frames import SHOWN, Column, frame_columns, is_frame, numeric_matrix
from exactsel.problem.labels import labels_for, labels_of
from exactsel.problem.numbered import check_position
from exactsel.problem.row_labels import check_rows
from exactsel.types import FloatArray
from exactsel_mapped import some_columns

DEFAULT_TARGET = "y"
"""The column taken as the target when none is named."""

Factors = str | Sequence[Choice]
"""Columns that become factors; "auto" for all that hold text or that a frame calls categorical."""


@dataclass(frozen=True)
class Coding:
    """How the columns of a table become the columns of a model."""

    factors: Factors = ()
    """Columns to replace by 0/1 columns that count once (:func:`exactsel.problem.factors.factor_columns`)."""
    all_levels: bool = False
    """Whether factors keep their reference level, and a formula has no intercept: models have none."""
    formula: str | None = None
    """The terms of the model, and its target (:mod:`exactsel.problem.formula`)."""
    beside: str | None = None
    """A column that stays beside those of the formula."""


@with_aliases
def instance_from(
    data: Any,
    *,
    target: Choice | None = None,
    drop: Sequence[Choice] = (),
    coding: Coding = Coding(),
    missing: str | None = None,
    sample_weight: ArrayLike | None = None,
    where: str = "the data frame",
) -> Instance:
    """An instance, with an intercept, from a data frame or a list of :class:`exactsel.problem.frames.Column`.

    Parameters
    ----------
    data : data frame (pandas, polars, pyarrow, ...) or list of Column
    target : str or int, optional
        The column to predict, by name or number from 0, or its file; a column called ``y`` by default. Two texts become
        -1 and +1, in alphabetical order, with a warning.
    drop : sequence of str or int
        Columns to drop, of a factor also single ones, ``column[level]``, which joins them with the reference.
    missing : str, optional
        What to do about missing values, of :data:`exactsel.data.missing.WAYS`; they are refused by default.
    coding, sample_weight, where : Coding, array (n,), str

    Returns
    -------
    Instance
        Without a target where none is named and no column is called ``y``.

    Raises
    ------
    InputError
        When columns are unknown, or hold text or missing values.
    """
    check_rows(data, sample_weight=sample_weight)
    counts = None if sample_weight is None else row_numbers(sample_weight, "the weights", refuse=False)
    columns = frame_columns(data) if is_frame(data) else list(data)
    names = [column.name for column in columns]
    encoded, left_out, levels = _chosen(columns, coding.factors, drop, where)
    formula, target = _formula_in(coding, names, target, left_out, where)
    computed = formula is not None and bool(formula.computed_from)
    place, file = (len(columns), None) if computed else target_place(names, target, where)
    if formula is not None:
        left_out |= {j for j, name in enumerate(names) if name not in (*formula.columns, coding.beside) and j != place}
        columns += [formula.target_column(columns, where)] if computed else []
    trouble = list[str]()
    if missing is not None:
        columns, rows, more = without_gaps(columns, place, left_out, missing, where, counts)
        counts = None if counts is None else of_rows_left(counts, rows, "weights")
        left_out |= more
    with _noting(trouble):
        y = read_vector(file) if file is not None else None if place is None else _target_values(columns[place], where)
    held = [(column, j in encoded) for j, column in enumerate(columns) if j not in left_out and j != place]
    table = _coded(held, coding, formula, trouble, where)
    with _noting(trouble):
        matrix = numeric_matrix(table.columns if trouble else _some(table.columns, where), where)
    if trouble:
        raise _all_in_one(trouble, where, no_target=place is None and file is None)
    instance = Instance(matrix, y, weights=counts, **table.described(formula is None or formula.intercept))
    return choose_columns(instance, drop=levels, where=where)


def _formula_in(
    coding: Coding, names: Sequence[str], target: Choice | None, left_out: set[int], where: str
) -> tuple[Formula | None, Choice | None]:
    """The formula, and the target that it or the caller names."""
    if coding.formula is None:
        return None, target
    left, tilde, _ = str(coding.formula).partition("~")
    place, _ = target_place(names, target, where)
    columns = [name for j, name in enumerate(names) if j not in left_out and name != coding.beside]
    target_name = None if place is None else names[place]
    if target is not None and tilde and left.strip() not in ("", target_name):
        raise InputError(
            f"the formula predicts {left.strip()}, but a target is given, too; begin the formula with ~, or leave "
            f"{option('target')} out."
        )
    formula = Formula.of(coding.formula, columns, target_name, coding.all_levels)
    return formula, target if formula.target is None else formula.target


def _coded(
    held: Sequence[tuple[Column, bool]], coding: Coding, formula: Formula | None, trouble: list[str], where: str
) -> CodedTable:
    """The columns as factors or a formula have them."""
    if formula is None:
        return coded_factors(held, coding.all_levels, trouble, where, coding.beside)
    taken, apart = as_taken(held, formula, coding.beside)
    with _noting(trouble):
        numeric_matrix([column for column in taken if not is_categorical(column) or column.missing], where)
    return CodedTable([], ()) if trouble else coded_terms(taken, apart, formula)


def _chosen(
    columns: Sequence[Column], factors: Factors, drop: Sequence[Choice], where: str
) -> tuple[set[int], set[int], list[Choice]]:
    """The factors, the columns to drop, and the dropped levels of factors: COLUMN[LEVEL] is no column yet."""
    names = [column.name for column in columns]
    choices = entries("factors", factors)
    if choices == [AUTOMATIC] and AUTOMATIC not in names:
        encoded = {j for j, column in enumerate(columns) if is_categorical(column)}
    else:
        encoded = {place_of(names, name, where) for name in meant(choices, names)}
    blocks = tuple(f"{names[j]}[" for j in encoded)
    exclusions = meant(entries("drop", drop), names)
    levels: list[Choice] = [
        name for name in exclusions if isinstance(name, str) and name not in names and name.startswith(blocks)
    ]
    return encoded, {place_of(names, name, where) for name in exclusions if name not in levels}, levels


def _some(columns: Sequence[Column], where: str) -> Sequence[Column]:
    """The columns; :class:`InputError` where there are none."""
    if not columns:
        raise InputError(f"{where} has no columns left beside the target; drop fewer.")
    return columns


@contextmanager
def _noting(trouble: list[str]) -> Iterator[None]:
    """Collect errors, so that all of them are reported at once."""
    try:
        yield
    except InputError as error:
        trouble.append(str(error))


def _all_in_one(trouble: Sequence[str], where: str, no_target: bool) -> InputError:
    """The error of sentences that each begin with the name of the file, in one text that does so once."""
    advice = f"name the target with {option('target')}, unless columns are chosen without one"
    first, *others = [*([f"in {where}, no column is called y; {advice}."] if no_target else []), *trouble]
    later = [text.removeprefix(f"in {escaped(where)}, ") for text in others]
    text = " ".join([first, *(text[0].upper() + text[1:] for text in later)])
    return NoTargetError(text) if no_target else InputError(text)


def choose_columns(
    instance: Instance, *, target: Choice | None = None, drop: Sequence[Choice] = (), where: str
) -> Instance:
    """An instance without the columns ``drop``, and with ``target``, a column or a file, in place of its own."""
    if target is None and not drop:
        return instance
    if np.ndim(instance.A) != 2:
        raise InputError(f"{where} holds no table of rows and columns, so no column can be chosen; store a 2-d array.")
    d = instance.A.shape[1]
    names = list(instance.feature_names) if instance.feature_names is not None else [""] * d
    left_out = {place_of(names, name, where) for name in meant(entries("drop", drop), names)}
    y = instance.y
    if target is not None:
        place, file = target_place(names, target, where)
        if file is not None:
            y = read_vector(file)
        elif place is not None:
            y = instance.A[:, place]
            left_out.add(place)
    columns = [j for j in range(d) if j not in left_out]
    if not columns:
        raise InputError(f"{where} has no columns left; drop fewer.")
    if instance.reduction is not None and target is not None:
        raise InputError(f"{where} stands for rows that are gone, so its target stays; name it to exactsel data gram.")
    stored = next((what for name, what in CALLED.items() if getattr(instance, name) is not None), None)
    if stored is not None and len(columns) < d:
        raise InputError(
            f"{where} holds {stored} of all its columns, so none can be left out; use {option('force_out')}."
        )
    feature_names = None if instance.feature_names is None else tuple(names[j] for j in columns)
    labels = None if instance.groups is None else tuple(instance.groups[j] for j in columns)
    reduction = None if instance.reduction is None else instance.reduction.of_columns(np.array(columns))
    coding = None if instance.coding is None else instance.coding.of_columns(columns)
    chosen = replace(
        instance,
        A=some_columns(instance.A, columns),
        y=y,
        feature_names=feature_names,
        groups=labels,
        reduction=reduction,
    )
    return replace(chosen, coding=coding)


def with_labels(instance: Instance, loss: str | Loss | None = None) -> Instance:
    """The instance with labels -1 and +1 where the loss is one of two classes and the target holds 0 and 1."""
    if instance.y is None:
        return instance
    y = labels_for(instance.loss if loss is None else loss, instance.y)
    return instance if y is instance.y else replace(instance, y=y)


def with_offset_read(instance: Instance, offset: str | None) -> tuple[Instance, FloatArray | None]:
    """The instance without the column called ``offset``, and that column; or all of it, and the numbers in that file.

    Raises
    ------
    InputError
        When there is neither, or the file does not hold plain numbers.
    """
    if offset is None:
        return instance, None
    names = instance.feature_names or ("",) * np.asarray(instance.A).shape[1]
    if offset not in names and is_file(offset):
        return instance, read_vector(offset)
    _refuse_expression(offset, names)
    place = place_of(names, offset, "the instance")
    columns = [j for j in range(len(names)) if j != place]
    feature_names = tuple(names[j] for j in columns) if instance.feature_names is not None else None
    groups = None if instance.groups is None else tuple(instance.groups[j] for j in columns)
    column = to_doubles(np.asarray(some_columns(instance.A, [place])).reshape(-1), f"the offset {offset}")
    coding = None if instance.coding is None else instance.coding.of_columns(columns)
    rest = replace(
        instance, A=some_columns(instance.A, columns), feature_names=feature_names, groups=groups, coding=coding
    )
    return rest, column


def _refuse_expression(offset: str, names: Sequence[str]) -> None:
    """:class:`InputError` for ``log(exposure)``, as it is written in R."""
    included = offset.removeprefix("log(").removesuffix(")")
    if offset not in names and offset == f"log({included})" and included in names:
        raise InputError(
            f"the offset is {shown(offset)}, but it must be a column or a file; add a column of the logarithms of "
            f"{included} to the table, and leave out {included} itself with {option('drop', [included])}."
        )


def place_of(names: Sequence[str], choice: Choice, where: str) -> int:
    """The number of the column called ``choice``, or with that number."""
    if isinstance(choice, bool) or not isinstance(choice, str | int | np.integer):
        raise InputError(
            f"{shown(choice)} was given for a column of {where}, but a name or a number was expected; correct it."
        )
    matches = [j for j, name in enumerate(names) if name == choice]
    if len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        raise InputError(f"{where} has {len(matches)} columns called '{choice}'; give the column's number, from 0.")
    if not isinstance(choice, str):
        check_position(int(choice), names, where)
    try:
        place = int(choice)
    except ValueError:
        meant = did_you_mean(choice, names)
        raise InputError(f"{where} has no column called '{choice}'{meant}; {_known(names)}.") from None
    if not -len(names) <= place < len(names):
        raise InputError(f"{where} has no column {place}; its {len(names)} columns are numbered from 0.")
    return place % len(names)


def target_place(names: Sequence[str], target: Choice | None, where: str) -> tuple[int | None, Path | None]:
    """The target's column, or the file it is in."""
    if target is None:
        return (names.index(DEFAULT_TARGET) if names.count(DEFAULT_TARGET) == 1 else None), None
    if (isinstance(target, str) and target not in names and is_file(target)) or isinstance(target, os.PathLike):
        return None, Path(target)
    return place_of(names, target, where), None


def _known(names: Sequence[str]) -> str:
    if not any(names):
        return f"give a number from 0 to {len(names) - 1}, as it has no names"
    listing = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"its columns are {listing}"


def _target_values(column: Column, where: str) -> FloatArray:
    if column.missing:
        raise InputError(
            f"in {where}, the target {column.name} has {column.missing} missing values; remove those rows with "
            f"{option('missing', 'drop-rows')}."
        )
    if column.values is not None:
        say(column.rounding, f"in {where}, the target {column.name}")
        return column.values
    levels = sorted(set(column.texts))
    called = f"the target {column.name}".removesuffix(" (target)")  # of data, where it is no column of a table
    if column.kind != "text" or len(levels) != 2:
        descriptions = {"text": f"text with {len(levels)} different values", "units": "numbers in different units"}
        held = descriptions.get(column.kind, column.kind)
        raise InputError(
            f"in {where}, {called} holds {held}; give numbers, or two classes for logistic or squared_hinge loss."
        )
    return labels_of(column.texts, called)
