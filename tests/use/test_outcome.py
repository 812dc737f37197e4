"""What is proven, in one sentence."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, best_model, certify, near_optimal, solve, solve_path
from exactsel.solving.outcome import Claim, claim_sentence, per_cent
from exactsel.to_plain import counted

PLAIN = {"problem": "regression", "k": 5}


@pytest.mark.parametrize(
    ("claim", "bounds", "problem", "said"),
    [
        (Claim.OPTIMAL, (2.0, 2.0 - 1e-9), PLAIN,
         "Optimal: no model with at most 5 features has a lower objective (relative tolerance 1e-9)."),
        (Claim.OPTIMAL, (1e-6, 1e-6 - 1e-13), PLAIN, "(relative tolerance 1e-6: rounding leaves no less)."),
        (Claim.OPTIMAL, (1e-22, 0.0), PLAIN, "lower objective (it fits as well as rounding can tell)."),
        (Claim.WITHIN_EPS, (1e-9, 1e-9 - 1.05e-13), PLAIN,
         "Optimal as far as rounding tells: no model with at most 5 features has an objective lower by more than "
         "1.1e-13 times the empty model's."),
        (Claim.OPTIMAL, (1.0, 1.0), {**PLAIN, "k": 1, "force_in": (0,)},
         "Optimal: no model with at most 1 feature that meets the constraints has a lower objective"),
        (Claim.OPTIMAL, (1.0, 1.0), {**PLAIN, "unit": "group"}, "no model with at most 5 groups has"),
        (Claim.OPTIMAL, (1.0, 1.0), {"problem": "css", "k": 2}, "no choice of at most 2 columns has a lower"),
        (Claim.WITHIN_EPS, (1.0, 1.0 - 1e-4), PLAIN,
         "Optimal within the tolerance: no model with at most 5 features has an objective lower by more than 0.01 %."),
        (Claim.BOUNDED, (2.0, 1.5), PLAIN,
         "Not proven optimal: no model with at most 5 features has an objective lower by more than 25 %."),
        (Claim.BOUNDED, (2.0, 0.0), PLAIN, "no model with at most 5 features has an objective below 0."),
        (Claim.HEURISTIC_ONLY, (2.0, -np.inf), PLAIN, "Nothing is proven: no lower bound is known."),
    ],
)  # fmt: skip
def test_the_sentence(claim, bounds, problem, said):
    assert said in claim_sentence(claim, *bounds, 1.0, problem)


def test_a_scope_is_part_of_it():
    said = claim_sentence(Claim.OPTIMAL, 1.0, 1.0, 1.0, PLAIN, "models with |x_j| <= 9")
    assert said.startswith("Optimal among models with |x_j| <= 9: no model")


@given(st.floats(1e-12, 1.0))
def test_shares_are_rounded_up(share):
    said = Decimal(per_cent(share).removesuffix(" %"))
    assert Decimal(100.0 * share) <= said * (1 + Decimal(2) ** -52)
    assert said <= Decimal(100.0 * share) * Decimal("1.0100001")


def test_results_say_it():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(30, 5))
    y = A[:, 0] + rng.normal(size=30)
    assert "no model with at most 2 features has a lower" in str(solve(A, y, 2))
    assert "at most 1 group has" in solve(GroupedProblem(Problem(A, y, 1), {"g": [0, 1]})).claim_text
    assert "no choice of at most 2 columns has" in solve(ColumnSubsetProblem(A, 2)).claim_text
    wanting = certify(Problem(A, y, 1), candidate=[4])
    assert "Not optimal, but no model with at most 1 feature has an objective lower by more than" in str(wanting)
    best = certify(Problem(A, y, 1), support=solve(Problem(A, y, 1)).support, node_limit=0, heuristics=())
    assert "Not proven optimal: no model with at most 1 feature has" in best.claim_text
    assert wanting.result.claim_text in str(wanting)
    assert "that meets the constraints" in solve(A, y, 2, force_in=[4]).claim_text


def test_counts_of_one_are_singular():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(30, 3))
    problem = Problem(A, A[:, 0] + 0.3 * rng.normal(size=30), 1)
    result, path = solve(problem), solve_path(problem, ks=[1])
    near, best = near_optimal(problem, tau=1e-6), best_model(problem, k_max=1)
    assert result.nodes == len(near.models) == 1
    assert "work         1 node, " in str(result)
    assert str(near).startswith("1 set of 1 feature is within")
    assert repr(path) == "<SolutionPath of 1 problem, all proven>"
    assert best.listing.startswith("1 model; ") or best.listing.endswith(": 1 model found so far")
    assert "of at most k = 1 feature (the candidate has 1)" in str(certify(problem, support=[0]))
    assert [counted(number, "node") for number in (0, 1, 2, 1204)] == ["0 nodes", "1 node", "2 nodes", "1,204 nodes"]


def test_a_criterion_says_its_gap_rounded_up():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(30, 12))
    models = best_model(A, A[:, 0] + rng.normal(size=30), k_max=6, node_limit=1, subtrees=False)
    said = re.fullmatch(
        r"Not proven optimal: no model with 0 to 6 features has a BIC lower by more than (\S+)\.", models.claim_text
    )
    assert models.absolute_gap <= float(said[1]) <= 1.01 * models.absolute_gap
