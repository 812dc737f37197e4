"""The words of what users read, against the private language that the code base once spoke."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from command_line import texts_of_help
from sentences import lengths, mean_words, sentences

import exactsel

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = [
    path for folder in ("exactsel", "heuristics", "certificates") for path in sorted((ROOT / folder).rglob("*.py"))
]

WORDS = {
    r"nobody|no one|somebody|someone": "name the subject: the search, a worker, you",
    r"whoever|whomever|whom": "name the subject: the checker, the reader, you",
    r"what (?:came|comes) of|comes? to nothing": "the result",
    r"(?:is|are|was|were|be|been) told|told of|tells of": "given, reported",
    r"in vain": "without success",
    r"at hand": "available, fallback",
    r"put in|puts in|left out of|leaves? out of": "fixed to 1, fixed to 0, included, excluded",
    r"twin columns?|twins of": "duplicate columns",
    r"suspects?": "undecided",
    r"hair(?:s|'s)?(?: breadth)?|company": "the term of the field",
    r"walk(?:s|ed|ing)?": "subtree enumeration",
    r"(?:no|has|have|leaves?|of|for) room|rooms": "space, workspace",
    r"(?:go|goes|gone|going|went) on(?! (?:to|a|the)\b)": "continue, resume",
    r"anew": "again",
    r"(?:hold|holds|held) [^.;]{0,30}\bagainst": "compare with",
    r"at work|under way": "running, in flight",
    r"given out|passed over|taken up": "dispatched, skipped, resumed",
    r"for good|no matter|of old|and the like": "always, whatever, former, such as",
    r"bring nothing new|brings nothing new": "redundant",
    r"set(?:s|ting)? (?:them |it )?side by side with": "compare with",
}  # fmt: skip
"""Patterns of whole words, and what to write in their place."""

ANY = re.compile(rf"(?<![\w`])(?:{'|'.join(WORDS)})(?![\w`])", re.IGNORECASE)
COMPILED = [(re.compile(rf"(?<![\w`])(?:{pattern})(?![\w`])", re.IGNORECASE), hint) for pattern, hint in WORDS.items()]

SPEAKING = {"warn", "warn_of_data", "say", "say_line", "complain", "fail"}
"""Functions whose texts are printed for users, beside errors."""

MOST_IN_COMMENTS = 241
"""Occurrences in docstrings and comments of the product: lower it where you have rewritten some, never raise it."""


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def found_in(text: str) -> Iterator[str]:
    """Each pattern of the list that occurs, with its surroundings."""
    flat = " ".join(text.split())
    for pattern, hint in COMPILED:
        for match in pattern.finditer(flat):
            shown = flat[max(0, match.start() - 40) : match.end() + 40]
            yield f"'{match.group()}' in '...{shown}...'; write {hint}"


def pages() -> Iterator[tuple[str, str]]:
    """What stands in README, changelog and site, code aside."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]
    for path in found:
        inside = path.relative_to(ROOT)
        if inside.parts[:2] not in (("docs", "development"), ("docs", "_build"), ("docs", "jupyter_execute")):
            yield str(inside), re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        yield path.name, "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def messages() -> Iterator[tuple[str, str]]:
    """The texts of errors, of warnings, and of what the command line prints."""
    for path in PRODUCT:
        for node in ast.walk(parsed(path)):
            speaks = isinstance(node, ast.Call) and _name(node.func).lstrip("_") in SPEAKING
            if isinstance(node, ast.Raise) or speaks:
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{path.relative_to(ROOT)}:{part.lineno}", part.value


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def public_docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of public names and of their public methods."""
    for name in exactsel.__all__:
        value = getattr(exactsel, name)
        members = {name: value}
        if inspect.isclass(value):
            members |= {f"{name}.{each}": part for each, part in vars(value).items() if not each.startswith("_")}
        for called, part in members.items():
            if isinstance(part, property | classmethod | staticmethod) or callable(part) or inspect.ismodule(part):
                yield called, inspect.getdoc(part) or ""


def comments() -> Iterator[tuple[str, str]]:
    """The docstrings and comments of a file."""
    for path in PRODUCT:
        strings = [
            node.value.value
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]
        strings += re.findall(r"(?:^|\s)# (.*)$", path.read_text("utf-8"), re.MULTILINE)
        yield str(path.relative_to(ROOT)), "\n".join(strings)


@pytest.mark.smoke
@pytest.mark.parametrize("surface", [pages, texts_of_help, messages, public_docstrings])
def test_what_users_read_has_the_fields_words(surface) -> None:
    wrong = [f"{where}: {complaint}" for where, text in surface() for complaint in found_in(text)]
    assert not wrong, "\n".join(wrong)


CHOOSING = (
    "exactsel/problem", "exactsel/studies", "exactsel/solving", "exactsel/bounds", "exactsel/closers",
    "exactsel/enumeration", "exactsel/observers", "exactsel/report", "exactsel/start", "exactsel/sklearn",
    "exactsel/cli", "heuristics",
)  # fmt: skip
"""Where texts are about models, so that what is chosen and has a coefficient is a feature."""

OF_TABLES = {f"exactsel/problem/{name}.py" for name in ("doubles", "factors", "frames", "numbered")}
"""Modules there that read tables, and speak of nothing but their columns."""

COLUMNS_OF = re.compile(
    # what is read ...
    r"\b(?:tables?|files?|frame|matrix|rows?|formula|factors?)\b|\bof A\b|to predict from|the model needs the column|"
    r"column,lower,upper|\ba column of\b|\bX\.columns\b|"
    # ... and column subset selection
    r"column subset selection|\bcss\b|ColumnSubset|selection of columns|^reconstructions with",
    re.IGNORECASE,
)
"""A text with one of these says of what its columns are."""


def whole_texts() -> Iterator[tuple[str, str]]:
    """All texts of several words where models are chosen, docstrings aside; {} stands for what is filled in."""
    for path in PRODUCT:
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(CHOOSING) or place in OF_TABLES:
            continue
        nodes = list(ast.walk(parsed(path)))
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        parts |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) not in parts and isinstance(node, ast.Constant | ast.JoinedStr):
                filled = node.values if isinstance(node, ast.JoinedStr) else [node]
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in filled)
                if " " in text.strip():
                    yield f"{place}:{node.lineno}", text


@pytest.mark.smoke
def test_what_is_chosen_is_a_feature() -> None:
    """A column is one of a table or matrix that is read, or of column subset selection."""
    wrong = [
        f"{where}: '{text}'; write feature, or say of what the columns are"
        for where, text in whole_texts()
        if re.search(r"\bcolumns?\b", text, re.IGNORECASE) and not COLUMNS_OF.search(text)
    ]
    assert not wrong, "\n".join(wrong)


FOR_BEGINNERS = (
    "README.md",
    "docs/index.md",
    "docs/install.md",
    "docs/tutorial.md",
    "docs/howto/",
    "docs/reliability.md",
)
"""Pages on which every sentence is short."""


@pytest.mark.smoke
def test_sentences_are_short() -> None:
    texts = dict(pages())
    means = {where: mean_words(text) for where, text in texts.items() if not where.endswith(".rst")}
    assert not {where: mean for where, mean in means.items() if mean > 18}
    for where, text in texts.items():
        if where.startswith(FOR_BEGINNERS) and where.endswith(".md"):
            long = [each for each, count in zip(sentences(text), lengths(text), strict=True) if count > 25]
            assert not long, f"{where}: {long}"
    assert mean_words("\n\n".join(text for _, text in texts_of_help())) <= 18


def test_private_words_become_fewer() -> None:
    count = sum(len(ANY.findall(" ".join(text.split()))) for _, text in comments())
    assert count <= MOST_IN_COMMENTS, f"{count} private words in docstrings and comments, {MOST_IN_COMMENTS} allowed"
