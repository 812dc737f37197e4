"""What suits which problem: the table, and plug-ins that leave out what the protocol has a default for."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, boxed, registry, solve
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.plug_in import bound_solver
from exactsel.problem.capabilities import PLAIN_REGRESSION
from exactsel.solving.choose import BOUNDS, PROBLEM_CLASSES, class_of, methods_for
from exactsel.solving.settings import Settings

RNG = np.random.default_rng(7)
A, Y = RNG.standard_normal((30, 6)), RNG.standard_normal(30)
COLUMNS = Problem(A, Y, 2, lam=1.0)
PROBLEMS = [
    COLUMNS, GroupedProblem(COLUMNS.replace(k=0), [0, 0, 1, 1, 2, 2]).replace(k=2), ColumnSubsetProblem(A, 2),
    boxed(COLUMNS, "all"),
]  # fmt: skip


class Elsewhere:
    """A bound whose author knows nothing of our base classes."""

    name = "elsewhere"

    def prepare(self, problem, options):
        self.prepared = PreparedElsewhere(AcceleratedGradientBound().prepare(problem, options))
        return self.prepared


class PreparedElsewhere:
    def __init__(self, inner):
        self.tighten = inner.tighten


def test_there_is_a_problem_of_each_class():
    assert {class_of(problem) for problem in PROBLEMS} == {*PROBLEM_CLASSES}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.kind)
def test_the_defaults_of_every_class_are_there(problem):
    suits = class_of(problem)
    assert [each for each in PROBLEM_CLASSES if problem.has(each.needs)] == [suits]
    methods = methods_for(problem, Settings())
    default = suits.bound(problem, None)
    assert methods.bound.name == getattr(default, "name", default)
    assert problem.has(methods.bound.needs)
    company = BOUNDS[methods.bound.name]
    assert methods.branching.name == (company.quadratic_branching or company.branching)
    assert {suits.greedy, *suits.improving} - {""} <= {*registry.names("heuristics")}
    assert methods.bound.prepare(problem, BoundOptions()).valid_for == ""


def test_every_built_in_bound_derives_from_the_protocol():
    for name in registry.names("bounds"):
        solver = registry.load("bounds", name)()
        if type(solver).__module__.startswith("exactsel."):
            assert bound_solver(solver) is solver
            assert any(solver.needs == each.needs for each in PROBLEM_CLASSES)


def test_a_plug_in_may_leave_out_what_has_a_default():
    solver = bound_solver(Elsewhere())
    assert (solver.name, solver.needs, solver.adjusted_rows) == ("elsewhere", PLAIN_REGRESSION, False)
    prepared = solver.prepare(COLUMNS, BoundOptions())
    assert (prepared.valid_for, prepared.curvature, prepared.kernel_form) == ("", None, None)


def test_what_a_plug_in_says_is_heard():
    elsewhere = Elsewhere()
    prepared = bound_solver(elsewhere).prepare(COLUMNS, BoundOptions())
    elsewhere.prepared.valid_for = "small models"  # met while bounding
    assert prepared.valid_for == "small models"


def test_a_search_with_a_bound_from_elsewhere():
    result = solve(COLUMNS, bound=Elsewhere())
    assert result.settings["bound"] == "elsewhere"
    assert result.settings["method"] == "bound elsewhere"
    assert result.upper == pytest.approx(solve(COLUMNS).upper)
