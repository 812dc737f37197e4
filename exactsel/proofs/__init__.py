"""Proofs: the problem as the checker takes it, what may be said of it, the file a search writes, and its check."""
