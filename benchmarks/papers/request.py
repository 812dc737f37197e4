"""What is asked of a paper's exhibits."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Request:
    """``quick`` for tiny problems, which need no files; ``folder`` with the data sets, else that of EXACTSEL_DATA."""

    quick: bool
    folder: Path | None = None
    mip_python: str = sys.executable
    only: str | None = None
    """The file name of the one exhibit that is wanted."""

    def wants(self, *names: str) -> bool:
        """Whether one of these exhibits is wanted."""
        return self.only is None or self.only in names
