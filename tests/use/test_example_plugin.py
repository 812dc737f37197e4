"""The example package in docs/: short, conforming, and found through its entry points."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from clocks import HANG

from exactsel import load, registry, solve
from exactsel.testing import check_bound, check_heuristic, check_loss

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "docs" / "example_plugin"
TWINS = ROOT / "instances" / "twins.npz"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(PACKAGE)


def entry_points() -> str:
    """What pip would make of the entry points in pyproject.toml."""
    text = (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    tables = re.findall(r'\[project\.entry-points\."(.*?)"\]\n(.*?)(?=\n\n|\Z)', text, re.DOTALL)
    return "\n".join(f"[{group}]\n" + lines.replace('"', "") for group, lines in tables)


@pytest.fixture
def installed(tmp_path):
    """An environment in which the package is installed, as importlib.metadata sees it."""
    info = tmp_path / "exactsel_example-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: exactsel-example\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points())
    path = os.pathsep.join([str(tmp_path), str(PACKAGE), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}


def run(environment: dict[str, str], *arguments: object) -> str:
    command = [sys.executable, "-m", "exactsel", *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_is_short():
    lengths = {file.name: len(file.read_text().splitlines()) for file in (PACKAGE / "exactsel_example").glob("*.py")}
    assert {*lengths} == {"__init__.py", "loss.py", "bound.py", "checked.py", "closer.py", "heuristic.py"}
    assert max(lengths.values()) < 60


def test_the_loss_conforms():
    from exactsel_example import Asymmetric

    check_loss(Asymmetric(), search=False)


@pytest.mark.long
def test_the_loss_compiles():
    from exactsel_example import Asymmetric

    check_loss(Asymmetric())


def test_the_bound_conforms():
    from exactsel_example import RidgeBound

    check_bound(RidgeBound())
    problem = load(TWINS)
    assert solve(problem, bound=RidgeBound()).upper == pytest.approx(solve(problem).upper, rel=1e-9)


def test_the_heuristic_conforms():
    from exactsel_example import Screening

    check_heuristic(Screening())


def test_an_installed_package_is_found(installed):
    listed = json.loads(run(installed, "dev", "plugins", "--json"))
    theirs = {
        kind: [row["name"] for row in rows if row["package"] == "exactsel-example"] for kind, rows in listed.items()
    }
    assert theirs == {
        "losses": ["asymmetric"], "bounds": ["ridge"], "closers": ["last-slot"], "heuristics": ["screening"],
        "trees": [], "branchings": [], "frontiers": [],
    }  # fmt: skip
    shown = run(installed, "dev", "plugins")
    assert re.search(r"^bounds +ridge +exactsel-example 1\.0 +exactsel_example\.bound:RidgeBound$", shown, re.MULTILINE)
    solved = run(installed, "solve", TWINS, "--bound", "ridge", "--heuristic", "screening", "--json", "--quiet")
    assert json.loads(solved)["settings"]["bound"] == "ridge"
    plain = {**installed, "EXACTSEL_JIT": "0"}  # what is not built in would be compiled for half a minute
    solved = json.loads(run(plain, "solve", TWINS, "--loss", "asymmetric", "--json", "--quiet"))
    assert (solved["loss"], solved["claim"]) == ("asymmetric", "optimal")


def test_built_ins_say_where_they_come_from():
    for kind in registry.KINDS:
        found = registry.origins(kind)
        assert [origin.name for origin in found] == registry.names(kind)
        assert all(origin.package == "exactsel" and ":" in origin.object for origin in found)
