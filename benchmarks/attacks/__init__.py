"""Attacks on exactsel that can be run again with another seed."""
