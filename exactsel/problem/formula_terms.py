"""The operators of a formula, with a limit on the number of terms they produce.

Formulaic multiplies a power out as it stands: ``(a + b + c)**30`` are 3³⁰ products, nearly all of them equal. Here a
power is a product at a time, until no new term comes, and what would have too many terms is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formulaic.parser import DefaultFormulaParser, DefaultOperatorResolver
from formulaic.parser.types import Operator, OrderedSet

from exactsel.arguments import LONGEST, shown
from exactsel.errors import InputError

MOST_PRODUCTS = 10_000
"""The most products of terms that one operator may form."""


class _Limited(DefaultOperatorResolver):  # type: ignore[misc]
    """Formulaic's operators; those that multiply terms count the products first."""

    @property
    def operators(self) -> list[Operator]:
        return [_limited(operator) for operator in super().operators]


def limited_parser() -> DefaultFormulaParser:
    """Formulaic's parser, which raises :class:`InputError` where a formula would have too many terms."""
    return DefaultFormulaParser(operator_resolver=_Limited())


def _limited(operator: Operator) -> Operator:
    multiply: Callable[..., Any] = operator.to_terms
    if operator.symbol in ("*", ":", "/", "in"):
        operator.to_terms = lambda left, right, **more: multiply(*_few(left, right), **more)
    elif operator.symbol in ("**", "^"):
        operator.to_terms = _power
    return operator


def _few(left: OrderedSet, right: OrderedSet) -> tuple[OrderedSet, OrderedSet]:
    if len(left) * len(right) > MOST_PRODUCTS:
        raise InputError(
            f"the formula multiplies {len(left)} terms by {len(right)}, but at most {MOST_PRODUCTS} products of terms "
            f"can be served; take a smaller power, or fewer features."
        )
    return left, right


def _power(terms: OrderedSet, power: OrderedSet, **more: object) -> OrderedSet:
    """The products of so many of the terms, in formulaic's order."""
    times = _whole_number(next(iter(power)))
    expansion = terms
    for _ in range(times - 1):
        _few(expansion, terms)
        products = OrderedSet(left * right for left in expansion for right in terms)
        if len(products) == len(expansion):
            break
        expansion = products
    return expansion


def _whole_number(term: object) -> int:
    """A power, which is a whole number from 1."""
    text = str(term)
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST and int(text) > 0):
        raise InputError(
            f"the formula takes {shown(text)} for a power of terms, but a whole number from 1 was expected."
        )
    return int(text)
