"""What executors cost, gain and survive: ``python -m benchmarks.executors``; see docs/development/executors.md."""
