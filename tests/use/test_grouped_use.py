"""Groups as people meet them: names, messages, files, commands, reports and estimators."""

from __future__ import annotations

import itertools
import json
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import exactsel
from exactsel import GroupedProblem, InputError, Problem, UnsupportedError, certify, near_optimal, solve, solve_path
from exactsel.cli.main import cli
from exactsel.data import instance_from, read_data
from exactsel.data.group_lists import read_groups
from exactsel.data.instance import Instance, read_instance, write_instance
from exactsel.data.tables import Coding
from exactsel.problem.frames import Column
from exactsel.report.run import run_page
from exactsel.studies.compare import compare
from exactsel.studies.heuristics import run as run_heuristic
from exactsel_certificates.standalone.__main__ import main as check_by_fractions

NAMES = ("north", "south", "east", "age", "a", "b")
GROUPS = {"region": ["north", "south", "east"], "blood": ["a", 5]}


def plain(loss="quadratic", k=2, **options):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 6))
    y = A[:, :3] @ [1.0, -1.0, 2.0] + A[:, 3] + 0.2 * rng.standard_normal(30)
    target = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    return Problem(A, target, k, loss=loss, lam=0.5, feature_names=NAMES, **options)


def problem(loss="quadratic", **options):
    return GroupedProblem(plain(loss), GROUPS, **options)


# --- the problem ---


def test_groups_are_numbered_by_their_first_columns():
    made = problem()
    assert made.groups == ((0, 1, 2), (3,), (4, 5))
    assert made.feature_names == ("region", "age", "blood")
    assert (made.d, made.k, made.inner.d) == (3, 2, 6)
    by_labels = GroupedProblem(plain(), ["region"] * 3 + [None] + ["blood"] * 2)
    assert by_labels.groups == made.groups
    assert by_labels.hash == made.hash
    assert "3 groups of 6 features" in repr(made)
    with pytest.raises(AttributeError, match="frozen"):
        made.k = 1


def test_hash_knows_groups_and_demands_only():
    hashes = {
        plain().hash, problem().hash, problem(force_in=["age"]).hash, problem().replace(k=1).hash,
        GroupedProblem(plain(), {"region": [0, 1]}).hash,
    }  # fmt: skip
    assert len(hashes) == 5
    assert GroupedProblem(plain(), {"r": GROUPS["region"], "s": GROUPS["blood"]}).hash == problem().hash


def test_columns_stand_for_their_groups():
    assert problem(force_in=["south"]).force_in == (0,)
    assert problem(force_out=["blood"]).force_out == (2,)
    inner = plain(force_in=["b"], force_out=["age"])
    made = GroupedProblem(inner, GROUPS, force_in=[0])
    assert (made.force_in, made.force_out) == ((0, 2), (1,))
    assert set(solve(made, signals=()).support) <= {0, 2}
    assert not np.any(solve(made, signals=()).coef[3])


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ({"g": ["nobody"]}, r"the group 'g' names 'nobody', but no feature is called that"),
        ({"g": [9]}, r"the group 'g' names feature 9, but the features are numbered 0 to 5\."),
        ({"g": [0], "h": ["north"]}, r"feature 'north' is in 'g' and in the group 'h'; name it once\."),
        ({"g": [0, "north"]}, r"feature 'north' is twice in the group 'g'"),
        ({"g": []}, r"the group 'g' has no features; leave it out"),
        ({"age": [0, 1]}, r"the group 'age' is called like a feature outside it"),
        (["x", "y"], r"groups is 2 labels, but 6 features need one label each"),
        ("region", r"groups is a text, but 6 features need one label each"),
    ],
)
def test_groups_that_cannot_be_used(groups, match):
    with pytest.raises(InputError, match=match):
        GroupedProblem(plain(), groups)


@pytest.mark.parametrize(
    ("demands", "match"),
    [
        ({"force_in": ["nobody"]}, "force_in names 'nobody', but no group or feature is called that"),
        ({"force_out": [3]}, "force_out names group 3, but the groups are numbered 0 to 2"),
        ({"force_in": ["north"], "force_out": ["south"]}, "the group 'region' is in force_in and in force_out"),
        ({"force_in": [0, 1, 2]}, "force_in names 3 groups, but k is 2; raise k"),
    ],
)
def test_demands_that_cannot_be_met(demands, match):
    with pytest.raises(InputError, match=match):
        problem(**demands)


def test_k_beyond_the_groups_is_all_of_them():
    with pytest.warns(UserWarning, match="k = 5 is more than the 3 groups; using k = 3"):
        assert GroupedProblem(plain(k=5), GROUPS).k == 3


def test_without_any_curvature_it_is_refused():
    A = np.eye(6)[:, [0, 0, 1, 2, 3, 4]]
    with pytest.raises(UnsupportedError, match=r"lam is 0 and the features are \(nearly\) dependent"):
        solve(GroupedProblem(Problem(A, np.ones(6), 1, lam=0.0), ["g", "g", "h", "h", "i", "i"]))


def test_independent_columns_need_no_ridge():
    made = GroupedProblem(plain().replace(lam=0.0), GROUPS)
    result = solve(made, signals=())
    values = {s: made.fit(s).value for s in itertools.combinations(range(3), 2)}
    assert result.upper == pytest.approx(min(values.values()), rel=1e-9)
    assert result.reached


def test_other_bounds_and_methods_say_why_not():
    with pytest.raises(
        UnsupportedError, match=r"the bound 'apg' is for problems with a target .*of problems with groups"
    ):
        solve(problem(), bound="apg")
    with pytest.raises(UnsupportedError, match="'grouped' is for problems with groups, but this is one of"):
        solve(plain(), bound="grouped")
    with pytest.raises(UnsupportedError, match=r"'omp' chooses single features, but .* in groups; use forward or swap"):
        solve(problem(), heuristics=("omp",))


@pytest.mark.parametrize("method", ["forward", "swap"])
def test_methods_choose_groups(method):
    result = run_heuristic(method, problem(), signals=())
    assert result.support == (0, 1)
    assert result.lower <= result.upper


# --- results and what is made of them ---


def test_results_speak_of_groups_and_columns():
    result = solve(problem(), signals=())
    assert result.feature_names == ("region", "age")
    assert result.columns == (0, 1, 2, 3)
    assert result.column_names == NAMES
    assert result.coef.shape == (6,)
    told = json.loads(result.to_json())
    assert told["support"] == [0, 1]
    assert told["feature_names"] == ["region", "age"]
    assert told["groups"] == [[0, 1, 2], [3], [4, 5]]
    assert told["column_names"] == list(NAMES)
    assert len(told["coef"]) == 6
    page = run_page(result, problem())
    assert "2 of 3 groups" in page
    assert "region" in page
    assert "north" in page
    pytest.importorskip("matplotlib")
    labels = [tick.get_text() for tick in result.plot_coefficients().axes[0].get_yticklabels()]
    assert labels == ["north", "south", "east", "age"]


@pytest.mark.parametrize("candidate", [["region", "age"], ["south", "age"], [0, 1], [True, True, False]])
def test_certify_takes_groups(candidate):
    certified = certify(problem(), candidate=candidate, signals=())
    assert certified.support == (0, 1)
    assert certified.reached
    assert "groups" in str(certified)


def test_certify_takes_results_coefficients_and_estimators():
    result = solve(problem(), signals=())
    assert certify(problem(), candidate=result, signals=()).support == result.support
    assert certify(problem(), coef=result.coef, signals=()).absolute_gap == pytest.approx(result.absolute_gap, abs=1e-9)
    with pytest.raises(InputError, match="3 coefficients were given for 6 features"):
        certify(problem(), coef=[1.0, 0.0, 0.0])
    with pytest.raises(InputError, match="there is no group or feature called 'nobody'"):
        certify(problem(), candidate=["nobody"])
    with pytest.raises(InputError, match="k is 2"):
        certify(problem(), coef=np.ones(6))

    class Fitted:
        coef_ = np.array([0.0, 1.0, 0.0, 2.0, 0.0, 0.0])
        intercept_ = 1.0

    assert certify(problem(), candidate=Fitted(), signals=()).support == (0, 1)


@pytest.mark.parametrize("loss", ["quadratic", "logistic"])
def test_near_optimal_lists_sets_of_groups(loss):
    made = problem(loss)
    near = near_optimal(made, tau=1e6, signals=())
    assert near.complete
    assert [model.support for model in near.models] == sorted(
        itertools.combinations(range(3), 2), key=lambda support: made.fit(support).value
    )
    assert "sets of 2 groups" in str(near)


def test_paths_and_comparisons():
    path = solve_path(problem(), lams=[1.0, 0.1], signals=())
    assert [(r.problem["k"], r.problem["lam"]) for r in path.results] == [(1, 1.0), (2, 1.0), (1, 0.1), (2, 0.1)]
    assert all(result.reached for result in path.results)
    comparison = compare(problem(), time_limit=None, signals=())
    assert {row.method for row in comparison.rows} == {"forward", "swap"}
    assert comparison.result.reached


def test_prepared_data_are_undone():
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((25, 5)) + 3.0, rng.standard_normal(25) + 7.0
    inner = Problem.prepared(A, y, 1, lam=0.1, intercept=True, scale=True, weights=rng.uniform(0.5, 2, 25))
    made = GroupedProblem(inner, [0, 0, 1, 1, 1])
    result = solve(made, signals=())
    assert made.preparation is not None
    coef, intercept = made.preparation.undo(result.prepared.coef)
    assert result.upper == pytest.approx(min(made.fit([g]).value for g in (0, 1)))
    assert abs(np.average(y - A @ coef - intercept, weights=inner.preparation.weights)) < 1e-9


# --- files, commands ---


def test_instance_files_keep_groups(tmp_path):
    labels = ("region", "region", "region", "", "blood", "blood")
    source = plain()
    write_instance(tmp_path / "g.npz", Instance(source.A, source.y, 2, 0.5, feature_names=NAMES, groups=labels))
    made = read_instance(tmp_path / "g.npz").grouped_problem()
    assert made.hash == problem().hash
    loaded = exactsel.load(tmp_path / "g.npz", drop=["age"])
    assert isinstance(loaded, GroupedProblem)
    assert loaded.feature_names == ("region", "blood")
    with pytest.raises(InputError, match="names no groups of columns; give groups"):
        Instance(source.A, source.y, 2, 0.5).grouped_problem()


def test_text_and_files_name_groups(tmp_path):
    wanted = {"region": [0, 1], "blood": ["a", 5]}
    names = ("r_n", "r_s", "east", "age", "a", "b")
    assert read_groups("region=r_*; blood=a,5", names) == wanted
    (tmp_path / "g.json").write_text('{"region": ["r_*"], "blood": ["a", 5]}')
    assert read_groups(str(tmp_path / "g.json"), names) == wanted
    (tmp_path / "g.csv").write_text("column,group\nr_?,region\na,blood\n5,blood\n")
    assert read_groups(str(tmp_path / "g.csv"), names) == wanted


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("region", r"groups holds 'region', which is no group; write NAME=COLUMN"),
        (" ; ", "groups names no group"),
        ("g=z*", r"the pattern 'z\*' of the group 'g' matches no feature; correct it"),
        ("missing.json", "the groups cannot be read from missing.json"),
    ],
)
def test_texts_that_name_no_groups(text, match):
    with pytest.raises(InputError, match=match):
        read_groups(text, NAMES)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [("g.json", "[1, 2]", "no JSON object of lists"), ("g.csv", "a,b,c\n", "two cells in every line")],
)
def test_files_that_name_no_groups(tmp_path, name, content, match):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=match):
        read_groups(str(tmp_path / name), NAMES)


def test_categories_become_groups():
    columns = [
        Column("sex", None, kind="text", texts=("f", "m", "f")), Column("rooms", np.array([2.0, 3.5, 2.0])),
        Column("size", np.array([1.0, 2.0, 3.0])), Column("y", np.array([1.0, 2.0, 3.0])),
    ]  # fmt: skip
    found = instance_from(columns, coding=Coding(["sex", "rooms"]))
    assert found.feature_names == ("sex[m]", "rooms[3.5]", "size")
    assert found.groups == ("sex", "rooms", "")
    np.testing.assert_array_equal(found.A[:, 0], [0, 1, 0])
    np.testing.assert_array_equal(found.A[:, 1], [0, 1, 0])


def test_a_level_left_out_joins_the_reference(table):
    about = [table, "--factors", "region,smoker", "-k", "2", "--quiet", "--json"]
    told = json.loads(run("solve", *about).stdout)
    assert told["feature_names"] == ["region", "age"]
    assert told["groups"] == [[0, 1], [2], [3]]
    joined = json.loads(run("solve", *about, "--drop", "region[n]").stdout)
    assert joined["groups"] is None
    assert joined["feature_names"] == ["region[s]", "age"]
    assert joined["upper"] > told["upper"]
    with pytest.raises(InputError, match=r"no column called 'region\[x\]'"):
        run("solve", *about, "--drop", "region[x]")


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (Column("c", None, kind="text", missing=2, texts=("f",)), "column c holds 2 missing values and cannot be"),
        (Column("c", None, kind="dates"), "column c holds dates and cannot be a factor"),
        (Column("c", np.arange(200.0)), "column c has 200 different values, but a factor has at most 100"),
    ],
)
def test_columns_that_are_no_categories(column, match):
    with pytest.raises(InputError, match=match):
        instance_from([column, Column("y", np.arange(200.0))], coding=Coding(["c"]))


def test_numbers_have_no_categories(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(InputError, match=r"factors=.0. is for tables with named columns"):
        read_data(tmp_path / "a.npy", factors=["0"])


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(7)
    region, smoker = rng.choice(["n", "s", "e"], 40), rng.choice(["yes", "no"], 40)
    age = rng.normal(50, 10, 40)
    y = (region == "s") * 2.0 + 0.05 * age + 0.1 * rng.standard_normal(40)
    lines = ["region,smoker,age,y"]
    lines += [f"{r},{s},{a:.1f},{t:.3f}" for r, s, a, t in zip(region, smoker, age, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "t.csv"


def run(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return CliRunner().invoke(cli, [str(a) for a in arguments], standalone_mode=False, catch_exceptions=False)


def test_commands_take_groups(table, tmp_path):
    proof, page = tmp_path / "run.exsel", tmp_path / "run.html"
    about = [table, "--factors", "region,smoker", "-k", "2", "--lam", "0.1", "--intercept"]
    solved = run("solve", *about, "--quiet", "--proof", proof, "--report", page)
    assert solved.return_value == 0
    assert "region: 0, 1" in solved.stdout
    assert "region[s]" in solved.stdout
    assert "     0   2  region: 0, 1" in solved.stdout
    assert "intercept" in solved.stdout
    assert "2 of 3 terms" in page.read_text()
    assert run("verify", proof, *about).return_value == 0
    assert run("verify", proof, *about, "--groups", "x=region[n],smoker[yes]").return_value == 3
    told = json.loads(run("solve", *about, "--quiet", "--json").stdout)
    assert told["feature_names"] == ["region", "age"]
    assert [row["column"] for row in told["model"]] == [0, 1, 3]
    assert json.loads(run("certify", *about, "--quiet", "--json", "--support", "region,age").stdout)["gap"] < 1e-5
    assert "set of 2 terms is within" in run("best", *about, "--criterion", "objective", "--within", "1").stdout
    assert "region" in run("compare", *about, "--heuristic", "forward,swap").stdout
    assert run("path", *about, "--k-max", "2").return_value == 0
    facts = json.loads(run("info", *about, "--json").stdout)
    assert (facts["groups"], facts["largest_group"], facts["supports"]) == (3, 2, 3)
    assert run("play", *about, "--dot").return_value == 0
    assert run("play", *about, "--html", tmp_path / "play.html").return_value == 0
    told = json.loads(run("path", *about, "--cv", "3", "--json").stdout)
    assert told["best"]["one_standard_error"]["k"] <= told["best"]["cv_error"]["k"]
    with pytest.raises(InputError, match="--groups is given, but column subset selection has no groups"):
        run("solve", table, "--drop", "region,smoker", "--problem", "css", "-k", "1", "--groups", "g=age")


def test_the_other_checkers_command(table, tmp_path):
    """An instance file keeps the groups, so both checkers' commands know them."""
    instance, proof = tmp_path / "t.npz", tmp_path / "t.exsel"
    run("data", "convert", table, instance, "--factors", "region,smoker", "-k", "1", "--lam", "0.5")
    assert run("solve", instance, "--quiet", "--proof", proof).return_value == 0
    assert check_by_fractions([str(proof), str(instance)]) == 0
    from exactsel_certificates.__main__ import main as check_by_command

    assert check_by_command([str(proof), str(instance)]) == 0
    assert check_by_command([str(proof), str(instance), "--groups", "0,1"]) == 0
    assert check_by_command([str(proof), str(instance), "--groups", "0,1,2"]) == 3
    assert check_by_command([str(proof), str(instance), "--groups", "99"]) == 2


# --- scikit-learn ---


def test_estimators_take_groups():
    pytest.importorskip("sklearn")
    from exactsel.sklearn import BestSubsetClassifier, BestSubsetRegressor, BestSubsetSelector

    source = plain()
    groups = [0, 0, 0, 1, 2, 2]
    model = BestSubsetRegressor(k=1, lam=0.1, groups=groups).fit(source.A, source.y)
    assert model.support_.tolist() == [0, 1, 2]
    assert model.claim_ in ("optimal", "within_eps")
    assert BestSubsetRegressor(k=9, lam=0.1, groups=groups).fit(source.A, source.y).support_.size == 6
    assert BestSubsetSelector(k=1, lam=0.1, groups=groups).fit(source.A, source.y).get_support().sum() == 3
    labels = np.where(source.y > 0, "yes", "no")
    assert BestSubsetClassifier(k=1, groups=groups).fit(source.A, labels).coef_.shape == (1, 6)
