"""One trial: a seed, what it tries, and what came of it; faults are made small before they are told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from exactsel.solving.outcome import Termination
from exactsel.testing.failing import smaller, tried
from exactsel.testing.instances import TinyInstance
from exactsel.testing.reproducers import Reproducer, write_reproducer
from exactsel.testing.solving import Finding, Refused, solved, solved_with_proof
from exactsel_dev.campaigns.brute_force import Truth
from exactsel_dev.campaigns.judging import judged
from exactsel_dev.campaigns.peers import disagreements, instance_for_peers, known_peers
from exactsel_dev.campaigns.random_instances import random_instance
from exactsel_dev.campaigns.refusals import refusal, unlimited
from exactsel_dev.campaigns.relations import instance_for, relation_of, unrelated

BRUTE_FORCE, METAMORPHIC, PEERS = "brute-force", "metamorphic", "peers"
KINDS = (BRUTE_FORCE, METAMORPHIC, PEERS)

PASSED_OVER = "passed over: another loss"

PROVEN = 20
"""One trial in so many leaves a proof, which is checked, and one is audited."""


@dataclass
class Outcome:
    """What came of a trial."""

    seed: int
    counts: list[str] = field(default_factory=list)
    """What was done, in words that are counted."""
    wrong: list[tuple[str, str]] = field(default_factory=list)
    """Class and detail of each finding."""
    files: list[str] = field(default_factory=list)
    """Reproducers that were written."""


@dataclass(frozen=True)
class Trial:
    """What is tried on every seed of a campaign; a check tells what is wrong with an instance, None if it was none."""

    kind: str
    peer: str = ""
    """With ``peers``: whom to ask."""
    out: str | None = None
    """The folder for reproducers."""
    loss: str = ""
    """Seeds with another loss are passed over, where one is named."""

    def instance(self, seed: int) -> TinyInstance:
        """The instance of a seed."""
        makers: dict[str, Callable[[int], TinyInstance]] = {
            BRUTE_FORCE: random_instance, METAMORPHIC: instance_for, PEERS: instance_for_peers,
        }  # fmt: skip
        return makers[self.kind](seed)

    def relation(self, seed: int) -> str:
        """What a seed is held against, beside brute force."""
        return {BRUTE_FORCE: "", METAMORPHIC: relation_of(seed), PEERS: self.peer}[self.kind]

    def __call__(self, seed: int) -> Outcome:
        """Try a seed; nothing is raised but what ends the process."""
        instance, outcome = self.instance(seed), Outcome(seed)
        if self.loss not in ("", instance.loss):
            outcome.counts.append(PASSED_OVER)
            return outcome
        found = findings(self.kind, self.relation(seed), seed, instance, outcome.counts)
        done = self.relation(seed) or instance.loss
        outcome.counts.append(f"not served: {done}" if found is None else f"tried: {done}")
        for what in dict.fromkeys(finding.what for finding in found or ()):
            detail = next(finding.detail for finding in found or () if finding.what == what)
            outcome.wrong.append((what, detail))
            if self.out is not None:
                outcome.files.append(str(self._written(seed, instance, what, detail)))
        return outcome

    def _written(self, seed: int, instance: TinyInstance, what: str, detail: str) -> Path:
        """The reproducer of a fault, made small."""
        found = Reproducer(instance, self.kind, seed, what, detail, self.relation(seed))
        return write_reproducer(Path(self.out or "."), smaller(found))


def findings(
    kind: str, relation: str, seed: int, instance: TinyInstance, noted: list[str] | None = None
) -> list[Finding] | None:
    """What is wrong with an instance; an exception is a fault too; None where the instance is no try.

    ``noted`` gets what is worth counting although it is no fault.
    """
    if kind == METAMORPHIC:
        return tried(lambda: unrelated(instance, relation, seed))
    if kind == PEERS:
        return tried(lambda: disagreements(instance, known_peers()[relation]))
    return tried(lambda: _against_brute_force(instance, seed, [] if noted is None else noted))


def _against_brute_force(instance: TinyInstance, seed: int, noted: list[str]) -> list[Finding] | None:
    try:
        if seed % PROVEN == 0:
            result, rejected = solved_with_proof(instance)
        else:
            result, rejected = solved(instance, recheck=seed % PROVEN == PROVEN // 2), []
    except Refused as refused:
        return refusal(str(refused), Truth(instance), noted)
    truth = Truth(instance)
    notes = {
        "noted: a proof was checked": seed % PROVEN == 0,
        "noted: every bound was evaluated anew": seed % PROVEN == PROVEN // 2,
        "noted: the optimum is known to fewer than 12 digits": truth.loose,
        "noted: the lower bound has a scope": bool(result.valid_for),
        "noted: rounding leaves an honest gap": result.termination is Termination.PRECISION_LIMIT,
        "noted: more than one node": result.nodes > 1,
        "noted: no ridge": truth.ridgeless,
    }
    noted += [note for note, holds in notes.items() if holds]
    return [*rejected, *unlimited(truth, result.valid_for), *judged(result, truth)]
