"""Heat maps of columns by models: one row a model, one column a variable, as leaps and lmSubsets draw it (SVG)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape

CELL_WIDTH, CELL_HEIGHT, LETTER = 22, 20, 6.6
MOST_VARIABLES, LONGEST_NAME = 60, 24


@dataclass(frozen=True)
class HeatRow:
    """A model: what stands at its left and right, and its variables with +1 or -1 for a sign, 0 for none known."""

    left: str
    right: str
    signs: Mapping[int, int]
    strength: float = 1.0
    """How dark its cells are, from 0 to 1."""
    chosen: bool = False


def shown_variables(rows: Sequence[HeatRow], count: int) -> list[int]:
    """All of so many variables, or, where these are too many, those in the models; the most frequent where even so."""
    if count <= MOST_VARIABLES:
        return list(range(count))
    used: dict[int, int] = {}
    for row in rows:
        for j in row.signs:
            used[j] = used.get(j, 0) + 1
    return sorted(sorted(used, key=lambda j: (-used[j], j))[:MOST_VARIABLES])


def heat_map(rows: Sequence[HeatRow], names: Sequence[str], variables: Sequence[int], title: str) -> str:
    """The map of these ``variables``; ``names`` are those of all. Each cell says in words what it shows."""
    labels = [_short(names[j]) for j in variables]
    left = 12 + round(LETTER * max(len(row.left) for row in rows))
    right = 12 + round(LETTER * max(len(row.right) for row in rows))
    top = 10 + round(0.9 * LETTER * max(len(text) for text in labels))
    # The names are slanted, so that the last one leans out to the right.
    width = left + CELL_WIDTH * len(variables) + max(right, round(0.5 * top))
    height = top + CELL_HEIGHT * len(rows) + 6
    parts = [
        f'<svg class="heat" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(title)}">'
    ]
    for place, text in enumerate(labels):
        x = left + CELL_WIDTH * place + 0.6 * CELL_WIDTH
        parts.append(f'<text x="{x:.1f}" y="{top - 5}" transform="rotate(-60 {x:.1f} {top - 5})">{escape(text)}</text>')
    for number, row in enumerate(rows):
        parts += _row(row, names, variables, left, top + CELL_HEIGHT * number)
    return "\n".join([*parts, "</svg>"])


def _row(row: HeatRow, names: Sequence[str], variables: Sequence[int], left: int, y: int) -> list[str]:
    bold = " chosen" if row.chosen else ""
    middle, right = y + 0.7 * CELL_HEIGHT, left + CELL_WIDTH * len(variables) + 6
    parts = [
        f'<text class="name{bold}" x="{left - 6}" y="{middle}" text-anchor="end">{escape(row.left)}</text>'
        f'<text class="quiet{bold}" x="{right}" y="{middle}">{escape(row.right)}</text>'
    ]
    for place, j in enumerate(variables):
        x, included = left + CELL_WIDTH * place, j in row.signs
        sign = row.signs.get(j, 0)
        kind = "none" if not included else "minus" if sign < 0 else "plus"
        said = {"none": "not in the model", "minus": "negative"}.get(kind, "positive" if sign else "in the model")
        shade = f' fill-opacity="{0.3 + 0.7 * row.strength:.2f}"' if included else ""
        parts.append(
            f'<rect class="cell {kind}" x="{x + 1}" y="{y + 1}" width="{CELL_WIDTH - 2}" height="{CELL_HEIGHT - 2}"'
            f"{shade}><title>{escape(row.left)}, {escape(names[j])}: {said}</title></rect>"
        )
        if included and sign:
            mark = "−" if sign < 0 else "+"
            parts.append(f'<text class="mark" x="{x + CELL_WIDTH / 2}" y="{middle}" text-anchor="middle">{mark}</text>')
    return parts


def left_out_words(rows: Sequence[HeatRow], variables: Collection[int], count: int) -> str:
    """That not all variables are drawn, where that is so."""
    if len(variables) == count:
        return ""
    if {j for row in rows for j in row.signs} <= {*variables}:
        return f" Of the {count} features those in none of these models are left out."
    return f" Shown are the {len(variables)} features of {count} that are in most of these models."


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
