"""What a search over all sizes proves of the models of one size."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SizeStatus(str, Enum):
    """What is proven of the models of one size."""

    PROVEN = "proven"
    CANNOT_WIN = "cannot_win"
    OPEN = "open"

    @property
    def text(self) -> str:
        """As tables show it."""
        return self.value.replace("_", " ")

    @property
    def meaning(self) -> str:
        """What it says, in words."""
        return _MEANINGS[self]


_MEANINGS = {
    SizeStatus.PROVEN: "the model shown is the best of its size, within the tolerance",
    SizeStatus.CANNOT_WIN: "no model of this size beats the best of all; its own best model may be another",
    SizeStatus.OPEN: "a model of this size may beat the best of all",
}


@dataclass(frozen=True)
class SizeReport:
    """What is known of the models of one size."""

    size: int
    """How many columns, also where terms are chosen."""
    criterion: float
    """That of the best known of this size, to the rounding of a fit; inf where none was looked for."""
    lower: float
    """No model of this size has a smaller criterion."""
    support: tuple[int, ...] | None
    """Of the best known model."""
    nodes: int
    """Regions of the search for this size; 0 where the bound of a larger one closes it."""
    closed_by: int | None
    """The size whose search this lower bound comes from; None where there is none yet."""
    status: SizeStatus
    listed: bool
    """Whether every model of this size within the list's threshold is known."""
    proof: str | None = None
    """The proof of the objective's lower bound, where one was written."""
