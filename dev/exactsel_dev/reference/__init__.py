"""A slow twin of the solver's bounds, for the tests; to check a proof you do not need it.

:mod:`exactsel_dev.reference.bounds` writes out the bound of a region slowly and plainly, ``columns``
does so for column subset selection; :mod:`exactsel_dev.reference.replay` walks a recorded search (``record``)
step by step, and within it ``subtree`` retraces the walks of whole subtrees.
``certificates/README.md`` tells how to do the same by hand.
"""
