"""Formulas: the terms of a model as statisticians write them, ``y ~ (age + bmi)^2 + C(site)``, through formulaic.

Each term is a unit, with as many columns as its coding has. A product or power is chosen only together with what it is
made of: the parents of a term are the largest terms of the formula that divide it, as ``age:bmi`` is divided by ``age``
and ``bmi``, and ``I(age**3)`` by ``I(age**2)``.

Formulaic evaluates expressions of Python. Here they see the columns of the table and nothing else, and may be made of
columns, numbers, + - * / **, comparisons, and calls of formulaic's own transforms (:data:`CALLS`) alone.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from exactsel.arguments import shown
from exactsel.data.encoding import is_categorical
from exactsel.errors import InputError, UnsupportedError, did_you_mean, option
from exactsel.problem.frames import Column

CALLS = ("C", "I", "Q", "bs", "cc", "center", "cr", "cs", "exp", "exp10", "exp2", "log", "log10", "log2", "poly",
         "scale", "standardize")  # fmt: skip
"""What a formula may call, beside ``contr.treatment`` and its like, and these of ``np``:"""

OF_NUMPY = ("abs", "cbrt", "cos", "exp", "expm1", "log", "log10", "log1p", "log2", "sign", "sin", "sqrt", "square")

OF_CONTRASTS = ("SAS", "diff", "helmert", "poly", "sum", "treatment")

LARGEST_NUMBER = 100
"""The largest power, degree or number of knots."""

_BASES = ("bs", "cc", "cr", "cs", "poly")

_NODES = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword,
    ast.Attribute, ast.List, ast.Tuple, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.unaryop, ast.cmpop,
)  # fmt: skip

LONGEST_REASON = 200
"""Characters of formulaic's own messages that are shown."""

_VALUES = ("knots", "lower_bound", "upper_bound")
"""Arguments of a spline basis that are in the units of its column."""

_OPERATIONS: Mapping[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip

Monomial = Mapping[str, int]
"""A product: how often each of its factors occurs."""


@dataclass(frozen=True)
class Formula:
    """A formula, found to be one that can be served."""

    text: str
    target: str | None
    """The column to predict; None where the formula names none."""
    right: Any
    """Formulaic's own, of the right side."""
    intercept: bool
    columns: tuple[str, ...]
    """Those of the table that it takes."""

    @classmethod
    def of(cls, text: str, names: Sequence[str], target: str | None, no_intercept: bool) -> Formula:
        """The formula in a text.

        Parameters
        ----------
        text : str
        names : sequence of str
            The columns there are; ``.`` stands for all of them but the target.
        target : str, optional
            The column to predict where the formula names none.
        no_intercept : bool
            Leave the intercept out, whatever the formula says.

        Raises
        ------
        InputError
            For what is no formula, has terms or calls that are not known, or names no column of the table.
        UnsupportedError
            Where formulaic is missing.
        """
        if not isinstance(text, str):
            raise InputError(f"formula is {shown(text)}, but a text was expected; write 'y ~ a + b'.")
        left, right = _parsed(text, [name for name in names if name != target])
        if len(left) > 1 or (left and left[0] not in names):
            raise InputError(
                f"the formula {shown(text)} predicts {' and '.join(left)}, but the name of one column was expected; "
                f"compute that column first."
            )
        terms = [term for term in right if str(term) != "1"]
        used = tuple(dict.fromkeys(name for term in terms for name in _names_in(term, text)))
        if left and left[0] in used:
            raise InputError(
                f"the formula {shown(text)} has {left[0]!r} on both sides; leave it out on the right, where the "
                f"columns to choose from stand."
            )
        unknown = next((name for name in used if name not in names), None)
        if unknown is not None:
            raise InputError(
                f"the formula names {shown(unknown)}, but no column is called that{did_you_mean(unknown, names)}."
            )
        if not terms:
            raise InputError(
                f"the formula {shown(text)} has no term beside the intercept; name columns to choose from."
            )
        intercept = not no_intercept and any(str(term) == "1" for term in right)
        if no_intercept:
            right = type(right)([term for term in right if str(term) != "1"])
        return cls(text, left[0] if left else None, right, intercept, used)

    def coded(self, columns: Sequence[Column]) -> tuple[list[Column], tuple[str, ...], tuple[str, ...]]:
        """The columns of all terms, the name of the term of each, and lines that say which terms others need."""
        frame = _frame([column for column in columns if column.name in self.columns])
        try:
            matrix = self.right.get_model_matrix(frame, context={}, na_action="raise")
        except Exception as error:
            said = _BRACKETS.sub("", str(error)).splitlines()
            raise InputError(
                f"the formula {shown(self.text)} cannot be evaluated ({said[0] if said else error})."
            ) from None
        spec, values = matrix.model_spec, np.asarray(matrix, dtype=np.float64)
        made: list[Column] = []
        labels: list[str] = []
        terms = [term for term in spec.terms if str(term) != "1"]
        for term in terms:
            for place in spec.term_indices[term]:
                made.append(Column(spec.column_names[place].replace("[T.", "["), values[:, place]))
                labels.append(_plain_name(term))
        empty = next((str(term) for term in terms if not len(spec.term_indices[term])), None)
        if empty is not None:
            raise InputError(f"the term {empty} of the formula has no column; leave it out.")
        return made, tuple(labels), tuple(_heredity(terms))


_BRACKETS = re.compile(r"\x1b\[[0-9;]*m|[\u29da\u29db]")


def _parsed(text: str, names: Sequence[str]) -> tuple[list[str], Any]:
    """The names on the left side, and the right side as formulaic has it."""
    try:
        from formulaic import Formula as Parsed
        from formulaic import SimpleFormula
    except ImportError:
        raise UnsupportedError("formulas need formulaic; run: pip install 'exactsel[formulas]'.") from None
    from exactsel.data.formula_terms import limited_parser

    try:
        found: Any = Parsed(text, _parser=limited_parser(), _context={"__formulaic_variables_available__": list(names)})
    except InputError:
        raise
    except Exception as error:
        said = _BRACKETS.sub("", " ".join(str(error).split()))
        raise InputError(f"{shown(text)} is no formula ({said[:LONGEST_REASON]}); write 'y ~ a + b'.") from None
    if isinstance(found, SimpleFormula):
        return [], found
    sides = found._structure
    if {*sides} != {"lhs", "rhs"} or not isinstance(sides["rhs"], SimpleFormula):
        raise InputError(f"the formula {shown(text)} has several parts, but one was expected; write 'y ~ a + b'.")
    return [str(term) for term in sides["lhs"]], sides["rhs"]


def _names_in(term: Any, text: str) -> Iterator[str]:
    """The columns a term takes, its expressions found to be harmless."""
    for factor in term.factors:
        if factor.eval_method.name == "LOOKUP":
            yield factor.expr
        elif factor.eval_method.name == "PYTHON":
            yield from _checked(factor.expr, text)


def _checked(expression: str, text: str) -> Iterator[str]:
    """The columns of an expression; :class:`InputError` where it does anything but compute with them."""
    tree = _tree(expression)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    allowed = {id(call) for call in calls if _is_known(call)}
    for node in ast.walk(tree):
        inside = isinstance(node, ast.Attribute) and _is_known(node)
        wrong = not isinstance(node, _NODES) or (isinstance(node, ast.Attribute) and not inside)
        wrong = wrong or (isinstance(node, ast.Call) and id(node.func) not in allowed)
        wrong = wrong or (isinstance(node, ast.Constant) and _is_large(node.value))
        wrong = wrong or (isinstance(node, ast.Call) and _has_large_degree(node))
        wrong = wrong or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _power(node))
        wrong = wrong or (isinstance(node, ast.BinOp) and _is_unbounded(node))
        if wrong:
            _refuse_words_of_r(node, text)
            raise InputError(
                f"the formula {shown(text)} holds {shown(ast.unparse(node))}, which formulas may not; they are made of "
                f"columns, numbers up to {LARGEST_NUMBER} as powers and degrees, + - * / ** and calls of "
                f"{', '.join(CALLS)} and np.{', np.'.join(OF_NUMPY)}; compute other columns first."
            )
    of_calls = {id(node) for call in ast.walk(tree) for node in ast.walk(call) if isinstance(call, ast.Attribute)}
    of_calls |= allowed
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in of_calls:
            yield node.id
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Q":
            yield from (str(entry.value) for entry in node.args if isinstance(entry, ast.Constant))


def _refuse_words_of_r(node: ast.AST, text: str) -> None:
    """:class:`InputError` for what R has in formulas and another word says here."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    inside = ", ".join(map(ast.unparse, node.args)) if isinstance(node, ast.Call) else ""
    if called == "offset":
        column = inside.isidentifier()
        how = f"give {option('offset', inside)}" if column else f"give a column of {inside} as {option('offset')}"
        raise InputError(f"the formula {text!r} holds an offset, but only terms were expected; leave it out and {how}.")
    if called in ("factor", "as.factor"):
        raise InputError(f"the formula {text!r} holds {called}({inside}), which is C({inside}) here; write that.")


def _tree(expression: str) -> ast.Expression:
    try:
        return ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        raise InputError(f"the formula holds {shown(expression)}, which is no expression; correct it.") from None


def _is_known(call: ast.expr) -> bool:
    if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
        return call.attr in {"np": OF_NUMPY, "contr": OF_CONTRASTS}.get(call.value.id, ())
    return isinstance(call, ast.Name) and call.id in CALLS


def _is_large(value: Any) -> bool:
    return not isinstance(value, str | int | float | None) or (isinstance(value, str) and len(value) > 1000)


def _has_large_degree(call: ast.Call) -> bool:
    """Whether a basis is asked for of more columns than there are uses for."""
    if not (isinstance(call.func, ast.Name) and call.func.id in _BASES):
        return False
    sizes = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg not in _VALUES)]
    return any(_is_size_too_large(size) for size in sizes)


def _is_size_too_large(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return len(node.elts) > LARGEST_NUMBER
    number = _number(node)
    return number is not None and number > LARGEST_NUMBER


def _is_unbounded(node: ast.BinOp) -> bool:
    """Whether an operation is another one, of texts or lists, or of numbers alone whose result no double holds."""
    if type(node.op) not in _OPERATIONS or any(_is_text(part) for part in (node.left, node.right)):
        return True
    alone = not any(isinstance(part, ast.Name | ast.Call | ast.Attribute) for part in ast.walk(node))
    return alone and _number(node) is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _number(node: ast.expr) -> float | None:
    """The value of numbers and + - * / ** alone; None for anything else, and where no double holds it."""
    try:
        if isinstance(node, ast.Constant):
            return float(node.value) if isinstance(node.value, int | float) else None
        if isinstance(node, ast.UnaryOp):
            value = _number(node.operand)
            return -value if value is not None and isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            left, right = _number(node.left), _number(node.right)
            known = left is not None and right is not None
            value = _OPERATIONS[type(node.op)](left, right) if known else None
            return value if isinstance(value, float) and math.isfinite(value) else None
    except (ArithmeticError, KeyError):
        return None
    return None


def _power(node: ast.BinOp) -> int | float | None:
    """The exponent, a number that is not too large; None for anything else."""
    exponent = node.right.value if isinstance(node.right, ast.Constant) else None
    known = isinstance(exponent, int | float) and 0 < exponent <= LARGEST_NUMBER
    return exponent if isinstance(exponent, int | float) and known else None


def _frame(columns: Sequence[Column]) -> Any:
    """The columns as a pandas frame, those that are categories as such."""
    import pandas

    held: dict[str, Any] = {}
    for column in columns:
        entries: Any = column.values if column.values is not None else np.array(column.texts, dtype=object)
        if is_categorical(column):
            levels = None if not column.levels else [level for level in column.levels if level in {*entries.tolist()}]
            held[column.name] = pandas.Categorical(entries, levels)
        else:
            whole = np.all(entries == np.round(entries)) and np.all(np.abs(entries) < 2**53)
            held[column.name] = entries.astype(np.int64) if whole and np.unique(entries).size <= 100 else entries
    return pandas.DataFrame(held)


# --- heredity ---


def _heredity(terms: Sequence[Any]) -> Iterator[str]:
    """For each term with parents a line ``child: parent, parent`` of their numbers."""
    products = [_monomial(term) for term in terms]
    places: dict[frozenset[tuple[str, int]], list[int]] = {}
    for j, held in enumerate(products):
        places.setdefault(frozenset(held.items()), []).append(j)
    for child, whole in enumerate(products):
        below = [j for part in _parts(whole, places) for j in places[part] if _divides(products[j], whole)]
        largest: list[int] = []
        for j in sorted(below, key=lambda j: -sum(products[j].values())):
            if not any(_divides(products[j], products[i]) for i in largest):
                largest.append(j)
        if largest:
            yield f"{child}: {', '.join(map(str, sorted(largest)))}"


def _parts(whole: Monomial, places: Mapping[frozenset[tuple[str, int]], Any]) -> Iterable[frozenset[tuple[str, int]]]:
    """The products there are that may divide another: those made of its factors where these are few."""
    if math.prod(power + 1 for power in whole.values()) > len(places):
        return places
    powers = product(*(range(power + 1) for power in whole.values()))
    parts = (frozenset((base, p) for base, p in zip(whole, chosen, strict=True) if p) for chosen in powers)
    return (part for part in parts if part in places)


def _divides(part: Monomial, whole: Monomial) -> bool:
    return dict(part) != dict(whole) and all(whole.get(base, 0) >= power for base, power in part.items())


def _monomial(term: Any) -> Monomial:
    product: dict[str, int] = {}
    for factor in term.factors:
        found = {factor.expr: 1} if factor.eval_method.name == "LOOKUP" else _of_expression(_tree(factor.expr).body)
        for base, power in found.items():
            product[base] = product.get(base, 0) + power
    return product


def _of_expression(node: ast.expr) -> dict[str, int]:
    """An expression as a product of powers; one factor where it is none."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("I", "C", "Q") and node.args:
        first = node.args[0]
        return {str(first.value): 1} if isinstance(first, ast.Constant) else _of_expression(first)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        product = _of_expression(node.left)
        for base, power in _of_expression(node.right).items():
            product[base] = product.get(base, 0) + power
        return product
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(_power(node), int):
        power = int(_power(node) or 1)
        return {base: own * power for base, own in _of_expression(node.left).items()}
    return {ast.unparse(node): 1}


def _plain_name(term: Any) -> str:
    """The name of a term, as it is shown."""
    return " ".join(str(term).split())
