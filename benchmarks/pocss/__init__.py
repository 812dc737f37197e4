"""The experiments of Feng, Qian and Tang, "Unsupervised feature selection by Pareto optimization" (AAAI 2019).

``python -m benchmarks.pocss --help`` lists them; docs/development/pocss-experiments.md holds the results. data.py
reads and scales matrices, methods.py runs one method, published.py holds the figures of the paper, experiments.py and
anytime.py make the rows of the tables and commands.py writes them.
"""
