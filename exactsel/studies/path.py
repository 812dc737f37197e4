"""Many related problems: the best model of every size, or for every ridge weight, each with its own certified gap."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from exactsel.arguments import numbers, whole_numbers
from exactsel.errors import InputError, UnsupportedError
from exactsel.observers.lines import Say, sizes_said, teller
from exactsel.problem.capabilities import COEFFICIENTS
from exactsel.problem.interface import SubsetProblem, is_problem
from exactsel.solving.api import OPTIONS
from exactsel.solving.checkpointing import EVERY
from exactsel.solving.executors import Workers, in_shards
from exactsel.solving.outcome import Termination
from exactsel.solving.problem_arguments import Gaps, gaps_asked, problem_asked
from exactsel.solving.result import Result
from exactsel.solving.run import Files
from exactsel.studies.criteria import Compared
from exactsel.studies.penalty_path import PenaltyRange, penalty_ranges
from exactsel.studies.sequence import ProblemSequence, Reach, Step, key_of, limit, list_at, run_in_memory
from exactsel.studies.sequence_checkpoint import Asked, run_saved
from exactsel.studies.solution_pool import CAP, NearOptimal, check_near
from exactsel.to_plain import Readable, counted, html_line, html_table, html_view
from exactsel.types import IntArray, PathName

if TYPE_CHECKING:
    import pandas

    from exactsel.studies.crossval import ValidationErrors

USUAL_SIZES = 10
"""The largest size of data where none is given."""

_DIGITS = {"objective": ".9g", "gap": ".3g"}


@dataclass(frozen=True)
class ResumablePath:
    """The state a path resumes from: its problem sequence, with searches and lists, in a file where there is one."""

    sequence: ProblemSequence
    file: Path | None = None


@dataclass(frozen=True, repr=False)
class SolutionPath(Readable):
    """The results along a path, in the order solved: lam descending, and k ascending for each lam."""

    results: tuple[Result, ...]
    near: tuple[NearOptimal, ...] | None = None
    """For each result the models close to it, when they were requested."""
    near_share: float | None = None
    """How close: their objectives exceed the result's by at most this share of it."""
    validation: ValidationErrors | None = None
    """The held-out error of every size and ridge weight, where ``cv`` requests it."""
    _broken_off: bool = field(default=False, repr=False)
    """Whether the cross-validation was interrupted."""
    _kept: ResumablePath | None = field(default=None, repr=False, compare=False)
    """The state :meth:`resume` continues from; absent where the path comes from another process."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process has no state to resume from."""
        return {**vars(self), "_kept": None}

    def resume(self, *, k: int | None = None, **limits: object) -> SolutionPath:
        """Resume the path where it stopped: ``path.resume(time_limit=60)``, also with ``rel_eps=1e-9`` or ``k=12``.

        Searches with a gap continue from their open nodes, and lists from their open regions. Searches that have not
        begun start, and all others stay. Earlier limits no longer apply, apart from the cap; the tolerance stays unless
        you give another one. A path that was saved with ``checkpoint=`` continues in its file.

        Parameters
        ----------
        k : int, optional
            The new largest size; the path adds all sizes up to it.
        **limits
            eps, rel_eps, time_limit, node_limit, memory_limit, threads, cap where there are lists, and ``signals`` and
            ``callback`` as :func:`exactsel.solve_path` has them.

        Raises
        ------
        InputError
            Where the path has no state to resume, or another argument than a limit is given.
        """
        if self._kept is None:
            raise InputError(
                "this path has no state to resume, as it comes from elsewhere; solve it again, or save it with "
                "checkpoint=."
            )
        return _go_on(self._kept, k, limits)

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of :class:`exactsel.Settings` of the path, or of the file it was resumed from."""
        return {} if self._kept is None else self._kept.sequence.settings

    @property
    def reached(self) -> bool:
        """Whether the requested tolerance is proven for every problem."""
        return all(result.reached for result in self.results)

    def __repr__(self) -> str:
        return (
            f"<SolutionPath of {counted(len(self.results), 'problem')}, {'all' if self.reached else 'not all'} proven>"
        )

    def __str__(self) -> str:
        """One line a problem."""
        rows = [tuple(map(_title, self._head)), *self._rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(self._head) - 1)]
        lines = (zip(row, [*widths, 0], strict=True) for row in rows)
        return "\n".join("  ".join(f"{cell:<{width}}" for cell, width in line).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        proven = sum(result.reached for result in self.results)
        said = f"{counted(len(self.results), 'problem')}, {'all' if self.reached else f'{proven} of them'} proven"
        table = html_table(self._rows(), [*map(_title, self._head)])
        return html_view(html_line(said, strong=True, aside=not self.reached), table)

    @property
    def _head(self) -> list[str]:
        return list(dict.fromkeys(name for result in self.results for name in self._compared.line(result)))

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for line in map(self._compared.line, self.results):
            yield tuple(_cell(name, line.get(name)) for name in self._head)

    @property
    def complete(self) -> bool:
        """Whether every requested list of near-optimal models is complete."""
        return self.near is None or (len(self.near) == len(self.results) and all(n.complete for n in self.near))

    @property
    def interrupted(self) -> bool:
        """Whether the path was interrupted."""
        interruption = any(listing.termination == "interrupted" for listing in self.near or ())
        return (
            self._broken_off
            or interruption
            or any(result.termination is Termination.INTERRUPTED for result in self.results)
        )

    @property
    def time(self) -> float:
        """Total seconds, listings not counted."""
        return sum(result.time for result in self.results)

    @property
    def best(self) -> dict[str, Result]:
        """The result that each criterion prefers: ``aic``, ``bic``, ``ebic`` of a likelihood, ``cv_error`` and
        ``one_standard_error`` with a cross-validation.
        """
        return self._compared.best

    @property
    def penalty_ranges(self) -> tuple[PenaltyRange, ...]:
        """The path of P(x) + lam0 ||x||_0 over lam0: which of these models is best where, with its certified gap."""
        return penalty_ranges(self.results)

    @property
    def best_cv(self) -> Result:
        """The result with the smallest held-out error."""
        return self._validated("cv_error")

    @property
    def one_standard_error(self) -> Result:
        """The smallest model whose held-out error is within one standard error of the smallest (see
        :attr:`exactsel.ValidationErrors.one_standard_error`).
        """
        return self._validated("one_standard_error")

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame, one line a problem: k, lam, objective, gap, claim, the criteria there are, columns."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError("a DataFrame needs pandas; run: pip install pandas, or use as_dict().") from None
        return pandas.DataFrame([self._compared.line(result) for result in self.results])

    def _validated(self, name: str) -> Result:
        if self.validation is None:
            raise InputError("this path has no held-out errors; solve it with cv=5, or with one fold for each row.")
        return self.best[name]

    @property
    def _compared(self) -> Compared:
        return Compared(self, self.validation)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        results = [{**result.as_dict(), **self.alternatives(i)} for i, result in enumerate(self.results)]
        return {"results": results, "near_share": self.near_share, "time": self.time}

    def alternatives(self, place: int) -> dict[str, Any]:
        """The models close to one result, under ``near`` as in the JSON object; empty without lists."""
        if self.near is None:
            return {}
        return {"near": self.near[place].listed() if place < len(self.near) else None}


def solve_path(
    problem: SubsetProblem | object, y: ArrayLike | None = None, k: int | None = None, *,
    ks: Iterable[int] | None = None, lams: Iterable[float] | None = None, cv: object = None, near: float | None = None,
    cap: int | None = None, checkpoint: PathName | None = None, checkpoint_every: float = EVERY,
    resume: PathName | None = None, signals: Sequence[int] = (signal.SIGINT,), executor: object = None,
    workers: int | None = None, scheduler: str | None = None, verbose: int = 0, **options: object,
) -> SolutionPath:  # fmt: skip
    """Solve for several sizes and ridge weights on the same data: ``solve_path(X, y, k=8)``.

    Each problem starts from the model of the one before; every result is what :func:`exactsel.solve` would prove.

    Parameters
    ----------
    problem : problem; or array, sparse matrix or data frame (n, d)
        Data come with ``y``, as for :func:`exactsel.solve`.
    y, k : array (n,), int, optional
        Target of the data; the largest size, by default 10 or as many as there are columns.
    ks : iterable of int, optional
        Sizes, 1 to k by default. A size above d counts as d.
    lams : iterable of float, optional
        Ridge weights (regression only); the problem's own by default.
    cv : int, "loo", splitter or iterable of pairs, optional
        Hold out rows, as :func:`exactsel.cross_validate` does: see ``validation``, ``best_cv``, ``one_standard_error``.
    near : float, optional
        List all sets of exactly k features whose objective exceeds the best by at most this share of it, too.
    cap : int
        Largest number of models in a list, 1000 by default. A longer list is incomplete, and says so.
    checkpoint, resume : path, optional
        File to save the path to after each search and listing, and every ``checkpoint_every`` seconds. A file to
        resume from and to save to: limits may change, sizes, ridge weights and lists may be added, and all else stays.
    signals : sequence of int
        Signals that end the path after the current problem, with the results so far (main thread only).
    executor, workers, scheduler, verbose : optional
        How the nodes of each search are expanded, as for :func:`exactsel.solve`. 1 prints a line a problem and fold.
    **options
        As for :func:`exactsel.solve`. Limits hold for each problem; those of time and nodes hold for each listing, too.

    Returns
    -------
    SolutionPath

    Raises
    ------
    InputError
        For an empty path, a size or ridge weight that cannot be used, and a checkpoint that cannot be used.
    """
    if options.get("proof") is not None:
        raise InputError("a path has many proofs, but one file was given; solve each size on its own to get its proof.")
    check_near(0.0 if near is None else near, CAP if cap is None else cap)
    ks = None if ks is None else whole_numbers("ks", ks)
    lams = None if lams is None else numbers("lams", lams)
    options, hired = with_a_ridge(problem, options, lams), Workers(executor, workers, scheduler)
    base, search_options = problem_asked(problem, y, k, options, known=OPTIONS, at_most=max(ks or [USUAL_SIZES]))
    gaps, folds = (None, None) if cv is None else (gaps_asked(problem, y, options), _folds(cv, base, search_options))
    settings = {"signals": signals, **in_shards(search_options, hired, resume is not None)}
    sequence = ProblemSequence(base, [], settings, log=sizes_said(verbose), workers=hired)
    files = Files(checkpoint=checkpoint, every=checkpoint_every, resume=resume)
    _run(sequence, files, Asked(None, near, cap, partial(_added, base, resume, ks, lams)), ks, lams)
    path = _path(sequence, checkpoint if resume is None else resume)
    return path if folds is None else _with_held_out(path, base, gaps, folds, hired, teller(verbose))


def _run(
    sequence: ProblemSequence, files: Files, request: Asked, ks: Iterable[int] | None, lams: Iterable[float] | None
) -> None:
    """Solve the problems of a path, from the beginning or from where a file stands."""
    if files.resume is not None:
        run_saved(sequence, files, "path", request)
        return
    sequence.reach = (
        None if request.share is None else Reach(share=request.share, cap=CAP if request.cap is None else request.cap)
    )
    sequence.steps = [Step(changes) for changes in _steps(sequence.problem, ks, lams)]
    if files.checkpoint is None:
        run_in_memory(sequence)
    else:
        run_saved(sequence, files, "path")


def _folds(cv: object, problem: SubsetProblem, options: dict[str, Any]) -> list[tuple[IntArray, IntArray]]:
    """The folds, found to be possible before anything is solved."""
    from exactsel.studies.crossval import folds_of, of_a_target  # which solves paths

    return folds_of(cv, of_a_target(problem), options.get("seed", 0))


def _with_held_out(
    path: SolutionPath, problem: SubsetProblem, gaps: Gaps | None, folds: list[tuple[IntArray, IntArray]],
    hired: Workers, tell: Say | None,
) -> SolutionPath:  # fmt: skip
    """The path, with the held-out error of each of its models."""
    from exactsel.studies.crossval import fold_lines, validated

    if path.interrupted or path._kept is None:
        return path
    ks = {result.problem["k"] for result in path.results}
    lams = {result.problem["lam"] for result in path.results}
    said = None if tell is None else fold_lines(tell, len(folds))
    try:
        validation = validated(problem, gaps, folds, [*ks], [*lams], path._kept.sequence.options, hired, said)
    except KeyboardInterrupt:
        return replace(path, _broken_off=True)
    return replace(path, validation=validation)


def _title(name: str) -> str:
    """What a table for people calls an entry of its lines."""
    return "features" if name == "columns" else name


def _cell(name: str, value: Any) -> str:
    """One entry of the table."""
    if value is None:
        return ""
    if name == "columns":
        return ", ".join(map(str, value)) or "none"
    return str(value) if isinstance(value, str | int) else format(value, _DIGITS.get(name, ".6g"))


def with_a_ridge(data: object, options: dict[str, Any], lams: Iterable[float] | None) -> dict[str, Any]:
    """The options of data, whose problem has one of the ridge weights to try where it is given no other."""
    weights = [] if lams is None or is_problem(data) else numbers("lams", lams)
    return {"lam": max(weights), **options} if weights else options


def _go_on(path: ResumablePath, k: int | None, limits: dict[str, Any]) -> SolutionPath:
    """See :meth:`SolutionPath.resume`."""
    sequence = path.sequence
    sizes, lams = _sizes_of(step.changes for step in sequence.steps)
    if k is not None:
        sizes = sizes | {*range(max(sizes) + 1, k + 1)}
    if path.file is not None:
        return solve_path(sequence.problem, ks=None if k is None else sizes, resume=path.file, **limits)
    limit(sequence, limits)
    sequence.extend(_steps(sequence.problem, sizes, lams or None))
    return _path(run_in_memory(sequence))


def _path(sequence: ProblemSequence, file: str | os.PathLike[str] | None = None) -> SolutionPath:
    """The path as far as a sequence has come."""
    places = [place for place, step in enumerate(sequence.steps) if step.result is not None]
    results = tuple(result for step in sequence.steps if (result := step.result) is not None)
    listings = None
    if sequence.reach is not None:
        listing_places = [place for place in places if sequence.steps[place].near is not None]
        listings = tuple(list_at(sequence, place) for place in places if place <= max(listing_places, default=-1))
    share = None if sequence.reach is None else sequence.reach.share
    return SolutionPath(
        results, listings, share, _kept=ResumablePath(sequence, None if file is None else Path(file).absolute())
    )


def _sizes_of(steps: Iterable[Mapping[str, Any]]) -> tuple[set[int], set[float]]:
    """The sizes and the ridge weights of steps; no ridge weight where they have the problem's own."""
    changes = [*steps]
    return {each["k"] for each in changes}, {each["lam"] for each in changes if "lam" in each}


def _added(
    problem: SubsetProblem,
    file: object,
    ks: Iterable[int] | None,
    lams: Iterable[float] | None,
    before: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """The steps of a saved path, and the steps requested in addition."""
    sizes, weights = _sizes_of(before)
    steps = _steps(problem, sizes if ks is None else ks, (weights or None) if lams is None else lams)
    there = [key_of(changes) for changes in steps]
    missing = next((changes for changes in before if key_of(changes) not in there), None)
    if missing is not None:
        which = ", ".join(f"{name} = {value:g}" for name, value in missing.items())
        raise InputError(
            f"{file} is about {which} too, which is not among what is asked for now; sizes and ridge weights may be "
            f"added, so name those it has as well, or none."
        )
    return steps


def _steps(problem: SubsetProblem, ks: Iterable[int] | None, lams: Iterable[float] | None) -> list[dict[str, Any]]:
    """The arguments of :meth:`replace` at each step of the path, in order; :class:`InputError` where there is none."""
    smallest = max(1, problem.fewest, len(problem.units.completed(problem.units.force_in, problem.k) or ()))
    sizes = sorted({min(int(k), problem.d) for k in (range(smallest, problem.k + 1) if ks is None else ks)})
    if not sizes:
        raise InputError("the path has no sizes; give at least one k.")
    weights = [] if lams is None else sorted({float(lam) for lam in lams}, reverse=True)
    if lams is not None and not problem.has(COEFFICIENTS):
        raise InputError("column subset selection has no lam; leave lams out.")
    return [{"k": k, "lam": lam} for lam in weights for k in sizes] if weights else [{"k": k} for k in sizes]
