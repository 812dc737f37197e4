"""The kit for closers: the example passes, and each planted fault is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from exactsel import InputError, Problem, solve
from exactsel.bounds.witness import InfimumPoint
from exactsel.errors import InvariantError, UnsupportedError
from exactsel.nodes.regions import RoundWork
from exactsel.testing import check_closer
from exactsel.testing import closers as kit

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example_plugin"


@pytest.fixture(autouse=True)
def last_slot(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    from exactsel_example import LastSlot

    return LastSlot()


@pytest.fixture
def few(monkeypatch):
    """One problem with a ridge, and one without."""
    labels = ("quadratic loss, 12 x 7, k = 3", "quadratic loss, lam = 0, 12 x 7, k = 3")
    cases = [case for case in kit.small_problems() if case[0] in labels]
    assert len(cases) == 2
    monkeypatch.setattr(kit, "small_problems", lambda needs: cases)


def test_the_example_conforms(last_slot):
    check_closer(last_slot)


class Faulty:
    """The example, with what it says of each region changed."""

    name = "last-slot"

    def __init__(self, inner, change, offers=True):
        self.inner, self.change, self.offers = inner, change, offers

    def prepare(self, problem, options):
        self.cutoff = options.cutoff
        solver = self.inner.prepare(problem, options)
        close = solver.close

        def changed(tasks, work, work_budget):
            close(tasks, work if self.offers else RoundWork(work.upper), work_budget)
            for task in tasks:
                if task.outcome is not None:
                    children = self.change(task.outcome.children)
                    task.outcome = replace(task.outcome, children=children)

        solver.close = changed
        return solver


def raised(children):
    return [replace(child, bound=1.5 * child.bound, closed="bound") for child in children]


def without_one(children):
    return children[:-1]


def unproven(children):
    return [child if child.closed is None else replace(child, proof=InfimumPoint()) for child in children]


def all_closed(children):
    return [replace(child, closed="bound") for child in children]


def opened(children):
    return [replace(child, closed=None) for child in children]


FAULTS = {
    "a bound too high": (raised, True, r"bound of .* is .*, but a model has"),
    "a part lost": (without_one, True, "does not divide it"),
    "a witness that proves less": (unproven, True, "InfimumPoint|is claimed, but only"),
    "no models offered": (all_closed, False, "it is closed, but the cut-off is"),
    "no models offered of parts left open": (opened, False, r"the only model of .* has .*, but the best one offered"),
    "nothing settled": (lambda children: (), True, "nothing tells how the subtree"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault, few, last_slot):
    change, offers, sentence = FAULTS[fault]
    with pytest.raises(AssertionError, match=sentence):
        check_closer(Faulty(last_slot, change, offers))


def test_closers_that_do_nothing_are_told(few, last_slot, monkeypatch):
    class Refusing:
        name = "refusing"

        def prepare(self, problem, options):
            raise UnsupportedError("not today.")

    with pytest.raises(AssertionError, match="refusing refused every problem"):
        check_closer(Refusing())
    from exactsel_example.closer import Fits

    monkeypatch.setattr(Fits, "close", lambda *arguments: None)
    with pytest.raises(AssertionError, match="last-slot settled none of the regions"):
        check_closer(last_slot)


def random_problem():
    rng = np.random.default_rng(2)
    return Problem(rng.standard_normal((20, 8)), rng.standard_normal(20), 3, lam=0.1)


def test_a_plain_search_refuses_parts_that_do_not_divide_a_region(last_slot):
    problem = random_problem()
    result = solve(problem, closer=last_slot, subtrees=False, signals=())
    assert result.upper == pytest.approx(solve(problem, signals=()).upper, rel=1e-9)
    assert result.settings["closers"]["last-slot"]["subtrees"] > 0
    assert "every column tried for the last slot" in result.settings["method"]
    with pytest.raises(InvariantError, match="does not divide it"):
        solve(problem, closer=Faulty(last_slot, without_one), subtrees=False, signals=(), failures=None)


def test_closers_that_are_not_there(last_slot):
    with pytest.raises(InputError, match="there is no closer called 'nearest'; known are"):
        solve(random_problem(), closer="nearest")
    with pytest.raises(UnsupportedError, match="closes regions by bounds alone, but the closer 'last-slot' was given"):
        solve(random_problem(), closer=last_slot, tree="state-space")
