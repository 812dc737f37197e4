"""How far a given model is from optimal: every way to state it, and what is said against brute force."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from samples import sample

from exactsel import Claim, Huber, InputError, Problem, Search, certify, load, solve
from exactsel.proofs.instance import instance_of
from exactsel_certificates.given import exactly_above

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
NAMES = ("age", "sex", "bmi", "bp", "s1", "s2")
LOSSES = ("quadratic", "huber", "logistic")


def random_problem(seed, loss="quadratic", n=15, d=6, k=3, lam=0.2, **options) -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    y = A @ rng.standard_normal(d) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(A, y, k, loss=Huber(0.9) if loss == "huber" else loss, lam=lam, **options)


def brute_force(problem) -> float:
    sizes = range(problem.k + 1)
    return min(problem.fit(support).value for size in sizes for support in combinations(range(problem.d), size))


@pytest.fixture(scope="module")
def named():
    return random_problem(1, feature_names=NAMES)


def refuse(match, problem, candidate=None, **options):
    with pytest.raises(InputError, match=match) as caught:
        certify(problem, candidate=candidate, **options)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


class TestWaysToSayIt:
    MASK = np.isin(np.arange(6), (1, 2, 4))

    @pytest.mark.parametrize(
        "support",
        [
            [1, 2, 4], (4, 2, 1), range(1, 3), {4, 1, 2}, np.array([1, 2, 4]), np.array([1, 2, 4], dtype=np.uint8),
            ["sex", "bmi", "s1"], ("s1", "1", 2), np.array(["sex", "bmi", "s1"]), MASK, MASK.tolist(), [1], [],
        ],
    )  # fmt: skip
    def test_supports(self, named, support):
        columns = [1, 2, 4] if len(support) == 3 or len(support) == 6 else [int(j) for j in support]
        fit = named.fit(columns)
        by_keyword = certify(named, support=list(support) if isinstance(support, set) else support)
        ways = [by_keyword] if isinstance(support, set) else [by_keyword, certify(named, candidate=support)]
        for certified in ways:
            assert certified.support == tuple(columns)
            assert certified.refitted
            assert fit.value <= certified.value <= fit.value * (1 + 1e-11)
            assert certified.value >= exactly_above(instance_of(named), fit.coef)
            np.testing.assert_array_equal(certified.coef, fit.coef)

    @pytest.mark.parametrize("form", [list, tuple, np.asarray, np.float32, lambda v: v.astype(object).tolist()])
    def test_coefficients(self, named, form):
        vector = np.array([0.0, 0.5, 0.0, -0.25, 0.0, 0.0])
        for certified in (certify(named, candidate=form(vector)), certify(named, coef=form(vector))):
            assert certified.support == (1, 3)
            assert not certified.refitted
            assert named.objective(vector) <= certified.value <= named.objective(vector) * (1 + 1e-11)
            assert certified.value >= exactly_above(instance_of(named), vector)
            np.testing.assert_array_equal(certified.coef, vector)

    def test_whole_numbers_are_columns_unless_called_coefficients(self, named):
        assert certify(named, candidate=[0, 1, 2]).support == (0, 1, 2)
        assert certify(named, coef=[0, 1, 2, 0, 0, 0]).support == (1, 2)
        assert certify(named, coef=[0, 0, 0, 0, 0, 0]).support == ()

    def test_what_other_libraries_return(self, named):
        """Boolean masks and coefficient arrays, as feature selectors and linear models have them."""
        mask = np.array([True, False, True, False, False, False])
        assert (
            certify(named, candidate=mask).support == certify(named, candidate=np.flatnonzero(mask)).support == (0, 2)
        )
        assert certify(named, candidate=np.where(mask, 1.5, 0.0)).support == (0, 2)


class TestMessages:
    def test_exactly_one_candidate(self, named):
        for options in ({}, {"support": [0], "coef": np.zeros(6)}):
            refuse("^give exactly one candidate, by name: candidate=", named, **options)
        refuse("^give exactly one candidate", named, [0], support=[0])

    @pytest.mark.parametrize("way", ["candidate", "support"])
    @pytest.mark.parametrize(
        ("support", "match"),
        [
            ([0, 6], "^the support names feature 6, but the features are numbered 0 to 5; correct the number"),
            ([-1], "^the support names feature -1"),
            ([1, 1], r"^the support \[1, 1\] names a feature twice; give each feature once"),
            ([0, 1, 2, 3], "^the support has 4 features, but k is 3; give at most k features or raise k"),
            (["bmi", "weight"], "^there is no feature called 'weight'; give a number from 0 to 5 or a known name"),
            (["bmi", "2"], r"^the support \[2, 2\] names a feature twice"),
            ([True, False], "^a mask of 2 entries was given for 6 features; give one per feature"),
            ([True] * 6, "^the support has 6 features, but k is 3"),
        ],
    )
    def test_supports(self, named, way, support, match):
        refuse(match, named, **{way: support})

    @pytest.mark.parametrize("support", [[1.0, 2.0], [0.5], [None], [np.inf], [[1]]])
    def test_columns_are_whole_numbers(self, named, support):
        refuse("^there is no feature called ", named, support=support)

    @pytest.mark.parametrize(
        ("coef", "match"),
        [
            ([1.0, 2.0], "^2 coefficients were given for 6 features; give one per feature"),
            (np.zeros((2, 3)), "^6 coefficients were given for 6 features|^the candidate has 2 dimensions"),
            ([np.nan, 0, 0, 0, 0, 0.0], "^the coefficients hold NaN or infinite values; give finite numbers"),
            ([1.0, 1, 1, 1, 0, 0], "^the support has 4 features, but k is 3; give at most k features or raise k"),
            (np.zeros(6) + 1j, "^the coefficients are not plain numbers|^a candidate of type complex128 is neither"),
            ([{}] * 6, "^the coefficients are not plain numbers|^a candidate of type object is neither"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:Casting complex")
    def test_coefficients(self, named, coef, match):
        for options in ({"candidate": coef}, {"coef": coef}):
            refuse(match, named, **options)

    def test_options_are_those_of_solve(self, named):
        refuse("^eps is -1.0, but", named, [0], eps=-1)
        with pytest.raises(TypeError, match="speed"):
            certify(named, candidate=[0], speed=3)


@pytest.mark.smoke
class TestWhatIsSaid:
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", sample(6, 6))
    def test_against_brute_force(self, loss, seed):
        rng = np.random.default_rng(seed)
        problem = random_problem(seed, loss, n=int(rng.integers(3, 20)))
        best = brute_force(problem)
        noise = 1e-11 * max(1.0, abs(best))
        for size in (0, 1, 3):
            support = rng.choice(6, size, replace=False)
            coef = np.zeros(6)
            coef[support] = rng.standard_normal(size)
            candidates = [{"support": support}, {"coef": coef}]
            for candidate in candidates:
                certified = certify(problem, **candidate, rel_eps=0)
                assert certified.lower - noise <= best <= certified.value + noise
                assert certified.excess - noise <= certified.value - best <= certified.absolute_gap + noise
                assert certified.absolute_gap == certified.value - certified.lower
                assert certified.gap == certified.absolute_gap / certified.value
                assert certified.improved == (certified.value > best + noise)
                assert certified.result.upper == pytest.approx(best, rel=1e-9)
                assert certified.reached == (not certified.improved)
                assert certified.claim is (Claim.BOUNDED if certified.improved else Claim.OPTIMAL)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_the_optimum(self, loss):
        problem = random_problem(3, loss)
        best = solve(problem)
        for certified in (certify(problem, candidate=best.support), certify(problem, candidate=best.coef)):
            assert certified.reached
            assert not certified.improved
            assert certified.value == pytest.approx(best.upper, rel=1e-12)

    def test_a_better_model_is_reported(self):
        problem = load(INSTANCES / "greedy-trap.npz")
        certified = certify(problem, candidate=[2])
        assert certified.improved
        assert certified.result.support == (0, 1)
        assert certified.result.upper == pytest.approx(0.00998751560549)
        assert certified.excess == pytest.approx(certified.value - 0.00998751560549)
        assert "a better model is known, see below" in str(certified)
        assert "support      0, 1" in str(certified)

    def test_two_supports_can_both_be_optimal(self):
        problem = load(INSTANCES / "twins.npz")
        for support in ([0, 1], [0, 3]):
            certified = certify(problem, candidate=support)
            assert certified.claim is Claim.OPTIMAL
            assert not certified.improved

    def test_coefficients_that_are_not_the_best_on_their_support(self):
        problem = random_problem(5)
        best = solve(problem)
        coef = 0.9 * best.coef
        certified = certify(problem, candidate=coef)
        assert certified.improved
        assert problem.objective(coef) <= certified.value <= problem.objective(coef) * (1 + 1e-11)
        assert certified.value > best.upper
        assert certified.excess == pytest.approx(certified.value - best.upper)
        assert certified.claim is Claim.BOUNDED
        assert "coefficients as given" in str(certified)
        assert certify(problem, candidate=certified.support).reached
        assert certify(problem, candidate=coef, eps=2 * certified.absolute_gap).claim is Claim.WITHIN_EPS

    def test_a_candidate_with_fewer_columns_than_k(self):
        problem = random_problem(7, k=3)
        one = min(range(6), key=lambda j: problem.fit([j]).value)
        certified = certify(problem, candidate=[one])
        assert certified.improved
        assert len(certified.result.support) == 3
        assert "compared     with all models of at most k = 3 features (the candidate has 1)" in str(certified)
        assert certify(problem.replace(k=1), candidate=[one]).claim is Claim.OPTIMAL

    def test_the_candidate_starts_the_search(self):
        problem = random_problem(2)
        certified = certify(problem, candidate=[0, 1], node_limit=0, heuristics=())
        assert certified.result.upper == certified.value
        assert certified.result.source == "given"
        assert certified.result.support == (0, 1)

    def test_an_early_end_still_bounds(self):
        problem = random_problem(4, n=30, d=20, k=5)
        best = solve(problem).upper
        for options in ({"node_limit": 1}, {"time_limit": 0}, {"node_limit": 20, "heuristics": ()}):
            certified = certify(problem, candidate=range(5), **options)
            assert certified.lower <= best <= certified.value
            assert certified.claim is Claim.BOUNDED
            assert not certified.reached

    def test_tolerances_speak_of_the_candidate(self):
        problem = random_problem(6)
        value = problem.fit([0, 1, 2]).value
        excess = value - brute_force(problem)
        assert certify(problem, candidate=[0, 1, 2], eps=0.5 * excess).claim is Claim.BOUNDED
        assert certify(problem, candidate=[0, 1, 2], eps=3 * excess).claim is Claim.WITHIN_EPS
        assert certify(problem, candidate=[0, 1, 2], rel_eps=3 * excess / value).claim is Claim.WITHIN_EPS

    @pytest.mark.parametrize("loss", LOSSES)
    def test_json(self, loss):
        problem = random_problem(8, loss)
        certified = certify(problem, candidate=[0, 5])
        plain = json.loads(certified.to_json())
        candidate = plain["candidate"]
        assert candidate["support"] == [0, 5]
        assert candidate["coef"] == certified.coef.tolist()
        for name in ("value", "gap", "absolute_gap", "excess", "improved", "refitted"):
            assert candidate[name] == getattr(certified, name)
        assert candidate["claim"] == certified.claim.value
        assert plain["lower"] == certified.lower
        assert plain["upper"] == certified.result.upper
        assert certified.to_json(indent=2).startswith("{\n  ")

    def test_without_ridge_and_with_dependent_columns(self):
        rng = np.random.default_rng(9)
        A = rng.standard_normal((10, 3))[:, [0, 0, 1, 2, 2, 1]]
        problem = Problem(A, rng.standard_normal(10), 2, lam=0)
        certified = certify(problem, candidate=[0, 1])
        assert certified.value == pytest.approx(problem.fit([0]).value, rel=1e-9)
        assert certified.lower <= brute_force(problem) * (1 + 1e-12)
        assert certified.improved


def test_names_that_do_not_say_which_column_are_refused():
    A, y = np.eye(4), np.arange(1.0, 5.0)
    twice = Problem(A, y, 2, lam=0.1, feature_names=["f", "f", "3", "g"])
    with pytest.raises(InputError, match="2 features are called 'f'; give the feature's number"):
        certify(twice, support=["f"])
    assert certify(twice, support=["3"]).support == (2,)
    assert certify(twice, support=[3]).support == certify(twice, support=["g"]).support == (3,)
    with pytest.raises(InputError, match="line break or control character; rename the feature"):
        Problem(A, y, 2, lam=0.1, feature_names=["a", "b\n", "c", "d"])


@pytest.mark.parametrize("size", [1e-62, 1e-150, 1e-170, 5e-324])
def test_columns_whose_squares_would_underflow_are_refused(size):
    # Taken for empty, such a column made a lower bound of 0.5 where the optimum is 0.
    with pytest.raises(InputError, match=r"column 0 of A holds values of at most .* rescale the column"):
        Problem([[size], [0.0]], [1.0, 0.0], 1, lam=0.0)
    with pytest.raises(InputError, match="too small to compute with; give 0 or at least 1e-60"):
        Problem([[1.0], [0.0]], [1.0, 0.0], 1, lam=size)


def test_a_state_of_another_problem_is_refused():
    one, other = (Problem(np.eye(4), np.arange(1.0, 5.0), k, lam=0.1) for k in (1, 2))
    search = Search(one)
    for _ in search:
        pass
    with pytest.raises(InputError, match="belongs to another problem"):
        Search(other, state=search.state)
