"""Run the command line; the linear algebra of numpy stays on one thread, greedy RLS takes the threads it is given."""

import os


def run() -> None:
    """Limit the threads of numpy, which reads the limit when it is imported; only then import it."""
    for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    from benchmarks.greedy_rls.commands import main

    main(prog_name="python -m benchmarks.greedy_rls")


if __name__ == "__main__":
    run()
