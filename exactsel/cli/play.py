"""``exactsel play``."""

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
from exactsel.cli.saving import given
from exactsel.cli.talk import say

NODES_OF_PAGE, NODES_OF_TREE = 200, 500
"""Node limits unless one is given."""


@click.command(
    "play",
    cls=Command,
    examples=(
        "play instances/three-parts.npz --html play.html",
        "play instances/three-parts.npz --dot --format svg -o tree.svg",
    ),
)
@problem_options
@plain_options
@click.option("--html", "page_file", type=OutputFile(), help="Write the page to this file.")
@click.option("--dot", is_flag=True, help="Print the tree in place of a page, as Graphviz source.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["dot", "json", "png", "svg"]),
    default="dot",
    show_default=True,
    help="Print the tree of --dot as JSON, or draw it as a picture.",
)
@click.option(
    "-o", "--out", type=OutputFile(), help="Write the tree of --dot to this file. Default: stdout, if it is no picture."
)
def command(page_file: str | None, dot: bool, style: str, out: str | None, **arguments: object) -> int:
    """Show the search of a small INSTANCE: a page that plays it step by step (--html), or its tree (--dot).

    The page opens from disk in any browser. By default the search is plain best-first search: one bound a node, one
    child a candidate. The search of a page expands one node at a time, starts from the greedy model and stops after 200
    nodes. That of a tree stops after 500 nodes. Exit code 0 means that the output was written, 130 that it shows an
    interrupted run.
    """
    from exactsel.errors import InputError

    if dot == (page_file is not None):
        complaint = "both --html and --dot are given" if dot else "neither --html nor --dot is given"
        raise InputError(f"{complaint}, but one output is expected; give --html FILE for a page or --dot for the tree.")
    if page_file is not None:
        for name, flag in (("style", "--format"), ("out", "--out")):
            if given(name):
                raise InputError(f"{flag} is about the tree, but --html writes a page; leave it out, or give --dot.")
        return _write_page(page_file, arguments)
    return _write_tree(style, out, arguments)


def _write_page(page_file: str, arguments: dict[str, Any]) -> int:
    """Write the page and return the exit code."""
    from exactsel.cli.output import name_written
    from exactsel.files import check_target, write_bytes
    from exactsel.report.player import check_playable, player_page
    from exactsel.solving.api import solve
    from exactsel.solving.choose import class_of

    check_target(page_file)
    problem = read_problem(arguments)
    check_playable(problem)
    if arguments["heuristics"] is None:
        arguments["heuristics"] = class_of(problem).greedy
    settings = plain_settings(problem, arguments)
    if settings["node_limit"] is None:
        settings["node_limit"] = NODES_OF_PAGE
    catch_signals()
    result = solve(problem, record=True, signals=SIGNALS, **settings)
    write_bytes(page_file, player_page(problem, result).encode())
    name_written("page", page_file)
    return exit_code(True, result.termination)


def _write_tree(style: str, out: str | None, arguments: dict[str, Any]) -> int:
    """Write or print the tree and return the exit code."""
    from exactsel.cli.output import name_written
    from exactsel.errors import InputError
    from exactsel.files import write_bytes
    from exactsel.report.tree import draw_tree, tree_as_dot, tree_as_json
    from exactsel.solving.api import solve
    from exactsel.solving.plain_search import search_words

    if style in ("png", "svg") and out is None:
        raise InputError(f"a {style} picture cannot go to stdout; give a file with -o.")
    problem = read_problem(arguments)
    settings = plain_settings(problem, arguments)
    if settings["node_limit"] is None:
        settings["node_limit"] = NODES_OF_TREE
    catch_signals()
    result = solve(problem, record=True, signals=SIGNALS, **settings)
    graph, words, names = result.tree(), search_words(result.settings), problem.feature_names
    if style in ("png", "svg"):
        tree = draw_tree(graph, style, words, names)
    else:
        tree = (tree_as_dot(graph, words, names) if style == "dot" else tree_as_json(graph, words)).encode()
    if out is not None:
        write_bytes(out, tree)
        name_written("tree", out)
        return exit_code(True, result.termination)
    say(tree.decode())
    if style == "dot" and sys.stdout.isatty():
        say("This is Graphviz source; -o tree.svg --format svg draws it, and --format json is data.", err=True)
    return exit_code(True, result.termination)
