"""Pairs that exclude each other: against all sets of columns, proven, and through every door."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from related_cases import random_pairs
from restricted_files import admissible_sets, file_of, first_says, second_says, smallest
from samples import sample

from exactsel import (
    GroupedProblem,
    InputError,
    Instance,
    Problem,
    best_model,
    boxed,
    certify,
    heuristics,
    load,
    near_optimal,
    solve,
    solve_path,
)
from exactsel.cli.main import cli
from exactsel.data.instance import read_instance, write_instance
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.not_both import NotBoth
from exactsel.solving.serialize import given, made_again
from exactsel_certificates import formula as checked
from exactsel_certificates.__main__ import main as first_checker
from exactsel_certificates.container import COUNTED
from exactsel_certificates.not_both import NotBoth as CheckedPairs
from exactsel_certificates.standalone.__main__ import main as second_checker

PAIRS = [("a", "b"), ("b", "c"), ("d", "e")]
NUMBERS = ((0, 1), (1, 2), (3, 4))


def together(chosen, pairs=NUMBERS):
    return not any({*pair} <= {*chosen} for pair in pairs)


def table():
    """The two best columns exclude each other."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 6))
    return A, A[:, 0] + 0.9 * A[:, 1] + 0.5 * A[:, 3] + 0.1 * rng.standard_normal(40)


@pytest.fixture
def file(tmp_path):
    A, y = table()
    np.savez(tmp_path / "data.npz", A=A, y=y, k=3, lam=0.1, loss="quadratic", feature_names=np.array([*"abcdef"]))
    return str(tmp_path / "data.npz")


class TestConstraint:
    """What pairs imply, by every set of a region."""

    @pytest.mark.parametrize("seed", sample(60, 60))
    def test_implied_keeps_every_set(self, seed):
        rng = np.random.default_rng([seed, 41])
        d, k = 6, int(rng.integers(1, 7))
        pairs = tuple(sorted({tuple(sorted(pair)) for pair in random_pairs(rng, d)}))
        constraint = NotBoth(pairs, d)
        state = rng.choice([OUT, FREE, FREE, IN], d, p=[0.2, 0.35, 0.3, 0.15]).astype(np.int8)

        def sets(region, most=k):
            included, free = np.flatnonzero(region == IN).tolist(), np.flatnonzero(region == FREE).tolist()
            more = itertools.chain.from_iterable(itertools.combinations(free, r) for r in range(len(free) + 1))
            found = (frozenset([*included, *some]) for some in more)
            return {s for s in found if len(s) <= most and together(s, pairs)}

        implied = constraint.implied(state, k)
        assert sets(state) == (set() if implied is None else sets(implied))
        everything = np.where(state == OUT, OUT, FREE).astype(np.int8)
        assert constraint.largest(state) >= max(map(len, sets(everything, d)))
        assert together(included := np.flatnonzero(state == IN).tolist(), pairs) == (constraint.clash(included) == ())
        if implied is None:
            return
        whole = frozenset(np.flatnonzero(implied != OUT).tolist())
        among = constraint.to_divide(implied, k)
        if np.count_nonzero(implied == IN) < k and len(whole) <= k:
            assert (among is None) == (whole in sets(implied))
        assert among is None or (among.any() and np.all(implied[among] == FREE))
        wanted = rng.permutation(d).tolist()
        assert frozenset(constraint.restricted(wanted, k, implied)) in sets(implied)
        pair = {int(j) for j in rng.integers(d, size=2)}
        smallest = min((s for s in sets(implied) if s >= pair), key=len, default=None)
        found = constraint.completed(pair, k, implied)
        assert found == (None if smallest is None else tuple(sorted(smallest)))

    def test_cliques_stars_and_paths_limit_sizes(self):
        free = np.full(6, FREE, dtype=np.int8)
        assert NotBoth(tuple(itertools.combinations(range(6), 2)), 6).largest(free) == 1
        assert NotBoth(tuple(itertools.combinations(range(4), 2)), 6).largest(free) == 3
        assert NotBoth(tuple((0, j) for j in range(1, 6)), 6).largest(free) >= 5
        assert NotBoth(((0, 1), (2, 3), (4, 5)), 6).largest(free) == 3

    def test_pairs_of_groups_as_pairs_of_columns(self):
        A, y = table()
        problem = GroupedProblem(Problem(A, y, 2, lam=0.1), ["g", "g", "h", "h", None, None], not_both=[("g", "h")])
        columns = problem.units.constraint.of_columns(problem.units)
        assert columns.pairs == ((0, 2), (0, 3), (1, 2), (1, 3))


class TestArguments:
    """What pairs are, and what is refused."""

    def test_pairs_are_read_once_in_any_order_and_lists_as_their_pairs(self):
        A, y = table()
        names = [*"abcdef"]
        made = Problem(A, y, 3, feature_names=names, not_both=[("c", "a"), (0, 2), ["a", "b", "d"], np.array([4, 5])])
        assert made.units.constraint.pairs == ((0, 1), (0, 2), (0, 3), (1, 3), (4, 5))
        assert made.describe()["not_both"] == {"pairs": [[0, 1], [0, 2], [0, 3], [1, 3], [4, 5]]}
        assert Problem(A, y, 3, not_both=[]).hash == Problem(A, y, 3).hash
        assert Problem(A, y, 3, not_both=[(1, 0)]).hash == Problem(A, y, 3, not_both=[(0, 1), (0, 1)]).hash

    @pytest.mark.parametrize(
        ("pairs", "words"),
        [
            ("a,b", "list of pairs"), (5, "list of pairs"), ([5], "pair of names"), (["ab"], "pair of names"),
            ([(0,)], "pair of names"), ([()], "pair of names"), ([(0, None)], "pair of names"), ([(0, 0)], "twice"),
            ([(0, 99)], "99"), ([("a", "nobody")], "nobody"), ([(0.0, 1.0)], "pair of names"),
            ({"a": "b"}, "pair of names"),
        ],
    )  # fmt: skip
    def test_what_is_none_is_refused(self, pairs, words):
        A, y = table()
        with pytest.raises(InputError, match=words):
            Problem(A, y, 3, feature_names=[*"abcdef"], not_both=pairs)

    def test_demands_that_exclude_each_other_are_refused_by_name(self):
        A, y = table()
        with pytest.raises(InputError, match=r"force_in names feature 0 and feature 1, but .* does not allow them"):
            Problem(A, y, 3, force_in=[0, 1], not_both=[(0, 1)])
        with pytest.raises(InputError, match="does not allow them together"):
            Problem(A, y, 3, not_both=[(0, 1)]).replace(force_in=[0, 1])
        with pytest.raises(InputError, match="does not allow them together"):
            Problem(A, y, 3, force_in=[0, 1], groups=["g", "g", "g", None, None, None], per_group=1)

    @pytest.mark.parametrize("other", [{"hierarchy": {3: [4]}}, {"groups": [0, 0, 1, 1, 2, 2], "per_group": 1}])
    def test_two_constraints_are_refused(self, other):
        A, y = table()
        with pytest.raises(InputError, match=r"not_both does not go with a .*; leave one of them out"):
            Problem(A, y, 3, not_both=[(0, 1)], **other)

    def test_a_size_that_no_set_reaches(self):
        A, y = table()
        every = [*itertools.combinations(range(6), 2)]
        result = solve(Problem(A, y, 6, lam=0.1, not_both=every), signals=())
        assert len(result.support) == 1
        assert result.reached

    def test_must_not_and_groups(self):
        A, y = table()
        result = solve(Problem(A, y, 3, lam=0.1, not_both=[(0, 1)], force_out=[0]), signals=())
        assert result.support == (1, 2, 3)
        grouped = Problem(A, y, 2, lam=0.1, groups=["g", "h", None, None, None, None], not_both=[("g", "h")])
        assert solve(grouped, signals=()).support == solve(Problem(A, y, 2, lam=0.1, not_both=[(0, 1)])).support


class TestProofs:
    """The checkers' commands, with proofs of this problem and of others."""

    def test_only_the_problem_itself_is_verified(self, file, tmp_path):
        A, y = table()
        for name, pairs in (("free", None), ("pairs", NUMBERS), ("fewer", NUMBERS[1:])):
            solve(Problem(A, y, 3, lam=0.1, not_both=pairs), proof=tmp_path / f"{name}.exsel", signals=())
            text = "".join(f"{i}, {j}\n" for i, j in pairs or ())
            (tmp_path / f"{name}.txt").write_text(f"# {name}\n{text}")
        for proof, pairs in itertools.product(("free", "pairs", "fewer"), repeat=2):
            words = [str(tmp_path / f"{proof}.exsel"), file, "--not-both", str(tmp_path / f"{pairs}.txt")]
            expected = 0 if proof == pairs else 3
            assert first_checker(words) == expected
            assert second_checker(words) == expected

    def test_names_and_members_mean_the_same(self, file, tmp_path):
        A, y = table()
        solve(Problem(A, y, 3, lam=0.1, not_both=NUMBERS), proof=tmp_path / "run.exsel", signals=())
        (tmp_path / "names.txt").write_text("a, b # comment\n\nc, b\n4,d\n")
        stored = dict(np.load(file)) | {"not_both": np.array(["b, a", "b, c", "e,d"])}
        np.savez(tmp_path / "held.npz", **stored)
        proof = str(tmp_path / "run.exsel")
        named = ["--not-both", "a,b", "--not-both", "c, b", "--not-both", "4,3"]
        for words in (["--not-both", str(tmp_path / "names.txt")], named):
            assert first_checker([proof, file, *words]) == second_checker([proof, file, *words]) == 0
        assert first_checker([proof, str(tmp_path / "held.npz")]) == 0
        assert second_checker([proof, str(tmp_path / "held.npz")]) == 0
        for words in (named[:-2], ["--not-both", "a,b,c", *named[-2:]]):
            assert first_checker([proof, file, *words]) == second_checker([proof, file, *words]) == 3
        for words in (["--not-both", "a,nobody"], ["--not-both", "a"], ["--not-both", "a,"]):
            assert first_checker([proof, file, *words]) == second_checker([proof, file, *words]) == 2
        for lines in ("a\n", "a, a\n", "a, nobody\n", "a, 99\n"):
            (tmp_path / "wrong.txt").write_text(lines)
            words = [proof, file, "--not-both", str(tmp_path / "wrong.txt")]
            assert first_checker(words) == second_checker(words) == 2
        clashing = [proof, str(tmp_path / "held.npz"), "--groups", "0,1", "--per-group", "1"]
        assert first_checker(clashing) == 2

    @pytest.mark.parametrize("seed", sample(6, 60))
    def test_covariate_patterns_are_counted_for_sets_without_a_pair(self, seed):
        rng = np.random.default_rng([seed, 43])
        n, d = 24, 5
        A = (rng.random((n, d)) < 0.5).astype(float)
        A[:, 4] = A[:, 0] if seed % 3 == 0 else A[:, 4]
        y = np.where(A @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)
        pairs = tuple(sorted({tuple(sorted(pair)) for pair in random_pairs(rng, d)}))
        instance = checked.Instance(A, y, 3, "logistic", 0.2, hierarchy=CheckedPairs(pairs))
        sets = [*admissible_sets(instance)]
        assert {*sets} == {c for r in range(4) for c in itertools.combinations(range(d), r) if together(c, pairs)}
        best = min(smallest(instance, chosen) for chosen in sets)
        for part, verified in ((1.0 - 1e-5, True), (1.0 + 1e-5, False)):
            proof = file_of(instance, [COUNTED], part * best)
            assert first_says(instance, proof, upper=1e300).verified == verified
            assert (second_says(instance, proof, upper=1e300) == "") == verified

    def test_the_model_shown_must_keep_to_the_pairs(self):
        from exactsel_certificates.standalone.domain import problem_of

        A, y = table()
        problem = problem_of(A.tolist(), y.tolist(), 3, "quadratic", 0.1, 1.0, not_both=[[0, 1]])
        assert not problem.hierarchy.allows({0, 1}, set(), 6, 3)
        assert problem.hierarchy.allows({0, 2}, set(), 6, 3)


class TestDoors:
    @pytest.mark.smoke
    def test_the_command_line(self, file, tmp_path):
        run, proof = CliRunner(), str(tmp_path / "run.exsel")
        (tmp_path / "pairs.txt").write_text("# sensors\nb, c\nd, e\n")
        named = ["--not-both", "a,b", "--not-both", str(tmp_path / "pairs.txt")]
        done = run.invoke(cli, ["solve", file, *named, "--json", "--quiet", "--proof", proof])
        assert done.exit_code == 0, done.output
        answer = json.loads(done.stdout)
        assert answer["not_both"] == {"pairs": [[0, 1], [1, 2], [3, 4]]}
        assert answer["support"] == [0, 3, 5]
        assert "VERIFIED" in run.invoke(cli, ["verify", proof, file, *named]).stdout
        assert "constraint is 'not_both', but 'none' was given" in run.invoke(cli, ["verify", proof, file]).stdout
        (tmp_path / "h.txt").write_text("a: b\n")
        for more, words in (
            (["--not-both", "a"], "no pair of columns"),
            (["--not-both", "a,nobody"], "nobody"),
            ([*named, "--hierarchy", str(tmp_path / "h.txt")], "leave one of them out"),
            ([*named, "--groups", "g=a,b", "--per-group", "1"], "leave one of them out"),
            ([*named, "--force-in", "a,b"], "leave one of them out"),
            ([*named, "--problem", "css"], "leave it out"),
        ):
            refused = run.invoke(cli, ["solve", file, *more, "--quiet"])
            assert refused.exit_code != 0
            assert words in f"{refused.exception}{refused.stderr}"
        shown = run.invoke(cli, ["solve", file, *named])
        assert "not both: a (0) and b (1), b (1) and c (2), d (3) and e (4)" in shown.stderr
        for command in (["path", file, *named, "--cv", "3"], ["info", file, *named], ["best", file, *named]):
            assert run.invoke(cli, command).exit_code == 0, command

    def test_near_paths_best_models_heuristics_and_certificates_keep_to_it(self, file):
        A, y = table()
        problem = load(file, not_both=PAIRS)
        assert problem.hash == Problem(A, y, 3, lam=0.1, not_both=NUMBERS).hash
        every = [c for r in range(7) for c in itertools.combinations(range(6), r) if together(c)]
        values = {c: problem.fit(c).value for c in every}
        best = min(values[c] for c in every if len(c) <= 3)
        near = near_optimal(problem, tau=2.0 * best, signals=())
        assert {m.support for m in near.models} == {c for c in every if len(c) == 3 and values[c] <= 3.0 * best}
        for result in solve_path(problem, signals=()).results:
            size = result.problem["k"]
            assert result.upper == pytest.approx(min(values[c] for c in every if len(c) <= size), rel=1e-9)
        for name in ("forward", "swap", "omp", "poss"):
            assert together(heuristics.run(name, problem).support)
        found = best_model(problem, criterion="bic", signals=())
        assert together(found.result.support)
        priced = best_model(problem, criterion="l0", penalty=0.3, signals=())
        assert priced.value == pytest.approx(min(values[c] + 0.3 * len(c) for c in every), rel=1e-9)
        assert certify(problem, support=["a", "d"], signals=()).value >= best - 1e-9
        with pytest.raises(InputError, match="not_both condition"):
            certify(problem, support=["a", "b"])

    def test_instance_files_and_what_takes_their_place(self, tmp_path, file):
        A, y = table()
        held = Instance(
            A, y, k=3, lam=0.1, feature_names=tuple("abcdef"), not_both=("a, b", "b,c # near copies", "3,4")
        )
        write_instance(tmp_path / "held.npz", held)
        assert read_instance(tmp_path / "held.npz").problem().hash == load(file, not_both=PAIRS).hash
        assert load(tmp_path / "held.npz", not_both=[]).units.constraint is None
        assert load(tmp_path / "held.npz", not_both=[("a", "f")]).units.constraint.pairs == ((0, 5),)
        grouped = load(tmp_path / "held.npz", groups={"first": ["a", "f"]})
        assert grouped.units.constraint.pairs == ((0, 1), (1, 2), (3, 4))
        with pytest.raises(InputError, match="none can be left out"):
            load(tmp_path / "held.npz", drop=["a"])

    def test_estimators(self):
        estimators = pytest.importorskip("exactsel.sklearn")
        A, y = table()
        fitted = estimators.BestSubsetRegressor(k=3, lam=0.1, not_both=NUMBERS).fit(A, y)
        same = Problem.prepared(A, y, 3, lam=0.1, intercept=True, not_both=NUMBERS)
        assert fitted.objective_ == solve(same, signals=()).upper
        assert together(fitted.support_)
        chosen = estimators.BestSubsetCV(ks=[2, 3], lams=[0.1], cv=3, not_both=NUMBERS).fit(A, y)
        assert together(chosen.support_)

    def test_several_targets(self):
        from exactsel import solve_targets

        A, y = table()
        found = solve_targets(A, np.column_stack([y, -y[::-1]]), k=3, lam=0.1, not_both=NUMBERS, signals=())
        assert all(together(result.support) for result in found.results)

    @pytest.mark.parametrize("restrict", [lambda p: p, lambda p: boxed(p, positive=True)])
    def test_workers_make_the_same_problem(self, restrict):
        A, y = table()
        problem = restrict(Problem.prepared(A, y, 3, lam=0.1, intercept=True, not_both=NUMBERS))
        instance, entries = given(problem)
        again = made_again(instance.A, instance.y, instance.weights, json.loads(json.dumps(entries)))
        assert again.hash == problem.hash

    def test_any_number_of_threads_and_a_checkpoint_make_the_same_tree(self, tmp_path):
        rng = np.random.default_rng(8)
        A = rng.standard_normal((30, 16))
        y = np.where(A @ rng.standard_normal(16) + rng.standard_normal(30) > 0, 1.0, -1.0)
        pairs = [pair for pair in itertools.combinations(range(16), 2) if rng.random() < 0.2]
        problem = Problem(A, y, 5, loss="logistic", lam=0.3, not_both=pairs)
        one, many = (solve(problem, threads=threads, subtrees=False, signals=()) for threads in (1, 3))
        assert (one.tree_hash, one.nodes, one.lower) == (many.tree_hash, many.nodes, many.lower)
        saved = tmp_path / "search.ckpt"
        solve(problem, node_limit=one.nodes // 2, checkpoint=saved, subtrees=False, signals=())
        assert saved.exists()
        resumed = solve(problem, resume=saved, subtrees=False, node_limit=10**6, signals=())
        assert (resumed.upper, resumed.support) == (one.upper, one.support)
        assert resumed.reached
