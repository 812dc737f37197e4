"""Kernels are kept on the disk, and never outlive an edit of what they were made from."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from own_loss import PseudoHuber

from exactsel import _jit
from exactsel._jit.cache_key import cache_key, class_key
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
    first = class_key(imported(tmp_path, monkeypatch, LOSS).Mine)
    changed = imported(tmp_path, monkeypatch, LOSS.replace(before, after))
    assert first is not None
    assert class_key(getattr(changed, "Mine", None) or changed.Other) not in (None, first)


@pytest.mark.parametrize(
    ("before", "after"),
    [("Say nothing", "Say something"), ("import json", "import os"), ("object()", "[1]"), ('"""A loss."""', "")],
)
def test_an_edit_elsewhere_does_not(tmp_path, monkeypatch, before, after):
    first = class_key(imported(tmp_path, monkeypatch, LOSS).Mine)
    assert class_key(imported(tmp_path, monkeypatch, LOSS.replace(before, after)).Mine) == first


@pytest.mark.smoke
@pytest.mark.parametrize(
    "reached", ["json.loads(z)", "plain(z)", "HIDDEN(z)", "Mine.point_closed(loss, z, y)", "np.random.default_rng().x"]
)
def test_what_cannot_be_looked_into_is_not_kept(tmp_path, monkeypatch, reached):
    module = imported(tmp_path, monkeypatch, LOSS.replace("SIZE * math.sin(z)", reached))
    assert (class_key(module.Mine) is None) == (not reached.startswith("np"))


def test_only_what_other_processes_find_is_kept(monkeypatch):
    class Local(PseudoHuber):
        pass

    assert class_key(PseudoHuber) is not None
    assert class_key(Local) is None
    monkeypatch.setattr(PseudoHuber, "__module__", "__main__")
    assert class_key(PseudoHuber) is None


KERNELS = '''
"""Kernels that call one another."""
from typing import NamedTuple
import math
import numpy as np
from exactsel._jit import choose_by_type, njit, overload

SIZE = 2.0
TABLE = np.array([1.0, 2.0])


class Near(NamedTuple):
    x: float


class Far(NamedTuple):
    x: float


def bits(x):
    return int(x)


def _fast_bits(x):
    return np.int64(x)


overload(bits)(lambda x: _fast_bits)


@njit
def leaf(x):
    """Say nothing."""
    return math.sin(x)


@njit
def of_constant(x):
    return SIZE * x


@njit
def of_table(x):
    return TABLE[0] * x + bits(x)


@njit
def middle(x):
    return leaf(x) + 1.0


@njit(sums=True)
def top(x):
    return middle(x) + of_constant(x)


@njit
def odd(x):
    return 0.0 if x < 0 else even(x - 1)


@njit
def even(x):
    return 1.0 if x < 0 else odd(x - 1)


@choose_by_type("place")
def distance(place):
    return place.x


@distance.register(Far)
def _far_distance(place):
    return place.x * of_constant(2.0)


@distance.register_where(lambda kind: kind.__name__ == "Nearest")
def _nearest(place):
    return 0.0


@njit
def measured(place):
    return distance(place)


@njit
def far(x):
    return distance(Far(x))
'''

NAMES = (
    "leaf",
    "of_constant",
    "of_table",
    "middle",
    "top",
    "odd",
    "even",
    "far",
    "measured",
    "measured Near",
    "measured Far",
)


def keys_of(module):
    """Of all kernels, and of one for each class it may be given."""
    found = {}
    for name in NAMES:
        kernel, *classes = (getattr(module, word) for word in name.split())
        found[name] = cache_key(kernel, classes)
    return found


@pytest.mark.smoke
@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("math.sin", "math.cos", {"leaf", "middle", "top"}),
        ("leaf(x) + 1.0", "leaf(x) + 2.0", {"middle", "top"}),
        ("leaf(x) + 1.0", "math.sin(x) + 1.0", {"middle", "top"}),
        ("@njit\ndef leaf", "@njit(inline=True)\ndef leaf", {"leaf", "middle", "top"}),
        ("sums=True", "sums=False", {"top"}),
        ("SIZE = 2.0", "SIZE = 3.0", {"of_constant", "top", "far", "measured Far"}),
        ("[1.0, 2.0]", "[1.0, 2.5]", {"of_table"}),
        ("np.int64(x)", "np.int64(-x)", {"of_table"}),
        ("0.0 if x < 0", "2.0 if x < 0", {"odd", "even"}),
        (
            "return place.x\n",
            "return -place.x\n",
            {"far", "measured", "measured Near", "measured Far"},
        ),  # for None, too
        ("of_constant(2.0)", "of_constant(4.0)", {"far", "measured Far"}),
        ("register(Far)", "register(Near)", {"far", "measured Near", "measured Far"}),
        ('"Nearest"', '"Near"', {"measured Near"}),
        (
            "class Near(NamedTuple):\n    x: float",
            "class Near(NamedTuple):\n    x: float\n    y: float",
            {"measured Near"},
        ),
        ("Say nothing.", "Say something else.", set()),
        ("Kernels that call one another.", "Kernels that\ncall one another.", set()),
    ],
)
def test_an_edit_shows_in_the_kernels_that_reach_it_and_in_no_other(tmp_path, monkeypatch, before, after, changed):
    assert KERNELS.count(before) == 1
    first = keys_of(imported(tmp_path, monkeypatch, KERNELS))
    second = keys_of(imported(tmp_path, monkeypatch, KERNELS.replace(before, after)))
    assert None not in first.values()
    assert len(set(first.values())) == len(first)
    assert {name for name in NAMES if first[name] != second[name]} == changed


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
@pytest.mark.parametrize("reached", ["keys(x)", "HIDDEN", "bits.odd(x)"])
def test_a_kernel_that_reaches_what_cannot_be_told_is_not_kept(tmp_path, monkeypatch, reached):
    text = KERNELS.replace("math.sin(x)", reached) + "HIDDEN = object()\n\n\ndef keys(x):\n    return x\n"
    keys = keys_of(imported(tmp_path, monkeypatch, text))
    assert [name for name in NAMES if keys[name] is None] == ([] if "bits" in reached else ["leaf", "middle", "top"])


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_what_kernels_are_compiled_by_shows_in_all_of_them(tmp_path, monkeypatch):
    module = imported(tmp_path, monkeypatch, KERNELS)
    first = keys_of(module)
    monkeypatch.setattr(_jit.cache_key, "_compiler", lambda: "another")
    second = keys_of(module)
    assert all(first[name] != second[name] for name in NAMES)


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_all_kernels_of_ours_can_be_kept():
    import exactsel.kernels
    import exactsel.losses
    import exactsel_heuristics
    from exactsel._jit.kernel import Kernel

    for package in (exactsel.kernels, exactsel.losses, exactsel_heuristics):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    modules = [module for name, module in sys.modules.items() if name.startswith("exactsel")]
    kernels = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, Kernel)}
    keys = {f"{each.__module__}.{each.__name__}": cache_key(each, [Huber]) for each in kernels.values()}
    assert len(keys) > 400
    assert [name for name, key in keys.items() if key is None] == []
    assert len(set(keys.values())) == len(kernels)


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_losses_are_found_wherever_an_argument_holds_them():
    import numba

    from exactsel._jit.disk import classes_in

    for value, expected in (
        (PseudoHuber(1.0), [PseudoHuber]),
        ((1, (PseudoHuber(1.0), np.zeros(2))), [PseudoHuber]),
        ((PseudoHuber(1.0), PseudoHuber(2.0)), [PseudoHuber]),
        ((Huber(1.0), np.zeros(2), None), [Huber]),
    ):
        assert classes_in([numba.typeof(value)]) == expected
    assert classes_in([numba.types.Optional(numba.typeof(PseudoHuber(1.0)))]) == [PseudoHuber]


CALLS = """
import leaf_kernels, top_kernels
print(top_kernels.top(1.0), top_kernels.alone(1.0))
print(*(sum(each.compiled.stats.cache_hits.values()) for each in (top_kernels.top, top_kernels.alone)))
"""


@pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
def test_an_edited_leaf_is_compiled_into_its_callers_anew_and_into_nothing_else(tmp_path):
    leaf = "from exactsel._jit import njit\nSIZE = 2.0\n@njit\ndef leaf(x):\n    return SIZE * x\n"
    (tmp_path / "top_kernels.py").write_text(
        "from exactsel._jit import njit\nfrom leaf_kernels import leaf\n"
        "@njit\ndef top(x):\n    return leaf(x) + 1.0\n@njit\ndef alone(x):\n    return -x\n"
    )
    environment = {**os.environ, "EXACTSEL_JIT": "1", "EXACTSEL_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    told = []
    for text in (leaf, leaf.replace("SIZE * x", "SIZE - x"), leaf.replace("2.0", "5.0"), "# a comment\n" + leaf):
        (tmp_path / "leaf_kernels.py").write_text(text)
        done = subprocess.run(
            [sys.executable, "-B", "-c", CALLS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        told.append(done.stdout.splitlines())
    assert told == [
        ["3.0 -1.0", "0 0"], ["2.0 -1.0", "0 1"], ["6.0 -1.0", "0 1"], ["3.0 -1.0", "1 1"]
    ]  # fmt: skip


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
    for source in (text, linear, text):
        (tmp_path / "my_loss.py").write_text(source)
        done = subprocess.run(
            [sys.executable, "-B", "-c", USE], env=environment, capture_output=True, text=True, check=True, timeout=300
        )
        told.append(done.stdout.split())
    smooth = 2**0.5 + 10**0.5 - 2
    assert [float(words[0]) for words in told] == pytest.approx([smooth, 4.0, smooth])
    assert {words[1] for words in told} == {"3.0"}
    assert [int(words[2]) for words in told] == [0, 1, 2]
