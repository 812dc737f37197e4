"""Checkpoints of a search: saving its state, and resuming from it.

What may change from one run to the next are limits: time, nodes, memory, threads and the tolerance. All other settings
decide which tree is searched, so they come from the checkpoint; a request for another value is refused.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from exactsel import clock
from exactsel._version import __version__
from exactsel.errors import InputError, OutputError, OutputWarning, either, option, warn
from exactsel.problem.interface import SubsetProblem
from exactsel.proofs.statement import statement_of
from exactsel.proofs.verify import is_proof
from exactsel.proofs.writer import ProofWriter
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.checkpoint_parts import Lasting
from exactsel.search.events import Event, Finished, RoundEnded, Started
from exactsel.search.pool import SHARD
from exactsel.search.saved import chunks_of, state_from_parts, state_parts
from exactsel.search.spilling import Room, Spilling, TemporaryNodeStore
from exactsel.search.state import SearchState
from exactsel.solving.checkpoint_shapes import HOW, check_begun, check_saved
from exactsel.solving.choose import make
from exactsel.solving.settings import Settings, settings_of
from exactsel.to_plain import finite, writable

EVERY = 30.0
"""Seconds between checkpoints, unless it is said otherwise."""

LEAST_PAUSE = 50.0
"""Times what a checkpoint took must pass before the next one: they cost less than a fiftieth of the search."""

NOTED_EVERY = 1.0
"""Seconds between notes of how far the search is."""

LIMITS = ("time_limit", "node_limit", "memory_limit", "threads", "eps", "rel_eps")
"""Settings that may change when a search resumes ..."""

OF_ONE_RUN = ("time_limit", "node_limit", "threads")
"""... and those of them that a new run does not take over from the one before."""

SOLVE = "solve"
"""The command that continues a checkpoint of one search."""

DESCRIBED = (
    "problem",
    "n",
    "d",
    "k",
    "loss",
    "loss_parameters",
    "lam",
    "intercept",
    "scale",
    "weights",
    "force_in",
    "force_out",
)
"""What of a problem to compare, in words, where its hash is another one."""


@dataclass(frozen=True)
class SearchMode:
    """The options of a search besides its settings that decide on its tree."""

    listing: bool
    shown: bool
    details: bool

    def as_dict(self) -> dict[str, bool]:
        """For a file."""
        return {"listing": self.listing, "shown": self.shown, "details": self.details}


Continue = Callable[[Any, dict[str, Any]], Any]
"""Of a result and the new limits by name: the result of the search run further."""


@dataclass(frozen=True)
class Kept:
    """A search in memory that can be continued."""

    problem: SubsetProblem
    state: SearchState
    settings: Settings
    how: SearchMode
    continued: Continue | None = None
    """Runs it further within new limits, from a result of it; None where the search is one of several."""


@dataclass(frozen=True)
class ResumedSearch:
    """A search taken from a checkpoint."""

    checkpoint: Checkpoint
    settings: Settings
    how: SearchMode
    state: SearchState | None
    """None where the run ended before there was any."""
    proof: str | None
    """The file its proof is for."""
    proof_state: Mapping[str, Any] | None
    seconds: float
    """What the runs before took."""


class Store(Room, Protocol):
    """Where a search is saved, and open nodes go that memory has no room for: a checkpoint, or a place in one."""

    def save(
        self, parts: Iterable[bytes | Lasting], spooled: Mapping[str, bytes], about: Mapping[str, Any],
        chunks: Iterable[int] = (),
    ) -> None:  # fmt: skip
        """Replace the state by another one, see :meth:`exactsel.search.checkpoint.Checkpoint.save`."""
        ...

    def note(self, progress: Mapping[str, Any]) -> None:
        """Report the progress of the search to observers."""
        ...


class Pace:
    """The intervals between checkpoints, and between progress reports.

    Parameters
    ----------
    every : float
        Seconds between two states saved, at least; 0 for all of them.
    """

    def __init__(self, every: float) -> None:
        self._every, self._due, self._note_due = every, 0.0, 0.0

    @property
    def save_due(self) -> bool:
        """Whether it is time to save."""
        return clock.now() >= self._due

    @property
    def note_due(self) -> bool:
        """Whether a progress report is due."""
        return clock.now() >= self._note_due

    def saved(self, began: float) -> None:
        """A state was saved, which began at a time of the clock."""
        took = clock.now() - began
        self._due = clock.now() + (max(self._every, LEAST_PAUSE * took) if self._every else 0.0)
        self.noted()

    def noted(self) -> None:
        """The progress of the search was reported."""
        self._note_due = clock.now() + NOTED_EVERY


class Checkpointer:
    """An observer that saves the search every so many seconds, and when it ends.

    Where the disk is full, the search continues unsaved, and a warning says so.
    """

    def __init__(self, checkpoint: Store, writer: ProofWriter | None, every: float, before: float = 0.0) -> None:
        self.checkpoint: Store | None = checkpoint
        self._writer, self._pace, self._before = writer, Pace(every), before
        self._began = time.perf_counter()
        self._proof: dict[str, Any] | None = None

    def __call__(self, event: Event, state: SearchState) -> None:
        """Save, or report the progress, where that is due."""
        if self.checkpoint is None or not isinstance(event, Started | RoundEnded | Finished):
            return
        ended = event.termination if isinstance(event, Finished) else None
        try:
            if not isinstance(event, RoundEnded) or self._pace.save_due:
                self._save(self.checkpoint, state, ended)
            elif self._pace.note_due:
                self.checkpoint.note(self._progress(state, None))
                self._pace.noted()
        except InputError as error:  # a full disk, or a file that another process took over or destroyed
            warn(f"{error} The search continues without it.", OutputWarning)
            self.close()

    def _save(self, checkpoint: Store, state: SearchState, ended: str | None) -> None:
        began, progress, spooled = clock.now(), self._progress(state, ended), {}
        if self._writer is not None:
            growth = self._writer.growth()
            if growth is None:
                raise OutputError("the proof cannot be written, and so the search cannot be saved with it.")
            self._proof, spooled = growth.state, growth.spooled
        chunks = chunks_of(state, checkpoint)
        checkpoint.save(state_parts(state), spooled, {"proof": self._proof, "progress": progress}, chunks)
        checkpoint.note(progress)
        self._pace.saved(began)

    def _progress(self, state: SearchState, ended: str | None) -> dict[str, Any]:
        model = state.shown
        return {
            "seconds": self._before + time.perf_counter() - self._began, "rounds": state.rounds, "nodes": state.nodes,
            "open": state.open_count, "lower": finite(state.lower), "upper": finite(state.upper),
            "support": list(model.fit.support), "source": model.source, "valid_for": state.valid_for, "ended": ended,
            "tree_hash": state.tree_hash,
        }  # fmt: skip

    def close(self) -> None:
        """Nothing is saved any more; the file stays open, since there may be open nodes in it."""
        self.checkpoint = None


def begin(
    path: str | os.PathLike[str], problem: SubsetProblem, settings: Settings, how: SearchMode,
    proof: str | os.PathLike[str] | None, **more: object,
) -> Checkpoint:  # fmt: skip
    """A new checkpoint of a search that is about to begin; ``more`` is said besides."""
    target = None if proof is None else os.path.abspath(proof)
    entries = described(problem, settings, SOLVE) | {"how": how.as_dict(), "proof": target}
    return Checkpoint.begin(path, entries | more)


def described(problem: SubsetProblem, settings: Settings, what: str) -> dict[str, Any]:
    """The checkpoint's description of the problem and settings; ``what`` is the command that continues it."""
    return {
        "what": what, "version": __version__, "problem_hash": problem.hash, "problem": _described(problem),
        "names": problem.describe()["feature_names"],
        "settings": {name: writable(value) for name, value in settings.as_dict().items()}, "proof": None,
        "began": time.time(),
    }  # fmt: skip


def resume(
    path: str | os.PathLike[str], problem: SubsetProblem, overrides: Mapping[str, Any],
    proof: str | os.PathLike[str] | None, how: SearchMode,
) -> ResumedSearch:  # fmt: skip
    """Take a search from its checkpoint; ``overrides`` are the settings of this call, ``how`` the other options.

    Raises
    ------
    InputError
        For another problem, settings that cannot change, and a file that is damaged, of another version, or being
        written.
    """
    checkpoint = Checkpoint.open(path)
    try:
        about, saved = checkpoint.about(), checkpoint.saved()
        check_what(Path(path), about, SOLVE)
        check_begun(Path(path), about, how=HOW)
        check_about(Path(path), problem, about, SOLVE)
        if saved is not None:
            check_saved(Path(path), saved)
        settings = settings_now(Path(path), about["settings"], overrides)
        now = SearchMode(**about["how"])
        if proof is not None and about["proof"] is None:
            raise InputError(
                f"{path} was begun without a proof, so none can be had; leave {option('proof')} out, or start again."
            )
        if (now.listing and not how.listing) or (how.details and not now.details):
            raise InputError(
                f"{path} was begun without a trace, a recheck and a record of events; leave them out, or start again."
            )
        frontier, statement = make("frontiers", settings.frontier), statement_of(problem)
        state = None
        if saved is not None:
            with closing(checkpoint.parts()) as parts:
                state = state_from_parts(parts, problem, frontier, statement, checkpoint, saved["chunks"])
        target = _proof_named(Path(path), about["proof"]) if proof is None else os.fspath(proof)
        return ResumedSearch(
            checkpoint, settings, now, state, target, None if saved is None else saved["proof"],
            0.0 if saved is None else float(saved["progress"]["seconds"]),
        )  # fmt: skip
    except BaseException:
        checkpoint.close()
        raise


def take_up(going_on: ResumedSearch, writer: ProofWriter | None) -> None:
    """Begin to write where a search is resumed: to its checkpoint, and to its proof."""
    if going_on.state is not None:
        with closing(going_on.checkpoint.spooled()) as spooled:
            if writer is not None and going_on.proof_state is not None:
                writer.restore(going_on.proof_state, spooled)
            for _ in spooled:  # read to the end all the same: what follows is appended
                pass
    going_on.checkpoint.go_on()


def take_along(state: SearchState) -> None:
    """Let a search in memory continue without its closed checkpoint: open nodes that are there are copied.

    Raises
    ------
    InputError
        Where the file is missing, or another process has continued it.
    """
    frontier = state.frontier
    if not (isinstance(frontier, Spilling) and isinstance(frontier.room, Checkpoint)):
        return
    path, room = frontier.room.path, TemporaryNodeStore()
    if not frontier.chunks:
        return frontier.move_to(room, room)
    try:
        with closing(Checkpoint.open(path, writing=False)) as checkpoint:
            frontier.move_to(room, checkpoint)
    except OutputError:  # the folder for temporary files is full
        raise
    except InputError:
        raise InputError(
            f"open nodes of this search are in {path}, which is gone, or another search has continued it; "
            f"resume it with resume={str(path)!r} where it is, or solve the problem again, with start=result.support."
        ) from None


def _described(problem: SubsetProblem) -> dict[str, Any]:
    entries = {name: writable(value) for name, value in problem.describe().items() if name in DESCRIBED}
    plain: dict[str, Any] = json.loads(json.dumps(entries, allow_nan=False))
    return plain


def check_what(path: Path, about: Mapping[str, Any], what: str) -> None:
    """:class:`InputError` where a checkpoint is one of another command than ``what``."""
    origin = about.get("what", SOLVE)
    if origin != what:
        raise InputError(
            f"{path} was begun by {command_called(origin)}; resume it by that command, not by {command_called(what)}."
        )


def command_called(what: str) -> str:
    """What writes checkpoints of a kind, as the reader calls it."""
    if what == "near":
        return either("exactsel.near_optimal", "'exactsel best --criterion objective'")
    return either("exactsel.solve_path" if what == "path" else "exactsel.solve", f"'exactsel {what}'")


def _proof_named(path: Path, proof: str | None) -> str | None:
    """The file a checkpoint says its proof is for; a file that is something else is not replaced on its word."""
    if proof is None or not os.path.lexists(proof) or is_proof(Path(proof)):
        return proof
    raise InputError(
        f"{path} names {proof} as the file for its proof, but that is something else; give the file with "
        f"{option('proof')}, or "
        f"move away what is there."
    )


def check_about(path: Path, problem: SubsetProblem, about: Mapping[str, Any], what: str) -> None:
    """:class:`InputError` where a checkpoint is one of another command than ``what``, or about another problem."""
    check_what(path, about, what)
    if about["problem_hash"] == problem.hash:
        return
    before, now = about["problem"], _described(problem)
    other = next((name for name in DESCRIBED if before.get(name) != now.get(name)), None)
    if other is None:
        raise InputError(f"{path} is about other data; give the instance it was begun with, or begin a new search.")
    raise InputError(
        f"{path} is about {other.replace('_', ' ')} = {before.get(other)}, but it is {now.get(other)} here; only "
        f"limits may change, so give what it was begun with, or begin a new search."
    )


def check_in_shards(path: str | os.PathLike[str], executor: bool, shard: int | None) -> None:
    """:class:`InputError` where an ``executor`` is to continue a search that has no shards."""
    if executor and shard is None:
        raise InputError(
            f"{os.fspath(path)} was begun without an executor, and so not in shards, which decide on the tree; leave "
            f"{option('executor')} out, or begin a new search with {option('shard', SHARD)}."
        )


def settings_now(path: Path, before: Mapping[str, Any], overrides: Mapping[str, Any]) -> Settings:
    """Those of the checkpoint with other limits; :class:`InputError` where something else would change."""
    fixed = {name: before[name] for name in settings_of() if name not in LIMITS}
    request = Settings(**overrides).as_dict()
    for name, value in fixed.items():
        if name in overrides and writable(request[name]) != value:
            raise InputError(
                f"{path} was begun with {name} = {value}, and what decides on the tree stays; leave "
                f"{option(name)} out, or begin a new search."
            )
    limits = {name: before[name] for name in LIMITS if name not in OF_ONE_RUN}
    limits["memory_limit"] = math.inf if limits["memory_limit"] is None else limits["memory_limit"]
    return Settings(**{**fixed, **limits, **overrides})
