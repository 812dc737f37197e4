"""Small random problems with groups of columns, and their optima by trying every set of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from instances_for_tests import Case, Optimum, best_models, enclosed, random_case

import exactsel
from exactsel.problem.grouped import GroupedProblem


@dataclass(frozen=True)
class GroupedCase:
    """Data of a case, a label for each column, and a limit on the groups."""

    case: Case
    labels: tuple
    k: int
    must_have: tuple = ()
    must_not: tuple = ()

    @property
    def groups(self):
        """Columns of every group, in the order of their first columns."""
        held = {}
        for j, label in enumerate(self.labels):
            held.setdefault(("alone", j) if label is None else label, []).append(j)
        return tuple(tuple(columns) for columns in held.values())

    def problem(self):
        case = replace(self.case, k=len(self.labels))
        plain = case.problem().replace(k=min(self.k, len(self.labels)))
        return GroupedProblem(plain, self.labels, must_have=self.must_have, must_not=self.must_not)

    def supports(self):
        """Every set of k groups that the demands allow."""
        count = len(self.groups)
        free = [g for g in range(count) if g not in self.must_have and g not in self.must_not]
        places = min(self.k - len(self.must_have), len(free))
        return [tuple(sorted((*self.must_have, *chosen))) for chosen in combinations(free, places)]

    def values(self, supports):
        """The best objective on each set of groups, and by how much it may be too large."""
        return self.models(supports)[:2]

    def models(self, supports):
        """The same, and the models: coefficients by column."""
        values, errors, models = np.zeros(len(supports)), np.zeros(len(supports)), [{} for _ in supports]
        widths = {}
        for row, support in enumerate(supports):
            columns = sorted(j for g in support for j in self.groups[g])
            widths.setdefault(len(columns), []).append((row, columns))
        for width, entries in widths.items():
            rows = [row for row, _ in entries]
            if width == 0:
                values[rows] = self.case.objective(np.zeros(len(self.labels)))
                continue
            found = best_models(self.case, np.array([columns for _, columns in entries]))
            values[rows], errors[rows] = found[:2]
            for row, model in zip(rows, found[2], strict=True):
                models[row] = model
        return values, errors, models

    def optimum(self):
        supports = self.supports()
        values, errors, models = self.models(supports)
        best, sides = int(np.argmin(values)), enclosed(self.case, values, errors, models)
        return Optimum(float(np.min(values - errors)), float(values[best]), supports[best], *sides)


def random_grouped(seed, *, loss=None, lam=None):
    """A random case: groups of one to five columns, at times all in one or each alone, at times with demands."""
    rng = np.random.default_rng([31, seed])
    case = random_case(seed, loss=loss, lam=lam, d=int(rng.integers(2, 11)))
    d = case.A.shape[1]
    labels = _labels(rng, d)
    count = len(GroupedCase(case, labels, 0).groups)
    k = int(rng.choice([0, 1, count, rng.integers(1, count + 1)], p=[0.03, 0.17, 0.1, 0.7]))
    must_have, must_not = (), ()
    if rng.random() < 0.3:
        order = [int(g) for g in rng.permutation(count)]
        inside, outside = int(rng.integers(0, min(k, 2) + 1)), int(rng.integers(0, 3))
        must_have, must_not = tuple(sorted(order[:inside])), tuple(sorted(order[inside : inside + outside]))
    return GroupedCase(case, labels, k, must_have, must_not)


def _labels(rng, d):
    kind = rng.choice(["mixed", "all in one", "alone", "blocks"], p=[0.6, 0.07, 0.08, 0.25])
    if kind == "all in one":
        return ("g",) * d
    if kind == "alone":
        return (None,) * d
    if kind == "blocks":
        size = int(rng.integers(1, 6))
        return tuple(f"block {j // size}" for j in range(d))
    labels = [None if rng.random() < 0.3 else f"g{int(rng.integers(0, max(1, d // 2)))}" for _ in range(d)]
    return tuple(
        label if label is None or labels[: j + 1].count(label) <= 5 else None for j, label in enumerate(labels)
    )


def plain_problem(problem):
    """The problem of single columns a grouped one is equal to when no group has two."""
    inner = problem.inner
    return exactsel.Problem(
        inner.A, inner.y, problem.k, loss=inner.loss, lam=inner.lam,
        must_have=problem.must_have, must_not=problem.must_not,
    )  # fmt: skip
