"""Packed searches that were damaged: refused in a sentence, or read as a state that can be gone on from."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from every_search import SEARCHES
from hypothesis import given
from hypothesis import strategies as st
from samples import examples

from exactsel import InputError, Search, Settings
from exactsel.search.packed_bytes import from_bytes
from exactsel.search.packed_nodes import nodes_from
from exactsel.search.packing import Packed
from exactsel.search.saved import pack_state, state_parts, unpack_state
from exactsel.solving.choose import make as registered

KINDS = ("quadratic, no walks", "quadratic, default", "huber, default", "pdal", "columns", "groups of labels")
ABSURD = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 100, 10**6, 2**31, 2**53, 2**62, 2**63 - 1)
ODD = (np.nan, np.inf, -np.inf, -1.0, 0.5, 1e300, 5e-324)
WRONG = (None, True, -1, 10**9, 2**70, 0.5, "", "Node", "nothing", [], [[]], [None], [-2], [10**9], ["Node"], {}, b"x")


@cache
def halfway(kind):
    """A problem, the options of its search, the search packed with nodes in flight, and its open nodes."""
    make, options = SEARCHES[kind]
    options = options | {"batch": 2, "frontier": "best-first"}
    for seed in range(900, 940):
        problem = make(seed)
        search = Search(problem, Settings(**options), signals=())
        for _ in search:
            if len(search.state.frontier) > 1 and search.state.in_flight:
                break
        else:
            continue
        break
    packed, *rest = (from_bytes(bytes(part)) for part in state_parts(search.state))
    return problem, options, packed, rest


def attempt(kind, packed):
    """The state, or None and the sentence with which it is refused; any other exception is an error."""
    problem, options, _, rest = halfway(kind)
    try:
        state = unpack_state(packed, problem, registered("frontiers", options["frontier"]))
    except InputError as error:
        return None, str(error)
    for nodes in rest:
        state.push_table(nodes_from(nodes, problem))
    return state, ""


def damaged_array(draw, array):
    how = draw(st.sampled_from(("entry", "entry", "entry", "shorter", "longer", "type", "shape", "swapped")))
    if how == "entry" and array.size:
        array = array.copy()
        values = ODD if array.dtype == np.float64 else (True, False) if array.dtype == bool else ABSURD
        limits = None if array.dtype.kind != "i" else np.iinfo(array.dtype)
        value = draw(st.sampled_from([v for v in values if limits is None or limits.min <= v <= limits.max]))
        array.flat[draw(st.integers(0, array.size - 1))] = value
        return array
    if how == "shorter":
        return array[: len(array) - draw(st.integers(1, 3))]
    if how == "longer":
        return np.concatenate([array, array[:1]])
    if how == "type":
        return array.astype(draw(st.sampled_from(["int8", "int64", "float32", "float64", "bool", "O", "U3", ">i8"])))
    if how == "shape":
        return draw(st.sampled_from([array[None], np.array(array.size), array.reshape(-1, 1), array.tolist()]))
    return array[::-1]


@st.composite
def damages(draw, kind):
    """Some damage to the packed search; where it lies, and the whole."""
    packed = halfway(kind)[2]
    whole, arrays, places = copy.deepcopy(packed.header), dict(packed.arrays), []
    for _ in range(draw(st.integers(1, 2))):
        header = whole["state"] if isinstance(whole.get("state"), dict) and draw(st.booleans()) else whole
        place = draw(st.sampled_from([*sorted(arrays), *sorted(header)]))
        places.append(place)
        held = arrays if place in arrays else header
        if draw(st.integers(0, 9)) == 0:
            del held[place]
        elif held is header:
            if isinstance(header[place], list) and header[place] and draw(st.booleans()):
                header[place][draw(st.integers(0, len(header[place]) - 1))] = draw(st.sampled_from(WRONG))
            else:
                header[place] = draw(st.sampled_from(WRONG))
        elif isinstance(arrays[place], np.ndarray) and arrays[place].ndim and arrays[place].dtype.kind in "bif":
            with np.errstate(all="ignore"):
                arrays[place] = damaged_array(draw, arrays[place])
    return places, Packed(whole, arrays)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_refused_or_harmless(kind):
    """What is not refused can be packed again, and the search goes on from it."""
    problem, options, *_ = halfway(kind)

    @examples(200, 800)
    @given(damages(kind))
    def check(damage):
        places, packed = damage
        state, refusal = attempt(kind, packed)
        if state is None:
            assert refusal.startswith("the packed search")
            assert "\n" not in refusal
            return
        assert {node.state.shape for node in state.frontier} <= {(problem.d,)}
        pack_state(state)
        # What a warm start holds is for the bound to say.
        if "nodes.node.warm" not in places:
            Search(problem, Settings(**options | {"node_limit": 200}), state=state, signals=()).run()

    check()


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        ("state.int64.data", 10**6, r"entries out of range in 'Fit\.columns'"),
        ("state.places", 10**6, r"objects of unknown types"),
        ("state.int64.shape", 10**6, r"another number of entries in 'int64\.data' than it should have"),
        ("state.int64.shape", -2, r"impossible shapes in 'int64\.shape'"),
        ("state._SavedState.nodes", -1, r"counts below zero"),
        ("state._SavedState.incumbent", 0, r"something else than a model as its best one"),
        ("nodes.node.state", 255, r"impossible states"),
        ("nodes.node.proof", 10**6, r"no 'proof' of nodes"),
        ("nodes.node.proof", -1, r"objects of the wrong type as proofs"),
        ("nodes.node.warm", -2, r"no 'warm' of nodes"),
        ("nodes.node.bound", np.nan, r"a bound that is nan"),
        ("nodes.node.id", -1, r"impossible nodes"),
        ("nodes.node.id", 2**52, r"nodes of impossible numbers"),
    ],
)
def test_damage_is_named(place, value, what):
    problem, _, packed, _ = halfway("huber, default")
    state, refusal = attempt("huber, default", packed)
    assert (state is not None, refusal) == (True, "")
    arrays = packed.arrays | {place: np.full_like(packed.arrays[place], value)}
    with pytest.raises(InputError, match=rf"^the packed search, with {what}, is damaged; take an intact copy"):
        unpack_state(Packed(packed.header, arrays), problem, registered("frontiers", "best-first"))
