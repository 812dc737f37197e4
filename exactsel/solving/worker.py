"""A process that works on shards: length and bytes on stdin, the same and whether it went well on stdout.

It ends when its stdin does, so that nothing is left behind by a search that was killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

from exactsel.errors import InputError
from exactsel.interrupts import leave_to_others
from exactsel.solving.job import Workshop, key_of

DONE, FAILED = b"\x01", b"\x00"
SIZE = 8
"""Bytes of a length."""


def send(stream: IO[bytes], data: bytes) -> None:
    """Write bytes after their length."""
    stream.write(len(data).to_bytes(SIZE, "little") + data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """The next bytes; None at the end, or where it comes in their middle."""
    head = stream.read(SIZE)
    if len(head) < SIZE:
        return None
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(data) == size else None


def work(file: Path, key: str, shards: IO[bytes], answers: IO[bytes]) -> None:
    """Answer every shard of the search whose job is in a file."""
    job = file.read_bytes()
    if key_of(job) != key:
        raise InputError(f"{file} is not the search it should be; begin again.")
    workshop = Workshop(job)
    while (shard := receive(shards)) is not None:
        try:
            answer = DONE + workshop.expanded(shard)
        except Exception as error:  # whatever it is, the supervisor decides
            answer = FAILED + f"{type(error).__name__}: {error}".encode()
        send(answers, answer)


def main(arguments: list[str]) -> None:
    """Work for whoever started this process; ``arguments`` are a file and what its job is known by.

    Libraries may print what they like: their stdout leads nowhere.
    """
    leave_to_others()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    work(Path(arguments[0]), arguments[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
