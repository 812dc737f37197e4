"""Run the command line with one thread in linear algebra; figures over cores use as many threads as there are."""

import os


def run() -> None:
    """Limit the threads, which numpy reads when it is imported; only then import it."""
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    from benchmarks.papers.commands import main

    main(prog_name="python -m benchmarks.papers")


if __name__ == "__main__":
    run()
