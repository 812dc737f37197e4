"""Sixty-four triples of columns at once: eight rows against eight columns, in vector instructions written by hand.

Compilers make no vectors of loops that are eight long and known to be so (they are unrolled first), and longer ones do
not exist where most blocks of triples are closed as a whole (kernels/wide.py).
"""

from __future__ import annotations

from typing import Any

from exactsel._jit import with_compiler

LANES = 8
"""Numbers in single precision that are taken at a time."""


def tile_exceeds(q: Any, i: int, l: int, j: int, top: Any, allowance: Any) -> bool:
    """Whether (abs(q_yx - q_iy q_ix) + allowance)^2 > (top - q_iy^2)+ (top - q_ix^2)+ for any of LANES rows y
    from l on and LANES columns x from j on; ``q`` is a C-contiguous matrix in single precision.
    """
    a, u, tile = q[i, l : l + LANES], q[i, j : j + LANES], q[l : l + LANES, j : j + LANES]
    off = abs(tile - a[:, None] * u) + allowance
    limit = (top - a * a).clip(0)[:, None] * (top - u * u).clip(0)
    return bool((off * off > limit).any())


def _in_vectors(compiled: Any) -> None:
    """Let compiled kernels call the same in vector instructions."""
    from llvmlite import ir

    cgutils, types = compiled.cgutils, compiled.types
    single, vector = ir.FloatType(), ir.VectorType(ir.FloatType(), LANES)
    bits_of = ir.VectorType(ir.IntType(32), LANES)
    fused = ("contract",)
    nothing = ir.Constant(single, 0.0)

    def spread(builder: Any, number: Any) -> Any:
        """The same number in every lane."""
        start = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(start, number, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(first, start, ir.Constant(bits_of, [0] * LANES))

    def room_of(builder: Any, number: Any, top: Any, zero: Any) -> Any:
        """(top - number^2)+, of numbers or of vectors."""
        left = builder.fsub(top, builder.fmul(number, number, flags=fused), flags=fused)
        return builder.select(builder.fcmp_ordered(">", left, zero), left, zero)

    def size_of(builder: Any, numbers: Any) -> Any:
        """Absolute values: the sign bits are taken away."""
        bits = builder.and_(builder.bitcast(numbers, bits_of), ir.Constant(bits_of, [0x7FFFFFFF] * LANES))
        return builder.bitcast(bits, vector)

    @compiled.intrinsic
    def in_lanes(_typing: Any, q: Any, i: Any, l: Any, j: Any, top: Any, allowance: Any) -> Any:
        """See the plain one above, which is the same."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            array, i, l, j, top, allowance = arguments
            matrix = context.make_array(kind)(context, builder, array)

            def place(row: Any, column: Any) -> Any:
                return cgutils.get_item_pointer(context, builder, kind, matrix, [row, column])

            def lanes(row: Any) -> Any:
                return builder.load(builder.bitcast(place(row, j), vector.as_pointer()), align=4)

            u, allowances = lanes(i), spread(builder, allowance)
            room = room_of(builder, u, spread(builder, top), ir.Constant(vector, [0.0] * LANES))
            exceeds = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [0] * LANES)
            for y in range(LANES):
                row = builder.add(l, ir.Constant(l.type, y))
                a = builder.load(place(i, row))
                product = builder.fmul(spread(builder, a), u, flags=fused)
                off = builder.fadd(size_of(builder, builder.fsub(lanes(row), product, flags=fused)), allowances)
                limit = builder.fmul(spread(builder, room_of(builder, a, top, nothing)), room)
                more = builder.fcmp_unordered(">", builder.fmul(off, off), limit)
                exceeds = builder.or_(exceeds, more)
            mask = builder.bitcast(exceeds, ir.IntType(LANES))
            return builder.icmp_unsigned("!=", mask, ir.Constant(ir.IntType(LANES), 0))

        whole, number = types.int64, types.float32
        return types.boolean(q, whole, whole, whole, number, number), emit

    compiled.overload(tile_exceeds, jit_options={"forceinline": True})(
        lambda q, i, l, j, top, allowance: lambda q, i, l, j, top, allowance: in_lanes(q, i, l, j, top, allowance)
    )


with_compiler(_in_vectors, instead_of=tile_exceeds)
