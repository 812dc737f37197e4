"""Sweeps: one job for each instance, k, lam, loss, method and seed of a grid, and a row for each job in one table."""

from exactsel.studies.sweeps.run import Sweep, plan, sweep

__all__ = ["Sweep", "plan", "sweep"]
