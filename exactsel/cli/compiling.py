"""Say that kernels are compiled, and let other processes help."""

from __future__ import annotations

from exactsel.problem.interface import SubsetProblem
from exactsel.report.log import ProgressLog

WORTH_A_LINE = 1.0
"""Seconds a kernel takes to be compiled."""


class Compiling:
    """Tells a log of the kernels a problem needs; :func:`exactsel._jit.tell_of_compiling` calls its methods."""

    def __init__(self, problem: SubsetProblem, log: ProgressLog) -> None:
        self._problem, self._log = problem, log
        self._begun = False

    def begun(self, _name: str) -> None:
        """The first of them makes it worth while to let others help."""
        if self._begun:
            return
        self._begun = True
        loss = None if self._problem.objective is None else self._problem.objective.loss
        if loss is not None and not type(loss).__module__.startswith("exactsel."):
            self._log.note(f"compiling kernels for {loss.name} loss (in every process, as it is not built in) ...")
            return
        from exactsel.studies import ahead

        beside = " and ".join(ahead.begin(self._problem))
        self._log.note(f"compiling kernels, once ({f'{beside} beside' if beside else 'this can take a minute'}) ...")

    def ended(self, name: str, seconds: float) -> None:
        """Say what has taken its time."""
        if self._begun and seconds >= WORTH_A_LINE:
            self._log.note(f"  {name} {seconds:.1f} s")
