"""The instances by name, with the seconds each is to take at most where such an aim was set."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from benchmarks.wide.designs import Design
from benchmarks.wide.stored import Mapped, Sparse, Stored

Instance = Design | Stored | Sparse | Mapped

KINDS: dict[str, type[Design] | type[Stored] | type[Sparse] | type[Mapped]] = {
    "design": Design, "stored": Stored, "sparse": Sparse, "mapped": Mapped,
}  # fmt: skip

FREE, LIMITED = "k 5, lam 0, no limits", "k 10, lam 2, limits 1.5 times the largest coefficient"


def _limited(name: str, p: int, aim: float | None = None, series: str = "", times: float = 1.5) -> Design:
    return Design(name, 1000, p, 10, lam=2.0, times=times, aim=aim, series=series)


def _unit(name: str, p: int, lam: float, aim: float, rho: float = 0.1) -> Design:
    return Design(name, 1000, p, 10, rho, lam, times=1.5, unit=True, aim=aim)


DESIGNS = (
    Design("ridge-1500", 1000, 1500, 10, lam=2.0, aim=10.0),
    Design("ridge-3000", 1000, 3000, 10, lam=2.0),
    Design("ridge-20000", 1000, 20_000, 10, lam=50.0),
    _limited("limits-1000", 1000, series=LIMITED),
    _limited("limits-3000", 3000, 1.0, LIMITED),
    _limited("limits-10000", 10_000, 2.0, LIMITED),
    _limited("limits-30000", 30_000, series=LIMITED),
    _limited("limits-100000", 100_000, 30.0, LIMITED),
    _limited("limits-10000-five-times", 10_000, 60.0, times=5.0),
    _unit("unit-1000-lam.02", 1000, 0.02, 0.03),
    _unit("unit-1000-lam.002", 1000, 0.002, 0.06),
    _unit("unit-10000-lam.02", 10_000, 0.02, 0.23),
    Design("free-1000", 1000, 1000, 5, series=FREE),
    Design("free-3000", 1000, 3000, 5, series=FREE),
    Design("free-10000", 1000, 10_000, 5, series=FREE),
    Design("free-50000", 1000, 50_000, 5, aim=30.0, series=FREE),
    Design("free-100000", 1000, 100_000, 5, aim=100.0, series=FREE),
    Design("free-20000-k3", 1000, 20_000, 3, aim=15.0),
    Design("few-rows-5000", 500, 5000, 5, lam=2.0, aim=5.0),
    Design("many-rows-10000", 3000, 10_000, 10, aim=5.0),
    Design("many-rows-50000", 3000, 50_000, 10, aim=60.0),
    Design("correlated-10000", 1000, 10_000, 5, 0.5, aim=5.0),
    Design("correlated-many-rows-10000", 3000, 10_000, 10, 0.3, aim=10.0),
    Design("correlated-3000", 1000, 3000, 5, 0.7, aim=5.0),
)

OTHERS = (
    Stored("riboflavin-k3", "riboflavin", 3),
    Stored("riboflavin-k4", "riboflavin", 4, aim=120.0),
    Stored("riboflavin-k4-ridge", "riboflavin", 4, lam=71.0),
    Stored("colon-cancer-k3", "colon-cancer", 3),
    Stored("colon-cancer-k4", "colon-cancer", 4, aim=10.0),
    Stored("colon-cancer-k4-ridge", "colon-cancer", 4, lam=62.0),
    Sparse("sparse-54877", 4143, 54_877, 8, 0.004, aim=30.0),
    *(
        Sparse(f"sparse-54877-{method}", 4143, 54_877, 8, 0.004, method=method, aim=30.0)
        for method in ("forward", "greedy-rls", "poss")
    ),
    Sparse("sparse-54877-snr.5", 4143, 54_877, 8, 0.004, snr=0.5, aim=30.0),
)

ASKED = (
    Mapped("mapped-200000", 1000, 200_000, 5, 2000.0, method="forward"),
    Mapped("mapped-1000000", 1000, 1_000_000, 5, 2000.0, method="forward"),
)
"""Files of gigabytes are written for these: they run only where they are named."""

INSTANCES: dict[str, Instance] = {instance.name: instance for instance in (*DESIGNS, *OTHERS, *ASKED)}


def to_plain(instance: Instance) -> dict[str, Any]:
    """An instance as JSON has it."""
    (kind,) = (name for name, made in KINDS.items() if type(instance) is made)
    return {"kind": kind, **asdict(instance)}


def from_plain(entries: dict[str, Any]) -> Instance:
    """The instance of such an object."""
    return KINDS[entries["kind"]](**{name: value for name, value in entries.items() if name != "kind"})
