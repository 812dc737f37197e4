"""What searches of free problems write down, in proofs of problems with restrictions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from listed_proofs import listed_proof
from recorded import record_of
from restricted_files import KINDS, admissible_sets, first_says, restriction, second_says, smallest

from exactsel import GroupedProblem, Problem, boxed, solve
from exactsel.closers.trial import CheaperFirst
from exactsel.enumeration import minors
from exactsel.proofs.instance import instance_of
from exactsel.proofs.recheck import Recheck
from exactsel.proofs.writer import ProofWriter
from exactsel.search.events import Discarded, SubtreeClosed
from exactsel.solving import choose
from exactsel.solving.settings import Settings
from exactsel.solving.solver import Search
from exactsel_certificates.checking import problem_hash
from exactsel_certificates.container import CLOSE, COUNTED, MINORANT, read_proof
from exactsel_dev.reference.replay import ReplayError, Walked, replay

GROUPS = {"groups": ["a", "a", "a"], "per_group": 1}
PARENTS = {"hierarchy": {1: [0], 3: [2]}}


def data(seed, n, d, loss="quadratic", noise=3.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    z = A[:, :5] @ [1.0, -1.0, 0.5, 0.8, 0.3] + noise * rng.standard_normal(n)
    return A, np.where(z > 0, 1.0, -1.0) if loss == "logistic" else z


def restricted(kind, A, y, **about):
    """The same problem with signs, limits on groups or a hierarchy."""
    labels = {**GROUPS, "groups": GROUPS["groups"] + [None] * (A.shape[1] - 3)}
    asked = {"limits": labels, "strong": PARENTS, "weak": PARENTS | {"hierarchy_kind": "weak"}}.get(kind.split()[0], {})
    problem = made_of(A, y, **about, **asked)
    return boxed(problem, "all") if "signs" in kind else problem


def made_of(A, y, weighted=False, intercept=False, paired=False, **about):
    """A problem of the columns, or of pairs of them, with row weights and an intercept or without."""
    if paired:
        related = {name: about.pop(name) for name in ("hierarchy", "hierarchy_kind") if name in about}
        return GroupedProblem(Problem(A, y, **about), [str(j // 2) for j in range(A.shape[1])], **related)
    if weighted or intercept:
        weights = np.arange(1.0, 1.0 + len(y)) if weighted else None
        return Problem.prepared(A, y, **about, weights=weights, intercept=intercept)
    return Problem(A, y, **about)


CASES = {
    "a walk": ((1, 30, 9), {"k": 4, "lam": 0.3}, "explored"),
    "counts of many columns": ((2, 8, 14), {"k": 3, "lam": 1e-3}, "counted"),
    "counts without a ridge": ((3, 8, 12), {"k": 2, "lam": 0.0}, "counted"),
    "counts with an intercept": ((5, 9, 12), {"k": 2, "lam": 1e-3, "intercept": True, "weighted": True}, "counted"),
    "a walk over groups": ((6, 20, 10), {"k": 2, "lam": 0.05, "paired": True}, "explored"),
    "no ridge, another loss": ((7, 40, 6, "logistic"), {"k": 2, "lam": 0.0, "loss": "logistic"}, Discarded),
    "a search inside the kernel": ((1, 30, 11, "logistic"), {"k": 4, "lam": 0.3, "loss": "logistic"}, "below"),
}


def told(event):
    """Who closed a subtree; else the kind of the event."""
    return event.result.closer if isinstance(event, SubtreeClosed) else type(event)


KINDS_OF_STEPS = ("signs", "limits", "strong", "weak and signs")


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        pytest.param(case, kind, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, case in enumerate(CASES)
        for j, kind in enumerate(KINDS_OF_STEPS)
    ],
)
def test_steps_of_a_free_search_are_written_and_accepted(case, kind, tmp_path, monkeypatch):
    shape, about, event = CASES[case]
    for module, name in ((minors, "FEWEST"), (minors, "FEWEST_BLIND"), (choose, "FEWEST")):
        if event == "counted":
            monkeypatch.setattr(module, name, 5)
    monkeypatch.setattr(CheaperFirst, "close", lambda *_: None)  # so that what is left to walks is not closed before
    A, y = data(*shape)
    if kind == "limits" and "paired" in about:
        pytest.skip("columns are then chosen one by one")
    search = Search(made_of(A, y, **about), Settings(heuristics=()))
    events = [*search]
    assert Counter(told(one) for one in events)[event] > 0
    problem, found = restricted(kind, A, y, **about), search.result()
    best = solve(problem, signals=())
    assert found.lower <= best.upper
    writer = ProofWriter(problem, tmp_path / "run.exsel")
    for one in events:
        writer(one, search.state)
    lower = writer.claim(found.lower, best.upper, found.valid_for)
    writer.finish(lower, best.upper, best.support, best.coef, found.valid_for)
    proof, instance = read_proof(tmp_path / "run.exsel"), instance_of(problem)
    assert (proof.lower, proof.bounds) == (lower, "signs" in kind)
    assert first_says(instance, proof).verified
    assert second_says(instance, proof) == ""
    too_much = best.upper * (1.0 + 1e-6)
    assert not first_says(instance, proof, lower=too_much, upper=1e300).verified
    if event in ("explored", "counted"):  # points are improved at length where a claim is too high
        assert second_says(instance, proof, lower=too_much, upper=1e300) != ""


@pytest.mark.parametrize("kind", ["signs", "limits", "strong"])
def test_an_audit_follows_a_free_walk(kind, monkeypatch):
    """Also where restrictions leave less of what it closed, or nothing."""
    for module, name in ((minors, "FEWEST"), (minors, "FEWEST_BLIND"), (choose, "FEWEST")):
        monkeypatch.setattr(module, name, 5)
    A, y = data(2, 8, 14)
    about = {"k": 3, "lam": 1e-3}
    search = Search(Problem(A, y, **about), Settings(heuristics=()))
    search.state.opened = []
    problem = restricted(kind, A, y, **about)
    recheck = Recheck(problem)
    for event in [*search]:
        recheck(event, search.state)
    assert recheck.bounds > 5


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_listings_are_accepted_beside_restrictions(loss, tmp_path, monkeypatch):
    A, y = data(4, 24, 6, loss, noise=1.0)
    about = {"k": 3, "lam": 0.05, "loss": loss}
    proof = listed_proof(Problem(A, y, **about), tmp_path, monkeypatch)
    assert proof is not None
    assert MINORANT in proof.tree & 7
    for kind in ("signs", "limits", "strong", "weak and signs"):
        instance = instance_of(restricted(kind, A, y, **about))
        related = None if instance.hierarchy is None else instance.hierarchy.kind
        about_it = replace(
            proof, problem_hash=problem_hash(instance), hierarchy=related, bounds=instance.box is not None,
            model_index=proof.model_index[:0], model_value=proof.model_value[:0], upper=1e300,
        )  # fmt: skip
        assert first_says(instance, about_it).verified
        assert second_says(instance, about_it) == ""
        best = min(smallest(instance, chosen) for chosen in admissible_sets(instance))
        assert not first_says(instance, about_it, lower=best * (1.0 + 1e-6)).verified
        if loss == "huber":
            assert second_says(instance, about_it, lower=best * (1.0 + 1e-6)) != ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_minorant_counts_groups_and_admissible_sets(kind, tmp_path, monkeypatch):
    """A count at the root holds up to the best of what is counted, less what the minorant loses."""
    A, y = data(4, 24, 6, "logistic", noise=1.0)
    problem = Problem(A, y, k=2, lam=0.05, loss="logistic")
    proof = listed_proof(problem, tmp_path, monkeypatch)
    made = restriction(np.random.default_rng(6), kind, 6)
    made |= {"groups": ((0, 3), (1, 4), (2, 5)), "k": 1} if "groups" in made else {}
    instance = replace(instance_of(problem), **made)
    counted = replace(instance, box=None)
    least = min(smallest(counted, chosen) for chosen in admissible_sets(counted))
    best = min(smallest(instance, chosen) for chosen in admissible_sets(instance))
    related = None if instance.hierarchy is None else instance.hierarchy.kind
    proof = replace(
        proof, problem_hash=problem_hash(instance), hierarchy=related, groups=len(instance.groups) or None,
        k=instance.k, bounds=instance.box is not None,
        model_index=proof.model_index[:0], model_value=proof.model_value[:0],
    )  # fmt: skip
    outcomes = Counter()
    for tree in ([COUNTED], [MINORANT, CLOSE]):
        for part in (0.45, 0.98, 1.0 + 1e-9):
            file = replace(proof, tree=np.array(tree, np.int32), lower=part * least, upper=1e300)
            first = first_says(instance, file)
            assert (second_says(instance, file) == "") == first.verified
            assert not (first.verified and file.lower > best)
            outcomes[tree[0], first.verified] += 1
    assert outcomes[COUNTED, True] > outcomes[MINORANT, True]
    assert outcomes[COUNTED, False] > 0


@pytest.mark.parametrize("kind", ["signs", "limits", "strong"])
def test_the_replay_follows_a_free_walk(kind, monkeypatch):
    for module, name in ((minors, "FEWEST"), (minors, "FEWEST_BLIND"), (choose, "FEWEST")):
        monkeypatch.setattr(module, name, 5)
    A, y = data(2, 8, 14)
    about = {"k": 3, "lam": 1e-3}
    search = Search(Problem(A, y, **about), Settings(heuristics=()))
    events = [*search]
    free = record_of(search.result(), events)
    problem = restricted(kind, A, y, **about)
    best = solve(problem, signals=())
    record = replace(free, coef=np.array(best.prepared.coef), upper=best.upper)
    assert replay(instance_of(problem), record).lower == free.lower
    steps = tuple(
        step._replace(min_pruned_bound=1.01 * best.upper) for step in record.steps if isinstance(step, Walked)
    )
    with pytest.raises(ReplayError, match="its witness proves"):
        replay(instance_of(problem), replace(record, steps=steps, lower=best.upper))
