"""Generators: the same seed gives the same instance, and each family has the properties its docstring promises."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from exactsel.data.generate import GENERATORS, Planted, generate
from exactsel.data.instance import read_instance, write_instance
from exactsel.errors import InputError

SYNTHETIC = ("huber", "logistic", "quadratic", "hard")
EFRON_OPTIMUM = 0.247095476927


def same(one, other) -> bool:
    names = ("k", "lam", "loss", "delta", "feature_names")
    return (
        np.array_equal(one.A, other.A)
        and np.array_equal(one.y, other.y)
        and all(getattr(one, name) == getattr(other, name) for name in names)
    )


def correlations(A) -> np.ndarray:
    return np.corrcoef(A, rowvar=False)


def outside_diagonal(square) -> np.ndarray:
    return square[~np.eye(len(square), dtype=bool)]


@pytest.fixture(scope="module")
def made():
    """The Diabetes instance."""
    pytest.importorskip("sklearn")
    return generate("diabetes")


class TestEvery:
    @pytest.mark.parametrize("name", SYNTHETIC)
    def test_a_seed_fixes_the_instance(self, name):
        assert same(generate(name, seed=4), generate(name, seed=4))
        assert not np.array_equal(generate(name, seed=4).A, generate(name, seed=5).A)

    @pytest.mark.parametrize("name", SYNTHETIC)
    def test_sizes_are_as_asked_for(self, name):
        made = generate(name, n=31, d=17, k=3, seed=1, lam=0.125)
        assert (made.A.shape, made.y.shape, made.k, made.lam) == ((31, 17), (31,), 3, 0.125)

    @pytest.mark.parametrize("name", SYNTHETIC)
    @pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (2, 3, 3), (5, 2, 1), (7, 9, 8)])
    def test_the_smallest_sizes_work(self, name, n, d, k):
        made = generate(name, n=n, d=d, k=k)
        assert np.all(np.isfinite(made.A))
        assert np.all(np.isfinite(made.y))
        assert isinstance(made, Planted)
        assert len(made.support) == (d if name == "hard" else k)

    @pytest.mark.parametrize("name", sorted(GENERATORS))
    def test_defaults_state_a_problem_that_survives_the_file(self, name, tmp_path):
        if name == "diabetes":
            pytest.importorskip("sklearn")
        made = generate(name)
        write_instance(tmp_path / "made.npz", made)
        assert same(read_instance(tmp_path / "made.npz"), made)
        problem = made.problem()
        assert (problem.n, problem.d) == made.A.shape
        assert problem.k == made.k < problem.d

    @pytest.mark.parametrize("name", SYNTHETIC)
    def test_the_file_has_the_true_coefficients(self, name, tmp_path):
        made = generate(name)
        write_instance(tmp_path / "made.npz", made)
        with np.load(tmp_path / "made.npz", allow_pickle=False) as archive:
            np.testing.assert_array_equal(archive["x_true"], made.x_true)

    def test_unknown_name(self):
        with pytest.raises(
            InputError, match="no generator called 'boston'; known are: diabetes, hard, huber, logistic, quadratic"
        ):
            generate("boston")

    @pytest.mark.parametrize("name", SYNTHETIC)
    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"n": 0}, "n=0 and d=.* at least one row and one column"),
            ({"d": -1}, "d=-1 were asked for"),
            ({"d": 5, "k": 6}, "k=6 was asked for, but .* needs k between 1 and d=5"),
            ({"k": 0}, "k=0 was asked for"),
            ({"seed": -1}, "the seed is -1, but it must not be negative"),
            ({"n": 2.5}, "n is 2.5, but generator .* needs a whole number"),
        ],
    )
    def test_impossible_sizes(self, name, options, match):
        with pytest.raises(InputError, match=match):
            generate(name, **options)

    @pytest.mark.parametrize("name", GENERATORS)
    @pytest.mark.parametrize("lam", [-1.0, np.nan, np.inf, "x"])
    def test_impossible_ridge_weight(self, name, lam):
        with pytest.raises(InputError, match=r"^lam is .*, but the ridge weight must be a"):
            generate(name, lam=lam)

    @pytest.mark.parametrize("name", ["quadratic", "hard"])
    def test_impossible_correlation(self, name):
        with pytest.raises(InputError, match=r"rho is 1\.5, but a correlation lies between -1 and 1"):
            GENERATORS[name](rho=1.5)


class TestHuber:
    made = generate("huber", n=3000, d=20, k=4, seed=1)

    def test_columns(self):
        np.testing.assert_allclose(np.linalg.norm(self.made.A, axis=0), 1.0)
        np.testing.assert_allclose(outside_diagonal(correlations(self.made.A)), 0.2, atol=0.08)

    def test_coefficients(self):
        assert set(self.made.x_true) == {0.0, 1.0}
        assert self.made.x_true.sum() == 4

    def test_a_tenth_of_the_rows_is_ten_times_as_noisy(self):
        signal = self.made.A @ self.made.x_true
        noise = np.abs(self.made.y - signal)
        scale = self.made.delta / 1.345
        assert scale * np.sqrt(3000) == pytest.approx(np.linalg.norm(signal) / 10)
        # 3 standard deviations of clean noise are passed by 0.3% of the clean rows and 76% of the outliers.
        assert np.mean(noise > 3.0 * scale) == pytest.approx(0.079, abs=0.015)

    def test_loss(self):
        assert self.made.problem().loss_text.startswith("huber(delta=")


class TestLogistic:
    made = generate("logistic", n=3000, d=21, k=5, seed=1)

    def test_columns(self):
        np.testing.assert_allclose(np.linalg.norm(self.made.A, axis=0), np.sqrt(3000))
        R = correlations(self.made.A)
        np.testing.assert_allclose(outside_diagonal(R[:11, :11]), 0.7, atol=0.06)
        np.testing.assert_allclose(outside_diagonal(R[11:, 11:]), 0.2, atol=0.08)
        np.testing.assert_allclose(R[:11, 11:], 0.0, atol=0.1)

    def test_the_support_is_spread_over_both_halves(self):
        assert [j < 11 for j in self.made.support] == [True] * 3 + [False] * 2

    def test_labels_carry_the_signal(self):
        assert set(self.made.y) == {-1.0, 1.0}
        assert np.mean(np.sign(self.made.A @ self.made.x_true) == self.made.y) > 0.8


class TestQuadratic:
    made = generate("quadratic", n=4000, d=20, k=5, seed=1)

    def test_columns(self):
        distance = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
        np.testing.assert_allclose(correlations(self.made.A), 0.5**distance, atol=0.07)

    def test_coefficients_are_equally_spaced_ones(self):
        assert self.made.support == (0, 4, 8, 12, 16)
        assert set(self.made.x_true) == {0.0, 1.0}

    def test_signal_to_noise_ratio(self):
        signal = self.made.A @ self.made.x_true
        assert np.var(signal) / np.var(self.made.y - signal) == pytest.approx(5.0, rel=0.1)


class TestHard:
    made = generate("hard", n=4000, d=20, k=5, seed=1)

    def test_everything_has_unit_norm(self):
        np.testing.assert_allclose(np.linalg.norm(self.made.A, axis=0), 1.0)
        assert np.linalg.norm(self.made.y) == pytest.approx(1.0)

    def test_every_column_is_active(self):
        assert self.made.support == tuple(range(20))
        sizes = np.sort(np.abs(self.made.x_true))[::-1]
        np.testing.assert_allclose(sizes / sizes[0], 1.0 / np.sqrt(np.arange(1, 21)), rtol=0.1)

    def test_half_of_the_variance_is_noise(self):
        signal = self.made.A @ self.made.x_true
        assert np.var(signal) / np.var(self.made.y - signal) == pytest.approx(1.0, rel=0.1)
        distance = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
        np.testing.assert_allclose(correlations(self.made.A), 0.7**distance, atol=0.1)


class TestDiabetes:
    def test_columns(self, made):
        assert made.A.shape == (442, 64)
        for values in (*made.A.T, made.y):
            assert np.mean(values) == pytest.approx(0.0, abs=1e-15)
            assert np.linalg.norm(values) == pytest.approx(1.0)

    def test_names(self, made):
        names = made.feature_names
        assert len(set(names)) == 64
        assert names[:3] == ("age", "sex", "bmi")
        assert names[10:12] == ("age^2", "bmi^2")
        assert names[18:21] == ("s6^2", "age*sex", "age*bmi")
        assert names[63] == "s5*s6"
        assert "sex^2" not in names

    def test_names_belong_to_their_columns(self, made):
        def centred_product(i, j):
            product = made.A[:, i] * made.A[:, j]
            product -= product.mean()
            return product / np.linalg.norm(product)

        np.testing.assert_allclose(made.A[:, made.feature_names.index("age^2")], centred_product(0, 0), atol=1e-12)
        np.testing.assert_allclose(made.A[:, made.feature_names.index("bmi*s5")], centred_product(2, 8), atol=1e-12)

    def test_the_known_optimum(self, made):
        problem = made.problem()
        assert (problem.k, problem.lam, problem.loss.name) == (5, 0.01, "quadratic")
        assert problem.fit([1, 2, 3, 6, 8]).value == pytest.approx(EFRON_OPTIMUM, abs=1e-12)

    def test_k_and_lam_can_be_chosen(self, made):
        other = generate("diabetes", n=442, d=64, k=10, lam=0.001)
        assert (other.k, other.lam) == (10, 0.001)
        np.testing.assert_array_equal(other.A, made.A)

    @pytest.mark.parametrize("options", [{"n": 100}, {"d": 10}, {"seed": 1}])
    def test_sizes_cannot(self, options):
        with pytest.raises(InputError, match="a fixed data set of 442 rows and 64 columns"):
            generate("diabetes", **options)

    def test_scikit_learn_may_be_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
        with pytest.raises(InputError, match="scikit-learn, which is not installed; pip install scikit-learn"):
            generate("diabetes")
