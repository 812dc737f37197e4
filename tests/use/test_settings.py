"""Settings: what each may be, and one sentence where it is not."""

from __future__ import annotations

import math

import click
import pytest

from exactsel import InputError
from exactsel.cli.main import cli
from exactsel.cli.solve import command
from exactsel.solving.settings import Settings, option_of, settings_of


class TestSettings:
    @pytest.mark.parametrize("value", ["x", 1.5, math.nan, math.inf, [1], 1j, True])
    @pytest.mark.parametrize("name", ["seed", "node_limit", "threads", "batch"])
    def test_whole_numbers(self, name, value):
        with pytest.raises(InputError, match=rf"^{name} is .*, but it must be a whole number; set "):
            Settings(**{name: value})

    @pytest.mark.parametrize("value", ["x", [1], 1j, 10**400])
    @pytest.mark.parametrize("name", ["time_limit", "memory_limit", "eps", "rel_eps"])
    def test_numbers(self, name, value):
        with pytest.raises(InputError, match=rf"^{name} is .*, but it must be a number; set "):
            Settings(**{name: value})

    def test_what_must_be_given(self):
        for name in ("seed", "memory_limit", "eps"):
            with pytest.raises(InputError, match=rf"^{name} is None, but it must be a"):
                Settings(**{name: None})

    @pytest.mark.parametrize("name", ["seed", "node_limit"])
    def test_not_negative(self, name):
        with pytest.raises(InputError, match=rf"^{name} is -1, but it cannot be negative; set "):
            Settings(**{name: -1})

    @pytest.mark.parametrize("name", ["eps", "rel_eps"])
    @pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
    def test_tolerances(self, name, value):
        with pytest.raises(InputError, match=rf"^{name} is .*, but a tolerance must be a finite number that is not"):
            Settings(**{name: value})

    @pytest.mark.parametrize(
        ("given", "names"),
        [("omp", ("omp",)), ("omp, swap,", ("omp", "swap")), ("none", ()), ("", ()), (["omp"], ("omp",)), ((), ())],
    )
    def test_heuristics(self, given, names):
        assert Settings(heuristics=given).heuristics == names

    def test_heuristics_are_a_list(self):
        with pytest.raises(InputError, match=r"^heuristics is 5, but a list of names or objects was expected"):
            Settings(heuristics=5)


class TestSaidOnce:
    def test_every_setting_is_an_option(self):
        options = {name: p for p in command.params for name in [p.name] if p.param_type_name == "option"}
        for name, setting in settings_of().items():
            assert option_of(name) in options[name].opts
            assert options[name].help == setting.text

    def test_defaults_are_those_of_the_settings(self):
        # In the group's context, as always: a command keeps the help option it had first.
        context = command.make_context("solve", ["instance.npz"], parent=click.Context(cli, **cli.context_settings))
        usual = Settings()
        for name in settings_of():
            assert context.params[name] == (None if name == "heuristics" else getattr(usual, name))

    def test_the_documentation_names_every_setting(self):
        for name, setting in settings_of().items():
            assert f"    {name} : " in Settings.__doc__
            assert setting.text in Settings.__doc__
