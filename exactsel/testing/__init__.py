"""Conformance kits for authors of plug-ins: call one in a test of your own, and it asserts all we rely upon.

    from exactsel.testing import check_bound

    def test_my_bound():
        check_bound(MyBound())

Each raises :class:`AssertionError` with a sentence that says what went wrong, and on which problem.
"""

from exactsel.testing.bounds import check_bound
from exactsel.testing.cases import awkward_problems
from exactsel.testing.closers import check_closer
from exactsel.testing.heuristics import check_heuristic
from exactsel.testing.losses import check_loss
from exactsel.testing.order import check_branching, check_frontier, check_tree

__all__ = [
    "awkward_problems",
    "check_bound",
    "check_branching",
    "check_closer",
    "check_frontier",
    "check_heuristic",
    "check_loss",
    "check_tree",
]
