"""Attacks on the solver and its checkers, each a command with a seed."""
