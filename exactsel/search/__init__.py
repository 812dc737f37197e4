"""The best-first search: nodes, trees, branching, frontier, and the loop in engine.py."""
