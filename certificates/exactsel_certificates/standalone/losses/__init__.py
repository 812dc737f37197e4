"""The losses of the second checker: each is a file of this folder, whose name is that of the loss."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from .base import Loss

__all__ = ["LOSSES", "Loss"]


def _classes() -> Iterator[type[Loss]]:
    for module in iter_modules(__path__):
        for value in vars(import_module(f".{module.name}", __name__)).values():
            if isinstance(value, type) and issubclass(value, Loss) and vars(value).get("name") == module.name:
                yield value


LOSSES = {loss.name: loss for loss in _classes()}
