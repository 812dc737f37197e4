"""Checkpoints that somebody has forged: every door refuses them in a sentence, soon, or says what is true."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from samples import many

from benchmarks.attacks import checkpoints as campaign
from benchmarks.attacks import forged_states, forged_tables
from exactsel import InputError, solve
from exactsel.bounds.base import stack_points
from exactsel.bounds.witness import FitPoint, ModelPoint
from exactsel.errors import OutputWarning
from exactsel.search import database
from exactsel.search.checkpoint import Checkpoint
from exactsel.search.json_shapes import read_json
from exactsel.search.packed_bytes import LARGEST, from_bytes, to_bytes
from exactsel.search.packing import Packed
from exactsel.solving.status import status_of

KINDS = ("proof", "path", "near", "spilled")
FORGERIES = {
    f"{forgery.__name__} {seed}": (forgery, seed, forgery in forged_states.FORGERIES)
    for forgery in dict.fromkeys((*forged_tables.FORGERIES, *forged_states.FORGERIES))
    for seed in range(many(2, 4))
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the honest checkpoints are, each made once."""
    return tmp_path_factory.mktemp("forged")


@pytest.fixture
def saved(folder, tmp_path):
    """Makes a copy of an honest checkpoint of a kind."""

    def copied(kind="proof", name="held.ckpt"):
        return Path(shutil.copy(campaign.honest(kind, str(folder))[0], tmp_path / name))

    return copied


def refused(file, kind="proof"):
    """The sentence with which both doors of Python refuse a checkpoint."""
    with pytest.raises(InputError) as told:
        status_of(file)
    with pytest.raises(InputError) as resumed:
        solve(campaign.problem_of(kind), resume=file, signals=())
    assert str(told.value) == str(resumed.value)
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("name", FORGERIES)
def test_every_door_refuses_it_or_tells_the_truth(name, folder, monkeypatch):
    forgery, seed, states = FORGERIES[name]
    kind = KINDS[seed]
    if forgery is forged_states.spool:
        kind = "proof"
    elif forgery is forged_states.keys:
        kind = "spilled"

    def forged(number, _, file):
        return forgery(file, np.random.default_rng([seed, number])), states

    monkeypatch.setattr(campaign, "forged", forged)
    outcome = campaign.tried(seed, kind, "0", b"", folder)
    assert outcome.fault == "", outcome


def test_an_honest_one_is_read(folder):
    for kind in campaign.KINDS:
        outcome = campaign.tried(-1, kind, "0", b"", folder)
        assert (outcome.fault, outcome.code) == ("", 0)


@pytest.mark.parametrize("table", forged_tables.TABLES)
def test_a_view_in_the_place_of_a_table_is_not_read(table, saved):
    file = saved()
    with forged_tables.opened(file) as connection:
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE VIEW {table} AS {forged_tables.ENDLESS} SELECT n AS id, n AS text FROM c")
    assert "it holds other tables than a checkpoint has" in refused(file)


def test_pages_that_lead_back_to_themselves_come_to_an_end(saved):
    for seed in range(6):
        file = saved(name=f"{seed}.ckpt")
        forged_tables.pages(file, np.random.default_rng(seed))
        with pytest.raises(InputError), closing(Checkpoint.open(file)) as checkpoint:
            checkpoint.saved()


def test_a_statement_has_a_limited_number_of_steps(saved):
    held = database.Database(saved(), "ro")
    endless = f"{forged_tables.ENDLESS} SELECT n FROM c"
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        for _ in held.rows(f"SELECT count(*) FROM ({endless})"):
            pass
    held.close()


def test_all_rows_together_are_no_longer_than_the_file(saved):
    file = saved("spilled")
    with forged_tables.opened(file) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'chunk'").fetchone()
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'part'", (root,))
    assert "other tables" in refused(file, "spilled")


@pytest.mark.parametrize("text", ["[" * 10**6, '{"a": 1e999}', '{"a": NaN}', '{"a": 1' + "0" * 30 + "}", "[1]", "{"])
def test_json_that_nobody_writes_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


def test_json_that_takes_too_much_memory_is_refused_unread(monkeypatch):
    monkeypatch.setattr("exactsel.search.json_shapes.MEMORY", 2**12)
    monkeypatch.setattr(json, "loads", lambda *a, **b: pytest.fail("it is read"))
    with pytest.raises(ValueError, match="too long"):
        read_json('{"a": [' + "[]," * 100 + "[]]}")


def test_bytes_that_unpack_to_more_than_there_can_be_are_refused(monkeypatch):
    monkeypatch.setattr("exactsel.search.packed_bytes.LARGEST", 2**16)
    with pytest.raises(InputError, match="bytes that cannot be unpacked"):
        from_bytes(zlib.compress(bytes(2**20)))
    assert LARGEST >= 2**28, "what is compressed may be as large as parts of a state are"


def test_what_is_too_large_to_be_compressed_is_read_all_the_same(monkeypatch):
    monkeypatch.setattr("exactsel.search.packed_bytes.LARGEST", 2**10)
    arrays = {"x": np.zeros(10**5)}
    assert np.array_equal(from_bytes(to_bytes(Packed({}, arrays))).arrays["x"], arrays["x"])


@pytest.mark.parametrize("name", ["tree", "branching", "bound", "frontier", "heuristics"])
@pytest.mark.parametrize("value", [0.5, None, {"name": "binary"}, [1]])
def test_a_plug_in_goes_by_its_name(name, value, saved):
    file = saved()
    with forged_tables.opened(file) as connection:
        about = json.loads(forged_states.text_of(connection, "about"))
        about["settings"][name] = value
        forged_states.put(connection, "about", json.dumps(about))
    assert "what it was begun with is not as a search writes it" in refused(file)


def test_a_warm_start_of_another_kind_is_none():
    point = ModelPoint(np.array([1], dtype=np.int32), np.array([2.0]))
    assert stack_points([None, point, np.zeros(3), FitPoint()], 3).tolist() == [[0] * 3, [0, 2, 0], [0] * 3, [0] * 3]


class TestTheProofOfAForgedCheckpoint:
    def named(self, saved, target):
        """A checkpoint that says its proof is for another file."""
        file = saved()
        with forged_tables.opened(file) as connection:
            about = json.loads(forged_states.text_of(connection, "about"))
            forged_states.put(connection, "about", json.dumps(about | {"proof": str(target)}))
        return file

    def test_a_file_of_the_users_is_not_replaced(self, saved, tmp_path):
        victim = tmp_path / "letter.txt"
        victim.write_text("mine")
        file = self.named(saved, victim)
        with pytest.raises(InputError, match=r"names .*letter\.txt as the file for its proof, but that is something"):
            solve(campaign.problem_of("proof"), resume=file, signals=())
        assert victim.read_text() == "mine"
        result = solve(campaign.problem_of("proof"), resume=file, proof=tmp_path / "own.exsel", signals=())
        assert (result.proof, victim.read_text()) == (str(tmp_path / "own.exsel"), "mine")

    def test_nor_what_a_link_leads_to(self, saved, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "nothing")
        with pytest.raises(InputError, match="something else"):
            solve(campaign.problem_of("proof"), resume=self.named(saved, tmp_path / "link"), signals=())
        assert not (tmp_path / "nothing").exists()

    def test_a_proof_of_before_is(self, saved, tmp_path):
        target = tmp_path / "run.exsel"
        first = solve(campaign.problem_of("proof"), resume=self.named(saved, target), signals=())
        assert first.proof == str(target)
        (tmp_path / "held.ckpt").unlink()
        assert solve(campaign.problem_of("proof"), resume=self.named(saved, target), signals=()).proof == str(target)

    def test_pieces_that_name_each_other_come_to_an_end(self, saved, tmp_path):
        for seed in range(12):
            file = saved(name=f"{seed}.ckpt")
            forged_states.spool(file, np.random.default_rng(seed))
            proof = tmp_path / f"{seed}.exsel"
            with contextlib.suppress(InputError, OutputWarning):
                solve(campaign.problem_of("proof"), resume=file, proof=proof, signals=())
                continue
            assert not proof.exists()


class TestBesideACheckpoint:
    def test_a_journal_is_not_played_back(self, saved):
        file = saved()
        before = file.read_bytes()
        Path(f"{file}-journal").write_bytes(bytes(600))
        assert "is beside the checkpoint, which never has such a file" in refused(file)
        assert file.read_bytes() == before

    def test_what_is_no_file_is_not_opened(self, saved):
        file = saved()
        Path(f"{file}-wal").mkdir()
        assert "is no ordinary file" in refused(file)

    def test_looking_on_changes_nothing(self, saved, tmp_path):
        file = saved()
        before = file.read_bytes()
        file.chmod(0o444)
        status_of(file)
        assert file.read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["held.ckpt"]
