"""Squared hinge and Poisson loss on random tiny instances against every support, as exactsel fuzz does."""

from __future__ import annotations

from itertools import count, islice

import pytest

from exactsel.testing.campaigns.random_instances import random_instance
from exactsel.testing.campaigns.trials import Trial


def wrong(loss, first, many):
    """What is found on so many instances of this loss, from a seed on."""
    seeds = islice((seed for seed in count(first) if random_instance(seed).loss == loss), many)
    return [(seed, found) for seed in seeds if (found := Trial("brute-force", "", None)(seed).wrong)]


@pytest.mark.parametrize("loss", ["squared_hinge", "poisson"])
def test_against_every_support(loss):
    assert wrong(loss, 0, 12) == []


@pytest.mark.long
@pytest.mark.parametrize("loss", ["squared_hinge", "poisson"])
def test_against_every_support_thousands_of_times(loss):
    assert wrong(loss, 100_000, 3000) == []
