"""What the accelerated loop knows of a node: rows and Gram matrix, columns and groups, against the definitions."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel import Problem
from exactsel._jit import choose_by_type, njit
from exactsel.bounds.apg import AcceleratedGradientBound
from exactsel.bounds.base import BoundOptions
from exactsel.bounds.grouped import GroupedBound
from exactsel.kernels.forms import (
    BY_DATA,
    BY_PART,
    BY_WHOLE,
    COPIED,
    GATHERED,
    dual_value,
    form_of,
    minimise,
    proven_by,
    smooth_value,
    value_ahead,
    way_of_image,
    write_image,
)
from exactsel.kernels.grouped import node_form
from exactsel.kernels.linalg import symmetric_times_sparse
from exactsel.kernels.node import CUT, FREE, IN, OUT, SOLVED
from exactsel.losses import Quadratic
from exactsel.problem.groups import GroupedUnits
from exactsel.rounding import UNIT


def in_groups(problem, labels):
    """A problem over groups even where each is one column, which problems over groups else are not."""
    return Problem.of(problem.objective, GroupedUnits.of_columns(problem.units, labels), problem.k)


def drawn_problem(seed, groups=False):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 8))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d)
    problem = Problem(A, rng.standard_normal(n), 1, lam=0.3)
    return in_groups(problem, rng.integers(0, 3, d).tolist()) if groups else problem, rng


@examples(100, 200)
@given(st.integers(0, 10**6))
def test_rows_and_gram_matrix_say_the_same(seed):
    problem, rng = drawn_problem(seed)
    columns = np.sort(rng.choice(problem.d, int(rng.integers(1, problem.d + 1)), replace=False))
    x, A = rng.standard_normal(columns.size), problem.AT.T[:, columns]
    size = (np.abs(A) @ np.abs(x) + np.abs(problem.y)).sum() ** 2 + 1.0
    gradient = A.T @ (A @ x - problem.y)
    value = 0.5 * np.sum((A @ x - problem.y) ** 2)
    for data in (problem.raw, problem.gram):
        form = form_of(data, columns)
        image, q, v = np.empty(form.image_size), np.empty(columns.size), np.empty(columns.size)
        write_image(form, x, image)
        assert smooth_value(Quadratic(), form, x, image) == pytest.approx(value, rel=1e-9, abs=1e-12 * size)
        base = dual_value(Quadratic(), form, x, image, x, image, q, v)
        scales = problem.norms[columns] * size**0.5
        np.testing.assert_array_less(np.abs(v - gradient), 1e-11 * scales + 1e-300)
        np.testing.assert_array_less(gradient**2, q + 1e-11 * scales**2 + 1e-300)
        # Fenchel: -L*(b) = L(z) - b'z at b = grad L(z), and base is no more.
        dual = value - (A @ x - problem.y) @ (A @ x)
        assert base <= dual + 1e-14 * size
        assert base == pytest.approx(dual, rel=1e-9, abs=1e-11 * size)
        assert value_ahead(Quadratic(), form, base, x, image) == pytest.approx(value, rel=1e-9, abs=1e-11 * size)
        assert np.array_equal(proven_by(form, x, x), x)


def image_by_copy(G, columns, x):
    """The slow twin: the image of x by the node's part of G, copied whatever it costs."""
    part, image = np.ascontiguousarray(G[np.ix_(columns, columns)]), np.empty(x.size)
    symmetric_times_sparse(part, x, image)
    return image


def drawn_images(seed):
    """A form in Gram form, with its problem, and models of it that are more or less sparse."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 10)), int(rng.integers(1, 30))
    A = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-2, 3, d)
    problem = Problem(A, rng.standard_normal(n), 1, lam=0.3)
    columns = rng.permutation(d)[: int(rng.integers(1, d + 1))]
    models = [rng.standard_normal(columns.size) * (rng.random(columns.size) < rng.random()) for _ in range(8)]
    return problem, columns, form_of(problem.gram, columns), models


@examples(300, 600)
@given(st.integers(0, 10**6))
def test_images_in_gram_form_are_those_of_a_copy(seed):
    problem, columns, form, models = drawn_images(seed)
    n, d, m, norms = problem.n, problem.d, columns.size, problem.norms[columns]
    for x in models:
        spent, image, expected = form.spent.copy(), np.empty(m), image_by_copy(problem.gram.G, columns, x)
        way = way_of_image(x, d, n if n < d else 0, spent)
        write_image(form, x, image)
        if way == BY_DATA:
            assert n < d
            allowed = (n + 2 * m + 32) * UNIT * norms * (np.abs(x) @ norms)
            np.testing.assert_array_less(np.abs(image - expected), 2 * allowed + 1e-300)
        else:
            np.testing.assert_array_equal(image, expected)
        if way == BY_PART:
            assert form.spent[0] == COPIED
            np.testing.assert_array_equal(form.part, problem.gram.G[np.ix_(columns, columns)])
        else:
            assert form.spent[0] == spent[0]


@examples(100, 200)
@given(st.integers(0, 10**6))
def test_what_is_said_of_an_image_in_gram_form_holds_in_exact_arithmetic(seed):
    problem, columns, form, models = drawn_images(seed)
    A = [[Fraction(float(entry)) for entry in problem.AT.T[:, j]] for j in columns]
    y = [Fraction(float(entry)) for entry in problem.y]
    for x in models[:3]:
        image, q, v = np.empty(x.size), np.empty(x.size), np.empty(x.size)
        write_image(form, x, image)
        base = dual_value(Quadratic(), form, x, image, x, image, q, v)
        z = [sum(Fraction(float(x[i])) * A[i][row] for i in range(x.size)) for row in range(problem.n)]
        b = [z[row] - y[row] for row in range(problem.n)]
        assert Fraction(base) <= sum(entry * entry / 2 for entry in b) - sum(map(Fraction.__mul__, b, z))
        for column, upper in zip(A, q, strict=True):
            assert Fraction(float(upper)) >= sum(map(Fraction.__mul__, column, b)) ** 2


@examples(200, 400)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 40))
def test_the_way_to_an_image_is_never_far_from_the_least_work(seed, d, images):
    """Copying costs :data:`GATHERED` m^2; doing without it is given up before a quarter of that is lost."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, d + 1)), int(rng.choice([0, rng.integers(1, d + 1)]))
    spent, work, at_once, without, ways = np.zeros(1, dtype=np.int64), 0, GATHERED * m * m, 0, []
    for _ in range(images):
        x = (rng.random(m) < rng.random()).astype(float)
        used, before = int(x.sum()), int(spent[0])
        way = way_of_image(x, d, n, spent)
        if way == BY_PART:
            work += 0 if before == COPIED else GATHERED * m * m
            spent[0] = COPIED
        by_data = n * (m + used) if n > 0 else np.inf
        work += {BY_DATA: by_data, BY_WHOLE: used * d + GATHERED * m, BY_PART: used * m}[way]
        if way == BY_DATA:
            assert by_data < used * (m if before == COPIED else d)
        at_once += used * m if n == 0 else min(by_data, used * m)
        without += min(by_data, used * d + GATHERED * m)
        ways.append(way)
    if n == 0:
        assert work <= at_once + m * m
        if BY_PART not in ways:
            assert work == without
    assert ways == sorted(ways) or n > 0


@pytest.mark.parametrize(("n", "d"), [(4, 9), (9, 4)])
def test_a_copy_of_an_objective_has_gram_data_of_the_same_types(n, d):
    """Else every kernel would be compiled once more for a problem that was sent to another process."""
    rng = np.random.default_rng(0)
    objective = Problem(rng.standard_normal((n, d)), rng.standard_normal(n), 1, lam=0.3).objective
    before, after = objective.gram, copy.deepcopy(objective).gram
    assert before.AT.shape == ((d, n) if n < d else (0, n))
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
        if isinstance(old, np.ndarray):
            assert new is not old
            assert new.flags.writeable == old.flags.writeable
            assert new.flags.c_contiguous


@examples(50, 100)
@given(st.integers(0, 10**6))
def test_the_minimiser_on_rows_and_on_the_gram_matrix(seed):
    problem, rng = drawn_problem(seed)
    columns = np.sort(rng.choice(problem.d, int(rng.integers(1, problem.d + 1)), replace=False))
    fit = problem.fit(columns).coef[columns]
    for data, called in ((problem.raw, CUT), (problem.gram, SOLVED)):
        form = form_of(data, columns)
        x, image, expected = np.zeros(columns.size), np.empty(form.image_size), np.empty(form.image_size)
        assert minimise(Quadratic(), form, data, problem.lam, x, image, np.inf) == called
        np.testing.assert_allclose(x * problem.norms[columns], fit * problem.norms[columns], rtol=1e-5, atol=1e-7)
        write_image(form, x, expected)
        np.testing.assert_allclose(image, expected, rtol=1e-12, atol=1e-12 * (1.0 + np.abs(expected).max()))


@examples(100, 200)
@given(st.integers(0, 10**6))
def test_groups_add_up_what_their_columns_say(seed):
    problem, rng = drawn_problem(seed, groups=True)
    units = rng.permutation(problem.d)[: int(rng.integers(1, problem.d + 1))]
    inner = problem.inner
    for data in (inner.raw, inner.gram):
        form = node_form(problem.units.spans, data, units)
        assert form.columns.tolist() == [j for g in units for j in problem.groups[g]]
        plain, x = form_of(data, form.columns), rng.standard_normal(form.columns.size)
        image, q, v = np.empty(form.image_size), np.empty(units.size), np.empty(x.size)
        same, singles, w = np.empty(plain.image_size), np.empty(x.size), np.empty(x.size)
        write_image(form, x, image)
        write_image(plain, x, same)
        np.testing.assert_array_equal(image, same)
        base = dual_value(Quadratic(), form, x, image, x, image, q, v)
        assert base == dual_value(Quadratic(), plain, x, same, x, same, singles, w)
        np.testing.assert_array_equal(v, w)
        np.testing.assert_allclose(q, [singles[a:b].sum() for a, b in pairwise(form.first)], rtol=1e-12)


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("curvature", [True, False])
def test_groups_of_one_column_have_the_bounds_of_columns(loss, curvature):
    """The loops differ in where they take dual vectors, not in what they converge to."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 8))
    y = A[:, 0] - A[:, 5] + rng.standard_normal(20)
    plain = Problem(A, np.sign(y) if loss == "logistic" else y, 3, loss=loss, lam=0.4)
    options = {"max_iterations": 20_000, "polish": 0.0, "accuracy": 1e-11, "curvature": curvature}
    states = rng.choice(np.array([OUT, FREE, FREE, FREE, IN], dtype=np.int8), (12, 8))
    states = np.array([state for state in states if np.count_nonzero(state == IN) <= 3])
    mine, theirs = (
        bound.prepare(problem, BoundOptions()).tighten(states, [None] * len(states), np.inf, np.inf).answers
        for bound, problem in (
            (AcceleratedGradientBound(**options), plain),
            (GroupedBound(**options), in_groups(plain, list(range(8)))),
        )
    )
    if loss == "quadratic" and curvature:
        # Groups take all the curvature there is, columns take it where that is worth it.
        assert AcceleratedGradientBound(**options).prepare(plain, BoundOptions()).curvature is not None
    np.testing.assert_array_equal(mine.status, theirs.status)
    np.testing.assert_allclose(mine.bound, theirs.bound, rtol=1e-6)
    np.testing.assert_allclose(mine.bound_in, theirs.bound_in, rtol=1e-4)
    np.testing.assert_allclose(mine.bound_out, theirs.bound_out, rtol=1e-4)


class One(NamedTuple):
    """A type with a function of its own."""

    value: float


class Other(NamedTuple):
    """A type without."""

    value: float


@choose_by_type("kind")
def chosen(number, kind):
    """What serves every type: compiled and not, it is to be chosen alike."""
    return number


@chosen.register(One)
def _chosen_for_one(number, kind):
    return number + kind.value


@njit
def compiled_choice(number, kind):
    return chosen(number, kind)


def test_the_type_chooses_compiled_or_not():
    for kind, expected in ((One(2.0), 3.0), (Other(2.0), 1.0), (None, 1.0)):
        assert chosen(1.0, kind) == expected
        assert compiled_choice(1.0, kind) == expected
