"""``python -m benchmarks.pposs``: run the command line, one thread per kernel call unless it asks for more."""

from benchmarks.pposs.commands import main

if __name__ == "__main__":
    main(prog_name="python -m benchmarks.pposs")
