"""An independent check of what a search claims; numpy is all it needs, and it shares no code with the solver.

Today it holds two things: :mod:`exactsel_certificates.formula`, the bound of a region written out slowly and plainly,
and :mod:`exactsel_certificates.replay`, which walks a recorded search record by record and recomputes every bound it
closes a region with. ``README.md`` beside this package tells how to do the same by hand.
"""
