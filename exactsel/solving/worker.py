"""A process that works on shards: length and bytes on stdin, the same and whether it went well on stdout.

First of all it is sent the search whose shards these are; so no file is needed that a full disk could not take. It ends
when its stdin does, so that nothing is left behind by a search that was killed.
"""

from __future__ import annotations

import os
import sys
from typing import IO

from exactsel.interrupts import leave_to_others
from exactsel.solving.shard_worker import ShardWorker

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


def work(shards: IO[bytes], answers: IO[bytes]) -> None:
    """Answer every shard of the search that comes first."""
    job = receive(shards)
    if job is None:
        return
    workshop = ShardWorker(job)
    while (shard := receive(shards)) is not None:
        try:
            answer = DONE + workshop.expanded(shard)
        except Exception as error:  # for any exception the supervisor decides
            answer = FAILED + f"{type(error).__name__}: {error}".encode()
        send(answers, answer)


def main() -> None:
    """Work for the process that started this one.

    Libraries may print what they like: their stdout leads nowhere.
    """
    leave_to_others()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    work(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
