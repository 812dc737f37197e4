"""Factors: columns of texts and categories as terms of a model, from the refusal of a text to the result."""

from __future__ import annotations

import re
import shlex
from itertools import combinations

import numpy as np
import pytest

from exactsel import InputError, load, solve
from exactsel.cli.main import main
from exactsel.problem.factors import factor_columns
from exactsel.problem.frames import Column

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(41)
N = 48
FRAME = pandas.DataFrame(
    {
        "age": RNG.normal(size=N),
        "city": RNG.choice(["Rome", "Oslo", "Lima", "Bonn"], N),
        "sex": RNG.choice(["f", "m"], N),
        "size": pandas.Categorical(RNG.choice(["small", "large", "middle"], N), ["small", "middle", "large"]),
        "doors": RNG.choice([2, 3, 5], N),
        "dose": RNG.normal(size=N),
    }
)
Y = FRAME["age"] + 2.0 * (FRAME["city"] == "Rome") + (FRAME["size"] == "middle") + 0.3 * RNG.normal(size=N)


def rss_half(terms):
    """Half the residual sum of squares of least squares on these terms, with an intercept."""
    dummies = [pandas.get_dummies(FRAME[name]).iloc[:, 1:] if name in FACTORS else FRAME[[name]] for name in terms]
    matrix = np.column_stack([np.ones(N), *(np.asarray(block, dtype=float) for block in dummies)])
    return 0.5 * float(np.sum((Y - matrix @ np.linalg.lstsq(matrix, Y, rcond=None)[0]) ** 2))


FACTORS = ("city", "sex", "size")


def test_the_best_terms_without_a_ridge():
    for k in range(1, 5):
        result = solve(FRAME, Y, k, factors="auto")
        best = min(rss_half(terms) for terms in combinations(FRAME.columns, k))
        assert result.reached
        assert result.upper == pytest.approx(best, rel=1e-9)
        assert result.problem["feature_names"] == ("age", "city", "sex", "size", "doors", "dose")


def test_names_levels_and_references():
    told = load(FRAME.assign(y=Y), k=6, factors="auto").describe()
    assert told["column_names"] == (
        "age", "city[Lima]", "city[Oslo]", "city[Rome]", "sex[m]", "size[middle]", "size[large]", "doors", "dose",
    )  # fmt: skip
    named = load(FRAME.drop(columns=["city", "size"]).assign(y=Y), k=4, factors=["sex", "doors"]).describe()
    assert named["column_names"] == ("age", "sex[m]", "doors[3]", "doors[5]", "dose")
    without = load(FRAME[["size", "sex"]].assign(y=Y), k=2, factors="auto", intercept=False).describe()
    assert without["column_names"] == ("size[small]", "size[middle]", "size[large]", "sex[m]")


def test_frames_of_every_library_keep_the_order_of_categories():
    polars = pytest.importorskip("polars")
    levels = polars.Enum(["small", "middle", "large"])
    frame = polars.DataFrame({"size": polars.Series(FRAME["size"].astype(str).tolist(), dtype=levels), "y": Y.tolist()})
    assert load(frame, k=1, factors="auto").describe()["column_names"] == ("size[middle]", "size[large]")


def test_factors_of_two_levels_alone_are_plain_columns():
    frame = FRAME[["age", "sex", "dose"]]
    plain = solve(frame.assign(sex=(frame["sex"] == "m").astype(float)), Y, 2)
    result = solve(frame, Y, 2, factors="auto")
    assert result.problem["problem_hash"] == plain.problem["problem_hash"]
    assert result.tree_hash == plain.tree_hash
    assert "sex[m]" in solve(frame, Y, 1, factors="auto", force_in=["sex"]).feature_names


def test_a_column_of_one_value_is_left_out():
    with pytest.warns(UserWarning, match="column city has one value and is left out"):
        result = solve(FRAME[["age", "city"]].assign(city="Rome"), Y, 1, factors="auto")
    assert result.feature_names == ("age",)


def test_all_sizes_of_terms_are_looked_at_without_a_word(tmp_path, capsys):
    FRAME.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(SystemExit) as ended:
        main(["best", str(tmp_path / "t.csv"), "--factors", "auto"])
    told = capsys.readouterr()
    assert ended.value.code == 0
    assert "Warning" not in told.err
    assert "degrees of freedom" in told.out


def test_what_is_no_factor_is_refused():
    with pytest.raises(InputError, match=r"cannot be a factor; make them a level with missing=.mean."):
        factor_columns(Column("c", None, kind="text", missing=2, texts=("f",)))


HINT = re.compile(r"--(?:factors|drop|missing|lam) (?:'[^']*'|[\w,\[\].-]+)")


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"name": "an id"},
        {"city": [None if i % 9 == 0 else name for i, name in enumerate(FRAME["city"])]},
        {"sold": pandas.date_range("2020-01-01", periods=N).strftime("%Y-%m-%d")},
        {"twin": FRAME["city"].map({"Rome": "I", "Oslo": "N", "Lima": "P", "Bonn": "D"})},
    ],
    ids=["plain", "an id", "gaps", "dates", "a second name of the same"],
)
def test_every_hint_leads_on(more, tmp_path, capsys):
    """Whoever types what a refusal says, the first of what it offers, comes to a model in a few steps."""
    table = FRAME.assign(y=Y, **more)
    if "name" in more:
        table = pandas.concat([table] * 3).assign(name=[f"car {i}" for i in range(3 * N)])
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["solve", str(tmp_path / "t.csv"), "-k", "3", "--quiet"]
    for _ in range(6):
        with pytest.raises(SystemExit) as ended:
            main(words)
        err = capsys.readouterr().err
        if ended.value.code == 0:
            return
        # Of each sentence the way it names first.
        offered = [shlex.split(found[0].rstrip(".,")) for said in err.split(". ") if (found := HINT.findall(said))]
        words += [word for hint in offered if hint[0] not in words for word in hint]
        assert offered, err
    raise AssertionError(f"no model after {words}")
