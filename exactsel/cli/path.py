"""``exactsel path``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from exactsel.cli.command_lines import command_text
from exactsel.cli.helping import Command
from exactsel.cli.named_files import OutputFile
from exactsel.cli.options import (
    SIGNALS,
    catch_signals,
    exit_code,
    given_data,
    problem_options,
    read_problem,
    search_options,
)
from exactsel.cli.saving import checkpoint_options, given, saving
from exactsel.cli.talk import say
from exactsel.cli.workers import worker_options, workers_of

if TYPE_CHECKING:
    from exactsel.problem.interface import SubsetProblem
    from exactsel.studies.criteria import Compared
    from exactsel.studies.crossval import ValidationErrors
    from exactsel.studies.path import SolutionPath


class PathCriterion(click.Choice[str]):
    """The criterion a path is about; the table of a path shows the others anyway."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the criterion, or say which command chooses a model by another one."""
        name = str(value).lower()
        if name in {"aic", "aicc", "bic", "ebic", "hqic"}:
            self.fail(
                f"a path shows AIC, BIC and EBIC of each size without it; use exactsel best --criterion {name} for the "
                "best model.",
                param, ctx,
            )  # fmt: skip
        return super().convert(value, param, ctx)


@click.command(
    "path",
    cls=Command,
    examples=(
        "path instances/diabetes.npz --k-max 8 --cv 5 --report path.html",
        "path instances/diabetes.npz --k-max 8 --criterion l0",
        "path instances/diabetes.npz --k-max 8 --checkpoint path.ckpt --time-limit 10",
        "path instances/diabetes.npz --k-max 10 --resume path.ckpt",
    ),
)
@problem_options
@click.option("--k-max", type=int, help="Solve for all sizes from 1 to this. Default: the k of the instance, or 10.")
@click.option("--ks", help="Solve for these sizes, separated by commas, in place of --k-max.")
@click.option("--lams", help="Solve for these ridge weights, separated by commas. Default: that of the instance.")
@click.option(
    "--criterion",
    type=PathCriterion(["l0"]),
    help="Show the path of P(x) + lam0 ||x||_0 too, which says for which lam0 a size wins.",
)
@search_options
@checkpoint_options
@worker_options
@click.option(
    "--cv",
    "folds",
    metavar="FOLDS|loo",
    help="Cross-validate every model with this many random folds, or with loo one fold a row.",
)
@click.option(
    "--near",
    type=float,
    metavar="SHARE",
    help=("List the models of each size whose objective exceeds the best by at most this share, such as 0.01."),
)
@click.option("--cap", type=int, default=1000, show_default=True, help="End a list of --near after this many models.")
@click.option(
    "--plot", type=OutputFile(), help="Write a picture to this file, .png, .svg or .pdf. It needs matplotlib."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
@click.option("--report", type=OutputFile(), help="Write a self-contained HTML page of the path to this file.")
def command(
    k_max: int | None, ks: str | None, lams: str | None, criterion: str | None, folds: str | None, near: float | None,
    cap: int, plot: str | None, as_json: bool, report: str | None, **arguments: Any,
) -> int:  # fmt: skip
    """Find the best model of every size and ridge weight, each with its certified gap.

    The table has AIC, BIC and EBIC where the loss is a likelihood, and with --cv the mean loss of a held-out row. Each
    fold prepares its training rows by themselves. Limits hold for each problem. A resumed path continues where gaps are
    left, and with new sizes and ridge weights; it does not save --cv. Exit code 0 means that the tolerance is proven
    for all problems, and that every list of --near is complete.
    """
    from exactsel.cli.output import attempted, reported
    from exactsel.errors import InputError
    from exactsel.files import check_target, write_bytes
    from exactsel.report.path import draw_path
    from exactsel.studies.criteria import Compared
    from exactsel.studies.path import USUAL_SIZES, solve_path
    from exactsel.studies.penalty_path import check_ridge_weights

    if k_max is not None and ks is not None:
        raise InputError("--k-max and --ks both say which sizes; give one of them.")
    sizes = _numbers(ks, int, "--ks 1,2,5")
    weights = _numbers(lams, float, "--lams 1,0.1,0.01")
    if arguments["resume"] is not None and given("k") and k_max is None and sizes is None:
        k_max = arguments["k"]
    if arguments["k"] is None:
        arguments["k"] = k_max if k_max is not None else max(sizes) if sizes else None
    problem = read_problem(arguments | {"usual_k": USUAL_SIZES})
    settings = saving(arguments)
    if k_max is not None:
        sizes = list(range(max(1, len(problem.units.force_in)), k_max + 1))
    check_target(plot)
    check_target(report)
    style = None if plot is None else _style(plot)
    cv = _check_folds(problem, folds, arguments["seed"])
    if criterion is not None:
        check_ridge_weights([problem.describe().get("lam")] if weights is None else weights)
    catch_signals()
    more = {"cap": cap if given("cap") else None, **workers_of(arguments)}
    path = solve_path(problem, ks=sizes, lams=weights, near=near, signals=SIGNALS, **more, **settings)
    interrupted, compared = path.interrupted, Compared(path)
    if cv is not None and not interrupted:
        try:
            compared = Compared(path, _errors(path, problem, cv, arguments))
        except KeyboardInterrupt:
            interrupted = True
    say(_shown(compared, as_json, criterion is not None))
    if plot is not None:
        with attempted():
            write_bytes(plot, draw_path(compared, str(style)))
    if report is not None:
        from exactsel.report.path_page import path_page

        page = path_page(compared, command=command_text(left_out=("report", "as_json", "plot")))
        with reported(report):
            write_bytes(report, page.encode())
    return exit_code(path.reached and path.complete, "interrupted" if interrupted else "")


def _shown(compared: Compared, as_json: bool, priced: bool) -> str:
    """The path as the command prints it, with the path over the price of a column on request."""
    from exactsel.observers.terminal import terminal_width
    from exactsel.report.path import path_table, penalty_table
    from exactsel.to_plain import strict_json

    path = compared.path
    if as_json:
        more = {"penalty_ranges": [part.as_dict() for part in path.penalty_ranges]} if priced else {}
        return strict_json(compared.as_dict() | more)
    return path_table(compared, terminal_width(sys.stdout)) + (f"\n\n{penalty_table(path)}" if priced else "")


def _errors(path: SolutionPath, problem: SubsetProblem, cv: int | str, arguments: dict[str, Any]) -> ValidationErrors:
    """The held-out errors of the sizes and ridge weights of the path, by searches with its settings."""
    from exactsel.data.missing import KEPT
    from exactsel.solving.executors import Workers
    from exactsel.solving.problem_arguments import Gaps
    from exactsel.studies.crossval import validated

    gaps, way = None, arguments["missing"]
    if way in KEPT:
        gaps = Gaps(given_data(arguments, missing=KEPT[way]).A, way.partition("-")[0])
    ks = sorted({result.problem["k"] for result in path.results})
    lams = [*{result.problem["lam"] for result in path.results}]
    options = {**path.settings, "seed": arguments["seed"], "signals": SIGNALS}
    return validated(problem, gaps, cv, ks, lams, options, Workers(**workers_of(arguments)))


def _check_folds(problem: SubsetProblem, folds: str | None, seed: int) -> int | str | None:
    """How many folds there are to be, found to be possible before anything is solved."""
    from exactsel.errors import InputError
    from exactsel.studies.crossval import LEAVE_ONE_OUT, folds_of, of_a_target

    if folds is None:
        return None
    cv = int(folds) if folds.strip().isdigit() else folds
    if isinstance(cv, str) and cv not in LEAVE_ONE_OUT:
        raise InputError(f"--cv is {folds!r}, but a number of folds was expected, or loo for one of each row.")
    regression = of_a_target(problem)
    if regression.objective.reduction is not None:
        raise InputError("the rows of this instance have been reduced, so none can be held out; leave --cv out.")
    folds_of(cv, regression, seed)
    return cv


def _style(plot: str) -> str:
    from exactsel.errors import InputError
    from exactsel.report.path import figure_class

    style = plot.rpartition(".")[2].lower()
    if style not in ("png", "svg", "pdf"):
        raise InputError(f"the picture {plot} must have a name that ends in .png, .svg or .pdf.")
    figure_class()
    return style


def _numbers(text: str | None, kind: Callable[[str], Any], example: str) -> list[Any] | None:
    from exactsel.errors import InputError

    if text is None:
        return None
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"'{text}' is no list of numbers; write it as {example}.") from None
