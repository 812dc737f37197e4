"""Benchmarks time compiled kernels, also on small problems."""

import os
import sys

if "exactsel" not in sys.modules:
    os.environ.setdefault("EXACTSEL_JIT", "1")
