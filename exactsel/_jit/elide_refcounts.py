"""Parts of arguments without counting references: the caller holds them for as long as the call lasts.

Numba counts a reference to each array of a tuple, and of the tuples in it, whenever a variable takes the tuple, and
uncounts it where the variable is last used; afterwards it looks for pairs that cancel. Kernels take their data in
nested named tuples of some fifty arrays, and with them these counts are half of all instructions, and of the time to
write, to read and to optimise them. A variable that is assigned once, and is an argument or a part of one, needs none:
the caller's reference outlives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba.core import ir
from numba.core.types import BaseNamedTuple, BaseTuple  # type: ignore[attr-defined]

from exactsel._jit.elements import ElementLower
from exactsel._jit.tuples_by_address import part_at, place_of


class ElidingLower(ElementLower):
    """Lowers a function as numba does, but for variables that borrow."""

    _borrowed: frozenset[str] = frozenset()

    def pre_lower(self) -> None:
        """Find the variables that borrow."""
        super().pre_lower()
        self._borrowed = frozenset(self._found())
        self._places: dict[str, Any] = {}
        self._values: dict[str, Any] = {}

    def lower_inst(self, inst: Any) -> None:
        """Let a variable that borrows take its value, and end, without a count."""
        if isinstance(inst, ir.Assign) and inst.target.name in self._borrowed:
            self._lend(inst.target.name, inst.value)
        elif not (isinstance(inst, ir.Del) and inst.value in self._borrowed):
            super().lower_inst(inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Take a part of a tuple from where it lies."""
        if expr.op in ("getattr", "static_getitem") and expr.value.name in self._places:
            index = self._place(expr)
            if index is not None and self.typeof(expr.value.name).types[index] == resty:
                value = self._at(self._part_of(expr), resty)
                self.incref(resty, value)
                return value
        return super().lower_expr(resty, expr)

    def loadvar(self, name: str) -> Any:
        """The value of a variable."""
        if name in self._values:
            return self._values[name]
        if name in self._places:
            return self.builder.load(self._places[name])
        return super().loadvar(name)

    def getvar(self, name: str) -> Any:
        """Where a variable lies."""
        if (name in self._values or name in self._places) and name not in self.varmap:
            self.varmap[name] = self.alloca(name, self.typeof(name))
            self.builder.store(self.loadvar(name), self.varmap[name])
        return super().getvar(name)

    def _found(self) -> Iterable[str]:
        """Names of variables that borrow; those that hold no references are left to numba."""
        if self.generator_info is not None:
            return ()
        assigned: dict[str, list[Any]] = {}
        owned = set[str]()
        for block in self.blocks.values():
            for inst in block.body:
                if isinstance(inst, ir.Assign):
                    assigned.setdefault(inst.target.name, []).append(inst.value)
                elif isinstance(inst, ir.Return):
                    owned.add(inst.value.name)
        once = {name: values[0] for name, values in assigned.items() if len(values) == 1 and name not in owned}
        found: dict[str, bool] = {}
        return [name for name in once if self._is_held(name) and self._borrows(name, once, found)]

    def _is_held(self, name: str) -> bool:
        kind = self.typeof(name)
        references = self.context.data_model_manager[kind].contains_nrt_meminfo()
        return bool(references) or isinstance(kind, BaseNamedTuple)

    def _borrows(self, name: str, once: dict[str, Any], found: dict[str, bool]) -> bool:
        """Whether a variable is an argument or a part of one, and nothing else ever."""
        if name not in found:
            value, kind = once.get(name), self.typeof(name)
            found[name] = False
            if isinstance(value, ir.Arg):
                found[name] = self.typeof("arg." + value.name) == kind
            elif isinstance(value, ir.Var):
                found[name] = self.typeof(value.name) == kind and self._borrows(value.name, once, found)
            elif isinstance(value, ir.Expr) and self._place(value) is not None:
                whole = self.typeof(value.value.name)
                found[name] = whole.types[self._place(value)] == kind and self._borrows(value.value.name, once, found)
        return found[name]

    def _place(self, value: Any) -> int | None:
        """Which part of a tuple an expression takes; None if it is anything else."""
        if value.op not in ("getattr", "static_getitem"):
            return None
        whole = self.typeof(value.value.name)
        if value.op == "getattr":
            named = isinstance(whole, BaseNamedTuple) and value.attr in whole.fields
            return whole.fields.index(value.attr) if named else None
        if isinstance(whole, BaseTuple) and isinstance(value.index, int) and 0 <= value.index < len(whole):
            return int(value.index)
        return None

    def _lend(self, name: str, value: Any) -> None:
        kind, place = self.typeof(name), self._place_of(value)
        if place is None:
            self._hold(name, self._part(value))
        elif isinstance(kind, BaseNamedTuple):
            self._places[name] = place
        else:
            self._values[name] = self._at(place, kind)

    def _place_of(self, value: Any) -> Any:
        """Where the value of a variable that borrows lies; None where it is held in parts."""
        if isinstance(value, ir.Arg):
            return place_of(self.builder, self.fnargs[value.index])
        if isinstance(value, ir.Var):
            return self._places.get(value.name)
        return self._part_of(value) if value.value.name in self._places else None

    def _part_of(self, value: Any) -> Any:
        with self.builder.goto_entry_block():
            return part_at(self.builder, self._places[value.value.name], int(self._place(value) or 0))

    def _at(self, place: Any, kind: Any) -> Any:
        """What lies there: parts are read where the function begins, as what it writes might be there as well for all
        that the compiler knows; whole tuples are seldom wanted.
        """
        if isinstance(kind, BaseNamedTuple):
            return self.builder.load(place)
        with self.builder.goto_entry_block():
            return self.builder.load(place)

    def _part(self, value: Any) -> Any:
        if isinstance(value, ir.Arg):
            return self.fnargs[value.index]
        if isinstance(value, ir.Var):
            return self.loadvar(value.name)
        return self.builder.extract_value(self.loadvar(value.value.name), self._place(value))

    def _hold(self, name: str, value: Any) -> None:
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))
