"""Interrupt searches at random moments (Ctrl-C, SIGTERM): what they say holds, and their proofs are accepted."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.reliability.kills import accepted, command, ended
from benchmarks.reliability.searches import Case

LONGEST = 4.0
"""Seconds after which a signal comes, at the latest."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stops:
    """What came of it."""

    signals: int = 0
    results: int = 0
    """Interrupted searches that said something."""
    ended: int = 0
    """Searches that had ended before."""
    early: int = 0
    """Signals that came before the command had begun to watch for them."""
    wrong: list[str] = field(default_factory=list)


def run(cases: list[Case], count: int, seed: int, folder: Path) -> Stops:
    """Send so many signals."""
    rng, stops, known = random.Random(seed), Stops(), {}
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        whole = ended(command(case), None)
        assert whole is not None
        known[case.name] = whole["lower"], whole["upper"]
    while stops.signals < count:
        for case in cases[: count - stops.signals]:
            _stop(case, known[case.name], rng, folder / "run.exsel", stops)
        print(f"{stops.signals} signals, {stops.results} results, {len(stops.wrong)} wrong", flush=True)
    return stops


def _stop(case: Case, known: tuple[float, float], rng: random.Random, proof: Path, stops: Stops) -> None:
    proof.unlink(missing_ok=True)
    sent = rng.choice(SIGNALS)
    words = command(case, "--proof", str(proof))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=rng.uniform(0.3, LONGEST))
            stops.ended += 1
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
            stops.signals += 1
            out, err = process.communicate(timeout=60)
    if not out:
        stops.early += 1
        if process.returncode not in (130, -int(sent), 128 + int(sent)):
            stops.wrong.append(f"{case.name}: no result, exit code {process.returncode}: {err[-300:]}")
        return
    result, (lower, upper) = json.loads(out), known
    stops.results += 1
    if not (result["lower"] <= upper and result["upper"] >= lower):
        stops.wrong.append(f"{case.name}: [{result['lower']}, {result['upper']}] against [{lower}, {upper}]")
    trouble = accepted(case, proof)
    if trouble:
        stops.wrong.append(f"{case.name}: {trouble}")
