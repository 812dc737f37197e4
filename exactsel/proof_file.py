"""Write the proof of a search to a file anyone can check (certificates/FORMAT.md).

The writer is an observer of the search's events. What it sees goes to temporary files at once; in memory it keeps an
index of some forty bytes a node, and the points written last, so that regions closed by the same point share it. When
the search has ended the pieces are put in preorder and the file takes its name, whole or not at all.
"""

from __future__ import annotations

import os
import tempfile
import time
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from exactsel.column_subset import ColumnSubsetProblem
from exactsel.errors import InputError, UnsupportedError
from exactsel.files import replacing
from exactsel.kernels.subtree import BRANCH, CLOSED, LEFT_OPEN, LEFT_OUT
from exactsel.kernels.subtree import PUT_IN as MOVE_PUT_IN
from exactsel.losses.huber import Huber
from exactsel.losses.logistic import Logistic
from exactsel.losses.quadratic import Quadratic
from exactsel.problem import Problem
from exactsel.proof import CurvedPoint, DualPoint, EigenvaluePoint, FitPoint, InfimumPoint, ModelPoint
from exactsel.proof import Proof as Point
from exactsel.search.events import Discarded, Divided, Event, Explored, Finished, Fixed, Started
from exactsel.search.node import ROOT_ID
from exactsel.search.state import SearchState
from exactsel.types import FloatArray
from exactsel_certificates import container as fmt
from exactsel_certificates.checking import AnyInstance
from exactsel_certificates.columns import ColumnInstance
from exactsel_certificates.formula import Instance
from exactsel_certificates.rigorous import model_objective
from exactsel_certificates.selections import selection_objective_above

HAIR = 1e-9
"""Times |upper|: by how much the claimed lower bound stays below the search's own, for what rounding did to it."""

REMEMBERED_BYTES = 32 * 2**20
"""Memory for the points written last."""

POINT_BYTES = 400
"""What remembering a point takes besides its numbers."""

Words = NDArray[np.int32]

_KINDS = np.zeros(8, dtype=np.int32)
_KINDS[[BRANCH, MOVE_PUT_IN, LEFT_OUT, CLOSED]] = fmt.SPLIT_OUT, fmt.PUT_IN, fmt.LEAVE_OUT, fmt.CLOSE


def instance_of(problem: Any) -> AnyInstance:
    """The problem as the checker takes it; :class:`UnsupportedError` where the checker cannot know it."""
    if isinstance(problem, ColumnSubsetProblem):
        return ColumnInstance(np.array(problem.A), problem.k)
    if not isinstance(problem, Problem) or type(problem.loss) not in (Quadratic, Huber, Logistic):
        name = getattr(getattr(problem, "loss", None), "name", type(problem).__name__)
        raise UnsupportedError(
            f"a proof file cannot speak of '{name}', which its checker does not know; leave the proof out, or use "
            f"quadratic, huber or logistic loss."
        )
    delta = problem.loss_parameters.get("delta", np.inf)
    return Instance(np.array(problem.A), np.array(problem.y), problem.k, problem.loss.name, problem.lam, delta)


class ProofWriter:
    """Observes one search from its root; :meth:`finish` writes the file.

    Parameters
    ----------
    problem : Problem or ColumnSubsetProblem
    path : path
        The file to write.

    Raises
    ------
    UnsupportedError
        For a loss the checker cannot know.
    InputError
        When the folder cannot be written.
    """

    def __init__(self, problem: Problem | ColumnSubsetProblem, path: str | os.PathLike[str]) -> None:
        self.problem = problem
        self.path = Path(path)
        self.seconds = 0.0
        self._instance = instance_of(problem)
        self._open: dict[str, IO[bytes]] = {}
        self._index_type = "u1" if problem.d <= 2**8 else "<u2" if problem.d <= 2**16 else "<i4"
        self._point_sizes = array("i")
        self._duals = 0
        self._known: OrderedDict[int, tuple[Point, int, int]] = OrderedDict()
        self._known_bytes = 0
        self._curvature: FloatArray | None = None
        self._records = _Records()
        self._finished = False
        for name in ("pieces", "point_value", "point_index", "dual_value"):
            self._open[name] = _spool(self.path)

    def __call__(self, event: Event, state: SearchState) -> None:
        """Take down what the event says."""
        if not isinstance(event, Fixed | Divided | Discarded | Explored | Started | Finished):
            return
        began = time.perf_counter()
        if isinstance(event, Fixed):
            kind = fmt.PUT_IN if event.inside else fmt.LEAVE_OUT
            self._note(event.node, [self._use(event.proof, event.bound), 8 * event.column + kind])
        elif isinstance(event, Divided):
            words = [word for j, child in zip(event.columns, event.children, strict=True) for word in (8 * j, ~child)]
            self._note(event.node, [*words, ~event.rest])
        elif isinstance(event, Discarded):
            self._note(event.node, [self._use(event.proof, event.bound), fmt.CLOSE])
        elif isinstance(event, Explored):
            self._walked(event)
        elif isinstance(event, Started):
            self._check_start(event)
        else:
            self._finished = True
            for node in event.open_nodes:
                self._note(node.id, [self._use(node.proof, node.bound), fmt.CLOSE])
        self.seconds += time.perf_counter() - began

    def finish(self, lower: float, upper: float, support: tuple[int, ...], coef: FloatArray, scope: str) -> None:
        """Put everything in preorder and write the file.

        ``lower`` is the search's own bound; the claim stays :data:`HAIR` below it.
        """
        if not self._finished:
            raise InputError("the search has not come to an end, so there is no proof to write; let it finish.")
        began = time.perf_counter()
        if coef.size == 0:
            coef = np.zeros(self.problem.d)
            coef[list(support)] = 1.0
        used = np.flatnonzero(coef)
        curvature = np.zeros(0) if self._curvature is None else self._curvature
        pieces = self._open["pieces"]
        pieces.flush()
        tree = _spool(self.path)
        self._open["tree"] = tree
        words = 0
        for part in self._records.in_preorder(_mapped(pieces)):
            tree.write(part.astype("<i4").tobytes())
            words += len(part)
        entries = self._header(lower, upper, coef, scope)
        points = len(self._point_sizes)
        stored = self._open["point_index"].tell() // np.dtype(self._index_type).itemsize
        arrays = {
            "curvature": ("<f8", len(curvature)), "model_value": ("<f8", len(used)), "point_value": ("<f8", stored),
            "dual_value": ("<f8", self._duals * self.problem.n), "model_index": ("<i4", len(used)),
            "point_size": ("<i4", points), "tree": ("<i4", words), "point_index": (self._index_type, stored),
        }  # fmt: skip
        direct = {
            "curvature": curvature.astype("<f8"), "model_value": coef[used].astype("<f8"),
            "model_index": used.astype("<i4"), "point_size": np.array(self._point_sizes, dtype="<i4"),
        }  # fmt: skip
        with replacing(self.path) as out:
            out.write(fmt.header_bytes(entries, arrays))
            for name in fmt.ARRAYS:
                if name in direct:
                    out.write(direct[name].tobytes())
                else:
                    _copy(self._open[name], out)
        self.close()
        self.seconds += time.perf_counter() - began

    def close(self) -> None:
        """Remove the temporary files; needed when :meth:`finish` is not reached."""
        for stream in self._open.values():
            stream.close()
        self._open.clear()

    def _header(self, lower: float, upper: float, coef: FloatArray, scope: str) -> dict[str, Any]:
        problem = self.problem
        if isinstance(self._instance, ColumnInstance):
            shown = selection_objective_above(self._instance, np.flatnonzero(coef).tolist())
            size = problem.n + problem.d
            hair = HAIR * upper + 64 * size * 2.0**-53 * float(np.sqrt(upper * np.sum(self._instance.A**2)))
            about = {"family": "css", "loss": ""}
        else:
            shown = model_objective(self._instance, coef)
            hair = HAIR * upper + 1e-13 * model_objective(self._instance, np.zeros(problem.d))
            about = {"family": "regression", "loss": self._instance.loss}
        return {
            **about, "n": problem.n, "d": problem.d, "k": problem.k, "problem_hash": problem.hash,
            "lower": max(0.0, lower - hair).hex(), "upper": max(shown, upper).hex(),
            "scope": "bounded models" if scope else "",
        }  # fmt: skip

    def _note(self, node: int, words: list[int]) -> None:
        self._records.add(node, len(words))
        self._open["pieces"].write(array("i", words).tobytes())

    def _walked(self, event: Explored) -> None:
        """A walk's moves as words; a region left open refers to the node made of it."""
        if event.curvature is not None and np.all(event.curvature > 0):
            self._keep_curvature(event.curvature)
        moves = event.moves
        words = (moves & ~7).astype(np.int32) + _KINDS[moves & 7]
        words[np.flatnonzero((moves & 7) == LEFT_OPEN)] = ~np.array(event.open_ids, dtype=np.int32)
        self._records.add(event.node, 1 + len(words))
        self._open["pieces"].write(np.int32(8 * fmt.FIT + fmt.USE).tobytes() + words.tobytes())

    def _check_start(self, event: Started) -> None:
        if [node.id for node in event.open_nodes] != [ROOT_ID]:
            raise InputError("a proof must see the search from its root; start a new search instead of going on with one.")

    def _use(self, point: Point, bound: float) -> int:
        """The word that names a witness; what needs none beyond the infimum gets that."""
        if isinstance(point, InfimumPoint) or bound <= 0.0:
            return 8 * fmt.INFIMUM + fmt.USE
        if isinstance(point, FitPoint):
            return 8 * fmt.FIT + fmt.USE
        if isinstance(point, EigenvaluePoint):
            return 8 * fmt.EIGENVALUES + fmt.USE
        known = self._known.get(id(point))
        if known is None:
            known = (point, *self._write_point(point))
            self._known[id(point)] = known
            self._known_bytes += known[2]
            while self._known_bytes > REMEMBERED_BYTES:
                self._known_bytes -= self._known.popitem(last=False)[1][2]
        return 8 * known[1] + fmt.USE

    def _write_point(self, point: ModelPoint | DualPoint) -> tuple[int, int]:
        """Store a point; its number as a witness, and the bytes it takes."""
        if isinstance(point, DualPoint):
            self._open["dual_value"].write(np.asarray(point.beta, dtype="<f8").tobytes())
            self._duals += 1
            return fmt.FIRST_POINT + 2 * (self._duals - 1) + 1, POINT_BYTES + point.beta.nbytes
        if isinstance(point, CurvedPoint):
            self._keep_curvature(point.curvature)
        self._open["point_index"].write(point.index.astype(self._index_type).tobytes())
        self._open["point_value"].write(point.value.astype("<f8", copy=False).tobytes())
        self._point_sizes.append(len(point.index))
        return fmt.FIRST_POINT + 2 * (len(self._point_sizes) - 1), POINT_BYTES + 12 * len(point.index)

    def _keep_curvature(self, curvature: FloatArray) -> None:
        if self._curvature is None:
            self._curvature = curvature


class _Records:
    """Which pieces of the spool belong to which node, in the order they were written."""

    def __init__(self) -> None:
        self._first, self._last = array("i"), array("i")
        self._start, self._next = array("q"), array("i")
        self._words = 0

    def add(self, node: int, words: int) -> None:
        """Enter a piece of ``words`` words."""
        while len(self._first) <= node:
            self._first.append(-1)
            self._last.append(-1)
        record = len(self._start)
        self._start.append(self._words)
        self._next.append(-1)
        self._words += words
        if self._last[node] >= 0:
            self._next[self._last[node]] = record
        else:
            self._first[node] = record
        self._last[node] = record

    def in_preorder(self, words: Words) -> Iterator[Words]:
        """The words of the whole tree, in parts: every reference to a node is replaced by that node's pieces."""
        # (what is left of a piece, the witness it uses (or -1), the node's next piece)
        waiting: list[tuple[Words, int, int]] = []
        record, witness = self._first[ROOT_ID], -1
        part, own = self._piece(words, record)
        following = self._next[record]
        while True:
            references = np.flatnonzero(part < 0)
            end = int(references[0]) if references.size else len(part)
            if end:
                if own >= 0 and own != witness:
                    yield np.array([own], dtype=np.int32)
                    witness = own
                yield part[:end]
            if references.size:
                waiting.append((part[end + 1 :], own, following))
                record = self._first[~int(part[end])]
                part, own = self._piece(words, record)
                following = self._next[record]
                continue
            part = part[:0]
            while not len(part):
                if following >= 0:
                    part, own = self._piece(words, following)
                    following = self._next[following]
                elif waiting:
                    part, own, following = waiting.pop()
                else:
                    return

    def _piece(self, words: Words, record: int) -> tuple[Words, int]:
        """A piece without the word that names its witness, and that word (or -1)."""
        start = self._start[record]
        end = self._start[record + 1] if record + 1 < len(self._start) else self._words
        piece = words[start:end]
        return (piece[1:], int(piece[0])) if piece[0] >= 0 and piece[0] & 7 == fmt.USE else (piece, -1)


def _spool(path: Path) -> IO[bytes]:
    """A temporary file beside the one to be written."""
    try:
        return tempfile.TemporaryFile(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}); choose a folder that exists and is yours."
        ) from None


def _mapped(spool: IO[bytes]) -> Words:
    """The words of a spool, read from disk as they are needed."""
    return np.memmap(spool, dtype=np.int32, mode="r")  # type: ignore[call-overload, no-any-return]


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    source.seek(0)
    while chunk := source.read(1 << 20):
        target.write(chunk)
