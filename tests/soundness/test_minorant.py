"""Quadratic minorants and solving by below_minorant, against brute force on small awkward problems."""

import numpy as np
import pytest
from awkward import awkward, best_sets, on_the_level, secant
from samples import many

from exactsel.bounds import minorant as minorants
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import minorant
from exactsel.enumeration import below_minorant
from exactsel.enumeration.below_minorant import MinorantEnumerator, by_listing, listable, listed_sets
from exactsel.kernels.levels import find_level
from exactsel.losses import Huber, Logistic, Quadratic
from exactsel.losses.base import curvature_known
from exactsel.problem.regression import Problem
from exactsel.problem.rows import Rows, fit_all
from exactsel.proofs.verify import verify
from exactsel.solving.api import solve

CAMPAIGN = many(30, 200)


def loss_of(rng):
    """A loss with a target that suits it: (loss, y)."""
    kind = rng.integers(3)
    if kind == 0:
        return Logistic(), float(rng.choice([-1.0, 1.0]))
    return (Quadratic(), Huber(float(rng.choice([0.1, 1.0, 3.0]))))[kind - 1], float(rng.normal())


@pytest.mark.smoke
def test_a_curvature_holds_on_its_interval_and_is_nearly_the_largest_that_does():
    rng = np.random.default_rng(1)
    for _ in range(3000):
        loss, y = loss_of(rng)
        z = float(rng.normal() * rng.choice([0.1, 1.0, 5.0]))
        if isinstance(loss, Huber) and rng.random() < 0.2:
            z = y + float(rng.choice([-1.0, 1.0])) * loss.delta  # at the kink
        low, high = z - rng.choice([0.0, 1e-6, 0.1, 3.0, 20.0]) * rng.random(), z + 8 * rng.random()
        w = type(loss).point_curvature_on(loss, low, high, z, y)
        assert 0.0 <= w <= type(loss).point_curvature(loss, z, y)
        grid = [
            t for t in np.concatenate([np.linspace(low, high, 60), z + np.array([-1e-3, 1e-3])]) if low <= t <= high
        ]
        smallest = min((secant(loss, t, z, y) for t in grid if abs(t - z) > 1e-4), default=np.inf)
        assert w <= smallest + 1e-10  # what long doubles leave of a difference divided by 1e-8
        at_most = min(smallest, type(loss).point_curvature(loss, z, y))
        assert w >= 0.97 * at_most - 1e-9 or isinstance(loss, Huber)


def test_a_loss_of_ones_own_has_no_minorant_unless_it_says_so():
    class Own:
        """Nothing is known of it."""

    assert not curvature_known(Own())
    assert all(curvature_known(loss) for loss in (Quadratic(), Huber(1.0), Logistic()))


def with_level(problem, x):
    """Coefficients and intercept (where there is one), and predictions with it."""
    if not problem.intercept:
        return x, x @ problem.AT
    z, spare = x @ problem.AT, np.empty((2, problem.n))
    level = find_level(problem.row_loss, z, problem.y, spare[0], spare[1])
    return np.append(x, level), x @ problem.AT + level


def check_minorant(seed):
    """Hold one minorant against the best model of every set and against models on the level; whether there was one."""
    rng, problem = awkward(seed)
    fits = best_sets(problem)
    best = min(fits.values(), key=lambda fit: fit.value)
    upper = best.value * float(rng.choice([1.0, 1.0, 1.05, 1.5]))
    below = minorant(problem.objective, upper, best.coef)
    if below is None:
        return False
    everything = problem.fit(range(problem.d)).coef
    models = [fit.coef for fit in fits.values() if fit.value <= upper]
    models += [on_the_level(problem, rng, upper, everything) for _ in range(8)]
    q = below.quadratic
    for coef in models:
        x, z = with_level(problem, coef)
        room = 1e-9 * (1.0 + np.abs(z).max())
        assert np.all(z >= below.low - room)
        assert np.all(z <= below.high + room)
        scaled = x / below.scale
        assert 0.5 * scaled @ q.H @ scaled - q.h @ scaled <= below.threshold + 1e-9 * upper
        if problem.intercept and rng.random() < 0.5:
            # Any intercept with which P is not above the level will do, not the best alone.
            moved = z + (below.high - below.low).max() * rng.normal(size=1)
            values = Rows(problem.objective).at(moved)[0].sum() + 0.5 * problem.lam * coef @ coef
            assert values > upper or np.all((moved >= below.low - room) & (moved <= below.high + room))
    return True


@pytest.mark.smoke
def test_minorants_hold_for_every_model_on_the_level():
    assert sum(check_minorant(seed) for seed in range(CAMPAIGN)) > CAMPAIGN // 4


@pytest.mark.long
def test_minorants_hold_for_every_model_on_the_level_of_thousands_of_problems():
    assert sum(check_minorant(seed) for seed in range(CAMPAIGN, 5000)) > 1000


def check_listing(seed):
    """Hold a listing against all sets: those below the level are in the list, and the bound is the optimum."""
    _, problem = awkward(seed)
    fits = best_sets(problem)
    best = min(fits.values(), key=lambda fit: fit.value)
    if not listable(problem) or problem.k == problem.d:
        return False
    below = minorant(problem.objective, best.value * 1.02, best.coef)
    if below is None:
        return False
    sets = listed_sets(below, problem.root_state, problem.k, np.zeros(1, dtype=np.bool_), 1000).sets
    assert sets is not None
    listed = [set(row[row >= 0].tolist()) for row in sets]
    for columns, fit in fits.items():
        if fit.value <= best.value * 1.02 * (1.0 - 1e-12):
            assert any(set(columns) <= one for one in listed)
    outcome = by_listing(problem, problem.root_state, best.value, best.coef, BoundOptions(1))
    if outcome is not None:
        assert best.value * (1.0 - 1e-9) <= outcome.bound <= best.value
        assert outcome.fit is None or outcome.fit.value >= best.value * (1.0 - 1e-9)
    return True


def test_a_listing_holds_every_set_below_the_level():
    assert sum(check_listing(seed) for seed in range(CAMPAIGN)) > CAMPAIGN // 5


def test_a_listing_finds_a_model_better_than_the_one_it_was_given():
    found = 0
    for seed in range(80):
        _, problem = awkward(seed)
        fits = sorted(best_sets(problem).values(), key=lambda fit: fit.value)
        if problem.k == problem.d or len(fits) < 2 or not listable(problem):
            continue
        outcome = by_listing(problem, problem.root_state, fits[1].value, fits[1].coef, BoundOptions(1))
        if outcome is not None and outcome.fit is not None:
            found += 1
            assert outcome.fit.value == pytest.approx(fits[0].value, rel=1e-9)
            assert outcome.bound <= fits[0].value
    assert found > 5


def reasons(problem, **options):
    """Why regions were closed, and the result."""
    result = solve(problem, rel_eps=0.0, **options)
    return set(result.history.closed), result


@pytest.mark.smoke
def test_a_search_lists_where_that_suits_and_nobody_wants_to_replay_it(tmp_path):
    rng = np.random.default_rng(12)
    A = rng.normal(size=(200, 8))
    noise = rng.logistic(size=200)
    for loss, y in (("logistic", np.where(A[:, 0] - 0.3 * A[:, 1] + noise > 0, 1.0, -1.0)), ("huber", A[:, 0] + noise)):
        problem = Problem.prepared(A, y, 4, loss=loss, lam=0.1, intercept=True)
        closed, result = reasons(problem)
        assert closed == {"listed"}
        assert result.reached
        assert "minorant" in result.settings["method"]
        best = min(fit.value for fit in best_sets(problem).values())
        assert best * (1 - 1e-9) <= result.lower <= best <= result.upper * (1 + 1e-12)
        plain = [{"record": True}, {"details": True}, {"node_limit": 1000}, {"batch": 4}, {"bound": "apg"}]
        plain += [{"subtrees": False}, {"trace": tmp_path / "t.jsonl"}]
        for options in plain:
            closed, other = reasons(problem, **options)
            assert "listed" not in closed
            assert "minorant" not in other.settings["method"]
            assert other.upper == pytest.approx(result.upper, rel=1e-9)
        closed, shown = reasons(problem, proof=tmp_path / "p.exsel")
        assert closed == {"listed"}
        assert shown.lower == pytest.approx(result.lower, rel=1e-9)
        assert verify(problem, shown.proof).verified


def test_a_search_goes_on_as_usual_where_the_list_grows_too_long(monkeypatch):
    rng = np.random.default_rng(12)
    A = rng.normal(size=(60, 8))
    problem = Problem(A, np.where(A[:, 0] + rng.logistic(size=60) > 0, 1.0, -1.0), 4, loss="logistic", lam=0.1)
    listed, expected = reasons(problem)
    monkeypatch.setattr(below_minorant, "LONGEST", 0)
    closed, result = reasons(problem)
    assert listed == {"listed"}
    assert "listed" not in closed
    assert result.upper == pytest.approx(expected.upper, rel=1e-9)
    assert result.reached


def test_a_listing_that_is_told_to_stop_claims_nothing():
    _, problem = awkward(3)
    stop = np.ones(1, dtype=np.bool_)
    best = min(best_sets(problem).values(), key=lambda fit: fit.value)
    enumerator = MinorantEnumerator(problem, best.coef, BoundOptions(1, stop=stop))
    assert enumerator.explore(problem.root_state, best.value) is None
    assert enumerator.stopped


def test_demands_are_kept_in_a_listing():
    listed = 0
    for seed in range(60):
        rng, problem = awkward(seed)
        if problem.d < 4 or problem.k < 2 or problem.k > problem.d - 2:
            continue
        first, second = rng.permutation(problem.d)[:2].tolist()
        problem = problem.replace(force_in=[first], force_out=[second])
        fits = [fit for columns, fit in best_sets(problem).items() if first in columns and second not in columns]
        best = min(fits, key=lambda fit: fit.value)
        outcome = by_listing(problem, problem.root_state, best.value, best.coef, BoundOptions(1))
        if outcome is not None:
            listed += 1
            assert best.value * (1 - 1e-9) <= outcome.bound <= best.value
            for row in outcome.sets:
                assert first in row
                assert second not in row
    assert listed > 5


def test_there_is_no_minorant_where_the_box_does_not_come_to_an_end(monkeypatch):
    rng = np.random.default_rng(3)
    problem = Problem(rng.normal(size=(30, 8)), rng.normal(size=30), 7, loss="huber", delta=1.0, lam=1e-6)
    best = min(best_sets(problem).values(), key=lambda fit: fit.value)
    assert minorant(problem.objective, best.value, best.coef) is not None
    monkeypatch.setattr(minorants, "ROUNDS", 1)
    assert minorant(problem.objective, best.value, best.coef) is None


def test_the_fit_on_all_columns_is_that_of_the_problem():
    for seed in range(40):
        _, problem = awkward(seed)
        rows = Rows(problem.objective)
        _, value = fit_all(rows, np.zeros(rows.m))
        assert value == pytest.approx(problem.fit(range(problem.d)).value, rel=1e-5)
