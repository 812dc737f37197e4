"""Kernels that other kernels call: turned into the compiler's language once, optimised with each kernel they serve.

Numba optimises every function with all that it calls, writes machine code for it, and does so again at each level
above: a kernel over a tree of functions pays for most of them many times. Only those that Python calls need machine
code of their own. Here a function called by a kernel is just lowered, and whoever is called from Python takes in all it
needs, directly or not, as it was lowered, and is optimised once. What a kernel becomes does not depend on what was
compiled before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from llvmlite.binding import parse_assembly
from llvmlite.binding.newpassmanagers import (
    create_new_function_pass_manager,
    create_pass_builder,
    create_pipeline_tuning_options,
)
from numba.core.cgutils import normalize_ir_text
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.environment import lookup_environment

_ENVIRONMENT = "_ZN08NumbaEnv"
"""What names of globals begin with that stand for a function's environment."""


REORDERED = " reassoc"
"""What stands in the text of a function whose additions may be reordered."""

INLINED = 100
"""What a call may cost that is inlined, in LLVM's measure, less than the 250 of its own: kernels are not quicker with
more, and longer.
"""


class Library(JITCodeLibrary):  # type: ignore[misc]
    """The functions of one compilation, which are optimised where they end up."""

    is_entry = False
    """Whether Python calls its function, so that machine code is wanted of it."""

    _as_lowered: Any = None

    def _ensure_finalized(self) -> None:
        # Numba asks this of the body of a parallel loop, too, which ends up in the kernel the loop stands in.
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

    def add_ir_module(self, ir_module: Any) -> None:
        """Take in a function as it was lowered."""
        text = normalize_ir_text(str(ir_module))
        module = parse_assembly(text)
        module.name, module.data_layout = ir_module.name, self._codegen._data_layout
        self._optimize(module, sums=REORDERED in text)
        self._final_module.link_in(module)

    def _optimize(self, module: Any, sums: bool) -> None:
        """Make a function small before it is linked.

        Where additions may be reordered all passes are run, as their order decides about the last bits.
        """
        passes, builder = self._codegen.thorough_passes if sums else self._codegen.function_passes
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def finalize(self) -> None:
        """Take in all that is called, directly or not, and optimise it together."""
        self._raise_if_finalized()
        self.as_lowered()
        for library in _called_by(self):
            self._reload_init.update(library._reload_init)
            lowered = isinstance(library, Library) and not library._disable_inspection
            module = library.as_lowered() if lowered else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)
        self._optimize_together()
        self._final_module.verify()
        self._finalize_final_module()
        self._set_environments()

    def _optimize_together(self) -> None:
        # What comes in with functions that call functions is inlined in the first round, and only then as small as the
        # inliner of the second takes it to be (Pareto optimisation: half as quick again). Loops become vectors in the
        # second alone, and none is unrolled: that makes code half as long again, and no kernel quicker.
        for passes, builder in self._codegen.module_passes():
            passes.run(self._final_module, builder)

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

    @cached_property
    def function_passes(self) -> Any:
        """What is run on every function by itself: what its variables are, and no more."""
        passes = create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_refprune_pass()
        return passes, self._passes_made(vectors=False)

    @cached_property
    def thorough_passes(self) -> Any:
        """What numba runs on every function by itself."""
        return self._function_pass_manager()

    def module_passes(self) -> Iterator[Any]:
        """What is run on all that is in a kernel, in turn; running uses them up."""
        yield self._module_pass_manager(opt=0, loop_vectorize=False, cost="cheap")
        for vectors in (False, True):
            builder = self._passes_made(vectors)
            passes = builder.getModulePassManager()
            passes.add_refprune_pass()
            yield passes, builder

    def _passes_made(self, vectors: bool) -> Any:
        options = create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.loop_unrolling = vectors, False
        options.slp_vectorization, options.inlining_threshold = False, INLINED
        return create_pass_builder(self._tm, options)


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
