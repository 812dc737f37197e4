"""Named tuples handed to kernels by their place in memory.

Numba unpacks a tuple where it is an argument. A kernel whose data are nested named tuples of some fifty arrays has four
hundred arguments, and each caller as many instructions, half of all there are. Tuples cannot change, so here one number
is passed, the address of the tuple, and the callee passes on the same number, or the address of a part.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.callconv import CPUCallConv
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import TupleModel, UniTupleModel
from numba.core.types import BaseNamedTuple, NamedTuple, NamedUniTuple  # type: ignore[attr-defined]


class _ByPlace:
    """How a named tuple is handed over; everywhere else it is as numba has it."""

    def get_argument_type(self) -> Any:
        """A pointer."""
        return self.get_value_type().as_pointer()  # type: ignore[attr-defined]

    def as_argument(self, builder: Any, value: Any) -> Any:
        """Where it lies, or a place of its own."""
        place = place_of(builder, value)
        if place is None:
            place = cgutils.alloca_once(builder, value.type)
            builder.store(value, place)
        return place

    def from_argument(self, builder: Any, place: Any) -> Any:
        """What lies there."""
        return builder.load(place)


class _Tuple(_ByPlace, TupleModel):  # type: ignore[misc]
    """A named tuple of several types."""


class _UniformTuple(_ByPlace, UniTupleModel):  # type: ignore[misc]
    """A named tuple of one type."""


class CallConvention(CPUCallConv):  # type: ignore[misc]
    """Numba's, which remembers the arguments that are places."""

    def decorate_function(self, function: Any, args: Any, kinds: Any, noalias: bool = False) -> None:
        """Name arguments, and say which of them are places."""
        super().decorate_function(function, args, kinds, noalias)
        given = iter(self.get_arguments(function))
        for kind in kinds:
            for _ in range(len(self._get_arg_packer([kind]).argument_types)):
                argument = next(given)
                argument.is_place = isinstance(kind, BaseNamedTuple)


def models() -> Any:
    """How values of each type are held."""
    manager = default_manager.copy()
    manager.register(NamedTuple, _Tuple)
    manager.register(NamedUniTuple, _UniformTuple)
    return manager


def place_of(builder: Any, value: Any) -> Any:
    """Where a tuple lies that came by its place, or is part of one; None for any other."""
    if isinstance(value, ir.LoadInstr) and is_place(value.operands[0]):
        return value.operands[0]
    if isinstance(value, ir.ExtractValue):
        whole = place_of(builder, value.operands[0])
        return None if whole is None else part_at(builder, whole, *value.indices)
    return None


def is_place(pointer: Any) -> bool:
    """Whether what lies there is what the caller put there."""
    if isinstance(pointer, ir.GEPInstr):
        return is_place(pointer.pointer)
    return isinstance(pointer, ir.Argument) and getattr(pointer, "is_place", False)


def part_at(builder: Any, place: Any, *indices: int) -> Any:
    """Where a part of it lies."""
    return cgutils.gep_inbounds(builder, place, 0, *indices)
