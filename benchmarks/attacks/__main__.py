"""``python -m benchmarks.attacks``: run the command line with one thread everywhere."""

import os


def run() -> None:
    """Limit the threads, which numba and numpy read when they are imported; only then import them."""
    for variable in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    from benchmarks.attacks.commands import main

    main(prog_name="python -m benchmarks.attacks")


if __name__ == "__main__":
    run()
