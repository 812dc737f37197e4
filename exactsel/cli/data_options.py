"""Options that say how a file is read, and which problem its data state."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.named_files import FileOrText, InputFile


def _one_or_several(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> str | tuple[str, ...] | None:
    """The target, where several are given a tuple of them; only ``solve`` has a model for each."""
    if len(value) > 1 and context.info_name != "solve":
        raise click.UsageError(f"{len(value)} targets are given, but solve alone takes several; give one.", context)
    return value if len(value) > 1 else value[0] if value else None


def reading_options() -> list[Any]:
    """How the file is read."""
    return [
        click.option(
            "--target",
            type=FileOrText(),
            multiple=True,
            callback=_one_or_several,
            help="Predict this column, a name or a number from 0, or the numbers in a file. solve takes several.",
        ),
        click.option(
            "--drop",
            multiple=True,
            metavar="COLUMNS",
            help="Leave out these columns of the table, separated by commas.",
        ),
        click.option(
            "--factors",
            multiple=True,
            metavar="auto|COLUMNS",
            help="Treat these columns as factors, whose 0/1 columns count once. auto takes all that hold text.",
        ),
        click.option("--formula", help="State the target and the terms to choose from: 'y ~ (a + b)^2 + C(c)'."),
        click.option(
            "--missing",
            type=click.Choice(["drop-rows", "drop-columns", "mean", "median", "mean-indicator"]),
            help="Handle missing values in this way. An indicator is a 0/1 feature that marks them.",
        ),
        click.option(
            "--decimal",
            type=click.Choice([",", "."]),
            help="Read numbers with this decimal mark. Default: what the text shows.",
        ),
        click.option(
            "--encoding", help="Read text in this encoding, such as cp1252, latin-1 or utf-16. Default: UTF-8."
        ),
    ]


def model_options() -> list[Any]:
    """Loss, ridge and size."""
    return [
        click.option(
            "--problem",
            type=click.Choice(["regression", "css"]),
            default="regression",
            show_default=True,
            help="Predict y, or with css select the columns that span the others best, without y.",
        ),
        click.option("-k", "--k", type=int, help="Allow at most this many features in the model."),
        click.option(
            "--loss",
            help=(
                "Use this loss: quadratic, huber, logistic, squared_hinge, poisson, or a plug-in's name. "
                "Default: quadratic, or that of the instance file."
            ),
        ),
        click.option(
            "--lam",
            type=float,
            help="Add a ridge of this weight, (lam/2)||x||^2. Default for quadratic loss: 0, no ridge.",
        ),
        click.option(
            "--force-in", help="Force these features into every model: names or numbers, separated by commas."
        ),
        click.option(
            "--force-out", help="Keep these features out of every model: names or numbers, separated by commas."
        ),
    ]


def preparing_options() -> list[Any]:
    """What becomes of the data before the search."""
    return [
        click.option(
            "--intercept/--no-intercept",
            default=None,
            help=(
                "Add an intercept without a penalty, or none. Default: one for tables, as stored for instance files."
            ),
        ),
        click.option(
            "--scale",
            is_flag=True,
            help="Scale the features to equal size for the search. The answer is in the units of the data.",
        ),
        click.option(
            "--weights",
            type=InputFile(),
            help="Read row weights from this file, one a line or .npy. Default: 1 for each row.",
        ),
        click.option(
            "--offset",
            type=FileOrText(),
            help="Add this known part to the predictions: a column of the table, or a file as for --weights.",
        ),
        click.option(
            "--delta",
            type=float,
            help=(
                "Set the threshold of Huber loss, or of a plug-in's loss, in units of y. Default: 1.345 times the "
                "robust scale of y."
            ),
        ),
    ]
