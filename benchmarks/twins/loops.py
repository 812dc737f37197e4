"""Parallel kernels, the longest call of each in some searches, and the same call of its serial form."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactsel._jit import parallel_section
from exactsel._jit.kernel import Kernel

PACKAGES = ("exactsel.", "exactsel_heuristics.")


@dataclass
class Call:
    """A call of a kernel: its arguments as they were before, and how long it took."""

    kernel: Kernel
    arguments: tuple[Any, ...]
    seconds: float


def name_of(kernel: Kernel) -> str:
    """Module and function."""
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"


def parallel_kernels() -> dict[str, Kernel]:
    """All parallel kernels of the modules that are imported."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(PACKAGES)]
    kernels = (value for module in modules for value in vars(module).values() if isinstance(value, Kernel))
    return {name_of(kernel): kernel for kernel in kernels if kernel.options["parallel"]}


def serial_form(kernel: Kernel) -> Kernel:
    """The same function compiled without parallel loops."""
    return Kernel(kernel.py_func, {**kernel.options, "parallel": False})


def copied(argument: Any) -> Any:
    """Arrays of its own, of the type the kernel was compiled for."""
    if isinstance(argument, np.ndarray):
        copy = argument.copy(order="K")
        copy.flags.writeable = argument.flags.writeable
        return copy
    if isinstance(argument, tuple):
        parts = [copied(part) for part in argument]
        return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
    return argument


@contextmanager
def recorded(longest: dict[str, Call]) -> Iterator[None]:
    """Remember the longest call of each parallel kernel that Python calls meanwhile."""
    plain = Kernel.__call__

    def call(kernel: Kernel, *arguments: Any, **named: Any) -> Any:
        if not kernel.options["parallel"] or named:
            return plain(kernel, *arguments, **named)
        before = copied(arguments)
        began = time.perf_counter()
        result = plain(kernel, *arguments)
        took = time.perf_counter() - began
        name = name_of(kernel)
        # The first call may compile, so that it counts for nothing but having been.
        if name not in longest or took > longest[name].seconds:
            longest[name] = Call(kernel, before, took if name in longest else 0.0)
        return result

    Kernel.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        Kernel.__call__ = plain  # type: ignore[method-assign]


def cpu_and_seconds(run: Callable[[], Any]) -> tuple[float, float]:
    """Processor time of all threads, and time by the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - clock


def compare(call: Call, repeats: int, threads: int) -> dict[str, float]:
    """Least CPU of the loop on one thread and of its serial form, least seconds of the loop on one and all threads."""
    serial = serial_form(call.kernel)
    kinds = {"serial": (serial, 1), "one": (call.kernel, 1), "all": (call.kernel, threads)}
    cpu: dict[str, list[float]] = {kind: [] for kind in kinds}
    clock: dict[str, list[float]] = {kind: [] for kind in kinds}
    for repeat in range(repeats + 1):
        for kind, (kernel, count) in kinds.items():
            arguments = copied(call.arguments)
            with parallel_section(count):
                used, took = cpu_and_seconds(lambda k=kernel, a=arguments: k(*a))  # type: ignore[misc]
            if repeat:  # the first compiles
                cpu[kind].append(used)
                clock[kind].append(took)
    return {
        "serial": min(cpu["serial"]), "one": min(cpu["one"]),
        "clock_one": min(clock["one"]), "clock_all": min(clock["all"]),
    }  # fmt: skip
