"""On which of the shipped instances which methods fail: ``python -m benchmarks.failures --help``."""
