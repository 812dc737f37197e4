"""The commands fuzz and reduce, and the files of what fails."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from command_line import start
from equal_instances import same
from samples import sample

from exactsel.cli import installed_apart
from exactsel.solving.reproducer import CONTRADICTION
from exactsel.testing import failing
from exactsel.testing.reproducers import read_reproducer, write_reproducer
from exactsel_dev.campaigns import campaign, trials
from exactsel_dev.campaigns.campaign import run_campaign
from exactsel_dev.campaigns.peers import known_peers
from exactsel_dev.campaigns.random_instances import random_instance
from exactsel_dev.campaigns.trials import BRUTE_FORCE, METAMORPHIC, Trial

# Reproducers and commands


@pytest.mark.parametrize("seed", sample(40, 40))
def test_a_reproducer_read_is_the_one_that_was_written(seed, tmp_path):
    kept = trials.Reproducer(random_instance(seed), BRUTE_FORCE, seed, "lower above it all", "much", "")
    file = write_reproducer(tmp_path / "new", kept)
    for name in (file, file.with_suffix(".npz")):
        again = read_reproducer(name)
        assert same(again.instance, kept.instance)
        assert replace(again, instance=kept.instance) == kept


def test_files_that_are_none_are_refused(tmp_path, run):
    (tmp_path / "other.json").write_text("[]")
    assert "is no reproducer" in run("dev", "reduce", tmp_path / "other.json").err
    assert "cannot be read" in run("dev", "reduce", tmp_path / "nothing.json").err
    assert "holds no reproducer" in run("dev", "reduce", tmp_path).err
    file = write_reproducer(tmp_path, trials.Reproducer(random_instance(1), BRUTE_FORCE, 1, "a", "b"))
    text = json.loads(file.read_text())
    file.write_text(json.dumps(text | {"instance": {}}))
    assert "damaged" in run("dev", "reduce", file).err
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="cannot be made"):
        write_reproducer(tmp_path / "file", trials.Reproducer(random_instance(1), BRUTE_FORCE, 1, "a", "b"))


@pytest.fixture
def wheel_alone(monkeypatch):
    """No package beside the wheel brings a command or a check."""
    for module in (installed_apart, failing):
        monkeypatch.setattr(module, "entry_points", lambda **asked: ())


@pytest.mark.usefixtures("wheel_alone")
def test_without_the_package_of_campaigns_a_sentence_says_how_to_get_it(tmp_path, run):
    shown = run("dev", "fuzz", "--count", 1)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err == (
        "Error: exactsel dev fuzz is not installed; it comes with a checkout of exactsel: run make setup there.\n"
    )
    assert "make setup" in " ".join(run("dev", "fuzz", "--help").out.split())
    file = write_reproducer(tmp_path, trials.Reproducer(random_instance(1), BRUTE_FORCE, 1, "a", "b"))
    shown = run("dev", "reduce", file)
    assert shown.code == 2
    assert "run make setup there" in shown.err


@pytest.mark.usefixtures("wheel_alone")
def test_the_wheel_alone_reduces_what_a_search_has_written(tmp_path, run):
    write_reproducer(tmp_path, trials.Reproducer(random_instance(1), failing.SEARCH, 1, CONTRADICTION, "b"))
    shown = run("dev", "reduce", tmp_path)
    assert (shown.code, "fails no more" in shown.out) == (0, True)


def test_reduce_says_what_fails_no_more(tmp_path, run):
    write_reproducer(tmp_path, trials.Reproducer(random_instance(1), BRUTE_FORCE, 1, "lower above the optimum", "b"))
    shown = run("dev", "reduce", tmp_path)
    assert (shown.code, "fails no more" in shown.out) == (0, True)
    shown = run("dev", "reduce", tmp_path, "--json")
    assert shown.json["failing"] == 0
    assert shown.json["reproducers"][0]["what"] == "lower above the optimum"


@pytest.mark.parametrize("jobs", [0, 1])
def test_of_one_loss_all_others_are_passed_over(jobs):
    counts = run_campaign(Trial(BRUTE_FORCE, loss="poisson"), 0, 60, jobs).counts
    of_poisson = [seed for seed in range(60) if random_instance(seed).loss == "poisson"]
    assert counts[trials.PASSED_OVER] == 60 - len(of_poisson) < 60
    others = [what for what in counts if what.startswith(("tried", "not served")) and not what.endswith("poisson")]
    assert others == []


def test_a_loss_that_is_not_drawn_is_refused(run):
    assert "no instance has the loss 'absolute'" in run("dev", "fuzz", "--loss", "absolute").err


def test_the_command_in_processes_of_its_own_says_what_a_campaign_says_here(tmp_path):
    arguments = ("--kind", "metamorphic", "--seed", 34, "--count", 8, "--jobs", 2)
    done = start("dev", "fuzz", *arguments, "--json", "--quiet", "--out", tmp_path / "none")
    assert (done.returncode, done.stderr) == (0, "")
    (told,) = json.loads(done.stdout)["campaigns"]
    here = run_campaign(Trial(METAMORPHIC), 34, 8).as_dict()
    assert {**told, "seconds": 0} == {**here, "seconds": 0}
    assert not (tmp_path / "none").exists()


def test_a_campaign_that_finds_something_ends_with_one(monkeypatch, run):
    faulty = campaign.Outcome(5, ["tried: quadratic"], [("lower above the optimum", "by much")])
    monkeypatch.setattr(campaign, "tried_in_processes", lambda trial, seeds, jobs, stopped: iter([faulty]))
    shown = run("dev", "fuzz", "--seed", 5, "--count", 1)
    assert shown.code == 1
    assert "WRONG 1 times: lower above the optimum (seeds 5)" in shown.out
    assert "seed 5: lower above the optimum: by much" in shown.err
    assert run("dev", "fuzz", "--seed", 5, "--count", 1, "--json", "--quiet").json["wrong"] == 1


def test_what_is_not_there_is_said_in_a_sentence(monkeypatch, run):
    from exactsel_dev.campaigns import mixed_integer, specialised

    monkeypatch.setattr(mixed_integer, "find_spec", lambda name: None)
    monkeypatch.setattr(specialised, "find_spec", lambda name: None)
    monkeypatch.setattr(specialised.shutil, "which", lambda name: None)
    for peer in known_peers().values():
        assert peer.missing().endswith((".", "lmSubsets."))
    shown = run("dev", "fuzz", "--kind", "peers", "--count", 1)
    assert shown.code == 2
    assert "no other solver is there to be asked" in shown.err
    assert "unknown" in run("dev", "fuzz", "--kind", "peers", "--peer", "unknown").err
