"""Table 1 of the paper: error ratios for k = 50, as printed (mean ± standard deviation of randomised methods)."""

from __future__ import annotations

from benchmarks.folder import key

K = 50

COLUMNS = ("two-stage", "approx-svd", "greedy-css", "WA*", "iterative-css", "pocss")
"""Two-stage, ApproxSVD, Greedy, WA*, IterFS and POCSS, under our names."""

TABLE_1 = {
    "sonar": ("2.656", "2.860", "2.852", "2.785", "2.524 ± 0.000", "2.524 ± 0.000"),
    "mediamill": ("2.179", "2.075", "2.045", "2.105", "1.952 ± 0.027", "1.945 ± 0.022"),
    "ComCri": ("1.265", "1.197", "1.195", "1.203", "1.197 ± 0.004", "1.194 ± 0.027"),
    "musk": ("1.868", "1.775", "1.774", "1.740", "1.669 ± 0.013", "1.656 ± 0.012"),
    "dna": ("1.334", "1.325", "1.320", "1.323", "1.313 ± 0.002", "1.311 ± 0.000"),
    "arrhythmia": ("1.734", "1.560", "1.551", "1.555", "1.535 ± 0.006", "1.520 ± 0.018"),
    "scene": ("1.585", "1.553", "1.548", "1.544", "1.533 ± 0.002", "1.530 ± 0.003"),
    "RlCTs": ("1.535", "1.432", "1.433", "1.446", "1.452 ± 0.051", "1.420 ± 0.003"),
    "madelon": ("1.123", "1.057", "1.056", "1.056", "1.056 ± 0.000", "1.056 ± 0.000"),
    "sEMG": ("1.259", "1.226", "1.224", "1.224", "1.218 ± 0.001", "1.216 ± 0.001"),
}

AVERAGE_RANK = ("5.7", "4.55", "3.3", "3.8", "2.45", "1.2")
"""The last row of the table: the mean over the data sets of the rank of each method, ties sharing theirs."""

SHAPES = {
    "sonar": (208, 60),
    "mediamill": (30993, 120),
    "ComCri": (2215, 147),
    "musk": (7074, 168),
    "dna": (2000, 180),
    "arrhythmia": (452, 279),
    "scene": (1211, 294),
    "RlCTs": (53500, 386),
    "madelon": (2000, 500),
    "sEMG": (1800, 2500),
}
"""Rows and columns, as the table prints them."""

FIGURE_1 = ("mediamill", "musk", "dna", "scene")
FIGURE_2 = ("RlCTs", "sEMG")

NOTHING = "–"


def figure(data: str, k: int, method: str) -> str:
    """What the paper reports of a data set, under whatever spelling, or a dash."""
    row = next((row for name, row in TABLE_1.items() if key(name) == key(data)), None)
    if k != K or row is None or method not in COLUMNS:
        return NOTHING
    return row[COLUMNS.index(method)]
