"""The best models over all sizes, and what follows from a list of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from exactsel.errors import UnsupportedError
from exactsel.problem.model import demands_text, listed
from exactsel.solving.outcome import Claim, Termination, restricted, rounded_up
from exactsel.solving.result import Result
from exactsel.studies.size_criterion import SizeCriterion
from exactsel.studies.size_report import SizeReport
from exactsel.studies.solution_pool import advice_lines
from exactsel.to_plain import Readable, counted, finite, html_line, html_table, html_view

if TYPE_CHECKING:
    import pandas

    from exactsel.solving.model_summary import ModelSummary

NEAR, FAR = 2.0, 10.0
"""How far above the best a criterion may be for a model to have support, or any (Burnham and Anderson 2002)."""

OPTIMAL_SHARE = 1e-9
"""Of an objective: a difference that is called none."""


@dataclass(frozen=True)
class RankedModel:
    """A set of columns and the criterion of the best model on it."""

    support: tuple[int, ...]
    criterion: float
    deviance: float
    """-2 log-likelihood (:mod:`exactsel.solving.likelihood`)."""
    objective: float
    """No smaller than that of the best model on these columns."""
    df: int
    """Degrees of freedom that were chosen: the columns of its terms, without the intercept."""

    @property
    def size(self) -> int:
        """How many columns, or terms where these have several columns."""
        return len(self.support)


@dataclass(frozen=True)
class Inclusion:
    """How often columns occur among the models within ``within`` of the best."""

    within: float
    models: int
    complete: bool
    """Whether these are all such models; otherwise only those listed are counted."""
    counts: dict[int, int]
    """Models with each column that occurs, most frequent first."""
    weights: dict[int, float]
    """The sum of their weights among these models."""


@dataclass(frozen=True, repr=False)
class BestModels(Readable):
    """The best models over all sizes by a criterion, best first.

    ``absolute_gap`` is on the scale of the criterion: no model of any examined size has a criterion below ``lower``.
    Where ``complete``, no model that is not listed has a criterion below ``threshold`` (to what rounding does to one).
    """

    models: tuple[RankedModel, ...]
    criterion: SizeCriterion
    sizes: tuple[SizeReport, ...]
    """One for each examined size, ascending."""
    lower: float
    threshold: float
    """The largest criterion of the list; that of the best model where only that was requested."""
    complete: bool
    claim: Claim
    """What is proven of the best model, among all sizes."""
    termination: str
    """``complete``, ``time_limit``, ``node_limit``, ``interrupted``, ``cap`` and so on: the first that came."""
    result: Result = field(repr=False)
    """The search for the best model's size: the model with its coefficients."""
    valid_for: str = ""
    """A restriction of what is proven, in words."""
    time: float = 0.0
    """Seconds."""
    up_to: int = 0
    """The largest size that is spoken of: the columns of those beyond ``sizes`` alone cost more than the best model."""
    shared_nodes: int = 0
    """Regions of one tree over all sizes, beside those of each size."""

    @property
    def last_size(self) -> int:
        """The largest size that is spoken of."""
        return max(self.sizes[-1].size, self.up_to)

    @property
    def best(self) -> RankedModel:
        """The best model."""
        return self.models[0]

    @property
    def support(self) -> tuple[int, ...]:
        """Its columns, counted from 0."""
        return self.best.support

    @property
    def k(self) -> int:
        """How many these are."""
        return self.best.size

    @property
    def value(self) -> float:
        """Its criterion."""
        return self.best.criterion

    @property
    def absolute_gap(self) -> float:
        """value - lower, on the scale of the criterion."""
        return self.value - self.lower

    @property
    def gap(self) -> float:
        """(value - lower)/|value|: the relative gap where the criterion is a penalised objective."""
        return self.absolute_gap / abs(self.value) if self.absolute_gap > 0.0 else 0.0

    @property
    def reached(self) -> bool:
        """Whether the best model is proven best over all sizes, to the requested tolerance."""
        return self.claim.reached

    @property
    def deltas(self) -> tuple[float, ...]:
        """How far each model's criterion is above the best."""
        return tuple(model.criterion - self.value for model in self.models)

    @property
    def has_weights(self) -> bool:
        """Whether differences of the criterion are on the scale of 2 log L, so that models have weights."""
        return self.criterion.name not in ("adjr2", "l0")

    @property
    def weights(self) -> tuple[float, ...]:
        """exp(-delta/2) of each model, as a part of all listed ones (Akaike weights; of BIC, approximate posterior
        probabilities among these models). Empty for adjusted R² and the penalised objective, which are no multiples of
        a log-likelihood.
        """
        if not self.has_weights:
            return ()
        raw = [math.exp(-0.5 * delta) for delta in self.deltas]
        total = sum(raw)
        return tuple(each / total for each in raw)

    def inclusion(self, within: float) -> Inclusion:
        """How often each column occurs among the models within this of the best; weights are 0 where there are none."""
        raw = self.weights or (0.0,) * len(self.models)
        pairs = [(m, w) for m, delta, w in zip(self.models, self.deltas, raw, strict=True) if delta <= within]
        counts: dict[int, int] = {}
        shares: dict[int, float] = {}
        total = sum(weight for _, weight in pairs) or 1.0
        for model, weight in pairs:
            for j in model.support:
                counts[j] = counts.get(j, 0) + 1
                shares[j] = shares.get(j, 0.0) + weight / total
        order = sorted(counts, key=lambda j: (-counts[j], -shares[j], j))
        whole = self.complete and self.threshold >= self.value + within
        return Inclusion(within, len(pairs), whole, {j: counts[j] for j in order}, {j: shares[j] for j in order})

    def summary(self, *, level: float = 0.95) -> ModelSummary:
        """The summary of the best model, see :meth:`exactsel.Result.summary`."""
        return self.result.summary(level=level)

    def as_dict(self) -> dict[str, Any]:
        """Plain data: the JSON object of the command line."""
        names = self.result.problem["feature_names"]
        criterion = self.criterion

        def shown(value: float) -> float | None:
            return finite(criterion.shown(value))

        return {
            "criterion": criterion.name, "gamma": criterion.gamma if criterion.name == "ebic" else None,
            "penalty": criterion.price if isinstance(criterion.price, float | int) else None,
            "rows": criterion.likelihood.rows, "parameters_beside_columns": criterion.likelihood.beside_columns,
            "value": shown(self.value), "lower": shown(self.lower),
            "absolute_gap": finite(self.absolute_gap),
            "gap": finite(self.gap) if criterion.name == "l0" else None, "k": self.k, "df": self.best.df,
            "support": list(self.support), "claim": self.claim.value,
            "claim_text": self.claim_text, "termination": self.termination, "valid_for": self.valid_for,
            "complete": self.complete, "threshold": shown(self.threshold), "up_to": self.last_size,
            "models": [
                {
                    "support": list(model.support), "feature_names": names and [names[j] for j in model.support],
                    "df": model.df, "criterion": shown(model.criterion), "delta": finite(delta), "weight": weight,
                    "deviance": finite(model.deviance), "objective": finite(model.objective),
                }
                for model, delta, weight in self._weighted()
            ],
            "sizes": [
                {
                    "k": size.size, "criterion": shown(size.criterion), "lower": shown(size.lower),
                    "support": None if size.support is None else list(size.support), "nodes": size.nodes,
                    "status": size.status.value, "closed_by": size.closed_by, "listed": size.listed,
                    "proof": size.proof,
                }
                for size in self.sizes
            ],
            "inclusion": [
                {
                    "within": included.within, "models": included.models, "complete": included.complete,
                    "columns": [
                        {
                            "column": j, "name": names and names[j], "models": count, "weight": included.weights[j],
                        }
                        for j, count in included.counts.items()
                    ],
                }
                for included in map(self.inclusion, (NEAR, FAR) if self.has_weights else ())
            ],
            "optimum": self.result.as_dict(), "time": self.time,
        }  # fmt: skip

    def __str__(self) -> str:
        names, title = self.result.problem["feature_names"], self.criterion.title
        lines = [
            f"best model   {title} {self._shown(self.value)} with {self._how_large}: {listed(self.support, names)}",
            f"claim        {self.claim_text}",
            f"{self._side:<12} {self._shown(self.lower)}   {self._gap_text}, over all sizes from "
            f"{self.sizes[0].size} to {self.last_size}",
        ]
        demands = demands_text(self.result.problem)
        lines += [f"constraints  {demands}"] if demands else []
        lines += [f"valid for    {self.valid_for}"] if self.valid_for else []
        lines += advice_lines(self.result, self.termination)
        if len(self.models) > 1 or not self.complete:
            lines.append(f"list         {self.listing}")
        return "\n".join(lines)

    def _shown(self, value: float) -> str:
        return f"{self.criterion.shown(value):.10g}"

    @property
    def _gap_text(self) -> str:
        absolute = f"absolute gap {self.absolute_gap:.3g}"
        return f"{absolute}, relative gap {self.gap:.3g}" if self.criterion.name == "l0" else absolute

    @property
    def _side(self) -> str:
        return "upper" if self.criterion.name == "adjr2" else "lower"

    @property
    def has_terms(self) -> bool:
        """Whether terms of several columns are chosen."""
        return bool(self.result.problem.get("groups"))

    @property
    def _how_large(self) -> str:
        if not self.has_terms:
            return counted(self.k, self.result._noun)
        return f"{counted(self.k, self.result._noun)} ({counted(self.best.df, 'degree')} of freedom)"

    @property
    def claim_text(self) -> str:
        """What is proven, in one sentence."""
        title, first, last = self.criterion.title, self.sizes[0].size, self.last_size
        only = f" among {self.valid_for}" if self.valid_for else ""
        allowed = " that meets the constraints" if restricted(self.result.problem) else ""
        models = f"no model with {f'{first} to ' if first < last else ''}{last} {self._noun}{allowed}"
        if self.claim is Claim.HEURISTIC_ONLY:
            return "Nothing is proven: no lower bound is known."
        if self.claim is Claim.OPTIMAL:
            return f"Optimal{only}: {models} has a {self._words[1]} {title} (relative tolerance 1e-9 of the objective)."
        opening = "Optimal within the tolerance" if self.claim is Claim.WITHIN_EPS else "Not proven optimal"
        least = f"{_article(title)} {title} {self._words[1]} by more than {rounded_up(self.absolute_gap)}"
        return f"{opening}{only}: {models} has {least}."

    @property
    def _noun(self) -> str:
        """What sizes count."""
        if self.result.problem["problem"] == "grouped":
            return "degrees of freedom"
        return "terms" if self.result._noun == "term" else "features"

    @property
    def _words(self) -> tuple[str, str]:
        """Which way is better."""
        return ("above", "higher") if self.criterion.name == "adjr2" else ("below", "lower")

    @property
    def listing(self) -> str:
        """What is said of the list, in words."""
        title = self.criterion.title
        if not self.complete:
            return f"INCOMPLETE ({self.termination}): {counted(len(self.models), 'model')} found so far"
        beyond = f"{self._words[0]} {self._shown(self.threshold)}"
        return f"{counted(len(self.models), 'model')}; no other has {_article(title)} {title} {beyond}"

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The models as texts: rank, size, degrees of freedom, criterion, delta, weight, names."""
        names = self.result.problem["feature_names"]
        for rank, (model, delta, weight) in enumerate(self._weighted(), 1):
            yield (
                str(rank), str(model.size), str(model.df), self._shown(model.criterion), f"{delta:.4g}",
                "-" if weight is None else f"{weight:.3f}", listed(model.support, names),
            )  # fmt: skip

    def _weighted(self) -> Iterator[tuple[RankedModel, float, float | None]]:
        """The models with their differences from the best and their weights, None where there are none."""
        return zip(self.models, self.deltas, self.weights or (None,) * len(self.models), strict=True)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame, one line a model: k, df, the criterion, delta, weight, deviance, objective, columns."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError("a DataFrame needs pandas; run: pip install pandas, or use as_dict().") from None
        names = self.result.problem["feature_names"]
        return pandas.DataFrame(
            {
                "k": model.size, "df": model.df, self.criterion.name: self.criterion.shown(model.criterion),
                "delta": delta, "weight": weight, "deviance": model.deviance, "objective": model.objective,
                "columns": [names[j] for j in model.support] if names else list(model.support),
            }
            for model, delta, weight in self._weighted()
        )  # fmt: skip

    def _repr_html_(self) -> str:
        head = ("", "k", "df", self.criterion.title, "delta", "weight", "features")
        said = html_line(self.claim_text, strong=True, aside=not self.reached)
        many = len(self.models) > 1 or not self.complete
        listing = html_line(f"{self.listing}.", aside=not self.complete) if many else ""
        return html_view(said, html_table(self.rows(), head), listing)


def _article(word: str) -> str:
    return "an" if word[0] in "AEHaeh" else "a"


def claim_over_sizes(
    value: float, lower: float, none_open: bool, criterion: SizeCriterion, objective: float, size: int
) -> Claim:  # fmt: skip
    """The strongest claim that bounds over all sizes support; anything unusual supports none."""
    gap = value - lower
    if not (math.isfinite(value) and math.isfinite(lower) and gap >= 0):
        return Claim.HEURISTIC_ONLY
    if gap <= criterion.resolution(objective, OPTIMAL_SHARE, size) + criterion.rounding(value):
        return Claim.OPTIMAL
    return Claim.WITHIN_EPS if none_open else Claim.BOUNDED


def first_stop(terminations: list[str], otherwise: str) -> str:
    """The first reason that is not the regular end of a search."""
    usual = (Termination.GAP_CLOSED.value, Termination.TREE_EXHAUSTED.value, "complete", "")
    return next((each for each in terminations if each not in usual), otherwise)
