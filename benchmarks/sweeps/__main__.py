"""``python -m benchmarks.sweeps``: the figures of docs/development/executors.md."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from benchmarks.sweeps.kills import run


@click.command()
@click.option("--jobs-count", type=click.IntRange(1), default=1000, show_default=True, help="Small jobs.")
@click.option("--kills", type=click.IntRange(0), default=6, show_default=True, help="Of the sweep, each kill -9.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="For config, store and tables; a new one by default.")
@click.option("--quick", is_flag=True, help="Forty jobs, two kills.")
def main(jobs_count: int, kills: int, seed: int, folder: Path | None, quick: bool) -> None:
    """Kill a sweep several times, go on with it, and show that no job was lost and none run twice."""
    with tempfile.TemporaryDirectory() as made:
        tally = run(40 if quick else jobs_count, 2 if quick else kills, seed, folder or Path(made))
    print(f"{tally.jobs} jobs; one process, untouched: {tally.whole_seconds:.0f} s")
    print(f"two processes: {tally.kills} kills of the sweep, {tally.worker_kills} of its processes, then Ctrl-C")
    print(f"noted at each kill: {', '.join(map(str, tally.kept))}")
    print(f"repeated: {tally.repeated}; lost: {tally.lost}; processes left behind: {tally.orphans}")
    print(f"the same table as the untouched sweep's, times aside: {'yes' if tally.same else 'NO'}")
    print(f"from Ctrl-C to the end: {tally.interrupt_seconds:.2f} s")
    for line in tally.wrong:
        print(f"  WRONG: {line}")
    sound = tally.same and not (tally.repeated or tally.lost or tally.orphans or tally.wrong)
    raise SystemExit(0 if sound else 1)


if __name__ == "__main__":
    main()
