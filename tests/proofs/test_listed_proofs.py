"""Proofs of solving by listing: what is verified is true, what is honest is verified, by both checkers."""

from __future__ import annotations

import contextlib
import re
from fractions import Fraction

import numpy as np
import pytest
from awkward import awkward, best_sets, on_the_level, secant
from listed_proofs import changed, first_says, listed_proof, second_says, with_claim
from make_listed_proofs import FOLDER as KEPT
from make_listed_proofs import KINDS
from samples import sample

import exactsel
from exactsel import Problem
from exactsel.errors import InputError
from exactsel.losses import Huber, Logistic
from exactsel.proofs.instance import instance_of
from exactsel_certificates.container import CLOSE, COUNTED, MINORANT, USE, MalformedError
from exactsel_certificates.formula import objective
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.levels import find_levels
from exactsel_certificates.losses import loss_of
from exactsel_certificates.minorant import curvatures, minorant, values_and_slopes
from exactsel_certificates.minorant_regions import BelowMinorant, MinorantRegions
from exactsel_certificates.points import Points
from exactsel_certificates.standalone import LOSSES, Beyond, Malformed, check
from exactsel_certificates.standalone import estimate as second_estimate
from exactsel_certificates.walk import BY_COUNTING, FREE, IN, OUT, Leaves

TINY = 1e-12


def plain_of(problem):
    """The problem whose regions are bounded."""
    about = instance_of(problem)
    return about.plain if isinstance(about, GivenInstance) else about


# --- the files kept ---


def kept(kind):
    return sorted((KEPT / kind).glob("*.exsel"))


def second_on(file):
    """The word of the second checker on a file about the problem they are all about."""
    about = instance_of(exactsel.load(KEPT / "instance.npz"))
    return check(file.read_bytes(), about.A.tolist(), about.y.tolist(), about.k, about.loss, about.lam, 1.0)


@pytest.mark.smoke
@pytest.mark.parametrize("file", kept("valid"), ids=lambda file: file.stem)
def test_valid_files_verify(file):
    assert exactsel.verify(exactsel.load(KEPT / "instance.npz"), file).verified
    assert second_on(file) == ""


@pytest.mark.smoke
@pytest.mark.parametrize("file", kept("must_fail"), ids=lambda file: file.stem)
def test_files_that_must_fail_are_rejected(file):
    assert not exactsel.verify(exactsel.load(KEPT / "instance.npz"), file).verified
    assert second_on(file) != ""


@pytest.mark.smoke
@pytest.mark.parametrize("file", kept("malformed"), ids=lambda file: file.stem)
def test_malformed_files_are_refused(file):
    with pytest.raises(InputError, match="is no proof"):
        exactsel.verify(exactsel.load(KEPT / "instance.npz"), file)
    with pytest.raises(Malformed):
        second_on(file)


def test_every_file_has_its_reason():
    text = (KEPT / "README.md").read_text(encoding="utf-8")
    for kind in KINDS:
        part = text.split(f"## {kind}\n")[1].split("##")[0]
        assert sorted(re.findall(r"\* `(.*?)`: \S", part)) == [file.stem for file in kept(kind)]
        assert len(kept(kind)) > 1


# --- rows ---


def random_row(rng):
    """A loss, and doubles z, y and an interval around z."""
    kind, y = ("logistic", rng.choice([-1.0, 1.0])) if rng.random() < 0.5 else ("huber", rng.normal())
    loss = Logistic() if kind == "logistic" else Huber(float(rng.choice([0.1, 1.0])))
    z = float(rng.normal() * rng.choice([0.1, 1.0, 5.0]))
    if kind == "huber" and rng.random() < 0.2:
        z = float(y + rng.choice([-1.0, 1.0]) * loss.delta)
    down, up = rng.random(2) * rng.choice([0.0, 1e-9, 1e-3, 1.0, 20.0], size=2)
    return loss, z, float(y), z - down, z + up


@pytest.mark.smoke
def test_curvatures_of_rows_hold_on_their_intervals():
    rng = np.random.default_rng(5)
    for _ in range(1500):
        loss, z, y, low, high = random_row(rng)
        delta = getattr(loss, "delta", np.inf)
        checked = loss_of(loss.name, delta)
        w = float(curvatures(checked, *(np.array([v]) for v in (z, y, low, high)))[0])
        near = z + np.array([-1e-3, 1e-3])
        grid = [t for t in np.concatenate([np.linspace(low, high, 60), near]) if low <= t <= high]
        smallest = float(min((secant(loss, t, z, y) for t in grid if abs(t - z) > 1e-4), default=np.inf))
        bend = type(loss).point_curvature(loss, z, y)
        assert 0.0 <= w <= bend * (1 + TINY)
        assert w <= smallest + 1e-10
        assert w >= 0.97 * min(smallest, bend) - 1e-9 or loss.name == "huber"
        # The second checker's, in fractions, which rounds less.
        exactly = [Fraction(v) for v in (z, low, high, y)]
        row = LOSSES[loss.name](delta).tangent(*exactly)
        assert row is not None
        assert float(row[2]) <= smallest + 1e-10
        assert w <= float(row[2]) + 1e-9
        value, slope = values_and_slopes(checked, np.array([z]), np.array([y]))
        assert float(row[0]) == pytest.approx(value[0], rel=1e-14)
        assert float(row[1]) == pytest.approx(slope[0], rel=1e-14)


# --- the minorant ---


def forged(rng, problem, proof):
    """Widths and points of a proof, some of them changed."""
    n = problem.n
    points = Points(proof)
    models = points.models(proof.minorant_point.astype(np.int64))
    weights = getattr(instance_of(problem), "weights", None)
    widths = proof.minorant_width.astype(float).reshape(2, -1)
    widths = widths if weights is None else widths[:, weights > 0]
    assert widths.shape == (2, n)
    kind = rng.integers(6)
    if kind == 0:
        widths = widths * rng.choice([0.0, 0.3, 0.9, 0.99, 0.999, 1.001, 1.5])
    elif kind == 1:
        widths = widths * np.where(rng.random((2, n)) < 0.2, rng.choice([0.01, 0.5, 0.97, 1.3]), 1.0)
    elif kind == 2:
        models = models * rng.choice([0.5, 0.99, 1.01, -1.0])
    elif kind == 3:
        models = models + rng.choice([1e-9, 1e-3, 0.3]) * rng.normal(size=models.shape)
    elif kind == 4:
        models = models[::-1][: rng.integers(1, 3)]
    return models, widths


def value_of(q, x):
    """q at coefficients (with the intercept last), from what the checker made of it."""
    scaled = q.size * x
    return float(q.constant - q.linear @ scaled + 0.5 * scaled @ q.square @ scaled)


def check_minorant(seed, folder, monkeypatch):
    """Whatever is accepted as a minorant is one on every model met; how many were."""
    rng, problem = awkward(seed)
    proof = None if problem.k == problem.d else listed_proof(problem, folder, monkeypatch)
    if proof is None:
        return 0, 0
    about, fits, accepted = plain_of(problem), best_sets(problem), 0
    best = min(fit.value for fit in fits.values())
    everything = problem.fit(range(problem.d)).coef
    for _ in range(12):
        models, (below, above) = forged(rng, problem, proof)
        level = best * float(rng.choice([1.0, 1.0, 0.9, 1.0 - 1e-10, 1.1, 2.0]))
        q = minorant(about, models, below, above, level)
        if q is None:
            continue
        accepted += 1
        met = [fit.coef for fit in fits.values() if fit.value <= level]
        if problem.objective(everything) < level:
            met += [on_the_level(problem, rng, level, everything) for _ in range(6)]
        for coef in met:
            x = coef
            if about.intercept:
                z = (about.A @ coef)[None]
                x = np.append(coef, find_levels(about.formulas, about.y, about.weights, z)[0])
            true = objective(about, coef)
            assert true > level or value_of(q, x) <= true * (1 + 1e-11)
    return 1, accepted


@pytest.mark.parametrize("chunk", sample(2, 20, smoke=1))
def test_what_is_accepted_as_a_minorant_is_one(chunk, tmp_path, monkeypatch):
    outcomes = [check_minorant(seed, tmp_path, monkeypatch) for seed in range(chunk * 40, chunk * 40 + 40)]
    assert sum(listed for listed, _ in outcomes) > 8
    assert sum(accepted for _, accepted in outcomes) > 30


# --- whole files ---


def optimum(problem):
    """The objective of the best model."""
    return min(fit.value for fit in best_sets(problem).values())


def without_one_set(rng, proof):
    """The file with one set that was listed left to the minorant, or to counting."""
    tree = proof.tree.copy()
    uses = np.flatnonzero((tree & 7 == USE) & np.append(tree[1:] == CLOSE, False))
    at = int(rng.choice(uses))
    if rng.random() < 0.5:
        tree[at] = MINORANT
        return changed(proof, tree=tree)
    # The witness stays what it was, as for everything that is counted.
    return changed(proof, tree=np.concatenate([tree[:at], [COUNTED], tree[at + 2 :]]))


def mutated(rng, proof):
    """The file with something in it changed; most of these are lies."""
    kind = int(rng.integers(9))
    widths, tree, values = proof.minorant_width.astype(float), proof.tree.copy(), proof.point_value.astype(float)
    if kind == 0:
        return changed(proof, minorant_width=widths * rng.choice([0.0, 0.5, 0.99, 0.9995, 1.01, 10.0]))
    if kind == 1:
        widths[rng.random(len(widths)) < 0.1] *= rng.choice([-1.0, 0.0, 0.7, 0.999, 1e30])
        return changed(proof, minorant_width=widths)
    if kind == 2:
        first = int(np.sum(proof.point_size[: proof.minorant_point.size]))
        values[:first] *= rng.choice([0.0, 0.5, 0.999, 1.001, 2.0, 1e200], size=first)
        return changed(proof, point_value=values)
    if kind == 3:
        return changed(proof, point_value=values * rng.choice([0.0, 0.9, 1.0, 1.1], size=len(values)))
    if kind == 4:
        numbers = rng.integers(-1, len(proof.point_size) + 1, size=rng.integers(1, 4))
        return changed(proof, minorant_point=numbers)
    if kind == 5:
        return changed(proof, tree=[[COUNTED], [MINORANT, CLOSE]][rng.integers(2)])
    if kind == 6:
        return without_one_set(rng, proof)
    if kind == 7:
        tree[rng.integers(len(tree))] = 8 * rng.integers(0, 2 * proof.d) + rng.integers(8)
        return changed(proof, tree=tree)
    tree[tree & 7 == USE] = MINORANT
    return changed(proof, tree=tree)


def check_file(seed, folder, monkeypatch, both):
    """An honest file is verified, and no lie is; whether there was one."""
    rng, problem = awkward(seed)
    proof = None if problem.k == problem.d else listed_proof(problem, folder, monkeypatch)
    if proof is None:
        return False
    best = optimum(problem)
    verdict = first_says(problem, proof)
    assert verdict.verified, (seed, verdict.reason)
    assert best * (1 - 1e-8) <= proof.lower <= best * (1 + TINY)
    for number in range(20):
        lie = with_claim(proof if number < 2 else mutated(rng, proof), best * (1 + rng.choice([1e-9, 1e-3, 0.1, 1.0])))
        try:
            assert first_says(problem, lie, exact_limit=1e5).lower <= best * (1 + TINY), seed
        except MalformedError:
            assert number >= 2
    if both and problem.n * problem.d < 80:
        assert second_says(problem, proof) == "", seed
        for _ in range(2):
            lie = with_claim(mutated(rng, proof), best * (1 + rng.choice([1e-9, 1e-2])))
            with contextlib.suppress(Malformed):
                assert second_says(problem, lie) != "", seed
    return True


@pytest.mark.parametrize("chunk", sample(2, 80, smoke=1))
def test_what_is_verified_is_true_and_what_is_honest_is_verified(chunk, tmp_path, monkeypatch):
    seeds = range(chunk * 12, chunk * 12 + 12)
    assert sum(check_file(seed, tmp_path, monkeypatch, both=seed % 4 == 0) for seed in seeds) > 1


def test_a_set_that_is_missing_is_missed(tmp_path, monkeypatch):
    rejected, tried = 0, 0
    for seed in range(60):
        rng, problem = awkward(seed)
        proof = None if problem.k == problem.d else listed_proof(problem, tmp_path, monkeypatch)
        if proof is not None and np.any(proof.tree & 7 == USE):
            tried += 1
            rejected += not first_says(problem, without_one_set(rng, proof)).verified
    # Where no row leaves the quadratic part q is P itself, which has no need of the set.
    assert rejected > 0.7 * tried > 10


def some_proof(folder, monkeypatch, seed=0, **kind):
    """A problem that is solved by listing a few sets, and its proof."""
    rng = np.random.default_rng([seed, 3])
    A = rng.normal(size=(60, 6))
    score = A @ np.array([1.0, 0.8, -0.6, 0.3, 0.2, 0.1]) + rng.logistic(size=60)
    y = np.where(score > 0, 1.0, -1.0) if kind.get("loss") == "logistic" else score
    problem = Problem.prepared(A, y, **{"k": 3, "lam": 0.1, **kind})
    proof = listed_proof(problem, folder, monkeypatch)
    assert proof is not None
    return problem, proof


@pytest.mark.smoke
@pytest.mark.parametrize("kind", [
    {"loss": "huber"}, {"loss": "logistic", "intercept": True}, {"loss": "huber", "force_in": [3], "force_out": [0]},
    {"loss": "logistic", "weights": np.repeat([0.0, 1.0, 2.5], 20), "scale": True, "intercept": True},
])  # fmt: skip
def test_both_checkers_verify_a_listing_and_no_more_than_it_shows(kind, tmp_path, monkeypatch):
    problem, proof = some_proof(tmp_path, monkeypatch, **kind)
    assert proof.minorant_width.size == 2 * 60
    for share, holds in ((1.0, True), (1.0 + 1e-8, False)):
        claim = with_claim(proof, share * proof.lower)
        assert first_says(problem, claim).verified == holds
        assert (second_says(problem, claim) == "") == holds
    assert problem.fit(first_says(problem, proof).support).value == pytest.approx(proof.lower, rel=1e-8)


def test_what_is_no_minorant_proves_nothing(tmp_path, monkeypatch):
    problem, proof = some_proof(tmp_path, monkeypatch, loss="logistic")
    points = len(proof.point_size)
    for numbers in ([-1], [points], [0, points], [2**31 - 1], [*proof.minorant_point, -5]):
        lie = changed(proof, minorant_point=numbers)
        assert first_says(problem, lie).lower == 0.0
        assert "only 0.0 is proven" in second_says(problem, lie)
    for widths in (-proof.minorant_width, 0 * proof.minorant_width, proof.minorant_width * np.float32(1e36)):
        assert first_says(problem, changed(proof, minorant_width=widths)).lower == 0.0
        assert "only 0.0 is proven" in second_says(problem, changed(proof, minorant_width=widths))


def test_a_minorant_is_whole_or_left_out(tmp_path, monkeypatch):
    problem, proof = some_proof(tmp_path, monkeypatch, loss="huber")
    without = changed(proof, minorant_point=[], minorant_width=[])
    assert first_says(problem, without).lower == 0.0
    assert "only 0.0 is proven" in second_says(problem, without)
    short = changed(proof, minorant_width=proof.minorant_width[:-1])
    none, many = changed(proof, minorant_point=[]), changed(proof, minorant_point=[0] * 9)
    infinite = proof.minorant_width.copy()
    infinite[3] = np.inf
    for lie in (short, none, many, changed(proof, minorant_width=infinite)):
        with pytest.raises(MalformedError):
            first_says(problem, lie)
        with pytest.raises(Malformed):
            second_says(problem, lie)


def test_counting_has_a_limit(tmp_path, monkeypatch):
    problem, proof = some_proof(tmp_path, monkeypatch, loss="huber")
    level = proof.lower
    state = np.full((1, 6), FREE, dtype=np.uint8)
    state[0, 4:] = OUT
    leaves = Leaves(state, np.array([BY_COUNTING]))
    low = with_claim(proof, 0.5 * level)
    assert MinorantRegions(plain_of(problem), low, most=1e9).bounds(leaves)[0] == 0.5 * level
    assert MinorantRegions(plain_of(problem), low, most=3).bounds(leaves)[0] == 0.0
    everything = Leaves(np.full((1, 6), FREE, dtype=np.uint8), np.array([BY_COUNTING]))
    assert MinorantRegions(plain_of(problem), proof, most=1e9).bounds(everything)[0] == 0.0
    monkeypatch.setattr(second_estimate, "SMALL", 3.0)
    monkeypatch.setattr(second_estimate, "MARGIN", 0.0)
    with pytest.raises(Beyond, match=r"asks for \S+ operations, but 3 is the most"):
        second_says(problem, changed(low, tree=[COUNTED]))


def test_what_a_minorant_proves_of_a_region_is_so_in_fractions(tmp_path, monkeypatch):
    """Q less its margin against the least value of q, which fractions tell."""
    rng, proven = np.random.default_rng(4), {True: 0, False: 0}
    for seed in range(8):
        kind = {"loss": ["huber", "logistic"][seed % 2], "intercept": seed % 4 > 1}
        problem, proof = some_proof(tmp_path, monkeypatch, seed, **kind)
        about, points = plain_of(problem), Points(proof)
        models, widths = points.models(proof.minorant_point.astype(np.int64)), proof.minorant_width.astype(float)
        for share in (1.0, 0.97, 0.9):
            level = share * proof.lower
            q = minorant(about, models, *widths.reshape(2, -1), level)
            below = BelowMinorant(q, about.intercept, level, 1e9, rng.permutation(6)[:2])
            for _ in range(40):
                used = rng.random((1, 6)) < 0.5
                columns = [*np.flatnonzero(used[0]), *([6] if about.intercept else [])]
                least = Fraction(q.constant) - exact_gain(q.square, q.linear, columns) / 2
                shown = bool(below.on_all(used)[0])
                state = np.where(used, np.uint8(IN), np.uint8(OUT))
                assert bool(below.counted(state, 6)[0]) == shown
                proven[shown] += 1
                assert not shown or least >= Fraction(level)
                assert shown or least <= Fraction(level) * (1 + Fraction(1, 10**9))
    assert min(proven.values()) > 50


def exact_gain(H, h, columns):
    """h' H^-1 h on some columns, by elimination in fractions."""
    rows, total = [[Fraction(H[i, j]) for j in columns] + [Fraction(h[i])] for i in columns], Fraction(0)
    for p, row in enumerate(rows):
        total += row[-1] ** 2 / row[p]
        for other in rows[p + 1 :]:
            factor = other[p] / row[p]
            for c in range(p, len(row)):
                other[c] -= factor * row[c]
    return total
