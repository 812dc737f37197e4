"""The one table of what suits which problem: bound, branching, walks and searches below nodes, and what to call it.

:data:`PROBLEM_CLASSES` is about problems, :data:`BOUNDS` about the parts that belong to a bound; :func:`methods_for`
combines the settings and, where they say ``auto``, the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, overload

from exactsel import registry
from exactsel.algebra.curvature import affordable, has_curvature
from exactsel.bounds.base import BoundOptions, BoundSolver, Cheaper, PreparedBound
from exactsel.bounds.boxed import BoxedBound
from exactsel.bounds.boxed_fit import BoxedFitBound
from exactsel.bounds.eigenvalue import PreparedEigenvalue
from exactsel.bounds.fit import RelaxedFitBound
from exactsel.bounds.kernel_form import Relaxation
from exactsel.bounds.plug_in import bound_solver
from exactsel.bounds.split_point import SPLIT_UP_TO
from exactsel.closers.base import Closer
from exactsel.enumeration.base import SubtreeSolver
from exactsel.enumeration.below_minorant import MinorantEnumerator, listable
from exactsel.enumeration.closed_form import ClosedFormEnumeration
from exactsel.enumeration.clusters import ClusterBound
from exactsel.enumeration.dependent import DependentEnumeration
from exactsel.enumeration.faster import FasterEnumeration
from exactsel.enumeration.minorant_restricted import RestrictedSets
from exactsel.enumeration.minors import ELIMINATED, FEWEST, MinorTest
from exactsel.enumeration.native import NativeBranchAndBound
from exactsel.enumeration.patterns import Checkable, PatternEnumerator
from exactsel.enumeration.rank_reduced import RankReducedEnumeration
from exactsel.enumeration.selections import SelectionEnumeration
from exactsel.enumeration.strong import StrongColumns
from exactsel.errors import UnsupportedError, option
from exactsel.nodes.branching import Branching
from exactsel.nodes.trees import Tree
from exactsel.problem.capabilities import (
    CLOSED_FORM,
    COEFFICIENT_BOUNDS,
    COEFFICIENTS,
    GROUPED_REGRESSION,
    PLAIN_REGRESSION,
    QUADRATIC_LOSS,
    RECONSTRUCTION,
    Capability,
)
from exactsel.problem.coefficient_bounds import independent
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.problem.redundant_columns import RedundantColumns
from exactsel.problem.regression import Problem
from exactsel.problem.restrictions import is_restricted, without_restrictions
from exactsel.search.frontier import Frontier
from exactsel.search.pool import SHARDS
from exactsel.solving.settings import Settings
from exactsel.types import FloatArray


def _bound_for_columns(problem: Problem, seconds: float | None) -> str:
    """The split beside it, or the perspective relaxation; without any curvature for that, the fit."""
    if problem.has(QUADRATIC_LOSS) and problem.n < problem.d:
        return "spectral"
    if problem.has(QUADRATIC_LOSS) and problem.d <= SPLIT_UP_TO:
        return "split"
    if problem.lam > 0:
        return "apg"
    may = problem.d < problem.n and affordable(problem.d, seconds)
    return "apg" if may and has_curvature(problem.hessian, problem.gram.roundings) else "fit"


def _bound_in_box(problem: Problem) -> BoundSolver:
    """The perspective relaxation; without any curvature, or limits on all coefficients, for that, the fit."""
    # Of groups the relaxation does not know finite limits, which are all there is without a ridge.
    bounds, grouped = problem.coefficient_bounds, problem.units.grouped
    has_box = bounds is not None and bounds.all_finite and not grouped
    flat = problem.lam == 0 and not has_box and not independent(problem.objective)
    if flat and bounds is not None and bounds.none and not grouped:
        return RelaxedFitBound()
    return BoxedFitBound() if flat else BoxedBound()


@dataclass(frozen=True)
class ProblemClass:
    """What suits problems that have certain properties."""

    needs: Capability
    words: str
    """What messages call these problems."""
    bound: Callable[[Any, float | None], str | BoundSolver]
    """The default bound, or its name, for a problem, with so many seconds to solve it in."""
    greedy: str
    """The heuristic that takes one column after the other; empty where none serves."""
    improving: tuple[str, ...]
    """Heuristics that improve a model that is known already, or find one like it."""


PROBLEM_CLASSES = (
    # Only these bounds serve coefficient bounds, and no entry point can put another one in their place.
    ProblemClass(
        COEFFICIENTS | COEFFICIENT_BOUNDS, "problems with signs, bounds or equalities of coefficients",
        lambda problem, seconds: _bound_in_box(problem), "forward", ("forward", "swap"),
    ),
    ProblemClass(
        PLAIN_REGRESSION, "problems with a target whose features are chosen one by one", _bound_for_columns, "forward",
        ("forward", "swap"),
    ),
    ProblemClass(
        GROUPED_REGRESSION, "problems with groups", lambda problem, seconds: "grouped", "forward", ("forward", "swap"),
    ),
    ProblemClass(
        RECONSTRUCTION, "column subset selection", lambda problem, seconds: "eigenvalue", "greedy-css",
        ("greedy-css", "iterative-css"),
    ),
)  # fmt: skip
"""A problem is of the first class of which it has what is needed."""


def class_of(problem: SubsetProblem) -> ProblemClass:
    """What suits a problem."""
    return next(each for each in PROBLEM_CLASSES if problem.has(each.needs))


@dataclass(frozen=True)
class BoundProfile:
    """What goes with a bound."""

    words: str
    """What the search is made of, for people ..."""
    curved: str = ""
    """... and so where the bound uses the curvature of all columns."""
    branching: str = "half"
    quadratic_branching: str = ""
    """That for quadratic loss, where it is another."""
    ridge: bool = False
    """Whether the ridge is the bound's curvature where it uses no other."""


BOUNDS = {
    "apg": BoundProfile(
        "perspective bound with the curvature of the ridge", "perspective bound with the curvature of all features",
        ridge=True,
    ),
    "split": BoundProfile(
        "split of the correlations, or perspective bound with the curvature of the ridge",
        "split of the correlations, or perspective bound with the curvature of all features", ridge=True,
    ),
    "spectral": BoundProfile(
        "perspective bound with the curvature of a split that starts from the spectrum, or of the ridge", ridge=True
    ),
    "grouped": BoundProfile(
        "perspective bound over groups", "perspective bound over groups, with the curvature of all features", ridge=True
    ),
    "boxed": BoundProfile(
        "perspective bound within the bounds of the coefficients",
        "perspective bound within the bounds of the coefficients, with the curvature of all features",
        # A fit within signs uses few columns, and those that it uses most are worth knowing about.
        quadratic_branching="largest",
    ),
    "boxed-fit": BoundProfile("fit within the bounds of the coefficients on the features left", branching="largest"),
    # Drop costs order the columns where the bound knows them, relaxed indicators elsewhere.
    "fit": BoundProfile("least-squares fit on the features left", branching="costliest"),
    "eigenvalue": BoundProfile("eigenvalues of what the columns put in leave of the matrix", branching="largest"),
}  # fmt: skip
"""By the name of a bound; for any other see :func:`company_of`."""


def company_of(bound: str) -> BoundProfile:
    """What goes with the bound of this name."""
    return BOUNDS.get(bound, BoundProfile(f"bound {bound}"))


@dataclass(frozen=True)
class Methods:
    """What a search is made of, before it is bound to the problem."""

    settings: Settings
    kind: ProblemClass
    tree: Tree
    bound: BoundSolver
    branching: Branching
    closer: Closer | None = None

    def enumeration(
        self, problem: SubsetProblem, prepared: PreparedBound, options: BoundOptions
    ) -> SubtreeSolver | None:
        """Whole subtrees are for the default search: an explicitly chosen bound or tree is to be seen at work."""
        if not self._walks:
            return None
        if isinstance(prepared, PreparedEigenvalue):
            return SelectionEnumeration(prepared.problem, prepared.residuals, options) if problem.k > 1 else None
        free = without_restrictions(problem)
        if not ClosedFormEnumeration.serves(free):
            return None
        if free.units.grouped:
            is_definite = free.lam > 0 or prepared.curvature is not None
            return ClosedFormEnumeration(free, prepared.curvature, options) if is_definite else None
        counter = self.counter(problem, prepared, options)
        if counter is not None and counter.first:
            return None
        if free.lam == 0 and prepared.curvature is None:
            # Bounds in the box are about all models, or about smaller ones than a walk would say.
            if problem.coefficient_bounds is not None:
                return None
            spans = RedundantColumns.of(free)
            if spans is not None and spans.curvature is not None:
                return RankReducedEnumeration(free, spans, options)
            dependent = DependentEnumeration.of(free, options)
            if dependent is not None:
                return FasterEnumeration(ClosedFormEnumeration(free, None, options), dependent)
        return ClosedFormEnumeration(free, prepared.curvature, options)

    def counter(self, problem: SubsetProblem, prepared: PreparedBound, options: BoundOptions) -> MinorTest | None:
        """For the default search too: many columns and few places, where they can be counted in the time there is.

        With five places where bounds have nothing to go by, or, with a ridge, once they have cost as much.
        """
        if not self._walks or not MinorTest.serves(problem):
            return None
        no_curvature = problem.lam == 0 and prepared.curvature is None
        if no_curvature and problem.coefficient_bounds is not None:  # as with walks
            return None
        many = problem.d > FEWEST
        if problem.k > ELIMINATED and not (no_curvature or (many and problem.lam > 0)):
            return None
        first = problem.k <= ELIMINATED or (many and no_curvature)
        counter = MinorTest(problem, options, self._count_parts, first=first)
        return counter if counter.takes(problem.root_state, at_once=False) else None

    @property
    def _count_parts(self) -> int:
        """Parts of a call that counts: as many as a round has shards, so they too are a matter of the settings."""
        shard, batch = self.settings.shard, self.settings.batch
        return 1 if shard is None else SHARDS if batch is None else max(1, batch // shard)

    def native(
        self, problem: SubsetProblem, prepared: PreparedBound, options: BoundOptions
    ) -> NativeBranchAndBound | None:
        """For the default search with a loss that has no closed form."""
        if not self._default_search:
            return None
        if not problem.has(COEFFICIENTS) or problem.has(QUADRATIC_LOSS) or problem.units.grouped:
            return None
        if prepared.kernel_form is None:
            return None
        return NativeBranchAndBound(cast(Relaxation, prepared), options)

    def cheaper(self, problem: SubsetProblem, prepared: PreparedBound, options: BoundOptions) -> Cheaper | None:
        """For the default search, where neither nodes are counted nor the first bound is all that will be shown."""
        # A hierarchy's or limits' decisions leave regions that no chain of decisions of a search's own makes.
        apart = options.thorough or self.settings.node_limit is not None or problem.units.constraint is not None
        return prepared.cheaper if self._default_search and not apart else None

    def strong(self, problem: SubsetProblem, support: Sequence[int], options: BoundOptions) -> StrongColumns | None:
        """For the default search with quadratic loss, from a good model's support, where it takes little to look."""
        free = without_restrictions(problem)
        if not is_regression(free, CLOSED_FORM) or problem.units.grouped:
            return None
        is_default = self._walks and self.settings.node_limit is None and self.settings.batch is None
        quick = is_default and StrongColumns.is_quick(free)
        return StrongColumns(free, support, options.stop, options.threads) if quick else None

    def enumerator(
        self, problem: SubsetProblem, prepared: PreparedBound, coef: FloatArray, options: BoundOptions, proof: bool
    ) -> MinorantEnumerator | None:
        """For the default search with such a loss too, from coefficients (d,) of a good model."""
        free = without_restrictions(problem)
        # Where nothing limits coefficients no quadratic function from below is definite.
        if not self._unlimited or not listable(free) or free.objective.valid_for:
            return None
        restricted = RestrictedSets(problem, prepared) if is_restricted(problem) else None
        return MinorantEnumerator(free, coef, options, proof, restricted)

    def cells(
        self, problem: SubsetProblem, prepared: PreparedBound, options: BoundOptions, checkable: Checkable | None
    ) -> PatternEnumerator | None:
        """For the default search with logistic loss: sets of columns of two values, counted by their cells."""
        free = without_restrictions(problem)
        if not self._unlimited or not PatternEnumerator.serves(free):
            return None
        restricted = RestrictedSets(problem, prepared) if is_restricted(problem) else None
        return PatternEnumerator(free, options, checkable, restricted)

    def clusters(self, problem: SubsetProblem, prepared: PreparedBound, options: BoundOptions) -> ClusterBound | None:
        """For the default search with quadratic loss where columns, or those that are independent, have curvature."""
        if not self._unlimited or not self._walks or self.settings.shard is not None:
            return None
        return ClusterBound.of(problem, prepared.curvature, options) if ClusterBound.serves(problem) else None

    @property
    def _unlimited(self) -> bool:
        """Whether this is the default search, without a limit on its nodes."""
        return self._default_search and self.settings.node_limit is None and self.settings.batch is None

    @property
    def _default_search(self) -> bool:
        chosen = (self.settings.frontier, self.branching.name, self.tree.name)
        return self._default_bound and chosen == ("best-first", "half", "binary")

    @property
    def _walks(self) -> bool:
        return self._default_bound and self.tree.fixes

    @property
    def _default_bound(self) -> bool:
        return self.settings.subtrees and self.settings.bound == "auto"

    def words(self, prepared: PreparedBound | None, stages: Sequence[str]) -> str:
        """What the search is made of, for people."""
        company = company_of(self.bound.name)
        curved = prepared is not None and prepared.curvature is not None
        parts = [company.curved if curved and company.curved else company.words]
        detail = getattr(prepared, "detail", "")
        parts[0] += f", {detail}" if detail else ""
        return "; ".join([*parts, *stages])


def methods_for(problem: SubsetProblem, settings: Settings) -> Methods:
    """The methods that the settings name, or the defaults for this problem."""
    kind = class_of(problem)
    tree = make("trees", settings.tree)
    if tree.eager and problem.units.constraint is not None:
        raise UnsupportedError(
            f"the tree '{tree.name}' leaves out models that others contain, which does not hold under the "
            f"{problem.units.constraint}; use {option('tree', 'binary')}."
        )
    bound = _bound_for(problem, settings)
    company = company_of(bound.name)
    usual = (company.quadratic_branching if problem.has(QUADRATIC_LOSS) else "") or company.branching
    branching = usual if settings.branching == "auto" else settings.branching
    closer = None if settings.closer == "auto" else make("closers", settings.closer)
    if closer is not None and tree.eager:
        raise UnsupportedError(
            f"the tree '{tree.name}' closes regions by bounds alone, but the closer '{closer.name}' was given; use "
            f"{option('tree', 'binary')}, or leave the closer out."
        )
    return Methods(settings, kind, tree, bound, make("branchings", branching), closer)


@overload
def make(kind: Literal["trees"], choice: str | Tree) -> Tree: ...
@overload
def make(kind: Literal["bounds"], choice: str | BoundSolver) -> BoundSolver: ...
@overload
def make(kind: Literal["branchings"], choice: str | Branching) -> Branching: ...
@overload
def make(kind: Literal["frontiers"], choice: str | Frontier) -> Frontier: ...
@overload
def make(kind: Literal["closers"], choice: str | Closer) -> Closer: ...
def make(kind: str, choice: object) -> object:
    """A plug-in by name, or the object itself."""
    return registry.load(kind, choice)() if isinstance(choice, str) else choice


def _words_of(needs: Capability) -> str:
    """What messages call the problems that have these properties."""
    return next((each.words for each in PROBLEM_CLASSES if each.needs == needs), "other problems")


def _bound_for(problem: SubsetProblem, settings: Settings) -> BoundSolver:
    """The bound solver: the one in the settings, if it serves the problem, or the default."""
    kind, choice = class_of(problem), settings.bound
    solver = bound_solver(make("bounds", kind.bound(problem, settings.time_limit) if choice == "auto" else choice))
    if not problem.has(solver.needs):
        raise UnsupportedError(
            f"the bound '{solver.name}' is for {_words_of(solver.needs)}, but this is one of {kind.words}; "
            f"use {option('bound', 'auto')}."
        )
    adjusted = is_regression(problem, PLAIN_REGRESSION) and problem.row_loss is not problem.loss
    if adjusted and not solver.adjusted_rows:
        raise UnsupportedError(
            f"the bound '{solver.name}' knows neither row weights nor an intercept of this loss; use "
            f"{option('bound', 'apg')}."
        )
    return solver
