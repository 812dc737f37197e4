"""The grammar of formulas: columns, numbers, arithmetic and known calls, so that a valid formula can be evaluated."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from exactsel.arguments import shown
from exactsel.errors import InputError, option

if TYPE_CHECKING:
    from formulaic.parser.types import Term

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

_VALUES = ("knots", "lower_bound", "upper_bound")
"""Arguments of a spline basis that are in the units of its column."""

_OPERATIONS: Mapping[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip


def names_in(term: Term, text: str) -> Iterator[str]:
    """The columns a term takes, its expressions found to be harmless."""
    for factor in term.factors:
        if factor.eval_method.name == "LOOKUP":
            yield factor.expr
        elif factor.eval_method.name == "PYTHON":
            yield from columns_in(factor.expr, text)


def columns_in(expression: str, text: str) -> Iterator[str]:
    """The columns of an expression; :class:`InputError` where it does anything but compute with them."""
    parsed = tree(expression)
    calls = [node.func for node in ast.walk(parsed) if isinstance(node, ast.Call)]
    allowed = {id(call) for call in calls if _is_known(call)}
    for node in ast.walk(parsed):
        included = isinstance(node, ast.Attribute) and _is_known(node)
        wrong = not isinstance(node, _NODES) or (isinstance(node, ast.Attribute) and not included)
        wrong = wrong or (isinstance(node, ast.Call) and id(node.func) not in allowed)
        wrong = wrong or (isinstance(node, ast.Constant) and _is_large(node.value))
        wrong = wrong or (isinstance(node, ast.Call) and _has_large_degree(node))
        wrong = wrong or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not power_of(node))
        wrong = wrong or (isinstance(node, ast.BinOp) and _is_unbounded(node))
        if wrong:
            _refuse_words_of_r(node, text)
            raise InputError(
                f"the formula {shown(text)} holds {shown(ast.unparse(node))}, which formulas may not; they are made of "
                f"columns, numbers up to {LARGEST_NUMBER} as powers and degrees, + - * / ** and calls of "
                f"{', '.join(CALLS)} and np.{', np.'.join(OF_NUMPY)}; compute other columns first."
            )
    of_calls = {id(node) for call in ast.walk(parsed) for node in ast.walk(call) if isinstance(call, ast.Attribute)}
    of_calls |= allowed
    for node in ast.walk(parsed):
        if isinstance(node, ast.Name) and id(node) not in of_calls:
            yield node.id
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Q":
            yield from (str(entry.value) for entry in node.args if isinstance(entry, ast.Constant))


def _refuse_words_of_r(node: ast.AST, text: str) -> None:
    """:class:`InputError` for what R has in formulas and another word says here."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    included = ", ".join(map(ast.unparse, node.args)) if isinstance(node, ast.Call) else ""
    if called == "offset":
        column = included.isidentifier()
        how = f"give {option('offset', included)}" if column else f"give a column of {included} as {option('offset')}"
        raise InputError(f"the formula {text!r} holds an offset, but only terms were expected; leave it out and {how}.")
    if called in ("factor", "as.factor"):
        raise InputError(f"the formula {text!r} holds {called}({included}), which is C({included}) here; write that.")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        power = f"{ast.unparse(node.left)}**{ast.unparse(node.right)}"
        raise InputError(f"the formula {text!r} holds {ast.unparse(node)}, which is {power} here; write that.")


def tree(expression: str) -> ast.Expression:
    """An expression of a formula, parsed."""
    try:
        return ast.parse(expression, mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        raise InputError(f"the formula holds {shown(expression)}, which is no expression; correct it.") from None


def _is_known(call: ast.expr) -> bool:
    if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name):
        return call.attr in {"np": OF_NUMPY, "contr": OF_CONTRASTS}.get(call.value.id, ())
    return isinstance(call, ast.Name) and call.id in CALLS


def _is_large(value: object) -> bool:
    return not isinstance(value, str | int | float | None) or (isinstance(value, str) and len(value) > 1000)


def _has_large_degree(call: ast.Call) -> bool:
    """Whether the call requests a basis of more columns than any use needs."""
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
            are_numbers = left is not None and right is not None
            value = _OPERATIONS[type(node.op)](left, right) if are_numbers else None
            return value if isinstance(value, float) and math.isfinite(value) else None
    except (ArithmeticError, KeyError):
        return None
    return None


def power_of(node: ast.BinOp) -> int | float | None:
    """The exponent, a number that is not too large; None for anything else."""
    exponent = node.right.value if isinstance(node.right, ast.Constant) else None
    is_power = isinstance(exponent, int | float) and 0 < exponent <= LARGEST_NUMBER
    return exponent if isinstance(exponent, int | float) and is_power else None
