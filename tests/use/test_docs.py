"""Every command and every line of Python the documentation shows is run, in order, page by page."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from runpy import run_module
from types import ModuleType

import numpy as np
import pandas
import pytest
from command_line import CALLED, COMMAND

import exactsel
from exactsel.cli.main import GROUPS
from exactsel.cli.main import main as run_command_line

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    "README.md",
    *(
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not {"development", "example_plugin", "_build"} & {*path.relative_to(ROOT).parts}
    ),
]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A block; a comment before it says why it is not run, or which file it is."""

PROGRAMS = r"exactsel|python|pip|make|Rscript|conda"
INDENTED = re.compile(rf"(?:^    (?:{PROGRAMS}) (?:[^\n]*\\\n)*[^\n]*\n)+", re.MULTILINE)

NOT_COMMANDS = ("text", "r", "{toctree}", "{literalinclude}", "{note}", "{warning}")
"""Kinds of blocks that hold no command of this project."""

NOT_RUN = {
    "pip install": "needs a network",
    "make": "continuous integration does it",
    "python -m benchmarks": "takes hours, or has tests of its own",
    "exactsel dev warmup": "takes minutes",
}
"""Commands that are shown and not run by the tests of the pages, and why."""


def blocks(text: str):
    """(kind, body) of the blocks to run, in the order of the page; commands may be indented or fenced."""
    found = [(m.start(), *_meant(m)) for m in FENCE.finditer(text)]
    found += [(m.start(), "bash", m.group()) for m in INDENTED.finditer(FENCE.sub(_blanked, text))]
    return [(kind, body) for _, kind, body in sorted(found) if kind]


def _meant(match: re.Match[str]) -> tuple[str, str]:
    """What becomes of a block: its kind, or nothing where it is not run; a block of another kind fails."""
    mark, kind, body = match["mark"] or "", match["kind"].split(" ")[0], match["body"]
    if mark.startswith("file: "):
        return mark, body
    if mark.startswith("not run"):
        assert re.fullmatch("not run: .{5,}", mark), f"say why it is not run: {match.group()}"
        return "", body
    if kind == "console":
        return "bash", "".join(re.findall(r"^\$ (.*\n)", body, re.MULTILINE))
    assert kind in ("bash", "python", *NOT_COMMANDS), f"of no kind that is run: {match.group()}"
    return ("" if kind in NOT_COMMANDS else kind), body


def _blanked(match: re.Match[str]) -> str:
    return " " * len(match.group())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as the pages expect it: a checkout's, where whoever follows a page finds all it names."""
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    monkeypatch.chdir(tmp_path)
    return tmp_path


NUMBER = re.compile(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?")
LINES = r"(?:(?!```).*\n)+"
SHOWN = re.compile(rf"^```(?:bash|python)\n(?P<body>{LINES})```\n\n```text\n(?P<output>{LINES})```$", re.MULTILINE)


def masked(text: str) -> list[str]:
    """The lines without spacing and without numbers, whose last digits, and times, depend on the machine."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_outputs_are_those_of_the_commands_before_them(page, folder, capsys):
    shown = [*SHOWN.finditer((ROOT / page).read_text(encoding="utf-8"))]
    assert len(shown) > {"README.md": 1, "docs/tutorial.md": 4}[page]
    for match in shown:
        capsys.readouterr()
        if match["body"].startswith("exactsel"):
            run_commands(match["body"])
        else:
            exec(compile(match["body"], page, "exec"), {})
        told = capsys.readouterr()
        printed = iter(masked(told.err + told.out))
        for line in masked(match["output"]):
            assert line in printed, f"{page} shows what {match['body']} does not print, or not here: {line}"


def run_commands(body: str) -> None:
    """Each line of a block; a command that finishes with a gap left is fine, a wrong one is not."""
    for line in body.replace("\\\n", " ").strip().splitlines():
        words = shlex.split(line, comments=True)
        if not words or any(" ".join(words).startswith(start) for start in NOT_RUN):
            continue
        with pytest.raises(SystemExit) as ended:
            _run(words)
        assert ended.value.code in (0, 1, None), line


def _run(words: list[str]) -> None:
    if words[:2] == ["python", "-m"]:
        _run_module(words[2:])
        return
    assert words[0] == "exactsel", words
    run_command_line(words[1:])


def _run_module(words: list[str]) -> None:
    before, sys.argv = sys.argv, words
    sys.modules.pop(f"{words[0]}.__main__", None)  # another test may have imported it: runpy warns of that
    try:
        run_module(words[0], run_name="__main__", alter_sys=False)
    finally:
        sys.argv = before


@pytest.mark.filterwarnings("default:in instances/cars.csv", "default:in the data, ")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed(page, folder, capsys):
    if "plot_" in (text := (ROOT / page).read_text(encoding="utf-8")):
        pytest.importorskip("matplotlib")
    names: dict[str, object] = {"__name__": "page"}
    for kind, body in blocks(text):
        if kind.startswith("file: "):
            (folder / kind.removeprefix("file: ")).write_text(body, encoding="utf-8")
        elif kind == "bash":
            run_commands(body)
        elif "pysindy." in body and find_spec("pysindy") is None:
            continue  # the page's last blocks; it says what to install
        else:
            exec(compile(body, page, "exec"), names)  # the page's own code, in one namespace
    if page == "docs/howto/reports.md":
        assert {path.name for path in folder.glob("*.html")} == {
            "run.html", "best.html", "path.html", "compare.html", "play.html", "engine.html",
        }  # fmt: skip


INLINE = re.compile(r"`(exactsel [^`]+)`")


@pytest.mark.smoke
def test_commands_within_sentences_are_there():
    """Also in pages for developers: the command is one, and its options are its own."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *NOTEBOOKS]
    for page in pages:
        if page.name == "history.md":
            continue  # what was called otherwise then
        for line in INLINE.findall(page.read_text(encoding="utf-8")):
            words = re.split(r"[\s\[\]]+", line)[1:]
            name = next((word for word in words if word in COMMAND), None)
            if name is None:
                assert words[0] in {*GROUPS, "--help", "--version", "..."}, f"{page.name}: {line}"
                continue
            known = {flag for each in COMMAND[name].params for flag in (*each.opts, *each.secondary_opts)}
            given = {word.partition("=")[0].rstrip(".,;:") for word in words if re.match("--?[a-z]", word)}
            assert given <= known | {"--help", "--help-all"}, f"{page.name}: {line}"
            assert words[: len(CALLED[name])] == CALLED[name], f"{page.name}: {line}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(ROOT)
    module = ModuleType("notebook_shown")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name}[{number}]", "exec"), module.__dict__)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_complete(path):
    """Every cell was run once, from top to bottom, without an error."""
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [o for cell in cells for o in cell["outputs"] if o["output_type"] == "error"]


@pytest.mark.smoke
def test_every_key_of_the_json_object_is_explained():
    page = (ROOT / "docs/reference/json.md").read_text(encoding="utf-8")
    for problem in (exactsel.Problem(np.eye(3), np.ones(3), 1, lam=1.0), exactsel.ColumnSubsetProblem(np.eye(3), 1)):
        plain = exactsel.solve(problem).as_dict()
        near = exactsel.near_optimal(problem, tau=0.1).as_dict()
        row = exactsel.heuristics.run("greedy-css" if problem.kind == "css" else "forward", problem).as_dict()
        for key in {*plain, *near, *row}:
            assert f"`{key}`" in page, key


@pytest.mark.smoke
def test_the_reference_documents_what_is_public_and_nothing_else():
    page = (ROOT / "docs/reference/api.rst").read_text(encoding="utf-8")
    entries = re.findall(r"^\.\. auto(?:function|class):: exactsel\.(\w+)(?:\.\w+)?$", page, re.MULTILINE)
    assert {*entries} - {"sklearn"} == {*exactsel.__all__} - {"__version__"}
    assert "exactsel.__version__" in page


def test_pictures_are_there():
    """Every picture a page shows exists."""
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), f"{page.name}: {target}"


@pytest.mark.smoke
def test_links_between_pages_are_good():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"(?<!!)\[[^\]]+\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert os.path.exists(page.parent / target), f"{page.name}: {target}"


@pytest.mark.filterwarnings("default:in .*cars.csv")
def test_the_numbers_for_those_who_come_from_r():
    """The page's table holds what leaps' formulas give, over all sets of columns, listed with numpy."""
    cars = exactsel.load(
        ROOT / "instances/cars.csv", target="mpg", drop=["name", "model year", "origin"], missing="drop-rows", k=5
    )
    names = list(cars.feature_names)
    frame = pandas.read_csv(ROOT / "instances/cars.csv")[["mpg", *names]].dropna()
    A, y, n = frame[names].to_numpy(float), frame["mpg"].to_numpy(float), cars.n
    assert len(frame) == n == 392

    def rss(chosen):
        columns = np.column_stack([np.ones(n), A[:, chosen]])
        return float(np.sum((y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]) ** 2))

    best = [min((rss(s), s) for s in combinations(range(5), size)) for size in range(6)]
    text = (ROOT / "docs/howto/coming-from-r.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\d) \| ([a-z ,]+) \| ([-\d.]+) \| ([-\d.]+) \| ([-\d.]+) \| ([-\d.]+) \|$", text, re.MULTILINE
    )
    assert len(rows) == 5
    for size, chosen, *figures in rows:
        (value, support), p = best[int(size)], int(size) + 1
        assert chosen in (", ".join(names[j] for j in support), "all five")
        expected = (
            value, n * np.log(value / best[0][0]) + p * np.log(n), value / (best[5][0] / (n - 6)) - (n - 2 * p),
            1 - value / best[0][0] * (n - 1) / (n - p),
        )  # fmt: skip
        assert [float(f) for f in figures] == pytest.approx(expected, abs=6e-5)
    listed = re.findall(r"^\| (\d) \| ([\d.]+) \| ([a-z ,]+) \|$", text, re.MULTILINE)
    bics = sorted(
        (n * np.log(2 * np.pi * rss(s) / n) + n + (size + 2) * np.log(n), s)
        for size in range(6) for s in combinations(range(5), size)
    )  # fmt: skip
    assert [(float(value), chosen) for _, value, chosen in listed] == [
        (pytest.approx(value, abs=6e-5), ", ".join(names[j] for j in s)) for value, s in bics[:2]
    ]


def test_the_numbers_for_those_who_come_from_glm():
    """The page's logistic model is the best by BIC of all sets of columns, each fitted by Newton's method in numpy."""
    frame = pandas.read_csv(ROOT / "instances/cars.csv").drop(columns=["name", "model year"]).dropna()
    y, names = (frame.pop("origin") == "USA").to_numpy(float), list(frame.columns)

    def fit(chosen):
        scale = frame[chosen].std().to_numpy()
        X = np.column_stack([np.ones(len(y)), frame[chosen].to_numpy(float) / scale])
        coef = np.zeros(X.shape[1])
        for _ in range(30):
            share = 1.0 / (1.0 + np.exp(-X @ coef))
            coef += np.linalg.solve((X.T * (share * (1.0 - share))) @ X, X.T @ (y - share))
        margins = X @ coef
        deviance = 2.0 * float(np.sum(np.logaddexp(0.0, margins) - y * margins))
        return deviance + len(coef) * np.log(len(y)), deviance, coef / [1.0, *scale]

    bic, deviance, chosen, coef = min(
        (bic, deviance, chosen, tuple(coef))
        for size in range(len(names) + 1)
        for chosen in map(list, combinations(names, size))
        for bic, deviance, coef in [fit(chosen)]
    )
    text = (ROOT / "docs/howto/coming-from-r.md").read_text(encoding="utf-8")
    assert f"origin ~ {' + '.join(chosen)}, binomial" in text
    assert f"| | (Intercept) | {' | '.join(chosen)} | deviance | AIC | BIC |" in text
    (shown,) = re.findall(r"^\| `fit` \| (.*) \|$", text, re.MULTILINE)
    figures = [float(figure) for figure in shown.split(" | ")]
    expected = (*coef, deviance, deviance + 2 * len(coef), bic)
    assert figures[:-3] == pytest.approx(expected[:-3], abs=6e-6)
    assert figures[-3:] == pytest.approx(expected[-3:], abs=6e-5)
