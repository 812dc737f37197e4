"""What executors cost, gain and survive: ``python -m benchmarks.executors``; the tables are in docs/howto/cluster.md."""
