"""Section 4.1.1: what exact search costs, and how often the inexact methods find the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

from benchmarks.differences import p_text
from benchmarks.differences import paired as wilcoxon_p
from benchmarks.paper.runs import (
    DEFAULT,
    FAITHFUL,
    INEXACT,
    Run,
    calls,
    check_agreement,
    proposals,
    same,
    seconds,
    settled,
    solved,
    spent,
    synthetic,
    timed,
    warm_up,
)
from benchmarks.paper.tables import Row, Spread
from benchmarks.warming import warm


@dataclass(frozen=True)
class Cost:
    """Parameters; the first ``faithful`` of the ``instances`` per k are also solved in faithful mode."""

    loss: str
    ks: Sequence[int]
    n: int
    d: int
    lam: float
    instances: int
    faithful: int
    limit: float
    seed: int = 0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return (
            f"Cost: {self.loss}, n = {self.n}, d = {self.d}, lam = {self.lam:g}, {self.instances} instances per k "
            f"({self.faithful} in faithful mode), limit {self.limit:g} s"
        )

    def rows(self) -> Iterator[Row]:
        """One row per k."""
        warm_up([self.loss], [FAITHFUL, DEFAULT])
        for k in self.ks:
            yield self._row(k)

    def _row(self, k: int) -> Row:
        faithful: list[Run] = []
        default: list[Run] = []
        hits = dict.fromkeys(INEXACT, 0)
        times: dict[str, list[float]] = {name: [] for name in INEXACT}
        for number in range(self.instances):
            problem = synthetic(self.loss, self.n, self.d, k, self.seed + number, self.lam).problem()
            if number == 0:
                warm(problem, DEFAULT)
            default.append(settled(problem, DEFAULT, limit=self.limit))
            if number < self.faithful:
                faithful.append(timed(problem, FAITHFUL, limit=self.limit))
                check_agreement(problem, default[-1], faithful[-1])
            for name, proposed in proposals(problem).items():
                times[name].append(proposed.seconds)
                hits[name] += default[-1].solved and same(problem.fit(proposed.support).value, default[-1].value)
        paired = default[: len(faithful)]
        return {
            "k": k,
            "C(d, k)": comb(self.d, k),
            "faithful: solved": solved(faithful),
            "faithful: calls": calls(faithful),
            "faithful: seconds": seconds(faithful),
            "default: solved": solved(default),
            "default: calls": calls(default),
            "default: seconds": seconds(default),
            "faithful s, total": spent(faithful),
            "default s, same instances": spent(paired),
            "ratio": spent(faithful) / spent(paired),
            "seconds, Wilcoxon p": p_text(wilcoxon_p([r.seconds for r in faithful], [r.seconds for r in paired])),
            **{f"{name} optimal": f"{count}/{sum(run.solved for run in default)}" for name, count in hits.items()},
            **{f"{name}: seconds": Spread.of(spans) for name, spans in times.items()},
        }
