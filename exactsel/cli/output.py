"""The output of the commands: a result reaches the user even where the files beside it fail.

A file that could not be written is a sentence on stderr and the exit code :data:`UNWRITTEN`. What stdout does not take
goes to stderr, unless its reader has gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from exactsel.cli.talk import say_line
from exactsel.errors import CompilingWarning, OutputError, OutputWarning

UNWRITTEN = 74
"""Exit code of a run whose result is whole, but for a file or a stream that could not be written."""

INSTEAD_OF = (0, 1, None)
"""Exit codes that give way to it: the others are more specific."""


class Stdout:
    """A stream that never fails: what the one below does not take is remembered as ``failure`` and goes to stderr."""

    def __init__(self, stream: TextIO | None) -> None:
        self.failure: OSError | None = None
        self._stream = stream
        self._unflushed: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, somewhere."""
        if not isinstance(text, str):
            raise TypeError(f"a text was expected, but {type(text).__name__} was given; write a text.")
        self._unflushed.append(text)
        if self.failure is None:
            with self._remembered():
                if self._stream is None:
                    raise OSError(errno.EBADF, "it is closed")
                self._stream.write(text)
        else:
            self._instead()
        return len(text)

    def flush(self) -> None:
        """Let everything go where it goes."""
        if self.failure is None and self._stream is not None:
            with self._remembered():
                self._stream.flush()
                self._unflushed.clear()

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = error
            # What is left in the buffers would fail once more when the process ends.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                if self._stream is not None:
                    os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            self._instead()

    def _instead(self) -> None:
        text = "".join(self._unflushed)
        self._unflushed.clear()
        if not isinstance(self.failure, BrokenPipeError) and sys.stderr is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(text)
                sys.stderr.flush()

    @property
    def sentence(self) -> str | None:
        """What went wrong, if anything."""
        if self.failure is None:
            return None
        if isinstance(self.failure, BrokenPipeError):
            return "stdout was closed before everything was written; let its reader read to the end."
        why = self.failure.strerror or type(self.failure).__name__
        return f"stdout cannot be written ({why}), so what belongs there stands here; make room for it."


class Unwritten:
    """What could not be written in one run of a command, in sentences."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def code(self, code: int | None) -> int | None:
        """The exit code, given the one there would be otherwise."""
        return UNWRITTEN if self.sentences and code in INSTEAD_OF else code


_now: list[Unwritten] = []


@contextmanager
def noting_what_is_unwritten() -> Iterator[Unwritten]:
    """A block in which warnings about outputs, and outputs attempted, are noted instead of raised."""
    unwritten = Unwritten()

    def note(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None,
        line: str | None = None,
    ) -> None:  # fmt: skip
        if issubclass(category, OutputWarning):
            unwritten.sentences.append(str(message))
        elif issubclass(category, CompilingWarning):
            say_line(f"Warning: {message}")
        else:
            shown_otherwise(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        shown_otherwise = warnings.showwarning
        warnings.simplefilter("always", OutputWarning)
        warnings.simplefilter("once", CompilingWarning)
        warnings.showwarning = note
        _now.append(unwritten)
        try:
            yield unwritten
        finally:
            _now.pop()


@contextmanager
def reported(path: str, quiet: bool = False) -> Iterator[None]:
    """A report that the block writes, as :func:`attempted` has it; a line on stderr names it, unless ``quiet``."""
    with attempted():
        yield
        if not quiet:
            name_written("report", path)


def name_written(what: str, path: str) -> None:
    """A line on stderr that names a file that has been written, and says what it holds."""
    say_line(f"{what:<13}{path}")


@contextmanager
def attempted() -> Iterator[None]:
    """An output beside the result: where it cannot be written the command continues."""
    try:
        yield
    except OutputError as error:
        if not _now:
            raise
        _now[-1].sentences.append(str(error))
