"""What the benchmarks share: data sets of a folder, found by any spelling of their names, and anytime curves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def shared():
    """The modules; ``benchmarks`` is not an installed package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        from benchmarks import curves, folder

        yield SimpleNamespace(curves=curves, folder=folder)


def test_a_data_set_is_found_by_any_spelling(shared, tmp_path):
    A, y = np.arange(6).reshape(3, 2), np.array([1, 0, 1])
    np.savez(tmp_path / "ComCri.npz", A=A, y=y)
    np.savez(tmp_path / "com-cri.npz", A=A + 1, y=y)
    np.savez(tmp_path / "matrix.npz", A=A)
    for name in ("Com Cri", "ComCri", "COM_CRI"):
        found, target = shared.folder.read(name, tmp_path)
        assert np.array_equal(found, A)
        assert (found.dtype, target.dtype) == (float, float)
    assert np.array_equal(shared.folder.read("com-cri", tmp_path)[0], A + 1), "an exact name comes first"
    assert np.array_equal(shared.folder.read("matrix", tmp_path, ("A",))[0], A)
    assert shared.folder.files(tmp_path) == ["ComCri", "com-cri", "matrix"]
    assert shared.folder.chosen(["matrix", "all"], (), tmp_path) == ("matrix", "ComCri", "com-cri")
    assert shared.folder.chosen(None, ("sonar",), tmp_path) == ("sonar",)


def test_the_folder_is_the_one_of_the_environment_unless_named(shared, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    np.savez(tmp_path / "one.npz", A=np.zeros((1, 1)))
    np.savez(other / "one.npz", A=np.ones((1, 1)))
    monkeypatch.setenv("EXACTSEL_DATA", str(tmp_path))
    assert shared.folder.read("one", None, ("A",))[0] == 0.0
    assert shared.folder.read("one", other, ("A",))[0] == 1.0
    monkeypatch.delenv("EXACTSEL_DATA")
    assert shared.folder.files() == []
    with pytest.raises(shared.folder.MissingData, match="EXACTSEL_DATA does not name a folder with one"):
        shared.folder.read("one")


def test_what_does_not_serve_is_refused_in_a_sentence(shared, tmp_path):
    np.savez(tmp_path / "matrix.npz", A=np.zeros((2, 2)))
    np.savez(tmp_path / "holes.npz", A=np.array([[1.0, np.nan]]), y=np.ones(1))
    for name, words in (
        ("matrix", "matrix is skipped: .*matrix.npz needs the arrays A and y"),
        ("holes", "holes is skipped: .* not finite; fill them in"),
        ("absent", "absent is skipped: there is no .*absent.npz"),
    ):
        with pytest.raises(shared.folder.MissingData, match=words):
            shared.folder.read(name, tmp_path)


runs = st.lists(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 20)), max_size=8).map(
        # counts ascend, objectives descend
        lambda points: list(
            zip(sorted({c for c, _ in points}), sorted({v for _, v in points}, reverse=True), strict=False)
        )
    ),
    min_size=1,
    max_size=4,
)


@given(runs, st.integers(1, 30), st.integers(0, 20))
def test_curves_are_what_their_points_say(shared, found, end, baseline):
    """Against the definition: the smallest objective of a point reached by then, 25 before the first."""

    def slow(run, count):
        return float(min([25.0, *(value for at, value in run if at <= min(count, end))]))

    curves = shared.curves.Curves.of(found, end, 25.0)
    for count in range(32):
        assert list(curves.at(count)) == [slow(run, count) for run in found]
    below = [count for count in range(end + 1) if np.mean([slow(run, count) for run in found]) < baseline - 1e-6]
    assert curves.passing(baseline) == (below[0] if below else pytest.approx(np.nan, nan_ok=True))


def test_the_landmarks_end_at_the_theoretical_time(shared):
    marks = shared.curves.landmarks(8)
    assert marks[-1] == pytest.approx(43.49, abs=0.01)
    assert marks[-2] == 40.0
    assert list(marks) == sorted(set(marks))
