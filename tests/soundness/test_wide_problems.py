"""Wide problems of awkward columns against every set of columns; the searches are run with proofs (conftest.py)."""

from __future__ import annotations

import pytest
from samples import many
from wide_problems import KINDS, optimum, wide_problem

from exactsel import solve
from exactsel.bounds import working_set
from exactsel.enumeration import minors
from exactsel.enumeration.strong import StrongColumns
from exactsel.solving import choose

BLOCK = 500


@pytest.fixture(params=["as they are", "as if there were thousands"])
def columns_are_many(request, monkeypatch):
    """What is chosen for many columns only is chosen for few."""
    if request.param == "as they are":
        return
    for module, name, value in (
        (working_set, "AT_ONCE", 4), (working_set, "FIRST", 2), (working_set, "PER_PLACE", 1), (minors, "FEWEST", 5),
        (minors, "FEWEST_BLIND", 5), (choose, "FEWEST", 5),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(StrongColumns, "is_quick", staticmethod(lambda problem: True))


def blocks():
    """Twenty blocks, of which the first is tried in part each time."""
    return [0, *(pytest.param(block, marks=pytest.mark.slow) for block in range(1, 20))]


@pytest.mark.parametrize("block", blocks())
def test_wide_problems_are_solved(columns_are_many, block):
    closed, kinds = 0, set()
    for seed in range(BLOCK * block, BLOCK * block + many(24, BLOCK)):
        problem, kind = wide_problem(seed)
        best, null = optimum(problem), problem.null_objective
        result = solve(problem, threads=1)
        assert result.lower <= best * (1.0 + 1e-9) + 1e-11 * null, seed
        assert result.upper >= best * (1.0 - 1e-9) - 1e-11 * null, seed
        if result.claim in ("optimal", "within_eps") and not result.valid_for:
            assert result.upper <= best * (1.0 + 1e-5) + 1e-9 * null, seed
            closed += 1
            kinds.add(kind)
    assert kinds == {*KINDS}
    assert closed > many(12, 250)
