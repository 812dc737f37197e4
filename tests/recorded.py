"""From the solver's events to the plain records the independent replay reads, and to something that can be compared."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from exactsel import proof
from exactsel.checkable import instance_of as given_instance
from exactsel.kernels.node import FREE, IN
from exactsel.search import events as ev
from exactsel_certificates import columns, formula, standalone
from exactsel_certificates.reference import replay


def instance_of(problem):
    """The problem as the replay wants it: with the numbers that are searched."""
    if problem.family == "css":
        return columns.ColumnInstance(np.array(problem.A), problem.k)
    data = problem.inner if problem.family == "grouped" else problem
    delta = data.loss_parameters.get("delta", np.inf)
    return formula.Instance(
        np.array(data.A), np.array(data.y), problem.k, data.loss.name, problem.lam, delta,
        problem.must_have, problem.must_not,
        None if data.weights is None else np.array(data.weights), data.intercept,
        problem.groups if problem.family == "grouped" else (),
    )  # fmt: skip


def witness_of(point, d):
    match point:
        case proof.CurvedPoint():
            return replay.Curved(point.dense(d), point.curvature)
        case proof.ModelPoint():
            return replay.Model(point.dense(d))
        case proof.DualPoint(beta):
            return replay.Dual(np.array(beta))
        case proof.FitPoint():
            return replay.Fit()
        case proof.EigenvaluePoint():
            return replay.Eigenvalues()
        case proof.InfimumPoint():
            return replay.Infimum()
    raise TypeError(f"unknown proof {point!r}")


def columns_of(state):
    """(S, C) of a node's state, as tuples."""
    return tuple(np.flatnonzero(state == IN).tolist()), tuple(np.flatnonzero(state == FREE).tolist())


def open_region(node, d):
    return replay.Open(node.id, *columns_of(node.state), node.bound, witness_of(node.proof, d))


def steps_of(events, d):
    """The proof-carrying events as steps."""
    steps = []
    for event in events:
        match event:
            case ev.Fixed(node, column, inside, bound, point):
                steps.append(replay.Fixed(node, column, inside, bound, witness_of(point, d)))
            case ev.Divided(node, columns, children, rest):
                steps.append(replay.Divided(node, columns, children, rest))
            case ev.Discarded(node, state, _, bound, point):
                steps.append(replay.Discarded(node, *columns_of(state), bound, witness_of(point, d)))
            case ev.Explored(node, state, moves, dropped, open_ids, curvature):
                walked = replay.Walked(node, *columns_of(state), tuple(moves.tolist()), dropped, open_ids, curvature)
                steps.append(walked)
            case _:
                pass
    return steps


def record_of(result, events):
    """A finished search (its parts one after the other, when it was resumed) with what it claims."""
    d = result.problem.get("columns", result.problem["d"])
    last = events[-1]
    assert isinstance(last, ev.Finished)
    coef = np.array(result.coef)
    if result.problem["problem"] == "css":
        coef = np.zeros(d)
        coef[list(result.support)] = 1.0
    return replay.Record(
        steps=tuple(steps_of(events, d)),
        open_regions=tuple(open_region(node, d) for node in last.open_nodes),
        lower=result.lower,
        upper=result.upper,
        coef=coef,
    )


def replayed(problem, result, events, state=None):
    """Replay a finished search; the report.

    The record is about the numbers that were searched. With the ``state`` the search ended in, its own bound is what
    the record must come to, bit for bit, and the result may say no more.
    """
    record = record_of(result, events)
    if state is None:
        return replay.replay(instance_of(problem), record)
    assert result.lower <= state.bound
    if problem.family != "css":
        record = replace(record, coef=np.array(state.incumbent.coef))
    report = replay.replay(instance_of(problem), replace(record, lower=state.bound, upper=state.value))
    assert report.lower == state.bound
    return report


def plain(value):
    """Any event as nested tuples that compare equal exactly when every number in them is the same."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    if isinstance(value, tuple | list):
        return tuple(plain(item) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return (type(value).__name__, *(plain(getattr(value, f.name)) for f in fields(value)))
    return value


def second_opinion(problem, data):
    """What the checker in fractions says of a proof file, given the data as they were given; empty when it accepts."""
    about = given_instance(problem)
    if problem.family == "css":
        return standalone.check(data, about.A.tolist(), [], about.k, "", 0.0, 1.0)
    delta = 1.0 if np.isinf(about.delta) else about.delta
    return standalone.check(
        data, about.A.tolist(), about.y.tolist(), about.k, about.loss, about.lam, delta, about.must_have,
        about.must_not, None if about.weights is None else about.weights.tolist(), about.intercept, about.groups,
        getattr(about, "scale", False),
    )  # fmt: skip
