"""Lists cut by more minorants, against brute force, with cuts forced on whether they pay or not."""

import math

import numpy as np
import pytest
from awkward import awkward, best_sets
from samples import many

from exactsel.bounds.base import BoundOptions
from exactsel.bounds.minorant import minorant
from exactsel.enumeration import below_minorant, minorant_cuts
from exactsel.enumeration.below_minorant import by_listing, listable, listed_sets
from exactsel.enumeration.minorant_cuts import _Cuts, shortened
from exactsel.problem.rows import Rows, Unusable

NEVER = np.zeros(1, dtype=np.bool_)
DEAR = 1e9
"""Work of a fit, with which every cut pays."""


def all_sets(problem):
    """All sets of k columns, one a row."""
    return np.array(list(best_sets(problem)), dtype=np.int64)


def shorten(problem, upper, best, options=None, **more):
    """What more minorants leave of all sets of k columns; None where there is no first one."""
    below = minorant(problem.objective, upper, best.coef)
    if below is None:
        return None
    return shortened(problem, below, all_sets(problem), upper, DEAR, 10.0, 1e15, options or BoundOptions(1), **more)


def check_cuts(seed):
    """Hold the sets that are dropped, and those fitted on the way, against the best model of each; how many are."""
    rng, problem = awkward(seed)
    if not listable(problem) or problem.k == problem.d:
        return 0, 0, False
    fits = best_sets(problem)
    known = sorted(fits.values(), key=lambda fit: fit.value)
    start = known[int(rng.integers(0, min(3, len(known))))]
    upper = start.value * float(rng.choice([1.0, 1.0, 1.02, 1.3]))
    left = shorten(problem, upper, start, any_better=bool(rng.random() < 0.2))
    if left is None:
        return 0, 0, False
    kept = {tuple(sorted(row.tolist())) for row in left.sets}
    gone = [fit for columns, fit in fits.items() if columns not in kept]
    assert left.upper == (upper if left.best is None else left.best.value)
    assert left.upper <= upper
    lowest = min((fit.value for fit in gone), default=math.inf)
    assert lowest >= min(left.upper, left.bound) * (1.0 - 1e-9)
    assert left.bound >= known[0].value * (1.0 - 1e-6)
    # A set that holds a better model than was known is still there, or it was fitted.
    assert left.upper <= lowest * (1.0 + 1e-9)
    for row, model in zip(left.sets, left.models, strict=True):
        coef = np.zeros(problem.d)
        coef[row] = model
        assert problem.objective(coef) >= fits[tuple(sorted(row.tolist()))].value * (1.0 - 1e-9)
    return len(gone), len(kept), left.best is not None


@pytest.mark.smoke
def test_sets_that_cuts_drop_hold_no_better_model():
    gone, kept, better = zip(*(check_cuts(seed) for seed in range(many(48, 150))), strict=True)
    assert sum(gone) > many(75, 300)
    assert sum(kept) > many(5, 10)
    assert sum(better) > many(2, 5)


@pytest.mark.long
def test_sets_that_cuts_drop_hold_no_better_model_of_thousands():
    assert sum(check_cuts(seed)[0] for seed in range(150, 5000)) > 8_000


def check_every(seed):
    """Hold what is left of a list up to a level against every set; how many sets are gone, and how many kept."""
    rng, problem = awkward(seed)
    if not listable(problem) or problem.k == problem.d:
        return 0, 0
    fits = best_sets(problem)
    known = sorted(fits.values(), key=lambda fit: fit.value)
    upper = known[int(rng.integers(0, len(known)))].value * float(rng.choice([1.0, 1.02, 1.3]))
    left = shorten(problem, upper, known[0], every=True)
    if left is None:
        return 0, 0
    assert (left.upper, left.best) == (upper, None)
    kept = [tuple(sorted(row.tolist())) for row in left.sets]
    assert len(kept) == len({*kept})
    assert all(columns in kept for columns, fit in fits.items() if fit.value < upper * (1.0 - 1e-9))
    return len(fits) - len(kept), len(kept)


def test_every_set_that_comes_to_a_level_stays_where_all_are_asked_for():
    gone, kept = zip(*(check_every(seed) for seed in range(many(48, 150))), strict=True)
    assert sum(gone) > many(25, 100)
    assert sum(kept) > many(25, 100)


@pytest.mark.long
def test_every_set_that_comes_to_a_level_stays_in_thousands():
    assert sum(check_every(seed)[0] for seed in range(150, 5000)) > 3_000


def test_fits_follow_where_the_mean_drops_nothing(monkeypatch):
    monkeypatch.setattr(minorant_cuts, "MANY", 0.0)
    assert sum(check_cuts(seed)[0] for seed in range(many(48, 150))) > many(90, 300)


def check_closed(seed):
    """Hold the sets that one curvature closes against the best model of each: closed, above U, left though above."""
    rng, problem = awkward(seed)
    if problem.loss.name != "logistic" or not listable(problem) or problem.k == problem.d:
        return 0, 0
    fits = best_sets(problem)
    known = sorted(fits.values(), key=lambda fit: fit.value)
    start = known[int(rng.integers(0, min(3, len(known))))]
    upper = start.value * float(rng.choice([1.0, 1.0, 1.02, 1.3]))
    below = minorant(problem.objective, upper, start.coef)
    if below is None:
        return 0, 0
    cuts = _Cuts(problem, all_sets(problem), upper, BoundOptions(1))
    if rng.random() < 0.5:
        cuts.models[:] = rng.normal(size=cuts.models.shape) * 10.0 ** rng.uniform(-2, 2)
    try:
        with np.errstate(all="ignore"), Rows(problem.objective) as rows:
            cuts.close(rows, below.low, below.high)
    except (Unusable, np.linalg.LinAlgError):
        return 0, 0
    left = {tuple(sorted(row[row >= 0].tolist())) for row in cuts.sets}
    for columns, fit in fits.items():
        if fit.value < upper * (1.0 - 1e-11):
            assert columns in left
    above = sum(fit.value > upper * (1.0 + 1e-6) for fit in fits.values())
    return len(fits) - len(left), above


@pytest.mark.smoke
def test_sets_that_one_curvature_closes_are_above():
    closed, above = np.sum([check_closed(seed) for seed in range(200)], axis=0)
    assert 0.9 * above < closed
    assert closed > 150


@pytest.mark.long
def test_sets_that_one_curvature_closes_are_above_in_thousands_of_problems():
    closed, _ = np.sum([check_closed(seed) for seed in range(200, 5000)], axis=0)
    assert closed > 4000


def check_whole(seed):
    """Hold a listing that is cut against brute force; how it ended."""
    rng, problem = awkward(seed)
    if not listable(problem) or problem.k == problem.d:
        return "none"
    fits = sorted(best_sets(problem).values(), key=lambda fit: fit.value)
    best, start = fits[0], fits[int(rng.integers(0, min(4, len(fits))))]
    outcome = by_listing(problem, problem.root_state, start.value, start.coef, BoundOptions(1))
    if outcome is None:
        return "none"
    if outcome.bound == -math.inf:
        assert outcome.fit is not None
        assert best.value * (1.0 - 1e-9) <= outcome.fit.value < start.value
        return "better"
    assert best.value * (1.0 - 1e-9) <= outcome.bound <= best.value * (1.0 + 1e-12)
    found = start if outcome.fit is None else outcome.fit
    assert found.value == pytest.approx(best.value, rel=1e-9)
    return "closed"


@pytest.fixture
def cuts_always(monkeypatch):
    monkeypatch.setattr(below_minorant, "FIT_STEPS", 1e6)
    monkeypatch.setattr(below_minorant, "SHORTEST", 1000)


@pytest.mark.usefixtures("cuts_always")
def test_a_listing_with_cuts_finds_the_optimum_and_its_bound():
    assert [check_whole(seed) for seed in range(many(60, 200))].count("closed") > many(15, 50)


@pytest.mark.long
@pytest.mark.usefixtures("cuts_always")
def test_a_listing_with_cuts_finds_the_optimum_and_its_bound_thousands_of_times():
    assert [check_whole(seed) for seed in range(200, 5000)].count("closed") > 1000


@pytest.mark.parametrize("longest", [1, 2, 4])
@pytest.mark.usefixtures("cuts_always")
def test_a_list_that_is_too_long_is_made_again_from_a_better_model(longest, monkeypatch):
    monkeypatch.setattr(below_minorant, "MOST_LISTED", longest)
    monkeypatch.setattr(below_minorant, "FEW_LISTED", 4)
    ends = [check_whole(seed) for seed in range(250 if longest == 4 else many(60, 250))]
    assert ends.count("closed") > many(4, 10)
    assert ends.count("better") > 0


def test_cuts_that_are_told_to_stop_claim_nothing():
    _, problem = awkward(3)
    best = min(best_sets(problem).values(), key=lambda fit: fit.value)
    below = minorant(problem.objective, best.value * 1.5, best.coef)
    assert below is not None
    stop = np.ones(1, dtype=np.bool_)
    sets, options = all_sets(problem), BoundOptions(1, stop=stop)
    assert shortened(problem, below, sets, best.value * 1.5, DEAR, 10.0, 1e15, options) is None
    listed = listed_sets(below, problem.root_state, problem.k, NEVER, 1000).sets
    assert listed is not None
