"""Damaged proofs and forged problems against the checker that needs the standard library alone.

A mutant may well be accepted, since much damage is harmless. What is accepted must be true: its lower bound not above
the optimum of the tiny problem, found on every support, and its upper bound not below it.
"""

from __future__ import annotations

import json
import random
import re
import struct
import sys
import time
from collections import Counter
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import click

TESTS = str(Path(__file__).resolve().parents[2] / "tests" / "fixtures")

HARD = (0.0, -0.0, 5e-324, 1e-300, 1e16, 1e160, 1.7e308, -1.7e308, float("inf"), float("nan"))

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    -1,
    2**31,
    10**30,
    1.0,
    "",
    "x",
    [],
    {},
    "nan",
    "inf",
    "0x1p+1023",
)


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut off, added or swapped."""
    raw = bytearray(data)
    how = rng.randrange(4)
    if how == 0:
        for _ in range(rng.randint(1, 3)):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    elif how == 1:
        return data[: rng.randrange(len(data))]
    elif how == 2:
        return data + bytes(rng.randint(1, 9))
    else:
        size = rng.choice((1, 4, 8))
        a, b = rng.randrange(len(raw) - size), rng.randrange(len(raw) - size)
        raw[a : a + size], raw[b : b + size] = raw[b : b + size], raw[a : a + size]
    return bytes(raw)


def damaged_tree(rng: random.Random, file: Any) -> None:
    """A word changed, dropped, repeated or swapped with another."""
    tree = file.arrays["tree"]
    place, other = rng.randrange(len(tree)), rng.randrange(len(tree))
    how = rng.randrange(5)
    if how == 0:
        tree[place] = 8 * rng.randint(-1, 12) + rng.randrange(8)
    elif how == 1:
        tree[place], tree[other] = tree[other], tree[place]
    elif how == 2:
        del tree[place]
    elif how == 3:
        tree.insert(place, tree[other])
    else:
        tree[place:] = [4]


def damaged_numbers(rng: random.Random, file: Any) -> None:
    """A number of the points, dual vectors, model or curvature changed, or all of them multiplied."""
    values = file.arrays[rng.choice(("point_value", "dual_value", "model_value", "curvature"))]
    if not values:
        return
    place = rng.randrange(len(values))
    if rng.random() < 0.3:
        factor = rng.choice((1.001, -1.0, 2.0, 1e6, 1e150))
        values[:] = [v * factor for v in values]
    else:
        values[place] = rng.choice((*HARD, 1.5 * values[place], -values[place], values[place] + 1))


def damaged_header(rng: random.Random, file: Any) -> None:
    """An entry of the header changed, or left out."""
    name = rng.choice([*file.header])
    if rng.random() < 0.1:
        del file.header[name]
    else:
        file.header[name] = rng.choice((*ODD, file.header[rng.choice([*file.header])]))


def damaged_lists(rng: random.Random, file: Any) -> None:
    """Columns or sizes of points changed, or a list longer or shorter."""
    values = file.arrays[
        rng.choice(("model_index", "point_size", "point_index", "dual_value", "point_value", "curvature"))
    ]
    if values and rng.random() < 0.7:
        values[rng.randrange(len(values))] = rng.randrange(6)
    elif values and rng.random() < 0.5:
        values.pop()
    else:
        values.append(1)


PARTS = {"tree": damaged_tree, "numbers": damaged_numbers, "header": damaged_header, "lists": damaged_lists}


class Subject:
    """A tiny problem, its proof, which claims what it proves, and the optimum."""

    def __init__(self, seed: int) -> None:
        from hand_written import random_file
        from tiny_problems import optimum, random_case, random_related, within_scope

        rng = random.Random(seed)
        self.case = random_related(rng) if seed % 4 == 3 else random_case(rng)
        best = optimum(self.case)
        self.file = random_file(rng, self.case, best)
        self.exact = self.case.loss in ("quadratic", "")
        self.all_in_scope = not self.case.loss or within_scope(self.case, best)
        slack = F(0) if self.exact else best.value / 10**9 + F(1, 10**12)
        self.low, self.high = best.value - slack, best.value + slack
        self.file.header["lower"] = (1e299).hex()
        found = re.search(r"only (\S+) is proven, the model costs (\S+)", self.verdict(self.file.data()))
        lower, upper = (float(found[1]), float(found[2])) if found else (0.0, 1e300)
        self.claims = {"lower": (lower * (1 - 1e-15)).hex(), "upper": (upper * (1 + 1e-15)).hex()}

    def verdict(self, data: bytes) -> str:
        """``malformed``, the reason, or nothing."""
        from exactsel_certificates.standalone import Beyond, Malformed, check

        try:
            return check(data, **self.case._asdict())
        except (Malformed, Beyond):
            return "malformed"

    def mutant(self, rng: random.Random) -> tuple[str, bytes]:
        """A damaged file and what was done; every third one claims slightly too much besides."""
        file = self.file._replace(
            header=self.file.header | self.claims, arrays={name: [*v] for name, v in self.file.arrays.items()}
        )
        if rng.random() < 1 / 3:
            file.header["lower"] = (float(self.high) * (1 + 1e-9)).hex()
            file.header["upper"] = (1e300).hex()
        kind = rng.choice(("bytes", "bytes", *PARTS))
        try:
            if kind != "bytes":
                PARTS[kind](rng, file)
            data: bytes = file.data()
        except struct.error:  # a number that its type cannot hold: nothing that could be written
            data = b""
        return kind, damaged_bytes(rng, data) if kind == "bytes" else data

    def untrue(self, data: bytes) -> bool:
        """Whether an accepted file says something that is not so."""
        header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
        lower, upper = F(float.fromhex(header["lower"])), F(float.fromhex(header["upper"]))
        return upper < self.low or (lower > self.high and (not header["valid_for"] or self.all_in_scope))


def mutants(count: int, seed: int, each: int, counts: Counter[tuple[str, str]]) -> None:
    """Damage the proofs of one tiny problem after the other."""
    made = 0
    while made < count:
        subject, rng = Subject(seed), random.Random(f"damage {seed}")
        for _ in range(min(each, count - made)):
            kind, data = subject.mutant(rng)
            try:
                verdict = subject.verdict(data)
                outcome = verdict if verdict == "malformed" else "rejected" if verdict else "accepted"
            except Exception as error:
                outcome = "unexpected exception"
                click.echo(f"seed {seed}, mutant {made}: {error!r}", err=True)
            counts[kind, outcome] += 1
            if outcome == "accepted" and subject.untrue(data):
                counts[kind, "false accept"] += 1
                click.echo(f"seed {seed}, mutant {made}: accepted, but untrue", err=True)
            made += 1
        seed += 1


def forgeries(count: int, seed: int, counts: Counter[tuple[str, str]]) -> None:
    """Problems outside the domain, with files that claim nothing but that: every one must be refused with a reason."""
    from forged import BY_LOSS, forged

    from exactsel_certificates.standalone import Beyond, Malformed, check

    rng, made = random.Random(f"forged {seed}"), 0
    while made < count:
        for arguments, data, _ in (each for loss in BY_LOSS for each in forged(rng, loss)):
            try:
                outcome = "rejected" if check(data, **arguments) else "false accept"
            except (Malformed, Beyond):
                outcome = "malformed"
            except Exception as error:
                outcome = "unexpected exception"
                click.echo(f"forged problem {made}: {error!r}", err=True)
            counts["forged problem", outcome] += 1
            made += 1


@click.command("standalone-mutants")
@click.option("--count", type=click.IntRange(1), default=100_000, show_default=True, help="Damaged files.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first problem.")
@click.option("--each", type=click.IntRange(1), default=50, show_default=True, help="Damaged files per proof.")
@click.option("--forged", "others", type=click.IntRange(0), default=1000, show_default=True, help="Forged problems.")
def standalone_mutants(count: int, seed: int, each: int, others: int) -> None:
    """Damaged proofs and forged problems, judged by the checker without numpy."""
    from benchmarks.paper.tables import markdown

    if TESTS not in sys.path:
        sys.path.append(TESTS)
    began, counts = time.perf_counter(), Counter[tuple[str, str]]()
    mutants(count, seed, each, counts)
    forgeries(others, seed, counts)
    outcomes = ("malformed", "rejected", "accepted", "false accept", "unexpected exception")
    kinds = sorted({kind for kind, _ in counts})
    rows: list[dict[str, Any]] = [{"what": kind, **{o: counts[kind, o] for o in outcomes}} for kind in kinds]
    rows.append({"what": "all", **{o: sum(counts[kind, o] for kind in kinds) for o in outcomes}})
    click.echo(markdown(f"{count} mutants and forged problems against the standalone checker, seed {seed}", rows))
    click.echo(f"{time.perf_counter() - began:.0f} s")
    if rows[-1]["false accept"] or rows[-1]["unexpected exception"]:
        raise click.exceptions.Exit(1)


if __name__ == "__main__":
    standalone_mutants()
