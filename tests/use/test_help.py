"""Help, the version, groups of commands, and what is said of commands that are not there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from clocks import HANG
from command_line import CALLED, COMMAND, TWINS, start, texts_of_help

from exactsel import __version__, registry
from exactsel.cli.constraint_options import NAMES as CONSTRAINTS
from exactsel.cli.helping import RARE, Command
from exactsel.cli.main import COMMANDS, GROUPS
from exactsel.cli.options import KNOW_LIMITS


def test_the_group(run):
    shown = run("--help")
    assert shown.code == 0
    assert shown.err == ""
    top = {name: text for name, text in COMMANDS.items() if " " not in name} | GROUPS
    assert [line.split()[0] for line in shown.out.partition("Commands:\n")[2].splitlines()] == [*top]
    assert all(f"  {name} " in shown.out and text in shown.out for name, text in top.items())
    assert "\n  exactsel solve instances/diabetes.npz --loss huber --eps 1e-3\n" in shown.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command(run, command):
    for flag in ("--help", "-h"):
        shown = run(*command.split(), flag)
        assert shown.code == 0, shown.err
        assert shown.out.startswith(f"Usage: exactsel {command} ")
        assert shown.err == ""


@pytest.mark.parametrize("group", GROUPS)
def test_the_groups_within(run, group):
    for flag in ("--help", "-h"):
        shown = run(group, flag)
        assert shown.code == 0
        assert shown.out.startswith(f"Usage: exactsel {group} ")
        within = {name.split()[1]: text for name, text in COMMANDS.items() if name.startswith(f"{group} ")}
        assert [line.split()[0] for line in shown.out.partition("Commands:\n")[2].splitlines()] == [*within]
        assert all(text in shown.out for text in within.values())
    shown = run(group)
    assert (shown.code, shown.out) == (2, "")
    assert f"Usage: exactsel {group} " in shown.err


def test_a_command_that_is_not_there(run):
    for words, hint in (
        (["convert"], "'convert'; did you mean 'exactsel data convert'"),
        (["data", "warmup"], "'warmup'; did you mean 'exactsel dev warmup'"),
        (["dev", "solve"], "'solve'; did you mean 'exactsel solve'"),
        (["near"], "'near'; did you mean 'exactsel best --criterion objective --within X'"),
        (["heuristic"], "'heuristic'; did you mean 'exactsel solve --method NAME'"),
        (["tree"], "'tree'; did you mean 'exactsel play --dot'"),
        (["solv"], "'solv'; did you mean 'solve'"),
        (["dev", "fuz"], "'fuz'; did you mean 'fuzz'"),
        (["data", "spam"], "'spam'"),
    ):
        shown = run(*words, "x")
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.splitlines()[-1] == f"Error: No such command {hint}."


@pytest.mark.parametrize("command", ["solve", "path", "compare", "info"])
def test_help_says_what_options_are_about(run, command):
    shown = run(command, "--help").out
    titles = [line for line in shown.splitlines() if line[:1].isalpha() and line.endswith(":")]
    order = "Data Problem Constraints Limits Workers Saving Method Search Output Examples"
    expected = [f"{title}:" for title in order.split()]
    assert titles == [title for title in expected if title in titles]
    assert {"Data:", "Problem:", "Output:"} <= {*titles}
    assert ".xlsx" in shown


def test_help_names_one_default(run):
    words = " ".join(run("solve", "--help-all").out.split())
    assert "--closer TEXT Ask this plug-in first to close regions. Default: only those that are built in. --" in words


@pytest.mark.parametrize("name", [name for name in KNOW_LIMITS if isinstance(COMMAND[name], Command)])
def test_help_says_where_the_options_of_constraints_are(run, name):
    said = " ".join(run(name, "--help").out.split())
    constraints = {*CONSTRAINTS, "nonnegative", "bounds", "max_coef", "sum_to", "equality"}
    hidden = {max(each.opts, key=len) for each in COMMAND[name].params if each.name in constraints}
    assert len(hidden) == len(constraints)
    assert {flag for flag in hidden if f"{flag})" in said or f"{flag}," in said} == hidden
    assert "--help-all shows these options" in said
    assert "shows these options" not in run(name, "--help-all").out


@pytest.mark.parametrize("name", [name for name, command in COMMAND.items() if isinstance(command, Command)])
def test_rare_options_are_shown_where_all_are_asked_for(run, name):
    command, words = COMMAND[name], CALLED[name]
    options = {each.name: max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)}
    rare = {flag for each, flag in options.items() if each in RARE}
    usual = run(*words, "--help")
    listed = {word for line in usual.out.splitlines() for word in line.split()[:3] if line.startswith("  -")}
    assert {flag for flag in options.values() if flag in listed} == {*options.values()} - rare
    shown = run(*words, "--help-all")
    if not rare:
        assert shown.code == 2
        assert "--help-all" not in usual.out
        return
    assert "  --help-all " in usual.out
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"Usage: exactsel {' '.join(words)} ")
    listed = {word for line in shown.out.splitlines() for word in line.split()[:3] if line.startswith("  -")}
    assert {*options.values()} <= listed
    assert run(*words, "--help").out == usual.out


def test_most_people_need_about_twenty_options_of_solve():
    assert len([each for each in COMMAND["solve"].params if each.name not in RARE]) <= 25


def test_examples_of_the_help_run(run, monkeypatch, tmp_path):
    (tmp_path / "instances").symlink_to(Path(TWINS).resolve().parent)
    monkeypatch.chdir(tmp_path)
    for line in COMMAND["solve"].examples:
        assert run(*shlex.split(line)).code in ((0, 1) if "--method" in line else (0,)), line


VERBS = (
    "Accept Add Allow Ask Bound Check Choose Compare Compile Continue Convert Copy Count Cross-validate "
    "Dispatch Draw End Expand Find Force Handle Judge Keep Leave Make List Predict Print Read Recompute Reduce "
    "Refuse Run Save Scale Search Seed Select Set Show Skip Solve Start State Stop Store Treat Try Use "
    "Weight Write "
)
"""The imperatives with which a help text may begin."""


def test_help_texts_are_plain_sentences():
    for where, text in texts_of_help():
        text = " ".join(text.split())
        assert "below" in where or text.split()[0].rstrip(",") in VERBS.split(), f"{where} begins with no verb: {text}"
        assert text.endswith("."), f"{where} ends without a full stop: {text}"
        assert all(len(sentence.split()) <= 25 for sentence in re.split(r"(?<=[.]) ", text)), (where, text)


def test_nothing(run):
    shown = run()
    assert shown.code == 2
    assert shown.out == ""
    assert "Usage: exactsel" in shown.err


def test_version(run):
    assert run("--version").out == f"exactsel, version {__version__}\n"
    assert start("--version").stdout == f"exactsel, version {__version__}\n"


@pytest.mark.parametrize("group", [[], *([name] for name in GROUPS)])
def test_help_is_light(group):
    probe = (
        "import sys\nfrom exactsel.cli.main import main\n"
        f"try: main({[*group, '--help']})\nexcept SystemExit as ended: assert ended.code == 0\n"
        "heavy = {'numba', 'llvmlite', 'cvxpy', 'numpy', 'scipy', 'networkx', 'matplotlib', 'exactsel.problem'}\n"
        "sys.stderr.write(repr(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=HANG, check=True)
    assert "Usage: exactsel" in done.stdout
    assert done.stderr == "[]"


def test_plugins(run):
    shown = run("dev", "plugins")
    assert shown.code == 0
    rows = [line.split() for line in shown.out.splitlines()]
    listed = {kind: [row[1] for row in rows if row[0] == kind] for kind in {row[0] for row in rows}}
    assert listed == {kind: known for kind in registry.KINDS if (known := registry.names(kind))}
    assert {"quadratic", "huber", "logistic"} <= {*listed["losses"]}
    assert {"split", "apg", "fit", "pdal", "supergradient", "cvxpy"} <= {*listed["bounds"]}
