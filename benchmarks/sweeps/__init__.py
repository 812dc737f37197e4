"""Attempts to lose jobs of a sweep, or to run one twice."""
