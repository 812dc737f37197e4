"""The only place that imports numba: compile kernels, or run them as plain Python.

kernel.py is a kernel as Python holds it, dispatchers.py what is made of it by numba, when it is first needed, for a
target of our own (target.py, linking.py: how kernels take in those they call). What is compiled is kept on disk
(folders.py, disk.py) as long as nothing it was made from changes (cache_key.py). Small problems are solved
without the compiler (interpreting.py). ``EXACTSEL_JIT=0`` turns compilation off (debugging, coverage): plain.py then
stands in the place of kernel.py. ``EXACTSEL_JIT=1`` compiles also what small problems need.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from exactsel._jit import compile_events, interpreting

ENABLED = os.environ.get("EXACTSEL_JIT", "1") != "0"

if ENABLED:
    from exactsel._jit import kernel as _chosen
else:
    from exactsel._jit import uncompiled as _chosen  # type: ignore[no-redef]

F = TypeVar("F", bound=Callable[..., Any])

interpreted, interpreted_steps, interprets = interpreting.session, interpreting.steps, interpreting.interprets
njit, overload, prange, with_compiler = _chosen.njit, _chosen.overload, _chosen.prange, _chosen.with_compiler
parallel_section, available_threads = _chosen.parallel_section, _chosen.available_threads
new_flag, steps_leaving_half = interpreting.new_flag, interpreting.steps_leaving_half
without_compiling, compiled_once_called = interpreting.without_compiling, interpreting.compiled_once_called
tell_of_compiling = compile_events.tell_of_compiling
working_threads, in_numpy = _chosen.working_threads, _chosen.in_numpy
yield_thread, atomic_add, atomic_swap = _chosen.yield_thread, _chosen.atomic_add, _chosen.atomic_swap


def without_annotations(function: Callable[..., Any]) -> FunctionType:
    """A copy of a function without annotations: numba compares those of an overload literally."""
    return FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)


def choose_by_type(argument: str) -> Callable[[Callable[..., Any]], Any]:
    """Let the type of one argument, a named tuple or None, choose what a call runs.

    As functools.singledispatch, for kernels: the decorated function serves every type that has none of its own by
    ``@function.register(Type, ...)``, or by ``@function.register_where(condition)`` for the types of which it holds.
    Those have its parameters by name, in its order. A kernel chooses while it is compiled, at no cost when it runs.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        signature = inspect.signature(without_annotations(function))
        place = list(signature.parameters).index(argument)
        special: dict[type, Callable[..., Any]] = {}
        conditions: list[tuple[Callable[[type], bool], Callable[..., Any]]] = []

        found: dict[type, Callable[..., Any]] = {}

        def chosen(kind: type) -> Callable[..., Any]:
            if kind not in found:
                found[kind] = special.get(kind) or next((body for holds, body in conditions if holds(kind)), function)
            return found[kind]

        @wraps(function)
        def stub(*arguments: Any) -> Any:
            return chosen(type(arguments[place]))(*arguments)

        def choose(*arguments: Any) -> FunctionType:  # the compiler calls it with its own types in the place of values
            kind = getattr(arguments[place], "instance_class", type(None))
            return without_annotations(chosen(kind))

        def register(*kinds: type) -> Callable[[F], F]:
            def add(body: F) -> F:
                special.update(dict.fromkeys(kinds, body))
                found.clear()
                return body

            return add

        def register_where(condition: Callable[[type], bool]) -> Callable[[F], F]:
            def add(body: F) -> F:
                conditions.append((condition, body))
                found.clear()
                return body

            return add

        choose.__signature__, choose.chosen = signature, chosen  # type: ignore[attr-defined]
        stub.register, stub.register_where = register, register_where  # type: ignore[attr-defined]
        overload(stub, jit_options={"forceinline": True})(choose)
        return stub

    return decorate
