"""A compilation target of our own: numba's for this processor, with our pipeline, our linking and our names.

Numba lets one define a target beside its own: contexts that know types and how to lower, a pipeline, dispatchers, and
entries in three registries that say which target they belong to. What is compiled for this target, numba's own
functions that kernels call included, is compiled again for it and shares nothing with what others compile, so that
nothing of numba's has to be replaced.

Symbols of machine code hold numbers that numba gives to functions as they are compiled. What one process has cached
holds copies of the kernels it calls, so where another process gave the same number to the same kernel two symbols of
one name would meet when both are loaded, one of them without what it needs: calls of it would fail. Our functions are
numbered from some place of each process's own on.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from functools import cached_property
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from numba.core import compiler, cpu, errors, externals, sigutils, types, typing, utils
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.errors import new_error_context  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher, CPUTarget, cpu_target
from numba.core.runtime import rtsys
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_override, target_registry
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import ExtractByteCode
from numba.extending import overload
from numba.np.arrayobj import raise_with_shape_context

from exactsel._jit.elements import References
from exactsel._jit.elide_refcounts import ElidingLower
from exactsel._jit.linking import Codegen
from exactsel._jit.tuples_by_address import CallConvention, models

NAME = "exactsel"
"""Of the target."""


class Target(CPU):  # type: ignore[misc]
    """By which numba knows what is meant for our target alone."""


class Flags(compiler.Flags):  # type: ignore[misc]
    """Numba's flags, compared by their values: numba compares them a hundred thousand times in what one search
    compiles, entry by entry through properties.
    """

    __slots__ = ()

    _hash: int | None = None

    def __hash__(self) -> int:
        """That of numba's: of the names of all flags, without their values."""
        cls = type(self)
        if cls._hash is None:
            cls._hash = super().__hash__()
        return cls._hash

    def __eq__(self, other: object) -> Any:
        """Whether all flags have the same value, set or not."""
        if type(other) is not type(self):
            return super().__eq__(other)
        mine, others = self._values, other._values
        return mine == others or all(getattr(self, name) == getattr(other, name) for name in {*mine, *others})


class Identity(FunctionIdentity):  # type: ignore[misc]
    """Names of functions that no other process gives."""

    _unique_ids = count(secrets.randbelow(2**62))

    @classmethod
    def begin_anew(cls) -> None:
        """Number from another place on."""
        cls._unique_ids = count(secrets.randbelow(2**62))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Identity.begin_anew)


@register_pass(mutates_CFG=True, analysis_only=False)
class Lowering(NativeLowering):  # type: ignore[misc]
    """Lowers without counting references to parts of arguments."""

    _name = "exactsel_lowering"

    @property
    def lowering_class(self) -> Any:
        """What lowers a function."""
        return ElidingLower


class Passes(PassManager):  # type: ignore[misc]
    """Runs passes without asking after each whether it kept numba's own rules."""

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
        pss.analysis = self._analysis
        with new_error_context("Pass {name}", name=pss.name()):
            pss.run_initialization(internal_state)
            pss.run_pass(internal_state)
            pss.run_finalizer(internal_state)


class Pipeline(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's passes, with our lowering and our names."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function, as numba does."""
        self.state.func_id = Identity.from_function(func)
        ExtractByteCode().run_pass(self.state)
        self.state.lifted = ()
        self.state.lifted_from = None
        return self._compile_bytecode()

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        passes = Passes(NAME)
        for each, description in compiler.DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            passes.add_pass(Lowering if each is NativeLowering else each, description)
        passes.finalize()
        return [passes]


class TypingContext(typing.Context):  # type: ignore[misc]
    """Knows the types of functions; other people's compiled functions are compiled for our target when kernels call
    them. What numba's own functions return for some types of arguments is found out once: it tries all templates it has
    for an operator in turn, and an addition of numbers is met thousands of times.
    """

    def init(self) -> None:
        """Begin without any."""
        super().init()
        self._resolved: dict[tuple[Any, Any], Any] = {}

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        if kws or not isinstance(func, types.Function):
            return super().resolve_function_type(func, args, kws)
        if (func, args) not in self._resolved:
            found = super().resolve_function_type(func, args, kws)
            if found is None:
                return None
            self._resolved[func, args] = found, func.get_impl_key(found)
        found, meant = self._resolved[func, args]
        # The called function is noted in the type of numba's own, which is that of all targets: a compilation of a call
        # of it since has noted another one.
        func._impl_keys[found.args] = meant  # type: ignore[attr-defined]
        return found

    def resolve_value_type(self, val: Any) -> Any:
        """The type of a global or a constant."""
        if isinstance(val, CPUDispatcher) and not isinstance(val, Lowered):
            val = _adopted(val)
        return super().resolve_value_type(val)


class TargetContext(cpu.CPUContext):  # type: ignore[misc]
    """Knows how to lower; makes machine code of what Python calls alone."""

    def init(self) -> None:
        """Begin with libraries of our kind."""
        self.is32bit = utils.MACHINE_BITS == 32
        self._internal_codegen = Codegen("exactsel.exec")
        self.data_model_manager = models()
        externals.c_math_functions.install(self)

    @property
    def call_conv(self) -> CallConvention:
        """How functions are called."""
        return CallConvention(self)

    @cached_property
    def nrt(self) -> References:
        """How references are counted."""
        return References(self, self.enable_nrt)

    def load_additional_registries(self) -> None:
        """Those of numba's own target; its runtime belongs to that."""
        rtsys.initialize(cpu_target.target_context)
        super().load_additional_registries()

    def create_cpython_wrapper(self, library: Any, *arguments: Any, **options: Any) -> None:
        """What Python calls."""
        if library.is_entry:
            super().create_cpython_wrapper(library, *arguments, **options)

    def create_cfunc_wrapper(self, library: Any, *arguments: Any, **options: Any) -> None:
        """Nothing: no function with a C signature is needed."""

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        """What Python calls, or in its place a built-in that is like no other."""
        return super().get_executable(library, fndesc, env) if library.is_entry else [].append

    def _compile_subroutine_no_cache(
        self, builder: Any, impl: Any, sig: Any, locals: Any = None, flags: Any = None
    ) -> Any:
        with global_compiler_lock:
            chosen = Flags(flags)
            if flags is None and ConfigStack() and ConfigStack().top().nrt:
                chosen.nrt = True
            chosen.no_compile = chosen.no_cpython_wrapper = chosen.no_cfunc_wrapper = True
            library = self.codegen().create_library(impl.__name__)
            made = compiler.compile_extra(
                self.typing_context, self, impl, sig.args, sig.return_type, chosen, locals or {}, library, Pipeline
            )
            self.active_code_library.add_linking_library(made.library)
            return made


class _Descriptor(CPUTarget):  # type: ignore[misc]
    """Where contexts of our target are found."""

    @utils.threadsafe_cached_property  # type: ignore[untyped-decorator]
    def _toplevel_typing_context(self) -> TypingContext:
        return TypingContext()

    @utils.threadsafe_cached_property  # type: ignore[untyped-decorator]
    def _toplevel_target_context(self) -> TargetContext:
        return TargetContext(self.typing_context, NAME)


class FunctionCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Compiles a function for our target."""

    is_entry = False
    """Whether Python calls what it makes."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        flags, target = Flags(), self.targetdescr.target_context
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        library = target.codegen().create_library(self.py_func.__qualname__)
        library.is_entry = self.is_entry
        library.enable_object_caching()
        return compiler.compile_extra(
            self.targetdescr.typing_context,
            target,
            self.py_func,
            args,
            return_type,
            flags,
            self.locals,
            library,
            self.pipeline_class,
        )


class Lowered(CPUDispatcher):  # type: ignore[misc]
    """A function that kernels call: it is lowered and nothing else."""

    targetdescr = _Descriptor(NAME)
    compiler_class = FunctionCompiler

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, pipeline_class: Any = Pipeline):
        with target_override(NAME):
            super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._compiler = self.compiler_class(py_func, self.targetdescr, self.targetoptions, self.locals, pipeline_class)

    def compile(self, sig: Any) -> Any:
        """Lower it for these types of arguments, once."""
        args, return_type = sigutils.normalize_signature(sig)
        args = tuple(args)
        with global_compiler_lock, target_override(NAME), self._compiling_counter:
            if args not in self.overloads:
                try:
                    self.overloads[args] = self._compiler.compile(args, return_type)
                except errors.ForceLiteralArg as error:
                    fold = self._compiler.fold_argument_types
                    raise error.bind_fold_arguments(lambda given, named: fold(given, named)[1]) from None
            return self.overloads[args].entry_point


def _lowered(**options: Any) -> Callable[[Any], Lowered]:
    """What numba takes for ``jit`` where it compiles functions of its own for our target."""
    return lambda function: Lowered(function, targetoptions={"nopython": True, **options})


_others: WeakKeyDictionary[Any, Lowered] = WeakKeyDictionary()


def _adopted(dispatcher: Any) -> Lowered:
    """What stands for a function compiled by numba where a kernel calls it."""
    if dispatcher not in _others:
        _others[dispatcher] = Lowered(dispatcher.py_func, dispatcher.locals, dispatcher.targetoptions)
    return _others[dispatcher]


target_registry[NAME] = Target
dispatcher_registry[Target] = Lowered
jit_registry[Target] = _lowered


@overload(raise_with_shape_context, target=NAME)  # type: ignore[untyped-decorator]
def _raise_misfit(src_shapes: Any, index_shape: Any) -> Any:
    """In the place of numba's own, which formats both shapes: it would compile a good part of its strings into every
    kernel.
    """

    def misfit(src_shapes: Any, index_shape: Any) -> None:
        raise ValueError("what is assigned to a part of an array has another shape than that part")

    return misfit
