"""The command line of the second checker; the standard library is all it needs.

    python -m exactsel_certificates.standalone PROOF INSTANCE.npz [-k K] [--lam LAM] [--loss LOSS] [--delta DELTA]
        [--intercept] [--scale] [--weights FILE] [--hierarchy FILE] [--force-in 0,4] [--force-out 1] [--per-group N]
        [--not-both a,b|FILE] [--nonnegative all|0,4] [--bounds FILE] [--max-coef M] [--sum-to S] [--equality TEXT]
        [--problem css]

INSTANCE may be a sparse matrix: an .npz file of scipy.sparse, .mtx or .svm, with y in the file that --target names.
Else INSTANCE.npz holds the data as they are given: A, y and, as far as no option says them, k, lam, loss, delta,
weights, intercept, scale, groups (a label for each column, empty for a column on its own), hierarchy and not_both (the
lines of a text, as below). Weights are also read from .npy or a text with one number a line; a hierarchy from a text
with lines ``child: parent, parent``, the first of which may be ``weak`` or ``strong``, where units are named by number,
by label, or by a name among feature_names; ``#`` begins a comment. --not-both takes a pair ``unit,unit``, or a text
with such lines: a model holds one unit of each pair at most. It may be repeated. With --per-group columns are chosen
one by one, at most N of each group.
Bounds of coefficients are a text with lines ``column,lower,upper``, an empty side has none. Equalities of coefficients
are texts such as ``a + b - 2*c = 1``.

Before it begins it states on stderr how much work the proof asks for. With --work-limit N it does no more than N
operations on fractions (none: any number; by default a number in proportion to the sizes of the proof and of the
problem), with --time-limit S it takes no more than S seconds.

Exit code: 0 verified, 3 rejected, 2 malformed, unreadable or beyond it, 4 neither: too much work.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from typing import Any

from .arrays import KNOWN, Unreadable, read_bytes, read_instance, read_lines, read_weights
from .bounds import bounds
from .checking import check
from .constraints import READERS
from .equalities import implied, written
from .estimate import Asked
from .file import Malformed
from .sparse import Sparse, read_sparse
from .values import Unclear
from .work import Beyond, TooMuch

LIMITS = ("bounds", "nonnegative", "max_coef")
"""Options that limit coefficients."""

EQUALITIES = ("sum_to", "equality")

VERIFIED, MALFORMED, REJECTED, UNFINISHED = 0, 2, 3, 4


def tame(text: str) -> str:
    """A line for a terminal: what is not printable is spelled out."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)


def main(arguments: list[str] | None = None) -> int:
    """The command of the module's docstring."""
    options = _parser().parse_args(arguments)
    try:
        limits = {name: vars(options).pop(name) for name in ("work_limit", "time_limit")}
        reason = check(read_bytes(options.proof), **_problem(options), **limits, begin=_state)
    except TooMuch as error:
        sys.stdout.write(f"NOT VERIFIED too much work: {tame(str(error))}; --work-limit and --time-limit set limits\n")
        return UNFINISHED
    except (Malformed, Beyond, Unreadable, Unclear) as error:
        sys.stderr.write(f"Error: {tame(str(error))}\n")
        return MALFORMED
    except MemoryError:
        sys.stderr.write("Error: the proof and its problem take more memory than there is; ask the other checker.\n")
        return MALFORMED
    sys.stdout.write(f"REJECTED {tame(reason)}\n" if reason else "VERIFIED in exact arithmetic\n")
    return REJECTED if reason else VERIFIED


def _state(work: Asked, limit: float) -> None:
    """State the work that a proof needs."""
    sys.stderr.write(f"Work: {work} (limit {limit:.3g})\n")
    sys.stderr.flush()


def _operations(text: str) -> float:
    """A limit of work: a positive number, or none."""
    value = math.inf if text == "none" else float(text)
    if not value > 0:
        raise ValueError
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="standalone", description="Check a small proof file in exact arithmetic.")
    parser.add_argument("proof")
    parser.add_argument("instance")
    parser.add_argument("-k", "--k", type=int)
    parser.add_argument("--target")
    for name in ("--lam", "--delta"):
        parser.add_argument(name, type=float)
    parser.add_argument("--max-coef", type=_operations)
    parser.add_argument("--sum-to", type=float)
    parser.add_argument("--equality", action="append")
    for name in ("loss", "weights", "bounds", "nonnegative"):
        parser.add_argument(f"--{name}")
    for name in READERS:
        parser.add_argument(f"--{name.replace('_', '-')}", action="append")
    parser.add_argument("--per-group", type=int)
    parser.add_argument("--problem", choices=["regression", "css"])
    for name in ("--intercept", "--scale"):
        parser.add_argument(name, action="store_true", default=None)
    for name in ("--force-in", "--force-out"):
        parser.add_argument(name, type=_columns)
    parser.add_argument("--work-limit", type=_operations)
    parser.add_argument("--time-limit", type=_operations, default=math.inf)
    return parser


def _columns(text: str) -> list[int]:
    return sorted({int(entry) for entry in text.split(",") if entry.strip()})


def _problem(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of ``check``, from the instance file and the options."""
    sparse = read_sparse(options.instance)
    fields: dict[str, Any] = {"y": [], "loss": "quadratic", "lam": 0.0, "delta": 1.0}
    fields |= read_instance(options.instance, (*KNOWN, *READERS)) if sparse is None else sparse
    if options.target is not None:
        fields["y"] = read_weights(options.target)
    fields |= {name: value for name, value in vars(options).items() if value is not None}
    for name in ("A", "k"):
        if name not in fields:
            raise Unreadable(f"neither the instance nor an option says what {name} is; give it.")
    demands: dict[str, Any] = {name: fields.get(name, []) for name in ("force_in", "force_out")}
    if fields.get("problem") == "css":
        if not all(vars(options)[name] is None for name in (*READERS, "per_group", *LIMITS, *EQUALITIES)):
            raise Unreadable(
                "column subset selection knows no hierarchy, pairs, equalities, limits on groups or on coefficients."
            )
        return {"A": fields["A"], "y": [], "k": fields["k"], "loss": "", "lam": 0.0, "delta": 1.0} | demands
    if options.weights is not None:
        fields["weights"] = read_weights(options.weights)
    labels = fields.get("groups", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise Unreadable("the instance's groups are no list of texts; give a label for each column, or leave them out.")
    held: dict[str | int, list[int]] = {}
    for j, label in enumerate(labels):
        held.setdefault(label or j, []).append(j)
    if isinstance(fields["k"], int) and held and options.per_group is None:
        fields["k"] = min(fields["k"], len(held))
    for name, read in READERS.items():
        if name in fields:
            texts = vars(options)[name]
            named = {} if sparse is not None else read_instance(options.instance, ["feature_names"])
            said = fields[name] if texts is None else [line for text in texts for line in _lines(text)]
            demands |= read(said, labels, named.get("feature_names", []), _width(fields["A"]))
    if not all(vars(options)[name] is None for name in LIMITS):
        lines = [] if options.bounds is None else read_lines(options.bounds)
        named = {} if sparse is not None else read_instance(options.instance, ["feature_names"])
        columns = named.get("feature_names", [])
        most = math.inf if options.max_coef is None else options.max_coef
        demands["bounds"] = bounds(lines, options.nonnegative or "", columns, _width(fields["A"]), most)
    if not all(vars(options)[name] is None for name in EQUALITIES):
        demands |= _equalities(options, fields, demands.get("bounds"))
    return {
        **{name: fields[name] for name in ("A", "y", "k", "loss", "lam", "delta")},
        **demands, "groups": [*held.values()], "per_group": options.per_group, "weights": fields.get("weights"),
        "level": _flag(fields, "intercept"), "scale": _flag(fields, "scale"),
    }  # fmt: skip


def _equalities(
    options: argparse.Namespace, fields: dict[str, Any], bounds: list[list[float]] | None
) -> dict[str, Any]:
    """The equalities that options name, and the limits of coefficients that they imply, as a solve states them."""
    columns, d = read_instance(options.instance, ["feature_names"]).get("feature_names", []), _width(fields["A"])
    rows, right = written(options.equality or [], options.sum_to, columns, d)
    free = [[-math.inf] * d, [math.inf] * d]
    limits = implied(rows, right, [*bounds] if bounds else free)
    unlimited = limits == free or _flag(fields, "scale") is True
    return {"equalities": [rows, right], "bounds": bounds if unlimited else limits}


def _lines(text: str) -> list[str]:
    """The lines of a file, or a text that is a line itself."""
    itself = "," in text and not os.path.isfile(text)
    return [text] if itself else read_lines(text)


def _width(A: object) -> int:
    """The columns of a table; none of anything else, which is the check's to refuse."""
    if isinstance(A, Sparse):
        return len(A.rows)
    return len(A[0]) if isinstance(A, list) and A and isinstance(A[0], list) else 0


def _flag(fields: dict[str, Any], name: str) -> object:
    """A flag that an instance may write as 0 or 1; anything else is left for the check to refuse."""
    value = fields.get(name, False)
    return bool(value) if value in (0, 1) else value


if __name__ == "__main__":
    sys.exit(main())
