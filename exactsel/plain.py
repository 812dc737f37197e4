r"""Numbers and texts made plain: what JSON has words for, and what a terminal may be sent.

A terminal obeys control characters: a column called ``\x1b[2J`` would clear the screen, one with a bidirectional
control would show digits in another order. :func:`escaped` is the one place where that is prevented; error messages
pass through it when they are made, everything else where it is printed.
"""

from __future__ import annotations

import json
import math
from typing import Any

NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str, keep: str = "") -> str:
    """The text with every character that is not printable written as an escape, but for those in ``keep``.

    That takes in the C0 and C1 controls, DEL, line and paragraph separators, bidirectional and other format controls,
    lone surrogates, and code points without a meaning. Spaces stay spaces.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() or mark in keep else _escape(mark) for mark in text)


def _escape(mark: str) -> str:
    if mark in NAMED:
        return NAMED[mark]
    code = ord(mark)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def finite(value: float) -> float | None:
    """The number, or None where JSON has no word for it (an infinity, nan)."""
    return float(value) if math.isfinite(value) else None


def writable(value: Any) -> Any:
    """The value, or None where it is a number JSON has no word for."""
    return finite(value) if isinstance(value, float) else value


class Json:
    """What can be written as one JSON object: a class that has :meth:`as_dict`."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; no infinity, no nan."""
        raise NotImplementedError

    def to_json(self, **options: Any) -> str:
        """One JSON object, strict (no NaN or Infinity); ``options`` go to :func:`json.dumps`."""
        return json.dumps(self.as_dict(), allow_nan=False, **options)
