"""The help of a command: its options by what they are about, and examples."""

from __future__ import annotations

from typing import Any

import click

from exactsel.cli.constraint_options import NAMES as CONSTRAINTS
from exactsel.cli.named_files import FileCommand
from exactsel.cli.options import KNOW_LIMITS
from exactsel.cli.talk import say

SECTIONS = {
    "Data": ("target", "shared", "drop", "factors", "formula", "missing", "decimal", "encoding", "weights", "offset"),
    "Problem": (
        "problem", "k", "k_min", "k_max", "ks", "criterion", "gamma", "penalty", "loss", "lam", "lams", "delta",
        "intercept", "scale", *CONSTRAINTS, "force_in", "force_out",
        "nonnegative", "bounds", "max_coef", "sum_to", "equality",
    ),
    "Limits": ("eps", "rel_eps", "time_limit", "node_limit", "memory_limit", "threads", "seed"),
    "Workers": ("executor", "workers", "scheduler", "shard"),
    "Saving": ("checkpoint", "checkpoint_every", "resume", "status"),
    "Method": ("method", "options"),
    "Search": (
        "heuristics", "tree", "bound", "branching", "frontier", "closer", "batch", "warm_start", "force_quit",
        "subtrees", "recheck",
    ),
}  # fmt: skip
"""Parameters by what they are about; all others are about what comes out."""

RARE = {
    "shared", "decimal", "encoding", "weights", "offset", "delta", "scale", *CONSTRAINTS,
    "nonnegative", "bounds", "max_coef", "sum_to", "equality", "eps", "node_limit", "memory_limit", "seed",
    "checkpoint_every", "trace", "level", "options",
    "log_interval", *SECTIONS["Workers"], *SECTIONS["Search"],
}  # fmt: skip
"""Options that most people do not need: --help hides them, --help-all shows them."""

FORMATS = (
    "INSTANCE is a table with names (.csv, .tsv, .xlsx, .parquet, .feather, .dta, .sav, .jsonl), a matrix (.npy, .mtx, "
    ".svm) or a .npz file. That holds A (rows x columns) and y, and optionally k, lam, loss, delta and feature_names."
)

CONSTRAINED = (
    "Groups (--groups, --per-group), hierarchies (--hierarchy), pairs that exclude each other (--not-both), signs and "
    "bounds of coefficients (--nonnegative, --bounds, --max-coef), their sum (--sum-to) and other equalities "
    "(--equality): --help-all shows these options."
)
"""Which constraints there are, where help hides their options."""

SHOW_ALL = "exactsel.cli.helping.show_all"
"""The key in a context's ``meta`` that says whether its help shows rare options, too."""


def _help_all() -> click.Option:
    """Make the option that shows every option of a command."""

    def show(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            ctx.meta[SHOW_ALL] = True
            say(ctx.get_help())
            ctx.exit()

    text = "Show every option, also the rare ones, and exit."
    return click.Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, help=text, callback=show)


class Command(FileCommand):
    """A command with many options and some examples.

    Parameters
    ----------
    examples : tuple of str
        Command lines without the program's name, shown at the end of the help.
    """

    def __init__(self, name: str | None, examples: tuple[str, ...] = (), **options: Any) -> None:
        super().__init__(name, **options)
        self.examples = examples

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with --help-all where --help hides some."""
        parameters = super().get_params(ctx)
        return [*parameters, _help_all()] if any(each.name in RARE for each in self.params) else parameters

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and which files it reads."""
        super().format_help_text(ctx, formatter)
        if any(each.name == "instance" for each in self.params):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(FORMATS)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section; the rare ones only in the full help."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        if not ctx.meta.get(SHOW_ALL):
            options = [each for each in options if each.name not in RARE]
        records = {str(each.name): record for each in options if (record := each.get_help_record(ctx))}
        for title, names in SECTIONS.items():
            entries = [records.pop(name) for name in names if name in records]
            if entries:
                with formatter.section(title):
                    formatter.write_dl(entries)
            if title == "Problem" and ctx.info_name in KNOW_LIMITS and not ctx.meta.get(SHOW_ALL):
                with formatter.section("Constraints"):
                    formatter.write_text(CONSTRAINED)
        with formatter.section("Output"):
            formatter.write_dl(list(records.values()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on its line however long it is."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}exactsel {line}\n")
