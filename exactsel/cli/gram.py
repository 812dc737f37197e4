"""``exactsel gram``."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.helping import Command
from exactsel.cli.options import setting_options, warnings_as_lines
from exactsel.cli.talk import say


@click.command(
    "gram",
    cls=Command,
    examples=(
        "gram instances/cars.csv cars.npz --target mpg --drop 'name,model year,origin' --missing drop-rows --intercept",
        "gram instances/cars.csv cars.npz --target mpg --drop 'name,model year,origin' --missing drop-rows -k 3",
    ),
)
@click.argument("data", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--target", help="Column to predict (name, or number from 0), or a file that holds it; y by default.")
@click.option("--drop", multiple=True, metavar="COLUMNS", help="Columns to leave out, separated by commas.")
@click.option("--weights", help="Column of row weights (name, or number from 0), or a file: one a line or .npy.")
@click.option("--missing", type=click.Choice(["drop-rows"]), help="Leave out rows with missing values.")
@click.option("--decimal", type=click.Choice([",", "."]), help="Decimal mark of a text, where it is not a point.")
@click.option("--encoding", help="Encoding of a text that is not UTF-8: cp1252, latin-1, utf-16, ...")
@click.option("-k", "--k", type=int, help="Largest number of columns in the model, to be stored.")
@click.option("--lam", type=float, help="Ridge weight of (lam/2)||x||^2, to be stored.")
@click.option("--intercept", is_flag=True, help="Unpenalised intercept; it is worked in, and comes back in the answer.")
@setting_options("threads")
def command(data: str, out: str, **arguments: Any) -> None:
    """Reduce DATA, rows that need not fit into memory, to the small instance OUT with the same objective.

    DATA is a .npy, .parquet, .csv or .tsv file (the last two also .gz) and is read once, in blocks. OUT, an .npz file
    of at most d + 1 rows for d columns, is what solve, path, compare and all others take; quadratic loss only. A bound
    on how far it may be off from all rows is stored in it, printed here and by info, and counted in by solve.
    """
    from exactsel.data.gram import gram
    from exactsel.data.instance import npz_name, write_instance
    from exactsel.files import check_target

    check_target(npz_name(out))
    with warnings_as_lines():
        instance = gram(data, **arguments)
    write_instance(out, instance)
    tall = instance.tall
    assert tall is not None
    rows, columns = instance.A.shape
    say(
        f"{out}: n={rows} d={columns}, in place of {tall.rows:,} rows{' and an intercept' if tall.intercept else ''}; "
        f"row_error {tall.row_error:.3g}",
        err=True,
    )
