"""The report of a run: what it says is what the result says, and the file stands alone."""

from __future__ import annotations

import itertools
import math
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import checked_page
from samples import sample

from exactsel import ColumnSubsetProblem, InputError, Problem, Search, load, solve, write_report
from exactsel.cli.main import main as run_command_line
from exactsel.observers.history import MOST_POINTS, History, closers_text
from exactsel.problem.model import PreparedModel
from exactsel.report.page import embedded_json
from exactsel.report.run import headline, run_page
from exactsel.report.svg import Series, line_chart
from exactsel.search.events import Discarded, Divided, Fixed, IncumbentFound, LowerBoundRaised
from exactsel.solving.outcome import Claim
from exactsel.studies.close import close_models
from exactsel.studies.exchange import NEAR, neighbourhood

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def random_problem(seed: int, d: int, k: int, loss: str = "quadratic") -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3 * d, d))
    y = A @ rng.normal(size=d) + rng.normal(size=3 * d)
    return Problem(A, np.sign(y) if loss == "logistic" else y, k, loss=loss, lam=0.3)


@pytest.fixture(scope="module")
def solved():
    problem = load(INSTANCES / "outlier.npz")
    return problem, solve(problem)


class TestHistory:
    def test_it_agrees_with_the_events(self):
        problem = load(INSTANCES / "labels.npz")
        result = solve(problem, record=True, subtrees=False, heuristics="none")
        history = result.history
        assert sum(history.closed.values()) == sum(isinstance(e, Discarded) for e in result.events)
        assert history.splits == sum(isinstance(e, Divided) for e in result.events)
        assert history.put_in + history.left_out == sum(len(e.fixings) for e in result.events if isinstance(e, Fixed))
        found = [e for e in result.events if isinstance(e, IncumbentFound)]
        assert [(i.value, i.support, i.source) for i in history.incumbents] == [
            (e.upper, e.support, e.source) for e in found
        ]
        assert history.moments[-1].lower == result.lower
        assert history.moments[-1].upper == result.upper

    def test_bounds_only_improve(self):
        result = solve(random_problem(3, d=12, k=4))
        moments = result.history.moments
        for before, after in itertools.pairwise(moments):
            assert after.seconds >= before.seconds
            assert after.lower >= before.lower
            assert after.upper <= before.upper

    def test_a_long_history_is_thinned(self, solved):
        problem, _ = solved
        search = Search(problem)
        search.run()
        history = History()
        for number in range(5 * MOST_POINTS):
            history(LowerBoundRaised(float(number)), search.state)
        assert MOST_POINTS / 2 <= len(history.moments) <= MOST_POINTS + 1


@pytest.mark.smoke
class TestReport:
    @pytest.mark.parametrize("file", ["outlier", "labels", "twins", "greedy-trap"])
    def test_it_stands_alone_and_tells_the_result(self, file):
        problem = load(INSTANCES / f"{file}.npz")
        result = solve(problem)
        page = checked_page(run_page(result, problem, command="exactsel solve x.npz", verify="exactsel verify x.proof"))
        assert headline(result) in page.shown
        assert f"{result.upper:.9g}" in page.shown
        assert problem.hash in page.shown
        assert "exactsel solve x.npz" in page.shown
        assert "exactsel verify x.proof" in page.shown
        for j in result.support:
            assert problem.feature_names[j] in page.shown
            assert f"{result.coef[j]:.8g}" in page.shown

    def test_no_command_no_section(self, solved):
        problem, result = solved
        assert "Do it again" not in checked_page(run_page(result, problem)).shown

    def test_a_result_alone_will_do(self, solved):
        _, result = solved
        assert "How much hangs" not in checked_page(run_page(result)).shown
        checked_page(run_page(replace(result, history=None)))

    @pytest.mark.parametrize("claim", list(Claim))
    def test_optimal_is_said_of_the_optimal_only(self, solved, claim):
        problem, result = solved
        said = checked_page(run_page(replace(result, claim=claim), problem)).shown.lower()
        assert ("this one is optimal" in said) == ("proven optimal" in said) == (claim is Claim.OPTIMAL)
        assert claim.value in said

    def test_no_bound_at_all(self):
        problem = load(INSTANCES / "labels.npz")
        result = replace(solve(problem, time_limit=0), lower=-math.inf, claim=Claim.HEURISTIC_ONLY)
        assert "nothing is known" in checked_page(run_page(result, problem)).shown

    def test_column_subset_selection(self):
        A = np.random.default_rng(0).normal(size=(8, 6))
        problem = ColumnSubsetProblem(A, 2)
        page = checked_page(run_page(solve(problem), problem))
        assert "Frobenius" in page.shown

    def test_names_cannot_break_the_page(self):
        name = "<script>alert(1)</script>&\"'"
        A = np.random.default_rng(1).normal(size=(9, 2))
        problem = Problem(A, A[:, 0], 1, lam=0.1, feature_names=[name, "b"])
        text = run_page(solve(problem), problem, command=name)
        assert name in checked_page(text).shown
        assert "<script>alert" not in text
        assert "<" not in embedded_json({"name": name})

    def test_the_empty_model(self):
        problem = Problem(np.eye(4)[:, :3], np.zeros(4), 0, lam=1.0)
        assert "uses no feature" in checked_page(run_page(solve(problem), problem)).shown

    def test_scope_is_said(self, solved):
        _, result = solved
        assert "This holds for small models." in checked_page(run_page(replace(result, valid_for="small models"))).shown

    def test_headlines_differ(self, solved):
        _, result = solved
        assert len({headline(replace(result, claim=claim)) for claim in Claim}) == len(Claim)


class TestExchanges:
    @pytest.mark.parametrize("seed", sample(6, 6))
    def test_against_all_supports(self, seed):
        loss = ("quadratic", "huber", "logistic")[seed % 3]
        problem = random_problem(seed, d=6, k=3, loss=loss)
        result = solve(problem)
        around = neighbourhood(problem, result.support, result.upper, [])
        near = set()
        for exchange in around.exchanges:
            rest = tuple(j for j in result.support if j != exchange.column)
            assert exchange.without == pytest.approx(problem.fit(rest).value)
            others = {j: problem.fit((*rest, j)).value for j in range(problem.d) if j not in result.support}
            assert exchange.replaced == pytest.approx(min(others.values()), rel=1e-9)
            assert others[exchange.replacement] == pytest.approx(exchange.replaced, rel=1e-9)
            near |= {
                tuple(sorted((*rest, j)))
                for j, value in others.items()
                if value <= result.upper + NEAR * abs(result.upper)
            }
        assert around.near_optimal == len(near | {result.support})

    def test_demands_are_kept(self):
        problem = random_problem(4, d=6, k=3).replace(force_in=[5], force_out=[0])
        result = solve(problem)
        around = neighbourhood(problem, result.support, result.upper, [])
        assert {exchange.column for exchange in around.exchanges} == {*result.support} - {5}
        assert all(exchange.replacement not in (0, None) for exchange in around.exchanges)
        shown = checked_page(run_page(result, problem)).shown
        assert "that the constraints allow" in shown
        assert "in every model: 5; in no model: 0" in shown

    def test_every_column_chosen(self):
        problem = random_problem(1, d=3, k=3)
        result = solve(problem)
        around = neighbourhood(problem, result.support, result.upper, [])
        assert all(exchange.replacement is None for exchange in around.exchanges)
        checked_page(run_page(result, problem))

    def test_models_met_are_counted_once(self):
        problem = random_problem(2, d=5, k=2)
        result = solve(problem)
        met = [(result.upper, result.support)] * 3
        assert neighbourhood(problem, result.support, result.upper, met) == neighbourhood(
            problem, result.support, result.upper, []
        )

    def test_too_many_are_left_alone(self, monkeypatch):
        monkeypatch.setattr("exactsel.studies.exchange.MOST_MODELS", 3)
        problem = random_problem(2, d=5, k=2)
        assert neighbourhood(problem, (0, 1), 1.0, []) is None


class TestCloseModels:
    @pytest.mark.parametrize("seed", sample(3, 3))
    def test_a_complete_list(self, seed):
        problem = random_problem(seed, d=6, k=3)
        result = solve(problem)
        values = {s: problem.fit(s).value for s in itertools.combinations(range(6), 3)}
        close = close_models(problem, result)
        best = {s for s, value in values.items() if value <= (1 + close.share) * min(values.values())}
        assert close.share == NEAR
        assert {model.support for model in close.near.models} == best
        shown = checked_page(run_page(result, problem)).shown
        expected = "No other set of 3 features" if len(best) == 1 else f"Exactly {len(best)} sets of 3 features"
        assert expected in shown
        assert "not a complete list" not in shown

    def test_how_often_each_column_occurs(self):
        problem = Problem(np.eye(5), np.array([5.0, 1, 1, 1, 0]), 3, lam=0.1, feature_names=list("abcde"))
        result = solve(problem)
        shown = checked_page(run_page(result, problem)).shown
        assert "Exactly 3 sets of 3 features" in shown
        assert "Features in all of them: a (0)." in shown
        assert "a (0) 3 100" in shown
        assert "b (1) 2 67" in shown

    def test_too_many_or_too_slow_falls_back_and_says_so(self, monkeypatch):
        problem = Problem(np.eye(8), np.ones(8), 3, lam=0.1)
        result = solve(problem)
        monkeypatch.setattr("exactsel.studies.close.CAP", 10)
        shown = checked_page(run_page(result, problem)).shown
        assert "was not made: there are more than 10 within 0.1 % of the best." in shown
        assert "(not a complete list)" in shown
        monkeypatch.setattr("exactsel.studies.close.SECONDS", (0.0, 0.0))
        shown = checked_page(run_page(result, problem)).shown
        assert "seconds were too few" in shown

    def test_a_time_limit_holds_for_search_and_list(self):
        problem = random_problem(0, d=6, k=3)
        result = solve(problem, time_limit=1000.0)
        assert close_models(problem, result).near is not None
        spent = replace(result, times={**result.times, "total": 1000.0})
        assert close_models(problem, spent).near is None

    def test_what_is_not_proven_has_no_list(self):
        problem = random_problem(1, d=30, k=5, loss="logistic")
        result = replace(solve(problem, node_limit=1), claim=Claim.BOUNDED)
        assert close_models(problem, result).near is None
        assert "is not proven to be the best" in checked_page(run_page(result, problem)).shown


class TestCharts:
    def test_infinities_and_single_values(self):
        points = [(0.0, -math.inf), (1.0, 5.0)]
        svg = line_chart([Series("a", "upper", points)], title="t", description="d", x_label="x", y_label="y")
        assert "nan" not in svg
        assert "inf" not in svg
        empty = line_chart([Series("a", "upper", [])], title="t", description="d", x_label="x", y_label="y")
        assert "nothing to draw" in empty

    def test_logarithmic(self):
        points = [(float(n), 1.0 / n) for n in range(1, 2000)]
        svg = line_chart(
            [Series("a", "upper", points)], title="t", description="d", x_label="x", y_label="y", log_x=True
        )
        assert svg.count("V") <= 700
        assert ">1000<" in svg


class TestFigures:
    def test_both(self, solved):
        pytest.importorskip("matplotlib")
        _, result = solved
        figure = result.plot_bounds()
        assert len(figure.axes[0].lines) == 3
        assert figure._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
        bars = result.plot_coefficients().axes[0].patches
        assert [bar.get_width() for bar in bars] == [result.coef[j] for j in result.support]
        assert result.plot_bounds(figure.axes[0]) is figure

    def test_nothing_to_draw(self, solved):
        pytest.importorskip("matplotlib")
        _, result = solved
        with pytest.raises(InputError, match="no history"):
            replace(result, history=None).plot_bounds()
        with pytest.raises(InputError, match="no coefficients"):
            replace(result, prepared=PreparedModel(np.empty(0)), model=None).plot_coefficients()


class TestCommand:
    def test_the_report_repeats_the_run(self, tmp_path, capsys):
        target, instance = tmp_path / "run.html", str(INSTANCES / "outlier.npz")
        given = ["solve", instance, "-k", "2", "--no-subtrees", "--eps", "0.5", "--quiet", "--report", str(target)]
        with pytest.raises(SystemExit) as ended:
            run_command_line(given)
        assert ended.value.code == 0
        assert capsys.readouterr().err == ""
        page = checked_page(target.read_text(encoding="utf-8"))
        assert shlex.join(["exactsel", "solve", instance, "--k", "2", "--eps", "0.5", "--no-subtrees"]) in page.shown

    @pytest.mark.parametrize("command", [["solve", "--report"], ["path", "--report"], ["best", "--report"],
                                         ["compare", "--html"]])  # fmt: skip
    def test_a_line_names_the_report_that_is_written(self, tmp_path, capsys, command):
        target = tmp_path / "run.html"
        with pytest.raises(SystemExit) as ended:
            run_command_line([command[0], str(INSTANCES / "outlier.npz"), "-k", "1", command[1], str(target)])
        assert ended.value.code == 0
        assert capsys.readouterr().err.endswith(f"report       {target}\n")
        checked_page(target.read_text(encoding="utf-8"))

    def test_the_report_says_how_to_check_the_proof(self, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        options = ["-k", "3", "--force-in", "spike"]
        instance = str(INSTANCES / "outlier.npz")
        with pytest.raises(SystemExit) as ended:
            run_command_line(["solve", instance, *options, "--proof", "a b.exsel", "--report", "run.html", "--quiet"])
        assert ended.value.code == 0
        shown = checked_page((tmp_path / "run.html").read_text(encoding="utf-8")).shown
        check = shlex.join(["exactsel", "verify", "a b.exsel", instance, "--k", "3", "--force-in", "spike"])
        assert check in shown
        assert "in every model: spike" in shown
        with pytest.raises(SystemExit) as ended:
            run_command_line(shlex.split(check)[1:])
        assert ended.value.code == 0

    @pytest.mark.parametrize("command", [["solve", "--report"], ["compare", "--html"], ["play", "--html"]])
    @pytest.mark.parametrize(("place", "words"), [("no/x.html", "there is no such folder"), (".", "is a folder")])
    def test_a_place_that_cannot_be_written_is_refused_at_once(
        self, tmp_path, capsys, monkeypatch, command, place, words
    ):
        monkeypatch.setattr("exactsel.solving.api.solve", lambda *_, **__: pytest.fail("solved first"))
        with pytest.raises(SystemExit) as ended:
            run_command_line([command[0], str(INSTANCES / "twins.npz"), command[1], str(tmp_path / place)])
        assert ended.value.code == 2
        assert words in capsys.readouterr().err

    def test_write_report(self, tmp_path, solved):
        problem, result = solved
        write_report(tmp_path / "run.html", result, problem)
        checked_page((tmp_path / "run.html").read_text(encoding="utf-8"))


def test_what_closers_brought_is_said_in_one_line():
    said = closers_text({
        "bounds": {"calls": 1, "closed": 0, "fixed": 1_200},
        "explored": {"subtrees": 2, "nodes": 31, "left_open": 1},
        "of your own": {"subtrees": 1, "nodes": 0, "left_open": 0},
    })  # fmt: skip
    assert said == (
        "bounds: 1 call, 1,200 features fixed; enumeration in closed form: 2 subtrees, 31 nodes, 1 region left open; "
        "of your own: 1 subtree"
    )
