"""The experiments of Sakaue and Marumo, "Best-first search algorithm for non-convex sparse minimization" (2019).

``python -m benchmarks.paper --help`` lists them; docs/development/paper-experiments.md holds the results. Each
experiment is a generator of table rows (cost.py, recovery.py, ablation.py, dual_solvers.py, real.py); commands.py
writes the tables.
"""
