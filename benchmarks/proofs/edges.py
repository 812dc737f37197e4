"""More probes of single functions of the checker: at the very edges of its comparisons, fillers and guards.

Each is a small case made for one or two places of the source that whole proofs never reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.proofs.probes import loaded, numbers_of


def _instance(n: int = 9, d: int = 6, k: int = 3, loss: str = "quadratic", lam: float = 0.3, scale: float = 1.0) -> Any:
    rng = np.random.default_rng(17)
    A, y = rng.standard_normal((n, d)) * scale, rng.standard_normal(n)
    y = np.sign(y) if loss == "logistic" else y
    return loaded("formula").Instance(A, y, k, loss, lam, 0.5 if loss == "huber" else np.inf)


def allowances() -> str:
    """Residuals of zero, so that nothing is left but what is allowed for rounding and underflow."""
    module, parts = loaded("rigorous"), []
    x = np.array([0.5, -1.25, 3.0, 0.0, 1e-3, 7.0])
    for loss in ("quadratic", "huber"):
        instance = _instance(loss=loss)
        instance.y[:] = instance.A @ x
        plain = module.RigorousBounds(instance)
        parts += [module.model_objective(instance, x), *map(numbers_of, plain.at_models(x[None, :], plain.ridge))]
    instance = _instance(lam=1e-300)
    instance.y[:] = 0.0
    parts += map(numbers_of, module.RigorousBounds(instance).at_models(np.zeros((1, 6)), np.full(6, 1e-300)))
    instance = _instance(lam=1e-290)
    plain = module.RigorousBounds(instance)
    parts += map(numbers_of, plain.at_duals(1e-280 * np.linspace(-1.0, 1.0, 9)[None, :]))
    parts.append(numbers_of(module._times(np.abs(instance.A), np.arange(1.0, 7.0))))
    empty = loaded("formula").Instance(np.zeros((9, 6)), np.zeros(9), 3, "quadratic", 1e-288, np.inf)
    low, high = 0.0, 1e-287
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if module.leaves_convex(empty, np.full(6, middle)) else (low, middle)
    return repr([*parts, low])


def domains() -> str:
    """Dual vectors far outside the domain of the conjugate, and terms that are no numbers."""
    module, parts = loaded("rigorous"), []
    for loss in ("huber", "logistic"):
        plain = module.RigorousBounds(_instance(loss=loss))
        B = plain.projected(np.array([[2.5] * 9, [-2.5] * 9, [0.75, -0.75, 0.0] * 3]))
        parts += [numbers_of(B), *map(numbers_of, plain.at_duals(B))]
    plain = module.RigorousBounds(_instance(d=2, k=1))
    states = np.array([[1, 1], [2, 1], [1, 0], [0, 2]], dtype=np.uint8)
    for base, terms in ((1.0, [0.5, np.nan]), (1.0, [0.5, np.inf]), (np.nan, [0.5, 0.5]), (np.inf, [0.5, 0.5])):
        point = module.Evaluated(np.array([base]), np.array([terms]))
        parts.append(numbers_of(plain.bounds(point, np.zeros(4, dtype=int), states)))
    # More places than candidates.
    parts.append(numbers_of(module.counted(np.array([[1.0, 2.0]] * 4), states, 2)))
    return repr(parts)


def weights() -> str:
    """Fits that overflow, and systems that are nearly singular."""
    module, parts = loaded("fits"), []
    for scale, lam in ((1.0, 0.0), (1e-310, 0.0), (1e-310, 1e-300)):
        instance = _instance(lam=lam, scale=scale)
        fits = module.Fits(instance, loaded("rigorous").RigorousBounds(instance))
        parts.append(numbers_of(fits.on_regions(np.ones((2, 6), dtype=np.uint8), 3)))
    for small in (0.5e-13, 1.5e-13, 3e-13):
        parts.append(numbers_of(module._solve_somehow(np.diag([1.0, small]), np.ones((2, 1)))))
    parts.append(numbers_of(module.solve_each(np.zeros((2, 1, 1)), np.ones((2, 1, 2)))))
    parts.append(numbers_of(module.solve_each(np.full((1, 2, 2), np.inf), np.ones((1, 2, 1)))))
    return repr(parts)


def _proof(instance: Any, **changes: Any) -> Any:
    """A proof with three points and two dual vectors, none of which need prove anything."""
    n, d = instance.A.shape
    rng = np.random.default_rng(23)
    entries: dict[str, Any] = {
        "family": "regression", "loss": instance.loss, "n": n, "d": d, "k": instance.k, "problem_hash": "",
        "groups": None, "weights": False, "intercept": False, "scale": False,
        "lower": -np.inf, "upper": np.inf, "valid_for": "", "curvature": np.zeros(0), "model_value": np.zeros(0),
        "point_value": np.append(0.2 * rng.standard_normal(d), 0.3), "dual_value": 0.3 * rng.standard_normal(2 * n),
        "model_index": np.zeros(0, dtype=np.int32), "point_size": np.array([d, 0, 1], dtype=np.int32),
        "tree": np.zeros(0, dtype=np.int32), "point_index": np.append(np.arange(d), 1).astype(np.int32),
    }  # fmt: skip
    return loaded("container").Proof(**(entries | changes))


def witnesses(loss: str, lam: float, n: int) -> str:
    """Every witness there is and the first that are not, with targets on and off the bounds, and little work."""
    instance = _instance(n=n, d=4, k=2, loss=loss, lam=lam)
    walk, regions = loaded("walk"), loaded("regions")
    shapes = np.array([[1, 1, 1, 1], [2, 1, 1, 0], [2, 2, 0, 0], [0, 1, 1, 0]], dtype=np.uint8)
    kinds = np.arange(12)
    leaves = walk.Leaves(np.repeat(shapes, len(kinds), axis=0), np.tile(kinds, len(shapes)))
    parts: list[Any] = []
    curvatures = [np.zeros(0)]
    if loss == "quadratic" and n > 4:
        smallest = float(np.linalg.eigvalsh(instance.A.T @ instance.A)[0])
        curvatures.append(np.full(4, lam + 0.9 * smallest))
    for curvature in curvatures:
        for valid_for in ("", "bounded models"):
            proof = _proof(instance, curvature=curvature, valid_for=valid_for)

            def bound(lower: float, limit: float, proof: Any = proof, leaves: Any = leaves) -> tuple[Any, Any]:
                at = regions.RegressionRegions(instance, replace(proof, lower=lower), limit)
                return at.bounds(leaves), (at.exact_regions, at.work.left)

            plain, _ = bound(-1.0, 1e6)
            parts.append(numbers_of(plain))
            for target in (float(np.median(plain[plain > 0])) if np.any(plain > 0) else 0.1, 1e9):
                for limit in (0.0, 12.0 * n, 36.0 * n, 1e6):
                    found, work = bound(target, limit)
                    parts += [numbers_of(found), repr(work)]
            for row in range(len(plain)):
                single = walk.Leaves(leaves.states[row : row + 1], leaves.witness[row : row + 1])
                found, work = bound(float(plain[row]), 1e6, leaves=single)
                parts += [numbers_of(found), repr(work)]
    return repr(parts)


def refined() -> str:
    """Corrections of fits that begin well, badly and absurdly; columns near to dependent, or of zeros."""
    parts = []
    for near in (1e-7, 2e-6, 2.3e-6, 2.6e-6, 2.9e-6, 3.2e-6, 1.0):
        instance = _instance(lam=0.0, scale=10.0)
        instance.A[:, 3:5] = np.linalg.qr(instance.A[:, 3:5])[0] * 10.0
        instance.A[:, 4] = instance.A[:, 3] + near * instance.A[:, 4]
        instance.A[:, 5] = 0.0
        at = loaded("regions").RegressionRegions(instance, _proof(instance), 1e6)
        length = at.fits.target * 10**6
        for start in (0.0, 1.0, length / 5, length / at.fits.scale[3] * 1.5, length / at.fits.scale[3] * 0.7, 1e30):
            w = np.where(np.arange(6) == 3, start, 0.0)
            for state in ([0, 0, 1, 1, 1, 1], [2, 2, 0, 2, 1, 1]):
                parts.append(numbers_of([float(value) for value in at._refined(w, np.array(state, dtype=np.uint8))]))
                exact = at._refined(w, np.array(state, dtype=np.uint8))
                parts.append(repr([value.denominator.bit_length() for value in exact]))
        parts.append(numbers_of(at.fits.own_curvature([*range(6)])))
    return repr(parts)


def own_curvatures() -> str:
    """Columns ever nearer to dependent: the last that are still seen to be independent."""
    instance = _instance(lam=0.0)
    low, high, parts = 0.0, 1.0, []
    A = instance.A.copy()
    for _ in range(50):
        middle = 0.5 * (low + high)
        instance.A[:, 1] = A[:, 0] + middle * A[:, 1]
        at = loaded("regions").RegressionRegions(instance, _proof(instance), 1e6)
        fine = bool(np.all(np.isfinite(at.fits.own_curvature([0, 1]))))
        low, high = (low, middle) if fine else (middle, high)
    parts.append(f"{low:.2g}")
    return repr(parts)


def exact_edges() -> str:
    """Numbers on the edges of losses, of doubles and of what can be represented."""
    module, logistic, parts = loaded("exact"), loaded("losses.logistic"), []
    parts += [module.scaled([0.0, 0.0]).exponent, module.scaled([0.0, -4.0]).exponent]
    parts += [repr(module.fraction_of(3, e)) for e in (-2, -1, 0, 1, 5)]
    most = Fraction(np.finfo(np.float64).max)
    parts += [module.float_below(v) for v in (most, -most, most + 1, -most - 1, 2 * most, -2 * most, Fraction(0))]
    parts += [logistic._chance(Fraction(t)) for t in (0, 1, -1, 300, -300)]
    chances = [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(1, 10**30)]
    parts += [repr(logistic._entropy(p)) for p in chances]
    huber = loaded("formula").Instance(np.eye(2), np.array([0.5, -0.75]), 1, "huber", 0.5, 0.5)
    parts += [repr(module.ExactBounds(huber).objective(np.array(x))) for x in ([0.0, 0.0], [1.0, 1.0], [0.25, 0.0])]
    return repr(parts)


def selection_edges() -> str:
    """Copies, columns of hardly more than nothing, data that overflow, and places beyond the candidates."""
    module, kind = loaded("selections"), loaded("formula").ColumnInstance
    columns = ([1.0, 0.0], [-1.0, 0.0], [2.0, -0.0], [1e300, 5e-324], [0.0, 0.0], [0.0, -3.0])
    parts: list[Any] = [module.direction(np.array(column)).hex() for column in columns]
    rng = np.random.default_rng(29)
    A = rng.standard_normal((7, 5))
    with np.errstate(all="ignore"):
        for scale in (1e200, 1e160, 1e155, 1e-160, 1.0):
            at = module.SelectionBounds(kind(A * scale, 2), False)
            parts += [at.bound(S, C) for S, C in (([], [0, 1, 2]), ([0], [1, 2]), ([0, 1], [2]), ([0], [1]))]
    for share in (0.5e-9, 1.5e-9, 1e-6):
        unit, other = A[:, 0] / np.linalg.norm(A[:, 0]), A[:, 1] - A[:, 0] * (A[:, 0] @ A[:, 1]) / (A[:, 0] @ A[:, 0])
        near = np.column_stack([A, unit + share * other / np.linalg.norm(other)])
        for bounded in (False, True):
            at = module.SelectionBounds(kind(near, 3), bounded)
            times = Counter(at.names[j] for j in (0, 5))
            parts += [at._independent([0, 5], times), *(at.bound([0, 5], C) for C in ([], [1], [1, 2, 3]))]
            parts += [at.bound([0], [5]), at.bound([0], [5, 2]), at.bound([0, 5, 1], [2, 3])]
    at = module.SelectionBounds(kind(rng.standard_normal((3, 6)), 2), False)
    parts += [at.bound([], [0, 1]), at.bound([], [0, 1, 2]), at.bound([], range(6)), at.bound([0, 1], [2])]
    units = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    for error in (0.0, 4e-3, 7e-3, 0.012, 0.018, 0.03):
        span = module.verified_span(units, error)
        at = SimpleNamespace(n=6, norms=np.ones(3))
        found = module.SelectionBounds._span_of_rest(at, units, [0, 1], error)
        parts += [span.angle, None if found is None else found.angle]
    for m, n in ((0, 4), (5, 4)):
        span = module.verified_span(np.ones((n, m)), 0.0)
        parts += [span.basis.shape, span.angle]
    parts += [module.selection_objective_above(kind(np.full((2, 2), v), chosen), [0, 1][:1]) for v, chosen in
              ((1e200, 1), (1e153, 1), (0.0, 1), (1e-200, 1))]  # fmt: skip
    for share in (1.5e-12, 2.5e-12, 3e-12, 3.5e-12, 1e-11):
        tiny = np.column_stack([units[:, 0], units[:, 1], units[:, 0] + share * units[:, 1], 0.0 * units[:, 0]])
        parts.append(module.selection_objective_above(kind(tiny, 3), [0, 2, 3]))
    # Nothing at all is left of a candidate.
    copies = np.array([[2.0, 3.0, 0.0, 5.0], [0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.5, 0.0]])
    parts += [module.SelectionBounds(kind(copies, k), False).bound([0], C) for k in (2, 3) for C in ([1, 2, 3], [1, 2])]
    at = module.SelectionBounds(kind(copies, 2), False)
    at._bound = _not_converged
    parts.append(at.bound([], [0, 1]))
    return repr(parts)


def _not_converged(included: Any, candidates: Any) -> float:
    raise np.linalg.LinAlgError


def trees() -> str:
    """Trees that stay within and step over each limit, and forced columns."""
    walk, malformed = loaded("walk"), loaded("container").MalformedError
    container = loaded("container")
    parts: list[Any] = []

    def attempt(*words: tuple[str, int], root: bytes = b"\1\1\1", k: int = 2, batch: int = 2) -> None:
        tree = np.array([8 * j + getattr(container, kind) for kind, j in words], dtype=np.int32)
        try:
            for leaf in walk.closed_regions(tree, root, k, batch):
                parts.append((leaf.states.tolist(), leaf.witness.tolist()))
        except malformed as error:
            parts.append(str(error))

    close = ("CLOSE", 0)
    attempt(close)
    attempt(("PUT_IN", 0), ("PUT_IN", 1), close)
    attempt(("PUT_IN", 0), ("PUT_IN", 1), ("PUT_IN", 2), close)
    attempt(("SPLIT_IN", 0), ("SPLIT_IN", 1), close, close, ("SPLIT_OUT", 1), ("PUT_IN", 2), close, close)
    attempt(("SPLIT_OUT", 0), ("SPLIT_OUT", 1), close, close, ("SPLIT_IN", 1), ("LEAVE_OUT", 2), close, close)
    attempt(("SPLIT_IN", 0), close, ("PUT_IN", 1), ("PUT_IN", 2), close)
    attempt(("LEAVE_OUT", 3), close)
    attempt(("LEAVE_OUT", 2), ("USE", 4), close, close)
    attempt(("LEAVE_OUT", 0), ("LEAVE_OUT", 0), close)
    attempt(("LEAVE_OUT", 0))
    attempt(("PUT_IN", 0), close, root=walk.first_region(3, (1,), (2,)), k=1)
    attempt(("PUT_IN", 0), close, root=walk.first_region(3, (1,), (2,)), k=2)
    attempt(("LEAVE_OUT", 2), close, root=walk.first_region(3, (1,), (2,)))
    return repr(parts)


def forced_columns() -> str:
    """The hash, the words and the verdicts of problems with columns forced in and out."""
    checking, container = loaded("checking"), loaded("container")
    instance = _instance(d=3, k=1, lam=0.5)
    parts: list[Any] = []
    for have, banned in (((), ()), ((1,), ()), ((), (2,)), ((1,), (2,))):
        at = replace(instance, force_in=have, force_out=banned)
        for index in ([1], [2], []):
            proof = _proof(
                at, problem_hash=checking.problem_hash(at), model_index=np.array(index, dtype=np.int32),
                model_value=np.full(len(index), 0.25), tree=np.array([container.CLOSE], dtype=np.int32),
                lower=0.0, upper=9e9,
            )  # fmt: skip
            parts += [str(checking.verify(proof, at)), repr(checking.verify(replace(proof, upper=0.0), at, 0.0))]
    return repr(parts)


def file_edges() -> str:
    """Bytes left over, problems of one row, and a header that JSON cannot hold."""
    container = loaded("container")
    entries = {"family": "regression", "loss": "quadratic", "n": 1, "d": 1, "k": 1, "problem_hash": "", "valid_for": "",
               "lower": "0x0p+0", "upper": "0x1p+0"}  # fmt: skip
    parts = []
    for n, duals, extra in ((1, 1, b""), (0, 1, b""), (1, 0, b"xyz"), (2, 1, b"")):
        arrays = {name: (types[0], duals if name == "dual_value" else 0) for name, types in container.ARRAYS.items()}
        data = container.header_bytes({**entries, "n": n}, arrays) + np.ones(duals).tobytes() + extra
        try:
            parts.append(repr(container.parse_proof(data)))
        except container.MalformedError as error:
            parts.append(str(error))
    try:
        parts.append(container.header_bytes({**entries, "upper": np.nan}, arrays).hex())
    except ValueError:
        parts.append("refused")
    return repr(parts)


EDGES: dict[str, Callable[[], str]] = {
    "allowances": allowances, "domains": domains, "weights": weights, "refined": refined, "exact edges": exact_edges,
    "own curvatures": own_curvatures, "selection edges": selection_edges, "trees": trees,
    "forced columns": forced_columns, "file edges": file_edges,
}  # fmt: skip

for _loss in ("quadratic", "huber", "logistic"):
    for _lam, _n in ((0.3, 9), (0.3, 1), (0.0, 9)):
        EDGES[f"witnesses {_loss}, lam {_lam:g}, n {_n}"] = partial(witnesses, _loss, _lam, _n)
