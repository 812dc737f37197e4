r"""Text that comes from a file or a user, made safe to show: what is not printable is written as an escape.

A terminal obeys control characters: a column called ``\x1b[2J`` would clear the screen, one with a bidirectional
control would show digits in another order. :func:`escaped` is the one place where that is prevented; error messages
pass through it when they are made, everything else where it is printed.
"""

from __future__ import annotations

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
