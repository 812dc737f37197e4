"""The verdict of a check."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from exactsel_certificates.estimate import Estimate
from exactsel_certificates.formula import FloatArray


@dataclass(frozen=True)
class Verdict:
    """What a check has established."""

    verified: bool
    """Whether both claimed numbers hold."""
    reason: str
    """One sentence; empty when verified."""
    lower: float
    """Established: no model with at most k columns, within ``valid_for``, has a smaller objective."""
    upper: float
    """Established: the model has no larger objective (inf where the file was rejected before this was checked)."""
    claimed_lower: float
    claimed_upper: float
    support: tuple[int, ...]
    coef: FloatArray
    """(d,) the model shown; 1 at each chosen column for column subset selection."""
    valid_for: str
    """A restriction of ``lower``, in words; empty when there is none."""
    regions: int
    """Closed regions that were checked."""
    exact_regions: int
    """How many of these needed exact arithmetic."""
    problem_hash: str
    problem: str
    """The problem, in words: the caller's."""
    assumed: tuple[str, ...]
    unfinished: bool = False
    """Whether the check ended at a limit of work or time before a verdict: neither verified nor rejected."""
    operations: float = 0.0
    """Elementary operations counted."""
    estimate: Estimate | None = None
    """The known work of the proof before it was begun."""

    @property
    def gap(self) -> float:
        """upper - lower, of the established numbers."""
        return self.upper - self.lower

    @property
    def tier(self) -> str:
        """How the bounds were established."""
        return "doubles with all rounding errors taken off" + (
            ", exact where margins are thin" if self.exact_regions else ""
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data; infinities become null."""
        entries = asdict(self) | {"coef": self.coef.tolist(), "gap": self.gap, "tier": self.tier}
        entries["estimate"] = None if self.estimate is None else self.estimate._asdict()
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in entries.items()}

    def __str__(self) -> str:
        lines = [f"problem      {self.problem}", f"data         sha256 {self.problem_hash}"]
        failed = f"NOT VERIFIED {self.reason}" if self.unfinished else f"REJECTED     {self.reason}"
        if not math.isfinite(self.upper):
            return "\n".join([*lines, failed])
        lines += [
            f"model        columns {', '.join(map(str, self.support)) or 'none'}: objective at most {self.upper!r}",
            f"lower bound  {self.lower!r}: no model is below{', among ' + self.valid_for if self.valid_for else ''}",
            f"gap          at most {self.gap:.6g}",
            f"checked      {self.regions} regions, {self.exact_regions} of them in exact arithmetic ({self.tier})",
            f"assuming     {'; '.join(self.assumed)}",
            "VERIFIED" if self.verified else failed,
        ]
        return "\n".join(lines)
