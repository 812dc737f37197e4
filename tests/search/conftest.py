"""What tests of the search share."""

from __future__ import annotations

import pytest

from exactsel.enumeration import work_budget


@pytest.fixture
def kernels_at_once(monkeypatch):
    """Let the kernel search below every node, from the first round on, a few nodes at a time."""
    monkeypatch.setattr(work_budget, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(work_budget, "LEAST_SUBSEARCH", 1)
    monkeypatch.setattr(work_budget, "MOST_SUBSEARCH", 2)
