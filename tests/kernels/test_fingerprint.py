"""Kernels for a loss from elsewhere are kept on the disk, and never outlive an edit of the loss."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from own_loss import PseudoHuber

from exactsel import _jit
from exactsel._jit.fingerprint import fingerprint
from exactsel.losses import Huber

LOSS = '''
"""A loss."""
import math
import json
from math import exp
from typing import NamedTuple

import numpy as np
from exactsel._jit import njit

SIZE = 2.0
TABLE = np.array([1.0, 2.0])
HIDDEN = object()


@njit
def called(x):
    return 3.0 * x


def plain(x):
    return x


def within(width):
    def point_closed(loss, z, y):
        return width * z
    return staticmethod(point_closed)


class Mine(NamedTuple):
    width: float
    other: float

    @staticmethod
    def point_value(loss, z, y, least=0.25):
        """Say nothing."""
        far = [part for part in (z - y, 1.5) if part > least]
        return SIZE * math.sin(z) + exp(y) + called(z) + float(TABLE[1]) + len(far)

    point_closed = within(4.0)
'''


def imported(tmp_path, monkeypatch, text):
    """A module of this text, as a new process would see it."""
    (tmp_path / "some_loss.py").write_text(text)
    spec = importlib.util.spec_from_file_location("some_loss", tmp_path / "some_loss.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "some_loss", module)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    exec(compile(text, "some_loss.py", "exec"), module.__dict__)
    return module


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("math.sin", "math.cos"), ("import exp", "import expm1 as exp"), ("SIZE = 2.0", "SIZE = -2.0"),
        ("[1.0, 2.0]", "[1.0, 2.5]"), ("3.0 * x", "3.5 * x"), ("@njit", "@njit(sums=True)"),
        ("within(4.0)", "within(5.0)"), ("least=0.25", "least=0.5"), ("1.5)", "1.75)"),
        ("part > least", "part >= least"), ("class Mine", "class Other"), ("return width * z", "return width - z"),
        ("    width: float\n    other: float", "    other: float\n    width: float"),
    ],
)  # fmt: skip
def test_an_edit_of_what_is_compiled_shows(tmp_path, monkeypatch, before, after):
    assert LOSS.count(before) == 1
    first = fingerprint(imported(tmp_path, monkeypatch, LOSS).Mine)
    changed = imported(tmp_path, monkeypatch, LOSS.replace(before, after))
    assert first is not None
    assert fingerprint(getattr(changed, "Mine", None) or changed.Other) not in (None, first)


@pytest.mark.parametrize(
    ("before", "after"),
    [("Say nothing", "Say something"), ("import json", "import os"), ("object()", "[1]"), ('"""A loss."""', "")],
)
def test_an_edit_elsewhere_does_not(tmp_path, monkeypatch, before, after):
    first = fingerprint(imported(tmp_path, monkeypatch, LOSS).Mine)
    same = before == "Say nothing"  # a docstring is a constant of the function
    assert (fingerprint(imported(tmp_path, monkeypatch, LOSS.replace(before, after)).Mine) == first) != same


@pytest.mark.smoke
@pytest.mark.parametrize(
    "reached", ["json.loads(z)", "plain(z)", "HIDDEN(z)", "Mine.point_closed(loss, z, y)", "np.random.default_rng().x"]
)
def test_what_cannot_be_looked_into_is_not_kept(tmp_path, monkeypatch, reached):
    module = imported(tmp_path, monkeypatch, LOSS.replace("SIZE * math.sin(z)", reached))
    assert (fingerprint(module.Mine) is None) == (not reached.startswith("np"))


def test_only_what_other_processes_find_is_kept(monkeypatch):
    class Local(PseudoHuber):
        pass

    assert fingerprint(PseudoHuber) is not None
    assert fingerprint(Local) is None
    monkeypatch.setattr(PseudoHuber, "__module__", "__main__")
    assert fingerprint(PseudoHuber) is None


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_losses_are_found_wherever_an_argument_holds_them():
    import numba

    from exactsel._jit.disk import classes_from_elsewhere

    for value, expected in (
        (PseudoHuber(1.0), [PseudoHuber]),
        ((1, (PseudoHuber(1.0), np.zeros(2))), [PseudoHuber]),
        ((PseudoHuber(1.0), PseudoHuber(2.0)), [PseudoHuber]),
        ((Huber(1.0), np.zeros(2), None), []),
    ):
        assert classes_from_elsewhere([numba.typeof(value)]) == expected
    assert classes_from_elsewhere([numba.types.Optional(numba.typeof(PseudoHuber(1.0)))]) == [PseudoHuber]


USE = """
import numpy as np, sys
from my_loss import Mine
from exactsel.kernels.rows import loss_value
from exactsel.losses import Huber
z, y = np.array([1.0, 3.0]), np.zeros(2)
print(loss_value(Mine(1.0), z, y), loss_value(Huber(1.0), z, y))
print(sum(loss_value.compiled.stats.cache_hits.values()))
"""


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_an_edited_loss_is_never_served_by_the_kernel_of_the_old_one(tmp_path):
    text = (Path(__file__).parents[1] / "fixtures" / "own_loss.py").read_text().replace("PseudoHuber", "Mine")
    linear = text.replace("return loss.width * loss.width * u * u / (1.0 + math.sqrt(1.0 + u * u))", "return u")
    assert linear != text
    environment = {**os.environ, "EXACTSEL_JIT": "1", "EXACTSEL_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = []
    for source in (text, text, linear, text):
        (tmp_path / "my_loss.py").write_text(source)
        done = subprocess.run(
            [sys.executable, "-B", "-c", USE], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        told.append(done.stdout.split())
    smooth = 2**0.5 + 10**0.5 - 2
    assert [float(words[0]) for words in told] == pytest.approx([smooth, smooth, 4.0, smooth])
    assert {words[1] for words in told} == {"3.0"}
    assert [int(words[2]) for words in told] == [0, 2, 1, 2]
