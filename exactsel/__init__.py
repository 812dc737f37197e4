"""exactsel: subset selection solved exactly, with a certified gap.

    import exactsel
    problem = exactsel.load("instances/diabetes.npz")
    print(exactsel.solve(problem))

Names are imported when first used, so that ``import exactsel`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exactsel._version import __version__

_HOMES = {
    "Problem": "exactsel.problem.regression",
    "ColumnSubsetProblem": "exactsel.problem.column_subset",
    "GroupedProblem": "exactsel.problem.grouped",
    "boxed": "exactsel.problem.boxed",
    "Instance": "exactsel.data.instance",
    "load": "exactsel.data",
    "gram": "exactsel.data.gram",
    "solve": "exactsel.solving.api",
    "solve_path": "exactsel.studies.path",
    "SolutionPath": "exactsel.studies.path",
    "Search": "exactsel.solving.solver",
    "Settings": "exactsel.solving.settings",
    "ProgressLog": "exactsel.observers.log",
    "solve_targets": "exactsel.studies.targets",
    "TargetModels": "exactsel.studies.targets",
    "certify": "exactsel.studies.certify",
    "compare": "exactsel.studies.compare",
    "Comparison": "exactsel.studies.compare",
    "cross_validate": "exactsel.studies.crossval",
    "ValidationErrors": "exactsel.studies.crossval",
    "Certified": "exactsel.studies.certify",
    "sweep": "exactsel.studies.sweeps",
    "Sweep": "exactsel.studies.sweeps",
    "verify": "exactsel.proofs.verify",
    "Model": "exactsel.problem.model",
    "best_model": "exactsel.studies.best",
    "BestModels": "exactsel.studies.best_models",
    "near_optimal": "exactsel.studies.near_optimal",
    "NearOptimal": "exactsel.studies.solution_pool",
    "Result": "exactsel.solving.result",
    "write_report": "exactsel.report.run",
    "Claim": "exactsel.solving.outcome",
    "Termination": "exactsel.solving.outcome",
    "Quadratic": "exactsel.losses",
    "Huber": "exactsel.losses",
    "Logistic": "exactsel.losses",
    "Poisson": "exactsel.losses",
    "SquaredHinge": "exactsel.losses",
    "ExactselError": "exactsel.errors",
    "ExactselWarning": "exactsel.errors",
    "DataWarning": "exactsel.errors",
    "InputError": "exactsel.errors",
    "UnsupportedError": "exactsel.errors",
}

_MODULES = {"datasets": "exactsel.datasets", "heuristics": "exactsel.studies.heuristics"}

__all__ = [
    "BestModels",
    "Certified",
    "Claim",
    "ColumnSubsetProblem",
    "Comparison",
    "DataWarning",
    "ExactselError",
    "ExactselWarning",
    "GroupedProblem",
    "Huber",
    "InputError",
    "Instance",
    "Logistic",
    "Model",
    "NearOptimal",
    "Poisson",
    "Problem",
    "ProgressLog",
    "Quadratic",
    "Result",
    "Search",
    "Settings",
    "SolutionPath",
    "SquaredHinge",
    "Sweep",
    "TargetModels",
    "Termination",
    "UnsupportedError",
    "ValidationErrors",
    "__version__",
    "best_model",
    "boxed",
    "certify",
    "compare",
    "cross_validate",
    "datasets",
    "gram",
    "heuristics",
    "load",
    "near_optimal",
    "solve",
    "solve_path",
    "solve_targets",
    "sweep",
    "verify",
    "write_report",
]

if TYPE_CHECKING:
    from exactsel import datasets
    from exactsel.data import load
    from exactsel.data.gram import gram
    from exactsel.data.instance import Instance
    from exactsel.errors import DataWarning, ExactselError, ExactselWarning, InputError, UnsupportedError
    from exactsel.losses import Huber, Logistic, Poisson, Quadratic, SquaredHinge
    from exactsel.observers.log import ProgressLog
    from exactsel.problem.boxed import boxed
    from exactsel.problem.column_subset import ColumnSubsetProblem
    from exactsel.problem.grouped import GroupedProblem
    from exactsel.problem.model import Model
    from exactsel.problem.regression import Problem
    from exactsel.proofs.verify import verify
    from exactsel.report.run import write_report
    from exactsel.solving.api import solve
    from exactsel.solving.outcome import Claim, Termination
    from exactsel.solving.result import Result
    from exactsel.solving.settings import Settings
    from exactsel.solving.solver import Search
    from exactsel.studies import heuristics
    from exactsel.studies.best import best_model
    from exactsel.studies.best_models import BestModels
    from exactsel.studies.certify import Certified, certify
    from exactsel.studies.compare import Comparison, compare
    from exactsel.studies.crossval import ValidationErrors, cross_validate
    from exactsel.studies.near_optimal import near_optimal
    from exactsel.studies.path import SolutionPath, solve_path
    from exactsel.studies.solution_pool import NearOptimal
    from exactsel.studies.sweeps import Sweep, sweep
    from exactsel.studies.targets import TargetModels, solve_targets


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'exactsel' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
