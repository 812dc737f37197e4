"""The plain best-first search that teaching pages show: one bound a node, one child a candidate, and nothing else.

It is the algorithm of S. Sakaue and N. Marumo, "Best-first search algorithm for non-convex sparse minimization"
(arXiv:1910.01296): the state-space tree with the bound ``pdal``. No kernel closes subtrees and no column is fixed.
"""

from __future__ import annotations

import math
from typing import Any

from exactsel.problem.capabilities import CLOSED_FORM, PLAIN_REGRESSION
from exactsel.problem.interface import SubsetProblem, is_regression

PAPER_TREE, PAPER_BOUND = "state-space", "pdal"


def plain_search(problem: SubsetProblem) -> dict[str, Any]:
    """Arguments of :func:`exactsel.solve` for the plain search of a problem.

    Where the paper's bound does not serve (no ridge, groups, column subset selection, a loss of unbounded curvature)
    another bound takes its place, and under a hierarchy or limits on groups the binary tree.
    """
    tree = "binary" if problem.units.constraint is not None else PAPER_TREE
    return {"tree": tree, "bound": _bound(problem), "subtrees": False, "batch": 1}


def _bound(problem: SubsetProblem) -> str:
    if not is_regression(problem, PLAIN_REGRESSION):
        return "auto"
    objective = problem.objective
    if objective.lam > 0 and objective.row_loss is objective.loss and math.isfinite(objective.loss.smoothness):
        return PAPER_BOUND
    return "fit" if problem.has(CLOSED_FORM) else "auto"


def search_words(settings: dict[str, Any]) -> str:
    """What a page says of the search it shows, from the settings of its result."""
    if settings["subtrees"] or settings["tree"] != PAPER_TREE:
        return f"Shown is a best-first search with the {settings['tree']} tree and the bound '{settings['bound']}'."
    theirs = settings["bound"] == PAPER_BOUND
    other = "" if theirs else f"The bound is '{settings['bound']}' here, and not theirs. "
    return (
        "Shown is plain best-first search, as S. Sakaue and N. Marumo describe it: every node gets one lower bound and "
        f"one child for each candidate. {other}'exactsel solve' combines several bounds and closes small regions at "
        "once, so it needs fewer nodes, often only one."
    )
