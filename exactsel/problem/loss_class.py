"""What the class of a loss must be like: a name of its own, and methods that compiled kernels can take in."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple
from weakref import WeakSet

from exactsel._jit import ENABLED
from exactsel.errors import InputError
from exactsel.losses import Huber, Logistic, Poisson, Quadratic, SquaredHinge

_BUILT_IN = {kind.name: kind for kind in (Quadratic, Huber, Logistic, SquaredHinge, Poisson)}

PREFIX = "point_"
"""How the names of the methods begin that kernels take in."""

GLOBALS, ATTRIBUTES = ("LOAD_GLOBAL",), ("LOAD_ATTR", "LOAD_METHOD")
"""Operations that look up a name around a function, and one of an object."""

_OF_COMPILER = ("math", "numpy", "numba", "builtins")
"""Packages whose functions the compiler knows, or refuses itself."""

_WITH_KERNELS = ("exactsel._jit", "exactsel.kernels")
"""Packages that tell the compiler what to run in the place of a Python function."""

_fit: WeakSet[type] = WeakSet()
"""Classes that have been checked; one that is refused may be mended later."""


class _Call(NamedTuple):
    """A call that compiled code cannot make."""

    name: str
    of_class: bool
    """Whether it is looked up in the class of the loss, where compiled code finds only fields."""


def check_class(kind: type) -> None:
    """:class:`InputError` for a loss that has the name of another one, or that would fail once kernels are compiled.

    Small problems are interpreted, so that a call of plain Python would fail in larger ones only. With
    ``EXACTSEL_JIT=0`` nothing is compiled, and no call is refused: ``njit`` then leaves functions as they are.
    """
    name = getattr(kind, "name", kind.__name__)
    if not issubclass(kind, _BUILT_IN.get(name, object)):
        raise InputError(f"'{name}' is the name of a loss of exactsel, and {kind.__name__} is another one; rename it.")
    if not ENABLED or kind in _fit:
        return
    for method in sorted(each for each in dir(kind) if each.startswith(PREFIX)):
        call = next(_uncompiled(getattr(kind, method), kind, set()), None)
        if call is not None:
            what, way_on = "a plain Python function", f"decorate {call.name}"
            if call.of_class:
                what, way_on = "an attribute of its class", "make it a function of the module, decorated"
            raise InputError(
                f"{method} of {name} loss calls {call.name}, {what}, which compiled kernels cannot call; {way_on} with "
                f"@njit (from exactsel._jit import njit)."
            )
    _fit.add(kind)


def _uncompiled(function: object, kind: type, seen: set[object]) -> Iterator[_Call]:
    """Calls that compiled code cannot make, of a function and of the kernels that it calls."""
    text = getattr(function, "py_func", function)
    if not isinstance(text, FunctionType) or text in seen:
        return
    seen.add(text)
    known, attributes = _globals_of(text), _looked_up(text.__code__, ATTRIBUTES)
    modules = [value for value in known.values() if isinstance(value, ModuleType)]
    members = {name: getattr(each, name) for each in modules for name in attributes if hasattr(each, name)}
    for name, value in sorted({**members, **known}.items(), key=lambda found: found[0]):
        if _is_plain(value):
            yield _Call(name, of_class=False)
        elif hasattr(value, "py_func"):
            yield from _uncompiled(value, kind, seen)
    fields = {*dir(tuple), *getattr(kind, "_fields", ())}
    for name in sorted(attributes - members.keys() - fields):
        if callable(getattr(kind, name, None)):
            yield _Call(name, of_class=True)


def _globals_of(function: FunctionType) -> dict[str, object]:
    """What the names stand for that a function takes from around it."""
    names = _looked_up(function.__code__, GLOBALS)
    found = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it is empty
            found[name] = cell.cell_contents
    return found


def _looked_up(code: CodeType, operations: tuple[str, ...]) -> set[str]:
    """The names that these operations look up in a function, and in those within it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    names = {each.argval for each in dis.get_instructions(code) if each.opname in operations}
    return names.union(*(_looked_up(each, operations) for each in inner))


def _is_plain(value: object) -> bool:
    """Whether a value is a Python function for which the compiler has no other."""
    if not isinstance(value, FunctionType) or hasattr(value, "register_where"):  # of choose_by_type
        return False
    module = value.__module__ or ""
    return module.partition(".")[0] not in _OF_COMPILER and not module.startswith(_WITH_KERNELS)
