"""``python -m benchmarks.twins``."""

from benchmarks.twins.commands import main

if __name__ == "__main__":
    main(prog_name="python -m benchmarks.twins")
