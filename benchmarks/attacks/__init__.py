"""Attacks on exactsel, each a command with a seed and a row of a table."""
