"""Every command x every option of data and problem: its figures against a problem stated in full (stated.py).

The cells come from the commands' own lists of parameters: a new option without a case, and a new command without a way
to hold its figures against one, fail.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from command_line import COMMAND
from stated_cases import CASES, Case

from exactsel.cli.helping import SECTIONS
from exactsel.cli.main import cli
from exactsel.cli.named_files import label
from exactsel.errors import InputError
from exactsel.studies.crossval import random_folds
from exactsel.studies.sweeps import sweep
from exactsel.studies.sweeps.keys import KEYS

OF_COMMANDS = {"k_min", "k_max", "ks", "lams", "criterion", "gamma", "penalty"}
"""Of the problem's section of the help, but about what a command looks for among many problems."""

REST = {
    "as_json", "recheck", "cap", "coef", "data", "dot", "every", "folds", "heuristics", "instance", "log_interval",
    "method", "most_bytes", "near", "options", "out", "page_file", "plot", "proof", "quiet", "report", "root", "seeds",
    "level", "shared", "style", "summary", "support", "top", "trace", "within", "work_limit",
    *OF_COMMANDS, *(name for title in ("Limits", "Workers", "Saving", "Search") for name in SECTIONS[title]),
}  # fmt: skip
"""Parameters that say nothing of data and problem: what is done with them, limits, and what comes out."""

NO_DATA = {"sweep", "instances", "generate", "warmup", "fuzz", "reduce", "plugins"}  # a sweep's are in its config
LISTING, NEAR = ("--criterion", "objective", "--within"), 1e-6
"""Options for lists of close models; the largest relative difference from figures computed elsewhere."""


def options_of(command: str) -> list[click.Parameter]:
    """The options of data and problem that a command takes."""
    return [each for each in COMMAND[command].params if each.name not in REST]


with TemporaryDirectory() as _folder:
    GIVEN = {name: {**make(Path(_folder)).given} for name, make in CASES.items()}


def words(command: str, case: Case, leave_out: tuple[str, ...] = ()) -> list[str]:
    """The case's options on the command line of a command, those of its names in ``leave_out`` aside."""
    found = []
    known = {each.name: each for each in COMMAND[command].params}
    for name, value in case.given.items():
        if name not in leave_out:
            flag = known[name].secondary_opts if value is False else [label(known[name])]
            several = value if isinstance(value, list) else [value]
            found += flag if isinstance(value, bool) else [part for one in several for part in (*flag, str(one))]
    return found


def run(*arguments: Any) -> tuple[int, str]:
    """Exit code and stdout of a command."""
    done = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False, standalone_mode=False)
    return done.return_value or 0, done.stdout


def said(*arguments: Any) -> dict[str, Any]:
    """The JSON object a command prints."""
    return json.loads(run(*arguments, "--json")[1])


class Door:
    """One command with one case's data and options."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.case, self.stated = folder, case, case.stated
        self.file = folder / case.instance

    def solve(self, *more: Any, file: Path | None = None, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
        return said("solve", file or self.file, "--quiet", *words("solve", self.case, leave_out), *more)

    # What each command says:

    def check_solve(self) -> None:
        self.right(self.solve(), self.stated.k)

    def check_certify(self) -> None:
        chosen = self.worse()
        names = ",".join(self.unit_names(chosen))
        told = said("certify", self.file, "--quiet", "--support", names, *words("certify", self.case))
        self.right(told, self.stated.k)
        candidate = told["candidate"]
        self.close(candidate["value"], self.stated.value(self.stated.columns(chosen)))
        self.close(candidate["absolute_gap"], candidate["value"] - told["lower"])
        self.close(candidate["excess"], candidate["value"] - self.stated.best())

    def check_certify_coef(self) -> None:
        chosen = self.stated.columns(self.worse())
        coef, c = self.stated.model(chosen)
        np.savetxt(self.folder / "coef.txt", coef, fmt="%.17g")
        told = said("certify", self.file, "--quiet", "--coef", self.folder / "coef.txt", *words("certify", self.case))
        self.close(told["candidate"]["value"], self.stated.objective(coef, c))
        self.close(told["candidate"]["excess"], max(0.0, self.stated.value(chosen) - self.stated.best()))

    def check_solve_method(self) -> None:
        told = self.solve("--method", self.case.method)
        self.about_its_support(told)
        assert told["lower"] <= self.stated.best() * (1 + NEAR)
        self.quality(told)

    def check_compare(self) -> None:
        told = said("compare", self.file, "--heuristic", self.case.method, *words("compare", self.case))
        self.right(told["exact"], self.stated.k)
        (row,) = told["methods"]
        self.about_its_support(row)
        self.close(row["excess"], max(0.0, row["upper"] - told["exact"]["upper"]))

    def check_path(self) -> None:
        sizes = self.sizes_of_path()
        told = said("path", self.file, "--ks", ",".join(map(str, sizes)), *words("path", self.case, ("k",)))
        assert [row["k"] for row in told["results"]] == sizes
        for row in told["results"]:
            self.right(row, row["k"])
            self.criteria(row)

    def check_path_cv(self) -> None:
        sizes, folds = self.sizes_of_path(), random_folds(len(self.stated.A), 2, 0)
        more = ["--ks", ",".join(map(str, sizes)), "--cv", 2, "--rel-eps", 1e-10]
        told = said("path", self.file, *more, *words("path", self.case, ("k",)))
        for row in told["results"]:
            self.right(row, row["k"])
            errors = self.stated.held_out(folds, row["k"])
            self.close(row["cv_error"], float(np.mean(errors)), 10.0)
            self.close(row["cv_standard_error"], float(np.std(errors, ddof=1) / math.sqrt(2)), 10.0)

    def check_best(self) -> None:
        told = said("best", self.file, "--k-max", self.stated.k, *words("best", self.case, ("k",)))
        values = {chosen: self.bic(chosen) for chosen in self.stated.sets(self.stated.k)}
        best = min(values.values())
        assert told["value"] == pytest.approx(best, abs=1e-5)
        assert told["lower"] <= best + 1e-9
        self.close(told["models"][0]["objective"], self.value_of(told["models"][0]["support"]))

    def check_best_objective(self) -> None:
        values = sorted(self.value_of(chosen) for chosen in self.stated.sets(self.stated.k, exactly=True))
        gap, place = max((b - a, i) for i, (a, b) in enumerate(pairwise([*values[:4], 2 * values[-1]])))
        tau = values[place] + 0.5 * gap - self.stated.best()
        told = said("best", self.file, *LISTING, repr(tau), *words("best", self.case))
        assert told["complete"]
        for model in told["models"]:
            self.close(model["value"], self.value_of(model["support"]))
        expected = [
            c for c in self.stated.sets(self.stated.k, exactly=True) if self.value_of(c) <= values[place] + gap / 3
        ]
        assert {frozenset(model["support"]) for model in told["models"]} == {*expected}

    def check_info(self) -> None:
        told, solved = said("info", self.file, *words("info", self.case)), self.solve()
        assert told["problem_hash"] == solved["problem_hash"]
        parameters = solved.get("loss_parameters", {})
        assert {name: told[name] for name in parameters} == parameters
        assert told["n"] == len(self.stated.A)
        assert told["root_lower"] <= self.stated.best() * (1 + NEAR)
        assert told["root_upper"] >= self.stated.best() * (1 - NEAR)
        values = [self.value_of(chosen) for chosen in self.stated.sets(self.stated.k)]
        assert min(abs(told["root_upper"] - value) for value in values) <= NEAR * max(values)

    def check_verify(self) -> None:
        proof = self.folder / "proof.exsel"
        solved = self.solve("--proof", proof)
        told = said("verify", proof, self.file, *words("verify", self.case))
        assert told["verified"], told["reason"]
        assert solved["lower"] * (1 - NEAR) <= told["lower"] <= self.stated.best() * (1 + 1e-9)
        for name in set(self.case.given) - {"k", "decimal", "encoding", *self.case.aside}:
            # The proof is not taken for one about the data and demands without the option.
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(self.folder)
                try:
                    other = said("verify", proof, self.file, *words("verify", self.case, (name,)))
                except (InputError, click.UsageError):
                    continue
            assert not other["verified"], name

    def check_play_tree(self) -> None:
        _, text = run("play", self.file, "--dot", "--format", "json", *words("play", self.case))
        graph = json.loads(text)
        inner = {edge["parent"] for edge in graph["edges"]}
        # A region the demands leave no model in has no bound.
        leaves = [node["bound"] for node in graph["nodes"] if node["id"] not in inner and node["status"] != "excluded"]
        self.close(min(min(leaves), self.stated.best()), self.stated.best())

    def check_play(self) -> None:
        page = self.folder / "page.html"
        run("play", self.file, "--html", page, *words("play", self.case))
        upper, lower = re.search(
            r"has objective ([\d.e+-]+); the lower bound is ([\d.e+-]+)\.", page.read_text()
        ).groups()
        self.close(float(upper), self.stated.best())
        assert float(lower) <= self.stated.best() * (1 + NEAR)

    def check_convert(self) -> None:
        out = self.folder / "out.npz"
        run("data", "convert", self.file, out, *words("convert", self.case))
        kept = tuple(name for name in self.case.given if name != "problem")
        self.right(self.solve(file=out, leave_out=kept), self.stated.k)

    def check_gram(self) -> None:
        out = self.folder / "gram.npz"
        run("data", "gram", self.file, out, *words("gram", self.case))
        told = said("solve", out, "--quiet")
        self.close(told["upper"], self.stated.best())
        assert told["lower"] <= self.stated.best() * (1 + 1e-9)
        self.close(self.stated.objective(np.array(told["coef"]), told["intercept"] or 0.0), self.stated.best())

    def check_sweep(self) -> None:
        config, entries = self.folder / "sweep.toml", []
        for name, value in self.case.given.items():
            listed = name in ("drop", "factors", "force_in", "force_out")
            entries.append(f"{name} = {json.dumps([value] if listed else value, default=str, ensure_ascii=False)}")
        lines = ["[[sweep]]", f"instances = [{json.dumps(str(self.file))}]", *entries]
        config.write_text("\n".join(lines), encoding="utf-8")
        (row,) = sweep(config, self.folder / "sweep.csv", jobs=0).rows
        assert row["status"] == "done", row["error"]
        self.close(row["upper"], self.stated.best())
        assert row["lower"] <= self.stated.best() * (1 + 1e-9)

    # --- against what is stated ---

    def close(self, figure: float, truth: float, scale: float = 1.0) -> None:
        least = 0.0 if self.stated.y is None else self.stated.value(())
        assert figure == pytest.approx(truth, rel=NEAR * scale, abs=1e-9 * least)

    def right(self, told: dict[str, Any], k: int) -> None:
        """Bounds hold the optimum between them, and the model is what is said of it."""
        self.close(told["upper"], self.stated.best(k))
        assert told["lower"] <= self.stated.best(k) * (1 + 1e-9) + 1e-12
        assert told["lower"] >= self.stated.best(k) * (1 - 1e-5) - 1e-9
        self.about_its_support(told)
        if self.stated.y is not None:
            coef = np.array(told["coef"])
            self.close(self.stated.objective(coef, told["intercept"] or 0.0), told["upper"])
            assert (told["intercept"] is not None) == self.stated.intercept
            if self.stated.lower is not None:
                assert np.all((self.stated.lower <= coef) & (coef <= self.stated.upper))
        self.quality(told)

    def about_its_support(self, told: dict[str, Any]) -> None:
        """The objective is that of the set that is named, which is one of those a model may have."""
        chosen = frozenset(told["support"])
        assert any(chosen <= other for other in self.stated.sets(self.stated.k))
        self.close(told["upper"], self.value_of(chosen))
        if "feature_names" in told:
            assert tuple(told["feature_names"]) == tuple(self.unit_names(chosen))

    def quality(self, told: dict[str, Any]) -> None:
        """R squared of the model, where that needs no more than its loss."""
        stated = self.stated
        if stated.y is None or stated.loss != "quadratic" or stated.offset is not None or told["quality"] is None:
            return
        coef, c = np.array(told["coef"]), told["intercept"] or 0.0
        middle = np.average(stated.y, weights=stated.w) if stated.intercept else 0.0
        total = float(stated.w @ (stated.y - middle) ** 2)
        left = float(stated.w @ (stated.y - stated.A @ coef - c) ** 2)
        assert told["quality"]["r2"] == pytest.approx(1 - left / total, abs=1e-9)

    def criteria(self, row: dict[str, Any]) -> None:
        """AIC, BIC and EBIC of a path's model, with rows as often as their weights say."""
        stated = self.stated
        if stated.y is None or stated.loss == "squared_hinge":
            assert row["aic"] is row["bic"] is None
            return
        chosen, variance = frozenset(row["support"]), int(stated.loss == "quadratic")
        p = len(stated.columns(chosen)) + int(stated.intercept) + variance
        assert row["bic"] == pytest.approx(self.bic(chosen), abs=1e-5)
        assert row["aic"] == pytest.approx(self.bic(chosen) + p * (2 - math.log(stated.w.sum())), abs=1e-5)

    def bic(self, chosen: frozenset[int]) -> float:
        """As `best` has it: of the objective, ridge included, up to what depends on the data alone."""
        stated, value = self.stated, self.value_of(chosen)
        n, beside = stated.w.sum(), int(stated.intercept)
        if stated.loss == "quadratic":
            deviance, beside = n * (math.log(4 * math.pi * value / n) + 1), beside + 1
        elif stated.loss == "poisson":
            y = stated.y
            logs = np.array([math.lgamma(t + 1) - (t * math.log(t) if t else 0.0) + t for t in y])
            deviance = 2 * value + 2 * float(stated.w @ logs)
        else:
            deviance = 2 * value
            if stated.loss == "huber":
                inside = math.sqrt(2 * math.pi) * math.erf(stated.delta / math.sqrt(2))
                deviance += 2 * n * math.log(inside + 2 / stated.delta * math.exp(-0.5 * stated.delta**2))
        return deviance + math.log(n) * (len(stated.columns(chosen)) + beside)

    def value_of(self, chosen: Any) -> float:
        return self.stated.value(self.stated.columns(frozenset(chosen)))

    def unit_names(self, chosen: Any) -> list[str]:
        """Names of units as results have them."""
        stated, order = self.stated, sorted(chosen)
        if not stated.groups or stated.per_group is not None:
            return [stated.names[j] for j in order]
        known = {(0, 1): "g", (2, 3): "kind" if "kind[v]" in stated.names else "h"}
        return [known.get(stated.units[u]) or stated.names[stated.units[u][0]] for u in order]

    def worse(self) -> frozenset[int]:
        """A set a model may have, of the largest size, that is not the best."""
        sets = sorted(self.stated.sets(self.stated.k, exactly=True), key=self.value_of)
        return sets[min(1, len(sets) - 1)]

    def sizes_of_path(self) -> list[int]:
        smallest = min(map(len, self.stated.sets(self.stated.k)))
        return list(range(max(1, smallest), self.stated.k + 1))


DOORS = {name.removeprefix("check_").replace("_", " "): name for name in vars(Door) if name.startswith("check_")}
"""What is held against stated problems: commands, a path also with --cv."""

KEEP_NO_DEMANDS = ("scale", "offset", "force_in", "force_out", "hierarchy", "not_both", "per_group")

LIMITS = ("nonnegative", "bounds", "max_coef", "sum_to", "equality")

REFUSED: dict[tuple[str, str], str] = {
    **{("convert", name): "an instance file holds features as they are and no constraints" for name in KEEP_NO_DEMANDS},
    **{(door, name): "verify and play only" for door in ("convert", "info") for name in LIMITS},
}  # fmt: skip
"""Options that a command refuses, in so many words; anything else it must do right."""

IN_GRAM = ("mean", "median", "mean-indicator", "drop-columns")

REFUSED_CASES: dict[tuple[str, str], str] = {
    ("path cv", "css"): "no target to predict",
    ("best", "css"): "no target",
    ("certify coef", "css"): "has no coefficients",
    ("path cv", "logistic, no ridge, force-out"): "with the training rows of fold 1 alone, lam is 0, but features",
    **{("gram", f"missing {way}"): "is not 'drop-rows'" for way in IN_GRAM},
}
"""The same for cases."""


def cells() -> list[tuple[str, str]]:
    """Each door with each case whose options it has."""
    found = []
    for door in DOORS:
        command = door.split()[0]
        known = {*KEYS} if command == "sweep" else {each.name for each in options_of(command)}
        found += [(door, name) for name, given in GIVEN.items() if {*given} <= known]
    return found


@cache
def tried_each_time() -> set[tuple[str, str]]:
    """All cases of ``solve``, what is refused, and of each other door a few cases that have all its options."""
    refused = {at for at in cells() if {(at[0], option) for option in GIVEN[at[1]]} & {*REFUSED}}
    found = {*REFUSED_CASES, *refused, *(at for at in cells() if at[0] == "solve")}
    for door in DOORS:
        names, seen = [name for at, name in cells() if at == door], set()
        while (best := max(names, key=lambda name: len({*GIVEN[name]} - seen))) and {*GIVEN[best]} - seen:
            found, seen = found | {(door, best)}, seen | {*GIVEN[best]}
    return found


@pytest.mark.parametrize(("door", "name"), [
    pytest.param(*at, id="-".join(at), marks=() if at in tried_each_time() else pytest.mark.slow) for at in cells()
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:in .*missing values")
def test_figures_are_those_of_the_problem_as_it_is_stated(door: str, name: str, tmp_path: Path) -> None:
    case = CASES[name](tmp_path)
    expected = [REFUSED[door, option] for option in case.given if (door, option) in REFUSED]
    expected += [REFUSED_CASES[door, name]] if (door, name) in REFUSED_CASES else []
    check = getattr(Door(tmp_path, case), DOORS[door])
    if not expected:
        check()
        return
    with pytest.raises((InputError, click.UsageError)) as raised:
        check()
    assert any(sentence in str(raised.value) for sentence in expected)


def test_no_cell_is_empty() -> None:
    """A new option of a command, and a new command with data, need a case, a door, or a place among the rest."""
    tried = {(door.split()[0], option) for door, name in cells() for option in GIVEN[name]}
    for command in COMMAND:
        if command in NO_DATA:
            continue
        missing = [each.name for each in options_of(command) if (command, each.name) not in tried]
        assert not missing, f"{command}: no case holds {missing} against an oracle"
    assert {*REFUSED} <= {(door, option) for door, name in cells() for option in GIVEN[name]}
    assert {*REFUSED_CASES} <= {*cells()}
    assert {*DOORS} >= {*COMMAND} - NO_DATA
    in_configs = {*KEYS} & {option for given in GIVEN.values() for option in given}
    assert in_configs == {option for command, option in tried if command == "sweep"}
