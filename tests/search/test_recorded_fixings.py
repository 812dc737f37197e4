"""Columns that a node fixes, as recorded events hold them."""

from __future__ import annotations

from multiprocessing import Pipe

import numpy as np

from exactsel import Problem, solve
from exactsel.search.events import Fixed


def fixings_of(result):
    return [one for event in result.events if isinstance(event, Fixed) for one in event.fixings]


def test_a_recorded_result_can_be_sent_to_another_process():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12))
    result = solve(Problem(A, A[:, 0] + rng.normal(size=30), 3, lam=0.5), record=True, subtrees=False, signals=())
    here, there = Pipe()
    here.send(result)
    fixings, copied = fixings_of(result), fixings_of(there.recv())
    assert fixings
    assert [one[:3] for one in map(told, copied)] == [one[:3] for one in map(told, fixings)]
    assert [type(one[3]) for one in map(told, copied)] == [type(one[3]) for one in map(told, fixings)]


def told(fixing):
    return fixing.column, fixing.included, fixing.bound, fixing.proof
