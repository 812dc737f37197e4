"""What is chosen among factors and the terms of a formula is called a term, through every command."""

from __future__ import annotations

import numpy as np
import pytest

from exactsel import Problem, solve

RNG = np.random.default_rng(2)
N = 60
KIND = RNG.choice(["u", "v", "w"], N)
A = RNG.normal(size=(N, 2))
Y = A[:, 0] + (KIND == "w") + 0.3 * RNG.normal(size=N)


@pytest.fixture
def file(tmp_path):
    rows = [f"{a!r},{b!r},{kind},{y!r}" for (a, b), kind, y in zip(A.tolist(), KIND, Y.tolist(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,kind,y", *rows]))
    return tmp_path / "t.csv"


@pytest.mark.parametrize("how", [("--factors", "auto"), ("--formula", "y ~ a*b + kind")])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("solve", "-k", 2), "no model with at most 2 terms"),
        (("certify", "-k", 2, "--support", "a,kind"), "no model with at most 2 terms"),
        (("path", "--k-max", 2, "--json"), "no model with at most 2 terms"),
        (("best",), "terms ("),
        (("best", "--criterion", "objective", "-k", 2, "--within", 0.01), "set of 2 terms is within"),
        (("compare", "-k", 2), "terms"),
    ],
)
def test_every_command_says_terms(file, run, how, words, said):
    done = run(words[0], file, *words[1:], *how)
    told = done.out + done.err
    assert done.code == 0, told
    assert said in told
    assert "group" not in told.replace("bound over groups", "") or "--json" in words


def test_a_formula_of_single_columns_has_terms_too(file, run):
    pytest.importorskip("formulaic")
    assert "at most 1 term has" in run("solve", file, "-k", 1, "--formula", "y ~ a + b").err


def test_groups_that_people_name_are_groups(file, run):
    assert "at most 1 group has" in run("solve", file, "-k", 1, "--drop", "kind", "--groups", "g=a,b").err
    labels = ["one", "one"]
    assert "at most 1 group has" in solve(Problem(A, Y, 1, groups=labels, lam=0.1), signals=()).claim_text
