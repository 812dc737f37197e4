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
    help="Column to predict (name, or number from 0), or a file that holds it; y by default.",
)
@click.option("--drop", multiple=True, metavar="COLUMNS", help="Columns to leave out, separated by commas.")
@click.option(
    "--weights",
    type=FileOrText(),
    help="Column of row weights (name, or number from 0), or a file: one a line or .npy.",
)
@click.option("--missing", type=click.Choice(["drop-rows"]), help="Leave out rows with missing values.")
@click.option("--decimal", type=click.Choice([",", "."]), help="Decimal mark of a text, where it is not a point.")
@click.option("--encoding", help="Encoding of a text that is not UTF-8: cp1252, latin-1, utf-16, ...")
@click.option("-k", "--k", type=int, help="Largest number of columns in the model, to be stored.")
@click.option("--lam", type=float, help="Ridge weight of (lam/2)||x||^2, to be stored.")
@click.option(
    "--loss",
    default="quadratic",
    show_default=True,
    help="The loss: quadratic, huber, logistic, squared_hinge, poisson.",
)
@click.option("--delta", type=float, help="Huber threshold, to be stored.")
@click.option(
    "--intercept/--no-intercept",
    default=True,
    show_default=True,
    help="Unpenalised intercept; it is worked in, and comes back in the answer.",
)
@setting_options("threads")
def command(data: str, out: str, **arguments: Any) -> None:
    """Make OUT, an instance for solve, path, compare and all others, of DATA, rows that need not fit into memory.

    DATA is a .npy, .parquet, .csv or .tsv file (the last two also .gz) and is read once, in blocks. With quadratic loss
    OUT, an .npz file, has at most d + 1 rows for d columns, with the same objective. A bound on how far it may be off
    from all rows is stored in it, printed here and by info, and counted in by solve. Other losses need all rows: OUT
    holds them column by column, and they stay on disk while it is worked on.
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
    tall = instance.tall
    if tall is None:
        say(f"{out}: n={rows} d={columns}, to stay on disk", err=True)
        return
    write_instance(out, instance)
    say(
        f"{out}: n={rows} d={columns}, in place of {tall.rows:,} rows{' and an intercept' if tall.intercept else ''}; "
        f"row_error {tall.row_error:.3g}",
        err=True,
    )
