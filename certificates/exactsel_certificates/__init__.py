"""An independent check of what a search claims; numpy is all it needs, and it imports nothing of the solver.

:mod:`exactsel_certificates.checking` checks proof files (``FORMAT.md`` beside this package) with every rounding error
accounted for, :mod:`exactsel_certificates.standalone` does so again in exact fractions, sharing no line with it. How
data are prepared and what that does to a bound (:mod:`exactsel_certificates.prepared`, ``transfer``) serves the solver
too. For the tests there are :mod:`exactsel_certificates.formula`, the bound of a region written out slowly and plainly,
and :mod:`exactsel_certificates.replay`, which walks a recorded search record by record. ``README.md`` tells how to do
the same by hand.
"""
