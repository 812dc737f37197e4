"""Say that kernels are compiled, and let other processes help."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from exactsel.cli.talk import say_line

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

WORTH_A_LINE = 1.0
"""Seconds a kernel takes to be compiled."""


def tell_of_compiling(problem: SubsetProblem, quiet: bool = False, searches: bool = True) -> None:
    """Say on stderr what is compiled for a problem from now on.

    Parameters
    ----------
    problem : SubsetProblem
    quiet : bool
        Say nothing.
    searches : bool
        Whether the command will need the kernels of a search, which other processes can then compile.
    """
    from exactsel import _jit

    compiling = Compiling(problem, quiet, searches)
    _jit.tell_of_compiling(compiling.begun, compiling.ended)


class Compiling:
    """What :func:`tell_of_compiling` says, and its parameters."""

    def __init__(self, problem: SubsetProblem, quiet: bool, searches: bool) -> None:
        self._problem, self._quiet, self._searches = problem, quiet, searches
        self._begun = False

    def begun(self, _name: str) -> None:
        """The first of them makes it worth while to let others help."""
        if self._begun:
            return
        self._begun = True
        from exactsel._jit.cache_key import class_key

        loss = self._problem.objective.loss
        if loss is not None and not type(loss).__module__.startswith("exactsel."):
            often = "once" if class_key(type(loss)) else "in every process, as it cannot be kept"
            self._say(f"compiling kernels for {loss.name} loss ({often}) ...")
            return
        from exactsel.studies import background_compile

        beside = " and ".join(background_compile.begin(self._problem)) if self._searches else ""
        background = f", {beside} in the background" if beside else ""
        self._say(f"compiling kernels, once (this can take a minute{background}) ...")

    def ended(self, name: str, seconds: float) -> None:
        """Say what has taken its time."""
        if self._begun and seconds >= WORTH_A_LINE:
            self._say(f"  {name} {seconds:.1f} s")

    def _say(self, text: str) -> None:
        if not self._quiet:
            # no process reads any more, and the search continues all the same
            with contextlib.suppress(OSError, ValueError):
                say_line(text)
