"""One job of a sweep: an instance, a problem, a method with its settings, and a seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from exactsel._version import __version__
from exactsel.studies.sweeps.sources import Source

SOLVE = "solve"
"""The method that is the exact search; all others are heuristics."""

UNHURRIED = ("time_limit", "node_limit", "memory_limit", "eps", "rel_eps", "threads")
"""Settings that say how far a search goes; they do not change its seed, so that a longer one is the same, longer."""


@dataclass(frozen=True)
class Job:
    """A run of a sweep; equal jobs have equal keys in all sweeps."""

    source: Source
    kind: str
    """``regression`` or ``css``."""
    problem: Mapping[str, Any]
    """k, lam, loss, delta, force_in, force_out, intercept and scale, as far as they are given."""
    method: str
    options: Mapping[str, Any]
    """Of a heuristic; none for ``solve``."""
    settings: Mapping[str, Any]
    """Of the search: fields of :class:`exactsel.Settings`."""
    seed: int
    """As it was given; see :attr:`rng_seed`."""
    give_up_after: float | None = None
    """Seconds after which a process that has not answered is replaced; no part of what makes the job the same."""

    @cached_property
    def key(self) -> str:
        """sha256 over the instance's content, all parameters and settings, the seed and the version of exactsel."""
        return _hash({**self._random_part, "settings": self.settings, "seed": self.seed, "version": __version__})

    @cached_property
    def rng_seed(self) -> int:
        """The seed the method gets: from the parameters and the seed given, not from the job's place in the sweep.

        It is that of ``exactsel solve --method --seed`` for the same run.
        """
        steering = {name: value for name, value in self.settings.items() if name not in UNHURRIED}
        words = np.frombuffer(bytes.fromhex(_hash({**self._random_part, "settings": steering})), dtype="<u4")
        return int(np.random.SeedSequence([self.seed, *map(int, words)]).generate_state(1)[0])

    @property
    def _random_part(self) -> dict[str, Any]:
        return {
            "instance": self.source.identity(), "family": self.kind, "problem": self.problem, "method": self.method,
            "options": self.options,
        }  # fmt: skip

    def entries(self) -> dict[str, Any]:
        """The table's columns that do not depend on the outcome; k, lam and so on as requested."""
        demands = {name: value for name, value in self.problem.items() if name not in ("k", "lam", "loss", "delta")}
        return {
            "instance": self.source.shown, "instance_hash": self.source.hash, "problem": self.kind,
            **{name: self.problem.get(name) for name in ("k", "loss", "lam", "delta")},
            "method": self.method, "seed": self.seed, "rng_seed": self.rng_seed,
            "settings": canonical({**self.source.reading, **demands, **self.options, **self.settings}),
            "key": self.key, "version": __version__,
        }  # fmt: skip

    def __str__(self) -> str:
        named = {**self.problem, **self.options, "seed": self.seed}
        said = " ".join(f"{name}={value}" for name, value in named.items())
        return f"{self.method} {self.source.shown} {said}"

    def to_line(self) -> str:
        """The job for a process that runs it: where its data are, not the data."""
        return canonical(asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Job:
        """The job of a line."""
        held = json.loads(line)
        return cls(**{**held, "source": Source(**held["source"])})


def canonical(value: object) -> str:
    """Plain data as one line of JSON, the same for equal data."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _hash(value: object) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
