"""Every command with every option that says which problem is meant, on small healthy files: nothing ends in a fault."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from command_line import COMMAND
from hypothesis import settings

from exactsel.cli.main import main
from exactsel.data.instance import Instance, write_instance

RNG = np.random.default_rng(3)
A = np.round(RNG.standard_normal((14, 3)), 2)
LABELS = np.where(A[:, 0] + RNG.standard_normal(14) > 0, 1.0, -1.0)

CHOICES: dict[str, list[list[str]]] = {
    "target": [["--target", "b"], ["--target", "0"]],
    "drop": [["--drop", "b"]],
    "factors": [["--factors", "cat"]],
    "formula": [["--formula", "y ~ a*b"]],
    "missing": [["--missing", "median"], ["--missing", "drop-columns"]],
    "decimal": [["--decimal", "."], ["--decimal", ","]],
    "encoding": [["--encoding", "latin-1"]],
    "groups": [["--groups", "g=a,b"]],
    "nonnegative": [["--nonnegative", "all"], ["--nonnegative", "0,1"]],
    "bounds": [["--bounds", "bounds.csv"]],
    "max_coef": [["--max-coef", "5"]],
    "sum_to": [["--sum-to", "1"]],
    "equality": [["--equality", "a - b = 0"]],
    "per_group": [["--per-group", "1"], ["--per-group", "2"]],
    "hierarchy": [["--hierarchy", "parents.txt"], ["--hierarchy", "names"]],
    "not_both": [["--not-both", "a,b"], ["--not-both", "a,b", "--not-both", "c,a"]],
    "loss": [["--loss", "huber"], ["--loss", "logistic"]],
    "force_in": [["--force-in", "a"]],
    "force_out": [["--force-out", "b"]],
    "intercept": [["--intercept"]],
    "scale": [["--scale"]],
    "weights": [["--weights", "weights.txt"]],
    "offset": [["--offset", "weights.txt"]],
    "delta": [["--delta", "0.5"]],
}
"""The options of a problem beside the instance, k and lam, each as it may be given."""

COMMAND_LINES = {
    "solve": ["solve", "IN", "--quiet"],
    "certify": ["certify", "IN", "--support", "a", "--quiet"],
    "verify": ["verify", "proof.exsel", "IN"],
    "solve --method": ["solve", "IN", "--method", "METHOD", "--quiet"],
    "compare": ["compare", "IN", "--heuristic", "METHOD", "--time-limit", "2"],
    "path": ["path", "IN", "--k-max", "2", "--near", "0.1"],
    "best": ["best", "IN", "--top", "3", "--summary"],
    "best --within": ["best", "IN", "--criterion", "objective", "--within", "0.1"],
    "info": ["info", "IN"],
    "convert": ["data", "convert", "IN", "out.npz"],
    "play": ["play", "IN", "--html", "out.html", "--node-limit", "9"],
}
NO_PROBLEM = {"fuzz", "generate", "gram", "instances", "plugins", "reduce", "sweep", "warmup"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("smoke")
    rows = [f"{a},{b},{c},{('red', 'blue', 'green')[i % 3]},{y}" for i, ((a, b, c), y) in enumerate(zip(A.tolist(),
            LABELS.tolist(), strict=True))]  # fmt: skip
    (made / "table.csv").write_text("\n".join(["a,b,c,cat,y", *rows]) + "\n")
    write_instance(made / "plain.npz", Instance(A, LABELS, k=1, lam=0.1, feature_names=("a", "b", "c")))
    write_instance(made / "grouped.npz", Instance(A, LABELS, k=1, lam=0.1, feature_names=("a", "b", "c"), groups=("g",
            "g", "")))  # fmt: skip
    np.save(made / "matrix.npy", A)
    (made / "weights.txt").write_text("\n".join(["1", "2"] * 7))
    (made / "bounds.csv").write_text("column,lower,upper\n0,-0.1,0.5\n1,,0\n")
    (made / "parents.txt").write_text("weak\nc: a, b\n")
    (made / "proof.exsel").write_bytes(b"nothing")
    return made


SINGLE = [given for choices in CHOICES.values() for given in choices]
PAIRS = [one[0] + two[0] for one, two in itertools.combinations(CHOICES.values(), 2)]


def end(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_every_command_and_every_option_of_a_problem_is_tried():
    assert {name.split()[0] for name in COMMAND_LINES} | NO_PROBLEM == {*COMMAND}
    known = {parameter.name for parameter in COMMAND["info"].params}
    assert known - {*CHOICES} == {"instance", "problem", "k", "lam", "root", "as_json"}


def line_of(command: str, family: str, name: str, options: list[str]) -> list[str]:
    method = "greedy-css" if family == "css" else "forward"
    line = [{"IN": name, "METHOD": method}.get(word, word) for word in COMMAND_LINES[command]]
    line += ["--cv", "2"] if command == "path" and family == "regression" else []
    line += ["-k", "2", "--problem", family, *options]
    line += ["--drop", "cat"] if name == "table.csv" and not {"cat", "--drop"} & {*options} else []
    line += ["--lam", "0.1"] if family == "regression" else []
    limited = command in ("solve", "certify", "play", "path", "best", "best --within")
    return [*line, "--time-limit", "5"] if limited else line


def try_all(command, family, option_sets, capsys):
    for number, options in enumerate(option_sets):
        name = "table.csv" if "cat" in options else ("table.csv", "grouped.npz", "plain.npz")[number % 3]
        line = line_of(command, family, name, options)
        code, said = end(line), capsys.readouterr()
        assert code in (0, 1, 2), (line, said.err)
        assert code != 2 or said.err.splitlines()[-1].startswith("Error: "), (line, said.err)
        if not options and command != "verify" and (command, family) != ("best", "css"):
            assert code in (0, 1), (line, said.err)


@pytest.fixture
def there(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)


@pytest.mark.parametrize("family", ["regression", "css"])
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_no_option_is_a_fault(command, family, there, capsys):
    """A third of the options, another one for each command: tests/use/test_command_matrix.py looks at figures, too."""
    first = [*COMMAND_LINES].index(command) % 3
    try_all(command, family, [[], *(SINGLE[first::3] if settings().derandomize else SINGLE)], capsys)


@pytest.mark.long
@pytest.mark.parametrize("family", ["regression", "css"])
@pytest.mark.parametrize("command", COMMAND_LINES)
def test_no_two_options_are_a_fault(command, family, there, capsys):
    try_all(command, family, PAIRS, capsys)
