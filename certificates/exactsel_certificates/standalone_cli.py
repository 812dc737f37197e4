"""The command line of the second checker; the standard library is all it needs.

    python -m exactsel_certificates.standalone_cli PROOF INSTANCE.npz [-k K] [--lam LAM] [--loss LOSS] [--delta DELTA]

Exit code: 0 verified, 3 rejected, 2 malformed or beyond it.
"""

from __future__ import annotations

import argparse
import ast
import struct
import sys
import zipfile
from typing import Any

from exactsel_certificates.standalone import Beyond, Malformed, check


def read_instance(path: str) -> dict[str, Any]:
    """Arrays of an .npz file of doubles, whole numbers or texts, as (nested) lists."""
    arrays: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for name in (n for n in archive.namelist() if n != "feature_names.npy"):
            raw = archive.read(name)
            start = 10 if raw[6] == 1 else 12
            size = int.from_bytes(raw[8:start], "little")
            about = ast.literal_eval(raw[start : start + size].decode())
            body, kind = raw[start + size :], about["descr"]
            if kind.startswith("<U"):
                values: Any = [body.decode("utf-32-le").rstrip("\0")]
            else:
                values = list(struct.unpack(f"<{len(body) // 8}{'d' if kind == '<f8' else 'q'}", body))
            if len(about["shape"]) == 2:
                n, d = about["shape"]
                fortran = about["fortran_order"]
                values = [values[i::n] if fortran else values[i * d : i * d + d] for i in range(n)]
            arrays[name.removesuffix(".npy")] = values if about["shape"] else values[0]
    return arrays


def main(arguments: list[str] | None = None) -> int:
    """The command of the module's docstring."""
    parser = argparse.ArgumentParser(description="Check a small proof file in exact arithmetic.")
    parser.add_argument("proof")
    parser.add_argument("instance")
    for name, kind in {"-k": int, "--lam": float, "--loss": str, "--delta": float, "--problem": str}.items():
        parser.add_argument(name, type=kind)
    options = parser.parse_args(arguments)
    known: dict[str, Any] = {"loss": "quadratic", "y": [], "lam": 0.0, "delta": 1.0} | read_instance(options.instance)
    known |= {name: value for name, value in vars(options).items() if value is not None}
    loss = "" if options.problem == "css" else known["loss"]
    try:
        with open(options.proof, "rb") as file:
            reason = check(
                file.read(), known["A"], known["y"], known["k"], loss, known["lam"], known["delta"],
                weights=known.get("weights"), level=bool(known.get("intercept", False)),
            )  # fmt: skip
    except (Malformed, Beyond, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"REJECTED {reason}\n" if reason else "VERIFIED in exact arithmetic\n")
    return 3 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
