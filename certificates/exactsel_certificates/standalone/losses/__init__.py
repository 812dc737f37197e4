"""The losses of the second checker, one file each: every class in this folder is found by its name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from .base import Loss

__all__ = ["LOSSES", "Loss"]


def _classes() -> Iterator[type[Loss]]:
    for module in iter_modules(__path__):
        for value in vars(import_module(f".{module.name}", __name__)).values():
            if isinstance(value, type) and issubclass(value, Loss) and value is not Loss:
                yield value


LOSSES = {loss.name: loss for loss in _classes()}
