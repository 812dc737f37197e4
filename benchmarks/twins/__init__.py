"""Every parallel loop beside its serial form: what it costs on one thread, and how much faster it is on all."""
