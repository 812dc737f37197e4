"""What the first use of a fresh installation takes, beside other tools: seconds of CPU of whole processes.

    python -m benchmarks.first_use --peers PYTHON    # an interpreter that has abess and scikit-learn

*Cold* is with an empty cache of kernels, *again* the same once more, *warmed up* after ``exactsel dev warmup``. CPU is
that of all threads, imports included, the least of so many repetitions.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import click

DATA = {
    "breast cancer (569 x 30), logistic, k 5": ("load_breast_cancer", "logistic", 5),
    "diabetes (442 x 10), k 5": ("load_diabetes", "quadratic", 5),
    "wine (178 x 13), k 4": ("load_wine", "quadratic", 4),
}

BEGIN = "import warnings; warnings.simplefilter('ignore'); from sklearn.datasets import {data}; d = {data}()\n"

OURS = "import exactsel; exactsel.solve(d.data, d.target, {k}, loss='{loss}', standardize=True{lam})"

PEERS = {
    "SequentialFeatureSelector (scikit-learn)": """
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
model = LogisticRegression() if '{loss}' == 'logistic' else LinearRegression()
SequentialFeatureSelector(model, n_features_to_select={k}).fit(StandardScaler().fit_transform(d.data), d.target)
""",
    "abess": """
from abess.linear import LinearRegression, LogisticRegression
model = LogisticRegression if '{loss}' == 'logistic' else LinearRegression
model(support_size={k}).fit(d.data, d.target)
""",
}
"""Code for each tool; both are heuristics."""


def seconds(python: str, *arguments: str, cache: str) -> float:
    """Of CPU that a process takes with this cache of kernels; nan where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Benchmarks compile whatever they run; a user's process decides for itself.
    env = {name: value for name, value in os.environ.items() if name != "EXACTSEL_JIT"} | {"EXACTSEL_CACHE_DIR": cache}
    done = subprocess.run([python, *arguments], env=env, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return taken if done.returncode == 0 else float("nan")


@click.command()
@click.option("--peers", default=sys.executable, help="An interpreter that has the other tools.")
@click.option("--repeat", default=3, show_default=True)
def main(peers: str, repeat: int) -> None:
    """Print a table in Markdown."""
    with tempfile.TemporaryDirectory() as folder:
        warmed = str(Path(folder) / "warmed")
        warmup = seconds(sys.executable, "-m", "exactsel", "dev", "warmup", cache=warmed)
        click.echo("| data | exactsel, cold | again | warmed up | " + " | ".join(PEERS) + " |")
        click.echo("|---" * (4 + len(PEERS)) + "|")
        for place, (name, (data, loss, k)) in enumerate(DATA.items()):
            words = {"data": data, "loss": loss, "k": k, "lam": ", lam=1" if loss == "logistic" else ""}
            ours, caches = (BEGIN + OURS).format(**words), [f"{folder}/{place}-{i}" for i in range(repeat)]
            cold, again = ([seconds(sys.executable, "-c", ours, cache=one) for one in caches] for _ in range(2))
            warm = [seconds(sys.executable, "-c", ours, cache=warmed) for _ in range(repeat)]
            others = [
                [seconds(peers, "-c", (BEGIN + code).format(**words), cache=folder) for _ in range(repeat)]
                for code in PEERS.values()
            ]
            click.echo(
                f"| {name} | " + " | ".join(f"{min(all_of):.2g}" for all_of in (cold, again, warm, *others)) + " |"
            )
        click.echo(f"\n`exactsel dev warmup`, once: {warmup:.0f} s.")


if __name__ == "__main__":
    main()
