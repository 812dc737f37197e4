"""Solve a tiny instance in this process; what is refused in one sentence is no result."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from exactsel.errors import InputError
from exactsel.proofs.verify import verify
from exactsel.solving import solve
from exactsel.solving.result import Result
from exactsel.testing.instances import TinyInstance

SECONDS = 300.0
"""No solve of this size takes that long; one that does says so, which is a finding."""


class Refused(Exception):
    """The instance, or these settings for it, cannot be served; the sentence says why."""


class Finding(NamedTuple):
    """Something that is wrong."""

    what: str
    """The class it belongs to: the same words for the same kind of fault."""
    detail: str


def solved(instance: TinyInstance, **options: Any) -> Result:
    """The result of a solve with the instance's settings; raises :class:`Refused`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            settings = {**instance.settings, **options}
            return solve(instance.problem(), signals=(), time_limit=SECONDS, failures=None, **settings)
        except InputError as error:
            raise Refused(str(error)) from None


def solved_with_proof(instance: TinyInstance) -> tuple[Result, list[Finding]]:
    """The same by a solve that leaves a proof, and what the checker says against it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        result = solved(instance, proof=file)
        verdict = verify(instance.problem(), file)
    if verdict.verified:
        return result, []
    return result, [Finding("its own proof is rejected", str(verdict).partition("\n")[0])]
