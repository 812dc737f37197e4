"""A formula as plain data, from which the columns of its terms are computed for new rows as they were for the model's.

What formulaic has found in the first rows, such as the knots of a spline, the mean of ``center`` and the levels of
categories, is kept as numbers and texts. Formulaic is given it back, together with the formula's text, which is
looked through again: a model from elsewhere can do no more than a formula can.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from exactsel.arguments import shown
from exactsel.errors import InputError, did_you_mean
from exactsel.problem.factors import entries_of, level_text
from exactsel.problem.formula_checks import names_in
from exactsel.problem.frames import Column, numeric_matrix
from exactsel.problem.right_side import RightSide, formula_frame, reason, term_columns
from exactsel.types import FloatArray, Json

if TYPE_CHECKING:
    import pandas
    from formulaic import ModelSpec
    from formulaic.parser.types import Term

Level = str | float

_WHOLE = re.compile(r"\[(-?\d+)\.0\]")
"""A level that is a whole number, in the name of a column."""

WHERE = "the rows to predict"


@dataclass(frozen=True)
class CodedFormula:
    """The right side of a formula, and what its terms have of the rows that a model is made from."""

    text: str
    names: tuple[str, ...]
    """What ``.`` stands for."""
    no_intercept: bool
    levels: Mapping[str, tuple[Level, ...]]
    """Those of the columns of the table that are categories."""
    categories: Mapping[str, tuple[Level, ...]]
    """The levels of the expressions that are."""
    state: Mapping[str, Any]
    """Of the transforms, by expression, as plain data (:func:`plain_state`)."""
    width: int
    """Number of columns."""
    unwritable: str = ""
    """The expression whose state is no plain data, if there is one."""

    @classmethod
    def of(
        cls, text: str, names: Sequence[str], no_intercept: bool, frame: pandas.DataFrame, spec: ModelSpec
    ) -> CodedFormula:
        """What formulaic has found: ``spec`` of the pandas frame ``frame``."""
        state, unwritable = dict[str, Any](), ""
        for expression, transform in spec.transform_state.items():
            try:
                state[expression] = plain_state(transform)
            except TypeError:
                unwritable = expression
        levels = {
            name: tuple(map(_level, column.cat.categories))
            for name, column in frame.items() if hasattr(column, "cat")
        }  # fmt: skip
        categories = {
            expression: tuple(map(_level, encoder["categories"]))
            for expression, (_, encoder) in spec.encoder_state.items() if "categories" in encoder
        }  # fmt: skip
        width = len(term_columns(spec))
        return cls(text, tuple(names), no_intercept, levels, categories, state, width, unwritable)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CodedFormula:
        """The formula that :meth:`as_dict` has written; KeyError, TypeError or ValueError for anything else."""
        levels, categories = (
            {str(k): _levels_in(v) for k, v in plain[key].items()} for key in ("levels", "categories")
        )
        if not isinstance(plain["text"], str) or not isinstance(plain["without intercept"], bool):
            raise TypeError
        names, state, width = tuple(plain["names"]), dict(plain["state"]), plain["columns"]
        if not all(isinstance(name, str) for name in names) or type(width) is not int:
            raise TypeError
        for held in state.values():
            formulaic_state(held)
        return cls(plain["text"], names, plain["without intercept"], levels, categories, state, width)

    def as_dict(self) -> dict[str, Any]:
        """Plain data.

        Raises
        ------
        InputError
            Where the state of a transform is none.
        """
        self._refuse_unwritable("written")
        return {
            "text": self.text, "names": list(self.names), "without intercept": self.no_intercept,
            "levels": {name: list(levels) for name, levels in self.levels.items()},
            "categories": {expression: list(levels) for expression, levels in self.categories.items()},
            "state": dict(self.state), "columns": self.width,
        }  # fmt: skip

    def values(self, table: Sequence[Column], wanted: Sequence[int], rows: int) -> FloatArray:
        """The columns ``wanted``, by number, for the rows of a table (rows, wanted).

        Parameters
        ----------
        table : sequence of Column
            Among them those that the terms of these columns take.
        wanted : sequence of int
        rows : int
            How many there are.

        Raises
        ------
        InputError
            For columns that are missing, levels that the first rows do not have, and rows that the formula cannot be
            evaluated for.
        """
        self._refuse_unwritable("evaluated for other rows")
        right = RightSide.of(self.text, self.names, self.no_intercept)
        spec = self._restored(right)
        places = term_columns(spec)
        terms = list(dict.fromkeys(places[j][0] for j in wanted))
        needed = {name for term in terms for name in names_in(term, self.text)}
        frame = self._frame(found_columns(table, sorted(needed)), needed, right.columns, rows)
        part = spec.subset(terms)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", _mismatch())
            try:
                matrix = part.get_model_matrix(frame, context={}, na_action="ignore")
            except _mismatch() as warning:
                raise InputError(_unseen(str(warning), terms)) from None
            except Exception as error:
                raise InputError(
                    f"the formula {shown(self.text.strip())} cannot be evaluated for {WHERE} ({reason(error)}); "
                    f"correct those rows."
                ) from None
        indices = matrix.model_spec.term_indices
        at = [indices[term][list(spec.term_indices[term]).index(place)] for term, place in (places[j] for j in wanted)]
        values: FloatArray = np.asarray(matrix, dtype=np.float64)[:, at]
        if not np.isfinite(values).all():
            row, column = map(int, np.argwhere(~np.isfinite(values))[0])
            raise InputError(
                f"the term {places[wanted[column]][0]} has no finite value in row {row} of {WHERE}; correct that row."
            )
        return values

    def _refuse_unwritable(self, what: str) -> None:
        if self.unwritable:
            raise InputError(
                f"what {self.unwritable} has found in the data is neither numbers nor texts, so the formula cannot be "
                f"{what}; compute that column in the table, and name it in the formula."
            )

    def _restored(self, right: RightSide) -> ModelSpec:
        """Formulaic's specification, all columns in their places."""
        from formulaic import ModelSpec
        from formulaic.parser.types import Factor

        factors = [factor for term in right.parsed for factor in term.factors]
        encoders = {
            factor.expr: (Factor.Kind.CATEGORICAL, {"categories": list(self.categories[factor.expr])})
            for factor in factors if factor.expr in self.categories
        }  # fmt: skip
        state = {expression: formulaic_state(held) for expression, held in self.state.items()}
        template = ModelSpec(
            formula=right.parsed, transform_state=state, encoder_state=encoders, materializer="pandas", output="pandas"
        )
        # Which columns a term has follows from what is a category, not from the rows.
        nothing = self._frame((), set(), right.columns, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                spec = template.get_model_matrix(nothing, context={}, na_action="ignore").model_spec
            except Exception as error:
                raise InputError(
                    f"the formula of the model cannot be used ({reason(error)}); fit the model again."
                ) from None
        if len(term_columns(spec)) != self.width:
            raise InputError(
                f"the formula of the model has {len(term_columns(spec))} features here, but {self.width} were "
                f"expected; fit it again with this version of formulaic."
            )
        return spec

    def _frame(self, table: Sequence[Column], needed: set[str], columns: Sequence[str], rows: int) -> pandas.DataFrame:
        """A pandas frame of the columns, those that are not needed without values."""
        import pandas

        by_name = {column.name: column for column in table if column.name in needed}
        numbers = [column for name, column in by_name.items() if name not in self.levels]
        numeric_matrix(numbers, WHERE, rounded=True)
        held = dict(formula_frame(numbers).items())
        for name, levels in self.levels.items():
            if name in by_name:
                check_levels(by_name[name], levels)
                held[name] = pandas.Categorical(entries_of(by_name[name]), list(levels))
            elif name in columns:
                held[name] = pandas.Categorical([None] * rows, list(levels))
        return pandas.DataFrame({name: held.get(name, np.full(rows, np.nan)) for name in columns})


def check_single(name: str, header: Sequence[str], fallback: str) -> None:
    """Raise :class:`InputError` unless one column to predict from has that name; ``fallback`` ends the advice."""
    if (count := header.count(name)) == 1:
        return
    what = f"{count} columns to predict from are" if count else f"no column of the {len(header)} to predict from is"
    meant = "" if count else did_you_mean(name, header)
    raise InputError(
        f"the model needs the column '{name}', but {what} called that{meant}; give the columns the names they had"
        f"{fallback}."
    )


def found_columns(table: Sequence[Column], names: Sequence[str]) -> Sequence[Column]:
    """The table, found to have one column of each name."""
    header = [column.name for column in table]
    for name in dict.fromkeys(names):
        check_single(name, header, " for the fit")
    return table


def check_levels(column: Column, levels: Sequence[Level]) -> None:
    """:class:`InputError` where a column of new rows holds a level that the first rows do not have, or none."""
    if column.missing:
        raise InputError(
            f"in {WHERE}, the factor {column.name} has {column.missing} missing values; leave those rows out."
        )
    level_set = {*levels}
    new = next((entry for entry in entries_of(column).tolist() if entry not in level_set), None)
    if new is None:
        return
    seen = ", ".join(map(level_text, levels[:6])) + (", …" if len(levels) > 6 else "")
    held = level_text(new) if isinstance(new, str) == isinstance(levels[0], str) else repr(new)
    raise InputError(
        f"in {WHERE}, the factor {column.name} has the level {held}, which no row of the fit has; its levels are "
        f"{seen}, so leave those rows out, or fit with rows of that level."
    )


def level_name(spec: ModelSpec, term: Term, place: int) -> str:
    """The name of a term's column: levels in brackets, whole numbers as such."""
    name = str(spec.column_names[place]).replace("[T.", "[")
    categories = [spec.encoder_state.get(factor.expr, (None, {}))[1].get("categories", ()) for factor in term.factors]
    numbered = any(isinstance(level, float) for levels in categories for level in levels)
    return _WHOLE.sub(r"[\1]", name) if numbered else name


def plain_state(value: object) -> Json:
    """A transform's state as JSON has it; TypeError where it holds anything but finite numbers and texts."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [plain_state(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return {"array": plain_state(value.tolist())}
    if isinstance(value, Mapping):
        return {"entries": [[plain_state(key), plain_state(entry)] for key, entry in value.items()]}
    raise TypeError


def formulaic_state(plain: Any) -> object:
    """The way back from :func:`plain_state`; TypeError or ValueError for what it has not made."""
    if plain is None or isinstance(plain, bool | int | str | float):
        return plain
    if isinstance(plain, list):
        return [formulaic_state(entry) for entry in plain]
    if {*plain} == {"array"}:
        return np.array(plain["array"], dtype=np.float64)
    if {*plain} != {"entries"}:
        raise ValueError
    return {formulaic_state(key): formulaic_state(entry) for key, entry in plain["entries"]}


def _level(value: Level) -> Level:
    return value if isinstance(value, str) else float(value)


def _levels_in(plain: object) -> tuple[Level, ...]:
    """Levels as JSON has them."""
    if not isinstance(plain, list) or not all(type(level) in (str, int, float) for level in plain):
        raise TypeError
    return tuple(map(_level, plain))


def _mismatch() -> type[Warning]:
    from formulaic.errors import DataMismatchWarning

    category: type[Warning] = DataMismatchWarning
    return category


def _unseen(warning: str, terms: Sequence[Any]) -> str:
    """The sentence for levels of an expression that no row of the fit has."""
    values = ", ".join(_values_in(warning)) or "another one"
    return (
        f"in {WHERE}, a factor of {', '.join(map(str, terms))} has the level {values}, which no row of the fit has; "
        f"leave those rows out, or fit with rows of that level."
    )


def _values_in(warning: str) -> Iterator[str]:
    """The levels that formulaic names."""
    included = re.search(r"\{(.*)\}", warning)
    for part in included[1].split(", ") if included else ():
        number = re.fullmatch(r"(?:np\.float64\()?(-?[\d.e+-]+)\)?", part)
        yield level_text(float(number[1])) if number else part
