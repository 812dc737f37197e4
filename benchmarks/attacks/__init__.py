"""Attacks on the whole program, each with an oracle that shares no line with it and a seed to run it again.

The problems of some campaigns are those of the tests.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "fixtures"))
