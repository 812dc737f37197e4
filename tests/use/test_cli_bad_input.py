"""One sentence for every bad input of a command, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import INSTANCES, TWINS, Outcome

BAD_OPTIONS = [
    (["--loss", "absolute"], "there is no loss called 'absolute'; known are: "),
    (["--tree", "oak"], "there is no tree called 'oak'; known are: binary, state-space."),
    (["--bound", "sky"], "there is no bound called 'sky'; known are: apg, "),
    (["--branching", "twig"], "there is no branching rule called 'twig'; known are: costliest, half, largest."),
    (["--frontier", "west"], "there is no frontier called 'west'; known are: best-first, depth-first, weighted."),
    (["--heuristic", "omp,luck"], "there is no heuristic called 'luck'; known are: "),
    (["-k", "-1"], "k is -1, but the number of features cannot be negative."),
    (["--lam", "-1"], "lam is -1, but the ridge weight must be a finite number that is not negative."),
    (["--lam", "nan"], "lam is nan, but the ridge weight must be a finite number that is not negative."),
    (["--lam", "inf"], "lam is inf, but the ridge weight must be a finite number that is not negative."),
    (
        ["--loss", "huber", "--lam", "1e-70"],
        "lam is 1e-70, too small to compute with; give 0 or at least 1e-60.",
    ),
    (
        ["--delta", "1"],
        "delta is given, but quadratic loss has no such parameter; use --loss huber or leave delta out.",
    ),
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
    (["--hierarchy", ""], "the hierarchy cannot be read from "),
    (["--not-both", ""], "--not-both is empty, but a pair of columns was expected; write the two columns with a comma"),
    (["--bound", "pdal", "--lam", "0"], "the bound 'pdal' divides by lam, which is 0 here; use --bound fit, or give"),
]
BAD_FILES = [
    ({"A": np.array([[1, None]] * 9, dtype=object)}, "is a pickled object array, which is never opened because"),
    ({"A": np.full((9, 4), np.nan)}, "A holds 36 value(s) that are NaN or infinite; remove or fill in those entries"),
    ({"A": np.ones((9, 4)) * 1j}, "A holds complex numbers; only real numbers are supported."),
    ({"A": np.ones(9)}, "A has 1 dimension(s), expected a table of rows and columns (2 dimensions)."),
    ({"A": np.full((9, 2), "one")}, "A is not numeric; encode text and categories as numbers first."),
    ({"A": np.ones((0, 4)), "y": np.ones(0)}, "A is empty (shape 0 x 4); give at least one row and column."),
    ({"y": np.ones(8)}, "the data have 9 rows but y has 8 entries; they must describe the same rows."),
    (
        {"k": None},
        "k, the largest number of features in the model, is missing; give -k 5, say",
    ),
    (
        {"lam": None, "loss": "huber", "delta": 1.0},
        "lam, the ridge weight, is missing, and huber loss needs",
    ),
    ({"k": 1.5}, "k is 1.5, but one whole number was expected"),
    ({"loss": "absolute"}, "there is no loss called 'absolute'"),
    ({"feature_names": ["a", "b"]}, "2 feature names were given for 4 columns; give one name per column."),
    ({"y": np.ones(9), "loss": "huber"}, "more than half of y has the same value"),
]
SEARCHING = ["solve", "play", "certify"]
SUPPORT = {"certify": ["--support", "0"], "play": ["--dot"]}


@pytest.mark.smoke
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

    def test_a_tree_that_a_constraint_rules_out(self, run):
        shown = run("solve", TWINS, "--not-both", "0,1", "--tree", "state-space", "--quiet", "--json")
        assert (shown.code, shown.out) == (2, "")
        assert shown.err == (
            "Error: the tree 'state-space' leaves out models that others contain, which does not hold under the "
            "not_both condition (1 pair); use --tree binary.\n"
        )

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
        (tmp_path / "data.doc").write_text("1,2\n")
        self.refuse(run(command, tmp_path / "data.doc", *options), "is of no kind that is read; the kinds are .npz, ")

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
            (["play", TWINS, "--dot", "--format", "bmp"], "'bmp' is not one of"),
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
            (["--support", "0,9"], "the support names feature 9, but the features are numbered 0 to 4; correct"),
            (["--support", "-1"], "the support names feature -1, but the features are numbered 0 to 4"),
            (["--support", "0,1,2"], "the support has 3 features, but k is 2; give at most k features or raise k."),
            (["--support", "0, 0"], "the support [0, 0] names a feature twice; give each feature once."),
            (["--support", "signal,0"], "the support [0, 0] names a feature twice; give each feature once."),
            (["--support", "noise"], "there is no feature called 'noise'; give a number from 0 to 4 or a known name."),
            (["--support", "0.5"], "there is no feature called '0.5'"),
            (["--coef", "nowhere.txt"], "nowhere.txt does not exist; give the file that holds the numbers."),
            (["--coef", str(INSTANCES)], "does not hold plain numbers; give a .npy vector or text with one number"),
        ],
    )
    def test_candidates(self, run, options, sentence):
        self.refuse(run("certify", TWINS, *options), sentence)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("1 2 3", "3 coefficients were given for 5 features; give one per feature."),
            ("", "0 coefficients were given for 5 features; give one per feature."),
            ("a b c d e", "does not hold plain numbers; give a .npy vector or text with one number a line."),
            ("nan 0 0 0 0", "the coefficients hold NaN or infinite values; give finite numbers."),
            ("1 2 3 0 0", "the support has 3 features, but k is 2; give at most k features or raise k."),
        ],
    )
    def test_coefficient_files(self, run, tmp_path, text, sentence):
        (tmp_path / "coef.txt").write_text(text)
        self.refuse(run("certify", TWINS, "--coef", tmp_path / "coef.txt"), sentence)
        (tmp_path / "coef.npy").write_bytes(b"\x93NUMPY\1\0 not really")
        self.refuse(run("certify", TWINS, "--coef", tmp_path / "coef.npy"), "does not hold plain numbers")

    def test_pictures_and_places_to_write(self, run, tmp_path):
        self.refuse(
            run("play", TWINS, "--dot", "--format", "png"), "a png picture cannot go to stdout; give a file with -o."
        )
        self.refuse(
            run("play", TWINS, "--dot", "-o", tmp_path / "no" / "tree.dot"), "tree.dot cannot be written (No such file"
        )
        self.refuse(
            run("data", "generate", "huber", tmp_path / "no" / "x.npz"), "x.npz cannot be written (No such file"
        )
        self.refuse(run("data", "generate", "huber", tmp_path / "x.csv"), "must have a name that ends in .npz")
        self.refuse(
            run("data", "generate", "spam", tmp_path / "x.npz"), "there is no generator called 'spam'; known are: "
        )
        self.refuse(run("data", "generate", "huber", tmp_path / "x.npz", "--seed", "-1"), "the seed is -1")
        self.refuse(run("data", "generate", "huber", tmp_path / "x.npz", "-k", 9, "--d", 3), "k=9 was asked for")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("lam", ["-1", "nan", "inf"])
    def test_an_instance_nobody_can_solve_is_not_written(self, run, tmp_path, lam):
        self.refuse(run("data", "generate", "huber", tmp_path / "x.npz", "--lam", lam), "lam")

    @pytest.mark.parametrize("option", ["--time-limit", "--memory-limit"])
    def test_an_infinite_limit_is_none(self, run, option):
        assert run("solve", TWINS, option, "inf", "--json").json["settings"][option[2:].replace("-", "_")] is None

    def test_a_negative_seed(self, run):
        self.refuse(run("solve", TWINS, "--seed", "-1"), "seed is -1")
