"""What executors cost, gain and survive: ``python -m benchmarks.executors``; see docs/howto/cluster.md."""
