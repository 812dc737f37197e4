"""The parts a problem is made of, each by itself: the objective, the units, and a constraint on which go together."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from exactsel import ColumnSubsetProblem, GroupedProblem, InputError, Problem, solve
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.fit import fit_support
from exactsel.problem.groups import GroupedUnits
from exactsel.problem.minima import minima
from exactsel.problem.objective import Objective
from exactsel.problem.units import Units

NAMES = ("north", "south", "east", "age", "a", "b")
GROUPS = {"region": ["north", "south", "east"], "blood": ["a", 5]}


def data(seed=0, n=20, d=6):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    return A, A[:, 0] - A[:, 3] + 0.1 * rng.standard_normal(n)


def objective(loss="quadratic", lam=0.5):
    A, y = data()
    target = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    return Objective.of(np.ascontiguousarray(A.T), target, loss=loss, lam=lam)


def columns(**demands):
    return Units.of(6, NAMES, demands.get("force_in", ()), demands.get("force_out", ()))


def groups(**demands):
    return GroupedUnits.of_columns(columns(), GROUPS, **demands)


class Chain(NamedTuple):
    """Every unit only together with the one before it; a constraint of nobody's but this test."""

    d: int

    def to_divide(self, state, k):
        return None

    def clash(self, inside):
        return ()

    def implied(self, state, k):
        state = state.copy()
        for j in range(self.d - 1, 0, -1):
            if state[j] == IN:
                if state[j - 1] == OUT:
                    return None
                state[j - 1] = IN
        for j in range(1, self.d):
            if state[j - 1] == OUT:
                if state[j] == IN:
                    return None
                state[j] = OUT
        return None if np.count_nonzero(state == IN) > k else state

    def completed(self, support, k, state):
        units = range(max(support, default=-1) + 1)
        return tuple(units) if len(units) <= k else None

    def restricted(self, support, k, state):
        return tuple(range(min(k, len(support))))

    def entry(self):
        return {"chain": self.d}


# --- the objective ---


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
def test_an_objective_is_the_function_a_problem_minimises(loss):
    P = objective(loss)
    problem = Problem(P.A, P.y, 3, loss=loss, lam=P.lam)
    x = np.random.default_rng(1).standard_normal(6)
    assert (P.n, P.d) == (20, 6)
    assert P(x) == problem.objective(x)
    np.testing.assert_array_equal(P.gradient(x), problem.gradient(x))
    assert P.at_zero == problem.null_objective == abs(P(np.zeros(6)))
    supports = np.array([[0, 3], [1, -1]])
    np.testing.assert_array_equal(minima(P, supports), problem.objectives(supports))
    best = fit_support(P, np.array([0, 3]))
    assert best.value == problem.fit([3, 0]).value == P(best.coef)


def test_an_objective_has_no_part_that_can_be_changed():
    P = objective()
    with pytest.raises(AttributeError):
        P.lam = 1.0
    with pytest.raises(ValueError, match="read-only"):
        P.AT[0, 0] = 1.0


def test_another_ridge_weight_shares_what_is_known_of_the_data():
    P = objective()
    gram, scale = P.gram, P.at_zero
    other = P.replace(lam=2.0)
    assert other.gram is gram
    assert other.shared is P.shared
    assert (other.lam, P.lam) == (2.0, 0.5)
    assert other.at_zero == scale
    assert P.replace() is P
    huber = P.replace(loss="huber", delta=1.5)
    assert huber.loss.delta == 1.5
    assert huber.replace(delta=2.0).loss.delta == 2.0
    assert huber.at_zero != scale
    assert huber.replace(lam=0.0).lam == 0.0


def test_problems_of_other_sizes_and_demands_share_the_objective():
    A, y = data()
    problem = Problem(A, y, 3, lam=0.5)
    assert problem.replace(k=2, force_in=[1]).objective is problem.objective
    assert GroupedProblem(problem, [0, 0, 1, 1, 2, 2]).objective is problem.objective


def test_the_dual_bound_at_the_minimiser_of_a_region_without_choice_is_its_minimum():
    P, state = objective(), np.array([IN, OUT, OUT, IN, OUT, OUT], dtype=np.int8)
    best = fit_support(P, np.array([0, 3]))
    bound = P.dual_bound(best.coef, state, 2)
    assert bound <= best.value
    assert bound == pytest.approx(best.value, rel=1e-12)


# --- units ---


def test_columns_one_by_one():
    units = columns(force_in=["age"], force_out=[0, "b"])
    assert (units.d, units.columns, units.names, units.groups) == (6, 6, NAMES, ())
    assert (units.force_in, units.force_out) == ((3,), (0, 5))
    np.testing.assert_array_equal(units.region(2), [OUT, FREE, FREE, IN, FREE, OUT])
    assert units.region(2) is not units.region(2)
    assert units.columns_of([4, 1, 4]).tolist() == [1, 4]
    assert units.units_of([4, 1]) == (1, 4)
    assert units.called("south") == [1]
    assert units.unit_of.tolist() == list(range(6))
    assert units.entries() == {"force_in": (3,), "force_out": (0, 5)}
    assert columns().entries() == {}
    nothing = dict.fromkeys(("groups", "left_side"))
    assert columns().describe() == {**nothing, "unit": "column"}


def test_groups():
    units = groups(force_in=["south"], force_out=["blood"])
    assert (units.d, units.columns, units.names) == (3, 6, ("region", "age", "blood"))
    assert units.groups == ((0, 1, 2), (3,), (4, 5))
    np.testing.assert_array_equal(units.region(2), [IN, FREE, OUT])
    assert units.columns_of([2, 1]).tolist() == [3, 4, 5]
    assert units.units_of([5, 4, 0]) == (0, 2)
    assert units.called("east") == units.called("region") == [0]
    assert units.chosen([2, 0, 2]) == (2, 0)
    assert units.in_columns(np.array([[1, -1], [2, 1]])).tolist() == [[3, -1, -1], [3, 4, 5]]
    state = np.array([IN, FREE, OUT], dtype=np.int8)
    assert units.region_of_columns(state, np.array([0])).tolist() == [IN, IN, IN, OUT, OUT, OUT]
    assert units.entries() == {"groups": units.groups, "force_in": (0,), "force_out": (2,)}


def test_the_spans_of_kernels_are_the_columns_of_units():
    for units in (columns(), groups()):
        members, first = units.spans
        spans = [members[first[g] : first[g + 1]].tolist() for g in range(units.d)]
        assert spans == [units.columns_of([g]).tolist() for g in range(units.d)]


def test_demands_of_columns_become_demands_of_their_groups():
    units = GroupedUnits.of_columns(columns(force_in=["b"], force_out=["age"]), GROUPS, force_in=[0])
    assert (units.force_in, units.force_out) == ((0, 2), (1,))


def test_demands_can_be_replaced_in_groups_too():
    made = GroupedProblem(Problem(*data(), 2, lam=0.5, feature_names=NAMES), GROUPS, force_in=["age"])
    other = made.replace(force_in=[], force_out=["north"])
    assert (other.force_in, other.force_out, other.groups) == ((), (0,), made.groups)
    assert isinstance(other, GroupedProblem)
    with pytest.raises(TypeError, match="changes no 'feature_names'"):
        made.replace(feature_names=list("abc"))


def test_units_that_cannot_be_chosen():
    with pytest.raises(InputError, match="feature 3 is in force_in and in force_out; leave it in one of them"):
        columns(force_in=["age"], force_out=[3])
    with pytest.raises(InputError, match="force_in names 2 features, but k is 1; raise k"):
        columns(force_in=[1, 2]).check(1)
    with pytest.raises(InputError, match="force_in names 2 groups, but k is 1; raise k"):
        groups(force_in=[1, 2]).check(1)


# --- a problem is its three parts ---


@pytest.mark.parametrize("made", [groups(), columns(force_in=[1])], ids=["groups", "columns"])
def test_a_problem_is_an_objective_units_and_k(made):
    problem = Problem.of(objective(), made, 2)
    same = problem.replace()
    assert (same.hash, same.d, same.describe()) == (problem.hash, made.d, problem.describe())
    result = solve(problem, signals=())
    free = [s for s in itertools.combinations(range(made.d), 2) if {*made.force_in} <= {*s}]
    assert result.upper == pytest.approx(min(problem.fit(s).value for s in free), rel=1e-9)
    assert result.reached


def test_groups_may_be_given_to_the_problem_itself():
    A, y = data()
    direct = Problem(A, y, 2, lam=0.5, feature_names=NAMES, groups=GROUPS, force_in=["south"])
    around = GroupedProblem(Problem(A, y, 2, lam=0.5, feature_names=NAMES), GROUPS, force_in=["south"])
    assert direct.hash == around.hash
    assert direct.describe() == around.describe()
    assert (direct.kind, direct.d, direct.A.shape) == ("grouped", 3, (20, 6))
    assert around.inner.hash == Problem(A, y, 6, lam=0.5).hash
    one, other = solve(direct, signals=()), solve(around, signals=())
    assert (one.support, one.upper, one.tree_hash) == (other.support, other.upper, other.tree_hash)
    with pytest.warns(UserWarning, match="k = 5 is more than the 3 groups; using k = 3") as caught:
        Problem(A, y, 5, lam=0.5, feature_names=NAMES, groups=GROUPS)
    assert caught[0].filename == __file__


def test_prepared_problems_take_groups():
    A, y = data()
    inner = Problem.prepared(A + 3.0, y, 2, lam=0.1, intercept=True, scale=True)
    direct = Problem.prepared(A + 3.0, y, 2, lam=0.1, intercept=True, scale=True, groups=[0, 0, 1, 1, 1, 2])
    assert direct.hash == GroupedProblem(inner, [0, 0, 1, 1, 1, 2]).hash
    assert direct.objective_text.startswith("L(Ax + c)")


def test_a_selection_has_units_and_an_objective_without_coefficients():
    A = data()[0]
    problem = ColumnSubsetProblem(A, 2, feature_names=NAMES)
    assert problem.objective.kind == problem.kind == "css"
    assert (problem.objective.loss, problem.objective.lam, problem.objective.preparation) == (None, 0.0, None)
    assert problem.null_objective == problem.objective.at_zero == pytest.approx(np.sum(A**2))
    with pytest.raises(TypeError, match="ColumnSubsetProblem has no argument 'force_in'"):
        problem.replace(force_in=[0])
    assert problem.units.names == problem.feature_names == NAMES
    assert problem.units.force_in == ()


# --- which units go together ---


def test_a_constraint_decides_in_the_root():
    units = replace(columns(force_in=["east"]), constraint=Chain(6))
    np.testing.assert_array_equal(units.region(4), [IN, IN, IN, FREE, FREE, FREE])
    problem = Problem.of(objective(), units, 4)
    np.testing.assert_array_equal(problem.root_state, units.region(4))
    np.testing.assert_array_equal(problem.replace(force_out=["a"]).root_state, [IN, IN, IN, FREE, OUT, OUT])
    for change in ({"k": 2}, {"force_out": [0]}):
        with pytest.raises(InputError, match=r"no set of at most [24] features was found that meets what is demanded"):
            problem.replace(**change)


def test_a_constraint_is_part_of_the_problem():
    plain, bound = (Problem.of(objective(), replace(columns(), constraint=c), 3) for c in (None, Chain(6)))
    assert plain.hash == Problem(*data(), 3, lam=0.5).hash
    assert bound.hash != plain.hash
    assert bound.describe() == plain.describe() | {"problem_hash": bound.hash, "chain": 6}
    assert bound.replace(k=2).units.constraint == Chain(6)
    with pytest.raises(InputError, match="under a constraint, which groups do not know"):
        GroupedProblem(bound, GROUPS)
