"""The instances that come with exactsel."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from exactsel.errors import InputError, either
from exactsel.files import replacing, unwritten

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Shipped:
    """One file, and what it is there for."""

    file: Path
    rows: int
    columns: int
    point: str
    description: str
    """The same, with origin and licence."""
    target: str | None = None
    """The column of a table to predict."""


def folder() -> Path:
    """Where they are: in the package as it is installed, beside it in a checkout."""
    installed = _PACKAGE / "instances"
    return installed if installed.is_dir() else _PACKAGE.parent / "instances"


def shipped() -> list[Shipped]:
    """All of them, the most worth a look first."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    manifest = tomllib.loads((folder() / "MANIFEST.toml").read_text(encoding="utf-8"))
    entries = [(entry, entry["n"], entry["d"]) for entry in manifest["instance"]]
    entries += [(entry, entry["rows"], entry["columns"]) for entry in manifest["table"]]
    return [
        Shipped(folder() / entry["file"], n, d, entry["point"], _described(entry), entry.get("target"))
        for entry, n, d in entries
    ]


def _described(entry: dict[str, str]) -> str:
    return f"{entry['point']}.\n\nOrigin: {entry['origin']}.\nLicence: {entry['licence']}."


def copy_to(target: str | os.PathLike[str]) -> list[Path]:
    """Write all of them into a folder, which is made where it is missing; files that are there already stay.

    Raises
    ------
    InputError
        When another file of such a name is in the way; then nothing is written.
    OutputError
        When a file cannot be written.
    """
    contents = {Path(target) / data_set.file.name: data_set.file.read_bytes() for data_set in shipped()}
    try:
        Path(target).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritten(target, error) from None
    for path, content in contents.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise InputError(f"{path} is there already and is another file; choose another folder.")
    for path, content in contents.items():
        if not path.exists():
            with replacing(path) as stream:
                stream.write(content)
    return [*contents]


def no_such_file(file: str | os.PathLike[str]) -> InputError:
    """The error to raise where a file to read is not there."""
    name = Path(file).name
    if (folder() / name).is_file() and not name.startswith("MANIFEST"):
        copied = either("exactsel.datasets.copy_to('instances')", "exactsel data instances --copy instances")
        return InputError(f"there is no file {file}; it comes with exactsel: {copied}.")
    return InputError(f"there is no file {file}; check the name and the folder.")
