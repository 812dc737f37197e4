"""The heuristics a search begins with."""

from __future__ import annotations

DEFAULT_HEURISTICS = ("forward", "omp", "htp", "dual-iht", "swap", "greedy-css", "iterative-css")
"""Those that cannot serve a problem's family are passed over."""
