"""What is proven, in one sentence."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactsel import ColumnSubsetProblem, GroupedProblem, Problem, certify, solve
from exactsel.solving.outcome import Claim, claim_sentence, per_cent

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
    (model,) = (each for each in certify(Problem(A, y, 1), candidate=[0], node_limit=0, heuristics=())._lines() if "claim" in each)
    assert "Not proven optimal: no model with at most 1 feature has" in model
    assert wanting.result.claim_text in str(wanting)
    assert "that meets the constraints" in solve(A, y, 2, force_in=[4]).claim_text
