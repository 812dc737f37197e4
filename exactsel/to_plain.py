"""Results made plain: as JSON, in a line, as a table in a notebook."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol

from exactsel.errors import escaped


def finite(value: float) -> float | None:
    """The number, or None where JSON has no word for it (an infinity, nan)."""
    return float(value) if math.isfinite(value) else None


def writable(value: object) -> object:
    """The value, or None where it is a number JSON has no word for."""
    return finite(value) if isinstance(value, float) else value


def counted(count: int, noun: str) -> str:
    """``1 node``, ``1,204 nodes``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def log10_choices(d: int, k: int) -> float:
    """The decimal logarithm of the number of sets of k of d, which itself can be too large for a float."""
    return (math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1)) / math.log(10)


def strict_json(value: dict[str, Any], **options: Any) -> str:
    """One JSON object, strict (no NaN or Infinity); ``options`` go to :func:`json.dumps`."""
    return json.dumps(value, allow_nan=False, **options)


class Json:
    """What can be written as one JSON object: a class that has :meth:`as_dict`."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; no infinity, no nan."""
        raise NotImplementedError

    def to_json(self, **options: Any) -> str:
        """One JSON object, strict (no NaN or Infinity); ``options`` go to :func:`json.dumps`."""
        return strict_json(self.as_dict(), **options)


class Printer(Protocol):
    """What IPython shows texts with."""

    def text(self, text: str) -> None:
        """Show a text."""
        ...


class Readable(Json):
    """What a notebook or an IPython session shows as the text people read, not as a list of fields."""

    def __repr__(self) -> str:
        """One line, for any number of columns."""
        return f"<{type(self).__name__} {' '.join(str(self).partition(chr(10))[0].split())}>"

    def _repr_pretty_(self, printer: Printer, cycle: bool) -> None:
        printer.text(str(self))


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = (), title: str = "") -> str:
    """A table for a notebook; all texts are escaped, and columns of numbers stand at the right.

    It has no colours of its own, so that it reads well in light and dark notebooks.
    """
    body = [[*cells] for cells in rows]
    sides = ["right" if _numbers([cells[place] for cells in body]) else "left" for place in range(_width(body, head))]

    def row(cells: Sequence[str], kind: str) -> str:
        tags = (
            f"<{kind} style='text-align:{side}'>{_safe(cell)}</{kind}>" for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(tags)}</tr>"

    caption = f"<caption style='text-align:left;font-weight:600'>{_safe(title)}</caption>" if title else ""
    lines = f"{row(head, 'th') if head else ''}{''.join(row(cells, 'td') for cells in body)}"
    return f"<table>{caption}{lines}</table>"


def html_line(text: str, *, strong: bool = False, aside: bool = False) -> str:
    """A line for a notebook: in bold, or with a bar at its left as an aside; escaped."""
    style = "font-weight:600;" if strong else ""
    style += "border-left:3px solid currentColor;padding-left:.6em;" if aside else ""
    return f"<p style='margin:.4em 0;max-width:50em;{style}'>{_safe(text)}</p>"


def html_view(*parts: str) -> str:
    """What a notebook shows of one thing: lines and tables, which scroll where they are too wide."""
    return f"<div style='overflow-x:auto'>{''.join(parts)}</div>"


def facts_of(lines: Iterable[str]) -> list[tuple[str, str]]:
    """The lines of a text whose first 12 characters name what follows, as rows of a table."""
    return [(line[:12].strip(), line[12:].strip()) for line in lines]


def _safe(text: str) -> str:
    return escape(escaped(text))


def _width(body: Sequence[Sequence[str]], head: Sequence[str]) -> int:
    return len(head) or max((len(cells) for cells in body), default=0)


def _numbers(texts: Sequence[str]) -> bool:
    """Whether these are numbers, or nothing, for people."""
    cells = [text.replace(",", "") for text in texts if text not in ("", "-", "–")]
    return bool(cells) and all(_is_number(text) for text in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
