"""Campaigns: random tiny instances solved and held against the truth, each made from a seed alone.

``exactsel dev fuzz`` runs them. :mod:`random_instances` turns a seed into an instance, :mod:`brute_force` knows its
optimum by trying every support, :mod:`judging` says what is wrong with a result, :mod:`relations` what must hold
between two, :mod:`peers` what other solvers say, and :mod:`reducing` makes what fails small. :mod:`campaign` puts these
together.
"""
