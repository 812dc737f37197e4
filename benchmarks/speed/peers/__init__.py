"""Other exact solvers: run one of them on one instance and print one line of JSON.

    PYTHON -m benchmarks.speed.peers installed
    PYTHON -m benchmarks.speed.peers okridge FILE --upper 0.25 --support 3,8 --time-limit 60 --rel-gap 1e-4

This runs in the interpreter that has the solvers, not in exactsel's, so it needs numpy and the solver only. Everything
is said on the scale of exactsel, P(x) = L(Ax) + lam/2 ||x||². ``seconds`` is the processor time and ``clock`` that on
the wall, from the arrays to the answer; ``lower`` is null when the solver has no bound to show. ``--upper`` and
``--support`` (a good model) and ``--penalty`` are worked out beforehand, by hints.py, and are not in these times.
"""
