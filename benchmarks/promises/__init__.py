"""What the schedule of closers and bounds promises, measured: ``python -m benchmarks.promises --help``.

runs.py follows the lower bound of a search over its counted work, instances.py has the instances, and checks.py holds
one run against others. Work is counted (exactsel/search/incumbents.py), never timed.
"""
