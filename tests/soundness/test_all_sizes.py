"""Sets of all sizes that come below their levels, against the best models on every set; bounds of a step."""

from __future__ import annotations

from itertools import combinations
from math import inf

import numpy as np
import pytest
from samples import many, whole

from exactsel import Problem, best_model
from exactsel.enumeration.all_sizes import fitting_of, sizes_listed
from exactsel.errors import InputError
from exactsel.kernels.leave_out import bound_without, fit_until, new_place
from exactsel.kernels.linalg import inverse_from_cholesky
from exactsel.losses.adjusted import is_adjusted
from exactsel.problem.rows import Rows
from exactsel.studies import best_enumeration
from exactsel.studies.best_search import AcrossSizes

LOSSES = ("huber", "logistic", "poisson", "squared_hinge")
NEVER = np.zeros(1, dtype=np.bool_)
NO_RIDGE = 1e-9
"""Nearly: with separated classes coefficients go where they go without one, only not for ever."""


def awkward(seed):
    """A small problem: ties, copies, constants, separated classes, weights, an intercept, columns that must be in."""
    rng = np.random.default_rng(seed)
    loss, n, d = LOSSES[seed % 4], int(rng.integers(6, 16)), int(rng.integers(1, 6))
    A = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2, d)
    if rng.random() < 0.3:
        A = np.sign(A)
    if rng.random() < 0.3:
        A[:, -1] = A[:, 0] * float(rng.choice([1.0, -2.0]))
    if rng.random() < 0.2:
        A[:, rng.integers(d)] = 1.0
    z = A[:, 0] + float(rng.choice([0.0, 0.3, 3.0])) * rng.normal(size=n)
    labels = np.where(z > np.median(z), 1.0, -1.0)
    y = {"huber": z, "poisson": rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)}.get(loss, labels)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.3 else None
    lam = float(rng.choice([NO_RIDGE, 1e-3, 0.1, 2.0]))
    options = {"delta": 0.7} if loss == "huber" else {}
    intercept = bool(rng.random() < 0.5) and len({*y}) > 1
    demands = {"force_in": [0]} if rng.random() < 0.2 else {"force_out": [0]} if rng.random() < 0.2 and d > 1 else {}
    problem = Problem.prepared(A, y, d, loss=loss, lam=lam, intercept=intercept, weights=weights, **options)
    return rng, problem.replace(**demands)


def is_usual(problem, both_ways=()):
    """Whether kernels are compiled for it each time: for a loss with weights or an intercept, or without them.

    For losses ``both_ways`` other tests need both.
    """
    adjusted = is_adjusted(type(problem.objective.row_loss))
    name = problem.loss.name
    return whole() or name in both_ways or adjusted == (name in ("logistic", "squared_hinge"))


def objectives(problem):
    """That of every set of columns that has all that must be in."""
    must, never = {*problem.units.force_in}, {*problem.units.force_out}
    sets = [s for k in range(problem.d + 1) for s in combinations(range(problem.d), k)]
    return {s: problem.fit(s).value for s in sets if must <= {*s} and not never & {*s}}


def listed(found):
    return {tuple(row[row >= 0].tolist()): float(bound) for row, bound in zip(found.sets, found.bounds, strict=True)}


def room(problem):
    """What a fit may be off by."""
    return 1e-9 * problem.null_objective + 1e-12


def check_lists(seed):
    """Hold a list against every set: how many it has and leaves out, and whether levels fell; None if given up."""
    rng, problem = awkward(seed)
    if not is_usual(problem, ("huber", "logistic")):
        return None
    values = objectives(problem)
    price = float(rng.choice([0.0, 0.02, 0.3])) * problem.null_objective
    over = sorted(value + price * len(s) for s, value in values.items())
    threshold = over[int(rng.integers(len(over)))] + float(rng.choice([-1.0, 1.0])) * 10 * room(problem)
    levels = np.array([threshold - price * size for size in range(problem.d + 1)])
    levels[rng.random(problem.d + 1) < 0.2] = -inf
    top = int(rng.choice([0, 0, 1, 3]))
    found = sizes_listed(problem, levels, top, NEVER)
    if found is None:
        return None
    sets = listed(found)
    assert len(sets) == len(found.sets), "no set twice"
    assert np.all(found.levels <= levels)
    assert top > 0 or np.array_equal(found.levels, levels)
    for s, value in values.items():
        if value < found.levels[len(s)] - room(problem):
            assert s in sets
        if s in sets:
            assert sets[s] <= value + room(problem)
    assert {*sets} <= {*values}
    if top:  # so many models are still below the levels, or there never were
        there = sum(value <= found.levels[len(s)] + 1e-5 * problem.null_objective for s, value in values.items())
        below = sum(value < levels[len(s)] - room(problem) for s, value in values.items())
        assert there >= min(top, below)
    over = sorted(value - levels[len(s)] for s, value in values.items() if levels[len(s)] > -inf)
    lowest = min(over[top - 1], 0.0) if 0 < top <= len(over) else 0.0
    with np.errstate(invalid="ignore"):
        fallen = np.nanmin(np.where(levels > -inf, found.levels - levels, 0.0))
    # As far as they may, where there are so many models: that is what it saves.
    tight = bool(abs(fallen - lowest) < 1e-5 * problem.null_objective)
    return len(sets), len(values) - len(sets), any(found.levels < levels), tight


@pytest.mark.smoke
def test_lists_hold_every_set_below_its_level():
    made = [check_lists(seed) for seed in range(300)]
    lists = [one for one in made if one is not None]
    assert len(lists) > many(160, 200)
    assert sum(one[0] for one in lists) > 300
    assert sum(one[1] for one in lists) > 1000
    assert sum(one[2] for one in lists) > 20
    assert sum(one[3] for one in lists) > 0.95 * len(lists)


@pytest.mark.long
def test_thousands_of_lists_hold_every_set_below_its_level():
    assert sum(check_lists(seed) is not None for seed in range(300, 8000)) > 5000


def check_bounds(seed):
    """Hold the bounds on one set, and without one of its columns, against the best models; whether they are close."""
    rng, problem = awkward(seed)
    if not is_usual(problem):
        return []
    rows = Rows(problem.objective)
    data, d, m = fitting_of(problem, rows), problem.d, rows.m
    chosen = np.flatnonzero(rng.random(d) < 0.7)
    used, at = np.concatenate([chosen, np.arange(d, m)]), new_place(problem.n)
    if used.size == 0:
        return []
    best, x, H = problem.fit(chosen).value, rng.normal(size=used.size), np.empty((used.size, used.size))
    enough = best * float(rng.choice([0.5, 0.9, 1.0, 2.0]))
    value, bound, steps = fit_until(data, used, chosen, enough, x, H, at)
    if steps < 0:
        return []
    assert bound <= best + room(problem)
    close = [bound >= min(enough, best) - 1e-6 * problem.null_objective]
    if bound >= enough:
        return close
    assert value >= best - room(problem)
    K = inverse_from_cholesky(H)
    for a in range(chosen.size):
        rest = np.delete(chosen, a)
        without = problem.fit(rest).value
        bound = bound_without(data, used, a, rest, x, K, at.bends, new_place(problem.n))
        assert not bound > without + room(problem)
        close.append(bound > 0.5 * (value + without))
    return close


def test_bounds_of_a_step_are_below_the_best_models():
    close = [one for seed in range(150) for one in check_bounds(seed)]
    assert len(close) > many(100, 200)
    assert sum(close) > 0.6 * len(close)


@pytest.mark.long
def test_bounds_of_a_step_are_below_thousands_of_best_models():
    assert sum(len(check_bounds(seed)) for seed in range(400, 10_000)) > 10_000


def test_told_to_stop_or_given_no_work_or_room_it_lists_nothing():
    _, problem = awkward(5)
    levels = np.full(problem.d + 1, 2.0 * problem.null_objective)
    assert sizes_listed(problem, levels, 0, NEVER) is not None
    assert sizes_listed(problem, levels, 0, np.ones(1, dtype=np.bool_)) is None
    assert sizes_listed(problem, levels, 0, NEVER, work=0.0) is None
    assert sizes_listed(problem, levels, 0, NEVER, cap=1) is None


def test_listed_sets_are_not_looked_at_once_the_time_is_over(monkeypatch):
    """What was listed then says nothing of any size, and nothing is said to be complete."""
    monkeypatch.setattr(best_enumeration, "FEW_SETS", 0)
    rng, over, fits, list_sets = np.random.default_rng(3), [], [], best_enumeration.sizes_listed
    A = rng.normal(size=(60, 6))
    y = np.where(A[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)

    def listing(*arguments):
        found = list_sets(*arguments)
        assert len(found.sets) > 30
        over.append(True)
        return found

    def fitting(problem, columns):
        fits.extend(over)
        return fit(problem, columns)

    fit, is_over = Problem.fit, AcrossSizes.is_over
    monkeypatch.setattr(best_enumeration, "sizes_listed", listing)
    monkeypatch.setattr(AcrossSizes, "is_over", lambda across: bool(over) or is_over(across))
    monkeypatch.setattr(Problem, "fit", fitting)
    problem = Problem.prepared(A, y, 6, loss="logistic", lam=0.1, intercept=True)
    found = best_model(problem, criterion="bic", within=1e3, signals=(), threads=1)
    assert over
    assert not found.complete
    assert len(fits) < 15


def test_the_best_models_are_those_of_trying_every_set_with_and_without(monkeypatch):
    """Whether all sizes are listed together or one after the other: the same models."""
    monkeypatch.setattr(best_enumeration, "FEW_SETS", 0)
    together, compared = best_enumeration.serves, 0
    for seed in range(many(14, 40)):
        _, problem = awkward(seed)
        if not is_usual(problem, ("huber", "logistic")):
            continue
        found = []
        for serves in (together, lambda problem: False):
            monkeypatch.setattr(best_enumeration, "serves", serves)
            try:
                found.append(best_model(problem, criterion="bic", top=4, signals=(), threads=1))
            except InputError:
                break
        if len(found) == 2 and all(one.reached and one.complete for one in found):
            compared += 1
            tiny = 1e-6 * problem.null_objective + 1e-6
            criteria = [[model.criterion for model in one.models] for one in found]
            assert criteria[0] == pytest.approx(criteria[1], abs=tiny)
    assert compared > 5
