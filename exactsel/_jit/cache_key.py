"""Hashes of compiled kernels over all their sources: a kernel kept on disk must never outlive an edit of any of them.

The hash is over the byte code of the kernel and of all it reaches: constants, globals, the kernels it calls, and what
is chosen for the classes of its arguments (``choose_by_type``, the ``point_*`` functions of a loss). Text that is not
compiled, such as a docstring, plays no part. Where a kernel reaches something whose content is unknown there is no
hash, and nothing is kept. How kernels are compiled (this package, numba, numpy) is part of every hash.
"""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from exactsel._jit.cache_paths import hash_of

PREFIX = "point_"
"""How the names of functions begin that compiled kernels look up in the class of a named tuple."""

_implementations: dict[Any, list[Callable[..., Any]]] = {}
"""For Python functions that compiled code does not call what it runs in their place."""

_TOLD_BY_NAME = ("math", "numpy", "numba", "llvmlite", "builtins", "typing")
"""What comes from these packages is known by its name: their versions are part of every hash."""

_OURS = "exactsel._jit"
"""The same holds of this package, whose sources are."""

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), np.generic)

_LOADS_CONSTANT = frozenset(dis.hasconst)


class Unknown(Exception):
    """Something whose content is unknown."""


def runs_instead(stub: Callable[..., Any], implementation: Callable[..., Any]) -> None:
    """Say what decides what compiled code runs in the place of a Python function.

    Where that is chosen by the class of an argument, ``implementation.chosen`` is a function from a class to what is
    chosen, or None; else it is within ``implementation``, or called by it.
    """
    _implementations.setdefault(stub, []).append(implementation)


@cache
def _compiler() -> str:
    """How kernels are compiled."""
    packages = [version(name) for name in ("numba", "llvmlite", "numpy")]
    return repr((packages, sys.version, hash_of(sorted(Path(__file__).parent.glob("*.py")))))


def cache_key(kernel: Any, classes: Iterable[type] = ()) -> str | None:
    """A hash of all that compiled code takes in; None where that is unknown.

    Parameters
    ----------
    kernel : Kernel
        With a Python function ``py_func`` and ``options``.
    classes : iterable of type
        Those of the named tuples among its arguments, and of those in them.
    """
    return _key([kernel, *classes], [])


def class_key(cls: type) -> str | None:
    """The same of the class of a loss: of all its functions, for any kernel that calls them."""
    names = sorted(name for name in dir(cls) if name.startswith(PREFIX))
    return _key([cls], [partial(_function_of, name=name) for name in names])


def _key(roots: Iterable[Any], choices: Iterable[Callable[[type], Any]]) -> str | None:
    reach = _Reach(choices)
    try:
        reach.begin(roots)
    except Unknown:
        return None
    return reach.digest.hexdigest()[:24]


class _Reach:
    """All that is reached, each thing once and in a fixed order."""

    def __init__(self, choices: Iterable[Callable[[type], Any]] = ()) -> None:
        self.digest = hashlib.sha256(_compiler().encode())
        self._seen: dict[int, int] = {}
        self._choices = list(choices)
        self._classes: list[type] = [type(None)]

    def begin(self, roots: Iterable[Any]) -> None:
        """Add a kernel and the classes of its arguments, and everything chosen for any of the classes reached.

        A value of a class is an argument or made by a call of the class, so that no other class can be reached.
        """
        for each in roots:
            self._tell(each)
        done: set[tuple[int, int]] = set()
        while len(done) < len(self._choices) * len(self._classes):
            for pair in product(range(len(self._choices)), range(len(self._classes))):
                if pair not in done:
                    done.add(pair)
                    self._say(pair)
                    self._tell(self._choices[pair[0]](self._classes[pair[1]]), loose=True)

    def _say(self, what: Any) -> None:
        self.digest.update(repr(what).encode() + b"\n")

    def _tell(self, value: Any, loose: bool = False) -> None:
        """What a value holds, as plain text and numbers; ``loose`` where Python functions are compiled as they are."""
        if id(value) in self._seen:
            self._say(("again", self._seen[id(value)]))
        elif isinstance(value, _PLAIN):
            self._say((type(value).__name__, repr(value)))
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._say((value.dtype.str, value.shape, value.tobytes()))
        elif isinstance(value, tuple | frozenset):
            self._say((type(value).__name__, len(value)))
            if hasattr(value, "_fields"):
                self._tell(type(value))
            for part in value if isinstance(value, tuple) else sorted(value, key=repr):
                self._tell(part, loose)
        elif isinstance(value, np.ufunc) or _is_module_told_by_name(value):
            self._say(value.__name__)
        elif isinstance(value, BuiltinFunctionType | FunctionType | type) and _is_told_by_name(value):
            self._say("prange" if value.__name__ == "prange" else (value.__module__, value.__qualname__))
        elif isinstance(value, type | FunctionType) or hasattr(value, "py_func"):
            self._seen[id(value)] = len(self._seen)
            self._tell_once(value, loose)
        else:
            raise Unknown

    def _tell_once(self, value: Any, loose: bool) -> None:
        if isinstance(value, type):
            self._tell_class(value)
        elif isinstance(value, FunctionType):
            self._tell_stub(value) if value in _implementations else self._tell_function(value, loose)
        else:
            self._tell_kernel(value)

    def _tell_class(self, cls: type) -> None:
        """A named tuple: what it is made of. The caller chooses which of its functions is called.

        Nothing can be kept for a class that another process does not find by its name.
        """
        known = getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls
        if not hasattr(cls, "_fields") or cls.__module__ == "__main__" or not known:
            raise Unknown
        self._say((cls.__module__, cls.__qualname__, cls._fields))
        self._tell(tuple(getattr(cls, "_field_defaults", {}).items()))
        self._classes.append(cls)

    def _tell_stub(self, stub: FunctionType) -> None:
        """A Python function in whose place something else runs."""
        self._say(("in place of", stub.__module__, stub.__qualname__))
        for each in _implementations[stub]:
            if hasattr(each, "chosen"):
                self._choices.append(each.chosen)
            else:
                self._tell_function(each, loose=True, globals_loose=True)

    def _tell_function(self, function: Any, loose: bool, globals_loose: bool = False) -> None:
        """What a function does, and what it reaches by name."""
        if not loose:  # compiled code cannot call it: something else runs in its place, which is not seen from here
            raise Unknown
        self._say(("function", function.__name__))
        self._tell_code(function.__code__, function.__doc__)
        self._tell(function.__defaults__)
        self._tell(tuple(sorted((function.__kwdefaults__ or {}).items())))
        self._tell(tuple(cell.cell_contents for cell in function.__closure__ or ()), globals_loose)
        names = _names_in(function.__code__)
        for name in sorted(names):
            if name not in function.__globals__:  # an attribute, or a name of the language
                self._say((name, hasattr(builtins, name)))
                continue
            reached = function.__globals__[name]
            if isinstance(reached, type) and _asks(reached, names):
                raise Unknown
            self._say(name)
            self._tell(reached, globals_loose)

    def _tell_code(self, code: CodeType, doc: str | None) -> None:
        numbers = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._say((code.co_code, numbers, names, getattr(code, "co_exceptiontable", b"")))
        for place, constant in enumerate(code.co_consts):
            if place == 0 and doc is not None and constant == doc and not _loads_first(code):
                continue
            if isinstance(constant, CodeType):
                self._tell_code(constant, None)
            else:
                self._tell(constant)

    def _tell_kernel(self, value: Any) -> None:
        """A function that is compiled, ours or a dispatcher of numba's own, and how that is done."""
        options = getattr(value, "options", getattr(value, "targetoptions", None))
        if not isinstance(value.py_func, FunctionType) or not isinstance(options, dict):
            raise Unknown
        self._say(("kernel", sorted((name, repr(option)) for name, option in options.items())))
        self._tell(value.py_func, loose=True)


def _is_module_told_by_name(value: Any) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _TOLD_BY_NAME


def _is_told_by_name(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] in _TOLD_BY_NAME or module == _OURS or module.startswith(f"{_OURS}.")


def _function_of(cls: type, name: str) -> Any:
    return getattr(cls, name, None)


def _asks(cls: type, names: set[str]) -> bool:
    """Whether any of these names may be that of a function of a named tuple's class, which is then not chosen."""
    return any(name.startswith(PREFIX) and hasattr(cls, name) for name in names)


def _names_in(code: CodeType) -> set[str]:
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))


def _loads_first(code: CodeType) -> bool:
    """Whether anything but a docstring is the first constant."""
    return any(operation in _LOADS_CONSTANT and not place for operation, place in _instructions(code.co_code))


def _instructions(text: bytes) -> Iterator[tuple[int, int]]:
    return zip(text[::2], text[1::2], strict=True)
