"""How fast exactsel is beside other exact solvers, and where its time goes.

``python -m benchmarks.speed --help`` lists the commands; docs/development/solver-comparison.md holds
the results. instances.py makes and finds the instances, ours.py solves one with exactsel and peers/ with another
solver, each in a process of its own that
processes.py starts; hints.py works out what the others are told; comparison.py and where.py make the rows of the
tables, profile.py the picture, commands.py is the command line.
"""
