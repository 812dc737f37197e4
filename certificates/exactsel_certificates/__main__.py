"""``python -m exactsel_certificates PROOF INSTANCE``: check a proof file; numpy is all that is needed.

INSTANCE is a .npz file with A (rows x columns), y, and optionally k, lam, loss, delta, weights (of the rows) and
intercept (1 for one); options override the file.
Exit code 0: verified, 3: rejected, 2: malformed, unreadable or wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from typing import Any

import numpy as np

from exactsel_certificates.checking import EXACT_LIMIT, AnyInstance, verify
from exactsel_certificates.columns import ColumnInstance
from exactsel_certificates.container import MalformedError, read_proof
from exactsel_certificates.formula import Instance

VERIFIED, MALFORMED, REJECTED = 0, 2, 3


def main(arguments: list[str] | None = None) -> int:
    """Check one proof; the exit code."""
    options = _parser().parse_args(arguments)
    try:
        verdict = verify(read_proof(options.proof), _instance(options), options.exact_limit)
    except (MalformedError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        sys.stderr.write(f"Error: {error}\n")
        return MALFORMED
    sys.stdout.write((json.dumps(verdict.as_dict(), allow_nan=False) if options.json else str(verdict)) + "\n")
    return VERIFIED if verdict.verified else REJECTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="exactsel_certificates", description="Check a proof file.")
    parser.add_argument("proof", help="the .exsel file")
    parser.add_argument("instance", help=".npz file with A, y and, as far as no option says them, k, lam, loss, delta")
    parser.add_argument("--problem", choices=["regression", "css"], default="regression")
    parser.add_argument("-k", "--k", type=int, help="largest number of columns")
    parser.add_argument("--loss", help="quadratic, huber or logistic")
    parser.add_argument("--lam", type=float, help="ridge weight of (lam/2)||x||^2")
    parser.add_argument("--delta", type=float, help="Huber threshold")
    parser.add_argument("--must-have", type=_columns, default=(), help="columns forced in, by number: 0,4")
    parser.add_argument("--must-not", type=_columns, default=(), help="columns forced out, by number: 1,2")
    parser.add_argument("--intercept", action="store_true", help="models have an unpenalised intercept")
    parser.add_argument("--exact-limit", type=float, default=EXACT_LIMIT, help="multiplications in exact arithmetic")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser


def _columns(text: str) -> tuple[int, ...]:
    return tuple(sorted({int(entry) for entry in text.split(",") if entry.strip()}))


def _instance(options: argparse.Namespace) -> AnyInstance:
    """The caller's problem, from the instance file and the options."""
    with np.load(options.instance, allow_pickle=False) as archive:
        stored = {name: np.asarray(archive[name]) for name in archive.files if name != "feature_names"}

    def given(name: str, default: Any = None) -> Any:
        value = getattr(options, name)
        if value is None:
            value = stored[name].item() if name in stored else default
        if value is None:
            raise ValueError(f"neither the instance nor an option says what {name} is; give --{name}.")
        return value

    A = np.asarray(stored["A"], dtype=np.float64)
    if A.ndim != 2 or not np.all(np.isfinite(A)):
        raise ValueError("A is no table of finite numbers.")
    k = min(int(given("k")), A.shape[1])
    if options.problem == "css":
        return ColumnInstance(A, k)
    loss = str(given("loss", "quadratic"))
    delta = float(given("delta")) if loss == "huber" else np.inf
    y = np.asarray(stored["y"], dtype=np.float64)
    lam = float(given("lam"))
    weights = np.asarray(stored["weights"], dtype=np.float64) if "weights" in stored else None
    intercept = options.intercept or bool(stored.get("intercept", False))
    return _checked(Instance(A, y, k, loss, lam, delta, options.must_have, options.must_not, weights, intercept))


def _checked(instance: Instance) -> Instance:
    """Refuse what no problem may have, since bounds would mean nothing."""
    if not np.all(np.isfinite(instance.y)):
        raise ValueError("y holds NaN or infinite values.")
    if instance.loss == "logistic" and not np.all(np.abs(instance.y) == 1):
        raise ValueError("y holds other values than -1 and 1, which logistic loss needs.")
    if not (0 <= instance.lam < np.inf and instance.delta > 0 and instance.k >= 0):
        raise ValueError("k and lam may not be negative, and delta must be positive.")
    return instance


if __name__ == "__main__":
    sys.exit(main())
