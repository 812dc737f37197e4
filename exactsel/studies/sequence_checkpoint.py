"""Runs of a problem sequence with a checkpoint, begun or resumed: :func:`run_saved`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactsel import clock
from exactsel.errors import InputError, OutputWarning, option, warn
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.events import IncumbentFound, LowerBoundRaised
from exactsel.search.layout import refusing_damage
from exactsel.search.pool import Executor
from exactsel.solving.api import solve_beside
from exactsel.solving.checkpoint_shapes import check_begun, check_saved
from exactsel.solving.checkpointing import Pace, check_about, check_in_shards, check_what, described, settings_now
from exactsel.solving.choose import make
from exactsel.solving.problem_arguments import problem_asked
from exactsel.solving.result import Result
from exactsel.solving.run import Callback, Files, only
from exactsel.solving.sequence_status import COURSE_PROGRESS
from exactsel.solving.settings import Settings
from exactsel.solving.stored import from_stored
from exactsel.studies.pool_search import SolutionPool
from exactsel.studies.sequence import ProblemSequence, Reach, Step, key_of, run
from exactsel.studies.sequence_file import LISTING, SequenceFile, check_values, pool_parts, pool_plain, record_of
from exactsel.studies.sequence_shapes import COURSE, check_records
from exactsel.studies.solution_pool import NearOptimal, ResumablePool, list_of, list_on
from exactsel.to_plain import finite

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem

WATCHING = ("callback", "on_incumbent", "on_bound")
"""Arguments of a search of a saved sequence besides its settings and the signals."""

Steps = list[dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """The options for a resumed sequence, None where they are not given."""

    tau: float | None = None
    share: float | None = None
    cap: int | None = None
    steps: Callable[[Steps], Steps] = lambda steps: steps
    """From the steps it has to those it shall have."""


def run_saved(sequence: ProblemSequence, files: Files, what: str, request: Asked | None = None) -> ProblemSequence:
    """Run a sequence with a checkpoint, and return it; with ``request`` it continues that of ``files.resume``.

    Parameters
    ----------
    what : str
        The command that continues it.

    Raises
    ------
    InputError
        For options no file can keep, and a file that cannot be written, or is not that of this sequence.
    """
    _check_options(sequence, files)
    file = _begun(sequence, files, what) if request is None else _taken_up(sequence, files, what, request)
    try:
        with sequence.workers.engaged() as executor:
            run(sequence, _InFile(sequence, file, files, None if executor == "serial" else executor))
        done = all(step.result is not None and step.result.reached for step in sequence.steps)
        lists_done = sequence.reach is None or all(
            step.near is not None and step.near.complete for step in sequence.steps
        )
        if not file.lost:
            with _warning_if_lost():
                file.end("interrupted" if sequence.interrupted else "complete" if done and lists_done else "limits")
    finally:
        file.close()
    return sequence


def _check_options(sequence: ProblemSequence, files: Files) -> None:
    """Refuse what a file cannot keep."""
    options = {name: value for name, value in sequence.options.items() if name not in (*WATCHING, "signals")}
    for name in ("record", "details", "trace", "start", "proof"):
        if options.pop(name, None):
            raise InputError(f"{name} is given, but searches that share a checkpoint are saved without; leave one out.")
    problem_asked(sequence.problem, None, None, options)
    checkpoint, other = files.checkpoint, files.resume
    if checkpoint is not None and other is not None and os.path.abspath(checkpoint) != os.path.abspath(other):
        raise InputError("a search continues in the checkpoint it resumes from; leave the other one out, or copy it.")


def _begun(sequence: ProblemSequence, files: Files, what: str) -> SequenceFile:
    """A new file for a sequence."""
    assert files.checkpoint is not None
    records = [record_of(step.changes) for step in sequence.steps]
    problem = sequence.problem.replace(**sequence.steps[0].changes) if sequence.steps[0].changes else sequence.problem
    request = {"heuristics": "heuristics" in sequence.settings, **_reach_plain(sequence.reach)}
    about = described(problem, Settings(**sequence.settings), what)
    about["course"] = {"records": records, "asked": request}
    return SequenceFile(Checkpoint.begin(files.checkpoint, about), records, request)


def _taken_up(sequence: ProblemSequence, files: Files, what: str, request: Asked) -> SequenceFile:
    """The file of a resumed sequence; its steps become those of the sequence."""
    assert files.resume is not None
    path, checkpoint = Path(files.resume), Checkpoint.open(files.resume)
    try:
        about, saved = checkpoint.about(), checkpoint.saved()
        with refusing_damage():
            check_what(path, about, what)
            check_begun(path, about, course=COURSE)
            check_records(path, about["course"], [])
            if saved is not None:
                check_saved(path, saved, course=COURSE, progress=COURSE_PROGRESS)
                check_records(path, saved["course"], saved["chunks"])
            check_about(path, sequence.problem, {**about, "problem_hash": sequence.problem.hash}, what)
            first = about["course"]["records"][0]["changes"]
            check_about(path, sequence.problem.replace(**first) if first else sequence.problem, about, what)
            course = about["course"] if saved is None else saved["course"]
            before = dict(about["settings"])
            sequence.options = _options_now(path, sequence, before, course["asked"]["heuristics"])
            check_in_shards(path, sequence.workers.asked, sequence.options["shard"])
            sequence.reach = _reach_now(path, course["asked"], request)
            seconds = 0.0 if saved is None else float(saved["progress"]["seconds"])
        if saved is not None:
            for _ in checkpoint.spooled():  # nothing, but what follows is counted on from it
                pass
        checkpoint.go_on()
        course["asked"].update(_reach_plain(sequence.reach))
        file = SequenceFile(checkpoint, course["records"], course["asked"], seconds)
        with refusing_damage():
            file.collect()
            _steps_now(sequence, file, request)
        return file
    except BaseException:
        checkpoint.close()
        raise


def _options_now(
    path: Path, sequence: ProblemSequence, before: Mapping[str, Any], own_heuristics: bool
) -> dict[str, Any]:
    """Those of the file with what is said again."""
    overrides = sequence.settings
    settings = settings_now(path, before, overrides).as_dict()
    if not own_heuristics:
        del settings["heuristics"]
    return {**settings, **{name: value for name, value in sequence.options.items() if name not in settings}}


def _reach_plain(reach: Reach | None) -> dict[str, Any]:
    if reach is None:
        return {"tau": None, "share": None, "cap": None}
    return {"tau": reach.tau, "share": reach.share, "cap": reach.cap}


def _reach_now(path: Path, before: Mapping[str, Any], request: Asked) -> Reach | None:
    """What is listed: the same as before, or for the first time, or with another cap."""
    for name, called in (("tau", "tau"), ("share", "near")):
        now, then = getattr(request, name), before[name]
        if now is not None and then is not None and now != then:
            raise InputError(f"{path} was begun with {option(called, then)}; leave it out, or start again.")
    tau, share = before["tau"], request.share if before["share"] is None else before["share"]
    if tau is None and share is None:
        return None
    cap = request.cap if request.cap is not None else before["cap"]
    return Reach(tau, share) if cap is None else Reach(tau, share, cap)


def _steps_now(sequence: ProblemSequence, file: SequenceFile, request: Asked) -> None:
    """Make the steps of a file, and those that are added to them, the steps of the sequence."""
    records, problem = {key_of(record["changes"]): record for record in file.records}, sequence.problem
    steps = request.steps([record["changes"] for record in file.records])
    file.records[:] = [records.get(key_of(changes)) or record_of(changes) for changes in steps]
    sequence.steps = [Step(record["changes"]) for record in file.records]
    for place, (step, record) in enumerate(zip(sequence.steps, file.records, strict=True)):
        problem = problem.replace(**step.changes) if step.changes else problem
        saved = file.pool_at(place, problem)
        if record["result"] is None:
            continue
        step.result = from_stored(record["result"], problem)
        if saved is not None:
            pool, termination = saved
            check_values(pool, step.result, problem)
            step.near = _kept(list_of(step.result, pool, termination), pool)


def _kept(listing: NearOptimal, pool: SolutionPool) -> NearOptimal:
    """The list with its state, which belongs to the file it is saved in."""

    def go_on(_: NearOptimal, limits: dict[str, Any]) -> NearOptimal:
        raise InputError("this list is part of a path that is saved in a file; resume the path instead.")

    return replace(listing, _kept=ResumablePool(pool, go_on))


class _InFile:
    """Keeps results and states in a file, and in memory only those of the current step."""

    def __init__(self, sequence: ProblemSequence, file: SequenceFile, files: Files, executor: Executor | None) -> None:
        self._file, self._every, self._executor = file, files.every, executor
        options = sequence.options
        self.signals: Sequence[int] = options.get("signals", (signal.SIGINT,))
        callbacks = [options.get(name) for name in WATCHING]
        self._watching: list[Callback | None] = [
            callbacks[0], only(IncumbentFound, callbacks[1]), only(LowerBoundRaised, callbacks[2]),
        ]  # fmt: skip

    def solve(self, place: int, problem: SubsetProblem, start: Sequence[int], settings: Settings) -> Result:
        """The result of a step's search."""
        file = self._file
        file.place = place
        state = file.search_at(place, problem, make("frontiers", settings.frontier))
        result = solve_beside(
            problem, settings, file, not file.lost, self._every, self._watching,
            state=state, start=start, signals=self.signals, executor=self._executor,
        )  # fmt: skip
        if not file.lost:
            with _warning_if_lost():
                file.settle(result)
        return result

    def fill(self, place: int, result: Result, pool: SolutionPool, cap: int, settings: Settings) -> NearOptimal:
        """The list of a step, which is saved every so often."""
        file, pace = self._file, Pace(self._every)
        file.place = place

        def save() -> None:
            if file.lost or not (pace.save_due or pace.note_due):
                return
            with _warning_if_lost():
                if pace.save_due:
                    began = clock.now()
                    _save(file, pool, "interrupted", ended=False)
                    pace.saved(began)
                else:
                    file.note(_progress(pool))
                    pace.noted()

        listing = list_on(result, pool, cap, settings, self.signals, save)
        if not file.lost:
            with _warning_if_lost():
                _save(file, pool, listing.termination, ended=True)
        return _kept(listing, pool)


def _save(file: SequenceFile, pool: SolutionPool, termination: str, ended: bool) -> None:
    plain = pool_plain(pool, termination)
    file.keep(LISTING, pool_parts(pool), _progress(pool), ended, plain=plain)


def _progress(pool: SolutionPool) -> dict[str, Any]:
    """The progress of a pool, for reports."""
    return {"regions": pool.regions, "open": len(pool.open), "found": len(pool.found), "best": finite(pool.best)}


@contextmanager
def _warning_if_lost() -> Iterator[None]:
    """Where the disk is full, the sequence continues unsaved, and a warning says so."""
    try:
        yield
    except InputError as error:
        warn(f"{error} The search continues without it.", OutputWarning)
