"""``exactsel path``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

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
    from exactsel.studies.crossval import ValidationErrors
    from exactsel.studies.path import SolutionPath


@click.command(
    "path",
    cls=Command,
    examples=(
        "path instances/diabetes.npz --k-max 8 --cv 5",
        "path instances/diabetes.npz --k-max 8 --checkpoint path.ckpt --time-limit 10",
        "path instances/diabetes.npz --k-max 10 --resume path.ckpt",
    ),
)
@problem_options
@click.option("--k-max", type=int, help="All sizes from 1 to this; by default to the instance's k.")
@click.option("--ks", help="Sizes, separated by commas, instead of --k-max.")
@click.option("--lams", help="Ridge weights, separated by commas; the instance's own by default.")
@search_options
@checkpoint_options
@worker_options
@click.option("--cv", "folds", type=int, help="Folds of a cross-validation of every model; none by default.")
@click.option(
    "--near",
    type=float,
    metavar="SHARE",
    help="Also list the models of each size whose objective exceeds the best by at most this share, say 0.01.",
)
@click.option(
    "--cap", type=int, default=1000, show_default=True, help="With --near: models after which a list is cut short."
)
@click.option("--plot", type=OutputFile(), help="Picture to write: .png, .svg or .pdf (needs matplotlib).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def command(
    k_max: int | None, ks: str | None, lams: str | None, folds: int | None, near: float | None, cap: int,
    plot: str | None, as_json: bool, **arguments: Any,
) -> int:  # fmt: skip
    """Find the best model of every size (and for every ridge weight), each with its certified gap.

    Beside each stand AIC, BIC and EBIC where the loss is a likelihood, and with --cv the mean loss of a held-out row.
    Intercept, scaling and weights are then worked out anew from the rows of each training part. Limits hold for each
    problem. Exit code 0 means that the tolerance is proven for all of them, and that every list --near asked for is
    complete. A path that is resumed goes on where gaps are left, and with sizes and ridge weights that are added; what
    --cv works out is not saved.
    """
    from exactsel.cli.output import attempted
    from exactsel.errors import InputError
    from exactsel.files import check_target, write_bytes
    from exactsel.report.path import draw_path, path_table
    from exactsel.report.terminal import terminal_width
    from exactsel.studies.criteria import Compared
    from exactsel.studies.path import solve_path

    if k_max is not None and ks is not None:
        raise InputError("--k-max and --ks both say which sizes; give one of them.")
    sizes = _numbers(ks, int, "--ks 1,2,5")
    weights = _numbers(lams, float, "--lams 1,0.1,0.01")
    if arguments["resume"] is not None and given("k") and k_max is None and sizes is None:
        k_max = arguments["k"]
    if arguments["k"] is None:
        arguments["k"] = k_max if k_max is not None else max(sizes) if sizes else None
    problem = read_problem(arguments)
    settings = saving(arguments)
    if k_max is not None:
        sizes = list(range(max(1, len(problem.units.must_have)), k_max + 1))
    check_target(plot)
    style = None if plot is None else _style(plot)
    validation = None if folds is None else _folds_of(problem, folds, arguments)
    catch_signals()
    more = {"cap": cap if given("cap") else None, **workers_of(arguments)}
    path = solve_path(problem, sizes, weights, near=near, signals=SIGNALS, **more, **settings)
    interrupted, compared = path.interrupted, Compared(path)
    if validation is not None and not interrupted:
        try:
            compared = Compared(path, _errors(path, validation | workers_of(arguments)))
        except KeyboardInterrupt:
            interrupted = True
    say(compared.to_json() if as_json else path_table(compared, terminal_width(sys.stdout)))
    if plot is not None:
        with attempted():
            write_bytes(plot, draw_path(compared, str(style)))
    return exit_code(path.reached and path.complete, "interrupted" if interrupted else "")


def _errors(path: SolutionPath, validation: dict[str, Any]) -> ValidationErrors:
    """The held-out errors of the sizes and ridge weights of the path, by searches with its settings."""
    from exactsel.studies.crossval import cross_validate

    tried: dict[str, Any] = {
        f"{name}s": sorted({result.problem[name] for result in path.results}) for name in ("k", "lam")
    }
    return cross_validate(**validation, **tried, signals=SIGNALS, **path.settings)


def _folds_of(problem: Any, folds: int, arguments: dict[str, Any]) -> dict[str, Any]:
    """What cross-validation needs to know: the data as given, every fold is prepared anew."""
    from exactsel.data.missing import KEPT
    from exactsel.errors import InputError
    from exactsel.problem.boxed import box_options
    from exactsel.problem.hierarchy import hierarchy_options
    from exactsel.problem.limits import limit_options
    from exactsel.studies.crossval import random_folds

    if problem.family == "css":
        raise InputError("column subset selection has no target to predict; leave --cv out.")
    limits = box_options(problem)
    problem = problem.unlimited if limits else problem
    if problem.objective.tall is not None:
        raise InputError("the rows of this instance have been reduced, so none can be held out; leave --cv out.")
    preparation = problem.preparation
    data: dict[str, Any] = {"A": problem.A, "y": problem.target}
    filled = arguments["missing"] in KEPT
    if filled or preparation is not None or arguments["offset"] is not None:
        data = given_data(arguments, **({"missing": KEPT[arguments["missing"]]} if filled else {}))._asdict()
    data |= {"missing": arguments["missing"].partition("-")[0]} if filled else {}
    data |= {"intercept": preparation is not None and preparation.centred}
    data |= {"scale": preparation is not None and preparation.scaled}
    splits = random_folds(len(data["y"]), folds, arguments["seed"])
    demands = {"must_have": problem.must_have, "must_not": problem.must_not, **hierarchy_options(problem.units)}
    demands |= limit_options(problem.units) | limits
    if problem.units.grouped:
        demands["groups"] = [f"g{unit}" for unit in problem.units.unit_of.tolist()]
    return {**data, "folds": splits, "loss": problem.loss, **demands}


def _style(plot: str) -> str:
    from exactsel.errors import InputError

    style = plot.rpartition(".")[2].lower()
    if style not in ("png", "svg", "pdf"):
        raise InputError(f"the picture {plot} must have a name that ends in .png, .svg or .pdf.")
    return style


def _numbers(text: str | None, kind: Callable[[str], Any], example: str) -> list[Any] | None:
    from exactsel.errors import InputError

    if text is None:
        return None
    try:
        return [kind(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"'{text}' is no list of numbers; write it as {example}.") from None
