"""Regions closed by all that their last columns can hold: both checkers against brute force, and forged claims."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from restricted_files import file_of, first_says, second_says
from samples import sample

from exactsel import Problem, boxed, solve
from exactsel.proofs.evaluating import _Stored
from exactsel.proofs.instance import instance_of, searched_instance_of
from exactsel_certificates import leaf_bounds, leaf_regions
from exactsel_certificates.checking import EXACT_LIMIT
from exactsel_certificates.container import CLOSE, LEAF, LEAVE_OUT, PUT_IN, SPLIT_IN, read_proof
from exactsel_certificates.formula import Instance
from exactsel_certificates.leaf_bounds import Candidates, Step
from exactsel_certificates.leaf_regions import LeafRegions
from exactsel_certificates.regions import RegressionRegions


def problem_of(seed, k=None, lam=None):
    """Real and 0/1 columns of any magnitude, copies, near copies, constant ones; weights, an intercept, scaling."""
    rng = np.random.default_rng([seed, 311])
    n, d = int(rng.integers(4, 30)), int(rng.integers(2, 7))
    A = rng.standard_normal((n, d))
    if rng.random() < 0.3:
        A = np.round(A)
    if rng.random() < 0.4:
        A *= 10.0 ** rng.integers(-6, 7, d)
    for j in range(1, d):
        draw = rng.random()
        if draw < 0.12:
            A[:, j] = A[:, rng.integers(j)] * rng.choice([1.0, -1.0, 3.0, 1.0 + 1e-9])
        elif draw < 0.18:
            A[:, j] = rng.choice([0.0, 1.0])
        elif draw < 0.3:
            A[:, j] = rng.random(n) < 0.3
    noise = rng.choice([0.1, 1.0]) * rng.logistic(size=n)
    score = (A / (1e-300 + np.abs(A).max(axis=0))) @ rng.standard_normal(d) * 4 + noise
    y = np.where(score > np.quantile(score, rng.choice([0.1, 0.5])), 1.0, -1.0)
    y[:2] = 1.0, -1.0
    options = {"fit_intercept": bool(rng.random() < 0.5)}
    if rng.random() < 0.3:
        options["sample_weight"] = rng.choice([0.0, 0.01, 0.5, 1.0, 3.0, 50.0], n)
        options["sample_weight"][:2] = 1.0
    if rng.random() < 0.2:
        options["standardize"] = True
    k = int(rng.integers(1, d + 1)) if k is None else min(k, d)
    lam = float(10.0 ** rng.uniform(-4, 1)) if lam is None else lam
    return Problem.prepared(A, y, k, loss="logistic", lam=lam, **options)


def truth(problem, included=(), free=None):
    """The smallest objective of a model on some columns and any others that fill the places."""
    free = range(problem.d) if free is None else free
    slots = min(problem.k - len(included), len(free))
    return min(problem.fit((*included, *more)).value for more in combinations(free, slots))


def divided(rng, problem):
    """A tree whose regions hold two more columns at most."""
    words = list[int]()

    def grow(included, free):
        slots = min(problem.k - len(included), len(free))
        if slots == 0 or (slots <= 2 and rng.random() < 0.6):
            words.extend([LEAF, CLOSE])
            return
        j = int(rng.choice(free))
        rest = [i for i in free if i != j]
        if slots <= 2 and rng.random() < 0.5:
            words.extend([LEAF, 8 * j + PUT_IN if rng.random() < 0.5 else 8 * j + LEAVE_OUT])
            grow([*included, j] if words[-1] & 7 == PUT_IN else included, rest)
            return
        words.append(8 * j + SPLIT_IN)
        grow([*included, j], rest)
        grow(included, rest)

    grow([], list(range(problem.d)))
    return words


@pytest.mark.parametrize("seed", sample(75, 4000, smoke=5))
def test_both_checkers_establish_the_best_model_and_nothing_above_it(seed):
    problem = problem_of(seed)
    best, about, rng = truth(problem), instance_of(problem), np.random.default_rng(seed)
    # What preparing the data may cost, too, where columns are long and the ridge is small.
    proof = file_of(about, divided(rng, problem), max(0.0, best * (1.0 - 1e-4) - 1e-9))
    assert first_says(about, proof, upper=1e300).verified
    assert second_says(about, proof, upper=1e300) == ""
    level = best * (1.0 + float(rng.choice([1e-6, 0.02, 0.2]))) + 1e-9
    assert not first_says(about, proof, lower=level, upper=1e300).verified
    assert second_says(about, proof, lower=level, upper=1e300) != ""


def leaf(problem, included, level=1e-3):
    """What the first checker makes of a fit on some columns."""
    about = searched_instance_of(problem)
    proof = _Stored(problem.d).as_proof(about, np.zeros(0), level, "")
    last = LeafRegions(RegressionRegions(about, proof, EXACT_LIMIT))
    return about, last, last._leaf(last._fits(np.array([included], dtype=np.intp)), 0)


@pytest.mark.parametrize("seed", sample(100, 6000, smoke=5))
def test_what_columns_take_is_never_less_than_what_their_best_model_takes(seed):
    """Both ways to tell it, of every column and every pair."""
    problem = problem_of(seed, k=4)
    rng = np.random.default_rng(seed)
    included = sorted(rng.permutation(problem.d)[: int(rng.integers(0, max(1, problem.d - 1)))][:2].tolist())
    others = np.array([j for j in range(problem.d) if j not in included], dtype=np.intp)
    with np.errstate(all="ignore"):
        about, _, fit = leaf(problem, included)
        # Where there is an intercept b counts only with the move that makes it sum to zero.
        none = fit.cost_of(Step(*np.zeros((5, 1))), 0.0, 0.0)[0]
        assert not fit.bound - none > problem.fit(included).value * (1.0 + 1e-13)
        candidates, every = Candidates(fit, about.A.T[others], others), np.arange(len(others))
        i, j = np.triu_indices(len(others), 1)
        least = np.array([problem.fit((*included, c)).value for c in others.tolist()])
        rest = fit.costs_without_step(others, 1)
        for costs in (candidates.costs(), candidates.costs_by_rows(every, None)[1], rest):
            assert not np.any(fit.bound - costs > least * (1.0 + 1e-13))
        if i.size:
            pairs = others[i].tolist(), others[j].tolist()
            least = np.array([problem.fit((*included, a, b)).value for a, b in zip(*pairs, strict=True)])
            both = np.maximum(fit.costs_without_step(others, 2)[i], fit.costs_without_step(others, 2)[j])
            for costs in (candidates.costs_of_pairs()[i, j], candidates.costs_by_rows(i, j)[1], both):
                assert not np.any(fit.bound - costs > least * (1.0 + 1e-13))


def test_most_pairs_are_told_without_a_look_at_the_rows():
    """Where no column tells much: what is cost_of beside one fit is near what the best models take."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((1000, 8))
    problem = Problem(A, rng.choice([-1.0, 1.0], 1000), 3, loss="logistic", lam=1.0)
    about, _, fit = leaf(problem, [0])
    others = np.arange(1, 8)
    candidates = Candidates(fit, about.A.T[others], others)
    i, j = np.triu_indices(7, 1)
    pairs = zip((i + 1).tolist(), (j + 1).tolist(), strict=True)
    gained = fit.bound - np.array([problem.fit((0, a, b)).value for a, b in pairs])
    near, nearer = candidates.costs_of_pairs()[i, j], candidates.costs_by_rows(i, j)[1]
    assert np.all((gained > 0) & (near < 1.2 * gained) & (nearer < 1.1 * gained) & (nearer <= near * (1.0 + 1e-12)))


@pytest.mark.parametrize("part", ["cost_of", "costs_without_step", "bound"])
def test_an_error_put_in_on_purpose_is_found(part, monkeypatch):
    """A cost too small, or a bound too large: then levels above the truth are established."""

    def wrong(seed):
        problem = problem_of(seed, lam=1.0)
        best, about = truth(problem), instance_of(problem)
        tree = divided(np.random.default_rng(seed), problem)
        return first_says(about, file_of(about, tree, best * 1.01), upper=1e300)

    if part == "bound":
        original = leaf_bounds.leaf_fit

        def higher(*given):
            made = original(*given)
            made.bound += 0.5
            return made

        monkeypatch.setattr("exactsel_certificates.leaf_regions.leaf_fit", higher)
    else:
        method = getattr(leaf_bounds.LeafFit, part)
        monkeypatch.setattr(leaf_bounds.LeafFit, part, lambda *given: 0.3 * method(*given))
    assert any(wrong(seed).verified for seed in range(40))


def plain(**changes):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 5))
    y = np.where(A[:, 0] + A[:, 1] + rng.logistic(size=30) > 1.0, 1.0, -1.0)
    return replace(Instance(A, y, 2, "logistic", 0.1), **changes)


def test_what_it_says_nothing_of_proves_zero():
    cases = [
        plain(k=3),
        plain(lam=0.0),
        plain(groups=((0, 1), (2,), (3, 4))),
        plain(loss="squared_hinge"),
        plain(loss="huber", delta=1.0),
        plain(loss="quadratic"),
        plain(loss="poisson", y=np.abs(plain().y)),
    ]
    for about in cases:
        proof = file_of(about, [LEAF, CLOSE], 1e-3)
        assert not first_says(about, proof, upper=1e300).verified
        assert second_says(about, proof, upper=1e300) != ""
    for about in (plain(), plain(k=1), plain(k=3, force_in=(4,)), plain(k=4, force_out=(0, 1, 2))):
        proof = file_of(about, [LEAF, CLOSE], 1e-3)
        assert first_says(about, proof, upper=1e300).verified
        assert second_says(about, proof, upper=1e300) == ""


def test_restrictions_only_take_models_away():
    about = plain(box=None)
    problem = Problem(about.A, about.y, 2, loss="logistic", lam=0.1)
    best = truth(problem)
    within = instance_of(boxed(problem, positive=True))
    proof = file_of(within, [LEAF, CLOSE], best * (1.0 - 1e-7))
    assert first_says(within, proof, upper=1e300).verified
    assert second_says(within, proof, upper=1e300) == ""


def test_tables_of_pairs_have_a_limit_and_columns_are_taken_some_at_a_time(monkeypatch):
    about = plain()
    best = truth(Problem(about.A, about.y, 2, loss="logistic", lam=0.1))
    proof = file_of(about, [LEAF, CLOSE], 0.999 * best)
    monkeypatch.setattr(leaf_regions, "MOST_PAIRED", 4)
    verdict = first_says(about, proof, upper=1e300)
    assert not verdict.verified
    assert verdict.unfinished
    monkeypatch.undo()
    monkeypatch.setattr(leaf_regions, "MOST_ENTRIES", 40)
    assert first_says(about, proof, upper=1e300).verified
    one = plain(k=1)
    best = truth(Problem(about.A, about.y, 1, loss="logistic", lam=0.1))
    assert first_says(one, file_of(one, [LEAF, CLOSE], 0.999 * best), upper=1e300).verified
    assert not first_says(one, file_of(one, [LEAF, CLOSE], 1.001 * best), upper=1e300).verified


def limited(seed):
    """Without a ridge, or with long columns: limits on coefficients take its place, or go beside it."""
    rng = np.random.default_rng([seed, 313])
    n, d = 60, int(rng.integers(2, 6))
    A = rng.standard_normal((n, d)) * rng.choice([1.0, 1e-3, 1e5], d)
    if seed % 3 == 0:
        A[:, 0] *= 1e9 / np.linalg.norm(A[:, 0])
    y = np.where(A[:, 0] / np.linalg.norm(A[:, 0]) * np.sqrt(n) + 3.0 * rng.logistic(size=n) > 0, 1.0, -1.0)
    lam = 1.0 if seed % 3 == 0 else 0.0
    options = {"fit_intercept": True} if seed % 2 else {}
    return Problem.prepared(A, y, int(rng.integers(1, 3)), loss="logistic", lam=lam, **options)


def by_leaves(problem, path):
    """A file with limits that closes the whole problem as one leaf, and the least objective."""
    result = solve(problem, proof=path, signals=())
    proof = read_proof(path)
    assert proof.limit_point.size == 1
    # The model shown is the empty one, so that a claim above the truth is not held against a model.
    shown = {"model_index": np.zeros(0, dtype=np.int32), "model_value": np.zeros(0)}
    return replace(proof, tree=np.array([LEAF, CLOSE], dtype=np.int32), **shown), result.upper


@pytest.mark.parametrize("seed", sample(30, 400, smoke=2))
def test_limits_on_coefficients_take_the_place_of_a_ridge(seed, tmp_path):
    problem = limited(seed)
    proof, best = by_leaves(problem, tmp_path / "run.exsel")
    about = instance_of(problem)
    assert best <= truth(problem) * (1.0 + 1e-7)
    assert first_says(about, proof, lower=best * (1.0 - 1e-5), upper=1e300).verified
    assert second_says(about, proof, lower=best * (1.0 - 1e-5), upper=1e300) == ""
    for above in (1e-6, 1e-2):
        assert not first_says(about, proof, lower=best * (1.0 + above), upper=1e300).verified
        assert second_says(about, proof, lower=best * (1.0 + above), upper=1e300) != ""


def test_what_the_added_ridge_costs_is_paid_for(tmp_path, monkeypatch):
    """With so large a ridge that leaving its cost out would prove too much, on labels that columns hardly tell."""
    monkeypatch.setattr(leaf_regions, "SHARE", 100.0)
    files = []
    for seed in range(4):
        rng = np.random.default_rng([seed, 317])
        A = rng.standard_normal((400, 3))
        y = np.where(A[:, 0] + 4.0 * rng.logistic(size=400) > 0, 1.0, -1.0)
        problem = Problem(A, y, 1 + seed % 2, loss="logistic", lam=0.0)
        files.append((instance_of(problem), *by_leaves(problem, tmp_path / "run.exsel")))

    def proven_above():
        return sum(
            first_says(about, proof, lower=best * (1.0 + 1e-5), upper=1e300).verified for about, proof, best in files
        )

    assert proven_above() == 0
    honest = LeafRegions._with_limits
    monkeypatch.setattr(LeafRegions, "_with_limits", lambda self: (honest(self)[0], 0.0))
    assert proven_above() > 0
