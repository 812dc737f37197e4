"""Kill a search again and again (kill -9) and go on with it: it must end as the one nobody touched."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.reliability.searches import Case

SAME = ("tree_hash", "upper", "lower", "support", "nodes", "claim")
"""What must be the same."""

LONGEST = 3.0
"""Seconds after which a process is killed, at the latest, unless it is said otherwise."""


@dataclass
class Tally:
    """What came of it."""

    runs: int = 0
    kills: int = 0
    before_anything: int = 0
    """Kills after which there was nothing to go on from."""
    proofs: int = 0
    wrong: list[str] = field(default_factory=list)


def command(case: Case, *options: str) -> list[str]:
    """How the search is begun."""
    quiet = ("--quiet",) if case.command == "solve" else ()
    return [sys.executable, "-m", "exactsel", case.command, str(case.file), *case.options, *quiet, "--json", *options]


def ended(words: list[str], after: float | None) -> dict[str, Any] | None:
    """The result of a process; None where it was killed ``after`` so many seconds."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, err = process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return None
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {err}")
        result: dict[str, Any] = json.loads(out)
        return result


def kill_and_resume(
    case: Case, whole: dict[str, Any], folder: Path, rng: random.Random, tally: Tally, longest: float
) -> None:
    """One search, killed at random moments until it ends."""
    path, proof = folder / "run.ckpt", folder / "run.exsel"
    for file in folder.glob("run.*"):
        file.unlink()
    proven = ("--proof", str(proof)) if case.command == "solve" else ()
    words = begun = command(case, "--checkpoint", str(path), "--checkpoint-every", "0", *proven)
    while (result := ended(words, rng.uniform(0.2, longest))) is None:
        tally.kills += 1
        if _begun(path):
            words = command(_resumed(case), "--resume", str(path), "--checkpoint-every", "0")
        else:
            words = begun
            tally.before_anything += 1
            for file in folder.glob("run.*"):
                file.unlink()
    tally.runs += 1
    other = different(result, whole)
    if other:
        tally.wrong.append(f"{case.name}: {', '.join(other)} differ")
    if not proven:
        return
    tally.proofs += 1
    trouble = accepted(case, proof)
    if trouble:
        tally.wrong.append(f"{case.name}: {trouble}")


def _resumed(case: Case) -> Case:
    """How it is gone on with: a list knows its distance, a path its sizes, ridge weights and share."""
    known, kept = ("--within", "--ks", "--lams", "--near"), list(case.options)
    for option in known if case.command != "solve" else ():
        if option in kept:
            del kept[kept.index(option) : kept.index(option) + 2]
    return replace(case, options=tuple(kept))


def different(result: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    """What differs though it must be the same: of a search, or of all searches and lists."""
    searches = result.get("results", [result.get("optimum", result)])
    others = whole.get("results", [whole.get("optimum", whole)])
    told = [name for name in SAME if [one[name] for one in searches] != [one[name] for one in others]]
    lists = [[one.get("near") for one in results] for results in (searches, others)]
    told += [name for name in ("models", "regions", "termination") if result.get(name) != whole.get(name)]
    return [*told, *(["near"] if lists[0] != lists[1] else [])]


def accepted(case: Case, proof: Path) -> str:
    """Nothing where a proof is accepted; else what was said."""
    check = [sys.executable, "-m", "exactsel", "verify", str(proof), str(case.file)]
    check += [word for word in case.options if word not in ("--heuristic", "none", "--no-subtrees")]
    checked = subprocess.run(check, capture_output=True, text=True, check=False)
    sound = checked.returncode == 0 and "VERIFIED" in checked.stdout
    return "" if sound else f"the proof was not accepted: {checked.stdout[-300:]}{checked.stderr[-300:]}"


def _begun(path: Path) -> bool:
    """Whether there is something to go on from."""
    if not path.exists():
        return False
    asked = [sys.executable, "-m", "exactsel", "solve", "--status", str(path), "--json"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def run(cases: list[Case], kills: int, seed: int, folder: Path, longest: float = LONGEST) -> Tally:
    """Kill searches until there have been so many kills."""
    rng, tally = random.Random(seed), Tally()
    folder.mkdir(parents=True, exist_ok=True)
    wholes = {}
    for case in cases:
        path, proof = folder / "whole.ckpt", folder / "whole.exsel"
        path.unlink(missing_ok=True)
        began = time.perf_counter()
        proven = ("--proof", str(proof)) if case.command == "solve" else ()
        result = ended(command(case, "--checkpoint", str(path), *proven), None)
        assert result is not None
        wholes[case.name] = result
        searches = result.get("results", [result.get("optimum", result)])
        nodes, took = sum(one["nodes"] for one in searches), time.perf_counter() - began
        print(f"{case.name}: {searches[-1]['claim']}, {nodes} nodes, {took:.1f} s", flush=True)
    while tally.kills < kills:
        for case in cases:
            kill_and_resume(case, wholes[case.name], folder, rng, tally, longest)
            print(f"{case.name}: {tally.kills} kills, {tally.runs} runs, {len(tally.wrong)} wrong", flush=True)
            if tally.kills >= kills:
                break
    return tally
