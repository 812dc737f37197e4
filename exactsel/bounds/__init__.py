"""Lower bounds of a node, each in a file of its own behind :class:`exactsel.bounds.base.BoundSolver`."""
