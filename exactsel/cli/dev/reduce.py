"""``exactsel dev reduce``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from exactsel.cli.named_files import FileCommand, ReplacedPath
from exactsel.cli.talk import say

if TYPE_CHECKING:
    from exactsel.testing.reproducers import Reproducer


@click.command("reduce", cls=FileCommand)
@click.argument("path", type=ReplacedPath())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(path: str, as_json: bool) -> int:
    """Check whether the failure in PATH still occurs, and make its files small enough to report.

    PATH is a folder, or one .json file that stands beside an instance. A search that contradicts itself writes such
    files, and so does exactsel dev fuzz. Smaller files replace those that still fail. Exit code 0 means that nothing
    fails any more, 1 that something does.
    """
    from exactsel.testing.failing import smaller, still_fails
    from exactsel.testing.reproducers import read_reproducer, reproducers_in, write_reproducer

    rows = []
    for file in reproducers_in(Path(path)):
        reproducer = read_reproducer(file)
        detail = still_fails(reproducer, reproducer.instance)
        if detail is not None:
            small = smaller(reproducer)
            write_reproducer(file.parent, small, file.stem)
            reproducer, detail = small, small.detail
        rows.append(_row(file, reproducer, detail))
        if not as_json:
            say(_text(rows[-1]))
    failing = sum(bool(row["fails"]) for row in rows)
    if as_json:
        say(json.dumps({"failing": failing, "reproducers": rows}))
    return int(failing > 0)


def _row(file: Path, reproducer: Reproducer, detail: str | None) -> dict[str, object]:
    instance = reproducer.instance
    return {
        "file": str(file), "fails": detail is not None, "what": reproducer.what, "detail": detail or reproducer.detail,
        "rows": instance.n, "columns": instance.d, "k": instance.k, "loss": instance.loss,
        "settings": instance.settings,
    }  # fmt: skip


def _text(row: dict[str, object]) -> str:
    if not row["fails"]:
        return f"{row['file']}: fails no more ({row['what']})"
    size = f"{row['rows']} x {row['columns']}, k = {row['k']}, {row['loss']}"
    return f"{row['file']}: still fails, {size}: {row['what']}: {row['detail']}"
