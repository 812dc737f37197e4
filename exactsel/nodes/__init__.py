"""Regions of the search space: nodes, what may become of them, how they are divided and in which order they wait."""
