"""Heuristics for best-subset selection: quick proposals of a support, with no promise of optimality.

The solver starts from their proposals and certifies how far from optimal each one is. All share the interface of
:mod:`exactsel_heuristics.base` and are found by name through the entry-point group ``exactsel.heuristics``, the same
door anyone's plug-in uses.
"""

from exactsel_heuristics.base import Context, Heuristic, Proposal
from exactsel_heuristics.dual_iht import DualIterativeHardThresholding
from exactsel_heuristics.forward import ForwardSelection
from exactsel_heuristics.htp import HardThresholdingPursuit
from exactsel_heuristics.omp import OrthogonalMatchingPursuit
from exactsel_heuristics.swap import SwapLocalSearch

__all__ = [
    "Context",
    "DualIterativeHardThresholding",
    "ForwardSelection",
    "HardThresholdingPursuit",
    "Heuristic",
    "OrthogonalMatchingPursuit",
    "Proposal",
    "SwapLocalSearch",
]
