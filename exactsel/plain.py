"""Numbers made plain: what JSON has words for."""

from __future__ import annotations

import json
import math
from typing import Any


def finite(value: float) -> float | None:
    """The number, or None where JSON has no word for it (an infinity, nan)."""
    return float(value) if math.isfinite(value) else None


def writable(value: Any) -> Any:
    """The value, or None where it is a number JSON has no word for."""
    return finite(value) if isinstance(value, float) else value


class Json:
    """What can be written as one JSON object: a class that has :meth:`as_dict`."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; no infinity, no nan."""
        raise NotImplementedError

    def to_json(self, **options: Any) -> str:
        """One JSON object, strict (no NaN or Infinity); ``options`` go to :func:`json.dumps`."""
        return json.dumps(self.as_dict(), allow_nan=False, **options)
