"""The checker without numpy: what it verifies is true, what is true and exact it verifies, and nothing surprises it."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from fractions import Fraction as F
from pathlib import Path

import pytest
from click.testing import CliRunner
from hand_written import CLOSE, EIGENVALUES, FIT, LEAVE_OUT, USE, prepared, random_file, strong_file, written
from samples import many
from standalone_says import HUGE, above, below, established, said
from tiny_problems import CLASSES, Case, fitted, level_of, objective, optimum, random_case, within_scope

from exactsel_certificates.standalone import Beyond, TooMuch, checking

ROOT = Path(__file__).resolve().parents[2]


def soundness(seed):
    """One random problem with a proof of any quality: nothing untrue is established; claims at the bounds."""
    rng = random.Random(seed)
    case = random_case(rng)
    best = optimum(case)
    file = random_file(rng, case, best)
    try:
        lower, upper = established(case, file)
    except Beyond:
        assert not case.loss
        assert file.header["valid_for"]
        return "beyond"
    slack = 0 if case.loss in ("quadratic", "") else best.value / 10**9 + F(1, 10**12)
    if not file.header["valid_for"] or within_scope(case, best):
        assert F(math.nextafter(lower, -1.0)) <= best.value + slack, (seed, lower, float(best.value))
        assert said(case, file, lower=above(best.value + slack), upper=HUGE) != "", seed
    assert F(math.nextafter(upper, HUGE)) >= best.value - slack, (seed, upper, float(best.value))
    assert said(case, file, lower=math.nextafter(lower, -1.0), upper=math.nextafter(upper, HUGE)) == "", seed
    assert said(case, file, lower=math.nextafter(lower, HUGE), upper=HUGE) != "", seed
    assert said(case, file, lower=0.0, upper=math.nextafter(upper, -1.0)) != "" or upper == 0, seed
    return "tight" if lower >= float(best.value) * (1 - 1e-6) else "loose"


def test_what_is_verified_is_true():
    outcomes = [soundness(seed) for seed in range(many(24, 80))]
    assert outcomes.count("tight") > many(7, 30)
    assert outcomes.count("loose") > many(3, 15)


@pytest.mark.long
def test_what_is_verified_is_true_thousands_of_times():
    for seed in range(1000, 9000):
        soundness(seed)


@pytest.mark.smoke
@pytest.mark.parametrize("loss", ["quadratic", ""])
def test_the_last_bit_counts(loss):
    """Fits are exact, so the largest double below the optimum is verified and the next one is not."""
    prepared_ones = 0
    for seed in range(many(36, 120)):
        case = random_case(random.Random(f"bit {seed}"), loss)
        best = optimum(case)
        file = strong_file(case, best)
        assert said(case, file, lower=below(best.value), upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value), upper=HUGE) != "", seed
        prepared_ones += case.level and case.scale and case.weights is not None
    assert prepared_ones > many(1, 3) or not loss


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "squared_hinge", "poisson"])
@pytest.mark.parametrize("with_duals", [False, True])
def test_points_and_dual_vectors_prove_nearly_everything(loss, with_duals):
    """At the best model of each region, whatever weights, intercept and scale do: bounds lose rounding errors only."""
    tried = 0
    for seed in range(many(4, 24)):
        case = random_case(random.Random(f"points {seed}"), loss)
        if loss != "quadratic" and case.level and len({*case.y}) == 1:
            continue
        best = optimum(case)
        if case.lam < 0.1 or (loss in CLASSES and best.value < F(1, 10**6)):
            continue
        file = strong_file(case, best, with_duals, by_fit=False)
        lower, upper = established(case, file)
        level = best.c if loss != "poisson" else level_of(case, {}) if case.level else F(0)  # no exponential of 1e12
        size = max(float(best.value), 1e-9 * float(objective(case, {}, level)))
        assert lower >= float(best.value) - 1e-5 * size, (seed, lower, float(best.value))
        assert upper <= float(best.value) + 1e-9 * size, seed
        tried += 1
    assert tried > many(0, 7)


def test_with_one_place_left_a_fit_looks_at_each_column():
    """So a root with k = 1 needs no tree, and what it proves is the optimum itself."""
    for seed in range(40):
        case = random_case(random.Random(f"one {seed}"), "quadratic")
        case = case._replace(k=1, force_in=[], force_out=[])
        best = optimum(case)
        file = written(case, [8 * FIT + USE, CLOSE], best.x, 0, HUGE)
        assert said(case, file, lower=below(best.value), upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value), upper=HUGE) != "", seed


@pytest.mark.parametrize("loss", ["quadratic", "huber", "logistic", "squared_hinge", "poisson"])
def test_margins_thinner_than_the_digits_of_a_point(loss, monkeypatch):
    """Columns far from zero, a small ridge: the best model in doubles does not prove what the best model costs."""
    alone = []
    for seed in range(many(3, 12)):
        rng = random.Random(f"thin {seed}")
        A = [[rng.gauss(0, 1) * 100.0**j + 1e6 for j in range(3)] for _ in range(6)]
        y = [float(rng.choice([-1, 1])) if loss in CLASSES else rng.gauss(0, 100) for _ in range(6)]
        if loss == "poisson":  # columns a million from zero, and their exponentials
            A, y = [[v / 1e6 for v in row] for row in A], [float(rng.randint(0, 9)) for _ in range(5)] + [2.0]
        case = Case(A, y, 2, loss, 1e-5, 50.0, level=rng.random() < 0.5, scale=rng.random() < 0.3)
        best = optimum(case)
        if loss in CLASSES and best.value < F(1, 10):
            continue  # labels that columns tell apart: what the tests find in doubles is not the best model
        file = strong_file(case, best, by_fit=False)
        claim = float(best.value * (1 - F(1, 10**13)))
        assert said(case, file, lower=claim, upper=HUGE) == "", seed
        assert said(case, file, lower=above(best.value * (1 + F(1, 10**13))), upper=HUGE) != "", seed
        with monkeypatch.context() as patched:
            patched.setattr(checking, "improved", lambda *_: F(0))
            alone.append(said(case, file, lower=claim, upper=HUGE))
    assert sum(map(bool, alone)) > {"poisson": 0, "quadratic": many(0, 2), "huber": many(0, 2)}.get(loss, many(0, 2))


@pytest.mark.parametrize("loss", ["quadratic", "huber"])
def test_columns_that_share_a_place(loss, monkeypatch):
    """With A = I, y = (1, 1), k = 1 and lam = 1 the relaxation is worth 2/3: both columns have half a place."""
    case = Case([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 1, loss, 1.0, 10.0)
    file = written(case, [8 * 3 + USE, CLOSE], {0: 0.5}, 0, HUGE, [{0: 0.3, 1: 0.5}])
    assert said(case, file, lower=below(F(2, 3)), upper=HUGE) == ""
    assert said(case, file, lower=above(F(2, 3)), upper=HUGE) != ""
    monkeypatch.setattr(checking, "improved", lambda *_: F(0))
    assert said(case, file, lower=0.65, upper=HUGE) != ""


def test_nothing_costs_less_than_zero():
    """Eigenvalues are rounded upwards, so those of columns that two span come to more than there is."""
    case = Case([[1.0, 0.0, 1.0], [0.0, 3.0, 1.0]], [], 2, "", 0.0)
    file = written(case, [8 * EIGENVALUES + USE, CLOSE], {0: 1.0, 1: 1.0}, 0, HUGE)
    assert said(case, file, lower=0.0, upper=0.0) == ""


def test_only_so_many_regions_are_improved(monkeypatch):
    case = random_case(random.Random("many"), "huber")._replace(k=1, force_in=[], force_out=[])
    file = strong_file(case, optimum(case), by_fit=False)
    calls = []
    monkeypatch.setattr(checking, "improved", lambda *_: calls.append(1) or F(0))
    monkeypatch.setattr(checking, "POLISHED", 1)
    with pytest.raises(TooMuch, match="only"):
        said(case, file, lower=1e299)
    assert len(calls) == 1


def smallest_eigenvalue(case):
    """Of the prepared 2 x 2 Gram matrix, by hand."""
    w, s = case.row_weights(), case.squares()
    columns = [[F(row[j]) for row in case.A] for j in range(2)]
    total = sum(w)
    means = [sum(a * b for a, b in zip(w, c, strict=True)) / total if case.level else F(0) for c in columns]
    (p, q), (_, r) = [
        [
            float(sum(a * (u - means[i]) * (v - means[j]) for a, u, v in zip(w, columns[i], columns[j], strict=True)))
            / math.sqrt(s[i] * s[j])
            for j in range(2)
        ]
        for i in range(2)
    ]
    return (p + r) / 2 - math.hypot((p - r) / 2, q)


def test_curvature_is_about_prepared_columns(monkeypatch):
    """Just below the smallest eigenvalue it is taken, just above it is not; at the best model it proves the most."""
    monkeypatch.setattr(checking, "improved", lambda *_: F(0))
    tried = 0
    for seed in range(60):
        rng = random.Random(f"curved {seed}")
        A = [[rng.gauss(0, 1), rng.gauss(3, 5)] for _ in range(5)]
        weights = [rng.choice([0.5, 1.0, 3.0, 20.0]) for _ in range(5)] if rng.random() < 0.6 else None
        case = Case(
            A, [rng.gauss(2, 1) for _ in range(5)], 1, "quadratic", rng.choice([0.0, 0.01]), 1.0, weights,
            rng.random() < 0.5, rng.random() < 0.7,
        )  # fmt: skip
        eigenvalue = smallest_eigenvalue(case)
        best = fitted(case, [0, 1])
        tree = [8 * 3 + USE, 8 * 0 + LEAVE_OUT, CLOSE]
        bounds = []
        for factor in (0.999999, 1.000001):
            file = written(
                case, tree, {}, 0, HUGE, [prepared(case, best.x)], curvature=[case.lam + factor * eigenvalue] * 2
            )
            bounds.append(established(case, file)[0])
        assert F(math.nextafter(bounds[0], -1)) <= optimum(case).value, seed
        lost = (
            best.value
            + (F(case.lam) + F(eigenvalue))
            * min(v * v * s for v, s in zip(best.x.values(), case.squares(), strict=True))
            / 2
        )
        assert bounds[0] == pytest.approx(float(lost), rel=1e-5), seed
        without = written(case, tree, {}, 0, HUGE, [prepared(case, best.x)])
        assert bounds[1] == established(case, without)[0] < bounds[0], seed
        tried += case.scale and case.weights is not None and case.level
    assert tried > 5


def test_an_intercept_far_away():
    """The case that was verified 200 times too high, preparation included."""
    case = Case([[0.0], [1.0], [0.0], [1.0], [2.0]], [2.0**52 + v for v in (1, 2, 1, 2, 3)], 1, lam=0.001, level=True)
    best = optimum(case)
    assert float(best.value) == pytest.approx(0.00049982, abs=1e-8)
    for with_fit in (True, False):
        file = strong_file(case, best, by_fit=with_fit)
        assert said(case, file, lower=below(best.value * (1 - F(1, 10**9))), upper=above(best.value * 2)) == ""
        assert said(case, file, lower=0.1005, upper=HUGE) != ""
    assert said(case, file, lower=0, upper=above(best.value * 2)) == ""


def test_scaling_is_that_of_the_rows_that_count():
    case = Case([[1.0], [3.0], [1e9]], [1.0, 5.0, 7.0], 1, lam=2.0, weights=[1.0, 1.0, 0.0], level=True, scale=True)
    # Prepared: columns -1 and 1, targets -2 and 2; 1/2 (2 (2 - x)^2 + 2 x^2) is least at x = 1.
    assert optimum(case).value == 2
    file = strong_file(case, optimum(case))
    assert said(case, file, lower=2.0, upper=2.0) == ""
    assert file.arrays["model_value"] == [1.0]


# --- it stands alone ---


FOLDER = ROOT / "certificates" / "exactsel_certificates" / "standalone"


@pytest.mark.smoke
def test_it_imports_the_standard_library_and_itself():
    files = sorted(FOLDER.rglob("*.py"))
    assert len(files) >= 11
    for file in files:
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                # More dots than folders would lead out of it.
                assert node.level < len(file.relative_to(FOLDER.parent).parts), (file.name, node.module)
                names += [] if node.level else [node.module]
            for name in names:
                assert name.split(".")[0] in sys.stdlib_module_names, (file.name, name)


@pytest.mark.parametrize(
    ("file", "word", "code"), [("valid/points.exsel", "VERIFIED", 0), ("instance.npz", "Error", 2)]
)
def test_a_copy_of_its_folder_is_the_whole_checker(file, word, code, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "standalone", ignore=shutil.ignore_patterns("__pycache__"))
    proofs = next((ROOT / "tests").rglob("valid/points.exsel")).parents[1]
    command = [sys.executable, "-S", "-m", "standalone", str(proofs / file), str(proofs / "instance.npz")]
    # -S: nothing that is installed is found, neither numpy nor exactsel.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert (done.stdout + done.stderr).startswith(word)


# --- the campaign ---


def test_the_campaign_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.attacks.standalone_mutants import standalone_mutants

    result = CliRunner().invoke(standalone_mutants, ["--count", "300", "--seed", "5", "--forged", "20"])
    assert result.exit_code == 0, result.output
    *_, row, _, _ = result.output.strip().splitlines()
    assert re.fullmatch(r"\| all \|( [\d,]+ \|){3} 0 \| 0 \|", row), row


def test_the_campaign_notices_what_is_untrue(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.attacks.standalone_mutants import Subject

    for seed in range(30):
        subject = Subject(seed)
        if subject.high == 0 or not subject.all_in_scope:
            continue
        for claims, untrue in (
            ({"lower": float(subject.high) * (1 + 1e-6), "upper": HUGE}, True),
            ({"lower": 0.0, "upper": float(subject.low) * (1 - 1e-6)}, True),
            ({"lower": 0.0, "upper": HUGE}, False),
        ):
            header = subject.file.header | {name: value.hex() for name, value in claims.items()}
            assert subject.untrue(subject.file._replace(header=header).data()) == untrue
            assert json.dumps(header)
