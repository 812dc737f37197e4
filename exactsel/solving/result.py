"""The result of a solve: the model, the proven bound, and the claim they support."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from exactsel.errors import InputError, UnsupportedError, either, option
from exactsel.nodes.tolerance import Gap, Tolerance
from exactsel.problem.constraints import flags as constraint_flags
from exactsel.problem.model import Model, PreparedModel, demands_text
from exactsel.solving.fitted import FittedModel
from exactsel.solving.full_data import FullDataBounds, FullDataStatement
from exactsel.solving.likelihood import Likelihood
from exactsel.solving.outcome import Claim, Termination, claim_of, claim_sentence, termination_of
from exactsel.solving.quality import Quality
from exactsel.solving.summary import Summarised
from exactsel.to_plain import Readable, counted, facts_of, finite, html_line, html_table, html_view, writable
from exactsel.types import FloatArray

if TYPE_CHECKING:
    import networkx
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactsel.observers.history import History
    from exactsel.search.events import Event
    from exactsel.solving.checkpointing import Kept

UNEVEN = 1e3
"""Lengths of columns that differ by less than this factor do not explain a gap."""


@dataclass(frozen=True, repr=False)
class Result(FittedModel, Summarised, Readable, Gap):
    """Outcome of :func:`exactsel.solve`.

    Objectives are on the scale P(x) = L(Ax) + (lam/2)||x||^2 with L a sum over rows; ``absolute_gap`` is
    upper - lower, and ``gap`` that divided by max(1e-15 null_objective, |upper|). Columns are counted from 0.
    """

    upper: float
    """No smaller than the objective of the model that is shown (``model``), with the best intercept where there is one,
    for the exact values of the data as given."""
    lower: float
    """No model with at most k columns has a smaller objective (see ``valid_for``)."""
    support: tuple[int, ...]
    """Columns with a coefficient that is not zero; one of ``force_in`` may come out as zero and is then not here."""
    prepared: PreparedModel = field(repr=False)
    """The model in the columns as they were searched, and what was done to these; ``coef`` is of those as given."""
    claim: Claim
    termination: Termination
    nodes: int
    """Regions of the search space that were bounded."""
    bound_calls: int
    """Bound calls, the paper's solver calls."""
    iterations: int
    """Iterations inside bound calls."""
    open_nodes: int
    source: str
    """The source of the model: a heuristic's name, ``search``, or ``empty model``."""
    times: dict[str, float]
    """Seconds by part."""
    problem: dict[str, Any]
    """family, n, d, k, loss, loss parameters, lam, hash, feature names, as far as the family has them."""
    settings: dict[str, Any]
    tree_hash: str
    """sha256 over the committed nodes in order: equal for equal input, settings and seed, for any number of threads.

    A search that writes a proof, a trace or each step may go another way, since not all methods can be shown. Last bits
    of bounds, which are part of it, differ between interpreted and compiled kernels, see ``settings["kernels"]``.
    """
    valid_for: str = ""
    """A restriction of the lower bound, if there is one, in words."""
    proof: str | None = None
    """The proof file, when one was written."""
    events: tuple[Event, ...] | None = field(default=None, repr=False)
    """Everything that happened, when recorded."""
    history: History | None = field(default=None, repr=False)
    """The bounds over time, the source of each model, and the pruned regions."""
    model: Model | None = field(default=None, repr=False)
    """The model for the data as they were given; None for column subset selection, which has none."""
    _standing: FullDataStatement | None = field(default=None, repr=False)
    """What the rows stand for, where they have been reduced from very many; see :attr:`full_data`."""
    quality: Quality | None = field(default=None, repr=False)
    """R² and residuals, or the deviance explained; None for column subset selection."""
    _likelihood: Likelihood | None = field(default=None, repr=False)
    """What the objective is as a likelihood, for information criteria; None for column subset selection."""
    null_objective: float = 0.0
    """Objective of the empty model, the scale on which small gaps are judged."""
    _column_ratio: float = 1.0
    """Length of the longest column searched, divided by that of the shortest that is not zero."""
    _kept: Kept | None = field(default=None, repr=False, compare=False)
    """The search behind it, for :meth:`resume`; not where the result comes from elsewhere, or from another process."""

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process has no search that could continue."""
        return {**vars(self), "_kept": None}

    def resume(self, **limits: object) -> Result:
        """Resume the search where it stopped: ``result.resume(time_limit=60)``, or ``rel_eps=1e-9`` for more.

        Earlier limits no longer apply; the tolerance stays unless you give another one. If a finer tolerance needs
        regions that the old one closed, the search starts again from the best model. A result and all results resumed
        from it share one search, which continues from its last state.

        Parameters
        ----------
        **limits
            eps, rel_eps, time_limit, node_limit, memory_limit, threads, and ``callback`` and ``signals`` as
            :func:`exactsel.solve` has them.

        Raises
        ------
        InputError
            Where no search is kept, or something else than a limit is given.
        """
        if self._kept is None or self._kept.continued is None:
            raise InputError(
                "this result holds no search to continue; solve the problem again with start=result.support, or save "
                "the search with checkpoint=."
            )
        continued: Result = self._kept.continued(self, limits)
        return continued

    def _measured(self) -> tuple[float, float, float]:
        """``upper``, ``lower`` and ``null_objective``, from which ``gap`` and ``absolute_gap`` follow."""
        return self.upper, self.lower, self.null_objective

    @property
    def tolerance(self) -> Tolerance:
        """The requested gap."""
        tolerances = self.settings["eps"], self.settings["rel_eps"]
        return Tolerance(*tolerances, self.null_objective, self.problem.get("loss", ""))

    def _claiming(self, lower: float) -> Result:
        """The same result with another lower bound, and what follows from it."""
        claim = claim_of(self.upper, lower, self.tolerance)
        return replace(self, lower=lower, claim=claim, termination=termination_of(self.termination.value, claim))

    @property
    def full_data(self) -> FullDataBounds | None:
        """Both bounds, said of all the rows that those of the problem stand for; None where they are themselves."""
        if self._standing is None:
            return None
        return self._standing.full_data(self.upper, self.lower, self.prepared.coef, self.valid_for)

    @property
    def time(self) -> float:
        """Total seconds."""
        return self.times["total"]

    @property
    def reached(self) -> bool:
        """Whether the requested tolerance is proven."""
        return self.claim.reached

    @property
    def coef(self) -> FloatArray:
        """(d,) coefficients of the columns as given; empty for column subset selection, which has none."""
        return self.prepared.coef if self.model is None else self.model.coef

    @property
    def claim_text(self) -> str:
        """What is proven, in one sentence."""
        return claim_sentence(self.claim, self.upper, self.lower, self.null_objective, self.problem, self.valid_for)

    @property
    def advice(self) -> str:
        """What to do where rounding alone has left a gap, in one sentence; empty where nothing helps."""
        scaled = bool(self.problem.get("scale"))
        if self.termination is not Termination.PRECISION_LIMIT or scaled or self._column_ratio < UNEVEN:
            return ""
        return (
            f"the longest feature is {self._column_ratio:.2g} times as long as the shortest, and the ridge goes by "
            f"their units; scale the features ({option('standardize', True)})."
        )

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the chosen columns, where the problem has names."""
        names = self.problem["feature_names"]
        return None if names is None else tuple(names[j] for j in self.support)

    @property
    def _shown(self) -> tuple[int, ...]:
        """The columns to show: those in the model, and those of ``force_in`` whose coefficients came out as zero."""
        return self._columns_of({*self.support, *self.problem.get("force_in", ())})

    def _columns_of(self, chosen: Iterable[int]) -> tuple[int, ...]:
        """These columns, or all columns of these groups, ascending."""
        groups = self.problem.get("groups")
        return tuple(sorted(chosen if groups is None else (j for g in chosen for j in groups[g])))

    @property
    def _noun(self) -> str:
        """What is chosen: ``feature``, ``group`` or ``term``; ``column`` in column subset selection."""
        unit = str(self.problem.get("unit", "column"))
        return "feature" if unit == "column" and self.problem["problem"] != "css" else unit

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns in the model: the support, or all columns of the groups in it."""
        return self._columns_of(self.support)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of all columns, where the problem has names; with groups these are not ``feature_names``."""
        names: tuple[str, ...] | None = self.problem[f"{'column' if self.problem.get('groups') else 'feature'}_names"]
        return names

    def predict(self, A: ArrayLike) -> FloatArray:
        """Predictions (n,) of the model, see :meth:`exactsel.Model.predict`."""
        return self._fitted.predict(A)

    def coefficients(self) -> dict[str | int, float]:
        """The model's coefficients that are not zero, by the columns' names, or their numbers where there are none."""
        return self._fitted.coefficients()

    def to_series(self) -> pandas.Series:
        """The same as a pandas Series, the intercept, if there is one, first."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError("a Series needs pandas; run: pip install pandas, or use coefficients().") from None
        model = self._fitted
        first: dict[str | int, float] = {} if model.intercept is None else {"(intercept)": model.intercept}
        return pandas.Series(first | model.coefficients(), dtype=float, name="coefficient")

    @property
    def _fitted(self) -> Model:
        if self.model is None:
            raise UnsupportedError("column subset selection has no coefficients; see support for the columns.")
        return self.model

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line. Infinities become null.

        ``coef``, ``intercept`` and ``model`` are about the data as they were given. Where the search worked on centred,
        scaled or weighted data, ``prepared`` says so and holds the coefficients of those; else it is null.
        """
        problem = {key: value for key, value in self.problem.items() if key not in ("feature_names", "intercept")}
        model, names, forced = self.model, self.column_names, self._columns_of(self.problem.get("force_in", ()))
        return {
            "upper": finite(self.upper), "lower": finite(self.lower),
            "gap": finite(self.gap), "absolute_gap": finite(self.absolute_gap),
            "gap_formula": "gap = absolute_gap / max(1e-15 * null_objective, |upper|); absolute_gap = upper - lower",
            "null_objective": finite(self.null_objective),
            "claim": self.claim.value, "claim_text": self.claim_text,
            "termination": self.termination.value, "valid_for": self.valid_for,
            "advice": self.advice,
            "support": list(self.support),
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "coef": None if model is None else model.coef.tolist(),
            "intercept": None if model is None else model.intercept,
            "model": [
                {
                    "column": j, "name": None if names is None else names[j],
                    "coef": None if model is None else float(model.coef[j]),
                    "force_in": j in forced,
                }
                for j in self._shown
            ],
            "coding": None if model is None or model.coding is None else model.coding.as_dict(),
            "quality": None if self.quality is None else self.quality.as_dict(),
            "full_data": None if self.full_data is None else self.full_data.as_dict(),
            "prepared": None if self.prepared.preparation is None else {
                **{name: self.problem[name] for name in _PREPARED}, "coef": self.prepared.coef.tolist(),
            },
            "nodes": self.nodes, "bound_calls": self.bound_calls, "iterations": self.iterations,
            "open_nodes": self.open_nodes, "source": self.source,
            "time": self.time, "times": self.times,
            **problem,
            "eps": self.settings["eps"], "rel_eps": self.settings["rel_eps"],
            "settings": {key: writable(value) for key, value in self.settings.items()},
            "tree_hash": self.tree_hash, "proof": self.proof,
        }  # fmt: skip

    def tree(self) -> networkx.DiGraph:
        """The explored tree; needs ``solve(..., record=True)``."""
        from exactsel.observers.tree import explored_tree

        if self.events is None:
            raise ValueError("the tree was not recorded; call solve(problem, record=True).")
        return explored_tree(self.events)

    def plot_bounds(self, axes: Axes | None = None) -> Figure:
        """A matplotlib figure of best objective and lower bound over time, on ``axes`` if given."""
        from exactsel.observers.plots import plot_bounds

        return plot_bounds(self.history, axes)

    def plot_coefficients(self, axes: Axes | None = None) -> Figure:
        """A matplotlib figure of the coefficients, for the data as they were given, on ``axes`` if given."""
        from exactsel.observers.plots import plot_coefficients

        return plot_coefficients(self._shown, self.coef, self.column_names, axes)

    def __repr__(self) -> str:
        coefficients = None if self.model is None else self.model.coefficients()
        included = (
            self.support
            if coefficients is None
            else ", ".join(f"{name}: {value:.6g}" for name, value in coefficients.items())
        )
        return f"<Result {self.claim.value}: upper={self.upper:.9g}, gap={self.gap:.3g}, model {{{included}}}>"

    def _repr_html_(self) -> str:
        said = facts_of(str(self).split("\n"))
        facts = [] if self.quality is None else self.quality.facts()
        rows = [*((name, text) for name, text in said if name != "claim"), *facts]
        model = "" if self.model is None else self.model._repr_html_()
        return html_view(html_line(self.claim_text, strong=True, aside=not self.reached), model, html_table(rows))

    def __str__(self) -> str:
        names = "" if self.feature_names is None else f"  ({', '.join(self.feature_names)})"
        demands = demands_text(self.problem)
        zeros = ", ".join(str(j) for j in self.problem.get("force_in", ()) if j not in self.support)
        also = f"   and forced in, with coefficient 0: {zeros}" if zeros else ""
        free = f"   {counted(len(self.columns), 'degree')} of freedom" if self.problem.get("groups") else ""
        lines = [
            f"claim        {self.claim_text}",
            f"termination  {self.termination.value}: {self.termination.sentence}",
            f"upper        {self.upper:.12g}   (found by: {self.source})",
            f"lower        {self.lower:.12g}{'   for ' + self.valid_for if self.valid_for else ''}",
            f"gap          {self.gap:.3g}   (relative to |upper|)   absolute {self.absolute_gap:.3g}",
            f"support      {', '.join(map(str, self.support)) or 'none'}{names}{also}{free}",
            *([f"advice       {self.advice}"] if self.advice else []),
            f"work         {counted(self.nodes, 'node')}, {counted(self.bound_calls, 'bound call')}, {self.time:.2f} s",
        ]
        if self.full_data is not None:
            lines.insert(5, f"all rows     the best objective is {self.full_data}")
        if demands:
            lines.insert(2, f"constraints  {demands}")
        if self.proof is not None:
            lines.append(f"proof        {self.proof}   (check it with: {self._check_of_proof})")
        return "\n".join(lines)

    @property
    def _check_of_proof(self) -> str:
        """How the reader checks the proof."""
        flags = [option(name, True) for name in ("fit_intercept", "standardize") if self.problem.get(WORDS[name])]
        flags += [f"{option('sample_weight')} FILE"] if self.problem.get("weights") else []
        flags += constraint_flags(self.problem)
        command = " ".join(["exactsel verify", str(self.proof), "INSTANCE", *flags])
        return either(f"exactsel.verify(problem, {self.proof!r})", command)


WORDS = {"fit_intercept": "intercept", "standardize": "scale"}
"""What arguments are called where a problem is described."""

_PREPARED = ("intercept", "scale", "weights")
"""What may be done to the data before the search."""
