"""Heredity of a formula's terms: each term requires the largest terms that divide it."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from exactsel.problem.formula_checks import power_of, tree

if TYPE_CHECKING:
    from formulaic.parser.types import Term

Monomial = Mapping[str, int]
"""A product: how often each of its factors occurs."""


def heredity(terms: Sequence[Term]) -> Iterator[str]:
    """For each term with parents a line ``child: parent, parent`` of their numbers."""
    products = [_monomial(term) for term in terms]
    slots: dict[frozenset[tuple[str, int]], list[int]] = {}
    for j, held in enumerate(products):
        slots.setdefault(frozenset(held.items()), []).append(j)
    for child, whole in enumerate(products):
        nearest = _nearest(whole)
        if nearest and all(part in slots for part in nearest):  # all others divide one of these
            yield f"{child}: {', '.join(map(str, sorted(j for part in nearest for j in slots[part])))}"
            continue
        below = [j for part in _parts(whole, slots) for j in slots[part] if _divides(products[j], whole)]
        largest: list[int] = []
        for j in sorted(below, key=lambda j: -sum(products[j].values())):
            if not any(_divides(products[j], products[i]) for i in largest):
                largest.append(j)
        if largest:
            yield f"{child}: {', '.join(map(str, sorted(largest)))}"


def _nearest(whole: Monomial) -> list[frozenset[tuple[str, int]]]:
    """The products of one factor less."""
    quotients = (
        (*((other, power) for other, power in whole.items() if other != base), (base, whole[base] - 1))
        for base in whole
    )
    return [frozenset((base, power) for base, power in each if power) for each in quotients]


def _parts(whole: Monomial, slots: Mapping[frozenset[tuple[str, int]], Any]) -> Iterable[frozenset[tuple[str, int]]]:
    """The products there are that may divide another: those made of its factors where these are few."""
    if math.prod(power + 1 for power in whole.values()) > len(slots):
        return slots
    powers = product(*(range(power + 1) for power in whole.values()))
    parts = (frozenset((base, p) for base, p in zip(whole, chosen, strict=True) if p) for chosen in powers)
    return (part for part in parts if part in slots)


def _divides(part: Monomial, whole: Monomial) -> bool:
    return dict(part) != dict(whole) and all(whole.get(base, 0) >= power for base, power in part.items())


def _monomial(term: Term) -> Monomial:
    product: dict[str, int] = {}
    for factor in term.factors:
        powers = {factor.expr: 1} if factor.eval_method.name == "LOOKUP" else _of_expression(tree(factor.expr).body)
        for base, power in powers.items():
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
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(power_of(node), int):
        power = int(power_of(node) or 1)
        return {base: exponent * power for base, exponent in _of_expression(node.left).items()}
    return {ast.unparse(node): 1}


def plain_name(term: object) -> str:
    """The name of a term, as it is shown."""
    return " ".join(str(term).split())
