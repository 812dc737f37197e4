"""``exactsel``: the commands, loaded when used, and the exit codes.

Exit codes: 0 the asked tolerance is proven; 1 finished honestly with a gap left; 2 wrong usage or unreadable input;
3 a proof was rejected; 70 internal error; 130 interrupted, with the result of that moment still written.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Any

import click

from exactsel import __version__
from exactsel.cli.talk import say, say_line

COMMANDS = {
    "solve": "Find the best model with at most k columns, with a certified gap.",
    "certify": "Say how far a given model is from optimal.",
    "verify": "Check a proof file that a solve has written.",
    "heuristic": "Run one approximate method, with a certified gap.",
    "compare": "Run many methods and the exact search, side by side.",
    "path": "Find the best model of every size, each with its certified gap.",
    "near": "List all models of k columns close to the best.",
    "info": "Say what a data file holds, and how hard the problem looks.",
    "convert": "Write any data file as an instance file, with k, lam and loss.",
    "generate": "Write a synthetic or classic instance.",
    "tree": "Show the explored search tree of a small run.",
    "play": "Write a page that plays a small search step by step.",
    "plugins": "List losses, bounds and other plug-ins, and where they come from.",
}

# The control character keeps the lines that follow apart.
HELP = """Subset selection solved exactly: the best model with at most k non-zero coefficients, with proof.

\b
exactsel solve instances/diabetes.npz --loss huber --eps 1e-3
exactsel certify instances/diabetes.npz --support 2,3,8
"""


class LazyGroup(click.Group):
    """Lists commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order they are meant to be met."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of one command."""
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"exactsel.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help texts from the table above, so that ``--help`` imports no command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="exactsel")
def cli() -> None:
    """Subset selection solved exactly."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line and end the process with its exit code."""
    from exactsel.errors import ExactselError

    try:
        code = cli.main(args=arguments, prog_name="exactsel", standalone_mode=False)
    except click.exceptions.Abort:
        code = _complain("interrupted.", 130)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"), err=True)
        code = error.exit_code
    except ExactselError as error:
        code = _complain(f"Error: {error}", 2)
    except MemoryError:
        code = _complain("Error: this takes more memory than there is; give fewer rows or columns, or a smaller k.", 2)
    except KeyboardInterrupt:
        code = _complain("interrupted.", 130)
    except BrokenPipeError:
        # The reader of stdout went away (as with `| head`); there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        if os.environ.get("EXACTSEL_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(".")
        code = _complain(f"Internal error: {what}. Set EXACTSEL_DEBUG=1 to see where; please report it.", 70)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str, code: int) -> int:
    say_line(message)
    return code
