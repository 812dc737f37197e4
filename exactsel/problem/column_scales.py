"""Columns of even length: without a ridge a problem does not depend on the units of its columns, nor does its search.

With lam = 0 a column divided by a power of two is the same column in other units: nothing is rounded, and coefficients
are multiplied by that power. The search works on columns whose root mean square is about 1, so that one tolerance
serves all of them (and a standardised column is left as it is), and a problem whose columns are multiplied by powers of
two has the same tree, bit for bit. A ridge (lam/2) ||x||^2 goes by the units of the columns, so a problem with lam > 0
keeps them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from exactsel.problem.design import DesignColumns
from exactsel.problem.objective import Objective
from exactsel.problem.preparing import Preparation
from exactsel.types import FloatArray
from exactsel_certificates.prepared import Prepared
from exactsel_mapped import column_blocks, room_like


def with_even_columns(objective: Objective) -> Objective:
    """The objective on columns divided by powers of two near their lengths; the same one where that is done already."""
    if objective.divisors is not None:
        return objective
    return divided(objective, powers_near(objective.norms / math.sqrt(objective.n)))


def powers_near(sizes: FloatArray) -> FloatArray:
    """The powers of two nearest to the sizes (d,), 1 for those that are zero."""
    parts, exponents = np.frexp(sizes)
    return np.where(sizes > 0.0, np.ldexp(1.0, exponents - (parts < math.sqrt(0.5))), 1.0)


def divided(objective: Objective, divisors: FloatArray) -> Objective:
    """The objective of columns divided by powers of two (d,); it remembers the one ``before``."""
    before = objective if objective.before is None else objective.before
    preparation = objective.preparation
    AT = _quotients(objective.AT, divisors)
    total = divisors if objective.divisors is None else objective.divisors * divisors
    if preparation is None:
        nothing = np.zeros(len(AT))
        data = Prepared(
            AT, objective.y, None, False, np.zeros((2, len(AT))), (0.0, 0.0), divisors, nothing, nothing, 0.0, 0.0, 0.0
        )
        prepared = Preparation(objective.AT, objective.y, None, False, False, objective.loss.name, data)
        return replace(objective, AT=AT, preparation=prepared, shared={}, before=before, divisors=total)
    was = preparation.made
    data = replace(
        was,
        AT=AT,
        scale=was.scale * divisors,
        column_error=was.column_error / divisors,
        column_rest=was.column_rest / divisors,
    )
    return replace(
        objective, AT=AT, preparation=replace(preparation, made=data), shared={}, before=before, divisors=total
    )


def _quotients(AT: FloatArray, divisors: FloatArray) -> FloatArray:
    """Columns (d, n) divided by (d,), read-only; in a file of their own where they are in one.

    The same columns where nothing is divided, as with standardised ones: they may be most of the memory there is.
    """
    if np.all(divisors == 1.0):
        return AT
    if isinstance(AT, DesignColumns):
        design: FloatArray = AT.divided(divisors)
        return design
    quotients: FloatArray = room_like(AT, AT.shape)
    for block in column_blocks(quotients):
        np.divide(AT[block], divisors[block, None], out=quotients[block])
    quotients.flags.writeable = False
    return quotients
