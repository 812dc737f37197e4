"""The other doors: path, near, certify, compare, heuristics and the estimators."""

from __future__ import annotations

from typing import Any

from benchmarks.attacks.cases import Case
from benchmarks.attacks.oracle import Oracle, Truth
from benchmarks.attacks.running import Outcome


def through_doors(seed: int, case: Case, problem: Any, oracle: Oracle, truth: Truth, outcome: Outcome) -> None:
    """Through one of the doors, for a share of the seeds."""
