"""Table 1 of the paper: error ratios for k = 50, as printed (mean ± standard deviation of randomised methods)."""

from __future__ import annotations

K = 50

COLUMNS = ("two-stage", "approx-svd", "greedy-css", "WA*", "iterative-css", "pocss")
"""Two-stage, ApproxSVD, Greedy, WA*, IterFS and POCSS, under our names."""

TABLE_1 = {
    "sonar": ("2.656", "2.860", "2.852", "2.785", "2.524 ± 0.000", "2.524 ± 0.000"),
    "dna": ("1.334", "1.325", "1.320", "1.323", "1.313 ± 0.002", "1.311 ± 0.000"),
    "arrhythmia": ("1.734", "1.560", "1.551", "1.555", "1.535 ± 0.006", "1.520 ± 0.018"),
}

NOTHING = "–"


def figure(data: str, k: int, method: str) -> str:
    """What the paper reports, or a dash."""
    if k != K or data not in TABLE_1 or method not in COLUMNS:
        return NOTHING
    return TABLE_1[data][COLUMNS.index(method)]
