"""``exactsel tree``."""

from __future__ import annotations

import sys
from typing import Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile
from exactsel.cli.options import (
    SIGNALS,
    catch_signals,
    exit_code,
    problem_options,
    read_problem,
)
from exactsel.cli.plain_options import plain_options, plain_settings
from exactsel.cli.talk import say


@click.command("tree", cls=Command)
@problem_options
@plain_options
@click.option("--format", "style", type=click.Choice(["dot", "json", "png", "svg"]), default="dot", show_default=True)
@click.option("-o", "--out", type=OutputFile(), help="File to write; stdout by default (not for pictures).")
def command(style: str, out: str | None, **arguments: Any) -> int:
    """Show the explored search tree of a small run (node limit 500 unless given).

    It is written as Graphviz source, for dot; --format svg -o tree.svg draws it here. Unless told otherwise it is that
    of plain best-first search: one bound a node, one child a candidate. Exit code 0 means that the tree was written,
    130 that it is the tree of an interrupted run.
    """
    from exactsel.errors import InputError
    from exactsel.files import write_bytes
    from exactsel.report.tree import draw_tree, tree_as_dot, tree_as_json
    from exactsel.solving.entry import solve
    from exactsel.solving.plain_search import search_words

    if style in ("png", "svg") and out is None:
        raise InputError(f"a {style} picture cannot go to stdout; give a file with -o.")
    problem = read_problem(arguments)
    settings = plain_settings(problem, arguments)
    if settings["node_limit"] is None:
        settings["node_limit"] = 500
    catch_signals()
    result = solve(problem, record=True, signals=SIGNALS, **settings)
    graph, words = result.tree(), search_words(result.settings)
    if style in ("png", "svg"):
        write_bytes(str(out), draw_tree(graph, style, words))
    else:
        text = tree_as_dot(graph, words) if style == "dot" else tree_as_json(graph, words)
        if out is None:
            say(text)
            if style == "dot" and sys.stdout.isatty():
                say("This is Graphviz source; -o tree.svg --format svg draws it, and --format json is data.", err=True)
        else:
            write_bytes(out, text.encode())
    return exit_code(True, result.termination)
