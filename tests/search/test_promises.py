"""What the schedule of closers and bounds promises (``python -m benchmarks.promises`` shows figures)."""

import numpy as np
import pytest

from benchmarks.promises.checks import SLACK, shortfall
from benchmarks.promises.instances import INSTANCES
from exactsel import Search, Settings
from exactsel.enumeration.work_budget import FIRST_TRIES, FIRST_WORK, WASTED, SubtreeRecord
from exactsel.search.events import RoundEnded

QUICK = {
    "features, dependent": (2e8, 5e7),
    "hardly correlated": (1e8, 5e7),
    "logistic": (2e8, 1e9),
    "huber": (1e8, 3e8),
}
"""By name, multiplications of a single bound that show the promises in a second or two, and those tried before."""


@pytest.mark.parametrize("name", QUICK)
def test_as_much_is_known_as_by_any_bound_alone_and_as_without_an_incumbent(name):
    found = shortfall(INSTANCES[name], *QUICK[name])
    assert found.of_bounds <= SLACK, found.which
    assert found.of_none <= SLACK


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCES)
def test_on_a_dozen_instances(name):
    found = shortfall(INSTANCES[name], 3e9)
    assert found.of_bounds <= SLACK, found.which
    assert found.of_none <= SLACK


@pytest.mark.parametrize("name", ["features", "hard", "hardly correlated", "features, a ridge"])
def test_walks_in_vain_take_a_tenth(name):
    search = Search(INSTANCES[name](), Settings(node_limit=30_000, time_limit=None), signals=())
    seen = 0.0
    for event in search:
        if isinstance(event, RoundEnded):
            walks = search.state.walks
            seen = max(seen, walks.useful)
            # The first walk of all, and one round's first walk, may go beyond.
            assert walks.wasted <= WASTED * walks.useful + FIRST_TRIES + FIRST_WORK
        if seen > 3e9:
            break
    assert seen > 0.0


def test_what_may_be_in_vain_is_shared_out():
    walks = SubtreeRecord(useful=1e9)
    assert walks.allowance == WASTED * 1e9 + FIRST_TRIES
    walks.note_walk(6, 50, 2e8, finished=False)
    assert walks.allowance < WASTED * 1e9 + FIRST_TRIES - 2e8
    assert walks.failure_rate[6] == 1.0
    risks = []
    for _ in range(8):
        walks.note_walk(4, 50, 1e7, finished=True)
        risks.append(walks.expected_waste(4))
    assert np.all(np.diff(risks) < 0.0)
    assert walks.expected_waste(5) == walks.work
    walks.wasted = 2e9
    assert not walks.wants(4, 50)
