"""Sixty-four triples of columns at once: eight rows against eight columns, in vector instructions written by hand.

Compilers make no vectors of loops that are eight long and known to be so (they are unrolled first), and longer ones do
not exist where most blocks of triples are closed as a whole (kernels/wide.py).
"""

from __future__ import annotations

from typing import Any

from exactsel._jit import ENABLED

LANES = 8
"""Numbers in single precision that are taken at a time."""

if ENABLED:
    from llvmlite import ir

    from exactsel._jit.compiled import cgutils, intrinsic, types

    _SINGLE, _VECTOR = ir.FloatType(), ir.VectorType(ir.FloatType(), LANES)
    _BITS = ir.VectorType(ir.IntType(32), LANES)
    _FUSED = ("contract",)
    _ZERO = ir.Constant(_SINGLE, 0.0)

    def _spread(builder: Any, number: Any) -> Any:
        """The same number in every lane."""
        start = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(start, number, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, start, ir.Constant(_BITS, [0] * LANES))

    def _room(builder: Any, number: Any, top: Any, zero: Any) -> Any:
        """(top - number^2)+, of numbers or of vectors."""
        left = builder.fsub(top, builder.fmul(number, number, flags=_FUSED), flags=_FUSED)
        return builder.select(builder.fcmp_ordered(">", left, zero), left, zero)

    def _size(builder: Any, vector: Any) -> Any:
        """Absolute values: the sign bits are taken away."""
        bits = builder.and_(builder.bitcast(vector, _BITS), ir.Constant(_BITS, [0x7FFFFFFF] * LANES))
        return builder.bitcast(bits, _VECTOR)

    @intrinsic
    def tile_exceeds(_typing: Any, q: Any, i: Any, l: Any, j: Any, top: Any, allowance: Any) -> Any:
        """See the plain one below, which is the same."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            array, i, l, j, top, allowance = arguments
            matrix = context.make_array(kind)(context, builder, array)

            def place(row: Any, column: Any) -> Any:
                return cgutils.get_item_pointer(context, builder, kind, matrix, [row, column])

            def lanes(row: Any) -> Any:
                return builder.load(builder.bitcast(place(row, j), _VECTOR.as_pointer()), align=4)

            u, allowances = lanes(i), _spread(builder, allowance)
            room = _room(builder, u, _spread(builder, top), ir.Constant(_VECTOR, [0.0] * LANES))
            exceeds = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [0] * LANES)
            for y in range(LANES):
                row = builder.add(l, ir.Constant(l.type, y))
                a = builder.load(place(i, row))
                product = builder.fmul(_spread(builder, a), u, flags=_FUSED)
                off = builder.fadd(_size(builder, builder.fsub(lanes(row), product, flags=_FUSED)), allowances)
                limit = builder.fmul(_spread(builder, _room(builder, a, top, _ZERO)), room)
                more = builder.fcmp_unordered(">", builder.fmul(off, off), limit)
                exceeds = builder.or_(exceeds, more)
            mask = builder.bitcast(exceeds, ir.IntType(LANES))
            return builder.icmp_unsigned("!=", mask, ir.Constant(ir.IntType(LANES), 0))

        whole, single = types.int64, types.float32
        return types.boolean(q, whole, whole, whole, single, single), emit

else:

    def tile_exceeds(q: Any, i: int, l: int, j: int, top: float, allowance: float) -> bool:
        """Whether (abs(q_yx - q_iy q_ix) + allowance)^2 > (top - q_iy^2)+ (top - q_ix^2)+ for any of LANES rows y
        from l on and LANES columns x from j on; ``q`` is a C-contiguous matrix in single precision.
        """
        a, u, tile = q[i, l : l + LANES], q[i, j : j + LANES], q[l : l + LANES, j : j + LANES]
        off = abs(tile - a[:, None] * u) + allowance
        limit = (top - a * a).clip(0)[:, None] * (top - u * u).clip(0)
        return bool((off * off > limit).any())
