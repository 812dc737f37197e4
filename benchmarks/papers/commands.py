"""The command line: one paper, or all, into a folder."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click

from benchmarks.folder import FOLDER
from benchmarks.papers.exhibit import Exhibit
from benchmarks.papers.request import Request
from exactsel.files import write_bytes

PAPERS: dict[str, str] = {
    "000": "poss",
    "001": "pposs",
    "002": "best_first",
    "003": "pocss",
    "004": "greedy_rls",
}
"""The papers by number, and the module that has their exhibits."""

RESULTS = Path(__file__).resolve().parents[1] / "results" / "papers"


@click.command()
@click.argument("paper", type=click.Choice([*PAPERS, "all"]))
@click.option("--quick", is_flag=True, help="Tiny problems: seconds each, once kernels are compiled.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=RESULTS, help="Where exhibits go.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), envvar=FOLDER, help="Folder of data sets.")
@click.option("--mip-python", default=sys.executable, help="Python with gurobipy and pyscipopt, for 002.")
@click.option("--only", help="One exhibit by its file name, such as figure-2.")
def main(paper: str, quick: bool, out: Path, folder: Path | None, mip_python: str, only: str | None) -> None:
    """Reproduce every table and figure of a paper beside the printed one.

    000: subset selection by Pareto optimization (POSS); 001: its parallel form (PPOSS); 002: best-first search for
    sparse minimization; 003: unsupervised feature selection (POCSS); 004: greedy RLS. Each exhibit is written as data
    (.csv), text (.md) and picture (.png) to a folder of the paper's number; index.md names them.
    """
    request = Request(quick, folder, mip_python, only)
    for number in PAPERS if paper == "all" else (paper,):
        module = import_module(f"benchmarks.papers.{PAPERS[number]}")
        produce(number, module.TITLE, lambda module=module: module.exhibits(request), out / number)


def produce(number: str, title: str, exhibits: Callable[[], Iterator[Exhibit]], folder: Path) -> None:
    """Write the exhibits of a paper, each as soon as it is there, and an index of them."""
    index = [f"# {title}\n", f"`{shlex.join(['python', '-m', 'benchmarks.papers', *sys.argv[1:]])}`\n"]
    began = time.perf_counter()
    for exhibit in exhibits():
        exhibit.write(folder)
        took, began = time.perf_counter() - began, time.perf_counter()
        index.append(f"* [{exhibit.name}]({exhibit.name}.md): {exhibit.title}")
        write_bytes(folder / "index.md", ("\n".join(index) + "\n").encode())
        click.echo(f"{number} {exhibit.name}: {len(exhibit.rows)} rows, {took:.0f} s, {folder / exhibit.name}.md")
        for remark in dict.fromkeys(exhibit.remarks):
            click.echo(remark, err=True)
