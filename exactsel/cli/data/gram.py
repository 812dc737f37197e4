"""``exactsel data gram``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.named_files import FileOrText, InputFile, OutputFile
from exactsel.cli.options import setting_options, warnings_as_lines
from exactsel.cli.talk import say

CARS = "data gram instances/cars.csv cars.npz --target mpg --drop 'name,model year,origin' --missing drop-rows"


@click.command(
    "gram",
    cls=Command,
    examples=(CARS, f"{CARS} -k 3", f"{CARS} --loss huber"),
)
@click.argument("data", type=InputFile())
@click.argument("out", type=OutputFile())
@click.option(
    "--target",
    type=FileOrText(),
    help="Predict this column, a name or a number from 0, or the numbers in a file. Default: y.",
)
@click.option(
    "--drop", multiple=True, metavar="COLUMNS", help="Leave out these columns of the table, separated by commas."
)
@click.option(
    "--weights",
    type=FileOrText(),
    help="Weight the rows by this column, a name or a number from 0, or by a file: one a line or .npy.",
)
@click.option("--missing", type=click.Choice(["drop-rows"]), help="Leave out rows with missing values.")
@click.option(
    "--decimal", type=click.Choice([",", "."]), help="Read numbers with this decimal mark. Default: the point."
)
@click.option("--encoding", help="Read text in this encoding, such as cp1252, latin-1 or utf-16. Default: UTF-8.")
@click.option("-k", "--k", type=int, help="Store this largest number of features in the model.")
@click.option("--lam", type=float, help="Store this weight of the ridge (lam/2)||x||^2.")
@click.option(
    "--loss",
    default="quadratic",
    show_default=True,
    help="Store this loss: quadratic, huber, logistic, squared_hinge, poisson, or a plug-in's name.",
)
@click.option("--delta", type=float, help="Store this threshold of Huber loss, or of a plug-in's loss, in units of y.")
@click.option(
    "--intercept/--no-intercept",
    default=True,
    show_default=True,
    help="Add an intercept without a penalty. It comes back in the answer.",
)
@setting_options("threads")
def command(data: str, out: str, **arguments: Any) -> None:
    """Reduce the rows of DATA, which need not fit into memory, to an instance OUT for all other commands.

    DATA is a .npy, .parquet, .csv or .tsv file, the last two also .gz. The command reads it once, in blocks. With
    quadratic loss the .npz file OUT has at most d + 1 rows for d columns, with the same objective. OUT stores a bound
    on its distance from all rows. This command and info print the bound, and solve accounts for it. Other losses need
    all rows: OUT holds them column by column, and they stay on disk.
    """
    from exactsel.data.gram import gram
    from exactsel.data.instance import write_instance
    from exactsel.data.npz import npz_name
    from exactsel.files import check_target

    check_target(npz_name(out))
    reduced = arguments["loss"] == "quadratic"
    with warnings_as_lines():
        instance = gram(data, **arguments, out=None if reduced else out)
    rows, columns = instance.A.shape
    reduction = instance.reduction
    if reduction is None:
        say(f"{out}: n={rows} d={columns}, to stay on disk", err=True)
        return
    write_instance(out, instance)
    say(
        f"{out}: n={rows} d={columns}, in place of {reduction.rows:,} rows"
        f"{' and an intercept' if reduction.intercept else ''}; "
        f"row_error {reduction.row_error:.3g}",
        err=True,
    )
