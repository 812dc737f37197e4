"""Damaged files by the thousand, each read by the command line in a process of limited memory.

What is asked of each: exit code 2 and one sentence, or 0 where the file is still good; nothing printed that a terminal
would obey; no crash; less than a gibibyte of memory beyond what the process has before.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import queue
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

EXTRA = 2**30
"""Bytes a worker may take beyond what it has once everything is imported."""

SECONDS = 120.0
"""A file that keeps a worker busy for longer is counted as a hang."""

UNPRINTABLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Outcome(NamedTuple):
    """What became of one file."""

    number: int
    kind: str
    damage: str
    code: int | str
    """Exit code; ``crash`` or ``hang`` where there is none."""
    fault: str = ""
    """What is wrong with it, if anything is."""
    peak: int = 0
    """Largest memory of the worker so far, beyond what it began with."""


def command_of(kind: str, file: Path, fine: Path, rng: np.random.Generator) -> list[str]:
    """A command that reads the file and ends with 0 when it is good."""
    model = ["-k", "2", "--lam", "0.5"]
    name = str(file)
    if kind.startswith(("weights", "groups")):
        return ["info", str(fine), *model, f"--{kind.partition('.')[0]}", name]
    if kind.startswith("target"):
        return ["info", str(fine), "--target", name, "--no-root", *model]
    options: list[str] = []
    if kind in ("sparse", "npy", "mtx", "mtx.gz"):
        options = ["--target", "-1"]
    elif kind == "npz":
        options = [[], [], ["--drop", "0"], ["--target", "1"], ["--target", "x1"]][int(rng.integers(5))]
    elif kind.startswith(("csv", "tsv", "parquet", "feather")):
        options = [["--drop", "cat"], ["--factors", "cat"], []][int(rng.integers(3))]
    chance = rng.random()
    if chance < 0.1:
        extra = [["--intercept", "--scale"], ["--groups", "g=0,1"], ["--force-in", "0"]][int(rng.integers(3))]
        return ["solve", name, *options, *model, *extra, "--eps", "1e300", "--quiet", "--threads", "1"]
    if chance < 0.15:
        return ["certify", name, *options, *model, "--support", "0", "--eps", "1e300", "--quiet", "--threads", "1"]
    if chance < 0.25:
        return ["info", name, *options, "--problem", "css", "-k", "2"]
    if chance < 0.45:
        return ["data", "convert", name, str(file.with_name("out.npz")), *options]
    if chance < 0.55:
        return ["info", name, *options, *model, "--loss", str(rng.choice(["huber", "logistic"]))]
    return ["info", name, *options, *model, *(["--no-root"] if rng.random() < 0.5 else [])]


def fault_of(code: Any, out: str, err: str) -> str:
    """What is wrong with an ending; empty where nothing is."""
    if code not in (0, 2):
        return f"exit {code}: {err.strip()[-300:]}"
    if "Traceback" in out + err:
        return "traceback"
    raw = UNPRINTABLE.search(out + err)
    if raw:
        return f"prints {raw[0]!r}"
    lines = [line for line in err.splitlines() if not line.startswith(("Warning: ", "Usage: ", "Try "))]
    if code == 2 and [line for line in lines if line] != lines[-1:]:
        return f"says more than a sentence: {err[:200]!r}"
    if code == 2 and not (lines[-1].startswith("Error: ") and lines[-1].endswith(".")):
        return f"is no sentence: {lines[-1][:200]!r}"
    return "memory ran out" if "more memory than there is" in err else ""


def attacked(number: int, seed: int, kinds: tuple[str, ...]) -> tuple[int, str, str, bytes]:
    """File ``number``: its kind, what was done to it, and its bytes."""
    from benchmarks.attacks.any_damage import damaged

    kind = kinds[number % len(kinds)]
    data, damage = damaged(kind, np.random.default_rng([seed, number]))
    return number, kind, damage, data


def tried(number: int, kind: str, damage: str, data: bytes, folder: Path, keep: Path | None = None) -> Outcome:
    """Have the command line read a file, and judge."""
    from exactsel.cli.main import main

    ending = "npz" if kind == "sparse" else kind
    for what in ("weights.", "target.", "groups."):
        ending = ending.removeprefix(what)
    file, fine = folder / f"held.{ending}", folder / "fine.csv"
    file.write_bytes(data)
    if not fine.exists():
        fine.write_bytes(fine_table())
    arguments = command_of(kind, file, fine, np.random.default_rng(number))
    if keep is not None:
        (keep / f"{number}-{file.name}").write_bytes(data)
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code
        except BaseException as error:  # main lets nothing else out; here it is counted
            code = f"{type(error).__name__}: {error}"[:200]
    fault = fault_of(code, out.getvalue(), err.getvalue())
    if keep is not None:
        (keep / f"{number}.txt").write_text(f"{' '.join(arguments)}\n{code}\n{out.getvalue()}\n{err.getvalue()!r}\n")
    return Outcome(number, kind, damage, code, fault)


def fine_table() -> bytes:
    """Twelve good rows, the columns and the target of which the other files speak."""
    rng = np.random.default_rng(5)
    rows = [
        ",".join([*map(repr, row), repr(row[0] * 2 + 1)]) for row in np.round(rng.standard_normal((12, 3)), 3).tolist()
    ]
    return "\n".join(["x0,x1,x2,y", *rows]).encode()


def _memory(what: str) -> int:
    """Bytes of this process: ``VmSize``, ``VmRSS`` or ``VmHWM``."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1]) if found else 0


def warm_up(folder: Path, kinds: tuple[str, ...]) -> None:
    """Import and compile everything, before memory is counted."""
    from benchmarks.attacks.damaged import healthy

    for number in range(4 * len(kinds)):
        kind = kinds[number % len(kinds)]
        tried(number, kind, "none", healthy(kind, np.random.default_rng(number)), folder)


def worker(channel: Any, attack: str, kinds: tuple[str, ...]) -> None:
    """Try the files that come through the channel until None does; ``attack`` is the module that knows how."""
    import resource
    import warnings

    module = import_module(attack)
    warnings.simplefilter("ignore")
    os.environ.pop("EXACTSEL_DEBUG", None)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        module.warm_up(Path(folder), kinds)
        gc.collect()
        before, size = _memory("VmRSS"), _memory("VmSize")
        resource.setrlimit(resource.RLIMIT_AS, (size + EXTRA, size + EXTRA))
        channel.send("ready")
        while (file := channel.recv()) is not None:
            _lower_peak()
            found = module.tried(*file, Path(folder))
            channel.send(found._replace(peak=_memory("VmHWM") - before))


def _lower_peak() -> None:
    """Begin anew to count the most memory this process has had."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class _Crew(threading.Thread):
    """One worker at a time, replaced when it dies; what it was at then is the fault of the file."""

    def __init__(self, todo: queue.SimpleQueue[int], done: queue.SimpleQueue[Outcome | None], seed: int,
            kinds: tuple[str, ...], attack: str) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self._todo, self._done, self._seed, self._kinds, self._attack = todo, done, seed, kinds, attack

    def run(self) -> None:
        """Hand out numbers until there are none."""
        process = channel = None
        while True:
            try:
                number = self._todo.get_nowait()
            except queue.Empty:
                break
            if process is None:
                process, channel = self._hired()
            file = import_module(self._attack).attacked(number, self._seed, self._kinds)
            try:
                channel.send(file)
                if channel.poll(SECONDS):
                    self._done.put(channel.recv())
                    continue
                fault = Outcome(*file[:3], "hang", f"no answer in {SECONDS:g} s")
                process.kill()
            except (EOFError, ConnectionError):
                process.join()
                fault = Outcome(*file[:3], "crash", f"the worker ended with {process.exitcode}")
            process.join()
            process = None
            self._done.put(fault)
        if process is not None:
            channel.send(None)
            process.join()
        self._done.put(None)

    def _hired(self) -> tuple[Any, Any]:
        context = get_context("spawn")
        channel, theirs = context.Pipe()
        process = context.Process(target=worker, args=(theirs, self._attack, self._kinds), daemon=True)
        process.start()
        theirs.close()
        assert channel.recv() == "ready"
        return process, channel


def campaign(
    first: int, count: int, seed: int, kinds: tuple[str, ...], workers: int, attack: str = __name__
) -> Iterator[Outcome]:
    """What becomes of files ``first`` to ``first + count``, in no order."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
    for number in range(first, first + count):
        todo.put(number)
    crews = [_Crew(todo, done, seed, kinds, attack) for _ in range(workers)]
    for crew in crews:
        crew.start()
    ended = 0
    while ended < workers:
        outcome = done.get()
        ended += outcome is None
        if outcome is not None:
            yield outcome


@click.command("files")
@click.option("--count", default=20_000, show_default=True, help="Files to damage.")
@click.option("--seed", default=0, show_default=True)
@click.option("--format", "kind", default="all", show_default=True, help="One kind of file, or all.")
@click.option("--first", default=0, help="Number of the first file, to meet one again.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option(
    "--keep",
    type=click.Path(file_okay=False),
    help="Keep the files, and what was said of them, in this folder (one process, no limits).",
)
@click.option("--by-kind", is_flag=True, help="One row for each kind of file as well.")
def files(count: int, seed: int, kind: str, first: int, workers: int, keep: str | None, by_kind: bool) -> None:
    """Have damaged files of every kind read, and print a row of what became of them."""
    from benchmarks.attacks.damaged import KINDS

    if kind not in ("all", *KINDS):
        raise click.UsageError(f"there is no kind '{kind}'; known are all, {', '.join(KINDS)}.")
    kinds = KINDS if kind == "all" else (kind,)
    if keep is not None:
        Path(keep).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            for number in range(first, first + count):
                click.echo(repr(tried(*attacked(number, seed, kinds), Path(folder), Path(keep))))
        return
    outcomes = []
    for outcome in campaign(first, count, seed, kinds, workers):
        outcomes.append(outcome)
        if outcome.fault:
            click.echo(f"{outcome.number} ({outcome.kind}, {outcome.damage}): {outcome.fault!a}", err=True)
    told(kind, kinds, outcomes, by_kind)


def told(kind: str, kinds: tuple[str, ...], outcomes: list[Outcome], by_kind: bool) -> None:
    """Print the rows, and end with 1 where anything was wrong."""
    click.echo("| files | exit 0 | exit 2 | other exits | crashes | hangs | other faults | peak memory, MiB |")
    click.echo("|---|---|---|---|---|---|---|---|")
    groups = {"all" if kind == "all" else kind: outcomes}
    if by_kind:
        groups |= {name: [outcome for outcome in outcomes if outcome.kind == name] for name in kinds}
    for name, held in groups.items():
        click.echo(_row(name, held))
    raise SystemExit(1 if any(outcome.fault for outcome in outcomes) else 0)


def _row(name: str, outcomes: list[Outcome]) -> str:
    codes = Counter(outcome.code for outcome in outcomes)
    known = {name: codes.pop(name, 0) for name in (0, 2, "crash", "hang")}
    faults = sum(bool(outcome.fault) and outcome.code in (0, 2) for outcome in outcomes)
    peak = max((outcome.peak for outcome in outcomes), default=0) / 2**20
    return (
        f"| {len(outcomes)} ({name}) | {known[0]} | {known[2]} | {sum(codes.values())} | {known['crash']} | "
        f"{known['hang']} | {faults} | {peak:.0f} |"
    )


if __name__ == "__main__":
    files()
