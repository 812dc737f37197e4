"""Searches of sparse data that are broken off and go on: the same tree, the same proof; traces of their tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse
from sparse_cases import on_demand

from exactsel import InputError, Problem, boxed, solve, verify
from exactsel.solving import screening
from exactsel_certificates.container import read_proof

__all__ = ["on_demand"]  # a fixture

PLAIN = {"signals": (), "batch": 1, "heuristics": ()}


def noisy(loss="quadratic", lam=0.0, seed=0, size=None):
    """A problem whose tables ask for many nodes; within limits of that size, where one is given."""
    rng = np.random.default_rng(seed)
    A = (rng.random((60, 24)) < 0.15) * 1.0
    y = A[:, 3] - A[:, 7] + A[:, 11] + 1.5 * rng.standard_normal(60)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    problem = Problem.prepared(scipy.sparse.csc_matrix(A), y, 4, loss=loss, lam=lam)
    return problem if size is None else boxed(problem, max_coef=size)


@pytest.mark.parametrize("first", [3, 250])
@pytest.mark.parametrize(("loss", "lam"), [("quadratic", 1.0), ("logistic", 0.5)])
def test_a_search_that_goes_on_has_the_same_tree_and_proof(loss, lam, first, on_demand, tmp_path, monkeypatch):
    monkeypatch.setattr(screening, "FIRST_COLUMNS", first)
    problem = noisy(loss, lam)
    whole = solve(problem, proof=tmp_path / "whole.exsel", checkpoint=tmp_path / "whole.ckpt", **PLAIN)
    saved, proof = tmp_path / "run.ckpt", tmp_path / "run.exsel"
    result = solve(problem, proof=proof, checkpoint=saved, checkpoint_every=0.0, node_limit=2, **PLAIN)
    for limit in (5, 9, None):
        assert result.lower <= whole.upper
        result = solve(noisy(loss, lam), resume=saved, node_limit=limit, signals=())
    assert result.tree_hash == whole.tree_hash
    assert (result.support, result.upper, result.nodes) == (whole.support, whole.upper, whole.nodes)
    assert result.lower == pytest.approx(whole.lower, rel=1e-9)
    assert verify(problem, proof).verified
    assert np.array_equal(read_proof(proof).tree, read_proof(tmp_path / "whole.exsel").tree)


def test_a_search_within_limits_goes_on_to_the_same_proven_model(on_demand, tmp_path):
    problem, saved, proof = noisy(size=0.4), tmp_path / "run.ckpt", tmp_path / "run.exsel"
    whole = solve(problem, **PLAIN)
    result = solve(problem, proof=proof, checkpoint=saved, checkpoint_every=0.0, node_limit=2, **PLAIN)
    assert not result.reached
    result = solve(noisy(size=0.4), resume=saved, node_limit=None, signals=())
    assert (result.support, result.upper) == (whole.support, whole.upper)
    assert result.lower == pytest.approx(whole.lower, rel=1e-6)
    assert verify(problem, proof).verified


def test_a_checkpoint_is_about_its_problem(on_demand, tmp_path):
    saved = tmp_path / "run.ckpt"
    solve(noisy(lam=1.0), checkpoint=saved, node_limit=1, **PLAIN)
    with pytest.raises(InputError, match=r"another problem; .*\.$"):
        solve(noisy(lam=2.0), resume=saved, signals=())
    with pytest.raises(InputError, match=r"another problem; .*\.$"):
        solve(noisy(lam=1.0, size=0.3), resume=saved, signals=())
    with pytest.raises(InputError, match=r"models already; .*\.$"):
        solve(noisy(lam=1.0), resume=saved, start=[1], signals=())


def test_a_trace_names_the_columns_of_all(on_demand, tmp_path, monkeypatch):
    monkeypatch.setattr(screening, "FIRST_COLUMNS", 5)
    trace = tmp_path / "run.jsonl"
    result = solve(noisy(lam=1.0), trace=trace, **PLAIN)
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [lines[0]["event"], lines[-1]["event"]] == ["run", "result"]
    found = [line for line in lines if line["event"] == "incumbent"][-1]
    assert [int(name) for name in found["names"]] == [*result.support]
