"""Commands that come with a package of their own, found through entry points."""

from __future__ import annotations

from importlib.metadata import entry_points

import click


def command_of(words: str, text: str) -> click.Command:
    """The command that these words call; where it is not installed, one that says how to get it."""
    for entry in entry_points(group="exactsel.commands", name=words):
        command: click.Command = entry.load()
        return command
    return _missing(words, text)


def _missing(words: str, text: str) -> click.Command:
    from exactsel.errors import InputError
    from exactsel.testing.failing import HOW_TO_GET

    sentence = f"exactsel {words} is not installed; {HOW_TO_GET}."

    def refuse() -> None:
        raise InputError(sentence)

    return click.Command(
        words.split()[-1], callback=refuse, help=f"{text} {sentence[0].upper()}{sentence[1:]}",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )  # fmt: skip
