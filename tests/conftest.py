"""For every test: time stands still, and each search that is run to its end leaves a proof, which must be verified."""

from __future__ import annotations

import gc
import itertools
import os
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("EXACTSEL_JIT", "1")  # what small problems need is compiled, too: that is what is tested

import processor_time
import pytest
import scipy.linalg  # noqa: F401  it brings a BLAS library of its own
from clocks import Clock
from hypothesis import settings
from threadpoolctl import ThreadpoolController

from exactsel.errors import InputError, UnsupportedError
from exactsel.problem.capabilities import FREE_COEFFICIENTS
from exactsel.problem.column_subset import ColumnSubsetProblem
from exactsel.problem.grouped import GroupedProblem
from exactsel.problem.regression import Problem
from exactsel.proofs.verify import verify
from exactsel.proofs.writer import ProofWriter
from exactsel.search.events import Finished
from exactsel.solving.claim import established
from exactsel.solving.solver import Search

if os.environ["EXACTSEL_JIT"] == "1":
    del os.environ["EXACTSEL_JIT"]  # processes of their own do as a user's

for blas in ThreadpoolController().select(user_api="blas").lib_controllers:
    blas.set_num_threads(1)  # those of several workers take turns spinning: a tenth of all the time, for small matrices

settings.register_profile("same", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("other", deadline=None, print_blob=True)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--budgets", action="store_true", help="hold each folder against its budget of processor time")


def pytest_configure(config):
    processor_time.configure(config)


def pytest_collection_finish():
    """What is there once all tests are collected stays: no collection of garbage need go through it again."""
    gc.collect()
    gc.freeze()


MOST_ENTRIES = 8_000
"""Entries of A up to which a search is checked, so that the tests stay quick ..."""

MOST_NODES = 3_000
"""... and nodes."""

MOST_ROUNDED = 2e-9
"""Times the objective of the empty model: what rounding may take off a bound where there is no ridge."""

MEMORY = "/dev/shm"

PROOFS: list[Path] = []
"""The folder of proof files, one for all tests of a process."""

NUMBERS = itertools.count()

run_search = Search.__iter__


def wants_proof(search):
    problem = search.problem
    known = type(problem) in (Problem, ColumnSubsetProblem, GroupedProblem)
    known = known and getattr(problem, "inner", problem).AT.size <= MOST_ENTRIES
    return known and search._given_state is None


def search_with_proof(search):
    """The events of a search, which must also come to a proof that holds."""
    writer = None
    if wants_proof(search):
        with suppress(UnsupportedError, InputError):
            writer = ProofWriter(search.problem, PROOFS[-1] / f"{next(NUMBERS)}.exsel")
    if writer is None:
        yield from run_search(search)
        return
    search._shown, search._brief = True, False
    try:
        for event in run_search(search):
            writer(event, search.state)
            if isinstance(event, Finished):
                check(search, writer)
            yield event
    finally:
        writer.close()
        writer.path.unlink(missing_ok=True)


def check(search, writer):
    if search.state.nodes > MOST_NODES:
        return
    found = search.result()
    coef = found.coef
    claimed = writer.claim(found.lower, found.upper)
    writer.finish(claimed, found.upper, found.support, coef, found.valid_for)
    if search.problem.has(FREE_COEFFICIENTS) and search.problem.objective.ridge_limits is not None:
        # So small a ridge makes much of what rounding does to a dual vector; a solve then claims what its proof shows.
        shown = established(search.problem, writer.path)
        assert shown is None or shown >= claimed - MOST_ROUNDED * search.problem.null_objective
    verdict = verify(search.problem, writer.path)
    assert verdict.verified, f"{search.problem}, {search.settings}: {verdict}"


@pytest.fixture(autouse=True)
def every_search_is_verified(request, monkeypatch):
    """Switched off by the marker ``untrue`` where a test's own bounds are wrong on purpose."""
    if "untrue" not in request.keywords:
        monkeypatch.setattr(Search, "__iter__", search_with_proof)


@pytest.fixture(scope="session", autouse=True)
def folder_of_proofs(tmp_path_factory):
    """In memory where there is such a folder: a proof begins as some nameless files, which take a disk its time."""
    with TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path_factory.getbasetemp()) as folder:
        PROOFS.append(Path(folder))
        yield


@pytest.fixture(scope="session", autouse=True)
def time_stands_still():
    """No limit is reached because the machine is slow: in this process, time passes only when a test says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactsel.clock._read", Clock())
        yield


@pytest.fixture
def clock(monkeypatch):
    """The clock of this test."""
    own = Clock()
    monkeypatch.setattr("exactsel.clock._read", own)
    return own


@pytest.fixture
def real_time(monkeypatch):
    """Time as it passes, for tests of the watch itself; what they assert must hold on any machine."""
    monkeypatch.setattr("exactsel.clock._read", time.monotonic)
