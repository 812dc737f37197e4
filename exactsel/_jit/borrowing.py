"""Parts of arguments without counting references: whoever called holds them for as long as the call lasts.

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
from numba.core.lowering import Lower
from numba.core.types import BaseNamedTuple, BaseTuple  # type: ignore[attr-defined]


class BorrowingLower(Lower):  # type: ignore[misc]
    """Lowers a function as numba does, but for variables that borrow."""

    _borrowed: frozenset[str] = frozenset()

    def pre_lower(self) -> None:
        """Find the variables that borrow."""
        super().pre_lower()
        self._borrowed = frozenset(self._found())

    def lower_inst(self, inst: Any) -> None:
        """Let a variable that borrows take its value, and end, without a count."""
        if isinstance(inst, ir.Assign) and inst.target.name in self._borrowed:
            self._lend(inst.target.name, self._part(inst.value))
        elif not (isinstance(inst, ir.Del) and inst.value in self._borrowed):
            super().lower_inst(inst)

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
        return [name for name in once if self._holds_references(name) and self._borrows(name, once, found)]

    def _holds_references(self, name: str) -> bool:
        return bool(self.context.data_model_manager[self.typeof(name)].contains_nrt_meminfo())

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

    def _part(self, value: Any) -> Any:
        if isinstance(value, ir.Arg):
            return self.fnargs[value.index]
        if isinstance(value, ir.Var):
            return self.loadvar(value.name)
        return self.builder.extract_value(self.loadvar(value.value.name), self._place(value))

    def _lend(self, name: str, value: Any) -> None:
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))
