"""Ctrl-C at random moments: the command line must end with exit code 130 within a second.

A wrapper writes one byte when ``main`` is entered; from then on any moment is as good as another. Commands run
with the user's kernel cache and with an empty one, so that signals meet imports, reading, compiling, searching and
writing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

WRAPPER = """
import os, sys
from exactsel.cli.main import main
told = int(sys.argv.pop())
def tell(frame, event, argument):
    if frame.f_code is main.__code__:
        sys.setprofile(None)
        os.write(told, b".")
sys.setprofile(tell)
main()
"""
"""Its last argument is the number of the descriptor that hears when ``main`` has been entered."""

SHORT, LONG = 2.5, 20.0
"""Seconds after the start of ``main`` up to which a signal is sent: half of them early, half of them later."""

PROMISED = 1.0
"""Seconds within which a process must have ended."""

HANGS = 120.0
"""Seconds after which a process is killed."""


@dataclass(frozen=True)
class Try:
    """One process, and what became of it."""

    command: str
    cold: bool
    moment: float
    """Seconds after the start of ``main`` at which the signal was sent."""
    code: int | None
    """None: it had ended by itself before."""
    seconds: float
    """From the signal to the end."""
    said: str

    @property
    def good(self) -> bool:
        return self.code == 130 and self.seconds <= PROMISED

    def __str__(self) -> str:
        kernels = "empty cache" if self.cold else "cached kernels"
        told = f"{self.command}, {kernels}: signal at {self.moment:.2f} s, exit {self.code} after {self.seconds:.2f} s"
        return f"{told}   {self.said}"


def write_instances(folder: Path) -> dict[str, list[str]]:
    """Data that take long, and the commands for them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 90)) + 0.5 * rng.standard_normal((400, 1))
    y = A @ (rng.standard_normal(90) / np.arange(1, 91)) + 3 * rng.standard_normal(400)
    hard, table = folder / "hard.npz", folder / "table.csv"
    np.savez(hard, A=A, y=y, k=18, lam=0.5, loss="huber")
    header = ",".join([*(f"x{j}" for j in range(60)), "y"])
    rows = rng.standard_normal((60_000, 61))
    np.savetxt(table, rows, delimiter=",", header=header, comments="", fmt="%.6f")
    proof, trace = str(folder / "{}.exsel"), str(folder / "{}.jsonl")
    return {
        "solve": ["solve", str(hard)],
        "solve --proof": ["solve", str(hard), "--loss", "quadratic", "--json", "--proof", proof, "--trace", trace],
        "compare": ["compare", str(hard)],
        "path": ["path", str(hard), "--k-max", "18"],
        "solve --method": ["solve", str(hard), "--method", "poss", "--set", "iterations=100000000"],
        "info": ["info", str(table), "--target", "y", "-k", "5", "--lam", "0.1"],
    }


def attempt(name: str, command: list[str], cold: bool, moment: float, folder: Path, number: int) -> Try:
    """Start a command, wait for ``main``, wait for the moment, send the signal."""
    cache = folder / f"cache{number}"
    environment = dict(os.environ) | ({"EXACTSEL_CACHE_DIR": str(cache)} if cold else {})
    arguments = [word.format(number) if "{}" in word else word for word in command]
    heard, told = os.pipe()
    with open(folder / f"{number}.err", "w+b") as err, open(heard, "rb") as ready:
        process = subprocess.Popen(
            [sys.executable, "-c", WRAPPER, *arguments, str(told)],
            stdout=subprocess.DEVNULL, stderr=err, pass_fds=[told], env=environment,
        )  # fmt: skip
        os.close(told)
        ready.read(1)
        time.sleep(moment)
        ended = process.poll() is not None
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            code: int | None = process.wait(HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        seconds = time.monotonic() - began
        err.seek(0)
        said = err.read().decode(errors="replace").rstrip().rpartition("\n")[2][:100]
    shutil.rmtree(cache, ignore_errors=True)
    return Try(name, cold, moment, None if ended else code, seconds, said)


def try_until_in_time(name: str, command: list[str], cold: bool, moment: float, folder: Path, number: int) -> Try:
    """As :func:`attempt`; earlier in the run where that has ended before."""
    while (tried := attempt(name, command, cold, moment, folder, number)).code is None:
        moment *= 0.7
    return tried


def report(tries: list[Try], left_behind: list[str]) -> list[str]:
    """The row of the table, and what stands behind it."""
    in_time = sum(tried.good for tried in tries)
    slow = [tried for tried in tries if tried.code == 130 and not tried.good]
    wrong = [tried for tried in tries if tried.code != 130]
    codes = Counter(tried.code for tried in wrong)
    slowest = max((tried.seconds for tried in tries), default=0.0)
    lines = [
        f"| interrupts | {len(tries)} | exit 130 within a second: {in_time} | slower: {len(slow)} | "
        f"other exit codes: {dict(codes) or 'none'} | slowest {slowest:.2f} s | left behind: {len(left_behind)} |"
    ]
    lines += [f"slower: {tried}" for tried in slow] + [f"wrong: {tried}" for tried in wrong]
    return lines + [f"left behind: {name}" for name in left_behind]


@click.command("interrupts")
@click.option("--count", type=click.IntRange(min=1), default=200, show_default=True, help="Processes to interrupt.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Processes at a time.")
def interrupts(count: int, seed: int, jobs: int) -> None:
    """Interrupt commands at random moments; exit code 130 within a second is what must come of it."""
    rng = np.random.default_rng(seed)
    # A shell has its background processes ignore Ctrl-C, and so would the processes begun here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = write_instances(folder)
        names = list(commands)
        plans = []
        for number in range(count):
            moment = rng.uniform(0, SHORT if rng.random() < 0.5 else LONG)
            chosen = names[int(rng.integers(len(names)))]
            plans.append((chosen, commands[chosen], bool(rng.random() < 0.4), moment, folder, number))
        with ThreadPoolExecutor(jobs) as pool:
            tries = list(pool.map(lambda plan: try_until_in_time(*plan), plans))
        left_behind = sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
    click.echo("\n".join(report(tries, left_behind)))
    if not all(tried.good for tried in tries) or left_behind:
        raise SystemExit(1)


if __name__ == "__main__":
    interrupts()
