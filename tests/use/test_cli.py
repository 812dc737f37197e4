"""The command line: data on stdout, talk on stderr, exit codes, and one sentence for every bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clocks import HANG
from own_loss import PseudoHuber

from exactsel import Problem, __version__, _jit, load, registry, solve
from exactsel.cli import main as main_module
from exactsel.cli.main import COMMANDS
from exactsel.cli.main import main as run_command_line
from exactsel.cli.options import progress_log
from exactsel.result import Termination

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
TWINS = str(INSTANCES / "twins.npz")
LABELS = str(INSTANCES / "labels.npz")
OUTLIER = str(INSTANCES / "outlier.npz")
PROMISED_KEYS = {
    "upper", "lower", "gap", "rel_gap", "claim", "termination", "support", "coef", "nodes", "bound_calls", "time",
    "times", "n", "d", "k", "loss", "lam", "eps", "rel_eps", "tree_hash",
}  # fmt: skip


class Outcome:
    """Exit code and streams of one command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert "Traceback" not in out + err

    @property
    def json(self):
        """What is on stdout, refusing NaN, Infinity and anything besides one object."""

        def refuse(word):
            raise AssertionError(f"{word} is not JSON")

        value = json.loads(self.out, parse_constant=refuse)
        assert isinstance(value, dict)
        assert self.out.count("\n") == 1
        return value


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process, through the very function the console script calls."""
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            run_command_line([str(argument) for argument in arguments])
        return Outcome(ended.value.code, *capsys.readouterr())

    return call


def start(*arguments: object, **options) -> subprocess.CompletedProcess:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "exactsel", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, **options)
    assert "Traceback" not in done.stdout + done.stderr
    return done


@pytest.fixture
def file(tmp_path):
    """An instance file with the given arrays."""

    def write(**arrays) -> Path:
        rng = np.random.default_rng(4)
        np.savez(tmp_path / "data.npz", **{"A": rng.standard_normal((9, 4)), "y": rng.standard_normal(9)} | arrays)
        return tmp_path / "data.npz"

    return write


class TestHelp:
    def test_the_group(self, run):
        shown = run("--help")
        assert shown.code == 0
        assert shown.err == ""
        assert all(f"  {name} " in shown.out and text in shown.out for name, text in COMMANDS.items())
        assert "\n  exactsel solve instances/diabetes.npz --loss huber --eps 1e-3\n" in shown.out

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command(self, run, command):
        for flag in ("--help", "-h"):
            shown = run(command, flag)
            assert shown.code == 0
            assert shown.out.startswith(f"Usage: exactsel {command} ")
            assert shown.err == ""

    def test_every_option_is_explained(self):
        for command in COMMANDS:
            made = main_module.cli.get_command(None, command)
            unexplained = [p.name for p in made.params if p.param_type_name == "option" and not p.help]
            assert unexplained in ([], ["seed"], ["style"])

    def test_nothing(self, run):
        shown = run()
        assert shown.code == 2
        assert shown.out == ""
        assert "Usage: exactsel" in shown.err

    def test_version(self, run):
        assert run("--version").out == f"exactsel, version {__version__}\n"
        assert start("--version").stdout == f"exactsel, version {__version__}\n"

    def test_help_is_light(self):
        probe = (
            "import sys\nfrom exactsel.cli.main import main\n"
            "try: main(['--help'])\nexcept SystemExit as ended: assert ended.code == 0\n"
            "heavy = {'numba', 'llvmlite', 'cvxpy', 'numpy', 'scipy', 'networkx', 'matplotlib', 'exactsel.problem'}\n"
            "sys.stderr.write(repr(sorted(heavy & set(sys.modules))))"
        )
        done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=HANG, check=True)
        assert "Usage: exactsel" in done.stdout
        assert done.stderr == "[]"

    def test_plugins(self, run):
        shown = run("plugins")
        assert shown.code == 0
        rows = [line.split() for line in shown.out.splitlines()]
        listed = {kind: [row[1] for row in rows if row[0] == kind] for kind in {row[0] for row in rows}}
        assert listed == {kind: registry.names(kind) for kind in registry.KINDS}
        assert {"quadratic", "huber", "logistic"} <= {*listed["losses"]}
        assert {"apg", "fit", "pdal", "supergradient", "cvxpy"} <= {*listed["bounds"]}


class TestSolve:
    def test_json_is_one_object_on_stdout(self, run):
        shown = run("solve", TWINS, "--json")
        assert shown.code == 0
        result = shown.json
        assert {*result} >= PROMISED_KEYS
        expected = solve(load(TWINS))
        assert result["upper"] == expected.upper
        assert result["lower"] <= result["upper"] == pytest.approx(0.872779491543, rel=1e-10)
        assert result["gap"] == result["upper"] - result["lower"]
        assert result["rel_gap"] == result["gap"] / result["upper"]
        assert (result["claim"], result["tree_hash"]) == (expected.claim.value, expected.tree_hash)
        assert result["support"] == [j for j, value in enumerate(result["coef"]) if value]
        assert (result["n"], result["d"], result["k"], result["lam"]) == (8, 5, 2, 0.1)
        assert (result["loss"], result["eps"], result["rel_eps"]) == ("quadratic", 0.0, 1e-6)
        assert len(result["coef"]) == 5
        assert result["time"] == result["times"]["total"] > 0
        assert "gap = upper - lower" in result["gap_formula"]

    def test_flags_arguments_and_keys_are_the_same_words(self, run):
        result = run("solve", OUTLIER, "--json").json
        known = {*result, *result["settings"], *result["loss_parameters"]}
        talk = {"instance", "target", "drop", "one_hot", "trace", "report", "as_json", "quiet", "log_interval"}
        assert {p.name for p in main_module.cli.get_command(None, "solve").params} - talk <= known

    def test_table_on_stdout_and_talk_on_stderr(self, run):
        shown = run("solve", TWINS)
        assert shown.code == 0
        table = [line.split() for line in shown.out.splitlines()]
        assert table[0] == ["column", "name", "coefficient"]
        assert [row[:2] for row in table[1:]] == [["0", "signal"], ["1", "twin"]]
        assert float(table[1][2]) == pytest.approx(1.912562493)
        assert shown.err.startswith(f"exactsel {__version__}   n=8 d=5 k=2   10 supports\n")
        for text in (
            "minimise L(Ax) + (lam/2)||x||^2, L a sum over rows, quadratic, lam=0.1\n",
            "gap = (upper - lower) / |upper|   stop at eps=0 or rel_eps=1e-06",
            "claim        optimal: ",
            "termination  tree_exhausted: ",
            "support      0, 1  (signal, twin)",
            "(relative to |upper|)",
        ):
            assert text in shown.err
        rows = [line.split() for line in shown.err.splitlines() if line.endswith("s") and "e" in line.split()[-2]]
        assert rows

    def test_quiet(self, run):
        loud, quiet = run("solve", TWINS), run("solve", TWINS, "--quiet")
        assert quiet.err == ""
        assert quiet.out == loud.out
        silent = run("solve", TWINS, "--quiet", "--json")
        assert silent.err == ""
        assert silent.json["claim"] == "optimal"

    def test_a_gap_that_is_left_is_exit_code_1(self, run):
        shown = run("solve", TWINS, "--node-limit", 0, "--json")
        assert shown.code == 1
        assert (shown.json["claim"], shown.json["termination"], shown.json["nodes"]) == ("bounded", "node_limit", 0)
        assert "claim        bounded: no model is better by more than the gap" in shown.err

    def test_a_wide_tolerance_is_within_eps(self, run):
        shown = run("solve", TWINS, "--eps", 100, "--json")
        assert shown.code == 0
        assert (shown.json["claim"], shown.json["eps"]) == ("within_eps", 100.0)

    @pytest.mark.parametrize("limit", ["--time-limit", "--node-limit"])
    @pytest.mark.parametrize("instance", [TWINS, LABELS, OUTLIER])
    def test_json_is_strict_even_when_nothing_was_done(self, run, limit, instance):
        shown = run("solve", instance, "--heuristic", "none", limit, 0, "--json")
        assert shown.code == 1
        assert shown.json["lower"] <= shown.json["upper"]
        assert shown.json["termination"] == limit[2:].replace("-", "_")

    def test_flags_override_the_file(self, run):
        result = run("solve", OUTLIER, "--json", "-k", 1, "--lam", 0.25, "--delta", 3, "--quiet").json
        assert (result["k"], result["lam"], result["loss_parameters"]) == (1, 0.25, {"delta": 3.0})
        result = run("solve", OUTLIER, "--json", "--loss", "quadratic", "--k", 3, "--quiet").json
        assert (result["k"], result["loss"], len(result["support"])) == (3, "quadratic", 3)
        assert run("solve", LABELS, "--json", "--loss", "logistic", "--lam", 2, "--quiet").json["lam"] == 2.0

    def test_k_beyond_d_warns_in_one_line(self, run):
        shown = run("solve", TWINS, "-k", 77, "--json")
        assert shown.err.splitlines()[0] == "Warning: k = 77 is more than the 5 columns of A; using k = 5."
        assert (shown.code, shown.json["k"]) == (0, 5)

    @pytest.mark.parametrize(
        ("option", "values"),
        [
            ("--tree", ["binary", "state-space"]),
            ("--bound", ["auto", "apg", "fit", "pdal", "supergradient", "cvxpy"]),
            ("--branching", ["auto", "half", "largest", "costliest"]),
            ("--frontier", ["best-first", "depth-first"]),
            ("--heuristic", ["none", "omp", "swap, htp", "dual-iht,forward,"]),
            ("--threads", [1, 2]),
            ("--batch", [1, 7]),
            ("--memory-limit", [1]),
            ("--seed", [12345]),
            ("--no-warm-start", [None]),
            ("--no-force-quit", [None]),
        ],
    )
    def test_every_choice_finds_the_optimum(self, run, option, values):
        for value in values:
            shown = run("solve", TWINS, option, *([] if value is None else [value]), "--json", "--quiet")
            assert shown.code == 0
            assert shown.json["upper"] == pytest.approx(0.872779491543, rel=1e-6)

    def test_settings_are_reported(self, run):
        settings = run("solve", TWINS, "--heuristic", "omp,swap", "--batch", 3, "--json").json["settings"]
        assert (settings["heuristics"], settings["batch"]) == (["omp", "swap"], 3)
        assert (settings["tree"], settings["bound"], settings["branching"]) == ("binary", "apg", "half")

    def test_rows_of_the_log(self, run, file):
        shown = run("solve", file(k=2, lam=0.1), "--log-interval", 0)
        rows = [line for line in shown.err.splitlines() if line.endswith("s") and line[:12].strip() in ("", "forward")]
        assert len(rows) >= 3
        header = next(line for line in shown.err.splitlines() if "nodes" in line and "lower" in line)
        assert header.split() == ["source", "nodes", "open", "depth", "lower", "upper", "gap", "time"]

    @pytest.mark.skipif(not _jit.ENABLED, reason="nothing is compiled")
    def test_compiling_for_a_loss_that_is_not_built_in_is_announced(self, capsys):
        arguments = {"quiet": False, "log_interval": 5.0, "eps": 0.0, "rel_eps": 1e-6}
        progress_log(Problem(np.eye(3), np.ones(3), 1, lam=1.0, loss=PseudoHuber(1.0)), arguments)
        assert "compiling kernels for pseudo-huber loss (in every process, as it is not" in capsys.readouterr().err

    def test_more_supports_than_a_float_can_count(self, run, file):
        data = file(A=np.eye(3, 1500), y=np.ones(3), k=300, lam=1.0)
        shown = run("solve", data, "--time-limit", 0, "--heuristic", "none")
        assert "2.48e+324 supports" in shown.err
        assert run("info", data, "--json").json["supports"] is None
        assert run("info", data, "--json").json["log10_supports"] == pytest.approx(324.394, abs=1e-3)

    def test_a_process_of_its_own(self):
        done = start("solve", TWINS, "--json", "--quiet")
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["tree_hash"] == solve(load(TWINS)).tree_hash
        assert start("solve", TWINS, "--node-limit", "0", "--quiet").returncode == 1
        missing = start("solve", "nowhere.npz")
        assert (missing.returncode, missing.stdout, missing.stderr.count("\n")) == (2, "", 1)

    @pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
    def test_a_reader_that_goes_away(self):
        command = [sys.executable, "-m", "exactsel", "solve", TWINS, "--json", "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.close()
            told = process.stderr.read()
        assert told == "Error: stdout was closed before everything was written; let its reader read to the end.\n"
        assert process.returncode == 74


BAD_OPTIONS = [
    (["--loss", "absolute"], "there is no loss called 'absolute'; known are: "),
    (["--tree", "oak"], "there is no tree called 'oak'; known are: binary, state-space."),
    (["--bound", "sky"], "there is no bound called 'sky'; known are: apg, "),
    (["--branching", "twig"], "there is no branching rule called 'twig'; known are: costliest, half, largest."),
    (["--frontier", "west"], "there is no frontier called 'west'; known are: best-first, depth-first, weighted."),
    (["--heuristic", "omp,luck"], "there is no heuristic called 'luck'; known are: "),
    (["-k", "-1"], "k is -1, but the number of columns cannot be negative."),
    (["--lam", "-1"], "lam is -1, but the ridge weight must be a finite number that is not negative."),
    (["--lam", "nan"], "lam is nan, but the ridge weight must be a finite number that is not negative."),
    (["--lam", "inf"], "lam is inf, but the ridge weight must be a finite number that is not negative."),
    (["--lam", "0", "--loss", "huber"], "lam is 0, which only quadratic loss allows; give a positive --lam for huber"),
    (["--delta", "1"], "delta is given, but quadratic loss has no such parameter; use --loss huber or drop delta."),
    (["--loss", "huber", "--delta", "0"], "delta is 0.0, but the Huber threshold must be a positive number"),
    (["--loss", "logistic"], "the target y holds the values "),
    (["--eps", "-1"], "eps is -1.0, but a tolerance must be a finite number that is not negative; set --eps."),
    (["--eps", "nan"], "eps is nan, but a tolerance must be a finite number that is not negative; set --eps."),
    (["--rel-eps", "inf"], "rel_eps is inf, but a tolerance must be a finite number that is not negative; set"),
    (
        ["--rel-eps", "-1e-9"],
        "rel_eps is -1e-09, but a tolerance must be a finite number that is not negative; set --rel-eps.",
    ),
    (["--time-limit", "-1"], "time_limit is -1.0, but seconds cannot be negative; set --time-limit."),
    (["--time-limit", "nan"], "time_limit is nan, but seconds cannot be negative; set --time-limit."),
    (["--node-limit", "-1"], "node_limit is -1, but it cannot be negative; set --node-limit."),
    (["--memory-limit", "0"], "memory_limit is 0.0, but it must be positive; set --memory-limit."),
    (["--threads", "0"], "threads is 0, but it must be at least 1; set --threads."),
    (["--batch", "0"], "batch is 0, but it must be at least 1; set --batch."),
    (["--bound", "pdal", "--lam", "0"], "the bound 'pdal' divides by lam, which is 0 here; use --bound fit, or give"),
]
BAD_FILES = [
    ({"A": np.array([[1, None]] * 9, dtype=object)}, "is a pickled object array, which is never opened because"),
    ({"A": np.full((9, 4), np.nan)}, "A holds 36 value(s) that are NaN or infinite; remove or fill in those entries"),
    ({"A": np.ones((9, 4)) * 1j}, "A holds complex numbers; only real numbers are supported."),
    ({"A": np.ones(9)}, "A has 1 dimension(s), expected a table of rows and columns (2 dimensions)."),
    ({"A": np.full((9, 2), "one")}, "A is not numeric; encode text and categories as numbers first."),
    ({"A": np.ones((0, 4)), "y": np.ones(0)}, "A is empty (shape 0 x 4); give at least one row and column."),
    ({"y": np.ones(8)}, "A has 9 rows but y has 8 entries; they must describe the same rows."),
    ({"k": None}, "k, the largest number of columns in the model, is missing; give -k or store k in the file."),
    ({"lam": None}, "lam, the ridge weight, is missing; give --lam (0 for none) or store lam in the file."),
    ({"k": 1.5}, "k is 1.5, but one whole number was expected"),
    ({"loss": "absolute"}, "there is no loss called 'absolute'"),
    ({"feature_names": ["a", "b"]}, "2 feature names were given for 4 columns; give one name per column."),
    ({"y": np.ones(9), "loss": "huber"}, "more than half of y has the same value"),
]
SEARCHING = ["solve", "tree", "certify"]
SUPPORT = {"certify": ["--support", "0"]}


class TestBadInput:
    def refuse(self, shown: Outcome, sentence: str) -> None:
        """Exit code 2, nothing on stdout, one sentence on stderr."""
        assert shown.code == 2
        assert shown.out == ""
        assert shown.err.startswith("Error: ")
        assert sentence in shown.err
        assert shown.err.count("\n") == 1
        assert shown.err.endswith(".\n")

    @pytest.mark.parametrize(("options", "sentence"), BAD_OPTIONS)
    def test_options(self, run, options, sentence):
        self.refuse(run("solve", TWINS, *options, "--quiet" if options[-1] == "0" else "--json"), sentence)

    @pytest.mark.parametrize("command", SEARCHING)
    @pytest.mark.parametrize(("options", "sentence"), BAD_OPTIONS[1:8:3])
    def test_options_of_every_search(self, run, command, options, sentence):
        self.refuse(run(command, TWINS, *SUPPORT.get(command, []), *options), sentence)

    @pytest.mark.parametrize(("arrays", "sentence"), BAD_FILES)
    def test_files(self, run, file, arrays, sentence):
        arrays = {"k": 2, "lam": 0.5} | arrays
        path = file(**{name: value for name, value in arrays.items() if value is not None})
        self.refuse(run("solve", path), sentence)

    @pytest.mark.parametrize("command", [*SEARCHING, "info"])
    def test_files_that_are_none(self, run, tmp_path, command):
        options = SUPPORT.get(command, [])
        self.refuse(run(command, tmp_path / "nowhere.npz", *options), "there is no file")
        self.refuse(run(command, tmp_path, *options), "is a folder, but an instance is one file")
        (tmp_path / "garbage.npz").write_text("garbage")
        self.refuse(run(command, tmp_path / "garbage.npz", *options), "is not an .npz archive, despite its name")
        (tmp_path / "cut.npz").write_bytes(Path(TWINS).read_bytes()[:700])
        self.refuse(run(command, tmp_path / "cut.npz", *options), "is truncated or damaged")
        (tmp_path / "data.xlsx").write_text("1,2\n")
        self.refuse(run(command, tmp_path / "data.xlsx", *options), "is of no kind that is read; the kinds are .npz, ")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["solve"], "Missing argument 'INSTANCE'"),
            (["solve", TWINS, "extra"], "Got unexpected extra argument"),
            (["solve", TWINS, "-k", "two"], "'two' is not a valid integer"),
            (["solve", TWINS, "-k", "2.5"], "'2.5' is not a valid integer"),
            (["solve", TWINS, "--lam", "much"], "'much' is not a valid float"),
            (["solve", TWINS, "--node-limit", "1e3"], "'1e3' is not a valid integer"),
            (["solve", TWINS, "--log-interval", "-1"], "-1.0 is not in the range x>=0"),
            (["solve", TWINS, "--log-interval", "nan"], "nan is not a number of seconds."),
            (["solve", TWINS, "--fast"], "No such option"),
            (["solve", TWINS, "--eps"], "Option '--eps' requires an argument"),
            (["tree", TWINS, "--format", "bmp"], "'bmp' is not one of"),
            (["dissolve"], "No such command 'dissolve'"),
        ],
    )
    def test_wrong_usage(self, run, arguments, message):
        shown = run(*arguments)
        assert shown.code == 2
        assert shown.out == ""
        assert shown.err.splitlines()[-1].startswith("Error: ")
        assert message in shown.err.splitlines()[-1]

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ([], "the candidate is missing or given twice; give either --support 0,4,7 or --coef FILE."),
            (["--support", "0", "--coef", "x"], "the candidate is missing or given twice"),
            (["--support", "0,9"], "the support names column 9, but the columns are numbered 0 to 4; correct"),
            (["--support", "-1"], "the support names column -1, but the columns are numbered 0 to 4"),
            (["--support", "0,1,2"], "the support has 3 columns, but k is 2; give at most k columns or raise k."),
            (["--support", "0, 0"], "the support [0, 0] names a column twice; give each column once."),
            (["--support", "signal,0"], "the support [0, 0] names a column twice; give each column once."),
            (["--support", "noise"], "there is no column called 'noise'; give a number from 0 to 4 or a known name."),
            (["--support", "0.5"], "there is no column called '0.5'"),
            (["--coef", "nowhere.txt"], "nowhere.txt does not exist; give the file that holds the coefficients."),
            (["--coef", str(INSTANCES)], "does not hold plain numbers; give a .npy vector or text with one number"),
        ],
    )
    def test_candidates(self, run, options, sentence):
        self.refuse(run("certify", TWINS, *options), sentence)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("1 2 3", "3 coefficients were given for 5 columns; give one per column."),
            ("", "0 coefficients were given for 5 columns; give one per column."),
            ("a b c d e", "does not hold plain numbers; give a .npy vector or text with one number a line."),
            ("nan 0 0 0 0", "the coefficients hold NaN or infinite values; give finite numbers."),
            ("1 2 3 0 0", "the support has 3 columns, but k is 2; give at most k columns or raise k."),
        ],
    )
    def test_coefficient_files(self, run, tmp_path, text, sentence):
        (tmp_path / "coef.txt").write_text(text)
        self.refuse(run("certify", TWINS, "--coef", tmp_path / "coef.txt"), sentence)
        (tmp_path / "coef.npy").write_bytes(b"\x93NUMPY\1\0 not really")
        self.refuse(run("certify", TWINS, "--coef", tmp_path / "coef.npy"), "does not hold plain numbers")

    def test_pictures_and_places_to_write(self, run, tmp_path):
        self.refuse(run("tree", TWINS, "--format", "png"), "a png picture cannot go to stdout; give a file with -o.")
        self.refuse(run("tree", TWINS, "-o", tmp_path / "no" / "tree.dot"), "tree.dot cannot be written (No such file")
        self.refuse(run("generate", "huber", tmp_path / "no" / "x.npz"), "x.npz cannot be written (No such file")
        self.refuse(run("generate", "huber", tmp_path / "x.csv"), "must have a name that ends in .npz")
        self.refuse(run("generate", "spam", tmp_path / "x.npz"), "there is no generator called 'spam'; known are: ")
        self.refuse(run("generate", "huber", tmp_path / "x.npz", "--seed", "-1"), "the seed is -1")
        self.refuse(run("generate", "huber", tmp_path / "x.npz", "-k", 9, "--d", 3), "k=9 was asked for")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("lam", ["-1", "nan", "inf"])
    def test_an_instance_nobody_can_solve_is_not_written(self, run, tmp_path, lam):
        self.refuse(run("generate", "huber", tmp_path / "x.npz", "--lam", lam), "lam")

    @pytest.mark.parametrize("option", ["--time-limit", "--memory-limit"])
    def test_an_infinite_limit_is_none(self, run, option):
        assert run("solve", TWINS, option, "inf", "--json").json["settings"][option[2:].replace("-", "_")] is None

    def test_a_negative_seed(self, run):
        self.refuse(run("solve", TWINS, "--seed", "-1"), "seed is -1")


class TestInternalErrors:
    def test_one_sentence_and_exit_code_70(self, run, monkeypatch):
        def fail(*_args, **_options):
            raise RuntimeError("out of luck\nand more lines")

        monkeypatch.setattr("exactsel.solving.solve", fail)
        shown = run("solve", TWINS, "--quiet", "--json")
        assert (shown.code, shown.out) == (70, "")
        assert shown.err == (
            "Internal error: RuntimeError: out of luck. Set EXACTSEL_DEBUG=1 to see where; please report it.\n"
        )

    def test_the_place_is_shown_on_request(self, monkeypatch):
        def fail(*_args, **_options):
            raise RuntimeError("out of luck")

        monkeypatch.setattr("exactsel.solving.solve", fail)
        monkeypatch.setenv("EXACTSEL_DEBUG", "1")
        with pytest.raises(RuntimeError, match="out of luck"):
            run_command_line(["solve", TWINS, "--quiet"])

    def test_an_interrupt_outside_the_search_is_130(self, run, monkeypatch):
        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr("exactsel.data.reading.read_instance", interrupt)
        shown = run("solve", TWINS)
        assert (shown.code, shown.out, shown.err.splitlines()[-1]) == (130, "", "interrupted.")


class TestCertify:
    def test_the_optimum_is_certified(self, run):
        for support in ("0,1", "signal, twin", "1,0", "0,twin_again"):
            shown = run("certify", TWINS, "--support", support, "--json")
            assert shown.code == 0
            assert PROMISED_KEYS | {"candidate"} <= {*shown.json}
            candidate = shown.json["candidate"]
            assert candidate["value"] == pytest.approx(0.872779491543, rel=1e-10)
            assert (candidate["claim"], candidate["improved"], candidate["refitted"]) == ("optimal", False, True)

    def test_a_worse_model_is_exit_code_1(self, run):
        shown = run("certify", TWINS, "--support", "2")
        assert shown.code == 1
        assert "candidate    2   objective" in shown.out
        assert "compared     with all models of at most k = 2 columns (the candidate has 1)" in shown.out
        assert "a better model is known, see below" in shown.out
        assert "signal" in shown.out
        assert "gap = (upper - lower)" in shown.err

    def test_coefficients_from_files(self, run, tmp_path):
        best = solve(load(TWINS)).coef
        np.save(tmp_path / "coef.npy", best)
        np.savetxt(tmp_path / "coef.txt", best)
        np.savetxt(tmp_path / "row.txt", best[None, :])
        for name in ("coef.npy", "coef.txt", "row.txt"):
            shown = run("certify", TWINS, "--coef", tmp_path / name, "--json", "--quiet")
            assert (shown.code, shown.err) == (0, "")
            assert (shown.json["candidate"]["refitted"], shown.json["candidate"]["claim"]) == (False, "optimal")
        np.save(tmp_path / "coef.npy", 0.5 * best)
        shown = run("certify", TWINS, "--coef", tmp_path / "coef.npy", "--json")
        assert (shown.code, shown.json["candidate"]["improved"]) == (1, True)

    def test_the_empty_model(self, run):
        shown = run("certify", TWINS, "--support", "", "--json")
        assert (shown.code, shown.json["candidate"]["support"]) == (1, [])


class TestInfo:
    def test_text_and_json_agree(self, run):
        facts = run("info", TWINS, "--json").json
        lines = dict(line.split(maxsplit=1) for line in run("info", TWINS).out.splitlines())
        assert {*facts} == {*lines}
        assert (facts["n"], facts["d"], facts["k"], facts["loss"], facts["supports"]) == (8, 5, 2, "quadratic", 10)
        assert (facts["duplicate_columns"], facts["constant_columns"], facts["rank"]) == (1, 0, 4)
        assert facts["largest_correlation"] == pytest.approx(1.0)
        assert facts["problem_hash"] == load(TWINS).hash

    def test_a_file_without_parameters(self, run, file):
        facts = run("info", file(), "--json").json
        assert [facts[name] for name in ("k", "lam", "supports", "log10_supports", "problem_hash")] == [None] * 5
        facts = run("info", file(A=np.ones((9, 1))), "--json").json
        assert (facts["constant_columns"], facts["largest_correlation"]) == (1, None)

    def test_overrides(self, run):
        facts = run("info", OUTLIER, "-k", 1, "--lam", 2, "--delta", 4, "--json").json
        assert (facts["k"], facts["lam"], facts["delta"], facts["loss"]) == (1, 2.0, 4.0, "huber")
        shown = run("info", TWINS, "-k", 9)
        assert shown.err == "Warning: k = 9 is more than the 5 columns of A; using k = 5.\n"
        assert shown.code == 0


class TestGenerate:
    @pytest.mark.parametrize("name", ["huber", "logistic", "quadratic", "hard"])
    def test_a_file_that_can_be_solved(self, run, tmp_path, name):
        path = tmp_path / "made.npz"
        shown = run("generate", name, path, "--n", 30, "--d", 8, "-k", 2, "--seed", 5, "--lam", 0.5)
        assert (shown.code, shown.out) == (0, "")
        assert shown.err == f"{path}: {name}, n=30 d=8 k=2 lam=0.5 loss={load(path).loss.name}\n"
        problem = load(path)
        assert isinstance(problem, Problem)
        assert (problem.n, problem.d, problem.k, problem.lam) == (30, 8, 2, 0.5)
        assert run("solve", path, "--json", "--quiet").code == 0

    def test_same_seed_same_file(self, run, tmp_path):
        for number, seed in enumerate((1, 1, 2)):
            run("generate", "huber", tmp_path / f"{number}.npz", "--seed", seed)
        one, two, three = (load(tmp_path / f"{number}.npz").hash for number in range(3))
        assert one == two != three


class TestTree:
    def test_dot(self, run):
        shown = run("tree", TWINS)
        assert (shown.code, shown.err) == (0, "")
        assert shown.out.startswith("digraph search {\n")
        assert shown.out.rstrip().endswith("}")

    def test_json(self, run):
        tree = run("tree", TWINS, "--format", "json").json
        assert tree["nodes"][0]["id"] == 0
        assert {edge["child"] for edge in tree["edges"]} == {node["id"] for node in tree["nodes"]} - {0}

    @pytest.mark.parametrize(("style", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("dot", b"digraph")])
    def test_files(self, run, tmp_path, style, magic):
        shown = run("tree", TWINS, "--format", style, "-o", tmp_path / "tree")
        assert (shown.code, shown.out, shown.err) == (0, "", "")
        assert (tmp_path / "tree").read_bytes().startswith(magic)

    def test_interrupted(self, run, monkeypatch):
        def interrupted(*arguments, **options):
            result = solve(*arguments, **options)
            return replace(result, termination=Termination.INTERRUPTED)

        monkeypatch.setattr("exactsel.solving.solve", interrupted)
        shown = run("tree", TWINS)
        assert (shown.code, shown.out[:14]) == (130, "digraph search")

    def test_node_limit(self, run):
        assert len(run("tree", TWINS, "--format", "json", "--node-limit", 0).json["nodes"]) == 1
