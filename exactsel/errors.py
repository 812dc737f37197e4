r"""Exceptions whose text is the sentence a user reads: what was found, what was expected, what to do.

The text of any column, group or file name is shown safely: a terminal obeys control characters, and a column called
``\x1b[2J`` would clear the screen, one with a bidirectional control would show digits in another order.
:func:`escaped` is the one place where that is prevented; error messages pass through it when they are made, everything
else where it is printed.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

BARE = re.compile(r"""[^\s'"$&|;<>()*?`\\!#~]+\Z""")
"""What a shell takes as it is."""

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


SHORT = 4
"""Names of up to so many letters match with one slip less in common: ``mgp`` is close to ``mpg``."""


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """``; did you mean 'X'`` for the known name that is likely meant, or nothing; capitals make no difference."""
    from difflib import get_close_matches

    by_small = {each.casefold(): each for each in reversed(list(names))}
    small = str(name).casefold()
    matches = get_close_matches(small, by_small, n=1, cutoff=0.7 if len(small) > SHORT else 0.6)
    return f"; did you mean '{by_small[matches[0]]}'" if matches else ""


FLAGS = {
    "sample_weight": "weights", "fit_intercept": "intercept", "standardize": "scale", "positive": "nonnegative",
    "heuristics": "heuristic", "equalities": "equality",
    "tau": "within",
}  # fmt: skip
"""Options of the command line that are not called like the argument they stand for."""

_at_command_line = [False]


@contextmanager
def at_command_line() -> Iterator[None]:
    """A block whose messages name options of the command line."""
    before, _at_command_line[0] = _at_command_line[0], True
    try:
        yield
    finally:
        _at_command_line[0] = before


def either(python: str, command: str) -> str:
    """The wording of a message in Python, or on the command line."""
    return command if _at_command_line[0] else python


def option(name: str, value: object = None) -> str:
    """How the reader of a message sets an argument: ``missing="mean"``, or ``--missing mean`` on the command line.

    Without a value, or with True or False on the command line, the name alone; a sequence is a list of columns.
    """
    flag = FLAGS.get(name, name).replace("_", "-")
    if value is None or isinstance(value, bool):
        return either(name if value is None else f"{name}={value}", f"--no-{flag}" if value is False else f"--{flag}")
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else _plain(value)
    return either(
        f"{name}={_literal(value)}", f"--{flag} {text if BARE.match(text) and len(text) > 1 else _quoted(text)}"
    )


def css_problem() -> str:
    """The option or argument that selects column subset selection."""
    return either("a ColumnSubsetProblem", "--problem css")


def _literal(value: object) -> str:
    """A value as Python writes it, texts in double quotes."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str):
        return repr(value) if '"' in value or "\\" in value else f'"{value}"'
    return _plain(value)


def _plain(value: object) -> str:
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    if text.isalnum():
        return text
    return f"'{text}'" if "'" not in text else f'"{text}"'


class ExactselError(Exception):
    """Base of every error exactsel raises on purpose; its sentence quotes nothing raw (:func:`escaped`)."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(escaped(part) if isinstance(part, str) else part for part in arguments))


class InputError(ExactselError, ValueError):
    """The caller's data, parameters or file cannot be used as given."""


class NoTargetError(InputError):
    """The data hold no target, and nothing names it."""


class UnsupportedError(InputError):
    """The request is well formed, but the chosen method cannot serve this problem."""


class WrongFamilyError(UnsupportedError):
    """The method is made for the other family of problems (regression, column subset selection)."""


class OutputError(InputError):
    """A file could not be written: because of its name (``misnamed``), or for a full disk, a quota, a closed pipe."""

    def __init__(self, message: str, misnamed: bool = False) -> None:
        super().__init__(message)
        self.misnamed = misnamed


class TimeLimitError(ExactselError):
    """A time limit ended before anything was known."""


class InvariantError(ExactselError, RuntimeError):
    """A search contradicted itself, which is a defect of exactsel: none of what it says can be relied on.

    ``reproducer`` is a file that holds what is needed to see it again, where one could be written.
    """

    reproducer: str | None = None


class ExactselWarning(UserWarning):
    """Base of every warning of exactsel, which names the line that called it."""


class DataWarning(ExactselWarning):
    """The data can be used, but may not be what was meant."""


class OutputWarning(ExactselWarning):
    """A file could not be written and the result is handed over without it."""


class WorkerWarning(ExactselWarning):
    """Workers failed again and again, and a search ended because of that; what it says holds."""


class CompilingWarning(ExactselWarning):
    """A time limit came while kernels were being compiled."""


PASSED_THROUGH = (
    "exactsel",
    "exactsel_heuristics",
    "exactsel_certificates",
    "contextlib",
    "functools",
    "sklearn",
    "joblib",
)
"""Packages whose lines are not the caller's: ours, and those that call us on behalf of a caller."""


def warn(message: str, category: type[Warning]) -> None:
    """A warning at the line that called exactsel."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_THROUGH:
        frame = frame.f_back
    where = frame.f_globals
    warnings.warn_explicit(
        escaped(message), category, frame.f_code.co_filename, frame.f_lineno, where.get("__name__"),
        where.setdefault("__warningregistry__", {}),
    )  # fmt: skip


def warn_of_data(message: str) -> None:
    """A :class:`DataWarning`."""
    warn(message, DataWarning)
