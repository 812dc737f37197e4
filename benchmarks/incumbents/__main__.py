"""Run the command line."""

from benchmarks.incumbents.commands import main

main(prog_name="python -m benchmarks.incumbents")
