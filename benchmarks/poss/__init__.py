"""The experiments of Qian, Yu and Zhou, "Subset Selection by Pareto Optimization" (NeurIPS 2015), section 5.

``python -m benchmarks.poss --help`` lists them; docs/development/poss-experiments.md holds the results. data.py reads
and splits the data, methods.py names the methods, table2.py, generalisation.py and anytime.py hold the experiments,
published.py the paper's figures, commands.py writes the tables.
"""
