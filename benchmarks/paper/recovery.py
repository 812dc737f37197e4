"""Section 4.1.2: how often the support that made the data is found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.differences import p_text, paired
from benchmarks.paper.runs import DEFAULT, Run, proposals, seconds, settled, solved, synthetic, warm_up
from benchmarks.paper.tables import Row, Spread
from benchmarks.warming import warm


@dataclass(frozen=True)
class Recovery:
    """Parameters; ``rel`` is the error, relative to the objective, of the run that need not be exact."""

    loss: str
    ns: Sequence[int]
    d: int
    k: int
    lam: float
    rel: float
    instances: int
    limit: float
    seed: int = 0

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        return (
            f"Support recovery, per cent: {self.loss}, d = {self.d}, k = {self.k}, lam = {self.lam:g}, "
            f"{self.instances} instances per n, limit {self.limit:g} s"
        )

    def rows(self) -> Iterator[Row]:
        """One row per n."""
        warm_up([self.loss], [DEFAULT])
        for n in self.ns:
            yield self._row(n)

    def _row(self, n: int) -> Row:
        exact: list[Run] = []
        within: list[Run] = []
        found: dict[str, list[bool]] = {}
        times: dict[str, list[float]] = {}
        for number in range(self.instances):
            instance = synthetic(self.loss, n, self.d, self.k, self.seed + number, self.lam)
            problem = instance.problem()
            if number == 0:
                warm(problem, DEFAULT)
            exact.append(settled(problem, DEFAULT, limit=self.limit))
            within.append(settled(problem, DEFAULT, limit=self.limit, rel=self.rel))
            answers = {"exact": exact[-1].support, f"rel_eps {self.rel:g}": within[-1].support}
            for name, proposed in proposals(problem).items():
                answers[name] = proposed.support
                times.setdefault(name, []).append(proposed.seconds)
            for name, support in answers.items():
                found.setdefault(name, []).append(set(support) == set(instance.support))
        return {
            "n": n,
            **{name: 100.0 * sum(hits) / self.instances for name, hits in found.items()},
            **{f"exact against {name}, Wilcoxon p": p_text(paired(found["exact"], found[name])) for name in times},
            "exact: solved": solved(exact),
            "exact: seconds": seconds(exact),
            f"rel_eps {self.rel:g}: seconds": seconds(within),
            **{f"{name}: seconds": Spread.of(spans) for name, spans in times.items()},
        }
