"""Campaigns: random tiny instances solved and held against the truth, each made from a seed alone.

``exactsel dev fuzz`` runs them. :mod:`random_instances` turns a seed into an instance, :mod:`brute_force` knows its
optimum by trying every support, :mod:`judging` says what is wrong with a result, :mod:`relations` what must hold
between two, and :mod:`peers` what other solvers say. :mod:`campaign` puts these together, and
:mod:`exactsel.testing.failing` makes what fails small.
"""
