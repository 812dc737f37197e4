"""The right side of a formula: its terms as formulaic has them, and the table it takes them from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exactsel.arguments import shown
from exactsel.errors import InputError, UnsupportedError, did_you_mean
from exactsel.problem.factors import entries_of, is_categorical
from exactsel.problem.formula_checks import names_in
from exactsel.problem.frames import Column

if TYPE_CHECKING:
    import pandas
    from formulaic import ModelSpec, SimpleFormula
    from formulaic.parser.types import Term

INTERCEPT = "1"
"""The term that is one."""

LONGEST_REASON = 200
"""Characters of formulaic's own messages that are shown."""

_BRACKETS = re.compile(r"\x1b\[[0-9;]*m|[\u29da\u29db]")


@dataclass(frozen=True)
class RightSide:
    """The terms of a formula, found to be harmless."""

    parsed: SimpleFormula
    """Formulaic's own."""
    intercept: bool
    columns: tuple[str, ...]
    """Those of the table that it takes."""

    @classmethod
    def of(cls, text: str, names: Sequence[str], no_intercept: bool, whole: str | None = None) -> RightSide:
        """The terms in a text.

        Parameters
        ----------
        text : str
            Without a left side and its ``~``.
        names : sequence of str
            What ``.`` stands for.
        no_intercept : bool
            Exclude the intercept, also where the text includes one.
        whole : str, optional
            The formula as messages show it.

        Raises
        ------
        InputError
            For what is no formula, has no terms, or calls that are not known.
        UnsupportedError
            Where formulaic is missing.
        """
        whole = text if whole is None else whole
        parsed = _parsed(text, names, whole)
        terms = [term for term in parsed if str(term) != INTERCEPT]
        used = tuple(dict.fromkeys(name for term in terms for name in names_in(term, whole)))
        if not terms:
            raise InputError(
                f"the formula {shown(whole)} has no term beside the intercept; name features to choose from."
            )
        intercept = not no_intercept and any(str(term) == INTERCEPT for term in parsed)
        return cls(type(parsed)(terms) if no_intercept else parsed, intercept, used)

    def check(self, names: Sequence[str]) -> None:
        """:class:`InputError` where a table with these columns lacks one."""
        unknown = next((name for name in self.columns if name not in names), None)
        if unknown is not None:
            raise InputError(
                f"the formula names {shown(unknown)}, but no column is called that{did_you_mean(unknown, names)}."
            )


def reason(error: Exception) -> str:
    """What formulaic says, in one line."""
    said = _BRACKETS.sub("", " ".join(str(error).split()))
    return said[:LONGEST_REASON]


def term_columns(spec: ModelSpec) -> list[tuple[Term, int]]:
    """For each column of a formula its term, and its place among those of formulaic; the intercept is none."""
    return [(term, place) for term in spec.terms if str(term) != INTERCEPT for place in spec.term_indices[term]]


def formula_frame(columns: Sequence[Column]) -> pandas.DataFrame:
    """The columns as a pandas frame, those that are categories as such."""
    import pandas

    held: dict[str, Any] = {}
    for column in columns:
        entries = entries_of(column)
        held[column.name] = pandas.Categorical(entries, _declared(column)) if is_categorical(column) else entries
    return pandas.DataFrame(held)


def _declared(column: Column) -> list[Any] | None:
    """The levels that occur, in the order the column's frame gives; None where it gives none."""
    occurring = {*entries_of(column).tolist()}
    return [level for level in column.levels if level in occurring] if column.levels else None


def _parsed(text: str, names: Sequence[str], whole: str) -> SimpleFormula:
    """The terms as formulaic has them."""
    try:
        from formulaic import Formula as Parsed
        from formulaic import SimpleFormula
    except ImportError:
        raise UnsupportedError("formulas need formulaic; run: pip install 'exactsel[formulas]'.") from None
    from exactsel.problem.formula_terms import limited_parser

    try:
        formula = Parsed(text, _parser=limited_parser(), _context={"__formulaic_variables_available__": list(names)})
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{shown(whole)} is no formula ({reason(error)}); write 'y ~ a + b'.") from None
    if not isinstance(formula, SimpleFormula):
        raise InputError(f"the formula {shown(whole)} has several parts, but one was expected; write 'y ~ a + b'.")
    return formula
