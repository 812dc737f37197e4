"""An independent check of what a search claims; numpy is all it needs, and it imports nothing of the solver.

Three parts, with a wall around each:

* The files of this folder are the checker, and what has to be trusted. :mod:`exactsel_certificates.checking` checks
  proof files (``FORMAT.md`` beside this package) with every rounding error accounted for. How data are prepared and
  what that does to a bound (:mod:`exactsel_certificates.prepared`, ``transfer``) serves the solver too.
* :mod:`exactsel_certificates.standalone` does so again in exact fractions, sharing no line with it.
* :mod:`exactsel_certificates.reference` is for the tests: bounds written out slowly and plainly, and a replay of
  recorded searches.
"""
