"""Hierarchies as people write them: both readers understand the same, and both commands check with it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hand_written import strong_file
from tiny_problems import Case, optimum

from exactsel_certificates.__main__ import main
from exactsel_certificates.constraint import meant
from exactsel_certificates.hierarchy import Hierarchy, read
from exactsel_certificates.standalone.__main__ import main as second
from exactsel_certificates.standalone.hierarchy import read as relations
from exactsel_certificates.standalone.values import Unclear

NAMES = ["a", "b", "a:b", "c d", "2", "e"]


def both(lines, labels=(), names=NAMES):
    """What both readers make of some lines about as many columns as there are names; None where both refuse them."""
    d = len(names)
    held = {}
    for j in range(d):
        held.setdefault((labels[j] if j < len(labels) else "") or j, []).append(j)
    units = [*held.values()]
    try:
        found = read(lines, meant(units, labels, names), len(units))
    except ValueError:
        with pytest.raises(Unclear, match=r"^(the line|').*\.$"):
            relations([*lines], [*labels], [*names], d)
        return None
    other = relations([*lines], [*labels], [*names], d)
    pairs = tuple((j, tuple(own)) for j, own in other["hierarchy"])
    assert (Hierarchy(other["kind"], pairs) if pairs else None) == found
    return found


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("lines", "kind", "parents"),
    [
        (["a:b: a, b"], "strong", {2: (0, 1)}),
        (["weak", "a:b: b,a", "5: 3"], "weak", {2: (0, 1), 5: (3,)}),
        (["# what follows", "", "strong # all", "  c d :\ta ,5,, # both", "e:"], "strong", {3: (0, 5)}),
        (["4:5"], "strong", {4: (5,)}),
        (["2: a:b"], "strong", {4: (2,)}),  # a column called 2
        (["a: e", "e: a"], "strong", {0: (5,), 5: (0,)}),
    ],
)
def test_lines_and_what_they_say(lines, kind, parents):
    assert both(lines) == Hierarchy(kind, tuple(sorted(parents.items())))


@pytest.mark.parametrize("lines", [[], ["weak"], ["# a: b"], ["a:", "b:  "]])
def test_lines_that_say_nothing(lines):
    assert both(lines) is None
    assert relations(lines, [], NAMES, 6)["hierarchy"] == []


@pytest.mark.parametrize(
    "line",
    ["a", "a b", ": a", "a: a", "a: b, b", "a: b, 1", "a: x", "x: a", "a: 6", "6: a", "-1: a", "a: -1", "a: 1.0",
     "a: ٣", "a:b:e", "Weak", "a: b: e", "0: 99999999999999999999", "a: #"],
)  # fmt: skip
def test_lines_that_are_none(line):
    assert both([line]) is None
    assert both([line, "b: a"]) is None or line == "a: #"
    for lines in (["a: b", "0: e"], ["weak", "weak"], ["a: b", "weak"], ["strong", "weak", "a: b"]):
        assert both(lines) is None


def test_names_of_groups_and_of_their_columns():
    labels = ["g", "", "g", "h", "", "e"]
    # Groups: g (0, 2), b, h (3), 2, e. A group's own name goes before a column's.
    for line in ("g: b, h", "a: 1, c d", "a:b: b, h", "0: h, b"):
        assert both([line], labels) == Hierarchy("strong", ((0, (1, 2)),)), line
    assert both(["2: g"], labels) == Hierarchy("strong", ((3, (0,)),))
    assert both(["a: a:b"], labels) is None
    assert both(["x: 1"], ["x", "", ""], ["y", "y", "x"]) == Hierarchy("strong", ((0, (1,)),))
    assert both(["y: 2"], [], ["y", "y", "x"]) is None
    assert both(["0: 2, 1"], [], ["y", "y", "x"]) == Hierarchy("strong", ((0, (1, 2)),))


def test_any_text_is_understood_alike():
    rng = random.Random(8)
    seen = [0, 0]
    for _ in range(20000):
        count = rng.randint(1, 3)
        lines = ["".join(rng.choice("aab:: ,,012#e\tweak") for _ in range(rng.randint(1, 7))) for _ in range(count)]
        lines = [rng.choice(["weak", "strong", "a: b", "1:0, 3", *lines]) for _ in lines]
        labels = [rng.choice(["", "g", "a", "1"]) for _ in range(6)] if rng.random() < 0.3 else []
        seen[both(lines, labels) is None] += 1
    assert min(seen) > 2000


@pytest.fixture
def files(tmp_path):
    """Write a problem and its proof; what both commands say of it with some options."""

    def write(case, *options, **arrays):
        proof, instance = tmp_path / "run.exsel", tmp_path / "instance.npz"
        proof.write_bytes(strong_file(case, optimum(case)).data())
        np.savez(instance, **{"A": np.array(case.A), "y": np.array(case.y), "k": case.k, "lam": case.lam, **arrays})
        codes = {command([str(proof), str(instance), *options]) for command in (main, second)}
        assert len(codes) == 1
        return codes.pop()

    return write


def test_the_commands_take_hierarchies(files, tmp_path, capfd):
    A = [[1.0, 0.0, 2.0], [3.0, 1.0, 0.0], [0.0, 5.0, 1.0], [2.0, 2.0, 7.0]]
    case = Case(A, [1.0, 2.0, 3.0, 4.0], 2, lam=1.0, hierarchy=[(2, [0, 1])], kind="weak")
    text = tmp_path / "hierarchy.txt"
    text.write_text("weak\nc: a, b  # one is enough\n", encoding="utf-8-sig")
    names = np.array(["a", "b", "c"])
    option = ("--hierarchy", str(text))
    assert files(case, *option, feature_names=names) == 0
    assert files(case, hierarchy=np.array(["weak", "2: 0, 1"])) == 0
    assert files(case, hierarchy=np.array(["weak", "c: a, b"]), feature_names=names) == 0
    assert files(case, hierarchy=np.array(["weak", "c: a"]), feature_names=names) == 3
    assert files(case, *option, hierarchy=np.array(["c: a"]), feature_names=names) == 0
    assert files(case) == 3
    assert files(case._replace(hierarchy=[]), *option, feature_names=names) == 3
    assert files(case._replace(hierarchy=[]), hierarchy=np.array(["# none"])) == 0
    assert files(case, *option) == 2  # nobody is called c
    assert files(case, "--hierarchy", str(tmp_path / "none")) == 2
    assert files(case, *option, "--problem", "css") == 2
    text.write_bytes(b"\xff\xfe1: 0")
    assert files(case, *option) == 2
    for odd in (np.zeros(3), np.array(5.0), np.array([["1: 0"]]), np.zeros(0)):
        assert files(case, hierarchy=odd) in (2, 3)
    capfd.readouterr()
    grouped = case._replace(groups=[[0, 2], [1]], hierarchy=[(0, [1])], kind="strong")
    labels = np.array(["g", "", "g"])
    assert files(grouped, groups=labels, hierarchy=np.array(["g: 1"])) == 0
    assert files(grouped, groups=labels, hierarchy=np.array(["c: b"]), feature_names=names) == 0
    assert files(grouped, groups=labels, hierarchy=np.array(["1: 0"])) == 3
