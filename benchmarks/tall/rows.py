"""Rows made on the fly, and measuring what becomes of them."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from exactsel import Instance, gram, solve, verify
from exactsel.data.blocks import block_rows
from exactsel.types import FloatArray


@dataclass
class Planted:
    """Rows of correlated columns, far from zero, some of which make the target; equal seeds make equal rows."""

    rows: int
    columns: int
    k: int
    seed: int = 0
    seconds: float = field(default=0.0, init=False)
    """Spent on making rows."""

    @property
    def support(self) -> tuple[int, ...]:
        """The columns in the target."""
        rng = np.random.default_rng(self.seed)
        return tuple(sorted(rng.choice(self.columns, self.k, replace=False).tolist()))

    def __iter__(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Blocks (A, y)."""
        chosen, step = [*self.support], block_rows(self.columns)
        for number, first in enumerate(range(0, self.rows, step)):
            began = time.perf_counter()
            rng = np.random.default_rng([self.seed, number])
            m = min(step, self.rows - first)
            A = rng.standard_normal((m, self.columns))
            A += 0.5 * rng.standard_normal((m, 1)) + np.linspace(0.0, 100.0, self.columns)
            y = A[:, chosen].sum(axis=1) * 0.1 + rng.standard_normal(m) + 7.0
            self.seconds += time.perf_counter() - began
            yield A, y


def peak_mebibytes(anew: bool = False) -> float:
    """The most memory this process has held, since the last call with ``anew`` where the system (Linux) can tell."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return float(found.split()[1]) / 1024.0


def measured(data: object, rows: Planted, folder: Path, **options: object) -> dict[str, object]:
    """Reduce, solve with a proof, and verify it; a row of the table."""
    before, making = peak_mebibytes(anew=True), rows.seconds
    began, cpu = time.perf_counter(), time.process_time()
    instance: Instance = gram(data, intercept=True, k=rows.k, lam=1.0, **options)  # type: ignore[arg-type]
    seconds, cpu, peak = time.perf_counter() - began, time.process_time() - cpu, peak_mebibytes()
    making = rows.seconds - making
    began = time.perf_counter()
    proof = folder / "tall.exsel"
    result = solve(instance.problem(), proof=proof, rel_eps=1e-9)
    solving = time.perf_counter() - began
    checked = verify(instance.problem(), proof)
    spread = result.full_data
    assert spread is not None
    assert instance.reduction is not None
    return {
        "rows": f"{rows.rows:,} x {rows.columns}", "seconds": f"{seconds:.1f}",
        "of these making rows": f"{making:.1f}", "CPU seconds": f"{cpu:.1f}",
        "peak MiB (before)": f"{peak:.0f} ({before:.0f})",
        "row_error / ||y||": f"{instance.reduction.row_error / np.linalg.norm(instance.y):.1e}",
        "solve, s": f"{solving:.2f}", "claim": result.claim.value,
        "proof": "verified" if checked.verified else "rejected",
        "planted columns": "found" if result.support == rows.support else "not found",
        "objective of all rows": f"{spread.lower:.12g} to {spread.upper:.12g}",
    }  # fmt: skip
