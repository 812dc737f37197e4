"""The command line: campaigns, each with its seeds and a table of what came out."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import click

from benchmarks.paper.tables import markdown


@click.group()
def main() -> None:
    """Proof files: are they true, is damage noticed, what do they cost?"""
    warnings.simplefilter("ignore")


@main.command()
@click.option("--count", type=click.IntRange(1), default=20_000, show_default=True)
@click.option("--first", type=int, default=0, show_default=True, help="First seed.")
@click.option("--both/--one", default=False, help="Ask the second checker as well.")
def brute(count: int, first: int, both: bool) -> None:
    """Random tiny problems: every proof must verify, and no established bound be above the optimum."""
    from checked_solve import random_options
    from instances_for_tests import optimum_of, random_case

    from exactsel import solve, verify

    wrong, began = Counter[str](), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        for seed in range(first, first + count):
            case = random_case(seed)
            problem = case.problem()
            solve(problem, proof=file, signals=(), **random_options(seed, case))
            verdict, optimum = verify(problem, file), optimum_of(case)
            if not verdict.verified:
                wrong["not verified"] += 1
                click.echo(f"seed {seed}: {verdict.reason}")
            if verdict.lower > optimum.high and not verdict.valid_for and verdict.lower > _exactly(problem, optimum):
                wrong["untrue"] += 1
                click.echo(f"seed {seed}: {verdict.lower!r} is above {optimum.high!r}")
            if both and _second(problem, file.read_bytes()):
                wrong["second checker differs"] += 1
                click.echo(f"seed {seed}: {_second(problem, file.read_bytes())}")
    rows = [{"problems": count, "first seed": first, "not verified": wrong["not verified"], "untrue": wrong["untrue"],
             "second checker differs": wrong["second checker differs"] if both else "not asked",
             "seconds": round(time.perf_counter() - began)}]  # fmt: skip
    click.echo(markdown("Random problems against every support", rows))


def _exactly(problem: Any, optimum: Any) -> float:
    """The optimum where doubles do not tell: the best objective on the best support, in exact arithmetic."""
    from exactsel.problem.model import prepared_coef
    from exactsel.proofs.writer import instance_of
    from exactsel_certificates import standalone
    from exactsel_certificates.exact import ExactBounds, float_above

    if problem.loss.name != "quadratic":
        return float_above(
            ExactBounds(instance_of(problem)).objective(prepared_coef(problem, problem.fit(optimum.support).coef))
        )
    loss = standalone.LOSSES[problem.loss.name](1.0)
    regression = standalone.Regression(problem.A.tolist(), problem.y.tolist(), problem.k, loss, problem.lam)
    return float_above(regression.at_fit(set(optimum.support), set(), [], False))


def _second(problem: Any, data: bytes) -> str:
    from exactsel_certificates import standalone

    delta = problem.loss_parameters.get("delta", 1.0)
    return standalone.check(
        data, problem.A.tolist(), problem.y.tolist(), problem.k, problem.loss.name, problem.lam, delta
    )


@main.command()
@click.option("--count", type=click.IntRange(1), default=200_000, show_default=True, help="Damaged files.")
@click.option("--each", type=click.IntRange(1), default=100, show_default=True, help="Damaged files per proof.")
@click.option("--first", type=int, default=0, show_default=True, help="First seed.")
def corrupt(count: int, each: int, first: int) -> None:
    """Damage proofs: whatever is accepted must be true, and nothing but documented errors may come out."""
    from corrupted import campaign

    began, counts, seed = time.perf_counter(), Counter[tuple[str, str]](), first
    while sum(counts.values()) < count:
        counts.update(campaign([seed], each))
        seed += 1
    outcomes = ("malformed", "rejected", "accepted")
    kinds = sorted({kind for kind, _ in counts})
    rows = [{"damage": kind, **{outcome: counts[kind, outcome] for outcome in outcomes}} for kind in kinds]
    totals = {outcome: sum(counts[kind, outcome] for kind in kinds) for outcome in outcomes}
    rows.append({"damage": "all", **totals})
    title = f"Damaged files, seeds {first} to {seed - 1}: accepted and untrue 0, other exceptions 0"
    click.echo(markdown(title, rows))
    click.echo(f"{time.perf_counter() - began:.0f} s")


@main.command()
@click.option("--count", type=click.IntRange(1), default=20_000, show_default=True, help="Proofs.")
@click.option("--first", type=int, default=0, show_default=True, help="First seed.")
@click.option("--kinds", default="", help="Kinds of problems, separated by commas; all by default.")
def honest(count: int, first: int, kinds: str) -> None:
    """Honest proofs of every kind of problem: none may be rejected, and no claim lowered."""
    from honest_cases import KINDS, honest_case

    from exactsel import solve, verify
    from exactsel.errors import UnsupportedError
    from exactsel_certificates.container import read_proof

    chosen = [kind for kind in KINDS if not kinds or kind in kinds.split(",")]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.exsel"
        for kind in chosen:
            seen, began = Counter[str](), time.perf_counter()
            for seed in range(first, first + -(-count // len(chosen))):
                try:
                    problem, options = honest_case(kind, seed)
                    result = solve(problem, proof=file, signals=(), **options)
                except UnsupportedError:
                    seen["not served"] += 1
                    continue
                verdict = verify(problem, file)
                seen["proofs"] += 1
                seen["lowered"] += read_proof(file).lower >= result.lower > 0.0
                if not verdict.verified:
                    seen["rejected"] += 1
                    click.echo(f"{kind} seed {seed}: search {result.lower!r}: {verdict.reason}")
            named = {name: seen[name] for name in ("proofs", "not served", "rejected", "lowered")}
            rows.append({"kind": kind, **named, "seconds": round(time.perf_counter() - began)})
    click.echo(markdown(f"Honest proofs, from seed {first}", rows))


@main.command()
@click.option("--modules", default="", help="Modules of the checker, separated by commas; all by default.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Take every n-th mutant.")
def mutate(modules: str, every: int) -> None:
    """Change the checker's source in one place at a time: does the battery notice?"""
    from benchmarks.proofs.mutants import MODULES, battery, killed, mutants, outcome, sources

    trials = battery()
    began = time.perf_counter()
    expected = [outcome(trial) for trial in trials]
    click.echo(f"{len(trials)} trials, {time.perf_counter() - began:.1f} s a battery", err=True)
    rows = []
    for module, text in sources(tuple(filter(None, modules.split(","))) or MODULES):
        made, alive = 0, 0
        for number, mutant in enumerate(mutants(module, text)):
            if number % every:
                continue
            made += 1
            if not killed(mutant, trials, expected):
                alive += 1
                click.echo(f"alive: {module}:{mutant.line}: {mutant.text}")
        rows.append({"module": module, "mutants": made, "killed": made - alive, "alive": alive})
    made, alive = sum(row["mutants"] for row in rows), sum(row["alive"] for row in rows)
    rows.append({"module": "all", "mutants": made, "killed": made - alive, "alive": alive})
    click.echo(markdown(f"Mutants of the checker: {100 * (made - alive) / max(1, made):.1f} % killed", rows))


@main.command()
@click.option("--sonar", type=click.Path(exists=True, path_type=Path), help="The sonar data as .npz, for one more row.")
@click.option("--limit", type=float, default=600.0, show_default=True, help="Seconds for each solve.")
def table(sonar: Path | None, limit: float) -> None:
    """Size of a proof, and time to write and to check it, beside the time to solve."""
    from benchmarks.proofs.costs import costs

    click.echo(markdown("Proofs: size, writing, checking", list(costs(sonar, limit))))
