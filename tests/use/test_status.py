"""``exactsel solve --status``: how far a search, a path or a list has come that saves itself."""

from __future__ import annotations

import pytest
from command_line import TWINS

from exactsel.errors import at_command_line
from exactsel.solving.status import status_of

SAVED = {
    "solve": ["solve", TWINS, "--node-limit", "0", "--quiet"],
    "path": ["path", TWINS, "--k-max", "2"],
    "near": ["best", TWINS, "--criterion", "objective", "--within", "0.1"],
}


@pytest.mark.smoke
@pytest.mark.parametrize("command", SAVED)
def test_what_a_checkpoint_says(run, tmp_path, command):
    file = tmp_path / "run.ckpt"
    run(*SAVED[command], "--checkpoint", file)
    shown = run("solve", "--status", file)
    assert (shown.code, shown.err) == (0, "")
    with at_command_line():
        assert shown.out.splitlines() == [f"{name:<9} {value}" for name, value in status_of(file).lines()]
    for words in (["--status", file, "--json"], ["--json", "--status", file]):
        shown = run("solve", *words)
        assert (shown.code, shown.err) == (0, "")
        assert shown.json == status_of(file).as_dict()


def test_an_instance_is_needed_for_all_else(run):
    for words in ([], ["-k", 2], ["--json"]):
        shown = run("solve", *words)
        assert (shown.code, shown.out) == (2, "")
        assert "Missing argument 'INSTANCE'" in shown.err


def test_nothing_else_may_be_asked(run, tmp_path):
    run("solve", TWINS, "--quiet", "--checkpoint", tmp_path / "run.ckpt")
    for words, name in (
        ([TWINS], "INSTANCE"),
        (["-k", 2], "--k"),
        (["--no-intercept"], "--intercept"),
        (["--quiet"], "--quiet"),
    ):
        for line in ([*words, "--status", tmp_path / "run.ckpt"], ["--status", tmp_path / "run.ckpt", *words]):
            shown = run("solve", *line)
            assert (shown.code, shown.out) == (2, "")
            assert f"searches nothing, but {name} is given; leave it out.\n" in shown.err


def test_what_is_no_checkpoint_is_refused(run, tmp_path):
    (tmp_path / "other").write_text("something else")
    for name in ("none", "other"):
        shown = run("solve", "--status", tmp_path / name)
        assert (shown.code, shown.out) == (2, "")
        assert shown.err.startswith("Error: ")
        assert name in shown.err
