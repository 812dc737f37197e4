"""The experiments of Qian, Shi, Yu, Tang and Zhou, "Parallel Pareto optimization for subset selection" (IJCAI 2016).

``python -m benchmarks.pposs --help``; docs/development/pposs-experiments.md holds the results. cases.py has the
problems, experiments.py the tables, commands.py writes them.
"""
