"""The command line: data on stdout, talk on stderr, exit codes, and one sentence for every bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from command_line import COMMAND, LABELS, OUTLIER, TWINS, start
from own_loss import PseudoHuber

from exactsel import Problem, __version__, load, solve
from exactsel.cli.compiling import Compiling
from exactsel.cli.main import main as run_command_line
from exactsel.solving.outcome import Termination

PROMISED_KEYS = {
    "upper", "lower", "gap", "absolute_gap", "claim", "termination", "support", "coef", "nodes", "bound_calls", "time",
    "times", "n", "d", "k", "loss", "lam", "eps", "rel_eps", "tree_hash",
}  # fmt: skip


class TestSolve:
    @pytest.mark.smoke
    def test_json_is_one_object_on_stdout(self, run):
        shown = run("solve", TWINS, "--json")
        assert shown.code == 0
        result = shown.json
        assert {*result} >= PROMISED_KEYS
        expected = solve(load(TWINS))
        assert result["upper"] == expected.upper
        assert result["lower"] <= result["upper"] == pytest.approx(0.872779491543, rel=1e-10)
        assert result["absolute_gap"] == result["upper"] - result["lower"]
        assert result["gap"] == result["absolute_gap"] / result["upper"]
        assert (result["claim"], result["tree_hash"]) == (expected.claim.value, expected.tree_hash)
        assert result["support"] == [j for j, value in enumerate(result["coef"]) if value]
        assert (result["n"], result["d"], result["k"], result["lam"]) == (8, 5, 2, 0.1)
        assert (result["loss"], result["eps"], result["rel_eps"]) == ("quadratic", 0.0, 1e-6)
        assert len(result["coef"]) == 5
        assert result["time"] == result["times"]["total"] > 0
        assert "gap = upper - lower" in result["gap_formula"]

    @pytest.mark.smoke
    def test_flags_arguments_and_keys_are_the_same_words(self, run):
        result = run("solve", OUTLIER, "--json").json
        known = {*result, *result["settings"], *result["loss_parameters"]}
        talk = {"recheck", "executor", "workers", "scheduler", "trace", "report", "as_json", "quiet", "log_interval"}
        talk |= {
            "checkpoint",
            "checkpoint_every",
            "resume",
            "status",
            "per_group",
            "nonnegative",
            "sum_to",
            "equality",
            "options",
            "shared",
            "summary",
            "level",
        }  # limits, bounds
        talk |= {"instance", "target", "drop", "factors", "formula", "missing", "decimal", "encoding", "offset"}
        assert {p.name for p in COMMAND["solve"].params} - talk - {"max_coef"} <= known

    @pytest.mark.smoke
    def test_table_on_stdout_and_talk_on_stderr(self, run):
        shown = run("solve", TWINS)
        assert shown.code == 0
        table = [line.split() for line in shown.out.splitlines()]
        assert table[0] == ["feature", "name", "coefficient"]
        assert [row[:2] for row in table[1:]] == [["0", "signal"], ["1", "twin"]]
        assert float(table[1][2]) == pytest.approx(1.912562493)
        assert shown.err.startswith(f"exactsel {__version__}   n=8 d=5 k=2   10 supports\n")
        for text in (
            "minimise L(Ax) + (lam/2)||x||^2, L a sum over rows, quadratic, lam=0.1\n",
            "gap = (upper - lower) / |upper|   stop at eps=0 or rel_eps=1e-06",
            "claim        Optimal: no model with at most 2 features has a lower objective",
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

    @pytest.mark.smoke
    def test_a_gap_that_is_left_is_exit_code_1(self, run):
        shown = run("solve", TWINS, "--node-limit", 0, "--json")
        assert shown.code == 1
        assert (shown.json["claim"], shown.json["termination"], shown.json["nodes"]) == ("bounded", "node_limit", 0)
        assert "claim        Not proven optimal: no model with at most " in shown.err

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

    @pytest.mark.smoke
    def test_flags_override_the_file(self, run):
        result = run("solve", OUTLIER, "--json", "-k", 1, "--lam", 0.25, "--delta", 3, "--quiet").json
        assert (result["k"], result["lam"], result["loss_parameters"]) == (1, 0.25, {"delta": 3.0})
        result = run("solve", OUTLIER, "--json", "--loss", "quadratic", "--k", 3, "--quiet").json
        assert (result["k"], result["loss"], len(result["support"])) == (3, "quadratic", 3)
        assert run("solve", LABELS, "--json", "--loss", "logistic", "--lam", 2, "--quiet").json["lam"] == 2.0

    def test_k_beyond_d_warns_in_one_line(self, run):
        shown = run("solve", TWINS, "-k", 77, "--json")
        assert shown.err.splitlines()[0] == "Warning: k = 77 is more than the 5 features there are; using k = 5."
        assert (shown.code, shown.json["k"]) == (0, 5)

    @pytest.mark.smoke
    @pytest.mark.parametrize(
        ("option", "values"),
        [
            ("--tree", ["binary", "state-space"]),
            ("--bound", ["auto", "split", "apg", "fit", "pdal", "supergradient", "cvxpy"]),
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
            assert shown.code == 0, shown.err
            assert shown.json["upper"] == pytest.approx(0.872779491543, rel=1e-6)

    @pytest.mark.smoke
    def test_settings_are_reported(self, run):
        settings = run("solve", TWINS, "--heuristic", "omp,swap", "--batch", 3, "--json").json["settings"]
        assert (settings["heuristics"], settings["batch"]) == (["omp", "swap"], 3)
        assert (settings["tree"], settings["bound"], settings["branching"]) == ("binary", "split", "half")

    def test_rows_of_the_log(self, run, file):
        shown = run("solve", file(k=2, lam=0.1), "--log-interval", 0)
        rows = [line for line in shown.err.splitlines() if line.endswith("s") and line[:12].strip() in ("", "forward")]
        assert len(rows) >= 3
        header = next(line for line in shown.err.splitlines() if "nodes" in line and "lower" in line)
        assert header.split() == ["source", "nodes", "open", "depth", "lower", "upper", "gap", "time"]

    def test_compiling_for_a_loss_that_is_not_built_in_is_announced(self, capsys):
        class Local(PseudoHuber):
            pass

        for loss, often in ((PseudoHuber(1.0), "once"), (Local(1.0), "in every process")):
            problem = Problem(np.eye(3), np.ones(3), 1, lam=1.0, loss=loss)
            Compiling(problem, quiet=False, searches=True).begun("a kernel")
            assert f"compiling kernels for pseudo-huber loss ({often}" in capsys.readouterr().err

    def test_more_supports_than_a_float_can_count(self, run, file):
        data = file(A=np.eye(6, 1500), y=np.ones(6), k=300, lam=1.0)  # too large for its proof to be checked here
        shown = run("solve", data, "--time-limit", 0, "--heuristic", "none")
        assert "2.48e+324 supports" in shown.err
        known = run("info", data, "--json").json
        assert known["supports"] is None
        assert known["log10_supports"] == pytest.approx(324.394, abs=1e-3)

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


class TestInternalErrors:
    def test_one_sentence_and_exit_code_70(self, run, monkeypatch):
        def fail(*_args, **_options):
            raise RuntimeError("out of luck\nand more lines")

        monkeypatch.setattr("exactsel.solving.api.solve", fail)
        shown = run("solve", TWINS, "--quiet", "--json")
        assert (shown.code, shown.out) == (70, "")
        assert shown.err == (
            "Internal error: RuntimeError: out of luck. Set EXACTSEL_DEBUG=1 to see where; please report it.\n"
        )

    def test_the_place_is_shown_on_request(self, monkeypatch):
        def fail(*_args, **_options):
            raise RuntimeError("out of luck")

        monkeypatch.setattr("exactsel.solving.api.solve", fail)
        monkeypatch.setenv("EXACTSEL_DEBUG", "1")
        with pytest.raises(RuntimeError, match="out of luck"):
            run_command_line(["solve", TWINS, "--quiet"])

    def test_an_interrupt_outside_the_search_is_130(self, run, monkeypatch):
        def interrupt(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr("exactsel.data.reading.read_instance", interrupt)
        shown = run("solve", TWINS)
        assert (shown.code, shown.out, shown.err.splitlines()[-1]) == (130, "", "interrupted.")


@pytest.mark.smoke
class TestCertify:
    def test_the_optimum_is_certified(self, run):
        for support in ("0,1", "signal, twin", "1,0", "0,twin_again"):
            shown = run("certify", TWINS, "--support", support, "--json")
            assert shown.code == 0, shown.err
            assert PROMISED_KEYS | {"candidate"} <= {*shown.json}
            candidate = shown.json["candidate"]
            assert candidate["value"] == pytest.approx(0.872779491543, rel=1e-10)
            assert (candidate["claim"], candidate["improved"], candidate["refitted"]) == ("optimal", False, True)

    def test_a_worse_model_is_exit_code_1(self, run):
        shown = run("certify", TWINS, "--support", "2")
        assert shown.code == 1
        assert "candidate    2 unrelated   objective" in shown.out
        assert "compared     with all models of at most k = 2 features (the candidate has 1)" in shown.out
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
        assert shown.err == "Warning: k = 9 is more than the 5 features there are; using k = 5.\n"
        assert shown.code == 0


class TestGenerate:
    @pytest.mark.parametrize("name", ["huber", "logistic", "quadratic", "hard"])
    def test_a_file_that_can_be_solved(self, run, tmp_path, name):
        path = tmp_path / "made.npz"
        shown = run("data", "generate", name, path, "--n", 30, "--d", 8, "-k", 2, "--seed", 5, "--lam", 0.5)
        assert (shown.code, shown.out) == (0, "")
        assert shown.err == f"{path}: {name}, n=30 d=8 k=2 lam=0.5 loss={load(path).loss.name}\n"
        problem = load(path)
        assert isinstance(problem, Problem)
        assert (problem.n, problem.d, problem.k, problem.lam) == (30, 8, 2, 0.5)
        assert run("solve", path, "--json", "--quiet").code == 0

    def test_same_seed_same_file(self, run, tmp_path):
        for number, seed in enumerate((1, 1, 2)):
            run("data", "generate", "huber", tmp_path / f"{number}.npz", "--seed", seed)
        one, two, three = (load(tmp_path / f"{number}.npz").hash for number in range(3))
        assert one == two != three


class TestPlay:
    def test_dot(self, run):
        shown = run("play", TWINS, "--dot")
        assert (shown.code, shown.err) == (0, "")
        assert shown.out.startswith("digraph search {\n")
        assert shown.out.rstrip().endswith("}")
        assert f'[label="+{load(TWINS).feature_names[0]}"]' in shown.out

    def test_a_page_is_named(self, run, tmp_path):
        shown = run("play", TWINS, "--html", tmp_path / "page.html")
        assert (shown.code, shown.out, shown.err) == (0, "", f"page         {tmp_path / 'page.html'}\n")

    def test_json(self, run):
        tree = run("play", TWINS, "--dot", "--format", "json").json
        assert tree["nodes"][0]["id"] == 0
        assert {edge["child"] for edge in tree["edges"]} == {node["id"] for node in tree["nodes"]} - {0}

    @pytest.mark.parametrize(("style", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("dot", b"digraph")])
    def test_files(self, run, tmp_path, style, magic):
        shown = run("play", TWINS, "--dot", "--format", style, "-o", tmp_path / "tree")
        assert (shown.code, shown.out, shown.err) == (0, "", f"tree         {tmp_path / 'tree'}\n")
        assert (tmp_path / "tree").read_bytes().startswith(magic)

    def test_interrupted(self, run, monkeypatch):
        def interrupted(*arguments, **options):
            result = solve(*arguments, **options)
            return replace(result, termination=Termination.INTERRUPTED)

        monkeypatch.setattr("exactsel.solving.api.solve", interrupted)
        shown = run("play", TWINS, "--dot")
        assert (shown.code, shown.out[:14]) == (130, "digraph search")

    def test_node_limit(self, run):
        assert len(run("play", TWINS, "--dot", "--format", "json", "--node-limit", 0).json["nodes"]) == 1

    def test_one_output_is_expected(self, run, tmp_path):
        page = ["--html", tmp_path / "page.html"]
        for words, sentence in (
            ([], "neither --html nor --dot is given, but one output is expected"),
            (["--format", "svg", "-o", tmp_path / "tree"], "neither --html nor --dot is given"),
            ([*page, "--dot"], "both --html and --dot are given"),
            ([*page, "--format", "svg"], "--format is about the tree, but --html writes a page"),
            ([*page, "-o", tmp_path / "tree"], "--out is about the tree, but --html writes a page"),
        ):
            shown = run("play", TWINS, *words)
            assert (shown.code, shown.out) == (2, "")
            assert shown.err.startswith(f"Error: {sentence}")
        assert [*tmp_path.iterdir()] == []
