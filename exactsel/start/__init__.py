"""Starting models: what a heuristic is, and how the search begins with the best of their proposals."""
