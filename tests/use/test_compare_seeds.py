"""Comparisons with several seeds, and with a bound of one's choice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

import numpy as np
import pytest

from exactsel.errors import InputError
from exactsel.problem.regression import Problem
from exactsel.report.comparison_page import comparison_page
from exactsel.solving import fallback
from exactsel.start.heuristic import Proposal
from exactsel.studies.compare import compare
from exactsel.studies.comparison_table import comparison_table


@dataclass(frozen=True)
class Drawn:
    """k columns by chance: now and then fewer, so that seeds differ."""

    name: ClassVar[str] = "drawn"

    def run(self, problem, context):
        return Proposal.of(context.rng().choice(problem.d, size=problem.k, replace=False), 1)


@dataclass(frozen=True)
class First:
    """The first k columns, and how often it was asked."""

    calls: ClassVar[list[int]] = []
    name: ClassVar[str] = "first"

    def run(self, problem, context):
        self.calls.append(1)
        return Proposal.of(range(problem.k), 1)


def make_problem():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, 8))
    return Problem(A, A[:, 5] - A[:, 6] + 0.3 * rng.normal(size=40), 2, lam=0.1)


def test_random_methods_are_run_with_each_seed_and_others_once():
    problem = make_problem()
    First.calls.clear()
    comparison = compare(problem, methods=[Drawn(), First()], seed=3, seeds=5)
    drawn, first = sorted(comparison.rows, key=lambda row: row.method)
    assert len(First.calls) == 1
    assert first.seeds == first.values == ()
    assert drawn.seeds == (3, 4, 5, 6, 7)
    alone = [compare(problem, methods=[Drawn()], seed=seed).rows[0] for seed in drawn.seeds]
    assert drawn.values == tuple(row.value for row in alone)
    assert len(set(drawn.values)) > 1
    assert drawn.value == min(drawn.values)
    assert drawn.support in {row.support for row in alone if row.value == drawn.value}
    assert drawn.spread == (min(drawn.values), median(drawn.values), max(drawn.values))
    assert first.spread == (first.value,) * 3


def test_the_spread_is_shown():
    comparison = compare(make_problem(), methods=[Drawn(), First()], seeds=4)
    drawn = next(row for row in comparison.rows if row.values)
    text = comparison_table(comparison)
    assert str(comparison) == text
    assert repr(comparison).startswith("<Comparison method")
    assert "over seeds" in text
    for value in drawn.spread:
        assert f"{value:.10g}" in text
    assert "Over seeds" in comparison_page(comparison)
    plain = {row["method"]: row for row in json.loads(comparison.to_json())["methods"]}
    assert plain["drawn"]["seeds"] == [0, 1, 2, 3]
    assert plain["drawn"]["objectives"] == list(drawn.values)
    assert [plain["drawn"][name] for name in ("min", "median", "max")] == list(drawn.spread)
    assert plain["first"]["seeds"] == []
    assert "median" not in plain["first"]


def test_one_seed_looks_as_ever():
    comparison = compare(make_problem(), methods=[Drawn()])
    assert comparison.rows[0].values == ()
    assert "over seeds" not in comparison_table(comparison)
    assert "Over seeds" not in comparison_page(comparison)


@pytest.mark.parametrize("seeds", [0, -2, True])
def test_seeds_are_at_least_one(seeds):
    with pytest.raises(InputError, match="every method is run at least once"):
        compare(make_problem(), methods=[First()], seeds=seeds)


def test_the_bound_of_the_search_can_be_chosen():
    assert compare(make_problem(), methods=[First()], bound="apg").result.settings["bound"] == "apg"
    assert compare(make_problem(), methods=[First()], bound="fit").result.settings["bound"] == "fit"


def test_gaps_are_certified_where_the_search_has_no_time(monkeypatch):
    """The time is up before the root is bounded: the bound at hand stands in for it."""
    monkeypatch.setattr(fallback, "KEPT", 1.0)
    problem = make_problem()
    result = compare(problem, methods=[First()], time_limit=0.5).result
    assert result.nodes == 0
    best = compare(problem, methods=[First()]).result
    assert 0.0 < result.lower <= best.upper * (1 + 1e-12)
