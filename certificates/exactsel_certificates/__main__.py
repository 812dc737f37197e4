"""``python -m exactsel_certificates PROOF INSTANCE``: check a proof file; numpy is all that is needed.

INSTANCE may be a sparse matrix: an .npz file of scipy.sparse, a Matrix Market (.mtx) or svmlight (.svm) file, with y in
the file that --target names where INSTANCE holds none. It stays sparse.

INSTANCE is a .npz file with A (rows x columns), y, and optionally k, lam, loss, delta, weights (of the rows), intercept
(1 for one), scale (1 for scaled columns), groups (a label for each column, empty for a column on its own), hierarchy
and not_both (the lines of a file as --hierarchy and --not-both take it); options override the file. With groups, k
counts groups, and groups are forced in or out.

A hierarchy is a text with a line ``child: parent, parent`` for each column that is chosen only together with others,
``weak`` in the first line where one parent is enough; ``#`` begins a comment. Columns are named by number from 0 or by
the instance's feature_names; with groups these are groups, named by number, label or one of their columns.
Pairs that exclude each other are a text with lines ``unit, unit``, units named in the same way; --not-both a,b is one.
With --per-group k counts columns again: they are chosen one by one, at most so many from each group.
Limits of coefficients are a text with lines ``column,lower,upper``, a side left empty where there is none, and columns
named by number or by feature_names. Equalities of coefficients are texts such as ``a + b - 2*c = 1``.
--offset names a file with a known part of each prediction. As in exactsel, the problem is then that of y less the
offset, and for counts that of the rates y / exp(offset) with exp(offset) among the weights, in doubles.
Neither file is believed about its sizes: more than --most-bytes are not read of either. How much work a proof asks for
is stated on stderr before the check begins; --work-limit (a number of elementary operations, or none; by default one in
proportion to the sizes of the proof and of the problem) and --time-limit (seconds) end it.
Exit code 0: verified, 3: rejected, 2: malformed, unreadable or wrong usage, 4: neither, as a limit ended the check.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from exactsel_certificates.archive import MOST_BYTES, read_archive
from exactsel_certificates.checking import AnyInstance, verify
from exactsel_certificates.coefficient_text import limited, read_box, read_equalities
from exactsel_certificates.constraint import Constraint, meant
from exactsel_certificates.constraints import READERS
from exactsel_certificates.container import MalformedError, read_proof
from exactsel_certificates.entries import SparseInstance
from exactsel_certificates.equalities import Equalities
from exactsel_certificates.estimate import Estimate
from exactsel_certificates.formula import Box, ColumnInstance, FloatArray, Instance
from exactsel_certificates.given import GivenInstance
from exactsel_certificates.group_limits import Limits
from exactsel_certificates.losses import Loss, has_threshold, loss_from, loss_of
from exactsel_certificates.sparse_files import ENDINGS, SparseFile, is_archive, of_archive, read_text

VERIFIED, MALFORMED, REJECTED, UNFINISHED = 0, 2, 3, 4


def main(arguments: list[str] | None = None) -> int:
    """Check one proof; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        verdict = verify(
            read_proof(options.proof, options.most_bytes), _instance(options), options.exact_limit,
            work_limit=options.work_limit, time_limit=options.time_limit, begin=_state,
        )  # fmt: skip
    except (MalformedError, OSError, ValueError, TypeError, OverflowError) as error:
        sys.stderr.write(f"Error: {_printable(str(error))}\n")
        return MALFORMED
    said = json.dumps(verdict.as_dict(), allow_nan=False) if options.json else _printable(str(verdict))
    sys.stdout.write(f"{said}\n")
    if verdict.unfinished:
        return UNFINISHED
    return VERIFIED if verdict.verified else REJECTED


def _state(work: Estimate, limit: float) -> None:
    """State the work that a proof needs."""
    sys.stderr.write(f"Work: {work} (limit {limit:.3g}).\n")
    sys.stderr.flush()


def _printable(text: str) -> str:
    """The text without control sequences of a terminal: a file may hold any bytes."""
    return "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="exactsel_certificates", description="Check a proof file.")
    parser.add_argument("proof", help="the .exsel file")
    parser.add_argument("instance", help=".npz file with A, y and, as far as no option says them, k, lam, loss, delta")
    parser.add_argument("--target", help=".npy or text file with y, where INSTANCE is a sparse matrix")
    parser.add_argument("--problem", choices=["regression", "css"], default="regression")
    parser.add_argument("-k", "--k", type=int, help="largest number of columns")
    parser.add_argument("--loss", help="quadratic, huber, logistic, squared_hinge or poisson")
    parser.add_argument("--lam", type=float, help="ridge weight of (lam/2)||x||^2")
    parser.add_argument("--delta", type=float, help="threshold of huber loss, or of such a field of a plug-in's loss")
    parser.add_argument("--loss-from", help="installed package whose formulas of --loss to trust; none is loaded else")
    parser.add_argument("--loss-parameter", action="append", default=[], help="NAME=VALUE of such a loss; repeat it")
    parser.add_argument("--groups", type=_groups, help="columns chosen together, by number: 0,1,2;4,5")
    for name, (_, lines) in READERS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", action="append", help=f"text file, or a line: {lines}")
    parser.add_argument("--per-group", type=int, help="choose columns one by one, at most so many from each group")
    parser.add_argument("--force-in", type=_columns, default=(), help="columns forced in, by number: 0,4")
    parser.add_argument("--force-out", type=_columns, default=(), help="columns forced out, by number: 1,2")
    parser.add_argument("--nonnegative", default="", help="columns without negative coefficients: all, or 0,4")
    parser.add_argument("--bounds", help="text file, lines of column,lower,upper: limits of coefficients")
    parser.add_argument("--max-coef", type=_positive, default=math.inf, help="no coefficient is larger in size")
    parser.add_argument("--sum-to", type=float, help="what all coefficients add up to")
    parser.add_argument("--equality", action="append", default=[], help="linear equality: a + b - 2*c = 1; repeat it")
    parser.add_argument("--intercept", action="store_true", help="models have an unpenalised intercept")
    parser.add_argument("--scale", action="store_true", help="the ridge term is about columns of equal size")
    parser.add_argument("--weights", help="row weights: .npy, or a text file with one number a line")
    parser.add_argument("--offset", help="what is known of the predictions, in a file as for --weights; y is less it")
    parser.add_argument("--exact-limit", type=float, help="multiplications in exact arithmetic")
    parser.add_argument("--work-limit", type=_positive, help="elementary operations, or none")
    parser.add_argument("--time-limit", type=_positive, default=math.inf, help="seconds, or none")
    parser.add_argument("--most-bytes", type=int, default=MOST_BYTES, help="bytes read of either file at most")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def _positive(text: str) -> float:
    """A limit: a positive number, or none."""
    value = math.inf if text == "none" else float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number; give one, or none")
    return value


def _columns(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(entry) for entry in text.split(",") if entry.strip()}))


def _groups(text: str) -> list[str]:
    """A label for each column that is named; the columns of a group have its first column for a label."""
    named = [_columns(part) for part in text.split(";") if part.strip()]
    labels = [""] * (1 + max((j for group in named for j in group), default=-1))
    for group in named:
        for j in group:
            if labels[j]:
                raise argparse.ArgumentTypeError(f"column {j} is in two groups")
            labels[j] = str(min(group))
    return labels


def _partition(labels: Sequence[str], d: int) -> tuple[tuple[int, ...], ...]:
    """All groups in the order of their first columns; columns without a label are on their own."""
    if len(labels) > d:
        raise ValueError(f"groups speak of {len(labels)} columns, but A has {d}.")
    held: dict[str | int, list[int]] = {}
    for j in range(d):
        held.setdefault((labels[j] if j < len(labels) else "") or j, []).append(j)
    return tuple(tuple(columns) for columns in held.values())


def _weights(path: str) -> FloatArray:
    weights: FloatArray = np.load(path, allow_pickle=False) if path.endswith(".npy") else np.loadtxt(path, ndmin=1)
    return weights


def _plugin(options: argparse.Namespace, loss: str, stored: FloatArray | None) -> Loss | None:
    """The loss of the package that an option names, with the threshold of the options or of the file."""
    given = list(options.loss_parameter)
    if options.loss_from is not None and options.delta is not None:
        given.append(f"delta={options.delta!r}")
    elif options.delta is not None and not has_threshold(loss):
        raise ValueError(f"--delta is given, but {loss} loss has no threshold; leave it out.")
    known = None if options.loss_from is None or stored is None else float(stored)
    return loss_from(options.loss_from, loss, given, known)


def _less_offset(
    options: argparse.Namespace, loss: Loss, y: FloatArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:  # fmt: skip
    """The target and the weights once an offset has been worked into them, as exactsel does, in doubles."""
    if options.offset is None:
        return y, weights
    offset = _weights(options.offset)
    if offset.shape != y.shape:
        raise ValueError(f"the offset has shape {offset.shape}, but y has {y.shape}; give one number per row.")
    if loss.of_residuals:
        return y - offset, weights
    if loss.name != "poisson" or options.scale:
        what = "poisson loss of scaled columns" if loss.name == "poisson" else f"{loss.name} loss"
        raise ValueError(f"{what} takes no offset; leave --offset out.")
    exposure = np.exp(offset)
    return y / exposure, exposure if weights is None else weights * exposure


def _sparse(options: argparse.Namespace, file: SparseFile) -> SparseInstance:
    """The caller's problem on a sparse matrix, from the options."""
    option_names = ("groups", *READERS, "per_group", "weights", "sum_to")
    any_set = any(getattr(options, name) is not None for name in option_names) or bool(options.equality)
    if any_set or options.scale or options.problem == "css":
        raise ValueError(
            "proofs about sparse matrices know no groups, hierarchy, pairs, weights, equalities or scaled columns; "
            "make a table."
        )
    y = file.y if options.target is None else _weights(options.target)
    if y is None or options.k is None:
        raise ValueError("the instance is a sparse matrix without y and k; give --target and --k.")
    loss = options.loss or "quadratic"
    plugin, delta = _plugin(options, loss, None), options.delta if has_threshold(loss) else np.inf
    y, exposure = _less_offset(options, loss_of(loss, delta, plugin), y, None)
    if exposure is not None:
        raise ValueError("poisson loss of a sparse matrix takes no offset; leave --offset out, or make a table.")
    return SparseInstance(
        file.A, y, min(options.k, file.A.shape[1]), loss, 0.0 if options.lam is None else options.lam, delta,
        options.force_in, options.force_out, options.intercept, _box(options, file.A.shape[1], named=False), plugin,
    )  # fmt: skip


def _instance(options: argparse.Namespace) -> AnyInstance:
    """The caller's problem, from the instance file and the options."""
    if options.instance.lower().endswith(ENDINGS):
        return _sparse(options, read_text(options.instance, options.most_bytes))
    stored = read_archive(options.instance, options.most_bytes)
    if is_archive(stored):
        return _sparse(options, of_archive(stored))
    for name in ("A",) if options.problem == "css" else ("A", "y"):
        if name not in stored:
            raise ValueError(f"the instance has no {name}; give an archive that holds one.")

    def given(name: str, default: object = None) -> Any:
        value = getattr(options, name)
        if value is None:
            value = stored[name].item() if name in stored else default
        if value is None:
            raise ValueError(f"neither the instance nor an option says what {name} is; give --{name}.")
        return value

    A = stored["A"]
    if A.ndim != 2:
        raise ValueError(f"A has shape {A.shape}, but a table was expected.")
    labels = options.groups if options.groups is not None else stored.get("groups")
    groups = () if labels is None else _partition([str(label) for label in labels], A.shape[1])
    limits = _limits(options, groups, stored)
    if limits is not None:
        groups = ()
    k = min(operator.index(given("k")), len(groups) or A.shape[1])
    box = _box(options, A.shape[1])
    equalities = _equalities(options, A.shape[1])
    related = any(getattr(options, name) is not None for name in READERS)
    if options.problem == "css" and (related or any(each is not None for each in (box, equalities, options.offset))):
        raise ValueError(
            "column subset selection knows no hierarchy, pairs, signs, bounds, equalities or offset; leave them out."
        )
    if options.problem == "css":
        return ColumnInstance(A, k)
    loss = str(given("loss", "quadratic"))
    plugin = _plugin(options, loss, stored.get("delta"))
    delta = float(given("delta")) if has_threshold(loss) else np.inf
    lam = float(given("lam"))
    intercept = options.intercept or bool(stored.get("intercept", False))
    forced = (options.force_in, options.force_out)
    scale = options.scale or bool(stored.get("scale", False))
    weights = stored.get("weights") if options.weights is None else _weights(options.weights)
    y, weights = _less_offset(options, loss_of(loss, delta, plugin), stored["y"], weights)
    hierarchy = _constraint(options, stored, groups) if limits is None else limits if limits.groups else None
    # What lies outside the domain is the checker's to reject.
    if equalities is not None:
        box = limited(box, equalities, scale)
    if intercept or scale or weights is not None or equalities is not None:
        return GivenInstance(
            A, y, k, loss, lam, delta, *forced, weights, intercept, groups, scale, equalities,
            hierarchy=hierarchy, box=box, plugin=plugin,
        )  # fmt: skip
    return Instance(A, y, k, loss, lam, delta, *forced, groups=groups, hierarchy=hierarchy, box=box, plugin=plugin)


def _box(options: argparse.Namespace, d: int, named: bool = True) -> Box | None:
    """The limits on coefficients that options name; ``named`` says whether the instance may have names of columns."""
    if options.bounds is None and not options.nonnegative and options.max_coef == math.inf:
        return None
    lines: list[str] = []
    if options.bounds is not None:
        with open(options.bounds, encoding="utf-8-sig") as file:
            lines = file.read(options.most_bytes).splitlines()
    archive = read_archive(options.instance, options.most_bytes, "feature_names") if named else {}
    names = archive.get("feature_names", ())
    return read_box(lines, options.nonnegative, [*map(str, names)], d, options.max_coef)


def _equalities(options: argparse.Namespace, d: int) -> Equalities | None:
    """The equalities that options name."""
    if options.sum_to is None and not options.equality:
        return None
    names = read_archive(options.instance, options.most_bytes, "feature_names").get("feature_names", ())
    return read_equalities(options.equality, options.sum_to, [*map(str, names)], d)


def _limits(options: argparse.Namespace, groups: Sequence[Sequence[int]], stored: dict[str, Any]) -> Limits | None:
    """The limits on groups that the option names, without groups where none is larger; None without the option."""
    if options.per_group is None:
        return None
    others = [name for name in READERS if getattr(options, name) is not None or name in stored]
    if options.problem == "css" or others or options.per_group < 1:
        raise ValueError("--per-group is at least 1 and goes with no hierarchy, pairs or column subset selection.")
    if not groups:
        raise ValueError("--per-group is given, but no groups; give --groups too.")
    return Limits(options.per_group, tuple(tuple(group) for group in groups if len(group) > options.per_group))


def _lines(text: str, most_bytes: int) -> list[str]:
    """The lines of a file, or a text that is a line itself."""
    if "," in text and not os.path.isfile(text):
        return [text]
    with open(text, encoding="utf-8-sig") as file:
        return file.read(most_bytes).splitlines()


def _constraint(
    options: argparse.Namespace, stored: dict[str, Any], groups: Sequence[Sequence[int]]
) -> Constraint | None:
    """The constraint of the lines in an option's file, or in the instance; None where there is none."""
    constraints: list[Constraint] = []
    for name, (read, _) in READERS.items():
        texts = getattr(options, name)
        if texts is not None:
            lines = [line for text in texts for line in _lines(text, options.most_bytes)]
        elif name in stored:
            lines = [str(line) for line in np.atleast_1d(stored[name])]
        else:
            continue
        columns = read_archive(options.instance, options.most_bytes, "feature_names").get("feature_names", ())
        labels = stored.get("groups", ()) if options.groups is None else ()
        units = groups or [(j,) for j in range(stored["A"].shape[1])]
        said = read(lines, meant(units, [*map(str, labels)], [*map(str, columns)]), len(units))
        constraints += [] if said is None else [said]
    if len(constraints) > 1:
        raise ValueError(
            f"there are a {constraints[0].name} and {constraints[1].name}, but one of the two was expected."
        )
    return constraints[0] if constraints else None


if __name__ == "__main__":
    sys.exit(main())
