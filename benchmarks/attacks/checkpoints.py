"""Forged checkpoints by the thousand, each through ``solve --status``, ``--resume`` and Python, in limited memory.

What is asked of each: a refusal in one sentence (exit code 2), or a result that is true; nothing that a terminal would
obey; no file touched but the checkpoint and the proof; no hang, and less than a gibibyte of memory beyond what the
process has before. Bounds of a search are believed where their hash fits: what is untrue because of that is counted
apart, and must be rejected by the checker where there is a proof.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.attacks import files, forged_states, forged_tables
from benchmarks.attacks.files import Outcome, fault_of

KINDS = ("solve", "proof", "huber", "columns", "spilled", "path", "near")
"""What the checkpoint is of."""

CLOSE = 1e-6
"""Relative: how far a bound may be on the wrong side of the optimum before it is called untrue."""

QUICK = ["--time-limit", "20", "--threads", "1", "--json"]

PARTS = ("", "-wal", "-shm", "-journal")


def problem_of(kind: str) -> Any:
    """The problem of a kind."""
    from exactsel import ColumnSubsetProblem, Problem

    rng = np.random.default_rng(4)
    d = 14 if kind == "spilled" else 10
    A = rng.standard_normal((25, d)) + 0.6 * rng.standard_normal((25, 1))
    y = A[:, :3].sum(axis=1) + 2.0 * rng.standard_normal(25)
    if kind == "columns":
        return ColumnSubsetProblem(A, 4)
    return Problem(A, y, 4, loss="huber" if kind == "huber" else "quadratic", lam=0.2)


@contextlib.contextmanager
def few_in_memory() -> Iterator[None]:
    """Nodes of a small search go to the disk, too."""
    from exactsel.search import spilling

    before = spilling.FEWEST, spilling.CHUNK
    spilling.FEWEST, spilling.CHUNK = 2, 4
    try:
        yield
    finally:
        spilling.FEWEST, spilling.CHUNK = before


def begin(kind: str, folder: Path) -> None:
    """An honest checkpoint of a kind, with something left to do: ``honest.ckpt`` in a folder."""
    from exactsel import near_optimal, solve, solve_path

    problem, path = problem_of(kind), folder / "honest.ckpt"
    options: dict[str, Any] = {"checkpoint": path, "signals": (), "threads": 1, "time_limit": None}
    alone = {"heuristics": "none", "subtrees": False, "batch": 2, "rel_eps": 1e-9}
    if kind == "path":
        solve_path(problem, ks=range(1, 5), near=0.1, node_limit=4, **options)
    elif kind == "near":
        near_optimal(problem, tau=1.0, node_limit=6, **options)
    elif kind == "spilled":
        with few_in_memory():
            solve(problem, node_limit=14, memory_limit=1e-4, bound="apg", **options, **alone)
    else:
        solve(problem, node_limit=6, proof=folder / "honest.exsel" if kind == "proof" else None, **options, **alone)


@cache
def honest(kind: str, folder: str) -> tuple[Path, Path, Any]:
    """An honest checkpoint, the instance as a file, and what a search that goes on with it says."""
    from exactsel.data.instance import Instance, write_instance

    place = Path(folder) / kind
    place.mkdir()
    begin(kind, place)
    problem = problem_of(kind)
    instance = place / "instance.npz"
    if kind == "columns":
        np.savez(instance, A=problem.A)
    else:
        write_instance(instance, Instance(np.asarray(problem.A), np.asarray(problem.y)))
    shutil.copy(place / "honest.ckpt", place / "again.ckpt")
    code, out, err = said(resuming(kind, instance, place / "again.ckpt"))
    assert code == 0, (kind, code, err)
    return place / "honest.ckpt", instance, json.loads(out)


def resuming(kind: str, instance: Path, checkpoint: Path, proof: Path | None = None) -> list[str]:
    """The command that goes on."""
    listed = ["best", str(instance), "--criterion", "objective", "-k", "4"]
    command = {"path": ["path", str(instance), "--k-max", "4"], "near": listed}
    words = command.get(kind, ["solve", str(instance), "-k", "4"])
    words += ["--problem", "css"] if kind == "columns" else ["--lam", "0.2"]
    words += ["--loss", "huber"] if kind == "huber" else []
    words += ["--proof", str(proof)] if proof is not None else []
    words += ["--quiet"] if words[0] == "solve" else []
    return [*words, "--resume", str(checkpoint), *QUICK]


def said(arguments: list[str]) -> tuple[Any, str, str]:
    """Exit code and streams of a command in this process."""
    from exactsel.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:  # main lets nothing else out; here it is counted
            code = f"{type(error).__name__}: {error}"[:200]
    return code, out.getvalue(), err.getvalue()


def warm_up(folder: Path, kinds: tuple[str, ...]) -> None:
    """Every honest checkpoint, gone on with: everything is compiled before memory is counted."""
    for kind in kinds:
        honest(kind, str(folder))
        tried(-1, kind, "0", b"", folder)


def attacked(number: int, seed: int, kinds: tuple[str, ...]) -> tuple[int, str, str, bytes]:
    """Checkpoint ``number``: its kind, and the seed of what is done to it, which happens in the worker."""
    return number, kinds[number % len(kinds)], str(seed), b""


def forged(number: int, seed: int, file: Path) -> tuple[str, bool]:
    """Forge a checkpoint; what was done, and whether it may be believed."""
    rng = np.random.default_rng([1206, seed, number])
    names, states = [], False
    for _ in range(1 if rng.random() < 0.85 else 2):
        of_states = bool(rng.random() < 0.55)
        chosen = forged_states.FORGERIES if of_states else forged_tables.FORGERIES
        with contextlib.suppress(Exception):  # where the file has nothing of that kind
            names.append(chosen[int(rng.integers(len(chosen)))](file, rng))
            states = states or of_states
    return ", then ".join(names) or "none", states


def tried(number: int, kind: str, damage: str, _: bytes, folder: Path, keep: Path | None = None) -> Outcome:
    """Forge a checkpoint, have every door read it, and judge."""
    base, instance, truth = honest(kind, str(folder))
    place = folder / "held"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    file, canary = place / "held.ckpt", place / "canary"
    canary.write_text("untouched")
    shutil.copy(base, file)
    name, states = ("none", False) if number < 0 else forged(number, int(damage), file)
    if keep is not None:
        shutil.copytree(place, keep / f"{number}", symlinks=True, ignore=shutil.ignore_patterns("*-journal"))
    faults, codes = [], []
    for door, arguments in _doors(kind, instance, place):
        for part in PARTS:
            other = Path(f"{file}{part}")
            if other.is_file() and not other.is_symlink():
                shutil.copy(other, f"{place / door}.ckpt{part}")
            elif other.is_symlink() or other.exists():
                other.rename(f"{place / door}.ckpt{part}")
        code, out, err = said(arguments) if arguments else _in_python(kind, place / f"{door}.ckpt")
        faults += [f"{door}: {fault}" for fault in _faults(door, code, out, err, truth, states, kind, place)]
        codes.append(code)
        if keep is not None:
            (keep / f"{number}-{door}.txt").write_text(f"{' '.join(arguments)}\n{code}\n{out}\n{err!r}\n")
    if canary.read_text() != "untouched":
        faults.append("a file beside the checkpoint was changed")
    ending = codes[2] if codes[2] in (0, 2) else 0 if codes[2] in (1, 74) else codes[2]
    return Outcome(number, kind, name, ending, "; ".join(faults))


def _doors(kind: str, instance: Path, place: Path) -> list[tuple[str, list[str]]]:
    """Names of doors with the command, empty for Python."""
    proof = place / "made.exsel" if kind == "proof" else None
    return [
        ("status", ["solve", "--status", str(place / "status.ckpt")]),
        ("json", ["solve", "--status", str(place / "json.ckpt"), "--json"]),
        ("named", resuming(kind, instance, place / "named.ckpt")),
        ("resume", resuming(kind, instance, place / "resume.ckpt", proof)),
        ("python", []),
    ]


def _in_python(kind: str, checkpoint: Path) -> tuple[Any, str, str]:
    """The door of Python: refusals are errors of this package with one sentence."""
    from exactsel import near_optimal, solve, solve_path
    from exactsel.errors import ExactselError
    from exactsel.solving.status import status_of

    problem, quick = problem_of(kind), {"resume": checkpoint, "signals": (), "threads": 1, "time_limit": 20.0}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a proof or a checkpoint that is given up comes with one
            if kind == "path":
                made: Any = solve_path(problem, ks=range(1, 5), **quick)
            elif kind == "near":
                made = near_optimal(problem, **quick)
            else:
                made = solve(problem, **quick)
        status_of(checkpoint).lines()
    except ExactselError as error:
        return 2, "", f"Error: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200], "", ""
    return 0, made.to_json(), ""


def _faults(
    door: str, code: Any, out: str, err: str, truth: Any, states: bool, kind: str, place: Path
) -> list[str]:  # fmt: skip
    """What is wrong with an ending."""
    resumed = door in ("named", "resume", "python")
    if (code == 1 and resumed) or (code == 74 and out):
        code = 0
    fault = fault_of(code, out, err if code == 2 else "")
    if fault or code == 2 or not resumed:
        return [fault] if fault else []
    found = untrue(kind, json.loads(out), truth)
    if not found or (states and not (door == "resume" and kind == "proof")):
        return []
    if states and not _accepted(place):
        return []
    return [f"untrue: {found}"]


def _accepted(place: Path) -> bool:
    from exactsel import verify

    proof = place / "made.exsel"
    return proof.exists() and verify(problem_of("proof"), proof).verified


def untrue(kind: str, found: Any, truth: Any) -> str:
    """What of an answer is not true, beside that of an honest search; empty where all is."""
    if kind == "path":
        return "; ".join(filter(None, map(_wrong, _results(found), _results(truth))))
    if kind == "near":
        missing = {tuple(m["support"]) for m in truth["models"]} - {tuple(m["support"]) for m in found["models"]}
        wrong = _wrong(found["optimum"], truth["optimum"])
        return f"{wrong} missing {missing}" if wrong or (found["complete"] and missing) else ""
    return _wrong(found, truth)


def _results(path: Any) -> list[Any]:
    return list(path["results"] if isinstance(path, dict) else path)


def _wrong(found: Any, truth: Any) -> str:
    best, slack = truth["upper"], CLOSE * max(1.0, abs(truth["upper"]))
    if found["lower"] is not None and found["lower"] > best + slack:
        return f"lower {found['lower']}, optimum {best}"
    if found["upper"] is not None and found["upper"] < truth["lower"] - slack:
        return f"upper {found['upper']}, optimum {best}"
    return ""


@click.command("checkpoints")
@click.option("--count", default=2000, show_default=True, help="Checkpoints to forge.")
@click.option("--seed", default=0, show_default=True)
@click.option("--kind", default="all", show_default=True, help="One kind of checkpoint, or all.")
@click.option("--first", default=0, help="Number of the first one, to meet one again.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option("--keep", type=click.Path(file_okay=False), help="Keep files and answers here (one process, no limits).")
@click.option("--by-kind", is_flag=True, help="One row for each kind as well.")
def checkpoints(count: int, seed: int, kind: str, first: int, workers: int, keep: str | None, by_kind: bool) -> None:
    """Forge checkpoints of every kind, have each read through every door, and print a row of what became of them."""
    if kind not in ("all", *KINDS):
        raise click.UsageError(f"there is no kind '{kind}'; known are all, {', '.join(KINDS)}.")
    kinds = KINDS if kind == "all" else (kind,)
    if keep is not None:
        import tempfile

        Path(keep).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            for number in range(first, first + count):
                found = tried(*attacked(number, seed, kinds), Path(folder), Path(keep))
                click.echo(repr(found))
        return
    outcomes = []
    for outcome in files.campaign(first, count, seed, kinds, workers, __name__):
        outcomes.append(outcome)
        if outcome.fault:
            click.echo(f"{outcome.number} ({outcome.kind}, {outcome.damage}): {outcome.fault!a}", err=True)
    forgeries = Counter(outcome.damage.partition(" ")[0] for outcome in outcomes)
    counted = ", ".join(f"{name} {many}" for name, many in forgeries.most_common())
    click.echo(f"{len(forgeries)} sorts of forgeries: {counted}")
    files.told(kind, kinds, outcomes, by_kind)


if __name__ == "__main__":
    checkpoints()
