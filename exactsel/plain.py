"""Results made plain: as JSON, in a line, as a table in a notebook."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from exactsel.errors import escaped


def finite(value: float) -> float | None:
    """The number, or None where JSON has no word for it (an infinity, nan)."""
    return float(value) if math.isfinite(value) else None


def writable(value: Any) -> Any:
    """The value, or None where it is a number JSON has no word for."""
    return finite(value) if isinstance(value, float) else value


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


class Readable(Json):
    """What a notebook or an IPython session shows as the text people read, not as a list of fields."""

    def __repr__(self) -> str:
        """One line, whatever the number of columns."""
        return f"<{type(self).__name__} {' '.join(str(self).partition(chr(10))[0].split())}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def html_table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table for a notebook; all texts are escaped."""

    def row(cells: Sequence[str], kind: str) -> str:
        shown = (f"<{kind} style='text-align:left'>{escape(escaped(cell))}</{kind}>" for cell in cells)
        return f"<tr>{''.join(shown)}</tr>"

    return f"<table>{row(head, 'th') if head else ''}{''.join(row(cells, 'td') for cells in rows)}</table>"
