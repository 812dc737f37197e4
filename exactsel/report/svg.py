"""Line charts and bars as inline SVG; colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

WIDTH, HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM = 78, 16, 30, 44
MOST_POINTS = 600
"""Points of a drawn line: more are indistinguishable."""


@dataclass(frozen=True)
class Series:
    """A quantity that keeps its value until the next point; or, where it is ``straight``, one known at points only."""

    name: str
    style: str
    """A class of the style sheet: upper, lower, other or more."""
    points: Sequence[tuple[float, float]]
    dots: bool = False
    straight: bool = False
    errors: Sequence[float] = ()
    """Of each point, up and down."""


@dataclass(frozen=True)
class Axis:
    """From data to pixels."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False
    whole: bool = False
    """Whether it is about whole numbers only."""

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, at = (math.log10(v) if self.logarithmic else v for v in (self.low, self.high, value))
        return self.begin + (at - low) / (high - low) * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """Round numbers inside the range."""
        if self.logarithmic:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**power for power in range(first, last + 1, max(1, (last - first) // 6))]
        step = _round_step((self.high - self.low) / 5)
        step = max(1.0, step) if self.whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def line_chart(
    series: Sequence[Series], *, title: str, description: str, x_label: str, y_label: str, log_x: bool = False,
    log_y: bool = False, from_zero: bool = True, whole_x: bool = False,
) -> str:  # fmt: skip
    """Lines on common axes; points that are not finite (or, on a logarithmic axis, not positive) are dropped.

    The horizontal axis begins at zero, or, without ``from_zero``, at the first point; with ``whole_x`` it is about
    whole numbers.
    """
    drawn = [s for s in (_finite(s, log_x, log_y) for s in series) if s.points]
    if not drawn:
        return f"<p>{escape(title)}: there is nothing to draw.</p>"
    xs = [x for s in drawn for x, _ in s.points]
    ys = [y + part * error for s in drawn for (_, y), error in _with_errors(s) for part in (-1, 1)]
    x_axis = _axis(min(xs) if log_x or not from_zero else 0.0, max(xs), LEFT, WIDTH - RIGHT, log_x)
    x_axis = replace(x_axis, whole=whole_x)
    y_axis = _axis(min(ys), max(ys), HEIGHT - BOTTOM, TOP, log_y, margin=0.06)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}. {escape(description)}">',
        *_frame(x_axis, y_axis, x_label, y_label),
    ]
    for number, line in enumerate(drawn):
        parts += _line(line, x_axis, y_axis, max(xs))
        parts.append(
            f'<line class="{line.style}" x1="{LEFT + 190 * number}" x2="{LEFT + 190 * number + 22}" y1="12" y2="12" '
            f'stroke-width="2"/><text class="{line.style}" x="{LEFT + 190 * number + 28}" y="16">'
            f"{escape(line.name)}</text>"
        )
    return "\n".join([*parts, "</svg>"])


def _with_errors(line: Series) -> list[tuple[tuple[float, float], float]]:
    return list(zip(line.points, line.errors or [0.0] * len(line.points), strict=True))


def _finite(line: Series, log_x: bool, log_y: bool) -> Series:
    """The points of a line that can be drawn."""
    pairs = [(point, error) for point, error in _with_errors(line) if _shown(point, log_x, log_y)]
    return replace(line, points=[p for p, _ in pairs], errors=[e for _, e in pairs] if line.errors else ())


def _shown(point: tuple[float, float], log_x: bool, log_y: bool) -> bool:
    return math.isfinite(point[1]) and (point[0] > 0 or not log_x) and (point[1] > 0 or not log_y)


def rod(value: float, largest: float) -> str:
    """One bar from the left, for a table cell, of something that is never negative."""
    length = 140.0 * value / largest if largest > 0 else 0.0
    return (
        '<svg width="140" height="14" viewBox="0 0 140 14" aria-hidden="true">'
        f'<rect class="minus" x="0" y="2" width="{length:.1f}" height="10"/></svg>'
    )


def bar(value: float, largest: float) -> str:
    """One bar to the left or right of a middle line, for a table cell; the number stands beside it."""
    half = 70.0
    length = half * abs(value) / largest if largest > 0 else 0.0
    start, style = (half, "plus") if value >= 0 else (half - length, "minus")
    return (
        f'<svg width="140" height="14" viewBox="0 0 140 14" aria-hidden="true"><line class="axis" x1="{half}" '
        f'x2="{half}" y1="0" y2="14"/><rect class="{style}" x="{start:.1f}" y="2" width="{length:.1f}" height="10"/>'
        "</svg>"
    )


def _axis(low: float, high: float, begin: float, end: float, logarithmic: bool, margin: float = 0.0) -> Axis:
    if logarithmic:
        return Axis(low / (1.0 + margin), (high if high > low else 10.0 * low) * (1.0 + margin), begin, end, True)
    room = margin * (high - low)
    if high - low <= 1e-12 * max(abs(high), abs(low), 1e-300):
        # One value only: a range around it, so that it is drawn in the middle.
        room = 0.5 * abs(high) or 0.5
    return Axis(low - room if margin else low, high + room if margin or high <= low else high, begin, end)


def _frame(x_axis: Axis, y_axis: Axis, x_label: str, y_label: str) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>']
    for tick in y_axis.ticks():
        y = y_axis(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="quiet" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.6g}</text>')
    for tick in x_axis.ticks():
        x = x_axis(tick)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:.6g}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<text class="quiet" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    height = (TOP + bottom) / 2
    parts.append(
        f'<text class="quiet" x="14" y="{height}" text-anchor="middle" transform="rotate(-90 14 {height})">'
        f"{escape(y_label)}</text>"
    )
    return parts


def _line(line: Series, x_axis: Axis, y_axis: Axis, last: float) -> list[str]:
    points = list(line.points)
    if line.straight:
        return _points(line, x_axis, y_axis)
    if len(points) > MOST_POINTS:
        points = [*points[:: math.ceil(len(points) / MOST_POINTS)], points[-1]]
    path = f"M{x_axis(points[0][0]):.1f} {y_axis(points[0][1]):.1f}"
    for x, y in points[1:]:
        path += f"H{x_axis(x):.1f}V{y_axis(y):.1f}"
    parts = [f'<path class="series {line.style}" d="{path}H{x_axis(last):.1f}"/>']
    if line.dots:
        parts += [
            f'<circle class="{line.style}" cx="{x_axis(x):.1f}" cy="{y_axis(y):.1f}" r="3.5"/>' for x, y in points
        ]
    return parts


def _points(line: Series, x_axis: Axis, y_axis: Axis) -> list[str]:
    """A line through points, each with its error bar."""
    places = [(x_axis(x), y_axis(y)) for x, y in line.points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f'<path class="series {line.style}" d="M{path}"/>']
    for (x, y), error in _with_errors(line):
        if error > 0:
            at, low, high = x_axis(x), y_axis(y - error), y_axis(y + error)
            parts.append(
                f'<path class="series {line.style}" d="M{at:.1f} {low:.1f}V{high:.1f}M{at - 4:.1f} {low:.1f}h8'
                f'M{at - 4:.1f} {high:.1f}h8"/>'
            )
    if line.dots:
        parts += [f'<circle class="{line.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
    return parts


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9)) * power
