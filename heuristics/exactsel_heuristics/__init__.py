"""Heuristics for subset selection: quick proposals of a support, with no promise of optimality.

The solver starts from their proposals and certifies how far from optimal each one is. All share the interface of
:mod:`exactsel_heuristics.base` and are found by name through the entry-point group ``exactsel.heuristics``, the same
door that plug-ins use. Classes are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "ApproximateSvdSelection": "approx_svd",
    "AsynchronousParetoOptimization": "pposs",
    "Context": "base",
    "DualIterativeHardThresholding": "dual_iht",
    "ForwardBackward": "foba",
    "ForwardSelection": "forward",
    "GreedyColumnSelection": "greedy_css",
    "GreedyRegularizedLeastSquares": "greedy_rls",
    "HardThresholdingPursuit": "htp",
    "Heuristic": "base",
    "IslandsOfParetoOptimization": "islands",
    "IterativeColumnSelection": "iterative_css",
    "IterativeHardThresholding": "iht",
    "LassoPath": "penalty_paths",
    "McpPath": "penalty_paths",
    "OrthogonalMatchingPursuit": "omp",
    "ParallelParetoOptimization": "pposs",
    "ParetoColumnSelection": "pocss",
    "ParetoOptimization": "poss",
    "Proposal": "base",
    "RecursiveFeatureElimination": "rfe",
    "ScadPath": "penalty_paths",
    "SwapLocalSearch": "swap",
    "TwoStageColumnSelection": "two_stage",
}

__all__ = [
    "ApproximateSvdSelection",
    "AsynchronousParetoOptimization",
    "Context",
    "DualIterativeHardThresholding",
    "ForwardBackward",
    "ForwardSelection",
    "GreedyColumnSelection",
    "GreedyRegularizedLeastSquares",
    "HardThresholdingPursuit",
    "Heuristic",
    "IslandsOfParetoOptimization",
    "IterativeColumnSelection",
    "IterativeHardThresholding",
    "LassoPath",
    "McpPath",
    "OrthogonalMatchingPursuit",
    "ParallelParetoOptimization",
    "ParetoColumnSelection",
    "ParetoOptimization",
    "Proposal",
    "RecursiveFeatureElimination",
    "ScadPath",
    "SwapLocalSearch",
    "TwoStageColumnSelection",
]

if TYPE_CHECKING:
    from exactsel_heuristics.approx_svd import ApproximateSvdSelection
    from exactsel_heuristics.base import Context, Heuristic, Proposal
    from exactsel_heuristics.dual_iht import DualIterativeHardThresholding
    from exactsel_heuristics.foba import ForwardBackward
    from exactsel_heuristics.forward import ForwardSelection
    from exactsel_heuristics.greedy_css import GreedyColumnSelection
    from exactsel_heuristics.greedy_rls import GreedyRegularizedLeastSquares
    from exactsel_heuristics.htp import HardThresholdingPursuit
    from exactsel_heuristics.iht import IterativeHardThresholding
    from exactsel_heuristics.islands import IslandsOfParetoOptimization as IslandsOfParetoOptimization
    from exactsel_heuristics.iterative_css import IterativeColumnSelection
    from exactsel_heuristics.omp import OrthogonalMatchingPursuit
    from exactsel_heuristics.penalty_paths import LassoPath, McpPath, ScadPath
    from exactsel_heuristics.pocss import ParetoColumnSelection
    from exactsel_heuristics.poss import ParetoOptimization
    from exactsel_heuristics.pposs import AsynchronousParetoOptimization, ParallelParetoOptimization
    from exactsel_heuristics.rfe import RecursiveFeatureElimination
    from exactsel_heuristics.swap import SwapLocalSearch
    from exactsel_heuristics.two_stage import TwoStageColumnSelection


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'exactsel_heuristics' has no attribute '{name}'")
    value = getattr(import_module(f"exactsel_heuristics.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
