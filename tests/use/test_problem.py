"""The problem: every bad input refused in one sentence, frozen, hashed, and with losses a user might write."""

from __future__ import annotations

import copy
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from own_loss import PseudoHuber

from exactsel import Huber, InputError, Logistic, Problem, Quadratic, certify, solve
from exactsel._jit import cache_paths
from exactsel.data.instance import Instance
from exactsel.losses.base import POINT_FUNCTIONS

A = np.arange(12.0).reshape(4, 3) ** 2
Y = np.array([1.0, -2.0, 0.5, 4.0])
each_loss = pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])


def make(**changes) -> Problem:
    arguments = {"A": A, "y": Y, "k": 2, "lam": 0.5} | changes
    return Problem(arguments.pop("A"), arguments.pop("y"), arguments.pop("k"), **arguments)


def refuse(match: str, **changes) -> None:
    with pytest.raises(InputError, match=match) as caught:
        make(**changes)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text


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
        refuse("^the data have 4 rows but y has 3 entries; they must describe the same rows", y=Y[:3])

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
        refuse("^the target y holds the values 0, 2, but .* recode y", y=[0, 2, 2, 0], loss="logistic")
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


@pytest.mark.smoke
class TestParameters:
    def test_k_and_lam_must_be_given(self):
        refuse("^k, the largest number of features in the model, is missing; give k=5, say", k=None)
        refuse(
            "^lam, the ridge weight, is missing, and huber loss needs one; give lam=0 for none, as in R, or lam=1",
            lam=None,
            loss="huber",
        )
        assert Problem(A, Y, 2).lam == 0.0

    @pytest.mark.parametrize("k", [-1, -(10**30), np.int64(-5), -2.0])
    def test_k_is_not_negative(self, k):
        refuse(rf"^k is {int(k)}, but the number of features cannot be negative", k=k)

    @pytest.mark.parametrize("k", [1.5, "2", np.nan, np.inf, True, [2], np.array([1, 2]), 2j])
    def test_k_is_whole(self, k):
        refuse("^k is .*, but the number of features must be a whole number", k=k)

    @pytest.mark.parametrize("k", [0, 3, np.int8(2), np.float64(2.0), np.uint64(1)])
    def test_whole_numbers_of_any_type(self, k):
        assert make(k=k).k == int(k)
        assert type(make(k=k).k) is int

    @pytest.mark.parametrize("k", [4, 10**30])
    def test_more_than_d_is_taken_as_d_with_a_warning(self, k):
        sentence = rf"^k = {k} is more than the 3 features there are; using k = 3\.$"
        with pytest.warns(UserWarning, match=sentence) as caught:
            problem = make(k=k)
        assert problem.k == 3
        assert len(caught) == 1

    @pytest.mark.parametrize("lam", [-1.0, -1e-300, np.nan, np.inf, -np.inf])
    def test_lam_is_finite_and_not_negative(self, lam):
        refuse("^lam is .*, but the ridge weight must be a finite number that is not negative", lam=lam)

    @pytest.mark.parametrize("lam", ["much", [1.0, 2.0], 1j, np.array([1.0, 2.0]), 10**400])
    def test_lam_is_a_number(self, lam):
        refuse("^lam is .*, but the ridge weight must be a number", lam=lam)

    def test_no_ridge_for_losses_known_to_need_none(self):
        assert make(lam=0).lam == 0.0
        match = "^lam is 0, which only quadratic, huber, logistic and poisson loss allow; give a positive lam for"
        refuse(match, lam=0.0, loss=PseudoHuber(1.0))

    def test_names(self):
        refuse("^1 feature names were given for 3 features; give one name per feature", feature_names=["one"])
        refuse("^4 feature names were given for 3 features", feature_names=list("abcd"))
        refuse("^feature_names is 5, but a list was expected; give one name per feature", feature_names=5)
        refuse("^feature_names is 'abc', but a list was expected; give one name per", feature_names="abc")
        assert make(feature_names=np.array(["a", "b", "c"])).feature_names == ("a", "b", "c")
        assert make().feature_names is None

    @pytest.mark.parametrize("delta", [0, -1.0, np.nan, np.inf])
    def test_delta_is_positive(self, delta):
        match = "^delta is .*, but the Huber threshold must be a positive number; give delta"
        refuse(match, loss="huber", delta=delta)
        refuse(match, loss=Huber(delta))

    @pytest.mark.parametrize("delta", ["x", "1", [1], 1j, {}, 10**400])
    def test_delta_is_a_number(self, delta):
        refuse("^delta is .*, but delta of huber loss must be a number; give delta", loss="huber", delta=delta)
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
        refuse(r"^delta is given, but .* loss has no such parameter; use loss=.huber. or", loss=loss, delta=1.0, y=y)

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
        assert repr(make(loss="huber", delta=2.0)) == "Problem(huber(delta=2), n=4, 3 features, k=2, lam=0.5)"


@pytest.mark.smoke
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
        assert cache_paths.cache_folder() is None or not mentions_of("PseudoHuber")
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
        if cache_paths.cache_folder() is not None:
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

    @pytest.mark.parametrize("value", [0, -1.0, np.nan, "1", None])
    def test_smoothness_is_positive(self, value):
        loss = type("Partial", (Width,), PARTS | {"smoothness": value})(1.0)
        refuse("^the smoothness of pseudo-huber loss is .*, but it must be a positive number, or inf", loss=loss)

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
        with pytest.raises(InputError, match=rf"^the bound '{bound}' .* but the loss is pseudo-huber; use bound=.apg."):
            solve(problem, bound=bound, heuristics=())


def mentions_of(name: str) -> list[Path]:
    """Index files of the kernel cache that hold a type of this name."""
    found = []
    for path in cache_paths.cache_folder().rglob("*.nbi"):
        with suppress(FileNotFoundError):  # another process may have replaced it
            if name.encode() in path.read_bytes():
                found.append(path)
    return found


@pytest.mark.parametrize("filled", [1.0, 0.05])
def test_a_copy_sent_to_another_process_is_of_the_same_types_and_cannot_be_changed(filled):
    rng = np.random.default_rng(8)
    A = rng.standard_normal((300, 6)) * (rng.random((300, 6)) < [filled] * 3 + [1.0] * 3)
    problem = Problem(A, rng.choice([-1.0, 1.0], 300), 2, loss="logistic", lam=1.0)
    arrays = [problem.AT, problem.y, *problem.objective.raw]
    sent = copy.deepcopy(problem)  # as pickling has it
    for before, after in zip(arrays, [sent.AT, sent.y, *sent.objective.raw], strict=True):
        np.testing.assert_array_equal(before, after)
        assert before.flags.writeable == after.flags.writeable
