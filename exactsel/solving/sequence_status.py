"""The progress of a problem sequence with a checkpoint, such as a path, also while it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactsel.errors import option
from exactsel.nodes.tolerance import relative_gap
from exactsel.search.json_shapes import among, both, entries, maybe, number, several, text, together, whole
from exactsel.solving.checkpoint_shapes import TOLD
from exactsel.solving.checkpointing import command_called
from exactsel.solving.outcome import Claim, Termination
from exactsel.to_plain import Json, counted

ENDED = {
    "complete": "complete: all that was asked for is proven",
    "limits": "limits: a limit left some of it open; {resume} goes on with it",
    "interrupted": "interrupted: {resume} goes on with it",
}
"""The words for how a course ended, explained."""

_RESULT = {
    "upper": maybe(number()), "lower": maybe(number()), "claim": among(*(each.value for each in Claim)),
    "termination": among(*(each.value for each in Termination)), "support": several(whole(), different=True),
}  # fmt: skip
_LIST = {"models": whole(), "regions": whole(), "listing": text}
_STEP = both(
    both(entries({}, {"k": whole(), "lam": number(0.0), **_RESULT, **_LIST}), together(*_RESULT)), together(*_LIST)
)
COURSE_PROGRESS = both(
    entries(
        {"seconds": number(0.0), "ended": maybe(among(*ENDED)), "place": whole(), "steps": several(_STEP)},
        {**TOLD, "regions": whole(), "found": whole(), "best": maybe(number())},
    ),
    together("upper", *TOLD),
)
"""The entries of a sequence's progress report."""


@dataclass(frozen=True)
class SequenceStatus(Json):
    """What a checkpoint says of its path, or of its list of close models."""

    path: Path
    process: int | None
    """The process at work on it on this machine; None where there is none."""
    begun: float
    """When it began, in seconds since the epoch."""
    reported_at: float
    """Time of its last progress report."""
    about: dict[str, Any]
    """The command, version, problem, settings."""
    progress: dict[str, Any]
    """``seconds``, ``ended``, ``place`` and ``steps``, and the numbers that the current search or listing reports."""

    @property
    def run(self) -> str:
        """What it does now: ``at work``, ``broken off``, or how it ended."""
        if self.process is not None:
            return "at work"
        return self.progress["ended"] or "broken off"

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "checkpoint": str(self.path), "what": self.about["what"], "run": self.run, "process": self.process,
            "begun": self.begun, "reported_at": self.reported_at, **self.progress, "problem": self.about["problem"],
            "settings": self.about["settings"], "version": self.about["version"],
        }  # fmt: skip

    def lines(self) -> list[tuple[str, str]]:
        """The same for people: names and values."""
        problem, steps = self.about["problem"], self.progress["steps"]
        sizes = ", ".join(f"{name}={problem[name]:g}" for name in ("n", "d") if name in problem)
        start = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.begun))
        ended, command = self.progress["ended"], command_called(self.about["what"])
        stands = "broken off; {resume} goes on with it" if ended is None else ENDED[ended]
        stands = stands.format(resume=option("resume"))
        done = sum(step.get("claim") in ("optimal", "within_eps") for step in steps)
        return [
            ("problem", f"{problem.get('loss', 'column subset selection')}, {sizes}"),
            ("begun", f"{start}, with exactsel {self.about['version']}, by {command}"),
            ("run", f"process {self.process} is at work" if self.process is not None else stands),
            ("reported", f"{max(0.0, time.time() - self.reported_at):.0f} s ago"),
            ("time", f"{self.progress['seconds']:.1f} s in all"),
            ("proven", f"{done} of {len(steps)} {'problem' if len(steps) == 1 else 'problems'}"),
            *(("step", line) for line in self._steps()),
            ("file", f"{os.path.getsize(self.path) / 2**20:.1f} MiB"),
        ]

    def _steps(self) -> Iterator[str]:
        """One line for each problem."""
        for place, step in enumerate(self.progress["steps"]):
            named = {**{name: self.about["problem"].get(name) for name in ("k", "lam")}, **step}
            which = ", ".join(f"{name}={named[name]:g}" for name in ("k", "lam") if named[name] is not None)
            going = place == self.progress["place"] and self.progress["ended"] is None
            yield ": ".join([which, "; ".join([*self._bounds(step, going), *_list(step)]) or "not begun"])

    def _bounds(self, step: dict[str, Any], going: bool) -> Iterator[str]:
        """The known bounds of a problem's optimum; for the search that is ``going``, those of its last report."""
        reported_at = {**step, **self.progress} if going and "upper" in self.progress else step
        if "upper" not in reported_at:
            return
        names, upper, lower = self.about["names"], reported_at["upper"], reported_at["lower"]
        gap = "none yet" if upper is None or lower is None else f"{relative_gap(upper - lower, upper, 0.0):.3g}"
        model = ", ".join(str(j) if names is None else names[j] for j in reported_at["support"]) or "none"
        yield f"upper {'none yet' if upper is None else f'{upper:.9g}'}, gap {gap}, {model}"
        if reported_at is not step:
            yield f"{counted(reported_at['nodes'], 'node')}, {reported_at['open']} open"
        elif step["claim"] not in ("optimal", "within_eps"):
            yield str(step["termination"])


def _list(step: dict[str, Any]) -> Iterator[str]:
    """What is known of a problem's close models."""
    if "models" in step:
        whole = "complete" if step["listing"] == "complete" else f"not complete, {step['listing']}"
        yield f"{counted(step['models'], 'close model')}, {whole}"
