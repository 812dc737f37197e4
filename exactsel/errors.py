"""Exceptions whose text is the sentence a user reads: what was found, what was expected, what to do."""

from __future__ import annotations

from exactsel.plain import escaped


class ExactselError(Exception):
    """Base of every error exactsel raises on purpose; its sentence quotes nothing raw (:mod:`exactsel.plain`)."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(escaped(part) if isinstance(part, str) else part for part in arguments))


class InputError(ExactselError, ValueError):
    """The caller's data, parameters or file cannot be used as given."""


class UnsupportedError(InputError):
    """The request is well formed, but the chosen method cannot serve this problem."""


class WrongFamilyError(UnsupportedError):
    """The method is made for the other family of problems (regression, column subset selection)."""


class OutputError(InputError):
    """A file could not be written: because of its name (``misnamed``), or for a full disk, a quota, a closed pipe."""

    def __init__(self, message: str, misnamed: bool = False) -> None:
        super().__init__(message)
        self.misnamed = misnamed


class OutputWarning(UserWarning):
    """A file could not be written and the result is handed over without it."""
