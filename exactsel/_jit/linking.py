"""Kernels that other kernels call: turned into the compiler's language once, optimised with each kernel they serve.

Numba optimises every function with all that it calls, writes machine code for it, and does so again at each level
above: a kernel over a tree of functions pays for most of them many times. Only those that Python calls need machine
code of their own. Here a function called by a kernel is just lowered. A kernel called from Python takes in all it
needs, directly or not, as it was lowered, and is optimised once. What a kernel becomes does not depend on what was
compiled before it.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import lookup_environment

_ENVIRONMENT = "_ZN08NumbaEnv"
"""What names of globals begin with that stand for a function's environment."""


class Library(JITCodeLibrary):  # type: ignore[misc]
    """The functions of one compilation, which are optimised where they end up."""

    is_entry = False
    """Whether Python calls its function, so that machine code is wanted of it."""

    _as_lowered: Any = None

    def _ensure_finalized(self) -> None:
        # Numba also calls this for the body of a parallel loop, which ends up in the kernel the loop stands in.
        if self.is_entry:
            super()._ensure_finalized()

    def add_linking_library(self, library: Any) -> None:
        """Remember what is called; other than in numba it stays as it is."""
        self._linking_libraries.append(library)

    def as_lowered(self) -> Any:
        """The functions themselves before any optimisation, without those they call."""
        if self._as_lowered is None:
            self._as_lowered = _to_link(self._final_module)
        return self._as_lowered

    def finalize(self) -> None:
        """Take in all that is called, directly or not, and optimise it together."""
        self._raise_if_finalized()
        self.as_lowered()
        for library in _called_by(self):
            self._reload_init.update(library._reload_init)
            lowered = isinstance(library, Library) and not library._disable_inspection
            module = library.as_lowered() if lowered else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)
        # What comes in with functions that call functions is inlined in the first round, and only then as small as the
        # inliner of the second takes it to be (Pareto optimisation: half as quick again, for a tenth of the time).
        for _ in range(2):
            self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        self._set_environments()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        """What was kept on disk: nothing but what Python calls is."""
        library = super()._unserialize(codegen, state)
        library.is_entry = True
        return library

    def _set_environments(self) -> None:
        """Let the functions taken in find their environments."""
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self.codegen.set_env(variable.name, environment)


class Codegen(JITCPUCodegen):  # type: ignore[misc]
    """Makes libraries of the kind above."""

    _library_class = Library


def _to_link(module: Any) -> Any:
    """A copy whose functions may be met several times."""
    copied = module.clone()
    for function in copied.functions:
        if not function.is_declaration and function.linkage.name == "external":
            function.linkage = "linkonce_odr"
    return copied


def _called_by(library: Any) -> list[Any]:
    """All libraries needed below one, each once, in a fixed order.

    Those that are not ours, such as numba's runtime, are complete, and come last: of what is linked only that is taken
    which something has called before.
    """
    found: dict[int, Any] = {}
    waiting = list(reversed(library._linking_libraries))
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        if isinstance(each, Library):
            waiting += reversed(each._linking_libraries)
    return sorted(found.values(), key=lambda each: not isinstance(each, Library))
