"""A process that runs the jobs of a sweep: one a line on stdin, the outcome of each as one JSON object on stdout."""

from __future__ import annotations

from exactsel.processes import serve
from exactsel.studies.sweeps.jobs import Job, canonical
from exactsel.studies.sweeps.performing import FAILED, perform, trouble


def main() -> None:
    """Work for the process that started this one."""
    serve(lambda line: canonical(perform(Job.from_line(line)) or trouble(FAILED, "it was interrupted.")))


if __name__ == "__main__":
    main()
