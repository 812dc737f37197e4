"""An independent check of what a search claims; numpy is all it needs, and it imports nothing of the solver.

Two parts, with a wall between them:

* The files of this folder are the checker, and what has to be trusted. :mod:`exactsel_certificates.checking` checks
  proof files (``FORMAT.md`` beside this package) with every rounding error accounted for. How data are prepared and
  what that does to a bound (:mod:`exactsel_certificates.prepared`, ``transfer``) serves the solver too.
* :mod:`exactsel_certificates.standalone` does so again in exact fractions, sharing no line with it.

Tests hold both against a third, slow one (``dev/exactsel_dev/reference`` in a checkout).
"""
