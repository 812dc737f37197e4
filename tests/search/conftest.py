"""What tests of the search share."""

from __future__ import annotations

import pytest

from exactsel.walks import effort


@pytest.fixture
def kernels_at_once(monkeypatch):
    """Let the kernel search below every node, from the first round on, a few nodes at a time."""
    monkeypatch.setattr(effort, "SUBSEARCH_SHARE", 1e9)
    monkeypatch.setattr(effort, "LEAST_SUBSEARCH", 1)
    monkeypatch.setattr(effort, "MOST_SUBSEARCH", 2)
