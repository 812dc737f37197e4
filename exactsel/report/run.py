"""The report of one solve: a self-contained HTML page; and the one door to the pages of best models and paths.

A problem given to :func:`run_page` is analysed once more for the neighbourhood of the answer; the rest of the reports
draws what it is given.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from exactsel._version import __version__
from exactsel.files import NamedFile, refuse_shared, write_bytes
from exactsel.observers.history import History
from exactsel.problem.interface import SubsetProblem
from exactsel.report.answer import answer_section, discarded_section, headline, model_section
from exactsel.report.best_page import best_page
from exactsel.report.page import page, paragraph
from exactsel.report.path_page import path_page
from exactsel.report.progress import progress_section
from exactsel.report.sensitivity import surroundings_section
from exactsel.report.settings import commands_section, settings_section
from exactsel.solving.result import Result
from exactsel.studies.best_models import BestModels
from exactsel.studies.criteria import Compared
from exactsel.studies.path import SolutionPath
from exactsel.studies.sensitivity import Sensitivity, surroundings


def run_page(
    result: Result,
    problem: SubsetProblem | None = None,
    *,
    command: str | None = None,
    verify: str | None = None,
    signals: Sequence[int] = (signal.SIGINT,),
) -> str:
    """The report as HTML text.

    Parameters
    ----------
    result : Result
    problem : Problem or ColumnSubsetProblem, optional
        The problem solved; with it the report also says what becomes of the objective without each chosen column, and
        which columns the models close to the best have in common. That list may take some seconds.
    command : str, optional
        The command that repeats the run, when it came from the command line.
    verify : str, optional
        The command that checks the proof, when one was written.
    signals : sequence of int
        Signals that end the listing of close models (main thread only).
    """
    sensitivity = None if problem is None else surroundings(problem, result, signals)
    return drawn(result, sensitivity, command=command, verify=verify)


def drawn(
    result: Result, sensitivity: Sensitivity | None = None, *, command: str | None = None, verify: str | None = None
) -> str:
    """The report as HTML text, of what is known already; see :func:`run_page`."""
    history = result.history or History()
    parts = [
        answer_section(result),
        model_section(result),
        progress_section(result, history, None if sensitivity is None else sensitivity.plain),
        discarded_section(result, history),
        "" if sensitivity is None else surroundings_section(result, sensitivity),
        settings_section(result),
        commands_section(command, verify),
        f"<footer>{paragraph(f'Written by exactsel {__version__}.')}</footer>",
    ]
    return page(headline(result), "\n".join(part for part in parts if part))


def write_report(
    path: str | Path,
    result: Result | BestModels | SolutionPath | Compared,
    problem: SubsetProblem | None = None,
    *,
    command: str | None = None,
    verify: str | None = None,
    signals: Sequence[int] = (signal.SIGINT,),
) -> None:
    """Write the page of one solve, of the best models over all sizes, or of a path; see :func:`run_page`.

    Of best models and paths the page shows what it is given: ``problem``, ``verify`` and ``signals`` are not used.
    """
    if isinstance(result, Result):
        inputs = [] if result.proof is None else [NamedFile("the result's proof", result.proof)]
        refuse_shared([NamedFile("the report", path)], inputs)
        text = run_page(result, problem, command=command, verify=verify, signals=signals)
    elif isinstance(result, BestModels):
        text = best_page(result, command=command)
    else:
        text = path_page(Compared(result) if isinstance(result, SolutionPath) else result, command=command)
    write_bytes(str(path), text.encode())
