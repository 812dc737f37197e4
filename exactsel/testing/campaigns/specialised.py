"""OKRidge and lmSubsets: programs for least squares on exactly k columns, with a ridge and without."""

from __future__ import annotations

import contextlib
import io
import math
import shutil
import subprocess
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from exactsel.testing.campaigns.brute_force import Truth
from exactsel.testing.campaigns.instances import TinyInstance
from exactsel.testing.campaigns.peers import Said

R_PROGRAM = """
input <- file("stdin"); values <- scan(input, quiet = TRUE)
n <- values[1]; d <- values[2]; k <- values[3]
X <- matrix(values[4:(3 + n * d)], n, d, byrow = TRUE); y <- values[(4 + n * d):(3 + n * d + n)]
found <- lmSubsets::lmSubsets(x = X, y = y, intercept = FALSE, nmin = k, nmax = k)
cat(which(as.logical(found$subset[1, -(1:2)])) - 1)
"""

SECONDS = 60.0


def _plain(instance: TinyInstance) -> bool:
    """Whether it is least squares and nothing else."""
    plain = instance.weights is None and not (instance.intercept or instance.scale or instance.groups)
    demands = instance.force_in or instance.force_out or instance.constraint
    return instance.loss == "quadratic" and plain and not demands and 0 < instance.k < instance.d


def _answer(instance: TinyInstance, chosen: tuple[int, ...], optimal: bool) -> Said:
    """The answer of a program that says which columns."""
    return Said(chosen, float(Truth(instance).cost(chosen)), -math.inf, optimal)


class OkRidge:
    """OKRidge: branch and bound for the ridge-regularised problem; its model counts, its own bound is in doubles."""

    name = "okridge"

    def missing(self) -> str:
        """See :class:`exactsel.testing.campaigns.peers.Peer`."""
        return "" if find_spec("okridge") else "okridge is not installed; run: pip install okridge."

    def serves(self, instance: TinyInstance) -> bool:
        """See :class:`exactsel.testing.campaigns.peers.Peer`."""
        return _plain(instance) and instance.lam > 0 and _distinct(instance)

    def solve(self, instance: TinyInstance) -> Said:
        """See :class:`exactsel.testing.campaigns.peers.Peer`."""
        solver = import_module("okridge.tree").BNBTree(X=instance.A, y=instance.y, lambda2=instance.lam)
        with contextlib.redirect_stdout(io.StringIO()):
            _, coef, gap, _, _ = solver.solve(k=instance.k, gap_tol=1e-6, verbose=False, time_limit=SECONDS)
        return _answer(instance, tuple(int(j) for j in np.flatnonzero(coef)), bool(gap <= 1e-6))


class LmSubsets:
    """The R package lmSubsets, through Rscript."""

    name = "lmsubsets"

    def missing(self) -> str:
        """See :class:`exactsel.testing.campaigns.peers.Peer`."""
        if not shutil.which("Rscript"):
            return "Rscript is not there; install R and its package lmSubsets."
        done = subprocess.run(
            ["Rscript", "-e", "library(lmSubsets)"], capture_output=True, timeout=SECONDS, check=False
        )
        return "" if done.returncode == 0 else "R has no package lmSubsets; run install.packages('lmSubsets') in R."

    def serves(self, instance: TinyInstance) -> bool:
        """See :class:`exactsel.testing.campaigns.peers.Peer`."""
        return _plain(instance) and instance.lam == 0 and instance.d < instance.n and _distinct(instance)

    def solve(self, instance: TinyInstance) -> Said:
        """See :class:`exactsel.testing.campaigns.peers.Peer`."""
        numbers = [instance.n, instance.d, instance.k, *instance.A.ravel().tolist(), *instance.y.tolist()]
        done = subprocess.run(
            ["Rscript", "-e", R_PROGRAM], input=" ".join(map(repr, numbers)), capture_output=True, text=True,
            timeout=SECONDS, check=True,
        )  # fmt: skip
        return _answer(instance, tuple(int(word) for word in done.stdout.split()), True)


def _distinct(instance: TinyInstance) -> bool:
    """Whether no column is a copy of another, or zero: the two programs take their independence for granted."""
    columns = sorted(tuple(column) for column in instance.A.T.tolist())
    return all(first != second for first, second in pairwise(columns)) and bool(np.all(np.any(instance.A, axis=0)))
