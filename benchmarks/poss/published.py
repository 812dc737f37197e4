"""What the paper prints: Table 2, training R² for k = 8 (mean and deviation over 100 random halves), and Figure 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.folder import key


class Figure(NamedTuple):
    """One entry of the table."""

    mean: float
    sd: float


METHODS = ("OPT", "POSS", "FR", "FoBa", "OMP", "RFE", "MCP")
"""The table's columns. Of Lasso and SCAD the paper says that they were very close to MCP."""

_ROWS: Mapping[str, str] = {
    "housing": ".7437 .0297 .7437 .0297 .7429 .0300 .7423 .0301 .7415 .0300 .7388 .0304 .7354 .0297",
    "eunite2001": ".8484 .0132 .8482 .0132 .8348 .0143 .8442 .0144 .8349 .0150 .8424 .0153 .8320 .0150",
    "svmguide3": ".2705 .0255 .2701 .0257 .2615 .0260 .2601 .0279 .2557 .0270 .2136 .0325 .2397 .0237",
    "ionosphere": ".5995 .0326 .5990 .0329 .5920 .0352 .5929 .0346 .5921 .0353 .5832 .0415 .5740 .0348",
    "sonar": "- - .5365 .0410 .5171 .0440 .5138 .0432 .5112 .0425 .4321 .0636 .4496 .0482",
    "triazines": "- - .4301 .0603 .4150 .0592 .4107 .0600 .4073 .0591 .3615 .0712 .3793 .0584",
    "coil2000": "- - .0627 .0076 .0624 .0076 .0619 .0075 .0619 .0075 .0363 .0141 .0570 .0075",
    "mushrooms": "- - .9912 .0020 .9909 .0021 .9909 .0022 .9909 .0022 .6813 .1294 .8652 .0474",
    "clean1": "- - .4368 .0300 .4169 .0299 .4145 .0309 .4132 .0315 .1596 .0562 .3563 .0364",
    "w5a": "- - .3376 .0267 .3319 .0247 .3341 .0258 .3313 .0246 .3342 .0276 .2694 .0385",
    "gisette": "- - .7265 .0098 .7001 .0116 .6747 .0145 .6731 .0134 .5360 .0318 .5709 .0123",
    "farm-ads": "- - .4217 .0100 .4196 .0101 .4170 .0113 .4170 .0113 - - .3771 .0110",
}


def _figures(row: str) -> dict[str, Figure]:
    cells = row.split()
    pairs = zip(METHODS, cells[::2], cells[1::2], strict=True)
    return {method: Figure(float(mean), float(sd)) for method, mean, sd in pairs if mean != "-"}


TABLE_2: Mapping[str, Mapping[str, Figure]] = {data: _figures(row) for data, row in _ROWS.items()}
"""By data set and method; OPT and RFE are missing where the paper has none ("after running several days")."""

K = 8
"""The subset size of the table."""

SHAPES: Mapping[str, tuple[int, int]] = {
    "housing": (506, 13),
    "eunite2001": (367, 16),
    "svmguide3": (1284, 21),
    "ionosphere": (351, 34),
    "sonar": (208, 60),
    "triazines": (186, 60),
    "coil2000": (9000, 86),
    "mushrooms": (8124, 112),
    "clean1": (476, 166),
    "w5a": (9888, 300),
    "gisette": (7000, 5000),
    "farm-ads": (4143, 54877),
}
"""Rows and columns, as Table 1 prints them."""

FIGURE_2: Mapping[str, float] = {"gisette": 0.14, "farm-ads": 0.23}
"""The share of 2ek²d after which POSS is better than FR, as the text says."""


def figures(data: str, k: int) -> Mapping[str, Figure]:
    """The figures printed for a data set, under whatever spelling; none for another k."""
    return next((row for name, row in TABLE_2.items() if k == K and key(name) == key(data)), {})


def share(data: str) -> float | None:
    """The share printed with Figure 2."""
    return next((value for name, value in FIGURE_2.items() if key(name) == key(data)), None)
