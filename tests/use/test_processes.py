"""Processes that answer: those that die, hang, or are asked to end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from clocks import HANG, wait_for

from exactsel.processes import DIED, HUNG, READY, UNREADY, answered

ECHO = "import sys\nfor line in sys.stdin:\n    print(line.strip() * 2, flush=True)\n"

FRAGILE = """
import os, pathlib, sys, time
mark = pathlib.Path(sys.argv[1])
for line in sys.stdin:
    if line == "die\\n":
        sys.exit(9)
    if line == "hang\\n":
        time.sleep(10**6)
    if line == "half\\n":
        os.write(1, b"no en")
        sys.exit(7)
    if line == "once\\n" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    print("well", flush=True)
"""

SERVING = """
import sys, threading, time
from exactsel.processes import serve
print("noise", flush=True)
def answer(line):
    print("more noise")
    if line == "stay\\n":
        sys.stderr.write("here\\n")
        sys.stderr.flush()
        time.sleep(10**6)
    return line.strip().upper()
serve(answer)
"""


def never():
    return False


def command(script, *arguments):
    return [sys.executable, "-c", script, *map(str, arguments)]


@pytest.mark.parametrize("jobs", [1, 3, 9])
def test_every_question_is_answered_once(jobs):
    questions = [str(number) for number in range(7)]
    found = sorted((answer.number, answer.line) for answer in answered(command(ECHO), questions, jobs, never))
    assert found == [(number, f"{number}{number}\n") for number in range(7)]


def test_one_that_dies_or_hangs_is_replaced_and_harms_no_other(tmp_path):
    questions, seconds = ["a", "die", "b", "hang", "once", "half", "c"], [None, None, None, 0.2, None, None, None]
    found = {}
    for answer in answered(command(FRAGILE, tmp_path / "mark"), questions, 2, never, seconds, tries=2):
        found[questions[answer.number]] = answer
    assert {name for name, answer in found.items() if answer.line == "well\n"} == {"a", "b", "c", "once"}
    assert (found["die"].trouble, found["die"].code) == (DIED, 9)
    assert (found["half"].trouble, found["half"].code) == (DIED, 7)
    assert found["hang"].trouble == HUNG


def test_a_command_that_cannot_be_started_is_told(tmp_path):
    (answer,) = answered([str(tmp_path / "nothing")], ["a"], 1, never)
    assert (answer.trouble, answer.code) == (UNREADY, None)
    (answer,) = answered(command("raise SystemExit(3)"), ["a"], 1, never, greeting=READY)
    assert (answer.trouble, answer.code) == (UNREADY, 3)


def test_nobody_waits_for_what_is_ended(tmp_path):
    answers = answered(command(FRAGILE, tmp_path / "mark"), ["a", "hang", "hang"], 3, lambda: bool(found))
    found = []
    for answer in answers:
        found.append(answer.line)
    assert found == ["well\n"]


def test_one_that_serves_answers_and_lets_libraries_print():
    answers = answered(command(SERVING), ["a", "b"], 1, never, greeting=READY)
    assert [answer.line for answer in answers] == ["A\n", "B\n"]


@pytest.mark.skipif(os.name == "nt", reason="select of POSIX")
def test_one_that_serves_ends_with_whoever_asks_in_the_middle_of_an_answer():
    with subprocess.Popen(command(SERVING), stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["noise\n", f"{READY}\n"]
        process.stdin.write("stay\n")
        process.stdin.flush()
        assert process.stderr.readline() == "here\n"
        process.stdin.close()
        assert wait_for(lambda: process.poll() is not None), HANG
    assert process.returncode == 0
