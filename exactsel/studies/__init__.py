"""Studies with several solves: certify, near-optimal models, paths, criteria, comparisons, facts."""
