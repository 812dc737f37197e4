"""What compiled code takes from classes outside exactsel, as a hash: a cached kernel must never outlive an edit there.

A loss is a named tuple whose ``point_*`` functions are compiled into every kernel that is given one. The hash is over
their byte code and all it reaches: constants, globals, and the kernels they call. Where it reaches something whose
content cannot be told, there is no hash, and nothing may be kept.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

PREFIX = "point_"
"""How the names of functions begin that compiled kernels look up in the class of a named tuple."""

_MODULES = ("math", "numpy")
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), np.generic)


class _Unknown(Exception):
    """Something whose content cannot be told."""


def fingerprint(cls: type) -> str | None:
    """A hash of all that compiled code can take from a named tuple's class; None where that cannot be told."""
    home = sys.modules.get(cls.__module__)
    if cls.__module__ == "__main__" or getattr(home, cls.__qualname__, None) is not cls:
        return None  # another process would not find it by its name
    digest = hashlib.sha256(repr((cls.__module__, cls.__qualname__, getattr(cls, "_fields", ()))).encode())
    try:
        for name in sorted(name for name in dir(cls) if name.startswith(PREFIX)):
            digest.update(repr((name, *_told(getattr(cls, name), set()))).encode())
    except _Unknown:
        return None
    return digest.hexdigest()[:16]


def _told(value: Any, seen: set[int]) -> Iterator[Any]:
    """Everything a value holds, in a fixed order, as plain text and numbers."""
    yield type(value).__name__
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif id(value) in seen:
        yield "again"
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield from (value.dtype.str, value.shape, value.tobytes())
    elif isinstance(value, tuple | frozenset):
        parts = [tuple(_told(part, seen)) for part in value]
        yield from parts if isinstance(value, tuple) else sorted(parts, key=repr)
    elif isinstance(value, CodeType):
        yield from _told_of_code(value, seen)
    elif isinstance(value, FunctionType):
        yield from _told_of_function(value, seen | {id(value)})
    elif isinstance(value, ModuleType) and value.__name__ in _MODULES:
        yield value.__name__
    elif isinstance(value, BuiltinFunctionType | type) and value.__module__ in (*_MODULES, "builtins"):
        yield value.__qualname__
    elif isinstance(value, np.ufunc):
        yield value.__name__
    else:
        yield from _told_of_kernel(value, seen | {id(value)})


def _told_of_code(code: CodeType, seen: set[int]) -> Iterator[Any]:
    numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    yield from (code.co_code, numbers, names, getattr(code, "co_exceptiontable", b""))
    yield from _told(code.co_consts, seen)


def _told_of_function(function: Callable[..., Any], seen: set[int]) -> Iterator[Any]:
    """What a function does, and what it reaches by name."""
    assert isinstance(function, FunctionType)
    yield from _told(function.__code__, seen)
    yield from _told(function.__defaults__, seen)
    yield from _told(tuple(sorted((function.__kwdefaults__ or {}).items())), seen)
    yield from _told(tuple(cell.cell_contents for cell in function.__closure__ or ()), seen)
    for name in sorted(_names_in(function.__code__)):
        if name not in function.__globals__:  # an attribute, or a name of the language
            yield hasattr(builtins, name)
            continue
        reached = function.__globals__[name]
        if isinstance(reached, FunctionType):  # numba runs something else in its place, which is not seen from here
            raise _Unknown
        yield from (name, *_told(reached, seen))


def _names_in(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))


def _told_of_kernel(value: Any, seen: set[int]) -> Iterator[Any]:
    """A function that numba compiles, ours or a dispatcher of numba's own, and how it does that."""
    body, options = getattr(value, "py_func", None), getattr(value, "options", getattr(value, "targetoptions", None))
    if not isinstance(body, FunctionType) or not isinstance(options, dict):
        raise _Unknown
    yield repr(sorted((name, repr(option)) for name, option in options.items()))
    yield from _told(body, seen)
