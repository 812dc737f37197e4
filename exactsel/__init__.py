"""exactsel."""
