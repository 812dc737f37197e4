"""Write tests/proofs: valid, must-fail and malformed proof files of one tiny problem, each with its reason.

    python tests/make_proofs.py

The files are kept, so that they also hold later versions to this one's format; a bug found adds a file.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FOLDER = HERE / "proofs"


def problem():
    """Eight rows, four columns, two of them to choose."""
    import exactsel

    A = np.array([[1, 0, 2, 1], [0, 1, 1, -1], [1, 1, 0, 0], [2, -1, 1, 0],
                  [0, 2, -1, 1], [1, 0, 0, 2], [-1, 1, 1, 0], [0, 0, 1, 1]], dtype=float)  # fmt: skip
    return exactsel.Problem(A, [3, 1, 2, 3, 1, 2, 0, 1.5], 2, lam=0.25)


def valid(folder):
    """Proofs of every kind of search; file name -> reason."""
    from exactsel import solve

    plain = {"heuristics": (), "signals": ()}
    kinds = {
        "subtree-walk": ({}, "the default: fits along a depth-first walk"),
        "points": ({"subtrees": False}, "one point for each region, with curvature"),
        "state-space": ({"tree": "state-space"}, "chains of splits"),
        "dual-vectors": ({"bound": "pdal"}, "dual vectors instead of points"),
        "fit": ({"bound": "fit"}, "fits and points, without curvature"),
        "interrupted": ({"node_limit": 1, "subtrees": False}, "regions still open are leaves"),
        "at-once": ({"node_limit": 0}, "nothing but the infimum: a lower bound of zero"),
    }
    for name, (options, _) in kinds.items():
        solve(problem(), proof=folder / f"{name}.exsel", **{**plain, **options})
    return {name: reason for name, (_, reason) in kinds.items()}


def must_fail(proof):
    """Well-formed files that prove less than they say: name -> (proof, reason)."""
    from exactsel_certificates.container import CLOSE, FIT, USE

    best = proof.lower
    alone = np.array([8 * FIT + USE, CLOSE], dtype=np.int32)
    double = proof.curvature * 2
    return {
        "lower-above-truth": (replace(proof, lower=proof.upper * (1 + 1e-9)), "one part in 10^9 above the optimum"),
        "upper-too-small": (replace(proof, upper=proof.upper * (1 - 1e-9)), "the model costs more"),
        "other-hash": (replace(proof, problem_hash="0" * 64), "the hash of another problem"),
        "other-k": (replace(proof, k=1), "a proof about fewer columns"),
        "other-loss": (replace(proof, loss="huber"), "a proof about another loss"),
        "too-many-columns": (
            replace(proof, model_index=np.arange(3, dtype=np.int32), model_value=np.ones(3), upper=1e6),
            "a model of three columns",
        ),
        "no-search": (replace(proof, tree=alone), "one fit over all columns cannot prove the bound"),
        "missing-point": (replace(proof, tree=np.array([8 * 99 + USE, CLOSE], dtype=np.int32)), "no such point"),
        "zero-points": (replace(proof, point_value=0 * proof.point_value), "points of the empty model"),
        "curvature-too-large": (replace(proof, curvature=double, lower=best * 1.001), "the rest is not convex"),
        "eigenvalues": (replace(proof, tree=np.array([8 * 2 + USE, CLOSE], dtype=np.int32)), "no such matrix problem"),
    }


def malformed(proof, data):
    """Files that are no proofs: name -> (bytes, reason)."""
    from corrupted import as_bytes

    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size]

    def tree(*words):
        return as_bytes(replace(proof, tree=np.array(words, dtype=np.int32)))

    def text(old, new):
        changed = header.replace(old, new)
        changed += b" " * (-len(changed) % 8)
        return len(changed).to_bytes(8, "little") + changed + data[8 + size :]

    def values(name, *numbers):
        return as_bytes(replace(proof, **{name: np.array(numbers, dtype=getattr(proof, name).dtype)}))

    return {
        "empty": (b"", "no bytes"),
        "truncated": (data[:-1], "the last byte is missing"),
        "trailing": (data + b"\0", "one byte too many"),
        "header-too-long": ((1 << 60).to_bytes(8, "little") + data[8:], "a header larger than the file"),
        "header-over-the-cap": ((70000).to_bytes(8, "little") + b" " * 70000 + data, "a header of more than 64 KiB"),
        "not-json": (data[:8] + b"?" * size + data[8 + size :], "a header that is no JSON"),
        "other-format": (text(b'"exsel"', b'"excel"'), "another format"),
        "other-version": (text(b'"version": 1', b'"version": 2'), "a version of the future"),
        "weights": (text(b'"weights": null', b'"weights": [1]'), "weights are reserved"),
        "unknown-type": (text(b'"<i4"', b'"<i8"'), "a type that is not allowed"),
        "lower-is-nan": (text(b'"lower": "0x', b'"lower": "nanx'), "a claim that is no number"),
        "size-overflow": (text(b'"n": 8', b'"n": 99999999999'), "a size beyond 2^31"),
        "nan": (values("model_value", np.nan, 1.0), "a coefficient that is no number"),
        "columns-not-ascending": (values("model_index", 1, 1), "the same column twice"),
        "column-out-of-range": (values("model_index", 1, 4), "a column that is not there"),
        "no-tree": (tree(), "no words"),
        "tree-ends-early": (tree(0), "a split without its parts"),
        "tree-goes-on": (tree(4, 4), "words after the end"),
        "same-column-twice": (tree(0, 0, 4, 4, 4), "a column decided twice"),
        "negative-word": (tree(-1, 4), "a negative word"),
        "unknown-word": (tree(6, 4), "a kind of word that does not exist"),
        "no-place-left": (tree(0, 8, 16, 4, 4, 4, 4), "a third column where two are allowed"),
    }


def main():
    sys.path.insert(0, str(HERE))
    from exactsel.data.instance import Instance, write_instance
    from exactsel_certificates.container import parse_proof

    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in ("valid", "must_fail", "malformed"):
        (FOLDER / name).mkdir(parents=True)
    at = problem()
    write_instance(FOLDER / "instance.npz", Instance(np.array(at.A), np.array(at.y), k=at.k, lam=at.lam))
    reasons = {"valid": valid(FOLDER / "valid")}
    data = (FOLDER / "valid" / "points.exsel").read_bytes()
    proof = parse_proof(data)
    failing = must_fail(proof)
    from corrupted import as_bytes

    for name, (changed, _) in failing.items():
        (FOLDER / "must_fail" / f"{name}.exsel").write_bytes(as_bytes(changed))
    broken = malformed(proof, data)
    for name, (content, _) in broken.items():
        (FOLDER / "malformed" / f"{name}.exsel").write_bytes(content)
    reasons |= {
        "must_fail": {n: r for n, (_, r) in failing.items()},
        "malformed": {n: r for n, (_, r) in broken.items()},
    }
    lines = [
        "# Why each file is where it is; `python tests/make_proofs.py` writes them all. [check: tests/test_proofs.py]"
    ]
    for kind, named in reasons.items():
        lines += ["", f"## {kind}", "", *(f"* `{name}`: {reason}" for name, reason in named.items())]
    (FOLDER / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
