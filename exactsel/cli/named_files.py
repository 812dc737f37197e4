"""Parameters that name files, and that no file is written which another of them names.

A parameter says by its type whether its file is read or written. So a command knows, before it does anything, where an
output would take the place of an input, or of another output.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click

from exactsel.files import NamedFile, refuse_shared


class InputFile(click.Path):
    """A file that is read."""


class FileOrText(click.types.StringParamType):
    """A text, or the name of a file that is read."""


class OutputFile(click.Path):
    """A file that is written.

    Parameters
    ----------
    beside : tuple of str
        What is appended to its name for files that are written beside it.
    """

    def __init__(self, beside: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.beside = beside


class OutputFolder(click.Path):
    """A folder in which files are written.

    Parameters
    ----------
    names : str
        Pattern of the names of files that may be replaced there; none may be by default.
    """

    def __init__(self, names: str = "") -> None:
        super().__init__()
        self.names = re.compile(names, re.IGNORECASE)

    def replaced(self, folder: str, file: str | os.PathLike[str]) -> bool:
        """Whether a file would be replaced."""
        place = Path(os.path.realpath(file))
        try:
            included = place.parent.samefile(folder)
        except OSError:
            return False
        return included and self.names.fullmatch(place.name) is not None


class ReplacedPath(click.Path):
    """Files that are replaced by what is made of them, as is the command's purpose."""


READ, WRITTEN = (InputFile, FileOrText), (OutputFile, OutputFolder, ReplacedPath)
"""All types of parameters that name files, or may."""


class FileCommand(click.Command):
    """A command that refuses, before anything else, to write what another of its parameters names."""

    def invoke(self, ctx: click.Context) -> int | None:
        """Run the command."""
        outputs = [*_named(ctx, OutputFile)]
        if outputs or any(isinstance(each.type, OutputFolder) for each in ctx.command.params):
            inputs = [*_named(ctx, READ)]
            _refuse_in_folders(ctx, [*inputs, *outputs])
            refuse_shared(outputs, inputs)
        code: int | None = super().invoke(ctx)
        return code


def _named(ctx: click.Context, kinds: type | tuple[type, ...]) -> Iterator[NamedFile]:
    """What parameters of these types name, with those beside."""
    parameters = [
        each for each in ctx.command.params if isinstance(each.type, kinds) and ctx.params.get(str(each.name))
    ]
    saved = ctx.params.get("checkpoint")
    for each in parameters:
        paths = ctx.params[str(each.name)]
        if each.name == "resume" and saved and os.path.abspath(paths) == os.path.abspath(saved):
            continue  # a search continues in the checkpoint it resumes from
        for path in paths if isinstance(paths, tuple) else (paths,):
            for ending in ("", *getattr(each.type, "beside", ())):
                yield NamedFile(label(each), f"{path}{ending}")


def _refuse_in_folders(ctx: click.Context, files: list[NamedFile]) -> None:
    for each in ctx.command.params:
        folder = ctx.params.get(str(each.name))
        if isinstance(each.type, OutputFolder) and folder is not None:
            for name, path in files:
                if each.type.replaced(folder, path):
                    refuse_shared([NamedFile(label(each), path)], [NamedFile(name, path)])


def label(parameter: click.Parameter) -> str:
    """What people call a parameter."""
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.human_readable_name
