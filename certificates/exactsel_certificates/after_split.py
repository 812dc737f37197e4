"""Formula (3) after a split has been taken off: for models of at most k columns x'Ex >= 0 (FORMAT.md, witness 3 + 2p).

E is what its doubles say: any N and any positive scale are as good, so what they are rounded to changes nothing, and
its diagonal is rounded upwards. What is shown is that M = A'A + lam I - diag(D) - E is positive semidefinite for the
exact numbers of the data, by a factorisation with room for all rounding (rigorous.py, ``leaves_convex``).
"""

from __future__ import annotations

import numpy as np

from exactsel_certificates.container import Proof
from exactsel_certificates.formula import FloatArray, Instance
from exactsel_certificates.points import Points
from exactsel_certificates.rigorous import LARGEST_CURVATURE, TINY, U, gamma, powers_near, runs_to_its_end
from exactsel_certificates.semidefinite import Split
from exactsel_certificates.sums import careful_products
from exactsel_certificates.work import of_fits, spend


def taken_after_split(instance: Instance, proof: Proof) -> FloatArray | None:
    """E (d, d) where the file names a split that leaves its curvature; None where it names none that does."""
    d = instance.A.shape[1]
    named, splits = proof.curvature_split, Points(proof)
    if not named.size or not instance.formulas.quadratic or instance.groups or proof.curvature.size != d:
        return None
    spend(of_fits(1, d) + 2.0 * instance.A.shape[0] * d * d)
    E = _matrix(splits.split(int(named[0])), d, instance.k)
    return E if _leaves(instance, proof.curvature, E) else None


def _matrix(split: Split, d: int, k: int) -> FloatArray:
    """E in doubles: diagonally dominant, after scaling, on any k columns."""
    E = np.zeros((d, d))
    with np.errstate(all="ignore"):
        largest = -np.sort(-np.abs(split.entries), axis=1)[:, : max(0, k - 1)]
        t = np.sum(largest, axis=1) * (1.0 + gamma(k + 16)) * split.scale**2
        entries = np.multiply.outer(split.scale, split.scale) * split.entries
    entries[np.diag_indices(len(t))] = t + TINY
    E[np.ix_(split.columns, split.columns)] = entries
    return E


def _leaves(instance: Instance, curvature: FloatArray, E: FloatArray) -> bool:
    """Whether M is positive semidefinite."""
    A = np.asarray(instance.A, dtype=np.float64)
    n, d = A.shape
    with np.errstate(all="ignore"):
        hessian, many = careful_products(A.T, A)
        even = powers_near(np.sqrt(np.diagonal(hessian) + instance.lam))
        hessian, ridge, taken = hessian / even[:, None] / even, instance.lam / even**2, curvature / even**2
        E = E / even[:, None] / even
        trace = 1.01 * (float(np.trace(hessian)) + float(np.sum(ridge)))
        # Off by so much is no entry's subtraction, and of a matrix the sum of its entries is more than its norm.
        entries = 4 * U * (trace + float(np.sum(taken)) + 1.01 * float(np.max(np.sum(np.abs(E), axis=1), initial=0.0)))
        room = (gamma(d + 4) + gamma(many + 4)) * trace + entries + (n + d) * TINY
        lowered = hessian - E
        lowered[np.diag_indices(d)] += ridge - taken - room
    sound = np.all(curvature >= 1 / LARGEST_CURVATURE) and np.all(curvature <= LARGEST_CURVATURE)
    return bool(sound and np.all(np.isfinite(lowered)) and runs_to_its_end(lowered))
