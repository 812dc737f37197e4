"""``exactsel dev warmup``."""

from __future__ import annotations

import click

from exactsel.cli.talk import say, say_line
from exactsel.to_plain import counted


@click.command("warmup")
@click.option(
    "--all", "everything", is_flag=True, help="Compile for problems without an intercept, css and all methods, too."
)
@click.option("--processes", type=click.IntRange(1), help="Use this many processes. Default: one a core, at most four.")
def command(everything: bool, processes: int | None) -> int:
    """Compile kernels ahead, so that no later run waits for the compiler.

    Use it for images, clusters and continuous integration. The cache folder of the user, or EXACTSEL_CACHE_DIR, keeps
    the kernels. Without them small problems run interpreted, which is quicker than compiling, and last digits may
    differ. Exit code 1 means that a kernel could not be compiled or stored.
    """
    from exactsel._jit import ENABLED
    from exactsel._jit.cache_paths import cache_folder, remember_warmup
    from exactsel.studies.warmup import MORE, USUAL, warm_up

    if not ENABLED:
        say_line("EXACTSEL_JIT=0 says that nothing is compiled; unset it.")
        return 1
    folder = cache_folder()
    if folder is None:
        say_line(
            "kernels cannot be kept: the cache folder cannot be written, or others can write to it or to one above it; "
            "name another one in EXACTSEL_CACHE_DIR."
        )
        return 1
    kinds, failed = USUAL + MORE if everything else USUAL, False
    say_line(f"compiling {counted(len(kinds), 'kind')} of problems into {folder}")
    for number, warmed in enumerate(warm_up(kinds, processes), 1):
        failed = failed or bool(warmed.error)
        say(f"{number}/{len(kinds)}  {warmed.kind:<20} {warmed.seconds:6.1f} s  {warmed.error}".rstrip())
    if not failed:
        remember_warmup()
    return int(failed)
