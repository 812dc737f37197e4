"""The house rules of CONTRIBUTING.md that can be read off the source text."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    ROOT / "exactsel",
    ROOT / "heuristics" / "exactsel_heuristics",
    ROOT / "certificates" / "exactsel_certificates",
    ROOT / "dev" / "exactsel_dev",
    ROOT / "mapped" / "exactsel_mapped",
)
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
EVERYTHING = sorted({*SOURCES, *TESTS, *(ROOT / "benchmarks").rglob("*.py")})

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_KERNEL_LINES = 120
"""A loop that is compiled cannot always be cut where a reader would cut it."""
MARKERS = re.compile("|".join(rf"\b{word}\b" for word in ("TO" + "DO", "FIX" + "ME", "X" * 3)))

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def each_of(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test for all files: thousands of tests of a line each take longer than what they look at."""

    def decorate(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for path in paths:
                try:
                    rule(path)
                except AssertionError as error:
                    broken.append(f"{name_of(path)}: {error}")
            assert not broken, "\n".join(broken)

        test.__doc__ = rule.__doc__
        return test

    return decorate


in_sources, everywhere = each_of(SOURCES), each_of(EVERYTHING)


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


LOOKED_FOR = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.arg, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.keyword, ast.Call,
)  # fmt: skip


@cache
def _by_type(path: Path) -> dict[type[ast.AST], list[ast.AST]]:
    """Once for all rules: to go through all trees takes longer than what is done with them."""
    found: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in LOOKED_FOR}
    for node in ast.walk(parse(path)):
        if type(node) in found:
            found[type(node)].append(node)
    return found


def parsed(path: Path, *kinds: type[Any]) -> Iterator[Any]:
    """What a file holds of these kinds."""
    for kind in kinds:
        yield from _by_type(path)[kind]


def is_protocol(node: ast.ClassDef) -> bool:
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(getattr(base, "id", getattr(base, "attr", "")) == "Protocol" for base in bases)


def is_overload(node: Definition) -> bool:
    """Whether it states types only: the function behind the overloads is documented."""
    return any(getattr(one, "id", "") == "overload" for one in node.decorator_list)


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Functions, classes and methods a user can name; what is inside a function is not public."""
    for node in body:
        if isinstance(node, Definition):
            if node.name.startswith("_") or is_overload(node):
                continue
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef) and not is_protocol(node):
                yield from public_definitions(node.body, f"{prefix}{node.name}.")
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from public_definitions(getattr(node, field, []), prefix)
            for handler in getattr(node, "handlers", []):
                yield from public_definitions(handler.body, prefix)


def imported_names(path: Path) -> Iterator[str]:
    for node in parsed(path, ast.Import):
        yield from (alias.name for alias in node.names)
    for node in parsed(path, ast.ImportFrom):
        if node.module and not node.level:
            yield node.module


def test_the_packages_are_found():
    assert all(package.is_dir() for package in PACKAGES)
    assert len(SOURCES) > len(PACKAGES)


def _is_formula(path: Path, name: str) -> bool:
    """Whether it is a method that ``Loss`` and ``ExactLoss`` of the checker describe."""
    interface = name.startswith(("Loss.", "ExactLoss."))
    return name_of(path).startswith("certificates/exactsel_certificates/losses/") and "." in name and not interface


@pytest.mark.smoke
@in_sources
def test_public_names_have_docstrings(path):
    tree = parse(path)
    undocumented = [
        f"{name} (line {node.lineno})"
        for name, node in public_definitions(tree.body)
        if not ast.get_docstring(node) and not node.name.startswith(("point_", "rows_")) and not _is_formula(path, name)
    ]
    if tree.body and not ast.get_docstring(tree):
        undocumented.insert(0, "the module itself")
    assert not undocumented


@each_of([*SOURCES, *TESTS])
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


@in_sources
def test_functions_are_short(path):
    found = parsed(path, ast.FunctionDef, ast.AsyncFunctionDef)
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in found}
    compiled = "/kernels/" in name_of(path)
    most = MAX_KERNEL_LINES if compiled else MAX_FUNCTION_LINES
    assert not {name: length for name, length in lengths.items() if length > most}


@everywhere
def test_nothing_is_left_for_later(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [f"line {number}: {line}" for number, line in enumerate(lines, 1) if MARKERS.search(line)]


@everywhere
def test_no_pickle(path):
    if not re.search("pickle|dill", path.read_text(encoding="utf-8")):
        return  # quicker than to take all tests apart
    assert not [name for name in imported_names(path) if name.partition(".")[0] in ("pickle", "cloudpickle", "dill")]
    switches = [node.value for node in parsed(path, ast.keyword) if node.arg == "allow_pickle"]
    lines = [value.lineno for value in switches if not (isinstance(value, ast.Constant) and value.value is False)]
    assert not lines, f"allow_pickle is not plainly False in lines {lines}"


@in_sources
def test_only_cli_and_report_print(path):
    if (
        name_of(path).startswith(("exactsel/cli/", "exactsel/report/"))
        or name_of(path) == "exactsel/sklearn/crossval.py"
    ):
        return  # the last with verbose=1, as scikit-learn's own estimators
    calls = parsed(path, ast.Call)
    assert not [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


ROOMS_OF_PROOFS = ("exactsel/proofs/", "exactsel/solving/claim.py", "exactsel/solving/screened_proof.py")
SHARED_WITH_THE_CHECKER = {"prepared", "radii", "formula", "equalities"}
"""What prepares data and limits models (certificates/FORMAT.md), and how a checker takes a problem."""


@in_sources
def test_the_solver_shares_with_the_checker_only_what_prepares_data(path):
    if name_of(path).startswith(("certificates/", "dev/", *ROOMS_OF_PROOFS)):
        return
    modules = [name for name in imported_names(path) if name.startswith("exactsel_certificates")]
    assert {name.partition(".")[2] for name in modules} <= SHARED_WITH_THE_CHECKER


PROBLEM_CLASSES = {"Problem", "GroupedProblem", "ColumnSubsetProblem"}


@in_sources
def test_problems_are_asked_for_what_they_have(path):
    """``problem.has(...)`` and ``problem.coefficient_bounds`` in place of its class."""
    calls = [
        call for call in parsed(path, ast.Call) if isinstance(call.func, ast.Name) and call.func.id == "isinstance"
    ]
    names = [{node.id for node in ast.walk(call.args[1]) if isinstance(node, ast.Name)} for call in calls]
    assert not any(each & PROBLEM_CLASSES for each in names)


ANY_BY_ROOM = {
    "certificates": 1, "dev": 2, "exactsel": 3, "exactsel/_jit": 198, "exactsel/algebra": 1, "exactsel/bounds": 5,
    "exactsel/cli": 11, "exactsel/data": 8, "exactsel/kernels": 414,
    "exactsel/losses": 78, "exactsel/nodes": 1, "exactsel/problem": 9,
    "exactsel/proofs": 1, "exactsel/search": 4, "exactsel/sklearn": 41,
    "exactsel/solving": 8, "exactsel/studies": 5, "exactsel/testing": 3, "heuristics": 5,
}  # fmt: skip
"""Arguments, results and fields without a type, by room: as many as there are, and never more.

Numba's objects have none, nor do those of scikit-learn, pandas, formulaic and other libraries without types.
"""


def _is_any(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.BinOp):
        return _is_any(annotation.left) or _is_any(annotation.right)
    return isinstance(annotation, ast.Name) and annotation.id == "Any"


def _room_of(path: Path) -> str:
    first, second, *others = name_of(path).split("/")
    return f"{first}/{second}" if first == "exactsel" and others else first


def test_rooms_use_any_no_more_than_they_did():
    counts: Counter[str] = Counter()
    for path in SOURCES:
        given = [node.annotation for node in parsed(path, ast.arg, ast.AnnAssign)]
        returned = [node.returns for node in parsed(path, ast.FunctionDef, ast.AsyncFunctionDef)]
        counts[_room_of(path)] += sum(map(_is_any, [*given, *returned]))
    more = {room: count for room, count in counts.items() if count > ANY_BY_ROOM.get(room, 0)}
    assert not more, f"more arguments, results or fields are Any than before, in {more}; give those that are new a type"


@pytest.mark.smoke
def test_the_smoke_tier_touches_every_room():
    rooms = {path.parent for path in TESTS if path.name.startswith("test_")}
    texts = {path: path.read_text(encoding="utf-8") for path in TESTS}
    marked = {path.parent for path, text in texts.items() if re.search(r"^ *@pytest\.mark\.smoke$", text, re.MULTILINE)}
    assert not {room.name for room in rooms - marked}
    assert {room.name for room in rooms} >= {"kernels", "heuristics", "search", "soundness", "proofs", "use"}


@in_sources
def test_only_dense_imports_scipys_linear_algebra(path):
    """So that small searches need not wait for it, and its BLAS is held to one thread whenever it comes."""
    if name_of(path) in ("exactsel/algebra/dense.py", "exactsel/algebra/eigenvectors.py"):
        return
    assert not [name for name in imported_names(path) if name.startswith("scipy.linalg")]


@in_sources
def test_only_jit_imports_numba(path):
    if name_of(path).startswith("exactsel/_jit/") or name_of(path) == "certificates/exactsel_certificates/compiled.py":
        return
    assert not [name for name in imported_names(path) if name.partition(".")[0] == "numba"]
