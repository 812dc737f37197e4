"""Corrupted records, which the independent replay may accept only if they are true."""

from __future__ import annotations

import numpy as np
import pytest
from corrupted_records import (
    MUTATIONS,
    accepted,
    change_a_walk,
    corrupt_many,
    raise_a_bound,
    raise_every_bound,
    search_record,
)
from hypothesis import given
from hypothesis import strategies as st
from instances_for_tests import optimum_of
from recorded import instance_of, record_of
from samples import examples, many, sample

import exactsel
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel_dev.reference import replay as rp


@pytest.mark.parametrize("chunk", sample(3, 8, smoke=1))
def test_an_accepted_record_is_true(chunk):
    total = corrupt_many(range(chunk * 40, (chunk + 1) * 40), 3)
    # Each kind of corruption must have been tried, and each does real harm often enough to be rejected.
    # (Few of these small searches walk a subtree; the next test is about those.)
    for mutation, (rejected, _) in total.items():
        assert rejected > 0 or mutation is change_a_walk, mutation.__name__


def test_an_accepted_walk_is_true():
    """Walks with their moves, curvature, claims and open regions tampered with."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 13)) + 1.5 * rng.standard_normal((40, 1))
    problem = exactsel.Problem(A, A @ rng.standard_normal(13) + rng.standard_normal(40), 4, lam=0.01)
    search = Search(problem, Settings(heuristics=(), threads=1, batch=1), signals=())
    events = list(search)
    result, instance = search.result(), instance_of(problem)
    record = record_of(result, events)
    assert any(isinstance(step, rp.Walked) for step in record.steps)
    assert accepted(instance, record) is not None
    refused = 0
    for number in range(many(24, 120)):
        mutation = (change_a_walk, raise_a_bound, raise_every_bound)[number % 3]
        forged = mutation(rng, record)
        report = accepted(instance, forged)
        refused += report is None
        if report is not None:
            assert report.proven <= result.upper + 1e-9
            assert report.lower <= result.upper + 1e-8
    assert refused > many(10, 60)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(20))
def test_many_more_accepted_records_are_true(chunk):
    corrupt_many(range(10_000 + chunk * 200, 10_000 + (chunk + 1) * 200), 10)


@examples(150, 300)
@given(st.data())
def test_a_record_of_several_corruptions_is_true_when_accepted(data):
    seed = data.draw(st.integers(0, 300))
    case, instance, record = search_record(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        mutation = data.draw(st.sampled_from(MUTATIONS))
        record = mutation(np.random.default_rng(data.draw(st.integers(0, 2**32))), record) or record
    with np.errstate(all="ignore"):
        report = accepted(instance, record)
    if report is not None:
        optimum = optimum_of(case)
        assert record.lower <= optimum.high + rp.MOST_ROUNDING * (1.0 + abs(optimum.high))
