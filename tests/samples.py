"""Campaigns over many seeds: a sample is tried every time, all of it by ``make test-all``."""

from __future__ import annotations

import pytest


def sample(quick: int, count: int) -> list[object]:
    """The numbers below ``count``; those from ``quick`` on are for the slow tests."""
    return [*range(quick), *(pytest.param(number, marks=pytest.mark.slow) for number in range(quick, count))]
