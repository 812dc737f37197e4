"""The experiments of Pahikkala, Airola and Salakoski, "Linear time feature selection for RLS" (2010).

``python -m benchmarks.greedy_rls --help`` lists them; docs/development/greedy-rls-experiments.md holds the results.
Each experiment is a generator of table rows (scaling.py, comparison.py, accuracy.py); commands.py writes the tables.
"""
