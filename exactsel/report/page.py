"""One self-contained HTML file: it opens from disk, loads nothing, and reads well in light, dark and print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What the browser may load: nothing from anywhere."""


@dataclass(frozen=True)
class Raw:
    """HTML that is to be taken as it is."""

    html: str


Cell = str | int | float | Raw | None
"""What a table cell may hold; numbers are right-aligned."""


def asset(name: str) -> str:
    """A style sheet or script that comes with the package."""
    return files("exactsel.report").joinpath("assets", name).read_text(encoding="utf-8")


def page(title: str, body: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), data: object = None) -> str:
    """The whole document; ``data`` is there for the scripts as the JSON text of the element ``#data``."""
    sheets = "\n".join(asset(name) for name in ("page.css", *styles))
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{sheets}</style>",
        "</head>",
        "<body>",
        "<main>",
        body,
        "</main>",
    ]
    if data is not None:
        parts.append(f'<script type="application/json" id="data">{embedded_json(data)}</script>')
    parts += [f"<script>\n{asset(name)}</script>" for name in scripts]
    return "\n".join([*parts, "</body>", "</html>", ""])


def embedded_json(data: object) -> str:
    """JSON that no name in the data can break out of its script element with."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def section(heading: str, *content: str) -> str:
    """A part of the page under its heading."""
    return "\n".join(["<section>", f"<h2>{escape(heading)}</h2>", *content, "</section>"])


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def tiles(facts: Iterable[tuple[str, str]]) -> str:
    """Key figures side by side, in rows of equal length where that can be."""
    facts = [*facts]
    included = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    per_row = next((number for number in (4, 3) if len(facts) % number == 0), 4)
    return f'<dl class="tiles by{per_row}">{included}</dl>'


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[Cell]], *, best: Iterable[int] = (), words: int = 1
) -> str:
    """A table; ``best`` are rows to mark. Columns of numbers are aligned right, but for the first ``words``."""
    marked, lines, body = set(best), list(rows), []
    kinds = [
        "" if place < words or any(isinstance(line[place], str | Raw) for line in lines) else "number"
        for place in range(len(header))
    ]
    for number, line in enumerate(lines):
        cells = "".join(f"<td{_class(kind)}>{_cell(cell)}</td>" for cell, kind in zip(line, kinds, strict=True))
        body.append(f"<tr{_class('best' if number in marked else '')}>{cells}</tr>")
    head = "".join(
        f'<th scope="col"{_class(kind)}>{escape(name)}</th>' for name, kind in zip(header, kinds, strict=True)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>"
        + "\n".join(body)
        + "</tbody></table></div>"
    )


def wide(text: str) -> Raw:
    """A cell of plain text, such as a list of names, that is not to be squeezed into a narrow column."""
    return Raw(f'<span class="wide">{escape(text)}</span>')


def code(text: str, label: str) -> str:
    """A command to copy."""
    return f'<pre tabindex="0" aria-label="{escape(label)}"><code>{escape(text)}</code></pre>'


def figure(drawing: str, caption: str) -> str:
    """A drawing with the sentence that explains it; where it is wide, keys scroll it."""
    return f'<figure tabindex="0">{drawing}<figcaption>{escape(caption)}</figcaption></figure>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _cell(cell: Cell) -> str:
    if isinstance(cell, Raw):
        return cell.html
    if cell is None:
        return "–"
    return escape(f"{cell:.6g}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else cell)
