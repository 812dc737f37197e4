"""What stands in the place of numba's bookkeeping says what numba's says."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactsel import _jit

if not _jit.ENABLED:
    pytest.skip("nothing is compiled", allow_module_level=True)

from numba.core import ir
from numba.core.compiler import Flags, run_frontend

from exactsel._jit import quicker

SWITCHES = ("nrt", "boundscheck", "forceinline", "no_cpython_wrapper", "release_gil", "debuginfo")


def flags_with(values):
    flags = Flags()
    for name, value in values.items():
        setattr(flags, name, value)
    return flags


some_flags = st.dictionaries(st.sampled_from(SWITCHES), st.booleans()).map(flags_with)


@given(some_flags, some_flags)
def test_flags_are_equal_as_numba_compares_them(one, other):
    assert quicker._equal(one, other) == (one.values() == other.values())
    assert quicker._hash(one) == hash(tuple(sorted(one.values())))
    if quicker._equal(one, other):
        assert quicker._hash(one) == quicker._hash(other)


def test_other_objects_are_not_flags():
    assert Flags() != 3
    assert quicker._equal(Flags(), "x") is NotImplemented


def as_numba_lists(instruction, value):
    """The text of numba's own, slowly."""
    if isinstance(value, ir.Var):
        return [value]
    if isinstance(value, ir.Inst):
        return value.list_vars()
    if isinstance(value, list | tuple | dict):
        parts = value.values() if isinstance(value, dict) else value
        return [found for part in parts for found in as_numba_lists(instruction, part)]
    return []


def sample(a, b, *rest, **named):
    total = 0.0
    for i in range(len(a)):
        with np.errstate(all="ignore"):
            total += a[i] * b[i, 0] if a[i] > 0 else sum((b[i, 1], i), 2)
    pair = (total, [a, b], {"x": a})
    return pair[0], a[1:2], f"{total}", rest, named


def test_variables_of_instructions():
    whole = run_frontend(sample)
    instructions = [each for block in whole.blocks.values() for each in block.body]
    assert len(instructions) > 50
    for each in instructions:
        value = copy.copy(each.__dict__)
        assert quicker._variables(each, value) == as_numba_lists(each, value)
