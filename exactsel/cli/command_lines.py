"""Command lines to be run again, made from the one at work."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click
from click.core import ParameterSource

from exactsel.cli.constraint_options import NAMES as CONSTRAINTS

PROBLEM = (
    "instance",
    "problem",
    "k",
    "loss",
    "lam",
    "delta",
    "force_in",
    "force_out",
    "nonnegative",
    "bounds",
    "max_coef",
    "sum_to",
    "equality",
    "target",
    "drop",
    "factors",
    "formula",
    "missing",
    "decimal",
    "encoding",
    *CONSTRAINTS,
    "intercept",
    "scale",
    "weights",
    "offset",
)
"""Parameters that say which problem is meant."""


def command_text(left_out: Sequence[str] = ()) -> str:
    """The command line at work, with the options that were given but for those ``left_out``, for a shell."""
    context = click.get_current_context()
    names = [str(parameter.name) for parameter in context.command.params if parameter.name not in left_out]
    return shlex.join(["exactsel", str(context.info_name), *_given(names)])


def verify_text(proof: str) -> str:
    """The command that checks the proof of the problem the command line at work is about."""
    return shlex.join(["exactsel", "verify", proof, *_given(PROBLEM)])


def _given(names: Sequence[str]) -> list[str]:
    """The parameters that were given on the command line, if they are among those ``names``."""
    context = click.get_current_context()
    words: list[str] = []
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        if name not in names or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(parameter, click.Argument):
            words.insert(0, str(value))
        elif getattr(parameter, "is_flag", False):
            words.append((parameter.opts if value else parameter.secondary_opts)[-1])
        else:
            entries = value if isinstance(value, tuple) else (value,)
            words += [part for entry in entries for part in (parameter.opts[-1], str(entry))]
    return words
