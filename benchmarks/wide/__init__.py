"""How many columns exactsel serves, in seconds and in memory: ``python -m benchmarks.wide --help``.

designs.py has random designs, stored.py data sets and a sparse table, instances.py their list; one.py solves one
instance in a process of its own, runs.py starts these, picture.py draws them. hints.py writes the files that other
solvers read, other.py runs one of these, peers.py puts them side by side.
"""
