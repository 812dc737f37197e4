"""``exactsel dev fuzz``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from exactsel.cli.named_files import FileCommand, OutputFolder
from exactsel.cli.talk import say, say_line

if TYPE_CHECKING:
    from exactsel_dev.campaigns.campaign import Summary
    from exactsel_dev.campaigns.trials import Outcome

EVERY = 5.0
"""Seconds between two lines of progress."""

TOLD = 20
"""Findings that are printed as they come; all of them are counted."""

KINDS = ("brute-force", "metamorphic", "peers", "all")


@click.command("fuzz", cls=FileCommand)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Start with this seed.")
@click.option("--count", type=click.IntRange(1), default=1000, show_default=True, help="Try this many seeds.")
@click.option(
    "--kind", type=click.Choice(KINDS), default="brute-force", show_default=True, help="Run this kind of test."
)
@click.option("--peer", "peers", help="Ask these peers, separated by commas. Default: all that are installed.")
@click.option("--loss", default="", help="Skip seeds whose instance has another loss.")
@click.option(
    "--out", type=OutputFolder(), help="Write failures, made smaller, into this folder, for exactsel dev reduce."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Use this many processes.")
@click.option("--quiet", is_flag=True, help="Print no progress on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
def command(
    seed: int, count: int, kind: str, peers: str | None, loss: str, out: str | None, jobs: int, quiet: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Solve random tiny instances and compare the results with the truth.

    A seed determines its instance. brute-force compares with the optimum over all supports. metamorphic compares with
    the same problem in another form, such as other units. peers compares with other solvers, and all does the three one
    after the other. The run continues after a failure, and Ctrl-C ends it with a summary. Exit code 0 means that no
    test failed, 1 that one did.
    """
    from exactsel import interrupts
    from exactsel.cli.options import catch_signals, exit_code
    from exactsel_dev.campaigns.campaign import run_campaign
    from exactsel_dev.campaigns.trials import Trial

    summaries: list[Summary] = []
    asked = _asked(kind, peers)
    _check_loss(loss)
    catch_signals()
    watch = interrupts.in_main()

    def stopped() -> bool:
        return watch is not None and watch.interrupted

    if watch is not None:
        watch.result_at_hand = True
    for one, peer in asked:
        if stopped():
            break
        told = _silent if quiet else _progress()
        summaries.append(run_campaign(Trial(one, peer, out, loss), seed, count, jobs, told, stopped))
        if not as_json:
            say(_text(summaries[-1]))
    wrong = sum(summary.faults for summary in summaries)
    if as_json:
        say(json.dumps({"wrong": wrong, "campaigns": [summary.as_dict() for summary in summaries]}))
    return exit_code(wrong == 0, "")


def _asked(kind: str, peers: str | None) -> list[tuple[str, str]]:
    """Campaigns, each with the peer it asks."""
    found = [(one, "") for one in ("brute-force", "metamorphic") if kind in (one, "all")]
    return [*found, *(("peers", name) for name in _present(kind, peers))] if kind in ("peers", "all") else found


def _present(kind: str, peers: str | None) -> list[str]:
    """The peers that can be asked; why others cannot is said."""
    from exactsel.errors import InputError
    from exactsel_dev.campaigns.peers import known_peers

    known = known_peers()
    wanted = list(known) if peers is None else [name.strip() for name in peers.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise InputError(f"there is no peer '{name}', but {', '.join(known)} are known; name one of them.")
    missing = {name: known[name].missing() for name in wanted}
    for name, why in missing.items():
        if why:
            say_line(f"{name} is not asked: {why}")
    present = [name for name in wanted if not missing[name]]
    if not present and kind == "peers":
        raise InputError("no other solver is there to be asked; install one of those named above.")
    return present


def _check_loss(loss: str) -> None:
    """Refuse one that no instance has."""
    from exactsel.errors import InputError
    from exactsel_dev.campaigns.random_instances import DRAWN

    if loss not in ("", *DRAWN):
        raise InputError(f"no instance has the loss '{loss}', but {', '.join(DRAWN)} are drawn; name one of them.")


def _silent(summary: Summary, outcome: Outcome) -> None:
    return


def _progress() -> Callable[[Summary, Outcome], None]:
    """What tells of findings as they come, and now and then how far it is."""
    last, told = time.monotonic(), 0

    def tell(summary: Summary, outcome: Outcome) -> None:
        nonlocal last, told
        for what, detail in outcome.wrong:
            told += 1
            if told <= TOLD:
                say_line(f"seed {outcome.seed}: {what}: {detail}")
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            rate = summary.done / max(summary.seconds, 1e-9)
            say_line(f"{summary.done} of {summary.count} seeds, {summary.faults} wrong, {rate:.0f} a second")

    return tell


def _text(summary: Summary) -> str:
    """A summary for people."""
    name = f"{summary.kind} {summary.peer}".rstrip()
    last = summary.first + summary.count - 1
    lines = [
        f"{name}: seeds {summary.first} to {last}, {summary.done} done, {summary.tried} tried, {summary.faults} wrong, "
        f"{summary.seconds:.0f} s"
    ]
    lines += [f"  {times:>8}  {what}" for what, times in sorted(summary.counts.items())]
    for what, found in sorted(summary.wrong.items()):
        seeds = " ".join(str(seed) for seed, _ in sorted(found)[:8])
        lines += [f"  WRONG {len(found)} times: {what} (seeds {seeds})", f"        {found[0][1]}"]
    return "\n".join([*lines, *(f"  written: {file}" for file in summary.files)])
