"""What checkpoints cost a search: the processor's seconds spent on saving, as a part of all of them in the same run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from exactsel import Problem, solve
from exactsel.solving.checkpointing import Checkpointer


def run(seconds: float, columns: int, loss: str, proof: bool, subtrees: bool, folder: Path, seed: int) -> None:
    """Search so long with the checkpoints a user gets, where few regions can be closed, and say what they took."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((columns + 10, columns)), rng.standard_normal(columns + 10)
    problem = Problem(A, np.sign(y) if loss == "logistic" else y, k=columns // 5, loss=loss, lam=0.5)
    folder.mkdir(parents=True, exist_ok=True)
    spent = _counted()
    began = time.process_time()
    result = solve(
        problem, heuristics=(), subtrees=subtrees, threads=1, time_limit=seconds, checkpoint=folder / "saved.ckpt",
        proof=folder / "saved.exsel" if proof else None,
    )  # fmt: skip
    whole = time.process_time() - began
    size = (folder / "saved.ckpt").stat().st_size / 2**20
    print(f"{loss}, {columns} columns, {'a' if proof else 'no'} proof: {result.nodes} nodes, {result.open_nodes} open")
    each = ", ".join(f"{one:.2f}" for one in spent)
    print(f"{whole:.0f} s of a processor, of them saving {each} (the last at the end)")
    print(f"{100 * sum(spent[:-1]) / whole:.2f} % while it searched, a file of {size:.0f} MiB", flush=True)


def _counted() -> list[float]:
    """The seconds each save takes from now on."""
    spent: list[float] = []
    save = Checkpointer._save

    def timed(self: Checkpointer, *given: Any) -> None:
        began = time.process_time()
        save(self, *given)
        spent.append(time.process_time() - began)

    Checkpointer._save = timed  # type: ignore[method-assign]
    return spent
