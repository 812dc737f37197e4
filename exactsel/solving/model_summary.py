"""The summary of a model, and its text form; :mod:`exactsel.solving.summary` computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exactsel.errors import UnsupportedError
from exactsel.to_plain import Readable, finite, html_line, html_table, html_view

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class SummaryRow:
    """One parameter."""

    name: str
    column: int | None
    """None for the intercept."""
    coef: float
    error: float
    """Its standard error; nan where it is not defined, and then so is what follows from it."""
    statistic: float
    """coef / error."""
    p_value: float
    """Of a two-sided test against 0."""
    low: float
    high: float
    """The interval."""

    @property
    def figures(self) -> tuple[float, ...]:
        """Coefficient, standard error, statistic, p-value and interval, in the order of tables."""
        return self.coef, self.error, self.statistic, self.p_value, self.low, self.high


@dataclass(frozen=True, repr=False)
class ModelSummary(Readable):
    """A chosen model in the words of statistics. Numbers that are not defined are nan."""

    loss: str
    rows: float
    """N, rows as often as their weights say."""
    df_model: int
    """Columns in the model."""
    df_residual: float
    """N less the parameters of the mean that no limit holds."""
    null_deviance: float
    """Quadratic loss: the sum of squares about the mean (without an intercept, about 0); others: twice the loss."""
    deviance: float
    """The same about the model."""
    dispersion: float
    """s² for quadratic loss, 1 for others."""
    log_likelihood: float
    """Of :mod:`exactsel.solving.likelihood`, the penalised one where there is a ridge, as in AIC and BIC."""
    aic: float
    bic: float
    r2: float
    r2_adjusted: float
    mcfadden: float
    """1 - log-likelihood / log-likelihood of the null model, of logistic and Poisson loss."""
    level: float
    """Of the intervals."""
    test: str
    """``t`` or ``z``."""
    parameters: tuple[SummaryRow, ...]
    warnings: tuple[str, ...]
    target: str | None = None
    """What is predicted, where that is an expression of columns."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; null where a number is not defined."""
        skipped = ("parameters", "warnings")
        plain = {k: finite(v) if isinstance(v, float) else v for k, v in vars(self).items() if k not in skipped}
        rows = [{k: finite(v) if isinstance(v, float) else v for k, v in vars(row).items()} for row in self.parameters]
        return {**plain, "parameters": rows, "warnings": list(self.warnings)}

    def to_frame(self) -> pandas.DataFrame:
        """The parameters as a pandas DataFrame, by name."""
        try:
            import pandas
        except ImportError:
            raise UnsupportedError("a DataFrame needs pandas; run: pip install pandas, or use as_dict().") from None
        frame = pandas.DataFrame([vars(row) for row in self.parameters]).set_index("name")
        return frame.drop(columns="column")

    def facts(self) -> list[tuple[str, str]]:
        """What is known of the fit as a whole, as names and texts; without what is not defined."""
        facts = [
            ("target", self.target or "nan"), ("rows", f"{self.rows:g}"), ("features", str(self.df_model)),
            ("residual degrees of freedom", f"{self.df_residual:g}"),
            ("null deviance", f"{self.null_deviance:.8g}"), ("residual deviance", f"{self.deviance:.8g}"),
            ("dispersion", f"{self.dispersion:.6g}"), ("log-likelihood", f"{self.log_likelihood:.8g}"),
            ("AIC", f"{self.aic:.8g}"), ("BIC", f"{self.bic:.8g}"), ("R²", f"{self.r2:.4g}"),
            ("adjusted R²", f"{self.r2_adjusted:.4g}"), ("McFadden's R²", f"{self.mcfadden:.4g}"),
        ]  # fmt: skip
        return [(name, value) for name, value in facts if value != "nan"]

    def _repr_html_(self) -> str:
        head = ("", "coef", "std error", self.test, "p", f"{100 * self.level:g} % from", "to")
        rows = [(row.name, *map("{:.5g}".format, row.figures)) for row in self.parameters]
        notes = [html_line(warning, aside=True) for warning in self.warnings]
        return html_view(html_table(rows, head, "Parameters"), *notes, html_table(self.facts(), title="The fit"))

    def __str__(self) -> str:
        lines = [f"{name:<28} {value}" for name, value in self.facts()]
        width = max([len(row.name) for row in self.parameters] + [9])
        head = f"{100 * self.level:g} % interval"
        lines += ["", f"{'parameter':<{width}} {'coef':>13} {'std error':>11} {self.test:>9} {'p':>9}  {head:>27}"]
        for row in self.parameters:
            lines.append(
                f"{row.name:<{width}} {row.coef:>13.6g} {row.error:>11.4g} {row.statistic:>9.3f} {row.p_value:>9.3g}  "
                f"{row.low:>13.6g} {row.high:>13.6g}"
            )
        return "\n".join([*lines, "", *(f"Note: {warning}" for warning in self.warnings)])
