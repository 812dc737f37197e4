"""Elements of arrays, read and written in a dozen instructions.

Numba copies an array into memory of its own wherever one number of it is taken, and reads shape and strides from
there, most of them twice: fifty instructions, which the optimiser takes away again, for what is a good half of all that
kernels do. Here the same number is found from the parts of the array that are needed.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.lowering import Lower
from numba.core.runtime.context import NRTContext
from numba.core.types import BaseTuple, UniTuple  # type: ignore[attr-defined]
from numba.np.arrayobj import load_item, store_item

_NUMBERS = (types.Integer, types.Float, types.Boolean)


class ElementLower(Lower):  # type: ignore[misc]
    """Lowers a function as numba does, but for single elements of arrays of numbers."""

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Take the shape or the size from an array."""
        if expr.op == "getattr" and expr.attr in ("shape", "size"):
            kind = self.typeof(expr.value.name)
            if isinstance(kind, types.Array):
                name, found = ("nitems", types.intp) if expr.attr == "size" else ("shape", _shape_of(kind))
                if resty == found:
                    return self._part_of_array(kind, self.loadvar(expr.value.name), name)
        return super().lower_expr(resty, expr)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Read an element."""
        kind, indices = signature.args[0], self._indices(value, index, signature)
        if indices is None or signature.return_type != kind.dtype:
            return super().lower_getitem(resty, expr, value, index, signature)
        found = load_item(self.context, self.builder, kind, self._element(kind, value, indices))
        return self.context.cast(self.builder, found, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Write an element."""
        kind, indices = signature.args[0], self._indices(target_var, index_var, signature)
        given = self.typeof(value_var.name)
        if indices is None or not isinstance(given, _NUMBERS):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.context.cast(self.builder, self.loadvar(value_var.name), given, signature.args[2])
        value = self.context.cast(self.builder, value, signature.args[2], kind.dtype)
        return store_item(self.context, self.builder, kind, value, self._element(kind, target_var, indices))

    def _indices(self, array: Any, index: Any, signature: Any) -> list[tuple[Any, Any]] | None:
        """The places along each axis and their types; None where they are not those of one number."""
        kind, given = self.typeof(array.name), self.typeof(index.name)
        plain = isinstance(kind, types.Array) and isinstance(kind.dtype, _NUMBERS) and kind == signature.args[0]
        kinds = given.types if isinstance(given, BaseTuple) else (given,)
        whole = all(isinstance(each, types.Integer) for each in kinds)
        if not plain or not whole or len(kinds) != kind.ndim or self.context.enable_boundscheck:
            return None
        value = self.loadvar(index.name)
        if isinstance(given, BaseTuple):
            return [(self.builder.extract_value(value, axis), each) for axis, each in enumerate(kinds)]
        return [(value, given)]

    def _element(self, kind: Any, name: Any, indices: list[tuple[Any, Any]]) -> Any:
        """Where an element lies; negative places count from the end."""
        array, builder = self.loadvar(name.name), self.builder
        extents, places = cgutils.unpack_tuple(builder, self._part_of_array(kind, array, "shape"), kind.ndim), []
        for (index, of), extent in zip(indices, extents, strict=True):
            place = self.context.cast(builder, index, of, types.intp if of.signed else types.uintp)
            if of.signed:
                negative = builder.icmp_signed("<", place, place.type(0))
                place = builder.select(negative, builder.add(place, extent), place)
            places.append(place)
        strides = []
        if kind.layout not in "CF":
            strides = cgutils.unpack_tuple(builder, self._part_of_array(kind, array, "strides"), kind.ndim)
        data = self._part_of_array(kind, array, "data")
        return cgutils.get_item_pointer2(self.context, builder, data, extents, strides, kind.layout, places)

    def _part_of_array(self, kind: Any, array: Any, name: str) -> Any:
        model = self.context.data_model_manager[kind]
        return self.builder.extract_value(array, model.get_field_position(name))


def _shape_of(kind: Any) -> Any:
    return UniTuple(types.intp, kind.ndim)


class References(NRTContext):  # type: ignore[misc]
    """Counts references as numba does, and looks for them only where there are any."""

    def get_meminfos(self, builder: Any, ty: Any, val: Any) -> list[Any]:
        """Each counter within a value, with its type."""
        model = self._context.data_model_manager[ty]
        if not model.contains_nrt_meminfo():
            return []
        found = [(ty, model.get_nrt_meminfo(builder, val))] if model.has_nrt_meminfo() else []
        for kind, part in model.traverse(builder):
            if self._context.data_model_manager[kind].contains_nrt_meminfo():
                found += self.get_meminfos(builder, kind, part(val))
        return found
