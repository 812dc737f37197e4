"""Find losses, bounds, closers, trees, branchings, frontiers and heuristics by name, through entry points.

Built-ins enter through the same door as plug-ins: an entry point in the group ``exactsel.<kind>``. Names are listed
without importing what they name.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from exactsel.errors import InputError, did_you_mean

LOSSES_ELSEWHERE = {
    "gaussian": "quadratic", "normal": "quadratic", "squared_error": "quadratic", "mse": "quadratic",
    "ols": "quadratic", "least_squares": "quadratic", "binomial": "logistic", "log_loss": "logistic",
    "bernoulli": "logistic", "quasipoisson": "poisson", "hinge": "squared_hinge",
}  # fmt: skip
"""What other programs call the families and losses that are here."""

KINDS = ("losses", "bounds", "closers", "trees", "branchings", "frontiers", "heuristics")


@cache
def _entries(kind: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"exactsel.{kind}")}


def names(kind: str) -> list[str]:
    """Names known for a kind (one of :data:`KINDS`), sorted."""
    return sorted(_entries(kind))


class Origin(NamedTuple):
    """Where a plug-in comes from."""

    name: str
    package: str
    """The distribution that brings it, as pip knows it."""
    version: str
    object: str
    """``module:attribute``"""


def origins(kind: str) -> list[Origin]:
    """The plug-ins of a kind, by name, and where each comes from; none of them is imported."""
    plugins = []
    for name in names(kind):
        entry = _entries(kind)[name]
        package = entry.dist
        release = ("unknown", "") if package is None else (package.name, package.version)
        plugins.append(Origin(name, *release, entry.value))
    return plugins


def load(kind: str, name: str) -> type[Any]:
    """Import and return what ``name`` stands for; :class:`InputError` for an unknown name."""
    try:
        _entries(kind)[name]
    except KeyError:
        listing = ", ".join(names(kind)) or "none (a package brings them)"
        singular = {"losses": "loss", "branchings": "branching rule"}.get(kind, kind[:-1])
        other = LOSSES_ELSEWHERE.get(str(name).lower()) if kind == "losses" else None
        meant = f"; '{name}' is '{other}' here" if other else did_you_mean(name, names(kind))
        raise InputError(f"there is no {singular} called '{name}'; known are: {listing}{meant}.") from None
    return _loaded(kind, name)


@cache
def _loaded(kind: str, name: str) -> type[Any]:
    loaded: type[Any] = _entries(kind)[name].load()
    return loaded


def has_delta(loss: str) -> bool:
    """Whether the loss of that name, built in or a plug-in, has a threshold ``delta``."""
    return loss in names("losses") and "delta" in getattr(load("losses", loss), "_fields", ())
