"""A round is a pure function of its arguments, and what it says of its bounds reaches the result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from every_search import PLAIN, SEARCHES, every_second
from recorded import plain
from stopping import Stopping

from exactsel import Search, Settings
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.closers.refits import Refits
from exactsel.search.events import Bounded
from exactsel.search.expand import Expander


@pytest.mark.smoke
@pytest.mark.parametrize("kind", every_second(0))
def test_the_same_arguments_bring_the_same_outcome(kind, kernels_at_once, monkeypatch):
    """Twice the same expander, then one that has never seen a support; a better model is found again each time."""
    make, options = SEARCHES[kind]
    rounds, improving, expand = 0, 0, Expander.expand

    def thrice(self, nodes, upper, work_budget):
        nonlocal rounds, improving
        outcomes = [expand(one, nodes, upper, work_budget) for one in (self, self, others[-1])]
        assert plain(outcomes[0]) == plain(outcomes[1]) == plain(outcomes[2])
        rounds, improving = rounds + 1, improving + bool(outcomes[0].models)
        return outcomes[0]

    monkeypatch.setattr(Expander, "expand", thrice)
    others = []
    for seed in range(900, 904):
        other = Search(make(seed), Settings(**options), signals=())
        next(running := iter(other))
        others.append(other._expander)
        running.close()
        Search(make(seed), Settings(**options), signals=()).run()
    assert rounds > 2
    assert improving > 1, "the case to be tested"


def test_what_is_remembered_changes_no_answer():
    problem = SEARCHES["huber, default"][0](900)
    refits, support = Refits(problem, 1), np.array([4, 1, -1])
    fit = problem.fit([1, 4])
    for _ in range(3):
        assert refits.quick(support[None])[0] == problem.objectives(support[None], 1)[0]
        assert refits.better(support, np.inf).value == fit.value
        assert refits.better(support, fit.value) is None
        assert refits.better(support, np.nextafter(fit.value, np.inf)).columns.tolist() == [1, 4]


@dataclass(frozen=True)
class Restricted:
    """The default bound, whose n-th call holds for some models only."""

    call: int
    calls: list[int] = field(default_factory=list)
    own: str = ""
    name: str = "restricted"

    def prepare(self, problem, options):
        prepared = AcceleratedGradientBound().prepare(problem, options)
        return PreparedRestricted(self, prepared)


class PreparedRestricted:
    def __init__(self, solver, inner):
        self.solver, self.inner = solver, inner
        if solver.own:
            self.valid_for = solver.own

    def tighten(self, *arguments):
        self.solver.calls.append(len(self.solver.calls))
        answer = self.inner.tighten(*arguments)
        return replace(answer, valid_for="small models") if len(self.solver.calls) == self.solver.call else answer


def test_a_scope_met_in_one_round_only_is_the_scope_of_the_result():
    problem = SEARCHES["huber, default"][0](901)
    bound = Restricted(call=3)
    search, before = Search(problem, Settings(**PLAIN, bound=bound, batch=1), signals=()), []
    for event in search:
        if isinstance(event, Bounded):
            before.append((len(bound.calls), search.state.valid_for))
    assert {valid_for for calls, valid_for in before if calls < 3} == {""}
    assert {valid_for for calls, valid_for in before if calls >= 3} == {"small models"}
    assert len(bound.calls) > 3, "a later round, whose bounds hold for all models, does not lift it"
    assert search.result().valid_for == "small models"


def test_a_bound_may_name_a_scope_for_all_its_answers():
    """As plug-ins do that were written before answers had one."""
    problem = SEARCHES["huber, default"][0](901)
    search = Search(problem, Settings(**PLAIN, bound=Restricted(call=0, own="light models")), signals=())
    assert search.run().valid_for == "light models"


def test_a_round_that_is_broken_off_restricts_nothing(clock):
    problem = SEARCHES["huber, default"][0](901)

    @dataclass(frozen=True)
    class Both(Restricted):
        def prepare(self, problem, options):
            return PreparedRestricted(self, Stopping(2, clock).prepare(problem, options))

    search = Search(problem, Settings(**PLAIN, bound=Both(call=2), time_limit=10.0, batch=1), signals=())
    result = search.run()
    assert result.termination == "time_limit"
    assert result.valid_for == ""
