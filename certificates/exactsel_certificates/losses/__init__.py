"""The losses that a check knows: a new one is a file of its own, and an entry here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import MISSING, fields
from importlib.metadata import PackageNotFoundError, distribution

from exactsel_certificates.losses.base import MINORANTS
from exactsel_certificates.losses.base import ExactLoss as ExactLoss
from exactsel_certificates.losses.base import Loss as Loss
from exactsel_certificates.losses.huber import Huber
from exactsel_certificates.losses.logistic import Logistic
from exactsel_certificates.losses.poisson import Poisson
from exactsel_certificates.losses.quadratic import Quadratic
from exactsel_certificates.losses.squared_hinge import SquaredHinge

LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (Quadratic, Huber, Logistic, SquaredHinge, Poisson)
}  # fmt: skip

GROUP = "exactsel_certificates.losses"
"""The entry points of losses in other packages."""


def loss_of(name: str, delta: float = math.inf, plugin: Loss | None = None) -> Loss:
    """The loss of a name; ``plugin`` where its formulas come from another package.

    Raises
    ------
    ValueError
        For a name that has no formulas, or those of another loss.
    """
    if plugin is None and name not in LOSSES:
        raise ValueError(f"the loss is '{name}', but formulas are known for {', '.join(LOSSES)} only.")
    if plugin is not None and (plugin.name != name or name in LOSSES):
        raise ValueError(f"the loss is '{name}', but a plug-in has formulas for '{plugin.name}'; give that name.")
    if plugin is not None and (plugin.quadratic or not plugin.serves <= {MINORANTS}):
        raise ValueError(f"plug-in '{name}' claims witnesses of quadratic or logistic loss; let it serve {MINORANTS}.")
    return LOSSES[name].of(delta) if plugin is None else plugin


def exactly(loss: Loss) -> ExactLoss:
    """The same with its formulas in exact arithmetic; :class:`TypeError` where it has none."""
    if not isinstance(loss, ExactLoss):
        raise TypeError(f"{loss.name} loss has no formulas in exact arithmetic; ask for bounds in doubles only.")
    return loss


def has_threshold(name: str) -> bool:
    """Whether the loss of a name has a threshold delta."""
    return name in LOSSES and "delta" in {entry.name for entry in fields(LOSSES[name])}


def loss_from(package: str | None, name: str, given: Sequence[str], delta: float | None = None) -> Loss | None:
    """The loss of this name in an installed package, with parameters NAME=VALUE; None where no package is named.

    Only the caller names a package, for its code is run and believed: neither a proof nor an instance does. A field
    ``delta`` that is not among the parameters is ``delta``, where that is given.
    """
    if package is None:
        if given:
            raise ValueError("--loss-parameter is given, but no package with the loss; give --loss-from too.")
        return None
    try:
        entries = distribution(package).entry_points.select(group=GROUP, name=name)
    except (PackageNotFoundError, ValueError):
        raise ValueError(f"no package '{package}' is installed; install it, or name another one.") from None
    if not entries:
        raise ValueError(f"the package '{package}' has no loss '{name}' among its entry points {GROUP}; give --loss.")
    try:
        kind = next(iter(entries)).load()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"'{name}' of the package '{package}' cannot be loaded ({error}); install it again.") from None
    if not (isinstance(kind, type) and issubclass(kind, Loss)):
        raise ValueError(f"'{name}' of the package '{package}' is no class of losses; derive it from Loss.")
    return kind(**_parameters(kind, name, given, delta))


def _parameters(kind: type[Loss], name: str, given: Sequence[str], delta: float | None) -> dict[str, float]:
    """The parameters of a loss, by name."""
    needed = {entry.name: entry.default is MISSING and entry.default_factory is MISSING for entry in fields(kind)}
    known = f"its parameters are {', '.join(needed)}" if needed else "it has no parameters, so leave them out"
    found: dict[str, float] = {}
    for text in given:
        key, _, value = text.partition("=")
        if key not in needed or key in found:
            what = f"{key} of {name} loss is given twice" if key in found else f"{text} is no parameter of {name} loss"
            raise ValueError(f"{what}; {known}.")
        try:
            found[key] = float(value)
        except ValueError:
            raise ValueError(f"--loss-parameter {text} holds no number; give {key}=NUMBER.") from None
    if delta is not None and "delta" in needed:
        found.setdefault("delta", delta)
    missing = next((key for key, must in needed.items() if must and key not in found), None)
    if missing is not None:
        option = "--delta NUMBER" if missing == "delta" else f"--loss-parameter {missing}=NUMBER"
        raise ValueError(f"{missing} of {name} loss is not given; give {option}.")
    return found
