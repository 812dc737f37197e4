"""Kernels that other kernels call: turned into the compiler's language once, optimised with each kernel they serve.

Numba optimises every function with all that it calls, writes machine code for it, and does so again at each level
above: a kernel over a tree of functions pays for most of them many times. Only those that Python calls need machine
code of their own. Here a function called by a kernel is just lowered, and whoever is called from Python takes in all it
needs, directly or not, as it was lowered, and is optimised once. What a kernel becomes does not depend on what was
compiled before it.

Numbers written in a call (``f(x, 0)``) are taken by their type: numba would lower ``f`` once more for each. Where
shapes do not fit in an assignment to a part of an array, the error does not say what they are: for its text numba would
compile a good part of its strings into every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.environment import lookup_environment
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import NativeLowering
from numba.core.types import unliteral  # type: ignore[attr-defined]
from numba.extending import overload
from numba.np import arrayobj

from exactsel._jit.borrowing import BorrowingLower
from exactsel._jit.quicker import nothing_collected

_ENVIRONMENT = "_ZN08NumbaEnv"
"""What names of globals begin with that stand for a function's environment."""


class _Lowered(JITCodeLibrary):  # type: ignore[misc]
    """The functions of one compilation, which are optimised where they end up, or here when that is asked for.

    Another library of numba's own can link it as ever.
    """

    _as_lowered: Any = None

    _waits = False
    """Whether no machine code is wanted of it, as yet."""

    def _ensure_finalized(self) -> None:
        # Numba asks this of the body of a parallel loop, too, which ends up in the kernel the loop stands in.
        if not self._waits:
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
            lowered = isinstance(library, _Lowered) and not library._disable_inspection
            module = library.as_lowered() if lowered else library._get_module_for_linking()
            self._final_module.link_in(module, preserve=True)
        # What comes in with functions that call functions is inlined in the first round, and only then as small as the
        # inliner of the second takes it to be (Pareto optimisation: half as quick again, for a tenth of the time).
        for _ in range(2):
            self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        self._set_environments()

    def _set_environments(self) -> None:
        """Let the functions taken in find their environments."""
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
            if environment is not None:
                self.codegen.set_env(variable.name, environment)


def _to_link(module: Any) -> Any:
    """A copy whose functions may be met several times."""
    copied = module.clone()
    for function in copied.functions:
        if not function.is_declaration and function.linkage.name == "external":
            function.linkage = "linkonce_odr"
    return copied


def _called_by(library: Any) -> list[Any]:
    """All libraries needed below one, each once, in a fixed order."""
    found: dict[int, Any] = {}
    waiting = list(reversed(library._linking_libraries))
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        if isinstance(each, _Lowered):
            waiting += reversed(each._linking_libraries)
    return list(found.values())


def _raise_misfit(_shape: Any, _place: Any) -> None:
    """In the place of numba's own, which formats both shapes."""


@overload(_raise_misfit)  # type: ignore[untyped-decorator]
def _raising_misfit(_shape: Any, _place: Any) -> Any:
    def misfit(_shape: Any, _place: Any) -> None:
        raise ValueError("what is assigned to a part of an array has another shape than that part")

    return misfit


_RUN = PostProcessor.run


def _without_live_variables(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """What numba does after each change of a function, but for finding out which variables each block begins with: only
    generators and object mode ask for that.
    """
    function = self.func_ir
    if function.is_generator:
        _RUN(self, emit_dels, extend_lifetimes)
        return
    function.blocks = canonicalize_cfg(function.blocks)
    function.variable_lifetime = VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        self._insert_var_dels(extend_lifetimes=extend_lifetimes)


_FOR_PYTHON = ("create_cpython_wrapper", "create_cfunc_wrapper", "get_executable")
"""What a target does so that Python can call a function; the last returns what Python then calls."""

_MAKERS = {name: getattr(CPUContext, name) for name in _FOR_PYTHON}


_MISFIT = "raise_with_shape_context"
"""Where numba looks for what raises an error where shapes do not fit."""


@contextmanager
def _only_lowered(codegen: Any, needed: Callable[[Any], bool]) -> Iterator[None]:
    """While this goes on compilations end before machine code is made, but for the functions that are needed.

    The compiler's lock is held, so that no other compilation is under way.
    """

    def if_needed(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(target: Any, library: Any, descriptor: Any, *arguments: Any, **options: Any) -> Any:
            if needed(descriptor):
                library._waits = False
                return make(target, library, descriptor, *arguments, **options)
            return [].append  # in the place of a compiled function: a built-in that is like no other

        return made

    own = [(codegen, "_library_class", _Lowered), (_Lowered, "_waits", True), (arrayobj, _MISFIT, _raise_misfit)]
    own += [(PostProcessor, "run", _without_live_variables)]
    own += [(NativeLowering, "lowering_class", BorrowingLower)]
    own += [(CPUContext, name, if_needed(_MAKERS[name])) for name in _FOR_PYTHON]
    before = [(owner, name, getattr(owner, name, None)) for owner, name, _ in own]
    for owner, name, value in own:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def separate(entry: Any, inner: Any) -> None:
    """Let kernels call ``inner``, which is only lowered, in the place of ``entry``, the dispatcher Python calls.

    Parameters
    ----------
    entry, inner : Dispatcher
        Of the same function, with the same options.
    """
    codegen, function = entry.targetctx.codegen(), entry.py_func
    compile_entry, lowered_with = entry.compile, inner.get_call_template

    def lower(signature: Any) -> Any:
        arguments, result = sigutils.normalize_signature(signature)
        with global_compiler_lock:
            if tuple(arguments) not in inner.overloads:
                with inner._compiling_counter, _only_lowered(codegen, lambda _: False):
                    inner.overloads[tuple(arguments)] = inner._compiler.compile(arguments, result)
            return inner.overloads[tuple(arguments)].entry_point

    def called_with(arguments: Any, keywords: Any) -> Any:
        arguments = tuple(map(unliteral, arguments))
        return lowered_with(arguments, {name: unliteral(kind) for name, kind in keywords.items()})

    def compiled(signature: Any) -> Any:
        arguments = tuple(sigutils.normalize_signature(signature)[0])

        def is_entry(descriptor: Any) -> bool:
            named = (descriptor.modname, descriptor.qualname) == (function.__module__, function.__qualname__)
            return named and tuple(descriptor.argtypes) == arguments

        with global_compiler_lock, nothing_collected(), _only_lowered(codegen, is_entry):
            return compile_entry(signature)

    entry._compiling_counter = inner._compiling_counter  # by which numba knows recursion
    inner.compile = lower
    entry.get_call_template, entry.get_overload, entry.compile = called_with, inner.get_overload, compiled
