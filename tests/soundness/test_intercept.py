"""Intercept and row weights with Huber and logistic loss: brute force, proofs, slow twins, what is refused."""

from __future__ import annotations

import json
from fractions import Fraction

import exactly
import numpy as np
import pytest
from free_rows import free_case
from hypothesis import given
from hypothesis import strategies as st
from own_loss import PseudoHuber
from recorded import instance_of, replayed, second_opinion
from samples import examples, many, sample
from scipy.optimize import brentq

from exactsel import Problem, certify, near_optimal, solve, solve_path, verify
from exactsel.bounds.pointwise import bound_at_model
from exactsel.errors import InputError, UnsupportedError
from exactsel.kernels.levels import adjusted_dual, find_level
from exactsel.kernels.node import FREE
from exactsel.losses import Huber, Logistic, SquaredHinge
from exactsel.losses.adjusted import adjusted
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel_certificates import formula
from exactsel_certificates.container import read_proof
from exactsel_certificates.exact import ExactBounds
from exactsel_certificates.rigorous import RigorousBounds, model_objective
from exactsel_dev.reference import bounds

LOSSES = ("huber", "logistic", *(pytest.param(loss, marks=pytest.mark.slow) for loss in ("squared_hinge", "poisson")))


def above(value, optimum):
    """By more than the oracle may be wrong."""
    return value > optimum + 1e-9 * (1.0 + abs(optimum))


def searched(case, **options):
    """A search whose bounds are held against the optimum at every event, and its events."""
    problem, events = case.problem(), []
    search = Search(problem, Settings(**options), signals=(), details=True)
    for event in search:
        events.append(event)
        assert search.state.lower <= case.ceiling, event
        assert search.state.upper == np.inf or not above(case.optimum, search.state.upper), event
    return problem, search.result(events), events, search.state


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", sample(60, 160, smoke=8))
def test_against_brute_force(seed, loss):
    case = free_case(seed, loss)
    rng = np.random.default_rng(seed)
    options = {"batch": int(rng.choice([1, 4, 64])), "tree": str(rng.choice(["binary", "state-space"]))}
    problem, result, events, state = searched(case, rel_eps=1e-9, threads=1, **(options if seed % 2 else {}))
    assert result.reached
    assert result.upper == pytest.approx(case.optimum, rel=1e-7, abs=1e-9)
    report = replayed(problem, result, events, state)
    assert not above(report.proven, case.optimum)
    coef, intercept = problem.as_given(result.prepared.coef)
    assert intercept == 0.0 or case.intercept
    exact = exactly.objective(case.told, coef)
    assert exact * (1 - exactly.CLOSE) <= result.upper <= exact * (1 + Fraction(1, 10**11))
    values = case.rows(case.A @ coef + intercept)[0]
    assert case.w @ values + 0.5 * case.lam * coef @ coef == pytest.approx(result.upper, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", sample(20, 400, smoke=3))
def test_a_loss_of_ones_own(seed):
    """Bounds at every event and the optimum, for a loss declared adjustable, interpreted and compiled alike."""
    case = free_case(seed, "pseudo-huber")
    problem, events = case.problem(), []
    search = Search(problem, Settings(rel_eps=1e-9), signals=())
    for event in search:
        events.append(event)
        assert not above(search.state.lower, case.optimum), event
        assert search.state.upper == np.inf or not above(case.optimum, search.state.upper), event
    result = search.result(events)
    assert result.reached
    assert result.upper == pytest.approx(case.optimum, rel=1e-7, abs=1e-9)
    coef, intercept = problem.as_given(result.prepared.coef)
    assert intercept == 0.0 or case.intercept
    values = case.rows(case.A @ coef + intercept)[0]
    assert case.w @ values + 0.5 * case.lam * coef @ coef == pytest.approx(result.upper, rel=1e-9, abs=1e-9)


def claiming(data, **changes):
    """The same file with other entries in its header."""
    size = int.from_bytes(data[:8], "little")
    header = json.dumps({**json.loads(data[8 : 8 + size]), **changes}).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(500, 500 + many(5, 30)))
def test_proofs(seed, loss, tmp_path):
    case, path = free_case(seed, loss), tmp_path / "run.exsel"
    problem = case.problem()
    result = solve(problem, proof=path, signals=())
    verdict = verify(problem, path)
    assert verdict.verified, verdict.reason
    assert not above(verdict.lower, case.optimum)
    data = path.read_bytes()
    assert second_opinion(problem, data) == ""
    more = verdict.upper + 1e-9 * max(1.0, verdict.upper)
    for changes in ({"lower": more.hex()}, {"upper": (case.optimum * (1 - 1e-6) - 1e-9).hex()}):
        path.write_bytes(claiming(data, **changes))
        assert not verify(problem, path).verified
        assert second_opinion(problem, path.read_bytes())
    others = [case.problem(intercept=not case.intercept), case.problem(weights=2.0 * case.w)]
    for other in others:
        path.write_bytes(data)
        assert not verify(other, path).verified
        proof = read_proof(path)
        if proof.minorant_point.size and other.n != proof.n:
            continue  # widths for another number of rows: no proof file at all
        forged = claiming(
            data, problem_hash=other.hash, intercept=other.intercept or None, weights=other.weights is not None or None,
            n=other.n,
        )  # fmt: skip
        path.write_bytes(forged)
        assert verify(other, path).lower <= solve(other, signals=()).upper * (1 + 1e-12) + 1e-12
    assert result.lower <= verdict.upper


@st.composite
def adjusted_rows(draw):
    """An adjusted loss with predictions and targets."""
    n = draw(st.integers(2, 12))
    numbers = st.floats(-50.0, 50.0)
    rows = st.lists(numbers, min_size=n, max_size=n)
    z = np.array(draw(rows))
    weights = np.array(draw(st.lists(st.floats(1e-3, 1e3), min_size=n, max_size=n)))
    if draw(st.booleans()):
        return adjusted(Huber(draw(st.floats(0.01, 10.0))), weights, True, n), z, np.array(draw(rows))
    labels = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    labels[0], labels[1] = 1.0, -1.0
    return adjusted(draw(st.sampled_from([Logistic(), SquaredHinge()])), weights, True, n), z, labels


class TestKernels:
    @examples(150, 300)
    @given(adjusted_rows())
    def test_level(self, rows):
        loss, z, y = rows
        plain = z.copy()
        values, slopes = np.empty(z.size), np.empty(z.size)
        moved = find_level(loss, z, y, values, slopes)
        np.testing.assert_allclose(z, plain + moved, rtol=0, atol=1e-12 * (1 + abs(moved) + np.abs(plain).max()))
        kind = type(loss)

        def slope(c):
            return sum(
                w * kind.point_derivative(loss, float(p + c), float(t))
                for w, p, t in zip(loss.weights, plain, y, strict=True)
            )

        size = float(loss.weights @ np.abs(slopes))
        # Predictions are known to their last digits only, those before the move as well.
        blur = 1e-14 * float(loss.weights.sum() * (np.abs(plain) + np.abs(z) + np.abs(y)).max())
        assert abs(loss.weights @ slopes) <= 1e-10 * size + blur
        root = brentq(slope, -2000.0, 2000.0, xtol=1e-13)
        at = [sum(
            w * kind.point_value(loss, float(p + c), float(t)) for w, p, t in zip(loss.weights, plain, y, strict=True)
        ) for c in (root, moved)]  # fmt: skip
        assert at[1] <= at[0] * (1 + 1e-12) + 1e-12

    @examples(150, 300)
    @given(adjusted_rows())
    def test_dual_value_is_below_the_exact_one(self, rows):
        """The dual vector sums to zero but for rounding, and its value is that of Fenchel's equality, less rounding."""
        loss, z, y = rows
        b, kind = np.empty(z.size), type(loss)
        base, roundings = adjusted_dual(loss, z, y, b)
        slopes = [Fraction(kind.point_derivative(loss, float(p), float(t))) for p, t in zip(z, y, strict=True)]
        weighted = [Fraction(w) * g for w, g in zip(loss.weights, slopes, strict=True)]
        plus, minus = sum(v for v in weighted if v > 0), -sum(v for v in weighted if v < 0)
        if min(plus, minus) < 1e-190:
            return
        parts = [min(Fraction(1), (minus / plus) if v > 0 else (plus / minus)) for v in weighted]
        exact = [p * v for p, v in zip(parts, weighted, strict=True)]
        assert sum(exact) == 0
        size = sum(abs(v) for v in exact)
        for entry, v in zip(b, exact, strict=True):
            assert abs(Fraction(entry) - v) <= Fraction(roundings, 2**53) * abs(v) + Fraction(1e-300)
        values = [Fraction(kind.point_value(loss, float(p), float(t))) for p, t in zip(z, y, strict=True)]
        value = sum(
            part * Fraction(w) * (l - g * Fraction(p))
            for part, w, l, g, p in zip(parts, loss.weights, values, slopes, z, strict=True)
        )
        spread = sum(Fraction(w) * l for w, l in zip(loss.weights, values, strict=True)) + 200 * size
        assert Fraction(base) <= value
        assert Fraction(base) >= value - Fraction(1, 10**12) * spread

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(700, 740))
    def test_bounds_at_any_model(self, seed, loss):
        """The kernel, the slow formula, the rigorous and the exact one agree, and none is above the optimum."""
        case = free_case(seed, loss)
        problem = case.problem()
        instance, state = instance_of(problem), np.full(problem.d, FREE, dtype=np.int8)
        rigorous, exact, everything = RigorousBounds(instance), ExactBounds(instance), list(range(problem.d))
        rng = np.random.default_rng(seed)
        for scale in (0.0, 0.01, 1.0, 100.0):
            x = scale * rng.standard_normal(problem.d)
            quick = bound_at_model(problem, state, x)
            slow = bounds.bound_at_model(instance, [], everything, x)
            points = rigorous.at_duals(rigorous.gradients(x[None]))
            safe = float(rigorous.bounds(points, np.zeros(1, dtype=np.intp), np.ones((1, problem.d), np.uint8))[0])
            best = float(exact.at_dual([], everything, exact.dual_vector(x)))
            room = 1e-9 * (1 + abs(slow)) + 1e3 * bounds.rounding_at_model(instance, [], everything, x)
            for bound in (quick, slow, safe, best):
                assert not above(bound, case.optimum)
                assert abs(bound - slow) <= room
            assert model_objective(instance, x) >= problem.objective(x) * (1 - 1e-12)
            assert float(exact.objective(x)) == pytest.approx(problem.objective(x), rel=1e-9, abs=1e-12)
            assert formula.objective(instance, x) == pytest.approx(problem.objective(x), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_whole_weights_are_repeated_rows(loss, intercept):
    rng = np.random.default_rng(5)
    A, times = rng.standard_normal((25, 6)) + 1.0, rng.integers(0, 4, 25)
    y = A[:, 0] - A[:, 2] + rng.standard_normal(25)
    y = {"huber": y, "poisson": np.abs(np.round(y))}.get(loss, np.where(y > np.median(y), 1.0, -1.0))
    options = {"loss": loss, "lam": 0.3, "intercept": intercept, "scale": True}
    weighted = Problem.prepared(A, y, 3, weights=times, **options)
    repeated = Problem.prepared(np.repeat(A, times, axis=0), np.repeat(y, times), 3, **options)
    assert weighted.loss_parameters == pytest.approx(repeated.loss_parameters, rel=1e-12)
    first, second = solve(weighted, signals=()), solve(repeated, signals=())
    assert first.upper == pytest.approx(second.upper, rel=1e-9)
    assert first.support == second.support
    for one, other in zip(weighted.as_given(first.coef), repeated.as_given(second.coef), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_door(loss):
    """Certify, a path, all near-optimal models and a copy know the intercept and the weights too."""
    case = free_case(3, loss)
    problem = case.problem(weights=1.0 + np.arange(len(case.y)) % 3, intercept=True)
    result = solve(problem, signals=())
    certified = certify(problem, coef=result.coef, signals=())
    assert certified.value == pytest.approx(result.upper, rel=1e-9)
    assert solve_path(problem, ks=[problem.k], lams=[problem.lam]).results[0].upper == pytest.approx(
        result.upper, rel=1e-6
    )
    assert near_optimal(problem, tau=0.0, signals=()).result.upper == pytest.approx(result.upper, rel=1e-6)
    other = problem.replace(lam=2.0 * problem.lam)
    assert (other.intercept, other.hash != problem.hash) == (True, True)
    np.testing.assert_array_equal(other.weights, problem.weights)
    assert "Ax + c" in problem.objective_text
    assert "weighted" in problem.objective_text


def test_refused():
    rng = np.random.default_rng(1)
    A, labels = rng.standard_normal((8, 3)), np.array([1.0, -1.0] * 4)
    one_class = np.where(labels > 0, 1.0, 0.0)
    with pytest.raises(InputError, match="all labels are 1, so the larger the intercept the better"):
        Problem.prepared(A, np.ones(8), 1, loss="logistic", lam=1.0, intercept=True)
    with pytest.raises(InputError, match="all labels are 1, so"):
        Problem.prepared(A, labels, 1, loss="logistic", lam=1.0, intercept=True, weights=one_class)

    class Undeclared(PseudoHuber):
        """A loss of which nobody has said that no row is below zero."""

    with pytest.raises(UnsupportedError, match=r"^pseudo-huber loss is not declared to take an unpenalised intercept;"):
        Problem.prepared(A, labels, 1, loss=Undeclared(1.0), lam=1.0, intercept=True)
    with pytest.raises(UnsupportedError, match=r"^pseudo-huber loss is not declared to take row weights;"):
        Problem.prepared(A, labels, 1, loss=Undeclared(1.0), lam=1.0, weights=np.ones(8))
    with pytest.raises(InputError, match=r"the weights range from 1e-40 to 1"):
        Problem.prepared(A, labels, 1, loss="logistic", lam=1.0, weights=[1e-40] + [1.0] * 7)
    problem = Problem.prepared(A, labels, 1, loss="logistic", lam=1.0, intercept=True)
    for bound in ("pdal", "supergradient", "cvxpy"):
        with pytest.raises(UnsupportedError, match=f"the bound '{bound}' knows neither row weights nor an intercept"):
            solve(problem, bound=bound, signals=())
    with pytest.raises(UnsupportedError, match="dual iterative hard thresholding knows neither"):
        solve(problem, heuristics="dual-iht", signals=())
    with pytest.raises(UnsupportedError, match="prepared for logistic loss, but the loss is now huber"):
        problem.replace(loss="huber", delta=1.0)


def test_command_line(tmp_path, monkeypatch):
    """A proof is about the intercept and the weights, whether they come from options or from the instance file."""
    from click.testing import CliRunner

    from exactsel.cli.main import cli

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    A = rng.standard_normal((30, 5))
    np.savez("a.npz", A=A, y=A[:, 0] + rng.standard_normal(30) + 4.0, k=2, lam=1.0, loss="huber", delta=1.0)
    np.savetxt("w.txt", rng.integers(0, 3, 30))
    options = ["--intercept", "--weights", "w.txt"]

    def run(*arguments):
        return CliRunner().invoke(cli, arguments, standalone_mode=False, catch_exceptions=False)

    solved = run("solve", "a.npz", *options, "--proof", "run.exsel", "--quiet")
    assert solved.return_value == 0
    assert "intercept" in solved.output
    assert run("verify", "run.exsel", "a.npz", *options).return_value == 0
    assert run("verify", "run.exsel", "a.npz", "--intercept").return_value == 3
    run("data", "convert", "a.npz", "b.npz", *options)
    assert run("verify", "run.exsel", "b.npz").return_value == 0
    assert "held-out" in run("path", "b.npz", "--ks", "1,2", "--cv", "3").output
