"""Where compiled kernels are kept nobody else may put files: neither into the folder nor into one above it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from exactsel._jit import cache_paths

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders have no such permissions on Windows")

as_root = hasattr(os, "getuid") and os.getuid() == 0


@pytest.fixture
def base(monkeypatch, tmp_path):
    """A folder for caches, two below one of the test's own."""
    made = tmp_path / "above" / "caches"
    made.mkdir(parents=True)
    monkeypatch.setenv("EXACTSEL_CACHE_DIR", str(made))
    assert cache_paths.writable_cache() is not None
    return made


@pytest.fixture
def group(monkeypatch):
    """Says what the group of every folder is."""
    import grp
    import pwd

    user = SimpleNamespace(pw_name="anna", pw_gid=os.getgid())

    def says(name, *members):
        monkeypatch.setattr(pwd, "getpwuid", lambda number: user)
        monkeypatch.setattr(grp, "getgrgid", lambda number: SimpleNamespace(gr_name=name, gr_mem=list(members)))
        return user

    return says


def owned_by_another(path, monkeypatch):
    """Let somebody else be the owner of a folder or link."""
    if as_root:
        os.chown(path, 4321, -1, follow_symlinks=False)
        return
    real = Path.lstat

    def told(self):
        state = real(self)
        if self != path:
            return state
        return os.stat_result([*state[:4], state.st_uid + 1, *state[5:10]])

    monkeypatch.setattr(Path, "lstat", told)


def test_a_folder_others_can_write_is_not_used(base):
    folder = Path(cache_paths.writable_cache())
    for mode, used in ((0o777, False), (0o1777, False), (0o702, False), (0o755, True), (0o700, True)):
        folder.chmod(mode)
        assert (cache_paths.writable_cache() == str(folder)) == used, oct(mode)


@pytest.mark.parametrize("which", ["caches", "above"])
def test_nor_is_one_below_a_folder_others_can_write(base, which):
    above = base if which == "caches" else base.parent
    for mode, used in ((0o777, False), (0o703, False), (0o755, True), (0o1777, True)):
        above.chmod(mode)
        assert (cache_paths.writable_cache() is not None) == used, oct(mode)


@pytest.mark.parametrize("which", ["folder", "caches", "above"])
def test_a_group_that_can_write_must_be_the_users_own(base, group, which):
    folder = Path(cache_paths.writable_cache())
    {"folder": folder, "caches": base, "above": base.parent}[which].chmod(0o775)
    for name, members, used in (
        ("anna", (), True), ("anna", ("anna",), True), ("anna", ("anna", "bert"), False), ("staff", (), False),
        ("staff", ("anna",), False),
    ):  # fmt: skip
        group(name, *members)
        assert (cache_paths.writable_cache() is not None) == used, (name, members)
    group("anna").pw_gid += 1
    assert cache_paths.writable_cache() is None, "the user's group is another one"


@pytest.mark.parametrize("which", ["folder", "caches", "above"])
def test_nor_is_one_of_another_user(base, monkeypatch, which):
    folder = Path(cache_paths.writable_cache())
    owned_by_another({"folder": folder, "caches": base, "above": base.parent}[which], monkeypatch)
    assert cache_paths.writable_cache() is None


def test_a_link_on_the_way_is_followed_and_so_is_all_it_passes(base, monkeypatch, tmp_path):
    link, between = tmp_path / "link", tmp_path / "between"
    between.mkdir()
    (between / "next").symlink_to("../above")
    link.symlink_to(between / "next")
    monkeypatch.setenv("EXACTSEL_CACHE_DIR", str(link / "caches"))
    assert cache_paths.writable_cache() is not None
    between.chmod(0o777)
    assert cache_paths.writable_cache() is None, "others can replace the second link"
    between.chmod(0o755)
    base.parent.chmod(0o777)
    assert cache_paths.writable_cache() is None
    base.parent.chmod(0o755)
    assert cache_paths.writable_cache() is not None
    owned_by_another(between / "next", monkeypatch)
    assert cache_paths.writable_cache() is None, "its owner can let it lead elsewhere"


def test_links_that_go_round_lead_nowhere(tmp_path):
    (tmp_path / "round").symlink_to("round")
    assert not cache_paths.trusted(tmp_path / "round")


def test_what_numba_would_take_instead_is_not_used(base, tmp_path):
    """A cache folder that has become unusable meanwhile sends nothing into a folder nobody has looked at."""
    code = (
        "import os; from exactsel import _jit; from exactsel._jit import compiled\n"
        "import pathlib; compiled.CACHE = pathlib.Path(os.devnull)\n"
        "import importlib.util as u; s = u.spec_from_file_location('own', 'own.py'); m = u.module_from_spec(s)\n"
        "s.loader.exec_module(m); print(m.twice(3))"
    )
    (tmp_path / "own.py").write_text("from exactsel import _jit\n@_jit.njit\ndef twice(x):\n    return 2 * x\n")
    environment = os.environ | {"EXACTSEL_JIT": "1", "HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("6\n", 0), done.stderr
    assert not [path for path in tmp_path.rglob("*.nb?") if base not in path.parents]
