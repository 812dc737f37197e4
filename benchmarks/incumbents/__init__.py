"""What every method finds on every data set, beside the search with its own portions for heuristics.

``python -m benchmarks.incumbents --help`` lists the commands. cases.py makes the problems, runs.py runs one method or
the search on one of them, tables.py draws up what came of it and commands.py writes it.
"""
