"""``python -m benchmarks.start --out FILE``: wall and CPU seconds of first runs, each in a process of its own."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np

from benchmarks.paper.tables import Row, markdown
from exactsel.data.instance import Instance, write_instance
from exactsel.files import write_bytes

INSTANCES = Path(__file__).resolve().parents[2] / "instances"

COMMANDS = {
    "solve twins (8 x 5)": ("solve", "twins.npz"),
    "solve twins, css": ("solve", "twins.npz", "--problem", "css"),
    "solve labels, logistic": ("solve", "labels.npz", "--loss", "logistic"),
    "solve diabetes (442 x 64)": ("solve", "diabetes.npz"),
    "solve diabetes, huber (make demo)": ("solve", "diabetes.npz", "--loss", "huber", "--eps", "1e-3"),
    "solve diabetes, huber, intercept": ("solve", "diabetes.npz", "--loss", "huber", "--intercept"),
    "solve cars.csv, groups, gaps filled": (
        "solve",
        "cars.csv",
        "--target",
        "mpg",
        "--drop",
        "name,model year",
        "--factors",
        "origin",
        "--missing",
        "mean",
        "-k",
        "3",
        "--lam",
        "1",
        "--intercept",
        "--scale",
    ),
    "solve 400 x 97, k 8": ("solve", "{400x97}"),
    "solve 60 x 97, k 8, limit 1 s": ("solve", "{60x97}", "--time-limit", "1"),
    "solve 60 x 97, huber, intercept, limit 3 s": (
        "solve",
        "{60x97}",
        "--loss",
        "huber",
        "--intercept",
        "--time-limit",
        "3",
    ),
    "solve 3000 x 200, k 8, limit 3 s": ("solve", "{3000x200}", "--time-limit", "3"),
    "solve 3000 x 200, k 8": ("solve", "{3000x200}"),
    "solve 3000 x 200, k 8, huber, intercept": ("solve", "{3000x200}", "--loss", "huber", "--intercept"),
    "solve 3000 x 200, k 4, logistic, intercept": (
        "solve",
        "{3000x200 labels}",
        "-k",
        "4",
        "--lam",
        "1",
        "--loss",
        "logistic",
        "--intercept",
    ),
    "certify diabetes": ("certify", "diabetes.npz", "--support", "2,3,8"),
    "poss diabetes": ("solve", "diabetes.npz", "--method", "poss"),
    "compare twins": ("compare", "twins.npz"),
}


def made(name: str, folder: str) -> str:
    """The file a word of a command means; ``{ROWSxCOLUMNS}`` is a random one with eight columns that matter, for a
    target or for labels.
    """
    size = re.fullmatch(r"\{(\d+)x(\d+)( labels)?\}", name)
    if size is None:
        return name
    rng, n, d = np.random.default_rng(1), int(size[1]), int(size[2])
    A = rng.standard_normal((n, d))
    y = A[:, :8].sum(axis=1) + 3.0 * rng.standard_normal(n)
    y = np.sign(y) if size[3] else y
    write_instance(file := Path(folder) / f"{n}x{d}.npz", Instance(A, y, k=8, lam=0.1))
    return str(file)


def seconds(arguments: tuple[str, ...], cache: str, jit: str | None) -> tuple[float, float]:
    """Wall and CPU seconds of a command."""
    environment = {name: value for name, value in os.environ.items() if name != "EXACTSEL_JIT"}
    environment |= {"EXACTSEL_CACHE_DIR": cache} | ({} if jit is None else {"EXACTSEL_JIT": jit})
    quiet = () if arguments[0] == "compare" else ("--quiet",)
    command = [sys.executable, "-m", "exactsel", *arguments, *quiet]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=INSTANCES, env=environment, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise click.ClickException(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def timed(name: str, jit: str | None) -> tuple[str, str]:
    """From an empty cache, and again: wall / CPU."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        command = tuple(made(word, folder) for word in COMMANDS[name])
        first, again = (seconds(command, cache, jit) for _ in range(2))
    return f"{first[0]:.1f} / {first[1]:.1f}", f"{again[0]:.1f} / {again[1]:.1f}"


@click.command(context_settings={"show_default": True})
@click.option("--only", default="", help="Commands whose name holds this.")
@click.option("--compiled/--not-compiled", default=True, help="Also with EXACTSEL_JIT=1.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="Markdown file.")
def main(only: str, compiled: bool, out: Path) -> None:
    """Seconds of first runs, wall / CPU."""
    rows: list[Row] = []
    for name in COMMANDS:
        if only not in name:
            continue
        row: Row = {"command": name}
        row["empty cache"], row["again"] = timed(name, None)
        if compiled:
            row["compiled, empty cache"], row["compiled, again"] = timed(name, "1")
        click.echo("  ".join(map(str, row.values())), err=True)
        rows.append(row)
    write_bytes(out, markdown("First runs: seconds, wall / CPU", rows).encode())


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.start")
