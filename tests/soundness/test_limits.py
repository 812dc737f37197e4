"""At most so many columns of each group: against all sets of columns, proven, and through every door."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from click.testing import CliRunner
from samples import sample

from exactsel import InputError, Problem, best_model, certify, heuristics, load, near_optimal, solve, solve_path
from exactsel.cli.main import cli
from exactsel.kernels.node import FREE, IN, OUT
from exactsel.problem.limits import GroupLimits
from exactsel_certificates.__main__ import main as first_checker
from exactsel_certificates.standalone.__main__ import main as second_checker


def respects(labels, most, chosen):
    held = [labels[j] for j in chosen if labels[j]]
    return all(held.count(label) <= most for label in held)


def test_no_checker_takes_a_model_or_a_proof_of_other_limits(tmp_path):
    rng = np.random.default_rng(5)
    A = rng.standard_normal((20, 5))
    y = A[:, 0] + A[:, 1]
    labels = ["a", "a", "a", "b", "b"]
    np.savez(tmp_path / "data.npz", A=A, y=y, k=2, lam=0.1, loss="quadratic", groups=np.array(labels))
    free = solve(Problem(A, y, 2, lam=0.1), proof=tmp_path / "free.exsel", signals=())
    assert free.support == (0, 1)
    limited = solve(Problem(A, y, 2, lam=0.1, groups=labels, per_group=1), proof=tmp_path / "one.exsel", signals=())
    assert limited.upper > free.upper
    for name, most, code in (("one", "1", 0), ("one", "2", 3), ("free", "1", 3)):
        words = [str(tmp_path / f"{name}.exsel"), str(tmp_path / "data.npz"), "--per-group", most]
        assert first_checker(words) == code
        assert second_checker(words) == code
    # A file that says what the problem is, but shows the model of another one.
    from exactsel_certificates.standalone.domain import problem_of
    from exactsel_certificates.standalone.group_limits import Limits

    problem = problem_of(A.tolist(), y.tolist(), 2, "quadratic", 0.1, 1.0, groups=[[0, 1, 2], [3, 4]], per_group=1)
    assert isinstance(problem.hierarchy, Limits)
    assert not problem.hierarchy.allows({0, 1}, set(), 5, 2)
    assert problem.hierarchy.allows({0, 3}, set(), 5, 2)


class TestConstraint:
    """What limits imply, by every set of a region."""

    @pytest.mark.parametrize("seed", sample(40, 40))
    def test_implied_keeps_every_set(self, seed):
        rng = np.random.default_rng([seed, 31])
        d, k, most = 6, int(rng.integers(1, 7)), int(rng.integers(1, 3))
        limits = GroupLimits(most, ((0, 2, 3), (1, 4, 5)), d)
        state = rng.choice([OUT, FREE, FREE, IN], d).astype(np.int8)
        group = [0, 1, 0, 0, 1, 1]

        def sets(region):
            included, free = np.flatnonzero(region == IN).tolist(), np.flatnonzero(region == FREE).tolist()
            more = itertools.chain.from_iterable(itertools.combinations(free, r) for r in range(len(free) + 1))
            found = (frozenset([*included, *some]) for some in more)
            return {s for s in found if len(s) <= k and all([group[j] for j in s].count(g) <= most for g in (0, 1))}

        implied = limits.implied(state, k)
        assert sets(state) == (set() if implied is None else sets(implied))
        if implied is None:
            return
        whole = frozenset(np.flatnonzero(implied != OUT).tolist())
        among = limits.to_divide(implied, k)
        if np.count_nonzero(implied == IN) < k and len(whole) <= k:
            assert (among is None) == (whole in sets(implied))
        assert among is None or (among.any() and np.all(implied[among] == FREE))
        wanted = rng.permutation(d).tolist()
        assert frozenset(limits.restricted(wanted, k, implied)) in sets(implied)
        pair = {int(j) for j in rng.integers(d, size=2)}
        smallest = min((s for s in sets(implied) if s >= pair), key=len, default=None)
        found = limits.completed(pair, k, implied)
        assert found == (None if smallest is None else tuple(sorted(smallest)))


class TestDoors:
    def data(self, tmp_path):
        rng = np.random.default_rng(3)
        A = rng.standard_normal((40, 6))
        y = A[:, 0] + 0.9 * A[:, 1] + 0.5 * A[:, 3] + 0.1 * rng.standard_normal(40)
        file = tmp_path / "data.npz"
        np.savez(file, A=A, y=y, k=3, lam=0.1, feature_names=np.array([*"abcdef"]))
        return A, y, str(file)

    @pytest.mark.smoke
    def test_the_command_line(self, tmp_path):
        _, _, file = self.data(tmp_path)
        run, proof = CliRunner(), str(tmp_path / "run.exsel")
        named = ["--groups", "first=a,b,c;second=d,e", "--per-group", "1"]
        done = run.invoke(cli, ["solve", file, *named, "--json", "--quiet", "--proof", proof])
        assert done.exit_code == 0, done.output
        answer = json.loads(done.stdout)
        assert answer["limits"] == {"groups": [[0, 1, 2], [3, 4]], "most": 1}
        assert answer["support"] == [0, 3, 5]
        assert "VERIFIED" in run.invoke(cli, ["verify", proof, file, *named]).stdout
        assert "constraint is 'limits', but 'none' was given" in run.invoke(cli, ["verify", proof, file]).stdout
        for more, words in (
            (["--per-group", "1"], "no groups"),
            ([*named[:2], "--per-group", "0"], "at least 1"),
            ([*named, "--hierarchy", str(tmp_path / "h.txt")], "leave one of them out"),
            ([*named, "--problem", "css"], "leave it out"),
        ):
            (tmp_path / "h.txt").write_text("a: b\n")
            refused = run.invoke(cli, ["solve", file, *more, "--quiet"])
            assert refused.exit_code != 0
            assert words in f"{refused.exception}{refused.stderr}"
        assert "Error" not in run.invoke(cli, ["path", file, *named, "--cv", "3"]).stderr

    def test_near_paths_best_models_heuristics_and_certificates_keep_to_it(self, tmp_path):
        A, y, file = self.data(tmp_path)
        labels = ["A", "A", "A", "B", "B", None]
        problem = load(file, groups=labels, per_group=1)
        assert problem.hash == Problem(A, y, 3, lam=0.1, groups=labels, per_group=1).hash
        every = [c for r in range(4) for c in itertools.combinations(range(6), r)]
        sets = [c for c in every if respects([label or "" for label in labels], 1, c)]
        values = {c: problem.fit(c).value for c in sets}
        best = min(values.values())
        near = near_optimal(problem, tau=2.0 * best, signals=())
        assert {m.support for m in near.models} == {c for c in sets if len(c) == 3 and values[c] <= 3.0 * best}
        for result in solve_path(problem, signals=()).results:
            size = result.problem["k"]
            assert result.upper == pytest.approx(min(values[c] for c in sets if len(c) <= size), rel=1e-9)
        assert tuple(heuristics.run("forward", problem).support) in sets
        found = best_model(problem, criterion="bic", signals=())
        assert tuple(found.result.support) in sets
        assert certify(problem, support=["a", "d"], signals=()).value >= best - 1e-9
        with pytest.raises(InputError, match="limit of 1"):
            certify(problem, support=["a", "b"])

    def test_estimators(self, tmp_path):
        estimators = pytest.importorskip("exactsel.sklearn")
        A, y, _ = self.data(tmp_path)
        labels = ["A", "A", "A", "B", "B", None]
        fitted = estimators.BestSubsetRegressor(k=3, lam=0.1, groups=labels, per_group=1).fit(A, y)
        same = Problem.prepared(A, y, 3, lam=0.1, intercept=True, groups=labels, per_group=1)
        assert fitted.objective_ == solve(same, signals=()).upper
        assert respects([label or "" for label in labels], 1, fitted.support_)
