"""Heuristics for subset selection: quick proposals of a support, with no promise of optimality.

The solver starts from their proposals and certifies how far from optimal each one is. All share the interface of
:mod:`exactsel_heuristics.base` and are found by name through the entry-point group ``exactsel.heuristics``, the same
door that plug-ins use. Classes are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from exactsel_heuristics.approx_svd import ApproximateSvdSelection as ApproximateSvdSelection
    from exactsel_heuristics.base import Context as Context
    from exactsel_heuristics.base import Heuristic as Heuristic
    from exactsel_heuristics.base import Proposal as Proposal
    from exactsel_heuristics.dual_iht import DualIterativeHardThresholding as DualIterativeHardThresholding
    from exactsel_heuristics.foba import ForwardBackward as ForwardBackward
    from exactsel_heuristics.forward import ForwardSelection as ForwardSelection
    from exactsel_heuristics.greedy_css import GreedyColumnSelection as GreedyColumnSelection
    from exactsel_heuristics.greedy_rls import GreedyRegularizedLeastSquares as GreedyRegularizedLeastSquares
    from exactsel_heuristics.htp import HardThresholdingPursuit as HardThresholdingPursuit
    from exactsel_heuristics.iht import IterativeHardThresholding as IterativeHardThresholding
    from exactsel_heuristics.islands import IslandsOfParetoOptimization as IslandsOfParetoOptimization
    from exactsel_heuristics.iterative_css import IterativeColumnSelection as IterativeColumnSelection
    from exactsel_heuristics.omp import OrthogonalMatchingPursuit as OrthogonalMatchingPursuit
    from exactsel_heuristics.penalty_paths import LassoPath as LassoPath
    from exactsel_heuristics.penalty_paths import McpPath as McpPath
    from exactsel_heuristics.penalty_paths import ScadPath as ScadPath
    from exactsel_heuristics.pocss import ParetoColumnSelection as ParetoColumnSelection
    from exactsel_heuristics.poss import ParetoOptimization as ParetoOptimization
    from exactsel_heuristics.pposs import AsynchronousParetoOptimization as AsynchronousParetoOptimization
    from exactsel_heuristics.pposs import ParallelParetoOptimization as ParallelParetoOptimization
    from exactsel_heuristics.rfe import RecursiveFeatureElimination as RecursiveFeatureElimination
    from exactsel_heuristics.swap import SwapLocalSearch as SwapLocalSearch
    from exactsel_heuristics.two_stage import TwoStageColumnSelection as TwoStageColumnSelection


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'exactsel_heuristics' has no attribute '{name}'")
    value = getattr(import_module(f"exactsel_heuristics.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
