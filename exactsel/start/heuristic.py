"""The interface of a heuristic: a small object that proposes a support for a problem.

A heuristic promises nothing about optimality. Its caller refits the support exactly, so a proposal carries no
coefficients and no objective value. To write one, make a frozen dataclass whose fields are its options, give it a
``name`` and a ``run`` method, and enter the class in the entry-point group ``exactsel.heuristics``::

    @dataclass(frozen=True)
    class LargestCorrelations:
        name: ClassVar[str] = "largest-correlations"

        def run(self, problem: Problem, context: Context) -> Proposal:
            scores = np.abs(problem.gradient(np.zeros(problem.d)))
            return Proposal.of(np.argsort(-scores, kind="stable")[: problem.k], evaluations=0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from exactsel.errors import InputError, WrongFamilyError, css_problem
from exactsel.problem.capabilities import COEFFICIENT_BOUNDS
from exactsel.problem.interface import is_column_subset, is_regression

if TYPE_CHECKING:
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem


def never() -> bool:
    """Return False: the default of :attr:`Context.should_stop`."""
    return False


@dataclass(frozen=True)
class Context:
    """The circumstances of one run.

    Parameters
    ----------
    seed : int
        Seed of every random choice; equal seeds give equal proposals.
    start : tuple of int, optional
        A support to improve, for a local search; other heuristics ignore it.
    should_stop : callable
        Called between steps; once it returns True the heuristic returns the best support it has.
    supports : tuple of tuple of int
        Further supports of at most k columns to begin from: what relaxations were rounded to, or what an earlier run
        handed on. For methods that work in portions; others ignore them.
    work : float
        Multiplications, roughly, after which such a method ends; it counts them itself, so that the answer does not
        depend on the machine. Without a limit (inf) it ends as its options say.
    threads : int, optional
        Threads to use; all there are when None. The answer does not depend on it.
    relaxed : tuple of tuple of int
        For methods that use larger supports, too: the columns of largest coefficients in relaxations the search has
        rounded, at most 2k - 1 of each, the largest first.
    """

    seed: int = 0
    start: tuple[int, ...] | None = None
    should_stop: Callable[[], bool] = never
    supports: tuple[tuple[int, ...], ...] = ()
    work: float = math.inf
    threads: int | None = None
    relaxed: tuple[tuple[int, ...], ...] = ()

    def rng(self) -> np.random.Generator:
        """A new random generator at :attr:`seed`; call once per run and keep it."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True)
class Proposal:
    """The answer of a heuristic.

    Parameters
    ----------
    support : tuple of int
        At most k distinct columns, ascending.
    evaluations : int
        Number of supports whose objective was computed, by a refit or in closed form.
    path : tuple of int
        The columns in the order in which a stepwise method took them; empty for other methods.
    criterion : tuple of float
        The method's own criterion after each step of ``path``, where that is not the objective (for example a
        leave-one-out error).
    curve : tuple of (int, float)
        The anytime curve: (evaluations, best objective so far) at each improvement, for methods that keep one.
    others : tuple of tuple of int
        Further good supports, to start from in a later run (:attr:`Context.supports`).
    """

    support: tuple[int, ...]
    evaluations: int
    path: tuple[int, ...] = ()
    criterion: tuple[float, ...] = ()
    curve: tuple[tuple[int, float], ...] = ()
    others: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(
        cls,
        columns: Iterable[int],
        evaluations: int,
        *,
        path: Iterable[int] = (),
        criterion: Iterable[float] = (),
        curve: Iterable[tuple[int, float]] = (),
        others: Iterable[Iterable[int]] = (),
    ) -> Proposal:
        """A proposal of ``columns``, given in any order."""
        return cls(
            tuple(sorted({int(j) for j in columns})),
            int(evaluations),
            tuple(int(j) for j in path),
            tuple(float(value) for value in criterion),
            tuple((int(count), float(value)) for count, value in curve),
            tuple(tuple(sorted({int(j) for j in support})) for support in others),
        )


@runtime_checkable
class Heuristic(Protocol):
    """An incumbent generator; equal problem, options and context give an equal proposal."""

    @property
    def name(self) -> str:
        """The name it is registered under; a plain class attribute will do."""
        ...

    def run(self, problem: SubsetProblem, context: Context) -> Proposal:
        """Propose a support of at most k columns.

        Parameters
        ----------
        problem : Problem or ColumnSubsetProblem
            The instance; read, never changed. Call :func:`regression`, :func:`with_coefficients` (where limits of
            coefficients are known) or :func:`column_subset` first when not all families are served.
        context : Context
            Seed, start and stopping signal.

        Returns
        -------
        Proposal

        Raises
        ------
        UnsupportedError
            When the method does not apply to this problem, in one sentence that says why.
        """
        ...


def at_least(method: str, option: str, value: float, least: int) -> None:
    """:class:`InputError` unless an option of a method is a number of at least ``least``."""
    if not (isinstance(value, Real) and value >= least):
        raise InputError(f"{option} of the method '{method}' is {value!r}, but it must be at least {least}; raise it.")


def _without_groups(problem: SubsetProblem, method: str) -> None:
    if problem.units.grouped:
        raise WrongFamilyError(
            f"the method '{method}' chooses single features, but the features of this problem are in groups; "
            f"use forward or swap."
        )


def regression(problem: SubsetProblem, method: str) -> Problem:
    """The problem, if it has a target to predict from single columns; :class:`WrongFamilyError` otherwise."""
    _without_groups(problem, method)
    if problem.coefficient_bounds is not None:
        raise WrongFamilyError(
            f"the method '{method}' does not know signs or bounds of coefficients; use forward, swap, omp, htp, iht, "
            f"poss or pposs."
        )
    if not is_regression(problem):
        raise WrongFamilyError(
            f"the method '{method}' predicts a target, which column subset selection does not have; use one made for "
            f"it, such as pocss or greedy-css."
        )
    return problem


def with_coefficients(problem: SubsetProblem, method: str) -> Problem:
    """The problem, if it has a target to predict from single columns, with free coefficients or within limits."""
    if is_regression(problem, COEFFICIENT_BOUNDS):
        _without_groups(problem, method)
        return problem
    return regression(problem, method)


def column_subset(problem: SubsetProblem, method: str) -> ColumnSubsetProblem:
    """The problem, if it is one of column subset selection; :class:`WrongFamilyError` otherwise."""
    if not is_column_subset(problem):
        raise WrongFamilyError(
            f"the method '{method}' selects columns of a matrix without a target; give {css_problem()}, or use another "
            f"method, such as forward or poss."
        )
    return problem
