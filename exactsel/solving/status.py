"""The progress of a search with a checkpoint, also while it runs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactsel.errors import InputError, option
from exactsel.nodes.tolerance import relative_gap
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.json_shapes import number, plain
from exactsel.solving.checkpoint_shapes import HOW, LATEST, PROGRESS, check_begun, check_support, require_shape
from exactsel.solving.checkpointing import SOLVE
from exactsel.solving.outcome import Termination
from exactsel.solving.sequence_status import COURSE_PROGRESS, SequenceStatus
from exactsel.to_plain import Json, finite


@dataclass(frozen=True)
class SearchStatus(Json):
    """What a checkpoint says of its search."""

    path: Path
    process: int | None
    """The process at work on it on this machine; None where there is none."""
    begun: float
    """When the search began, in seconds since the epoch."""
    reported_at: float
    """Time of its last progress report."""
    about: dict[str, Any]
    """Version, problem, settings."""
    progress: dict[str, Any]
    """``seconds``, ``rounds``, ``nodes``, ``open``, ``lower``, ``upper``, ``support``, ``ended`` and so on."""

    @property
    def run(self) -> str:
        """What the search does now: ``at work``, ``broken off``, or the word for why it ended."""
        if self.process is not None:
            return "at work"
        return self.progress["ended"] or "broken off"

    @property
    def gap(self) -> float | None:
        """(upper - lower) / abs(upper), None where one of them is not known."""
        upper, lower = self.progress["upper"], self.progress["lower"]
        return None if upper is None or lower is None else finite(relative_gap(upper - lower, upper, 0.0))

    @property
    def support(self) -> tuple[str, ...]:
        """The columns of the best model, by name where they have names."""
        names = self.about["names"]
        return tuple(str(j) if names is None else names[j] for j in self.progress["support"])

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "checkpoint": str(self.path), "run": self.run, "process": self.process, "begun": self.begun,
            "reported_at": self.reported_at, "gap": self.gap, **self.progress, "problem": self.about["problem"],
            "settings": self.about["settings"], "version": self.about["version"], "proof": self.about["proof"],
        }  # fmt: skip

    def lines(self) -> list[tuple[str, str]]:
        """The same for people: names and values."""
        progress, problem = self.progress, self.about["problem"]
        sizes = ", ".join(f"{name}={problem[name]:g}" for name in ("n", "d", "k", "lam") if name in problem)
        start = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.begun))
        upper, lower = (
            "none yet" if value is None else f"{value:.12g}" for value in (progress["upper"], progress["lower"])
        )
        valid_for = f"   for {progress['valid_for']}" if progress["valid_for"] else ""
        return [
            ("problem", f"{problem.get('loss', 'column subset selection')}, {sizes}"),
            ("begun", f"{start}, with exactsel {self.about['version']}"),
            ("run", self._run_in_words()),
            ("reported", f"{max(0.0, time.time() - self.reported_at):.0f} s ago"),
            ("time", f"{progress['seconds']:.1f} s in all"),
            ("nodes", f"{progress['nodes']} bounded, {progress['open']} open, {progress['rounds']} rounds"),
            ("upper", f"{upper}   (found by: {progress['source']})"),
            ("lower", f"{lower}{valid_for}"),
            ("gap", "none yet" if self.gap is None else f"{self.gap:.3g}"),
            ("model", ", ".join(self.support) or "empty"),
            ("file", f"{os.path.getsize(self.path) / 2**20:.1f} MiB"),
        ]

    def _run_in_words(self) -> str:
        if self.process is not None:
            return f"process {self.process} is at work"
        if self.progress["ended"] is None:
            return f"broken off; {option('resume')} goes on with it"
        return f"{self.progress['ended']}: {Termination(self.progress['ended']).sentence}"


def status_of(path: str | os.PathLike[str]) -> SearchStatus | SequenceStatus:
    """What a checkpoint says of its search, or of its path or list of close models.

    Raises
    ------
    InputError
        Where it is no checkpoint, or damaged, or the search has not reported progress yet.
    """
    checkpoint = Checkpoint.open(path, writing=False)
    try:
        about, reported_at, process = checkpoint.about(), checkpoint.progress(), checkpoint.at_work()
    finally:
        checkpoint.close()
    if reported_at is None:
        raise InputError(f"the search of {path} has no progress yet, as it is still being prepared; ask again later.")
    file, (when, progress) = Path(path), reported_at
    searched = about.get("what", SOLVE) == SOLVE
    if searched:
        check_begun(file, about, how=HOW)
        require_shape(file, PROGRESS(progress), "what it tells of its search")
        check_support(file, about, progress["support"])
    else:
        check_begun(file, about, course=plain(64))
        require_shape(file, COURSE_PROGRESS(progress), "what it tells of its problems")
        for step in (progress, *progress["steps"]):
            check_support(file, about, step.get("support", []))
    require_shape(file, number(0.0, LATEST)(when), "the time it told of itself last")
    return (SearchStatus if searched else SequenceStatus)(file, process, about["began"], when, about, progress)
