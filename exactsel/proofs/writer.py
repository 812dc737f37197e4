"""The writer of proof files, which a checker reads (certificates/FORMAT.md).

The writer is an observer of the search's events. What it sees goes to temporary files at once; in memory it keeps an
index of some forty bytes a node, and the points written last, so that regions closed by the same point share it. When
the search has ended the pieces are arranged in preorder and the file takes its name, whole or not at all.
"""

from __future__ import annotations

import math
import mmap
import os
import time
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from exactsel.bounds.witness import CountedPatterns, ListedPoints, ModelPoint
from exactsel.enumeration.native import NativeTree
from exactsel.errors import InputError
from exactsel.files import check_target, replacing, unwritten
from exactsel.kernels import moves as kinds
from exactsel.kernels.preorder import preorder_words
from exactsel.kernels.subtree_record import COUNTED, LEFT_OPEN
from exactsel.nodes.node import ROOT_ID
from exactsel.nodes.subtree import moves_of
from exactsel.nodes.tolerance import Tolerance
from exactsel.problem.interface import SubsetProblem, is_regression
from exactsel.proofs.instance import instance_of, take_prepared
from exactsel.proofs.pieces import Records
from exactsel.proofs.spools import Spools
from exactsel.proofs.witnesses import INDICES, SPOOLS, Witnesses, word_of
from exactsel.rounding import UNIT
from exactsel.search.events import Discarded, Divided, Event, Finished, Fixed, Started, SubtreeClosed
from exactsel.search.layout import refusing_damage, require
from exactsel.search.state import SearchState
from exactsel.types import FloatArray, IntArray
from exactsel_certificates import container as fmt
from exactsel_certificates.formula import ColumnInstance, Instance
from exactsel_certificates.given import GivenInstance

CLAIM_MARGIN = 1e-10
"""Times |upper|: by how much the claimed lower bound stays below the search's own, so that a checker with its own
rounding reaches it without exact arithmetic ..."""

PREPARING_MARGIN = 0.03
"""... and times what preparing the data costs, which a checker takes a hundredth too high: some certificates prove the
level they were made for and nothing above it."""

_KINDS = np.zeros(8, dtype=np.int32)
_KINDS[[kinds.BRANCHED, kinds.PUT_IN]] = fmt.SPLIT_OUT, fmt.PUT_IN
_KINDS[[kinds.LEFT_OUT, kinds.CLOSED]] = fmt.LEAVE_OUT, fmt.CLOSE
_KINDS[COUNTED] = fmt.COUNTED

THE_MINORANT = fmt.MINORANT
"""The word that makes the one minorant of a file the witness."""


RECORDS = "records"
"""The name of what :class:`exactsel.proofs.pieces.Records` have grown by, among the spools'."""


class Growth(NamedTuple):
    """The part of an unfinished proof that is to be saved, to continue it in another process."""

    state: dict[str, Any]
    """As it is now; JSON holds it."""
    spooled: dict[str, bytes]
    """What each spool has grown by since the last time."""


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
        When the folder cannot be written. Where the disk is full later on, ``failure`` says so, the temporary files are
        removed, and the search continues unobserved; :meth:`finish` then raises that error.
    """

    def __init__(self, problem: SubsetProblem, path: str | os.PathLike[str]) -> None:
        self.problem = problem
        self.path = Path(path)
        self.seconds = 0.0
        self.failure: InputError | None = None
        self._instance = instance_of(problem)
        objective = problem.objective
        if is_regression(problem) and isinstance(self._instance, GivenInstance):
            take_prepared(self._instance, problem.objective)
        check_target(self.path)
        self._d = self._instance.A.shape[1]
        self._spools = Spools(self.path, ("pieces", *SPOOLS))
        self._divisors, self._vanishing = objective.divisors, objective.ridge_limits
        self._margin = Tolerance().of(problem).margin
        self._witnesses = Witnesses(self._spools, self._d, self._divisors)
        self._goes_on = False
        self._minorant = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        self._records = Records()
        self._node, self._witness, self._piece = -1, -1, array("i")
        self._finished = self._by_patterns = False

    def __call__(self, event: Event, state: SearchState | None = None) -> None:
        """Take down what the event says."""
        wanted = isinstance(event, Fixed | Divided | Discarded | SubtreeClosed | Started | Finished)
        if not wanted or self.failure is not None:
            return
        began = time.perf_counter()
        try:
            self._take_down(event)
        except OSError as error:
            self._give_up(error)
        self.seconds += time.perf_counter() - began

    def _give_up(self, error: OSError) -> None:
        self.failure = unwritten(self.path, error, "the proof ")
        self.close()

    def _take_down(self, event: Event) -> None:
        if isinstance(event, Fixed):
            for fixing in event.fixings:
                kind = fmt.PUT_IN if fixing.included else fmt.LEAVE_OUT
                self._note(event.node, self._witnesses.use(fixing.proof, fixing.bound), 8 * fixing.column + kind)
        elif isinstance(event, Divided):
            words = [word for j, child in zip(event.columns, event.children, strict=True) for word in (8 * j, ~child)]
            self._note(event.node, -1, *words, ~event.rest)
        elif isinstance(event, Discarded) and isinstance(event.proof, ListedPoints):
            self._note_listing(event.node, event.proof)
        elif isinstance(event, Discarded) and isinstance(event.proof, CountedPatterns):
            self._by_patterns = True
            self._note(event.node, -1, fmt.COUNTED)
        elif isinstance(event, Discarded):
            self._note(event.node, self._witnesses.use(event.proof, event.bound), fmt.CLOSE)
        elif isinstance(event, SubtreeClosed):
            expansion = event.result.expansion
            if isinstance(expansion, NativeTree):
                self._note_search(event, expansion)
            else:
                self._note_moves(event)
        elif isinstance(event, Started):
            self._check_start(event)
        elif isinstance(event, Finished):
            self._finished = True
            for node in event.open_nodes:
                self._note(node.id, self._witnesses.use(node.proof, node.bound), fmt.CLOSE)

    def claim(self, lower: float, upper: float, valid_for: str = "") -> float:
        """The lower bound to claim where the search ended at ``lower`` and ``upper``."""
        null = self.problem.null_objective
        margin = CLAIM_MARGIN * upper + self._margin
        if self._vanishing is not None:
            margin += self._vanishing.taken  # a checker finds limits of his own, which may cost as much
        if not isinstance(self._instance, Instance):
            margin += 64 * (self.problem.n + self._d) * UNIT * math.sqrt(upper * null)
        if isinstance(self._instance, GivenInstance):
            needed = self._instance.transfer.needed(lower, upper, valid_for != "")
            margin += PREPARING_MARGIN * max(0.0, needed - lower) if math.isfinite(needed) else 0.0
        return max(0.0, lower - margin)

    def finish(self, lower: float, upper: float, support: tuple[int, ...], coef: FloatArray, valid_for: str) -> None:
        """Arrange everything in preorder and write the file.

        ``coef`` (d,) are the coefficients for the data as given; none for column subset selection. :class:`OutputError`
        where the disk is full.
        """
        if self.failure is not None:
            raise self.failure
        if not self._finished:
            raise InputError("the search has not come to an end, so there is no proof to write; let it finish.")
        began = time.perf_counter()
        if coef.size == 0:
            coef = np.zeros(self._d)
            coef[list(support)] = 1.0
        try:
            self._write(self._in_preorder(), self._header(lower, upper, valid_for), coef)
        except OSError as error:
            self._give_up(error)
        except InputError as error:
            self.failure = error
        self.close()
        if self.failure is not None:
            raise self.failure
        self.seconds += time.perf_counter() - began

    def _in_preorder(self) -> int:
        """Spool the tree; how many words it has."""
        if self._by_patterns:
            return self._in_one_word()
        self._end_piece()
        pieces = self._spools["pieces"]
        pieces.flush()
        tree = self._spools.begin("tree")
        words = 0
        with mmap.mmap(pieces.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as spooled:
            for part in self._records.in_preorder(spooled):
                tree.write(np.asarray(part, dtype="<i4").tobytes())
                words += len(part)
        return words

    def _in_one_word(self) -> int:
        """Spool the tree of a problem that was counted as a whole: what was closed before is shown by that as well."""
        for name in SPOOLS:
            self._spools.begin(name)
        self._witnesses = Witnesses(self._spools, self._d, self._divisors)
        self._minorant = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        self._spools.begin("tree").write(np.array([fmt.COUNTED], dtype="<i4").tobytes())
        return 1

    def _listed(self, coef: FloatArray) -> IntArray:
        """The columns the file lists with their coefficients: those in the model, and those these need."""
        units = self.problem.units
        if units.constraint is None:
            return np.flatnonzero(coef)
        needed = units.completed(units.units_of(np.flatnonzero(coef)), self.problem.k)
        return np.union1d(np.flatnonzero(coef), units.columns_of(needed or ()))

    def _write(self, words: int, entries: dict[str, Any], coef: FloatArray) -> None:
        used = self._listed(coef)
        witnesses = self._witnesses
        limit = np.zeros(0, dtype=np.int32)
        if self._vanishing is not None:
            fitted = ModelPoint.from_dense(self._vanishing.point)
            first = witnesses.store_all(fitted.index, fitted.value, np.array([len(fitted.index)]))
            limit = np.array([first], dtype=np.int32)
        curvature = np.zeros(0) if witnesses.curvature is None else witnesses.curvature
        point, widths = self._minorant
        direct = {
            "curvature": curvature.astype("<f8"), "model_value": coef[used].astype("<f8"),
            "model_index": used.astype("<i4"),
            "minorant_point": point.astype("<i4"), "minorant_width": widths.astype("<f4"),
            "limit_point": limit.astype("<i4"),
            "curvature_split": witnesses.named_split, "equality_size": self._equality_sizes,
        }  # fmt: skip
        kinds = {name: allowed[0] for name, allowed in fmt.ARRAYS.items() if name not in fmt.SCREENING}
        kinds |= dict.fromkeys(INDICES, witnesses.index_type)
        sizes = {name: len(array) for name, array in direct.items()} | {"tree": words}
        arrays = {n: (kind, sizes[n] if n in sizes else witnesses.stored(n)) for n, kind in kinds.items()}
        with replacing(self.path, "the proof ") as out:
            out.write(fmt.header_bytes(entries, arrays))
            for name in arrays:
                if name in direct:
                    out.write(direct[name].tobytes())
                else:
                    self._spools.copy(name, out)

    def close(self) -> None:
        """Remove the temporary files; needed when :meth:`finish` is not reached."""
        self._spools.close()

    def growth(self) -> Growth | None:
        """What is to be saved since the last time; None where the proof has been given up."""
        if self.failure is not None:
            return None
        point, widths = self._minorant
        state = {
            "witnesses": self._witnesses.saved(), "minorant": [point.tolist(), widths.tolist()],
            "by_patterns": self._by_patterns,
            "node": self._node, "witness": self._witness, "piece": self._piece.tolist(),
        }  # fmt: skip
        try:
            return Growth(state, self._spools.growth() | {RECORDS: self._records.growth()})
        except OSError as error:
            self._give_up(error)
            return None

    def restore(self, state: Mapping[str, Any], spooled: Iterable[tuple[str, bytes]]) -> None:
        """Continue an unfinished proof; ``spooled`` are parts of spools, in the order they were saved.

        Raises
        ------
        InputError
            Where they do not go together.
        """
        with refusing_damage():
            for name, data in spooled:
                if name == RECORDS:
                    self._records.replay(data, self._spools.size("pieces") // 4)
                else:
                    self._spools.write(name, data)
            require(4 * self._records.words == self._spools.size("pieces"), "other words of its proof than pieces")
            self._spools.growth()
            self._witnesses.restore(state["witnesses"])
            point, widths = state["minorant"]
            self._minorant = np.array(point, dtype=np.int32), np.array(widths, dtype=np.float32)
            self._node, self._witness = int(state["node"]), int(state["witness"])
            self._piece = array("i", state["piece"])
            self._by_patterns = bool(state["by_patterns"])
        self._goes_on = True

    def _header(self, lower: float, upper: float, valid_for: str) -> dict[str, Any]:
        problem, about = self.problem, self._instance
        entries: dict[str, Any] = {"family": "css", "loss": ""}
        if isinstance(about, Instance):
            entries = {
                "family": "regression", "loss": about.loss, "groups": len(about.groups) or None,
                "hierarchy": None if about.hierarchy is None else about.hierarchy.kind,
                "weights": about.weights is not None, "intercept": about.intercept,
                "scale": isinstance(about, GivenInstance) and about.scale, "bounds": about.box is not None,
                "equalities": isinstance(about, GivenInstance) and about.equalities is not None,
            }  # fmt: skip
        return {
            **entries, "n": about.A.shape[0], "d": self._d, "k": problem.k, "problem_hash": problem.hash,
            "lower": lower.hex(), "upper": upper.hex(), "valid_for": "bounded models" if valid_for else "",
        }  # fmt: skip

    @property
    def _equality_sizes(self) -> FloatArray:
        """What rows of equalities are multiplied by."""
        equalities = self.problem.objective.equalities
        return np.zeros(0) if equalities is None else equalities.sizes.astype("<f8")

    def _note(self, node: int, use: int, *words: int) -> None:
        """Words of a node under a witness (-1: they need none); those of one node under one witness make one piece."""
        if node != self._node or (use >= 0 and use != self._witness):
            self._end_piece()
            self._node, self._witness = node, use
            if use >= 0:
                self._piece.append(use)
        self._piece.extend(words)

    def _end_piece(self) -> None:
        if self._piece:
            self._records.add(self._node, len(self._piece))
            self._spools.write("pieces", self._piece.tobytes())
        self._piece = array("i")
        self._node = -1

    def _note_moves(self, event: SubtreeClosed) -> None:
        """Decisions as words; a region left open refers to the node made of it."""
        expansion, order = moves_of(event.result)
        if expansion.curvature is not None and np.all(expansion.curvature > 0):
            self._witnesses.keep_curvature(expansion.curvature)
        moves = expansion.moves
        words = (moves & ~7).astype(np.int32) + _KINDS[moves & 7]
        words[np.flatnonzero((moves & 7) == LEFT_OPEN)] = ~np.array(event.open_ids, dtype=np.int32)[order]
        self._end_piece()
        self._records.add(event.node, 1 + len(words))
        witness = fmt.EIGENVALUES if isinstance(self._instance, ColumnInstance) else fmt.FIT
        self._spools.write("pieces", np.int32(8 * witness + fmt.USE).tobytes() + words.tobytes())

    def _note_search(self, event: SubtreeClosed, search: NativeTree) -> None:
        """The steps of a search inside the kernel, as one piece in preorder."""
        used = search.points_used()
        points = search.points(used)
        rows, columns = points.nonzero()
        sizes = np.bincount(rows, minlength=len(points))
        first = self._witnesses.store_all(columns, points[rows, columns], sizes)
        if search.curvature is not None:
            self._witnesses.keep_curvature(search.curvature)
        uses = np.full(len(search.scaled_points), -1, dtype=np.int64)
        uses[used] = word_of(np.arange(first, first + len(used)))
        node_use = self._witnesses.use(event.result.node.proof, math.inf) if search.uses_what_it_came_with else 0
        words = preorder_words(search.steps, search.numbers, uses, node_use, event.first_id)
        self._end_piece()
        self._records.add(event.node, len(words), mixed=True)
        self._spools.write("pieces", words.astype("<i4").tobytes())

    def _note_listing(self, node: int, proof: ListedPoints) -> None:
        """A listing: sets by their own models, all else by the minorant."""
        first = self._witnesses.points
        uses = [self._witnesses.store(point)[0] for point in (*proof.touching, *proof.models)][len(proof.touching) :]
        widths = np.zeros((2, self._instance.A.shape[0]), dtype=np.float32)
        weights = getattr(self._instance, "weights", None)
        widths[:, slice(None) if weights is None else weights > 0] = proof.widths
        self._minorant = np.arange(first, first + len(proof.touching), dtype=np.int32), widths.ravel()
        words, witness = array("i"), -1
        for word in proof.words.tolist():
            kind, argument = int(_KINDS[word & 7]), word >> 3
            needed = uses[argument - 1] if kind == fmt.CLOSE and argument > 0 else THE_MINORANT
            if kind in (fmt.CLOSE, fmt.PUT_IN, fmt.LEAVE_OUT) and needed != witness:
                witness = needed
                words.append(needed)
            words.append(kind if kind == fmt.CLOSE else 8 * argument + kind)
        self._end_piece()
        self._records.add(node, len(words), mixed=True)
        self._spools.write("pieces", words.tobytes())

    def _check_start(self, event: Started) -> None:
        if not self._goes_on and [node.id for node in event.open_nodes] != [ROOT_ID]:
            raise InputError(
                "a proof must see the search from its root, but this one continues an earlier one; start again."
            )
