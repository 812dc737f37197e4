"""Plug-ins written for earlier versions find modules under the names these had then."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

import exactsel
from exactsel._moved import PUBLIC, TODAY


@pytest.mark.parametrize("name", TODAY)
def test_an_earlier_name_is_the_module_of_today(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"exactsel.{name}", raising=False)
    if name in PUBLIC:
        known = import_module(f"exactsel.{name}")
    else:
        with pytest.warns(DeprecationWarning, match=f"is called exactsel.{TODAY[name]} today"):
            known = import_module(f"exactsel.{name}")
    today = import_module(f"exactsel.{TODAY[name]}")
    assert known is today
    assert today.__spec__.name == today.__name__ == f"exactsel.{TODAY[name]}"


def test_a_name_nobody_had_is_unknown():
    with pytest.raises(ModuleNotFoundError):
        import_module("exactsel.nothing_of_the_kind")


def test_functions_of_the_package_are_not_hidden():
    for name in exactsel.__all__:
        value = getattr(exactsel, name)
        assert name in ("datasets", "heuristics", "__version__") or callable(value), name
