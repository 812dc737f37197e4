"""Commands run in this process, and a file for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Outcome

from exactsel.cli.main import main as run_command_line


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process, through the very function the console script calls."""
    monkeypatch.delenv("EXACTSEL_DEBUG", raising=False)

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as ended:
            run_command_line([str(argument) for argument in arguments])
        return Outcome(ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def file(tmp_path):
    """An instance file with the given arrays."""

    def write(**arrays) -> Path:
        rng = np.random.default_rng(4)
        np.savez(tmp_path / "data.npz", **{"A": rng.standard_normal((9, 4)), "y": rng.standard_normal(9)} | arrays)
        return tmp_path / "data.npz"

    return write
