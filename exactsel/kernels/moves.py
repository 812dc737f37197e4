"""Codes for the decisions of searches inside a kernel, each as 8 * column + kind.

The kinds here are common to all of them; from 4 on each has its own.
"""

from __future__ import annotations

BRANCHED, PUT_IN, LEFT_OUT, CLOSED = 0, 1, 2, 3
"""The region is split by the column; the column is fixed to 1, or to 0, the other child being closed; the region is
closed."""
