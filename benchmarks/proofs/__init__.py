"""Campaigns on proof files and their checkers; the random problems and their optima are those of the tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "fixtures"))
