"""Sixty-four triples of columns at once: eight rows against eight columns, in vector instructions written by hand.

Compilers make no vectors of loops that are eight long and known to be so (they are unrolled first), and longer ones do
not exist where most blocks of triples are closed as a whole (kernels/wide.py).
"""

from __future__ import annotations

from typing import Any

from exactsel._jit import with_compiler

LANES = 8
"""Numbers in single precision that are taken at a time."""


def tile_exceeds(q: Any, row: int, il: int, ij: int, lj: int, top: Any, allowance: Any) -> bool:
    """Whether (abs(q_lj[y, x] - q_il[row, y] q_ij[row, x]) + allowance)^2 > (top - q_il[row, y]^2)+ (top -
    q_ij[row, x]^2)+ for any rows y and columns x of LANES; ``q`` is a C-contiguous array (tiles, LANES, LANES) in
    single precision, and il, ij and lj are the tiles.
    """
    a, u = q[il, row], q[ij, row]
    off = abs(q[lj] - a[:, None] * u) + allowance
    limit = (top - a * a).clip(0)[:, None] * (top - u * u).clip(0)
    return bool((off * off > limit).any())


def opens(low_rows: Any, high_rows: Any, row: int, low: Any, high: Any, l: int, at: int, turn: Any) -> int:
    """Bit by bit, for LANES blocks from ``at`` on, whether three columns may be of which one angle is larger than the
    two others together, or that go round by more than ``turn``: a ``row``, one of block ``l`` and one of the block.

    Angles of rows with blocks are between ``low_rows`` and ``high_rows``, of blocks with blocks between ``low`` and
    ``high``, all C-contiguous matrices in single precision.
    """
    some = slice(at, at + LANES)
    smallest, largest = low_rows[row, l], high_rows[row, l]
    own_low, own_high, other_low, other_high = low_rows[row, some], high_rows[row, some], low[l, some], high[l, some]
    flags = (largest > own_low + other_low) | (own_high > smallest + other_low) | (other_high > smallest + own_low)
    flags = flags | (largest + own_high + other_high > turn)
    return int(sum(1 << lane for lane in range(LANES) if flags[lane]))


def _spread(builder: Any, number: Any) -> Any:
    """The same number in every lane."""
    from llvmlite import ir

    start = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(start, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, start, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _in_vectors(compiled: Any) -> None:
    """Let compiled kernels call the same in vector instructions."""
    from llvmlite import ir

    cgutils, types = compiled.cgutils, compiled.types
    vector = ir.VectorType(ir.FloatType(), LANES)
    bits_of = ir.VectorType(ir.IntType(32), LANES)
    fused = ("contract",)

    def lane(builder: Any, numbers: Any, y: int) -> Any:
        """The number of one lane in every lane."""
        return builder.shuffle_vector(numbers, numbers, ir.Constant(bits_of, [y] * LANES))

    def room_of(builder: Any, number: Any, top: Any, zero: Any) -> Any:
        """(top - number^2)+, of numbers or of vectors."""
        left = builder.fsub(top, builder.fmul(number, number, flags=fused), flags=fused)
        return builder.select(builder.fcmp_ordered(">", left, zero), left, zero)

    def size_of(builder: Any, numbers: Any) -> Any:
        """Absolute values: the sign bits are taken away."""
        bits = builder.and_(builder.bitcast(numbers, bits_of), ir.Constant(bits_of, [0x7FFFFFFF] * LANES))
        return builder.bitcast(bits, vector)

    @compiled.intrinsic
    def in_lanes(_typing: Any, q: Any, row: Any, il: Any, ij: Any, lj: Any, top: Any, allowance: Any) -> Any:
        """See the plain one above, which is the same."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            array, row, il, ij, lj, top, allowance = arguments
            matrix = context.make_array(kind)(context, builder, array)
            first = ir.Constant(row.type, 0)

            def place(tile: Any, y: Any, x: Any) -> Any:
                return cgutils.get_item_pointer(context, builder, kind, matrix, [tile, y, x])

            def lanes(tile: Any, y: Any) -> Any:
                return builder.load(builder.bitcast(place(tile, y, first), vector.as_pointer()), align=4)

            u, allowances = lanes(ij, row), _spread(builder, allowance)
            room = room_of(builder, u, _spread(builder, top), ir.Constant(vector, [0.0] * LANES))
            exceeds = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [0] * LANES)
            numbers = lanes(il, row)
            rooms = room_of(builder, numbers, _spread(builder, top), ir.Constant(vector, [0.0] * LANES))
            for y in range(LANES):
                at = ir.Constant(row.type, y)
                a = lane(builder, numbers, y)
                product = builder.fmul(a, u, flags=fused)
                off = builder.fadd(size_of(builder, builder.fsub(lanes(lj, at), product, flags=fused)), allowances)
                limit = builder.fmul(lane(builder, rooms, y), room)
                more = builder.fcmp_unordered(">", builder.fmul(off, off), limit)
                exceeds = builder.or_(exceeds, more)
            mask = builder.bitcast(exceeds, ir.IntType(LANES))
            return builder.icmp_unsigned("!=", mask, ir.Constant(ir.IntType(LANES), 0))

        whole, number = types.int64, types.float32
        return types.boolean(q, whole, whole, whole, whole, number, number), emit

    compiled.overload(tile_exceeds, jit_options={"forceinline": True})(
        lambda q, row, il, ij, lj, top, allowance: (
            lambda q, row, il, ij, lj, top, allowance: in_lanes(q, row, il, ij, lj, top, allowance)
        )
    )


def _masks(compiled: Any) -> None:
    """Let compiled kernels call :func:`opens` in vector instructions."""
    from llvmlite import ir

    cgutils, types = compiled.cgutils, compiled.types
    vector = ir.VectorType(ir.FloatType(), LANES)

    @compiled.intrinsic
    def in_lanes(
        _typing: Any, low_rows: Any, high_rows: Any, row: Any, low: Any, high: Any, l: Any, at: Any, turn: Any
    ) -> Any:
        """See the plain one above, which is the same."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, _, row, _, _, l, at, turn = arguments

            def place(which: int, y: Any, x: Any) -> Any:
                kind = signature.args[which]
                array = context.make_array(kind)(context, builder, arguments[which])
                return cgutils.get_item_pointer(context, builder, kind, array, [y, x])

            def lanes(which: int, y: Any) -> Any:
                return builder.load(builder.bitcast(place(which, y, at), vector.as_pointer()), align=4)

            def more(one: Any, other: Any) -> Any:
                return builder.fcmp_unordered(">", one, other)

            smallest, largest = (_spread(builder, builder.load(place(which, row, l))) for which in (0, 1))
            own_low, own_high, other_low, other_high = lanes(0, row), lanes(1, row), lanes(3, l), lanes(4, l)
            flags = more(largest, builder.fadd(own_low, other_low))
            flags = builder.or_(flags, more(own_high, builder.fadd(smallest, other_low)))
            flags = builder.or_(flags, more(other_high, builder.fadd(smallest, own_low)))
            around = builder.fadd(builder.fadd(largest, own_high), other_high)
            flags = builder.or_(flags, more(around, _spread(builder, turn)))
            return builder.zext(builder.bitcast(flags, ir.IntType(LANES)), ir.IntType(64))

        whole = types.int64
        return types.int64(low_rows, high_rows, whole, low, high, whole, whole, types.float32), emit

    compiled.overload(opens, jit_options={"forceinline": True})(
        lambda low_rows, high_rows, row, low, high, l, at, turn: (
            lambda low_rows, high_rows, row, low, high, l, at, turn: in_lanes(
                low_rows, high_rows, row, low, high, l, at, turn
            )
        )
    )


with_compiler(_in_vectors, instead_of=tile_exceeds)
with_compiler(_masks, instead_of=opens)
