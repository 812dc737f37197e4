"""Configs of sweeps: which jobs they come to, and what is said of those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactsel.data.instance import Instance, write_instance
from exactsel.errors import InputError
from exactsel.studies.sweeps.config import COMPILING, LONGEST, PATIENCE, SECONDS, jobs_of, read_config
from exactsel.studies.sweeps.jobs import Job
from exactsel.studies.sweeps.keys import KEYS

ROOT = Path(__file__).resolve().parents[2]
HARD = {"generate": {"name": "hard", "n": 12, "d": 6}}


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(1)
    for name in ("a", "b", "c"):
        instance = Instance(rng.standard_normal((10, 4)), rng.standard_normal(10), k=1, lam=0.1)
        write_instance(tmp_path / f"{name}.npz", instance)
    (tmp_path / "table.csv").write_text("p,q,y\n1,2,3\n2,1,4\n4,4,1\n")
    return tmp_path


def grid(folder, **table):
    return jobs_of({"sweep": [{"instances": "a.npz", **table}]}, folder)


def test_a_grid_is_the_product_of_its_lists_in_order(folder):
    jobs = grid(folder, k=[2, 1], lam=[0.1, 1], method=["solve", "omp"], seed=[0, 5])
    assert [(job.problem["k"], job.problem["lam"], job.method, job.seed) for job in jobs[:5]] == [
        (2, 0.1, "solve", 0), (2, 0.1, "solve", 5), (2, 0.1, "omp", 0), (2, 0.1, "omp", 5), (2, 1.0, "solve", 0),
    ]  # fmt: skip
    assert len(jobs) == len({job.key for job in jobs}) == len({job.rng_seed for job in jobs}) == 16


def test_patterns_files_and_generators(folder):
    jobs = jobs_of(
        {"sweep": [{"instances": ["b.npz", "*.npz"], "generate": {"name": "hard", "n": [9, 8], "d": 6}}]}, folder
    )
    assert [job.source.shown for job in jobs] == ["b.npz", "a.npz", "c.npz", "hard(n=9, d=6)", "hard(n=8, d=6)"]


def test_jobs_that_are_the_same_are_run_once(folder):
    tables = [{"instances": "a.npz", "k": [1, 2]}, {"instances": ["a.npz", "./a.npz"], "k": [2, 3], "lam": []}]
    del tables[1]["lam"]
    assert [job.problem["k"] for job in jobs_of({"sweep": tables}, folder)] == [1, 2, 3]


def test_defaults_hold_where_nothing_else_is_said(folder):
    config = {"defaults": {"k": [1, 2], "node_limit": 5}, "sweep": [{"instances": "a.npz"}, {**HARD, "k": 3}]}
    jobs = jobs_of(config, folder)
    assert [job.problem["k"] for job in jobs] == [1, 2, 3]
    assert all(job.settings == {"threads": 1, "node_limit": 5} for job in jobs)


def test_every_job_has_a_limit_and_an_end(folder):
    (usual,), (timed,) = grid(folder), grid(folder, time_limit=2)
    (counted,), (own,) = grid(folder, node_limit=3), grid(folder, give_up_after=7)
    assert usual.settings["time_limit"] == SECONDS
    assert (timed.settings["time_limit"], timed.give_up_after) == (2.0, PATIENCE * 2 + COMPILING)
    assert (counted.settings, counted.give_up_after) == ({"threads": 1, "node_limit": 3}, LONGEST)
    assert own.give_up_after == 7
    assert own.key == usual.key


def test_settings_of_a_method_go_before_those_of_the_table(folder):
    methods = [
        {"name": "solve", "node_limit": 9, "bound": "apg", "heuristics": "none"},
        {"name": "poss", "iterations": 7},
    ]
    solve, poss = grid(folder, node_limit=5, rel_eps=0.1, method=methods)
    assert solve.settings == {"threads": 1, "node_limit": 9, "rel_eps": 0.1, "bound": "apg", "heuristics": []}
    assert (poss.settings, poss.options) == ({"threads": 1, "rel_eps": 0.1}, {"iterations": 7})


def test_thresholds_are_for_huber_loss_only(folder):
    jobs = grid(folder, loss=["quadratic", "huber"], delta=[1, 2])
    assert [(job.problem["loss"], job.problem.get("delta")) for job in jobs] == [
        ("quadratic", None), ("huber", 1.0), ("huber", 2.0),
    ]  # fmt: skip


def test_keys_and_seeds_come_from_what_a_job_is_and_not_from_its_place(folder):
    alone, among = grid(folder, k=2, seed=1), grid(folder, k=[1, 2], seed=[0, 1])
    assert alone[0].key == among[-1].key
    assert alone[0].rng_seed == among[-1].rng_seed
    longer = grid(folder, k=2, seed=1, node_limit=10**6)
    assert longer[0].key != alone[0].key
    assert longer[0].rng_seed == alone[0].rng_seed
    (folder / "copy.npz").write_bytes((folder / "a.npz").read_bytes())
    (copied,) = grid(folder, instances="copy.npz", k=2, seed=1)
    assert copied.key == alone[0].key
    write_instance(folder / "a.npz", Instance(np.eye(4), np.ones(4), k=1, lam=0.1))
    assert grid(folder, k=2, seed=1)[0].key != copied.key


def test_a_target_in_a_file_of_its_own_is_part_of_what_a_job_is(folder):
    np.save(folder / "m.npy", np.eye(3))
    keys = set()
    for value in (1.0, 2.0):
        np.save(folder / "y.npy", np.full(3, value))
        (job,) = grid(folder, instances="m.npy", target="y.npy", k=1)
        keys.add(job.key)
        assert job.source.read().y.tolist() == [value] * 3
    assert len(keys) == 2


def test_a_job_is_the_same_after_a_line(folder):
    (job,) = grid(folder, method={"name": "poss", "iterations": 7}, force_in=[0], seed=3)
    again = Job.from_line(job.to_line())
    assert (again.key, again.rng_seed, again.source) == (job.key, job.rng_seed, job.source)


MANY = str([*range(1001)])


def test_the_configs_that_are_shown_are_configs(tmp_path, monkeypatch):
    from exactsel.cli.dev.sweep import command

    (tmp_path / "instances").symlink_to(ROOT / "instances")
    page = (ROOT / "docs" / "howto" / "sweeps.md").read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    text = command.help.split("\b\n")[1].split("\n\n")[0]
    for number, shown in enumerate((page, text)):
        (tmp_path / "sweep.toml").write_text(shown)
        jobs = jobs_of(read_config(tmp_path / "sweep.toml"), tmp_path)
        assert len(jobs) == (36 + 144, 360)[number]


BAD = {
    "sweeps = 1": "the config holds 'sweeps'; did you mean 'sweep'",
    "": "no table [[sweep]]",
    "sweep = 3": "one table [defaults]",
    "sweep = [3]": "one table [defaults]",
    "defaults = 3": "one table [defaults]",
    "[[sweep]]": "there is no instance",
    "[[sweep]]\ninstances = []": "empty list",
    "[[sweep]]\ninstance = 'a.npz'": "did you mean 'instances'",
    "[defaults]\ntime_limt = 3\n[[sweep]]\ninstances = 'a.npz'": "in [defaults], 'time_limt' is no key of a sweep; did",
    "[[sweep]]\ninstances = 'no.npz'": "there is no file no.npz",
    "[[sweep]]\ninstances = 'no*.npz'": "no file is called like 'no*.npz'",
    "[[sweep]]\ninstances = 'a.npz'\nk = 'two'": "k is 'two', but a whole number",
    "[[sweep]]\ninstances = 'a.npz'\nk = [1, true]": "but a whole number",
    "[[sweep]]\ninstances = 'a.npz'\nk = 1.5": "but a whole number",
    "[[sweep]]\ninstances = 'a.npz'\nlam = nan": "but a finite number",
    "[[sweep]]\ninstances = 'a.npz'\nlam = -1": "but a finite number",
    "[[sweep]]\ninstances = 'a.npz'\nlam = 1979-05-27": "but a finite number",
    "[[sweep]]\ninstances = 'a.npz'\nseed = -1": "but a whole number",
    "[[sweep]]\ninstances = 'a.npz'\nloss = 'hubr'": "did you mean 'huber'",
    "[[sweep]]\ninstances = 'a.npz'\ndelta = 1": "delta is given, but no loss has it",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = 'slove'": "did you mean 'solve'",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {bound = 'apg'}": "but 'solve', the name of a heuristic",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'solve', bond = 'apg'}": "did you mean 'bound'",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'solve', bound = 'agp'}": "there is no bound called 'agp'",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'solve', bound = 3}": "a name was expected",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'solve', seed = 3}": "it is a key of the table",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'solve', rel_eps = -1.0}": "rel_eps is -1.0",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'solve', heuristics = ['nil']}": "no heuristic called 'nil'",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'poss', iteration = 3}": "has no option 'iteration'",
    "[[sweep]]\ninstances = 'a.npz'\nmethod = {name = 'poss', iterations = 1979-05-27}": "is no setting of a method",
    "[[sweep]]\ninstances = 'a.npz'\nproblem = 'css'\nlam = 1": "column subset selection has no lam",
    "[[sweep]]\ninstances = 'a.npz'\nproblem = 'cs'": "'regression' or 'css'",
    "[[sweep]]\ninstances = 'a.npz'\nmissing = 'zero'": "one of drop-rows",
    "[[sweep]]\ninstances = 'a.npz'\nthreads = 0": "from 1 on",
    "[[sweep]]\ninstances = 'a.npz'\ngive_up_after = 0": "positive number of seconds",
    "[[sweep]]\ninstances = 'a.npz'\nintercept = 1": "true or false",
    "[[sweep]]\ngenerate = 'hard'": "but a table such as",
    "[[sweep]]\ngenerate = {n = 3}": "names no generator",
    "[[sweep]]\ngenerate = {name = 'hrd'}": "no generator called 'hrd'",
    "[[sweep]]\ngenerate = {name = 'hard', rows = 3}": "in generate, 'rows' is no key",
    "[[sweep]]\ngenerate = {name = 'hard', d = 0}": "at least one row and one column",
    "[[sweep]]\ninstances = 'a.npz'\nk = " + MANY + "\nseed = " + MANY: "more than 200000",
    "[[sweep]\n": "is no TOML",
    "[[sweep]]\nk = 1\nk = 2\n": "is no TOML",
    "a = " + "[" * 5000: "is no TOML",
}  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_config_that_cannot_be_used_is_one_sentence(number, folder, run):
    text, said = [*BAD.items()][number]
    (folder / "sweep.toml").write_text(text)
    shown = run("dev", "sweep", folder / "sweep.toml", "--dry-run")
    assert shown.code == 2
    assert shown.err.startswith("Error: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err
    assert not [path for path in folder.iterdir() if "store" in path.name]


def test_files_that_are_no_config(folder):
    for name, said in (("no.toml", "there is no file"), (".", "cannot be read"), ("a.npz", "no text in UTF-8")):
        with pytest.raises(InputError, match=said):
            read_config(folder / name)


WORDS = st.sampled_from(["a.npz", "omp", "huber"])
NAMES = st.sampled_from(["name", "n", "d", "k", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=4,
)


@given(table=st.dictionaries(st.sampled_from([*KEYS, "other"]), VALUES, max_size=3), known=st.booleans())
def test_whatever_a_table_holds_is_a_job_or_one_sentence(table, known, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    if not (folder / "a.npz").exists():
        write_instance(folder / "a.npz", Instance(np.eye(4), np.ones(4), k=1, lam=0.1))
    if isinstance(table.get("generate"), list | dict):  # sizes of any magnitude would be made
        table["generate"] = [1, table["generate"]]
    config = {"sweep": [{"instances": "a.npz", **table}]} if known else {"defaults": table, "sweep": [HARD]}
    try:
        jobs = jobs_of(config, folder)
    except InputError as error:
        said = str(error)
    else:
        assert all(Job.from_line(job.to_line()).key == job.key for job in jobs)
        return
    assert said.endswith(".")
    assert "\n" not in said
