"""The problem: every bad input refused in one sentence, values and gradients as defined, exact fits on a support."""

from __future__ import annotations

from contextlib import suppress
from itertools import combinations, islice
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import scipy.optimize
from own_loss import PseudoHuber

from exactsel import Huber, InputError, Logistic, Problem, Quadratic, _jit, certify, solve
from exactsel.instance import Instance
from exactsel.losses.base import POINT_FUNCTIONS

A = np.arange(12.0).reshape(4, 3) ** 2
Y = np.array([1.0, -2.0, 0.5, 4.0])
LOSSES = ("quadratic", "huber", "logistic")
each_loss = pytest.mark.parametrize("loss", LOSSES)


def make(**changes) -> Problem:
    arguments = {"A": A, "y": Y, "k": 2, "lam": 0.5} | changes
    return Problem(arguments.pop("A"), arguments.pop("y"), arguments.pop("k"), **arguments)


def refuse(match: str, **changes) -> None:
    with pytest.raises(InputError, match=match) as caught:
        make(**changes)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text


def random_problem(rng, loss, n, d, kind="plain", lam=0.1, k=None) -> Problem:
    matrix = rng.standard_normal((n, d))
    if kind == "duplicates":
        matrix[:, 1], matrix[:, 2] = matrix[:, 0], -2.0 * matrix[:, 0]
    elif kind == "constant":
        matrix[:, 0], matrix[:, 1] = 1.0, 0.0
    elif kind == "scales":
        matrix *= 10.0 ** rng.uniform(-4, 4, d)
    y = matrix @ (rng.standard_normal(d) / (1.0 + np.abs(matrix).max(axis=0))) + rng.standard_normal(n)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    return Problem(matrix, y, d if k is None else k, loss=Huber(0.9) if loss == "huber" else loss, lam=lam)


def plain_objective(problem: Problem, x) -> float:
    """P(x) by the formulas of the README, in plain numpy."""
    z, y = problem.A @ x, problem.y
    if problem.loss.name == "quadratic":
        value = 0.5 * np.sum((z - y) ** 2)
    elif problem.loss.name == "huber":
        r, delta = np.abs(z - y), problem.loss.delta
        value = np.sum(np.where(r <= delta, 0.5 * r**2, delta * r - 0.5 * delta**2))
    else:
        value = np.sum(np.logaddexp(0.0, -y * z))
    return float(value + 0.5 * problem.lam * np.sum(np.square(x)))


def plain_gradient(problem: Problem, x):
    z, y = problem.A @ x, problem.y
    if problem.loss.name == "quadratic":
        slope = z - y
    elif problem.loss.name == "huber":
        slope = np.clip(z - y, -problem.loss.delta, problem.loss.delta)
    else:
        slope = -y / (1.0 + np.exp(np.clip(y * z, -700, 700)))
    return problem.A.T @ slope + problem.lam * x


def independent_minimum(problem: Problem, support) -> float:
    """The smallest objective scipy's quasi-Newton method finds on a support."""
    columns = list(support)

    def lift(part):
        x = np.zeros(problem.d)
        x[columns] = part
        return x

    found = scipy.optimize.minimize(
        lambda part: plain_objective(problem, lift(part)),
        np.zeros(len(columns)),
        jac=lambda part: plain_gradient(problem, lift(part))[columns],
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-12},
    )
    return float(found.fun)


def brute_force(problem: Problem) -> float:
    sizes = range(problem.k + 1)
    return min(problem.fit(support).value for size in sizes for support in combinations(range(problem.d), size))


class TestData:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_only_finite_numbers(self, value):
        matrix, y = A.copy(), Y.copy()
        matrix[0, :2] = y[3] = value
        refuse(r"^A holds 2 value\(s\) that are NaN or infinite; remove or fill in", A=matrix)
        refuse(r"^y holds 1 value\(s\) that are NaN or infinite; remove or fill in", y=y)

    def test_missing_entries_are_nan(self):
        refuse("NaN or infinite", A=[[1.0, None], [2.0, 3.0]], y=[1, 2])

    def test_rows_must_match(self):
        refuse("^A has 4 rows but y has 3 entries; they must describe the same rows", y=Y[:3])

    @pytest.mark.parametrize(("shape", "size"), [((0, 3), 0), ((3, 0), 3), ((0, 0), 0)])
    def test_empty(self, shape, size):
        refuse(rf"^A is empty \(shape {shape[0]} x {shape[1]}\); give", A=np.zeros(shape), y=np.zeros(size))

    @pytest.mark.parametrize("shape", [(), (4,), (2, 2, 1)])
    def test_a_is_a_table(self, shape):
        refuse(rf"^A has {len(shape)} dimension\(s\), expected a table", A=np.zeros(shape))

    @pytest.mark.parametrize("y", [3.0, Y.reshape(2, 2), Y.reshape(4, 1, 1)])
    def test_y_is_a_vector(self, y):
        refuse(r"^y has \d dimensions, expected one number per row", y=y)

    @pytest.mark.parametrize("shape", [(4, 1), (1, 4)])
    def test_a_table_of_one_column_will_do_for_y(self, shape):
        assert make(y=Y.reshape(shape)).hash == make().hash

    def test_complex_numbers(self):
        refuse("^A holds complex numbers; only real numbers are supported", A=A + 1j)
        refuse("^y holds complex numbers; only real numbers are supported", y=Y + 0j)
        refuse("^y holds complex numbers; only real numbers are supported", y=(Y + 0j).astype(object))

    @pytest.mark.parametrize("factor", [1e160, -1e160, 1e200])
    def test_squares_that_overflow(self, factor):
        refuse(r"^A holds values up to .* in size, but .* would overflow; rescale A\.$", A=A * factor)
        refuse(r"^y holds values up to .* in size, but .* would overflow; rescale y\.$", y=Y * factor)

    def test_the_largest_data_are_safe(self):
        problem = make(A=A / A.max() * 1e60, y=Y / 4 * 1e60)
        assert np.isfinite(solve(problem, heuristics=()).lower)
        assert np.isfinite(problem.gradient_scale)

    def test_whole_numbers_no_float_can_hold(self):
        refuse("^A holds a whole number too large for a float; rescale A", A=[[10**400, 1], [2, 3]], y=[1, 2])

    @pytest.mark.parametrize("masked", [np.ma.masked_greater(A, 5), np.ma.array(A)])
    def test_masked_arrays(self, masked):
        refuse("^A is a masked array; leave out or fill in", A=masked)
        refuse("^y is a masked array; leave out or fill in", y=masked[:, 0])
        with pytest.raises(InputError, match=r"^A is a masked array"):
            Instance(masked, Y)

    @pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[s]"])
    def test_dates(self, unit):
        refuse("^y holds dates or durations; turn them into numbers first", y=np.arange(4).astype(unit))

    @pytest.mark.parametrize("matrix", [[["a", "b"]] * 4, [[1, 2], [3]], [[{}, {}]] * 4])
    def test_what_is_not_numeric(self, matrix):
        refuse("^A is not numeric; encode text and categories as numbers first", A=matrix)

    def test_logistic_labels(self):
        refuse("^the target y holds the values -2, 0.5, 1, 4, but logistic loss needs labels -1 and", loss="logistic")
        refuse("^the target y holds the values 0, 1, but .* recode y", y=[0, 1, 1, 0], loss="logistic")
        refuse("the values 0, 1, 2, 3, …, but", A=np.eye(9), y=np.arange(9.0), loss="logistic")
        assert make(y=[1, -1, 1, 1], loss="logistic").loss == Logistic()

    @pytest.mark.parametrize("dtype", ["f4", "i2", "u1", ">f8", "?"])
    def test_other_number_types_are_converted(self, dtype):
        matrix = (A % 2).astype(dtype)
        problem = make(A=matrix, y=np.array([1, 0, 1, 1], dtype=dtype))
        assert problem.A.dtype == problem.y.dtype == np.float64
        np.testing.assert_array_equal(problem.A, A % 2)

    def test_plain_lists_will_do(self):
        assert make(A=A.tolist(), y=Y.tolist()).hash == make().hash

    @each_loss
    def test_constant_duplicate_and_zero_columns_are_normal_data(self, loss):
        matrix = np.column_stack([np.ones(4), np.ones(4), np.zeros(4), A[:, 1], A[:, 1]])
        problem = make(A=matrix, y=np.sign(Y), loss=loss, **({"delta": 1.0} if loss == "huber" else {}))
        result = solve(problem, heuristics=())
        assert result.reached
        assert result.upper == pytest.approx(brute_force(problem), rel=1e-5)


class TestParameters:
    def test_k_and_lam_must_be_given(self):
        refuse("^k, the largest number of columns in the model, is missing; give -k or store k", k=None)
        refuse(r"^lam, the ridge weight, is missing; give --lam \(0 for none\) or store lam", lam=None)
        with pytest.raises(InputError, match=r"^lam, the ridge weight, is missing"):
            Problem(A, Y, 2)

    @pytest.mark.parametrize("k", [-1, -(10**30), np.int64(-5), -2.0])
    def test_k_is_not_negative(self, k):
        refuse(rf"^k is {int(k)}, but the number of columns cannot be negative", k=k)

    @pytest.mark.parametrize("k", [1.5, "2", np.nan, np.inf, True, [2], np.array([1, 2]), 2j])
    def test_k_is_whole(self, k):
        refuse("^k is .*, but the number of columns must be a whole number", k=k)

    @pytest.mark.parametrize("k", [0, 3, np.int8(2), np.float64(2.0), np.uint64(1)])
    def test_whole_numbers_of_any_type(self, k):
        assert make(k=k).k == int(k)
        assert type(make(k=k).k) is int

    @pytest.mark.parametrize("k", [4, 10**30])
    def test_more_than_d_is_taken_as_d_with_a_warning(self, k):
        with pytest.warns(UserWarning, match=rf"^k = {k} is more than the 3 columns of A; using k = 3\.$") as caught:
            problem = make(k=k)
        assert problem.k == 3
        assert len(caught) == 1

    @pytest.mark.parametrize("lam", [-1.0, -1e-300, np.nan, np.inf, -np.inf])
    def test_lam_is_finite_and_not_negative(self, lam):
        refuse("^lam is .*, but the ridge weight must be a finite number that is not negative", lam=lam)

    @pytest.mark.parametrize("lam", ["much", [1.0, 2.0], 1j, np.array([1.0, 2.0]), 10**400])
    def test_lam_is_a_number(self, lam):
        refuse("^lam is .*, but the ridge weight must be a number", lam=lam)

    def test_no_ridge_for_quadratic_loss_only(self):
        assert make(lam=0).lam == 0.0
        match = "^lam is 0, which only quadratic loss allows; give a positive --lam for {} loss"
        refuse(match.format("huber"), lam=0, loss="huber")
        refuse(match.format("logistic"), lam=0, loss="logistic", y=np.sign(Y))
        refuse(match.format("pseudo-huber"), lam=0.0, loss=PseudoHuber(1.0))

    def test_names(self):
        refuse("^1 feature names were given for 3 columns; give one name per column", feature_names=["one"])
        refuse("^4 feature names were given for 3 columns", feature_names=list("abcd"))
        refuse("^feature_names is 5, but a list was expected; give one name per column", feature_names=5)
        refuse("^feature_names is 'abc', but a list was expected; give one name per", feature_names="abc")
        assert make(feature_names=np.array(["a", "b", "c"])).feature_names == ("a", "b", "c")
        assert make().feature_names is None

    @pytest.mark.parametrize("delta", [0, -1.0, np.nan, np.inf])
    def test_delta_is_positive(self, delta):
        match = "^delta is .*, but the Huber threshold must be a positive number; give --delta"
        refuse(match, loss="huber", delta=delta)
        refuse(match, loss=Huber(delta))

    @pytest.mark.parametrize("delta", ["x", "1", [1], 1j, {}, 10**400])
    def test_delta_is_a_number(self, delta):
        refuse("^delta is .*, but the Huber threshold must be a number; give --delta", loss="huber", delta=delta)
        refuse("^delta of huber loss is .*, but parameters must be numbers; change delta", loss=Huber(delta))

    def test_one_delta(self):
        refuse(r"^delta is 2\.0, but the loss object has delta=1\.0; give one of", loss=Huber(1.0), delta=2.0)
        assert make(loss=Huber(1.0), delta=1).loss == Huber(1.0)
        assert make(loss=Huber(1.0)).replace(delta=2.0).loss == Huber(2.0)
        assert make(loss=Huber(1.0)).replace(delta=None, k=1).loss == Huber(1.0)
        assert type(make(loss=Huber(1)).loss.delta) is float

    @pytest.mark.parametrize("loss", ["quadratic", "logistic", Quadratic(), PseudoHuber(1.0)])
    def test_delta_is_for_huber(self, loss):
        y = np.sign(Y) if loss == "logistic" else Y
        refuse(r"^delta is given, but .* loss has no such parameter; use --loss huber or", loss=loss, delta=1.0, y=y)

    def test_default_delta(self):
        expected = 1.345 * np.median(np.abs(Y - np.median(Y))) / 0.6745
        assert make(loss="huber").loss.delta == pytest.approx(expected, rel=1e-15)
        assert make(loss="huber", delta=2).loss == Huber(2.0)

    def test_default_delta_of_a_target_without_scale(self):
        refuse(r"^more than half of y has the same value, so .* would be 0; give delta", y=[1, 1, 1, 5], loss="huber")
        assert make(y=[1, 1, 1, 5], loss="huber", delta=0.5).loss == Huber(0.5)

    def test_unknown_loss(self):
        refuse("^there is no loss called 'absolute'; known are: .*huber, logistic, .*quadratic", loss="absolute")

    @pytest.mark.parametrize("loss", [3, None, object(), Quadratic.point_value])
    def test_what_is_no_loss(self, loss):
        refuse(f"cannot be used as a loss: it lacks .*{', '.join(POINT_FUNCTIONS)}", loss=loss)

    @pytest.mark.parametrize(("name", "loss"), [("quadratic", Quadratic()), ("logistic", Logistic())])
    def test_names_and_objects_say_the_same(self, name, loss):
        y = np.sign(Y)
        assert make(loss=name, y=y).hash == make(loss=loss, y=y).hash

    def test_the_warning_points_at_the_caller(self):
        with pytest.warns(UserWarning, match="using k = 3") as caught:
            Problem(A, Y, 9, lam=1.0)
        assert Path(caught[0].filename).name == "test_problem.py"

    def test_replace(self):
        problem = make(feature_names=["a", "b", "c"])
        other = problem.replace(k=1, lam=2.0, loss="huber", delta=3.0)
        assert (other.k, other.lam, other.loss, other.feature_names) == (1, 2.0, Huber(3.0), ("a", "b", "c"))
        assert problem.replace().hash == problem.hash


class TestFrozen:
    def test_nothing_can_be_changed(self):
        problem = make()
        for name in ("k", "lam", "loss", "AT", "y", "anything"):
            with pytest.raises(AttributeError, match=f"a Problem is frozen; .* instead of changing '{name}'"):
                setattr(problem, name, 1)
        for array in (problem.A, problem.AT, problem.y):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0

    def test_the_callers_arrays_are_copied_and_left_writable(self):
        matrix, y = A.copy(), Y.copy()
        problem = make(A=matrix, y=y)
        before = problem.hash
        matrix[:], y[:] = 7.0, 7.0
        np.testing.assert_array_equal(problem.A, A)
        np.testing.assert_array_equal(problem.y, Y)
        assert make().hash == before
        transposed = np.asfortranarray(A)
        make(A=transposed)
        transposed[0, 0] = 9.0

    def test_repr(self):
        assert repr(make(loss="huber", delta=2.0)) == "Problem(huber(delta=2), n=4, d=3, k=2, lam=0.5)"


class TestHash:
    def test_every_ingredient_counts(self):
        flipped, y = A.copy(), Y.copy()
        flipped[0, 0] = np.nextafter(A[0, 0], 1.0)
        y[0] = np.nextafter(Y[0], 2.0)
        problems = [
            make(), make(A=flipped), make(y=y), make(k=1), make(lam=np.nextafter(0.5, 1.0)), make(A=A[:, ::-1]),
            make(loss=Huber(1.0)), make(loss=Huber(2.0)), make(loss=PseudoHuber(1.0)), make(y=np.sign(Y)),
            make(y=np.sign(Y), loss="logistic"), make(A=A.reshape(3, 4), y=Y[:3]),
        ]  # fmt: skip
        hashes = [problem.hash for problem in problems]
        assert len(set(hashes)) == len(problems)
        assert all(len(text) == 64 for text in hashes)

    def test_names_layout_and_precision_do_not(self):
        copies = [
            make(feature_names=["a", "b", "c"]), make(A=np.asfortranarray(A)), make(A=A.astype(np.float32)),
            make(y=Y.astype(np.float32)), make(A=A.astype(">f8")), make(A=A.astype(int)), make(k=2.0),
            make(lam=np.float32(0.5)), make(loss=Quadratic()),
        ]  # fmt: skip
        assert {problem.hash for problem in copies} == {make().hash}


class TestValues:
    @each_loss
    @pytest.mark.parametrize("kind", ["plain", "duplicates", "scales"])
    def test_objective_and_gradient_are_those_of_the_definition(self, loss, kind):
        rng = np.random.default_rng(3)
        for n, d in ((1, 1), (1, 7), (40, 5), (6, 20)):
            problem = random_problem(rng, loss, n, d, kind if d > 2 else "plain", lam=0.3)
            for x in (np.zeros(d), rng.standard_normal(d), rng.standard_normal(d) * (rng.random(d) < 0.4)):
                assert problem.objective(x) == pytest.approx(plain_objective(problem, x), rel=1e-12)
                expected = plain_gradient(problem, x)
                np.testing.assert_allclose(problem.gradient(x), expected, atol=1e-11 * (1 + np.abs(expected).max()))
            assert problem.gradient_scale == pytest.approx(np.linalg.norm(problem.gradient(np.zeros(d))))

    def test_far_from_zero_nothing_overflows(self):
        problem = Problem([[1e3], [-1e3]], [1, 1], 1, loss="logistic", lam=1e-3)
        assert problem.objective([1e3]) == pytest.approx(1e6 + 0.5 * 1e3)
        assert problem.gradient([1e3])[0] == pytest.approx(1e3 + 1.0)


def fits():
    rng = np.random.default_rng(11)
    for kind in ("plain", "duplicates", "constant", "scales"):
        for n, d in ((30, 8), (5, 8), (3, 12), (60, 20)):
            for _ in range(2):
                yield rng, kind, n, d, rng.choice(d, rng.integers(1, d + 1), replace=False)


class TestFit:
    @each_loss
    @pytest.mark.parametrize("lam", [1e-8, 1e-3, 0.1, 10.0, 1e8])
    def test_the_gradient_vanishes(self, loss, lam):
        for rng, kind, n, d, support in fits():
            problem = random_problem(rng, loss, n, d, kind, lam)
            fit = problem.fit(support)
            gradient = plain_gradient(problem, fit.coef)[np.sort(support)]
            scale = 1.0 + np.linalg.norm(plain_gradient(problem, np.zeros(d)))
            assert fit.gradient_norm <= 1e-10 * scale
            assert np.linalg.norm(gradient) <= 1e-10 * scale + 1e-13 * scale * np.abs(problem.A).max()
            assert fit.value == pytest.approx(plain_objective(problem, fit.coef), rel=1e-12)
            assert set(fit.support) <= set(fit.columns.tolist()) == set(support.tolist())

    @pytest.mark.parametrize("lam", [1e-12, 1e-8, 1e-4])
    def test_huber_far_from_the_data(self, lam):
        rng = np.random.default_rng(2)
        for _ in range(40):
            problem = Problem(
                rng.standard_normal((20, 30)), 100 * rng.standard_normal(20), 30, loss=Huber(0.05), lam=lam
            )
            assert problem.fit(rng.choice(30, 25, replace=False)).gradient_norm <= 1e-10 * problem.gradient_scale

    @pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
    @each_loss
    def test_an_independent_method_finds_the_same_minimum(self, loss, every):
        for rng, kind, n, d, support in islice(fits(), 0, None, every):
            problem = random_problem(rng, loss, n, d, "plain" if kind == "scales" else kind, 0.05)
            value = problem.fit(support).value
            assert value == pytest.approx(independent_minimum(problem, support), rel=1e-9, abs=1e-12)

    def test_without_ridge_it_is_least_squares(self):
        for rng, kind, n, d, support in fits():
            problem = random_problem(rng, "quadratic", n, d, kind, lam=0.0)
            columns = np.sort(support)
            matrix = problem.A[:, columns]
            unit = matrix / np.where(matrix.any(axis=0), np.linalg.norm(matrix, axis=0), 1.0)
            residual = problem.y - unit @ np.linalg.lstsq(unit, problem.y, rcond=1e-12)[0]
            fit = problem.fit(support)
            assert fit.value == pytest.approx(0.5 * residual @ residual, rel=1e-9, abs=1e-14 * (problem.y @ problem.y))
            assert fit.gradient_norm <= 1e-10 * problem.gradient_scale

    @each_loss
    def test_no_columns(self, loss):
        problem = random_problem(np.random.default_rng(0), loss, 6, 4)
        fit = problem.fit([])
        assert fit.support == ()
        assert fit.gradient_norm == 0.0
        assert fit.value == pytest.approx(plain_objective(problem, np.zeros(4)), rel=1e-14)

    def test_order_and_repetition_do_not_matter(self):
        problem = random_problem(np.random.default_rng(0), "huber", 9, 5)
        once = problem.fit([1, 3])
        again = problem.fit(iter((3, 1, 3)))
        assert again.value == once.value
        np.testing.assert_array_equal(again.coef, once.coef)
        assert again.columns.tolist() == [1, 3]

    def test_separable_labels(self):
        x = np.linspace(-1, 1, 11)[:, None]
        problem = Problem(x, np.where(x[:, 0] > 0.05, 1.0, -1.0), 1, loss="logistic", lam=1e-10)
        fit = problem.fit([0])
        assert fit.gradient_norm <= 1e-10 * problem.gradient_scale
        assert fit.coef[0] > 50

    @each_loss
    @pytest.mark.parametrize("threads", [1, 2])
    def test_objectives_are_the_values_of_fits(self, loss, threads):
        rng = np.random.default_rng(5)
        problem = random_problem(rng, loss, 25, 9, lam=0.2)
        supports = [rng.choice(9, size, replace=False) for size in (0, 1, 2, 3, 4, 4, 4)]
        padded = np.full((len(supports), 4), -1)
        for row, support in enumerate(supports):
            padded[row, : support.size] = support
        expected = [problem.fit(support).value for support in supports]
        np.testing.assert_allclose(problem.objectives(padded, threads), expected, rtol=1e-9)

    def test_objectives_are_nan_where_columns_are_dependent(self):
        matrix = np.random.default_rng(0).standard_normal((8, 3))
        problem = Problem(matrix[:, [0, 0, 1, 2]], np.arange(8.0), 2, lam=0.0)
        values = problem.objectives(np.array([[0, 1], [0, 2]]))
        assert np.isnan(values[0]) or values[0] == pytest.approx(problem.fit([0, 1]).value, rel=1e-6)
        assert values[1] == pytest.approx(problem.fit([0, 2]).value, rel=1e-10)


PARTS = {name: part for name, part in vars(PseudoHuber).items() if name.startswith(("point_", "check_"))}
PARTS |= {name: getattr(PseudoHuber, name) for name in ("name", "smoothness", "infimum")}


class Width(NamedTuple):
    width: float


def partial(left_out: str):
    """PseudoHuber without one of its parts."""
    return type("Partial", (Width,), {name: part for name, part in PARTS.items() if name != left_out})


class TestOwnLoss:
    @pytest.mark.slow
    def test_from_the_problem_to_the_certificate(self):
        """One test, because its kernels are compiled anew in every process, which takes half a minute."""
        assert _jit._CACHE is None or not mentions_of("PseudoHuber")
        rng = np.random.default_rng(8)
        for n, d, k, width, lam in ((12, 6, 2, 0.7, 0.1), (5, 7, 3, 0.2, 1e-2), (20, 8, 4, 3.0, 1.0)):
            matrix, y = rng.standard_normal((n, d)), rng.standard_normal(n) * np.where(np.arange(n) % 5, 1, 20)
            problem = Problem(matrix, y, k, loss=PseudoHuber(width), lam=lam)
            x = rng.standard_normal(d)
            r = (matrix @ x - y) / width
            expected = width**2 * np.sum(np.sqrt(1 + r**2) - 1) + 0.5 * lam * x @ x
            assert problem.objective(x) == pytest.approx(expected, rel=1e-12)
            best = brute_force(problem)
            for options in ({}, {"heuristics": ()}, {"tree": "state-space"}):
                lowers = []
                result = solve(problem, callback=lambda _, state, lowers=lowers: lowers.append(state.lower), **options)
                assert result.reached
                assert max(lowers) <= best + 1e-12 * best <= result.upper + 2e-12 * best
                assert result.upper - best <= 1e-6 * best
            certified = certify(problem, support=range(k))
            assert certified.lower <= best <= certified.value * (1 + 1e-12)
            assert result.as_dict()["loss"] == "pseudo-huber"
            assert result.as_dict()["loss_parameters"] == {"width": width}
        if _jit._CACHE is not None:
            assert mentions_of("Huber")
            assert not mentions_of("PseudoHuber")

    @pytest.mark.parametrize("name", ["name", "smoothness", "infimum", *POINT_FUNCTIONS])
    def test_what_is_missing_is_named(self, name):
        refuse(rf"^Partial\(width=1\.0\) cannot be used as a loss: it lacks {name}\.$", loss=partial(name)(1.0))

    @pytest.mark.parametrize("name", ["check_target", "check_parameters"])
    def test_missing_checks_are_named(self, name):
        refuse(rf"cannot be used as a loss: it lacks {name}\.$", loss=partial(name)(1.0))

    @pytest.mark.parametrize("loss", [PseudoHuber, Huber, SimpleNamespace(**PARTS)])
    def test_a_loss_is_a_named_tuple(self, loss):
        refuse("cannot be used as a loss", loss=loss)

    @pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "1", None])
    def test_smoothness_is_positive(self, value):
        loss = type("Partial", (Width,), PARTS | {"smoothness": value})(1.0)
        refuse("^the smoothness of pseudo-huber loss is .*, but it must be a positive finite number", loss=loss)

    @pytest.mark.parametrize("value", [np.nan, np.inf, "0"])
    def test_infimum_is_a_number(self, value):
        loss = type("Partial", (Width,), PARTS | {"infimum": value})(1.0)
        refuse("^the infimum of pseudo-huber loss is .*, but it must be a number or -inf", loss=loss)

    def test_parameters_are_finite_numbers(self):
        loss = type("Partial", (Width,), PARTS | {"check_parameters": lambda _: None})
        refuse("^width of pseudo-huber loss is nan, but parameters must be finite; change width", loss=loss(np.nan))
        refuse("^width of pseudo-huber loss is 'a', but parameters must be numbers", loss=loss("a"))

    def test_bad_parameters_are_refused_by_the_loss_itself(self):
        refuse(r"^width is -1\.0, but it must be a positive number\.$", loss=PseudoHuber(-1.0))

    @pytest.mark.parametrize("bound", ["fit", "cvxpy"])
    def test_bounds_that_cannot_serve_it_say_so(self, bound):
        problem = make(loss=PseudoHuber(1.0))
        with pytest.raises(InputError, match=rf"^the bound '{bound}' .* but the loss is pseudo-huber; use --bound apg"):
            solve(problem, bound=bound, heuristics=())


def mentions_of(name: str) -> list[Path]:
    """Index files of the kernel cache that hold a type of this name."""
    found = []
    for path in Path(_jit._CACHE).rglob("*.nbi"):
        with suppress(FileNotFoundError):  # another process may have replaced it
            if name.encode() in path.read_bytes():
                found.append(path)
    return found
