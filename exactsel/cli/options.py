"""Options shared by the commands that read an instance and run a search."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from exactsel import interrupts
from exactsel.cli.compiling import tell_of_compiling
from exactsel.cli.constraint_arguments import columns_in, constraint_in, groups_in, within_bounds
from exactsel.cli.constraint_options import NAMES as CONSTRAINTS
from exactsel.cli.constraint_options import constraint_options
from exactsel.cli.data_options import model_options, preparing_options, reading_options
from exactsel.cli.named_files import InputFile, OutputFile
from exactsel.cli.status import InstanceOrStatus
from exactsel.cli.talk import say_line
from exactsel.cli.time_limits import reading_in_time
from exactsel.solving.settings import Setting, Settings, option_of, settings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from exactsel.data.instance import Instance
    from exactsel.observers.log import ProgressLog
    from exactsel.problem.interface import SubsetProblem
    from exactsel.problem.regression import Problem
    from exactsel.types import FloatArray

SIGNALS = interrupts.ending_signals()
"""What ends a search with its result."""

Decorated = Callable[..., Any]

Given = TypeVar("Given")

OF_REGRESSION = (
    *CONSTRAINTS, "loss", "lam", "delta", "force_in", "force_out", "nonnegative", "bounds",
    "max_coef", "sum_to", "equality", "intercept", "scale", "weights", "offset",
)  # fmt: skip
"""Options that column subset selection has no use for."""


ALL_COLUMNS = "all"
"""The k of a command for all sizes: as many columns as the instance has."""


class Seconds(click.FloatRange):
    """A number in a range; unlike click's own type it refuses NaN, which is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail in one sentence."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return number


KNOW_LIMITS = ("solve", "best", "path", "certify", "compare", "verify", "play")
"""Commands that keep to limits on coefficients."""


def _where_known(context: click.Context, parameter: click.Parameter, value: Given) -> Given:
    """Refuse limits on coefficients wherever they would not be kept to."""
    if value not in (None, ()) and context.info_name not in KNOW_LIMITS:
        commands = f"{', '.join(KNOW_LIMITS[:-1])} and {KNOW_LIMITS[-1]}"
        raise click.UsageError(f"{parameter.opts[0]} is known to {commands} only; leave it out.", context)
    return value


def _limits() -> list[Any]:
    """Limits on coefficients."""
    signs = "Allow no negative coefficients for these features: names, numbers, patterns, or all."
    boxes = "Read bounds of coefficients from this file, in lines column,lower,upper."
    most = "Allow no coefficient larger than M in size (big-M). The proof covers such models only."
    total = "Make all coefficients add up to this, as 1 for a portfolio (quadratic loss)."
    equality = "Make coefficients meet a linear equality: 'a + b - 2*c = 1' (quadratic loss)."
    return [
        click.option("--nonnegative", metavar="FEATURES|all", callback=_where_known, help=signs),
        click.option("--bounds", type=InputFile(), callback=_where_known, help=boxes),
        click.option("--max-coef", type=float, metavar="M", callback=_where_known, help=most),
        click.option("--sum-to", type=float, metavar="NUMBER", callback=_where_known, help=total),
        click.option("--equality", multiple=True, metavar="TEXT", callback=_where_known, help=equality),
    ]


def problem_options(function: Decorated) -> Decorated:
    """INSTANCE and what overrides the file."""
    instance = click.argument("instance", cls=InstanceOrStatus, type=InputFile())
    for option in reversed(
        [instance, *reading_options(), *constraint_options(), *model_options(), *_limits(), *preparing_options()]
    ):
        function = option(function)
    return function


STEERING = ("time_limit", "eps", "rel_eps", "seed", "threads")
"""The settings of the search behind a comparison of methods."""


def setting_options(
    *names: str, defaults: Mapping[str, Any] = MappingProxyType({}), **texts: str
) -> Callable[[Decorated], Decorated]:
    """Options for these fields of exactsel.Settings; ``defaults`` and ``texts`` say otherwise for some of them."""

    def add(function: Decorated) -> Decorated:
        usual, settings = Settings(), settings_of()
        for name in reversed(names):
            default, text = defaults.get(name, getattr(usual, name)), texts.get(name, settings[name].text)
            function = _setting_option(name, settings[name], default, text)(function)
        return function

    return add


def _setting_option(name: str, setting: Setting, default: object, text: str) -> Callable[[Decorated], Decorated]:
    flag = option_of(name)
    if setting.kind is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", name, default=default, help=text)
    if default is None or isinstance(default, tuple):
        return click.option(flag, name, type=setting.kind, help=text)
    shown = "Default:" not in text
    return click.option(flag, name, type=setting.kind, default=default, show_default=shown, help=text)


def search_options(function: Decorated) -> Decorated:
    """Everything that steers a search, under the names of exactsel.Settings."""
    return setting_options(*settings_of())(function)


def proof_option(function: Decorated) -> Decorated:
    """Where to write the proof."""
    option = click.option("--proof", type=OutputFile(), help="Write the proof to this file, for exactsel verify.")
    return option(function)


def output_options(function: Decorated) -> Decorated:
    """How to talk."""
    for option in reversed(
        [
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout."),
            click.option("--quiet", is_flag=True, help="Print no progress and no report on stderr."),
            click.option(
                "--log-interval", type=Seconds(min=0), default=5.0, show_default=True,
                help="Print a row of progress after this many seconds.",
            ),
        ]
    ):  # fmt: skip
        function = option(function)
    return function


def summary_options(function: Decorated) -> Decorated:
    """Whether to show standard errors, and the level of their intervals."""
    level = click.option(
        "--level", type=float, help="Set the level of the intervals of --summary, between 0 and 1. Default: 0.95."
    )
    option = click.option(
        "--summary", is_flag=True, help="Print R², standard errors and confidence intervals of the best model."
    )
    return option(level(function))


def checked_level(problem: SubsetProblem, summary: bool, level: float | None) -> float:
    """The level of the intervals; :class:`InputError` before a search whose summary would be refused."""
    from exactsel.errors import InputError
    from exactsel.solving.summary import refuse_no_summary

    if level is not None and not summary:
        raise InputError("--level is about the intervals of --summary, which is not given; add --summary.")
    chosen = 0.95 if level is None else level
    if summary:
        refuse_no_summary(problem, chosen)
    return chosen


@contextmanager
def warnings_as_lines(quiet: bool = False) -> Iterator[None]:
    """Each warning of the block becomes one line on stderr, said once, or none when ``quiet``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        if not quiet:
            say_line(f"Warning: {message}")


_READ = ("target", "drop", "factors", "formula", "missing", "decimal", "encoding")


def read_file(arguments: dict[str, Any], **more: str) -> Instance:
    """The instance in the file that the problem options among ``arguments`` name, its columns chosen by them; ``more``
    says otherwise.
    """
    from exactsel.data import read_data
    from exactsel.problem.preparing import needs_all_levels

    options = {name: arguments[name] for name in _READ}
    options["weights"] = read_weights(arguments["weights"])
    options["all_levels"] = arguments["problem"] == "css" or needs_all_levels(arguments["intercept"], arguments["loss"])
    if arguments["formula"] is not None:
        options["beside"] = arguments["offset"]
    return read_data(arguments["instance"], **options | more)


class GivenData(NamedTuple):
    """Data as the files have them, before anything is done to them."""

    A: FloatArray
    """(n, d), without the column of the offset."""
    y: FloatArray
    """(n,)"""
    weights: NDArray[Any] | None
    """(n,) of rows, or None."""
    offset: FloatArray | None
    """(n,), or None."""


def given_data(arguments: dict[str, Any], **more: str) -> GivenData:
    """The data that the problem options among ``arguments`` name; ``more`` as for :func:`read_file`."""
    import numpy as np

    from exactsel.data.tables import with_labels, with_offset_read
    from exactsel.problem.checks import checked_matrix, checked_vector

    with warnings_as_lines(quiet=True):
        instance = with_labels(read_file(arguments, **more), arguments["loss"])
        instance, offset = with_offset_read(instance, arguments["offset"])
    A = np.asarray(instance.A, dtype=np.float64) if more else checked_matrix(instance.A)
    return GivenData(A, checked_vector(np.asarray(instance.y)), instance.weights, offset)


def read_problem(arguments: dict[str, Any], quiet: bool = False) -> SubsetProblem:
    """The problem (of either family) the problem options among ``arguments`` name; warnings become lines on stderr,
    unless they have been said before (``quiet``).

    A time limit among the arguments holds for reading, too, and where all of the command is within one limit, what
    reading took is taken off it.
    """
    with reading_in_time(arguments):
        problem = _problem(arguments, quiet)
    tell_of_compiling(problem, quiet or arguments.get("quiet", False))
    return problem


def _problem(arguments: dict[str, Any], quiet: bool) -> SubsetProblem:
    from exactsel.data.tables import with_labels, with_offset_read
    from exactsel.errors import InputError, warn_of_data
    from exactsel.problem.targets import better_loss

    with warnings_as_lines(quiet):
        instance = read_file(arguments)
        k = arguments["k"]
        if k is None and instance.k is None:
            k = arguments.get("usual_k")
            warnings.filterwarnings("ignore", message=r"k = \d+ is more than")
        if k == ALL_COLUMNS:
            warnings.filterwarnings("ignore", message=r"k = \d+ is more than")
            k = instance.A.shape[1] if instance.A.ndim == 2 else 1  # other shapes are refused with a sentence
            k = k if arguments["at_most"] is None else min(k, max(arguments["at_most"], 0))
        if arguments["problem"] == "regression":
            labelled, offset = with_offset_read(with_labels(instance, arguments["loss"]), arguments["offset"])
            if arguments["loss"] is None and instance.loss is None and (hint := better_loss(instance.y)) is not None:
                warn_of_data(hint.advice)
            state: Callable[..., Problem] = labelled.problem
            chosen: dict[str, Any] = {}
            if labelled.groups is not None or any(arguments[name] is not None for name in ("groups", "per_group")):
                state, chosen = labelled.grouped_problem, {"groups": groups_in(arguments["groups"], labelled)}
                chosen["per_group"] = arguments["per_group"]
            stated = state(
                **chosen, k=k, **{name: arguments[name] for name in ("loss", "lam", "delta")},
                **{name: columns_in(arguments[name], labelled) for name in ("force_in", "force_out")},
                intercept=arguments["intercept"], scale=arguments["scale"],
                offset=offset,
                **constraint_in(arguments, labelled),
            )  # fmt: skip
            return within_bounds(stated, arguments, labelled)
        foreign = [name for name in OF_REGRESSION if arguments[name] not in (None, False, ())]
        if foreign:
            option = foreign[0].replace("_", "-")
            raise InputError(f"--{option} is given, but column subset selection has no {option}; leave it out.")
        return instance.columns_problem(k=k)


def read_weights(path: str | None) -> FloatArray | None:
    """The numbers in a file of weights."""
    if path is None:
        return None
    from exactsel.data.arrays import read_numbers, refusing_damage

    with refusing_damage(Path(path), "cannot be read as weights", "give one number a line, or .npy"):
        return read_numbers(Path(path), refuse=False)


def search_settings(arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of exactsel.solve from the search options among ``arguments``, checked."""
    from exactsel import registry
    from exactsel.start.models import resolve
    from exactsel.start.portfolio import AUTO

    settings = {name: arguments[name] for name in settings_of()}
    if settings["heuristics"] is None:
        del settings["heuristics"]
    checked = Settings(**settings)
    resolve(() if checked.heuristics == AUTO else checked.heuristics)
    for name, setting in settings_of().items():
        if setting.plug_ins and settings[name] != "auto":
            registry.load(setting.plug_ins, settings[name])
    return settings


def progress_log(problem: SubsetProblem, arguments: dict[str, Any]) -> ProgressLog | None:
    """The progress table on stderr, unless the option for quiet is given."""
    if arguments["quiet"]:
        return None
    from exactsel._jit import interpreted
    from exactsel._version import __version__
    from exactsel.observers.log import ProgressLog
    from exactsel.solving.small import is_small

    log = ProgressLog(sys.stderr, arguments["log_interval"])
    stop = f"stop at eps={arguments['eps']:g} or rel_eps={arguments['rel_eps']:g}"
    with interpreted(is_small(problem)):
        log.begin(problem, __version__, stop)
    return log


def catch_signals() -> None:
    """From here on the command at work ends with a result after a signal, and with exit code 130."""
    from exactsel.search.watch import Watch

    click.get_current_context().with_resource(Watch(None, SIGNALS))


def exit_code(reached: bool, termination: str) -> int:
    """0 proven, 1 a gap is left, 130 interrupted, be it after the search."""
    watch = interrupts.in_main()
    if termination == "interrupted" or (watch is not None and watch.interrupted):
        return 130
    return 0 if reached else 1
