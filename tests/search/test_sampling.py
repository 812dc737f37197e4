"""Regions that walks have closed: when answers of workers are looked at some are evaluated, and nobody knows which."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import Problem
from exactsel.proofs.evaluating import Evaluator
from exactsel.proofs.recheck import Recheck
from exactsel.proofs.spot_check import SAMPLED, SpotCheck
from exactsel.search.events import SubtreeClosed
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search


def search_with_walks():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 34)) + rng.standard_normal((40, 1))
    search = Search(Problem(A, A[:, :5].sum(axis=1) + 9.0 * rng.standard_normal(40), 7, lam=0.5), Settings())
    search._shown, search._brief = True, False
    return search


def audited(samples):
    """How many bounds are evaluated when all is told to an audit that asks ``samples``."""
    search = search_with_walks()
    recheck = Recheck(search.problem, Evaluator(search.problem), samples)
    walks = 0
    for event in search:
        walks += isinstance(event, SubtreeClosed)
        recheck(event, search.state)
    assert walks > 0, "the case to be tested"
    return recheck.bounds


@pytest.mark.smoke
def test_what_is_not_evaluated_is_accounted_for_all_the_same():
    asked = []

    def every_other():
        asked.append(True)
        return len(asked) % 2 == 0

    everything, nothing, half = audited(None), audited(lambda: False), audited(every_other)
    assert everything - nothing > 10
    assert nothing < half < everything


def test_a_part_is_evaluated():
    search = search_with_walks()
    search.run()
    check = SpotCheck(search.problem, search._expander, lambda: False)
    again = sum(check._samples() for _ in range(10_000))
    assert abs(again - 10_000 * SAMPLED) < 500  # more than ten standard deviations
