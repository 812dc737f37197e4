"""``exactsel data generate``."""

from __future__ import annotations

import click

from exactsel.cli.named_files import FileCommand, OutputFile
from exactsel.cli.talk import say


@click.command("generate", cls=FileCommand)
@click.argument("name")
@click.argument("out", type=OutputFile())
@click.option("--n", type=int, help="Draw this many rows.")
@click.option("--d", type=int, help="Draw this many features.")
@click.option("-k", "--k", type=int, help="Store this k: the size of the planted support, or of the model to find.")
@click.option("--lam", type=float, help="Store this ridge weight.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed the random numbers.")
def command(name: str, out: str, n: int | None, d: int | None, k: int | None, lam: float | None, seed: int) -> None:
    """Write the instance NAME (huber, logistic, quadratic, hard, diabetes) to the file OUT."""
    from exactsel.data.generate import generate
    from exactsel.data.instance import write_instance

    instance = generate(name, n=n, d=d, k=k, seed=seed, lam=lam)
    write_instance(out, instance)
    rows, columns = instance.A.shape
    say(f"{out}: {name}, n={rows} d={columns} k={instance.k} lam={instance.lam:g} loss={instance.loss}", err=True)
