"""More rows than memory holds: seconds, peak memory and accuracy of reducing them, and what a solve then proves."""
