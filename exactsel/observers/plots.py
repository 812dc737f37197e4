"""Matplotlib figures of a result, for papers and notebooks."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.model import label
from exactsel.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactsel.observers.history import History

UPPER, LOWER, NEGATIVE = "#0b6e99", "#b3541e", "#b3541e"


def plot_bounds(history: History | None, axes: Axes | None = None) -> Figure:
    """Best objective and lower bound over time."""
    if history is None or not history.moments:
        raise InputError("this result has no history to draw; take one that solve() returned.")
    figure, axes = _axes(axes, (6.4, 3.6))
    seconds = [moment.seconds for moment in history.moments]
    for name, colour in (("upper", UPPER), ("lower", LOWER)):
        values = [_drawable(getattr(moment, name)) for moment in history.moments]
        label = {"upper": "best model found", "lower": "proven lower bound"}[name]
        axes.step(seconds, values, where="post", color=colour, label=label)
    incumbents = history.incumbents
    axes.plot([i.seconds for i in incumbents], [i.value for i in incumbents], "o", color=UPPER, markersize=4)
    axes.set_xlabel("seconds")
    axes.set_ylabel("objective")
    axes.legend(frameon=False, loc="upper right")
    return figure


def plot_coefficients(
    support: Sequence[int], coef: FloatArray, names: Sequence[str] | None, axes: Axes | None = None
) -> Figure:
    """The coefficients as horizontal bars, in the order of the columns."""
    if not coef.size:
        raise InputError("column subset selection has no coefficients to draw; print result.support instead.")
    figure, axes = _axes(axes, (6.4, 1.0 + 0.32 * max(1, len(support))))
    values = [float(coef[j]) for j in support]
    labels = [label(j, names, "{name}", "feature {number}") for j in support]
    axes.barh(labels, values, color=[UPPER if value >= 0 else NEGATIVE for value in values])
    axes.axvline(0.0, color="#555555", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_xlabel("coefficient")
    return figure


def _axes(axes: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The figure and axes to draw on; new ones unless axes were given."""
    if axes is not None:
        return cast("Figure", axes.figure), axes  # or a part of one, which draws alike
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("pictures need matplotlib; run: pip install 'exactsel[plot]'.") from None

    class Shown(Figure):
        """A figure that notebooks show, although pyplot knows nothing of it."""

        def _repr_png_(self) -> bytes:
            stream = io.BytesIO()
            self.savefig(stream, format="png")
            return stream.getvalue()

    figure = Shown(figsize=size, layout="constrained")
    return figure, figure.subplots()


def _drawable(value: float) -> float:
    """Infinities leave a gap in the line."""
    return value if math.isfinite(value) else math.nan
