"""What ``all`` runs, and so the defaults of every command; ``QUICK`` is the small version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from benchmarks.paper.ablation import Ablation
from benchmarks.paper.cost import Cost
from benchmarks.paper.dual_solvers import DualSolvers
from benchmarks.paper.real import Real
from benchmarks.paper.recovery import Recovery
from benchmarks.paper.tables import Row

# lam, n of the cost experiment and the limits are ours: the text of the paper we have lost its numbers.


class Experiment(Protocol):
    """Parameters that know their rows."""

    @property
    def title(self) -> str:
        """A heading that says what was run."""
        ...

    def rows(self) -> Iterator[Row]:
        """The rows of the table, each as soon as it is there."""
        ...


def cost(loss: str) -> Cost:
    """The cost experiment; logistic instances are the harder ones."""
    if loss == "huber":
        return Cost("huber", range(2, 10), 50, 50, 0.01, instances=100, faithful=10, limit=20.0)
    return Cost("logistic", range(2, 7), 200, 50, 1.0, instances=100, faithful=5, limit=20.0)


STRONGER = 10.0
"""How many times larger lam is in appendix D than in section 4.1.2; ours, like both of them."""


def recovery(loss: str, stronger: bool = False) -> Recovery:
    """The recovery experiment, from too few rows to plenty; ``stronger`` is that of appendix D."""
    times = STRONGER if stronger else 1.0
    if loss == "huber":
        return Recovery("huber", (40, 50, 60, 80, 100, 150), 50, 10, 0.01 * times, rel=0.1, instances=100, limit=10.0)
    return Recovery("logistic", (100, 200, 300, 400, 600, 800), 50, 5, 1.0 * times, rel=0.1, instances=100, limit=10.0)


def ablation() -> Ablation:
    """The ablation."""
    return Ablation((20, 30, 40, 50), 50, 5, 0.01, instances=10, limit=20.0)


def dual_solvers(loss: str) -> DualSolvers:
    """The comparison of the two ways to maximise the bound."""
    if loss == "huber":
        return DualSolvers("huber", range(2, 7), 50, 50, 0.01, instances=5, limit=20.0)
    return DualSolvers("logistic", range(2, 5), 200, 50, 1.0, instances=5, limit=20.0)


def real(data: str, centred: bool) -> Real:
    """Real data; lam = 0.01 only for the centred ones, to save time."""
    lams = (0.01,) if centred else (0.01, 0.001)
    return Real(data, centred, (5, 10), lams, (0.0, 1e-4, 1e-3, 1e-2, 1e-1), limit=6.0)


FULL: dict[str, Callable[[], Experiment]] = {
    "cost-huber": lambda: cost("huber"),
    "cost-logistic": lambda: cost("logistic"),
    "recovery-huber": lambda: recovery("huber"),
    "recovery-logistic": lambda: recovery("logistic"),
    "recovery-huber-stronger": lambda: recovery("huber", stronger=True),
    "recovery-logistic-stronger": lambda: recovery("logistic", stronger=True),
    "ablation": ablation,
    "dual-solvers-huber": lambda: dual_solvers("huber"),
    "dual-solvers-logistic": lambda: dual_solvers("logistic"),
    "real-diabetes": lambda: real("diabetes", False),
    "real-diabetes-centred": lambda: real("diabetes", True),
    "real-boston": lambda: real("boston", False),
    "real-boston-centred": lambda: real("boston", True),
}
"""File names and what goes into them."""


QUICK: dict[str, Callable[[], Experiment]] = {
    "cost-huber": lambda: Cost("huber", (2, 4, 6), 50, 50, 0.01, instances=5, faithful=2, limit=5.0),
    "cost-logistic": lambda: Cost("logistic", (2, 3), 200, 50, 1.0, instances=5, faithful=2, limit=5.0),
    "recovery-huber": lambda: Recovery("huber", (40, 80), 50, 10, 0.01, rel=0.1, instances=3, limit=5.0),
    "recovery-logistic": lambda: Recovery("logistic", (100, 400), 50, 5, 1.0, rel=0.1, instances=3, limit=5.0),
    "recovery-huber-stronger": lambda: Recovery("huber", (40, 80), 50, 10, 0.1, rel=0.1, instances=3, limit=5.0),
    "ablation": lambda: Ablation((20, 50), 50, 4, 0.01, instances=2, limit=5.0),
    "dual-solvers-huber": lambda: DualSolvers("huber", (2, 4), 50, 50, 0.01, instances=2, limit=5.0),
    "dual-solvers-logistic": lambda: DualSolvers("logistic", (2,), 200, 50, 1.0, instances=2, limit=5.0),
    "real-diabetes": lambda: Real("diabetes", False, (5,), (0.01,), (0.0, 1e-2, 1e-1), limit=3.0),
    "real-boston": lambda: Real("boston", False, (5,), (0.01,), (0.0, 1e-2, 1e-1), limit=3.0),
}
"""The same in under three minutes."""
