"""Mutation testing of the checker: is every operator, constant and comparison in its source watched by something?

A battery of proof files, good and damaged, is checked by the unchanged source first; then one small change is made to
the source, and the battery run again in a process of its own. A mutant is killed when any verdict, established number
or message differs, when anything else is raised, or when it takes too long.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.util
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.proofs.edges import EDGES
from benchmarks.proofs.probes import PACKAGE, PROBES
from benchmarks.proofs.relations import RELATIONS

MODULES = (
    "container", "walk", "constraint", "hierarchy", "formula", "rigorous", "fits", "counting", "semidefinite",
    "exact", "points", "regions", "selections", "identity", "mismatch", "verdict", "checking",
    "losses.base", "losses.quadratic", "losses.huber", "losses.logistic", "losses.squared_hinge", "losses.poisson",
)  # fmt: skip

NAMED = PROBES | EDGES | RELATIONS
"""Every function that is called by itself."""

WORK = frozenset({"BATCH_BYTES", "BLOCK", "CHUNK", "COMPILED_FROM", "EXACT_LIMIT", "MOST_ENTRIES", "batch", "step"})
"""Names whose values say how much is done at a time or at most: these cannot change what is proven, so assignments to
them are not mutated. The loops that use them are."""

SPENDING = frozenset({"spend", "of_counting", "of_fits", "of_points", "of_selections"})
"""Functions that count work: what they are given says how much, and changes nothing but when a check ends. That work is
counted is tested in tests/proofs/test_work.py."""

ASSERTIONS = frozenset({"frozen", "strict"})
"""Keywords that only turn a programmer's mistake into an exception: not mutated either."""

SECONDS = 60
"""A battery that takes longer kills its mutant."""

SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Pow: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change to one module."""

    module: str
    line: int
    text: str
    source: str


def mutants(module: str, text: str) -> Iterator[Mutant]:
    """Every mutant of a source text: one operator, constant or negation changed at a time."""
    for number in range(sum(1 for _ in _places(ast.parse(text)))):
        tree = ast.parse(text)
        node, change = next(place for i, place in enumerate(_places(tree)) if i == number)
        before = ast.unparse(node)
        after = change()
        yield Mutant(module, node.lineno, f"{before}  ->  {after}", ast.unparse(tree))


def _places(tree: ast.Module) -> Iterator[tuple[Any, Any]]:
    """Nodes that can be changed, each with a function that changes it and returns the new text."""
    left_alone = {id(part) for node in ast.walk(tree) for part in (*_annotation_parts(node), *_harmless_parts(node))}
    for node in ast.walk(tree):
        if id(node) in left_alone:
            continue
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPPED:
            yield node, lambda node=node: _swap(node)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield node, lambda node=node: _swap_comparison(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, lambda node=node: _drop_not(node)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, lambda node=node: _shift(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, lambda node=node: _flip(node)


def _annotation_parts(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            yield from ast.walk(part)


def _harmless_parts(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement, call or keyword holds that cannot change a verdict: see WORK, SPENDING and ASSERTIONS."""
    spent = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SPENDING
    for argument in node.args if spent else ():  # type: ignore[attr-defined]
        yield from ast.walk(argument)
    work = isinstance(node, ast.Assign) and {getattr(target, "id", "") for target in node.targets} <= WORK
    if work or (isinstance(node, ast.keyword) and node.arg in ASSERTIONS):
        yield from ast.walk(node.value)  # type: ignore[attr-defined]


def _swap(node: Any) -> str:
    node.op = SWAPPED[type(node.op)]()
    return ast.unparse(node)


def _swap_comparison(node: ast.Compare) -> str:
    node.ops[0] = SWAPPED[type(node.ops[0])]()
    return ast.unparse(node)


def _drop_not(node: ast.UnaryOp) -> str:
    node.op = ast.UAdd()
    node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
    ast.fix_missing_locations(node)
    return ast.unparse(node)


def _shift(node: ast.Constant) -> str:
    assert isinstance(node.value, int | float)
    node.value = node.value + 1 if isinstance(node.value, int) else node.value * 2.0 + (node.value == 0.0)
    return repr(node.value)


def _flip(node: ast.Constant) -> str:
    node.value = not node.value
    return repr(node.value)


@dataclass(frozen=True)
class Probe:
    """A function of the checker called by itself (see probes.py and edges.py)."""

    name: str


@dataclass(frozen=True)
class Trial:
    """A file and the problem it is held against, as plain data; ``loss`` None for column subset selection."""

    data: bytes
    A: Any
    y: Any
    k: int
    loss: str | None
    lam: float = 0.0
    delta: float = np.inf
    exact_limit: float = 1e6


def outcome(trial: Trial | Probe) -> str:
    """Everything the checker says of a trial, in one text; whichever version of the checker is loaded."""
    if isinstance(trial, Probe):
        return NAMED[trial.name]()
    container = importlib.import_module(f"{PACKAGE}.container")
    checking = importlib.import_module(f"{PACKAGE}.checking")
    if trial.loss is None:
        instance = importlib.import_module(f"{PACKAGE}.formula").ColumnInstance(trial.A, trial.k)
    else:
        kind = importlib.import_module(f"{PACKAGE}.formula").Instance
        instance = kind(trial.A, trial.y, trial.k, trial.loss, trial.lam, trial.delta)
    try:
        verdict = checking.verify(container.parse_proof(trial.data), instance, trial.exact_limit)
    except container.MalformedError as error:
        return f"malformed {error}"
    return f"{verdict} {sorted(verdict.as_dict().items(), key=lambda entry: entry[0])}"


def battery() -> list[Trial | Probe]:
    """Proofs of all kinds, and the same damaged."""
    from corrupted import PARTS, as_bytes, damaged, subject

    from exactsel_certificates.container import parse_proof

    trials: list[Any] = [*map(Probe, NAMED), *_kept(), *_css(), *_awkward()]
    for seed in range(900_000, 900_060):
        at = subject(seed)
        if at is None:
            continue
        rng = np.random.default_rng(seed)
        files = [at.data, *(damaged(rng, at)[0] for _ in range(3))]
        proof = parse_proof(at.data)
        files.append(as_bytes(PARTS["swapped words"](rng, proof)))
        files += [as_bytes(replace(PARTS["counted"](rng, proof), lower=lower)) for lower in (proof.lower, at.high)]
        # A claim at the very edge, so that what rounding may hide decides; with and without exact arithmetic.
        files.append(as_bytes(replace(proof, lower=at.high, upper=max(at.high, proof.upper))))
        instance: Any = at.instance
        trials += [_trial(data, instance) for data in files]
        trials += [replace(trials[-1], exact_limit=limit) for limit in (0.0, 500.0, 1500.0)]
    return trials


def _trial(data: bytes, instance: Any) -> Trial:
    if not hasattr(instance, "y"):
        return Trial(data, instance.A, None, instance.k, None)
    return Trial(data, instance.A, instance.y, instance.k, instance.loss, instance.lam, instance.delta)


def _kept() -> Iterator[Trial]:
    from make_proofs import FOLDER, problem

    from exactsel.proofs.writer import instance_of

    for file in sorted(FOLDER.rglob("*.exsel")):
        yield _trial(file.read_bytes(), instance_of(problem()))


def _solved(problem: Any, **options: Any) -> Iterator[Trial]:
    """A proof, and the same claiming what the search itself says, or a little more."""
    from corrupted import as_bytes

    from exactsel import solve
    from exactsel.proofs.writer import instance_of
    from exactsel_certificates.container import parse_proof

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        result = solve(problem, proof=file, signals=(), **options)
        data = file.read_bytes()
    proof = parse_proof(data)
    for lower in (proof.lower, result.lower, result.upper * (1 + 1e-13)):
        yield _trial(as_bytes(replace(proof, lower=lower)), instance_of(problem))
    valid_for = "" if proof.valid_for else "bounded models"
    yield _trial(as_bytes(replace(proof, lower=result.lower, valid_for=valid_for)), instance_of(problem))


def _css() -> Iterator[Trial]:
    from instances_for_tests import random_case

    from exactsel import ColumnSubsetProblem

    for seed in range(910_000, 910_040):
        case = random_case(seed, loss="quadratic", lam=1.0)
        yield from _solved(ColumnSubsetProblem(case.A, case.k), heuristics=())
    rng = np.random.default_rng(4)
    A = rng.standard_normal((7, 5))
    near = np.column_stack([A, A[:, 0] * 3.0 + 1e-11 * A[:, 1], A[:, 2] + A[:, 3], 2.0 * A[:, 1], 0.0 * A[:, 0]])
    for k in (2, 3, 4):
        yield from _solved(ColumnSubsetProblem(near, k), heuristics=())


def _awkward() -> Iterator[Trial]:
    """lam = 0 with and without dependent columns, many places, and bad scales."""
    from exactsel import Problem

    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((14, 7)), rng.standard_normal(14)
    dependent = np.column_stack([A[:, :5], A[:, 0] + A[:, 1], A[:, 2] * 3.0, 0.0 * A[:, 0]])
    for matrix in (A, dependent, A * 10.0 ** rng.uniform(-6, 6, 7), A[:5]):
        for k in (1, 2, 4):
            for options in ({}, {"bound": "fit"}, {"tree": "state-space", "heuristics": ()}):
                yield from _solved(Problem(matrix, y[: len(matrix)], k, lam=0.0), **options)
    for loss in ("huber", "logistic"):
        target = np.sign(y) if loss == "logistic" else y
        for scale in (1e-3, 1.0, 30.0):
            problem = Problem(A * scale, target, 3, lam=0.3, loss=loss, delta=0.7 if loss == "huber" else None)
            yield from _solved(problem, heuristics=())
            yield from _solved(problem, bound="pdal", heuristics=())


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module its mutated source."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = f"{PACKAGE}.{mutant.module}"
        self.source = mutant.source

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def exec_module(self, module: Any) -> None:
        exec(compile(self.source, self.name, "exec"), module.__dict__)


def killed(mutant: Mutant, trials: list[Trial | Probe], expected: list[str]) -> bool:
    """Run the battery on a mutant in a child process; whether anything differs."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        warnings.simplefilter("error")
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Changed(mutant))
        try:
            same = all(outcome(trial) == text for trial, text in zip(trials, expected, strict=True))
        except BaseException:
            same = False
        os._exit(0 if same else 1)
    return os.waitpid(child, 0)[1] != 0


def sources(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Modules of the checker with their source texts."""
    folder = Path(__file__).resolve().parents[2] / "certificates" / PACKAGE
    for name in names:
        yield name, (folder / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
