"""Whether what a file reports still fails, and the smallest instance that does: ``exactsel dev reduce``.

A search that contradicts itself is tried here. What a campaign has found is tried by the package that brings the
campaign, through an entry point of the group ``exactsel.checks`` named after its kind.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from exactsel.errors import InputError, InvariantError
from exactsel.solving.reproducer import CONTRADICTION
from exactsel.testing.instances import TinyInstance
from exactsel.testing.reducing import reduced
from exactsel.testing.reproducers import Reproducer
from exactsel.testing.solving import Finding, Refused, solved

SEARCH = "search"
"""The kind of what a search has written that contradicted itself."""

HOW_TO_GET = "it comes with a checkout of exactsel: run make setup there"
"""Where campaigns come from, for messages."""

Check = Callable[[str, str, int, TinyInstance], list[Finding] | None]
"""What finds faults in an instance, from the kind of a reproducer, its relation and its seed."""


def tried(check: Callable[[], list[Finding] | None]) -> list[Finding] | None:
    """The findings of a check, in which an exception is one; None where the instance is no try."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return check()
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{type(error).__name__} in {Path(where.filename).name}, {where.name}"
            return [Finding(name, str(error)[:200])]


def _contradictions(instance: TinyInstance) -> list[Finding] | None:
    try:
        solved(instance, recheck=True)
    except Refused:
        return None
    except InvariantError as error:
        return [Finding(CONTRADICTION, str(error))]
    return []


def _check_of(kind: str) -> Check:
    """The check for a kind of reproducer."""
    if kind == SEARCH:
        return lambda _kind, _relation, _seed, instance: tried(lambda: _contradictions(instance))
    for entry in entry_points(group="exactsel.checks", name=kind):
        check: Check = entry.load()
        return check
    raise InputError(f"what '{kind}' finds is tried by exactsel dev fuzz, which is not installed; {HOW_TO_GET}.")


def still_fails(reproducer: Reproducer, instance: TinyInstance) -> str | None:
    """The detail of the same fault in another instance; None where it does not have it."""
    findings = _check_of(reproducer.kind)(reproducer.kind, reproducer.relation, reproducer.seed, instance)
    return next((finding.detail for finding in findings or () if finding.what == reproducer.what), None)


def smaller(reproducer: Reproducer) -> Reproducer:
    """The same fault in as few rows, columns and words as it takes."""

    def fails(instance: TinyInstance) -> bool:
        return still_fails(reproducer, instance) is not None

    small = reduced(reproducer.instance, fails)
    detail = still_fails(reproducer, small) or reproducer.detail
    return Reproducer(small, reproducer.kind, reproducer.seed, reproducer.what, detail, reproducer.relation)
