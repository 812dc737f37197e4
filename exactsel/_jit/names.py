"""Names of kernels that no other process gives.

Numba numbers the functions a process compiles and puts the numbers into the symbols of their machine code. What one
process has cached holds copies of the kernels it calls, so where another process gave the same number to the same
kernel two symbols of one name meet when both are loaded, one of them without what it needs: calls of it then fail.
"""

from __future__ import annotations

import os
import secrets
from itertools import count

from numba.core.bytecode import FunctionIdentity


def begin_anew() -> None:
    """Number from some place of this process's own on."""
    FunctionIdentity._unique_ids = count(secrets.randbelow(2**62))


def apply() -> None:
    """Do so now, and in every process forked from this one, which would go on with the same numbers."""
    begin_anew()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=begin_anew)
