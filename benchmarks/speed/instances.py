"""The instances: families of exactsel.data.generate at fixed seeds, as files that every solver can read."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatch
from itertools import product
from pathlib import Path

import click
import numpy as np

from exactsel.data.generate import Planted, diabetes, hard, quadratic
from exactsel.data.instance import Instance, write_instance
from exactsel.problem.checks import default_delta

HARD_SEED = 3
"""Seed of the families ``hard`` and ``hardlogit``; ``okr`` has seed 0."""

LABEL_NOISE = 0.7
"""Standard deviation of the noise in the labels of ``hardlogit``, in standard deviations of the signal."""

REAL = (
    ("sonar", 8), ("sonar", 10), ("triazines", 5), ("triazines", 8), ("communities", 5), ("communities", 8),
    ("arrhythmia", 5), ("arrhythmia", 8), ("ionosphere", 5), ("ionosphere", 10), ("riboflavin", 3), ("colon-cancer", 3),
)  # fmt: skip
"""Real data sets and sizes, where ``EXACTSEL_DATA`` names a folder that has them."""

LABELLED = ("german.numer", "svmguide3", "australian", "mushrooms")
"""Those of them that have two classes, for logistic loss."""

Makers = Mapping[str, Callable[[], Instance]]


def diabetes_huber(k: int, lam: float) -> Instance:
    """The Diabetes data with Huber loss and the threshold a problem would choose itself."""
    instance = diabetes(k=k, lam=lam)
    return replace(instance, loss="huber", delta=default_delta(instance.y))


def hardlogit(n: int, d: int, k: int, rho: float, lam: float = 1.0) -> Planted:
    """Classification without a clean support: the design and coefficients of ``hard``, columns of norm sqrt(n).

    A label is the sign of the signal plus normal noise. The noise goes on where the random numbers of ``hard`` end.
    """
    regression = hard(n, d, k, HARD_SEED, rho=rho)
    rng = np.random.default_rng(HARD_SEED)
    rng.standard_normal((n, d))
    rng.choice([-1.0, 1.0], d)
    rng.permutation(d)
    rng.standard_normal(n)
    signal = np.sum(regression.A * regression.x_true, axis=1)
    labels = np.where(signal + LABEL_NOISE * np.std(signal) * rng.standard_normal(n) < 0.0, -1.0, 1.0)
    scale = np.sqrt(n)
    return Planted(regression.A * scale, labels, k, lam, "logistic", x_true=regression.x_true / scale)


def small(loss: str) -> Instance:
    """A small instance with this loss, but not one that is solved at its root."""
    n, d, k, rho = 60, 20, 5, 0.7
    if loss == "logistic":
        return hardlogit(n, d, k, rho)
    instance = hard(n, d, k, HARD_SEED, rho=rho)
    return instance if loss == "quadratic" else replace(instance, loss=loss, delta=default_delta(instance.y))


def full() -> Makers:
    """Every instance by name, made when called; real data sets where ``EXACTSEL_DATA`` says where they are."""
    made: dict[str, Callable[[], Instance]] = {}
    for lam, k in product((0.01, 0.001), (5, 10)):
        made[f"diabetes64c_lam{lam:g}_k{k}"] = lambda k=k, lam=lam: diabetes(k=k, lam=lam)
        made[f"diabetes64c_huber_lam{lam:g}_k{k}"] = lambda k=k, lam=lam: diabetes_huber(k, lam)
    for k, rho in product((5, 10), (0.2, 0.7)):
        made[f"hard_d100_n200_k{k}_rho{rho}_lam0.01"] = lambda k=k, rho=rho: hard(200, 100, k, HARD_SEED, rho=rho)
    for d, k in ((100, 15), (200, 10)):
        made[f"hard_d{d}_n{2 * d}_k{k}_rho0.7_lam0.01"] = lambda d=d, k=k: hard(2 * d, d, k, HARD_SEED, rho=0.7)
    for (n, d, k), rho in product(((100, 50, 10), (200, 100, 5), (200, 100, 10)), (0.2, 0.7)):
        made[f"hardlogit_d{d}_n{n}_k{k}_rho{rho}_lam1"] = lambda n=n, d=d, k=k, rho=rho: hardlogit(n, d, k, rho)
    for lam, rho in product((10.0, 0.1), (0.1, 0.5, 0.9)):
        made[f"okr_n500_p500_rho{rho}_k10_lam{lam:g}"] = lambda lam=lam, rho=rho: quadratic(
            500, 500, 10, 0, lam=lam, rho=rho
        )
    for d in (500, 3000):
        made[f"okr_n{2 * d}_p{d}_rho0.5_k10_lam0.1"] = lambda d=d: quadratic(2 * d, d, 10, 0, lam=0.1, rho=0.5)
    folder = os.environ.get("EXACTSEL_DATA")
    for name, k in REAL if folder else ():
        made[f"{name}_k{k}_lam0"] = lambda name=name, k=k: standardised(Path(str(folder)) / f"{name}.npz", k)
    for name, k, lam in product(LABELLED if folder else (), (5, 10), (1.0, 1e-3)):
        made[f"{name}_logistic_k{k}_lam{lam:g}"] = lambda name=name, k=k, lam=lam: labelled(
            Path(str(folder)) / f"{name}.npz", k, lam
        )
    return made


def standardised(file: Path, k: int) -> Instance:
    """A data set of ``EXACTSEL_DATA``: columns and target centred and of length 1, constant columns left out, lam 0."""
    with np.load(file, allow_pickle=False) as data:
        A, y = data["A"].astype(np.float64), data["y"].astype(np.float64)
    A = A[:, np.ptp(A, axis=0) > 0.0]
    A, y = A - A.mean(axis=0), y - y.mean()
    return Instance(A / np.linalg.norm(A, axis=0), y / np.linalg.norm(y), k, 0.0, "quadratic")


def labelled(file: Path, k: int, lam: float) -> Instance:
    """A data set of two classes: columns centred and of length sqrt(n), constant columns left out."""
    with np.load(file, allow_pickle=False) as data:
        A, y = data["A"].astype(np.float64), data["y"].astype(np.float64)
    A = A[:, np.ptp(A, axis=0) > 0.0]
    A = A - A.mean(axis=0)
    return Instance(
        A * (np.sqrt(len(A)) / np.linalg.norm(A, axis=0)), np.where(y == y.max(), 1.0, -1.0), k, lam, "logistic"
    )


def quick() -> Makers:
    """One tiny instance per loss."""
    small = hard(30, 10, 3, HARD_SEED, rho=0.2)
    return {
        "hard_d10_n30_k3": lambda: small,
        "huber_d10_n30_k3": lambda: replace(small, loss="huber", delta=default_delta(small.y)),
        "hardlogit_d10_n30_k3": lambda: hardlogit(30, 10, 3, 0.2),
    }


def write(folder: Path, makers: Makers) -> Iterator[Path]:
    """Write one file per instance, and yield where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in makers.items():
        file = folder / f"{name}.npz"
        write_instance(file, make())
        yield file


def find(words: str, makers: Makers, folder: Path) -> list[Path]:
    """The files meant by ``words``: globs of files, or of names of our instances, which are then written to ``folder``.

    In the order of the words, each file once.
    """
    found: dict[Path, None] = {}
    for word in filter(None, (part.strip() for part in words.split(","))):
        files = [Path(file).resolve() for file in sorted(glob.glob(word)) if file.endswith(".npz")]
        if not files:
            named = {name: make for name, make in makers.items() if fnmatch(name, word)}
            files = [file.resolve() for file in write(folder, named)]
        if not files:
            raise click.UsageError(
                f"'{word}' is neither an .npz file nor the name of an instance; known are: {', '.join(makers)}."
            )
        found.update(dict.fromkeys(files))
    return list(found)
