"""Sources of a sweep's instances, their identity (a hash of the content), and the way to read them."""

from __future__ import annotations

import dataclasses
import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from exactsel.data.generate import generate
from exactsel.data.instance import Instance
from exactsel.data.reading import read_data
from exactsel.data.shipped import no_such_file
from exactsel.errors import InputError
from exactsel.interrupts import give_up_if_over

CHUNK = 2**20
"""Bytes hashed at a time."""

PATTERN = frozenset("*?[")
"""What makes a pattern of a name."""


class ChangedError(InputError):
    """An instance is no longer what it was when the sweep began."""


@dataclass(frozen=True)
class Source:
    """An instance, not read yet."""

    shown: str
    """What it is called in the table: the path as it was given, or the generator with its sizes."""
    hash: str
    """sha256 of the file, or of the arrays that were generated."""
    path: str = ""
    """Absolute; empty for one that is generated."""
    generator: Mapping[str, Any] = field(default_factory=dict)
    """``name`` and what else :func:`exactsel.data.generate.generate` takes."""
    reading: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of :func:`exactsel.data.reading.read_data` besides the path."""
    target_hash: str = ""
    """sha256 of the file that holds the target, where it is one of its own."""

    def identity(self) -> dict[str, Any]:
        """What makes it the same instance, wherever it lies."""
        reading = dict(self.reading)
        if self.target_hash:
            reading["target"] = self.target_hash
        return {"content": self.hash, "reading": reading}

    def read(self) -> Instance:
        """The instance.

        Raises
        ------
        ChangedError
            Where its content is another one by now.
        InputError
            Where it cannot be read as it is to be.
        """
        if self.path:
            self._require(hash_of_file(self.path) == self.hash)
            if self.target_hash:
                self._require(hash_of_file(self.reading["target"]) == self.target_hash)
            return read_data(self.path, **self.reading)
        instance = generate(**self.generator)
        self._require(hash_of_instance(instance) == self.hash)
        return instance

    def _require(self, same: bool) -> None:
        if not same:
            raise ChangedError(f"{self.shown} has changed since the sweep began; start the sweep again.")


def files_named(name: str, base: Path, apart: Sequence[str] = ()) -> list[str]:
    """The files a name, or a pattern with ``*``, ``?``, ``[...]`` and ``**``, stands for, as paths from ``base`` on.

    Those ``apart``, absolute paths, are meant by no pattern.

    Raises
    ------
    InputError
        Where there is none.
    """
    try:
        if os.path.exists(base / name) or not PATTERN & {*name}:
            if not os.path.isfile(base / name):
                raise no_such_file(name)
            return [name]
        matches = sorted(glob.glob(name, root_dir=base, recursive=True))
        files = [file for file in matches if os.path.isfile(base / file) and os.path.abspath(base / file) not in apart]
    except ValueError:  # a NUL in it
        raise no_such_file(name) from None
    if not files:
        raise InputError(f"no file is called like '{name}'; check the pattern and the folder.")
    return files


def file_source(name: str, base: Path, reading: Mapping[str, Any], hashes: dict[str, str]) -> Source:
    """The instance in a file.

    Parameters
    ----------
    name : str
        Its path from ``base`` on.
    base : Path
    reading : mapping
        As :class:`Source` has it; a target that is a file is named from ``base`` on.
    hashes : dict
        Hashes of files by their absolute path, so that each is read once; added to.
    """
    path, reading, target_hash = os.path.abspath(base / name), dict(reading), ""
    target = reading.get("target")
    if isinstance(target, str) and Path(target).suffix and os.path.isfile(base / target):
        reading["target"] = os.path.abspath(base / target)
        target_hash = _known_hash(reading["target"], hashes)
    return Source(name, _known_hash(path, hashes), path, reading=reading, target_hash=target_hash)


def _known_hash(path: str, hashes: dict[str, str]) -> str:
    if path not in hashes:
        hashes[path] = hash_of_file(path)
    return hashes[path]


def generated_source(generator: Mapping[str, Any]) -> Source:
    """An instance that is generated; it is made once to be hashed.

    Raises
    ------
    InputError
        Where the generator cannot make it.
    """
    give_up_if_over()
    sizes = ", ".join(f"{key}={value:g}" for key, value in generator.items() if key != "name")
    return Source(
        f"{generator['name']}({sizes})", hash_of_instance(generate(**generator)), generator=dict(generator)
    )  # fmt: skip


def hash_of_file(path: str) -> str:
    """sha256 of a file; :class:`InputError` where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
                give_up_if_over()
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its permissions.") from None
    return digest.hexdigest()


def hash_of_instance(instance: Instance) -> str:
    """sha256 over the arrays and parameters of an instance, as they are stored in memory."""
    digest = hashlib.sha256(b"exactsel-instance\0")
    for entry in sorted(dataclasses.fields(instance), key=lambda entry: entry.name):
        value = getattr(instance, entry.name)
        if value is None:
            continue
        array = np.asarray(value)
        plain = np.ascontiguousarray(array, dtype="<f8") if array.dtype.kind in "biuf" else array.astype("<U")
        digest.update(f"{entry.name} {plain.dtype.str} {plain.shape}\0".encode() + plain.tobytes())
    return digest.hexdigest()
