"""Searches of some seconds each, one of every kind, as files the command line reads and as problems."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from exactsel.data.group_lists import read_groups
from exactsel.data.instance import read_instance
from exactsel.problem.interface import SubsetProblem
from exactsel.types import FloatArray


@dataclass(frozen=True)
class Case:
    """A search on the command line."""

    name: str
    file: Path
    options: tuple[str, ...]
    command: str = "solve"

    def problem(self) -> SubsetProblem:
        """The same, to be solved here."""
        instance = read_instance(self.file)
        if "css" in self.options:
            return instance.columns_problem()
        if "--groups" in self.options:
            text = self.options[self.options.index("--groups") + 1]
            return instance.grouped_problem(groups=read_groups(text, instance.feature_names))
        return instance.problem(intercept="--intercept" in self.options or None)

    def settings(self) -> dict[str, object]:
        """What :func:`exactsel.solve` is to be told besides."""
        return {"heuristics": "none", "subtrees": "--no-subtrees" not in self.options}


LISTED = ("--criterion", "objective")


def make_courses(folder: Path) -> list[Case]:
    """Paths and lists of close models over the same instances, of some seconds each."""
    by_name = {case.name: case for case in make_cases(folder)}
    paths = [
        replace(by_name[name], name=f"path, {name}", command="path", options=(*by_name[name].options, *options))
        for name, options in {
            "huber": ("--ks", "2,3,4", "--near", "0.01"),
            "logistic": ("--ks", "1,2", "--near", "0.01", "--lams", "1,0.5"),
            "quadratic, no walks": ("--ks", "2,3,4", "--near", "0.02"),
            "groups": ("--ks", "1,2,3", "--near", "0.02"),
            "css": ("--ks", "2,3,4", "--near", "0.02"),
        }.items()
    ]
    lists = [
        replace(
            by_name[name], name=f"near, {name}", command="best", options=(*by_name[name].options, *LISTED, *options)
        )
        for name, options in {
            "huber": ("-k", "4", "--within", "8"),
            "quadratic, no walks": ("-k", "4", "--within", "30"),
            "css": ("-k", "4", "--within", "20"),
        }.items()
    ]
    return [*paths, *lists]


def make_cases(folder: Path) -> list[Case]:
    """Write the instances, and say how they are solved."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    cases = []

    def add(name: str, A: FloatArray, y: FloatArray, *options: str, **more: object) -> None:
        file = folder / f"{name.replace(' ', '-').replace(',', '')}.npz"
        np.savez(file, A=A, y=y, **more)  # type: ignore[arg-type]
        cases.append(Case(name, file, ("--heuristic", "none", *options)))

    A = _alike(rng, 80, 60, 0.5)
    add("huber", A, A[:, :8].sum(axis=1) + 3 * rng.standard_normal(80), k=8, lam=0.5, loss="huber")
    A = _alike(rng, 120, 60, 0.4)
    labels = np.sign(A[:, :8].sum(axis=1) + 3 * rng.standard_normal(120))
    add("logistic", A, labels, k=7, lam=0.5, loss="logistic")
    add("logistic, intercept", A, labels, "--intercept", k=6, lam=0.3, loss="logistic")
    A = _alike(rng, 50, 90, 0.6)
    y = A[:, :10].sum(axis=1) + 4 * rng.standard_normal(50)
    add("quadratic", A, y, k=7, lam=1.0, loss="quadratic")
    A = _alike(rng, 60, 40, 0.6)
    y = A[:, :8].sum(axis=1) + 4 * rng.standard_normal(60)
    add("quadratic, no walks", A, y, "--no-subtrees", k=7, lam=0.3, loss="quadratic")
    add(
        "groups", A, y, "--groups", ";".join(f"g{g}={2 * g},{2 * g + 1}" for g in range(20)), k=5, lam=0.3, loss="huber"
    )
    A = _alike(rng, 40, 26, 0.3)
    add("css", A, A[:, 0], "--problem", "css", k=7)
    return cases


def _alike(rng: np.random.Generator, n: int, d: int, share: float) -> FloatArray:
    """Columns that have a part in common."""
    own: FloatArray = rng.standard_normal((n, d)) * np.sqrt(1 - share)
    return own + np.sqrt(share) * rng.standard_normal((n, 1))
