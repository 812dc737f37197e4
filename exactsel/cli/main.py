"""``exactsel``: the commands, loaded when used, and the exit codes.

Exit codes: 0 the requested tolerance is proven; 1 finished honestly with a gap left; 2 wrong usage or unreadable input;
3 a proof was rejected; 4 a proof was not verified, as a limit of work or time ended the check; 70 internal error; 74
the result is whole, but a file or stream could not be written; 130 interrupted, with the result of that moment still
written.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from exactsel import interrupts
from exactsel._version import __version__
from exactsel.cli.talk import say, say_line

COMMANDS = {
    "solve": "Find the best model with at most k features, with a certified gap.",
    "best": "Find the best model of any size by AIC, BIC or other criteria.",
    "path": "Find the best model of every size, each with its certified gap.",
    "compare": "Run many methods and the exact search, side by side.",
    "certify": "Bound how far a given model is from optimal.",
    "verify": "Check a proof file that a solve has written.",
    "info": "Show what a data file holds, and how hard the problem looks.",
    "play": "Show a small search: a page that plays it, or its tree.",
    "data convert": "Write any data file as an instance file, with k, lam and loss.",
    "data gram": "Reduce more rows than memory holds to an instance.",
    "data generate": "Write a synthetic or classic instance.",
    "data instances": "List the instances that come with exactsel, or copy them.",
    "dev sweep": "Run a grid of instances, sizes, methods and seeds into one table.",
    "dev warmup": "Compile kernels ahead, so that no later run waits for the compiler.",
    "dev plugins": "List losses, bounds and other plug-ins, and where they come from.",
    "dev fuzz": "Compare solves of random tiny instances with the truth.",
    "dev reduce": "Make the files of a failure small enough to report.",
}
"""Every command in the words that call it; the module of ``data convert`` is ``exactsel.cli.data.convert``."""

INSTALLED_APART = {"dev fuzz"}
"""Commands that another package brings, through an entry point of the group ``exactsel.commands``."""

GROUPS = {
    "data": "Convert, reduce, generate or copy data files.",
    "dev": "Run experiments, compile kernels, list plug-ins, test exactsel.",
}

# The control character keeps the lines that follow apart.
HELP = """Find the best model with at most k features, and prove that no other is better.

\b
exactsel solve instances/diabetes.npz --loss huber --eps 1e-3
exactsel certify instances/diabetes.npz --support 2,3,8
"""

FORMER = {
    "near": "best --criterion objective --within X",
    "heuristic": "solve --method NAME",
    "status": "solve --status FILE",
    "tree": "play --dot",
}
"""Commands of earlier days, and what does their work."""


class Carried(Exception):
    """An exception on its way past click, which would take every EOFError for Ctrl-C and every EPIPE for stdout's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


ELSEWHERE = {
    "--family": "--loss", "--nvmax": "-k", "--y": "--target", "--alpha": "--lam", "--must-have": "--force-in",
    "--must-not": "--force-out", "--method": "--heuristic", "--methods": "--heuristic",
    "--confint": "--summary", "--ci": "--summary",
}  # fmt: skip
"""What other programs, other commands and earlier days call options."""


class LazyGroup(click.Group):
    """A group that lists commands, and groups of them, without importing them.

    Parameters
    ----------
    prefix : str
        The words before those of its commands in :data:`COMMANDS`.
    """

    def __init__(self, name: str | None = None, prefix: str = "", **options: Any) -> None:
        super().__init__(name, **options)
        self.prefix = prefix

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of that name, or the one that may have been meant."""
        if args and args[0] not in self._help_of_names() and not args[0].startswith("-"):
            ctx.fail(f"No such command '{args[0]}'{_meant(args[0], self.list_commands(ctx))}.")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order they are meant to be met."""
        return list(self._help_of_names())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command, or make a group."""
        words = f"{self.prefix}{name}"
        if words in GROUPS:
            return LazyGroup(name, help=GROUPS[words], prefix=f"{words} ")
        if words not in COMMANDS:
            return None
        if words in INSTALLED_APART:
            from exactsel.cli.installed_apart import command_of

            return command_of(words, COMMANDS[words])
        command: click.Command = import_module(f"exactsel.cli.{words.replace(' ', '.')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help texts from the tables above, so that ``--help`` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._help_of_names().items()))

    def _help_of_names(self) -> dict[str, str]:
        """What follows the prefix on a command line, and what it is for."""
        included = {words: text for words, text in COMMANDS.items() if words.startswith(self.prefix)}
        texts = {words.removeprefix(self.prefix): text for words, text in included.items()}
        texts = {name: text for name, text in texts.items() if " " not in name}
        return texts if self.prefix else texts | GROUPS


def _meant(name: str, names: list[str]) -> str:
    """The hint to a command of like name, here or in a group."""
    from exactsel.errors import did_you_mean

    if name in FORMER:
        return f"; did you mean 'exactsel {FORMER[name]}'"
    full = next((words for words in COMMANDS if words.split()[-1] == name), None)
    return did_you_mean(name, names) if full is None else f"; did you mean 'exactsel {full}'"


class ProgramGroup(LazyGroup):
    """The program itself."""

    def invoke(self, ctx: click.Context) -> int | None:
        """Run the command; :func:`main`, not click, distinguishes its exceptions."""
        from exactsel.errors import at_command_line

        try:
            with at_command_line():
                code: int | None = super().invoke(ctx)
                return code
        except (EOFError, OSError) as error:
            raise Carried(error) from error


@click.group(cls=ProgramGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="exactsel")
def cli() -> None:
    """Subset selection solved exactly."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code.

    Without ``arguments`` the process is taken to be ours: Ctrl-C ends it within a second, at any moment.
    """
    try:
        code = _guarded(arguments)
    except KeyboardInterrupt:
        code = _complain("interrupted.", 130)
    if arguments is None and (code == 130 or interrupts.compiles_on()):
        _end_without_waiting(code if isinstance(code, int) else 0)
    sys.exit(code if isinstance(code, int) else 0)


def _guarded(arguments: list[str] | None) -> int | None:
    if arguments is None:
        _open_standard_streams()
        from exactsel.cli.interrupting import guard

        guard()
    from exactsel.cli.output import Stdout, noting_what_is_unwritten

    before, stdout = sys.stdout, Stdout(sys.stdout)
    sys.stdout = stdout
    try:
        with noting_what_is_unwritten() as unwritten:
            code = _run(arguments)
            stdout.flush()
            unwritten.sentences.extend([stdout.sentence] if stdout.sentence is not None else [])
            for sentence in unwritten.sentences:
                _complain(f"Error: {sentence}", 0)
            return unwritten.code(code)
    finally:
        sys.stdout = before


def _open_standard_streams() -> None:
    """Open what the process was started without, lest the next file opened be taken for its stdout or stderr."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the process ends)


def _run(arguments: list[str] | None) -> int | None:
    """The exit code of the command the arguments name."""
    from exactsel.cli.output import UNWRITTEN
    from exactsel.errors import ExactselError, OutputError
    from exactsel.files import full_disk

    try:
        try:
            code: int | None = cli.main(args=arguments, prog_name="exactsel", standalone_mode=False)
            return code
        except Carried as carried:
            raise carried.error from None
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _complain("interrupted.", 130)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption) and (hint := _hint(error)):
            name = error.option_name
            error = click.NoSuchOption(name, message=f"No such option '{name}'; {hint}.", ctx=error.ctx)
        stream = io.StringIO()
        error.show(stream)
        with contextlib.suppress(OSError, ValueError):
            say(stream.getvalue().rstrip("\n"), err=True)
        return error.exit_code
    except OutputError as error:
        return _complain(f"Error: {error}", 2 if error.misnamed else UNWRITTEN)
    except ExactselError as error:
        return _complain(f"Error: {error}", 2)
    except MemoryError:
        return _complain("Error: this takes more memory than there is; give fewer rows or features, or a smaller k.", 2)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "numba":
            return _complain("Error: this problem needs numba, which is not installed; run: pip install numba.", 2)
        full = full_disk(error) if isinstance(error, OSError) else None
        if full is not None:
            return _complain(f"Error: {full}", UNWRITTEN)
        if os.environ.get("EXACTSEL_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(".")
        return _complain(f"Internal error: {what}. Set EXACTSEL_DEBUG=1 to see where; please report it.", 70)


def _hint(error: click.NoSuchOption) -> str:
    """Where the option is that a command lacks, or what it is called; empty where that is not known."""
    name = ELSEWHERE.get(error.option_name, error.option_name)
    parameters = () if error.ctx is None else error.ctx.command.params
    if any(name in parameter.opts for parameter in parameters):
        return f"it is {name} here"
    return "exactsel solve -k K --summary prints the summary of one model" if name == "--summary" else ""


def _end_without_waiting(code: int) -> None:
    """End the process although threads still compile kernels that are not needed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _complain(message: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):  # with stderr gone, the exit code is all that is left
        say_line(message)
    return code
