"""The Gram matrix of a problem's columns: all the quadratic loss needs of the data."""

from __future__ import annotations

import numpy as np

from exactsel.algebra.extended import inner_products
from exactsel.algebra.threads import one_thread
from exactsel.kernels.forms import GramData
from exactsel.problem.design import refuse_design
from exactsel.types import FloatArray


def gram_data(AT: FloatArray, y: FloatArray, norms: FloatArray) -> GramData:
    """G = A'A, A'y and ||y||^2/2 of columns AT (d, n) with lengths ``norms`` (d,); A itself where it is smaller."""
    refuse_design(AT, "a Gram matrix of all features")
    if y.size >= len(AT):
        products, roundings = inner_products(AT, y)
        gram, b = np.ascontiguousarray(products[:-1, :-1]), products[:-1, -1].copy()
        return GramData(gram, b, 0.5 * float(products[-1, -1]), roundings, norms, AT[:0])
    with one_thread():  # so that the last bits, and the tree, do not depend on the machine's cores
        gram, b = AT @ AT.T, AT @ y
    # Kernels go by way of A, too, where it is the smaller one: sums are as long as it has rows.
    return GramData(gram, b, 0.5 * float(y @ y), y.size, norms, AT)


def multiplied(data: GramData, AT: FloatArray, factors: FloatArray) -> GramData:
    """The same of columns AT that are longer by powers of two, ``factors`` (d,), which rounds nothing."""
    columns = AT if len(data.AT) else AT[:0]
    return data._replace(
        G=data.G * factors[:, None] * factors, b=data.b * factors, norms=data.norms * factors, AT=columns
    )
