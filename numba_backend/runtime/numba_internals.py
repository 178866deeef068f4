"""Numba's typing and lowering, without `njit`. Code that depends on Numba's internals belongs here: other modules use
Numba's types, errors, compiler lock and `numba.extending`, and no more.

Numba's own driver spends most of a small kernel's compile time on passes that a kernel does not need: inlining of
closures, parfors, rewrites, SSA, reference counts, two code generations. `NumbaCompiler.lower` runs only bytecode
analysis, Numba IR, type inference and lowering; `one_pass.py` uses only the two contexts.

The contexts are hloom's own and hold only the registrations that kernels use: numbers, ranges, pointers, intrinsics.
Numba's global contexts, which load all of its NumPy support (0.4 s), stay untouched.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import llvmlite.ir as llir
import numba
from numba.core import bytecode, callconv, cpu, errors, funcdesc, interpreter, lowering, postproc, typeinfer, types
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu_options import FastMathOptions
from numba.core.fastmathpass import rewrite_module
from numba.core.targetconfig import ConfigStack
from numba.core.typing import BaseContext, templates
from numba.cpython import builtins, numbers, rangeobj  # noqa: F401  (importing registers how they are lowered)
from numba.extending import _Intrinsic

from . import llvm_backend

_FASTMATH = FastMathOptions({"contract"})


def allow_contraction(module: Any) -> None:
    """Allow each floating-point instruction without fast-math flags to be fused into a multiply-add."""
    rewrite_module(module, _FASTMATH)


def new_module() -> Any:
    """An empty LLVM module for this CPU."""
    module = llir.Module("kernel")
    module.triple, module.data_layout = llvm_backend.module_header()
    return module


_ADDRESS = re.compile(r"(?<=\.const\.pickle)([a-z]+)\.(\d+)\b")


def without_addresses(text: str) -> str:
    """LLVM IR without the addresses by which Numba, before 0.67, names stored exceptions: equal kernels, equal text."""
    found: dict[str, int] = {}
    return _ADDRESS.sub(lambda m: f"{m[1]}.{found.setdefault(m[2], len(found))}", text)


class _TypingContext(BaseContext):  # type: ignore[misc]
    """Typing templates of plain numbers and pointers only; `@overload`s belong to Numba's CPU target."""

    def __init__(self) -> None:
        super().__init__()
        self.target: Any = None
        self._intrinsics: dict[Any, Any] = {}

    def _load_builtins(self) -> None:
        self.install_registry(templates.builtin_registry)

    def _lookup_global(self, value: Any) -> Any:
        if not isinstance(value, _Intrinsic):
            return super()._lookup_global(value)
        known = self._intrinsics.get(value)
        if known is None:
            name = f"Intrinsic_{value._name}"
            template = type(name, (_IntrinsicTemplate,), {"key": value, "definition": staticmethod(value._defn)})
            known = self._intrinsics[value] = types.Function(template)
        return known

    def install_registry(self, registry: Any) -> None:
        loader = self._registries.get(registry)
        if loader is None:
            loader = self._registries[registry] = templates.RegistryLoader(registry)
        for template in loader.new_registrations("functions"):
            if not issubclass(template, (templates._OverloadFunctionTemplate, templates._IntrinsicTemplate)):
                self.insert_function(template(self))
        for template in loader.new_registrations("attributes"):
            if not issubclass(template, templates._OverloadAttributeTemplate):
                self.insert_attributes(template(self))
        for value, type_ in loader.new_registrations("globals"):
            if isinstance(value, _Intrinsic):
                continue
            known = self._lookup_global(value)
            if known is None:
                self.insert_global(value, type_)
            else:
                self._remove_global(value)
                self._insert_global(value, known.augment(type_))


class _IntrinsicTemplate(templates.AbstractTemplate):  # type: ignore[misc]
    """The type of one `@intrinsic`. Numba's own template would first load all of Numba's CPU target."""

    definition: Any
    prefer_literal = True

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._implementations: dict[Any, Any] = {}

    def generic(self, args: Any, kws: Any) -> Any:
        typed = self.definition(self.context, *args, **kws)
        if typed is None:
            return None
        signature, implementation = typed
        self._implementations[signature.args] = implementation
        self.context.target.insert_func_defn([(implementation, implementation, signature.args)])
        return signature

    def get_impl_key(self, signature: Any) -> Any:
        return self._implementations[signature.args]


class _TargetContext(cpu.CPUContext):  # type: ignore[misc]
    """Lowering of plain numbers and pointers only; no reference counts, no third-party extensions."""

    def load_additional_registries(self) -> None:
        """Does nothing: importing this module registers what kernels need."""

    def post_lowering(self, module: Any, library: Any) -> None:
        allow_contraction(module)


class _Library:
    """The part of a code library that Numba's lowering needs: gives out an empty module and takes the filled one."""

    def __init__(self) -> None:
        self.module: Any = None

    def create_ir_module(self, name: str) -> Any:
        return new_module()

    def add_ir_module(self, module: Any) -> None:
        self.module = module

    def add_linking_library(self, library: Any) -> None:
        raise errors.LoweringError("a kernel may only use what lowers in place (intrinsics), not compiled functions")


def _body_name(name: str, arguments: Any, **_: Any) -> str:
    """The symbol of the Numba function. It is internal to its object, so all kernels can have the same one."""
    return "body"


class _Lower(lowering.Lower):  # type: ignore[misc]
    """Numba's lowering, without the parts for functions that Python calls."""

    def emit_environment_object(self) -> None:
        """Does nothing: a kernel has no Python objects."""


class NumbaCompiler:
    """The contexts, made once for a process, and Numba's whole front end."""

    def __init__(self) -> None:
        self.flags = Flags()
        self.flags.no_compile = True
        self.flags.nrt = False
        self.flags.boundscheck = False
        self.flags.no_cpython_wrapper = True
        self.flags.no_cfunc_wrapper = True
        self.flags.error_model = "numpy"
        self.flags.fastmath = _FASTMATH
        self.typing = _TypingContext()
        self._base = _TargetContext(self.typing, "cpu")
        self.target = self._base.subtarget(
            fastmath=_FASTMATH, error_model=callconv.create_error_model("numpy", self._base), enable_nrt=False
        )
        self.typing.target = self.target
        self.one_pass_target = self.target.subtarget()
        self.one_pass_target._codelib_stack = [_Library()]
        self.target.refresh()

    def lower(self, function: Any, arguments: list[Any], result: Any) -> Any:
        """Lower `function` to the LLVM function `body` of a new module, with Numba's calling convention.

        This is `int32 body(result *, exception **, arguments...)`. `result` is a type; `types.none` means no result.
        """
        identity = bytecode.FunctionIdentity.from_function(function)
        identity.unique_id, identity.unique_name = 0, "body"  # Numba counts up; equal kernels must give equal objects
        ir = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
        if ir.arg_count != len(arguments):
            raise TypeError(f"the function takes {ir.arg_count} arguments, {len(arguments)} parameters are given")
        fixer = errors.WarningsFixer(errors.NumbaWarning)  # type: ignore[attr-defined]
        inference = typeinfer.TypeInferer(self.typing, ir, fixer)
        with self.typing.callstack.register(self.target.target, inference, identity, arguments):
            for index, (name, type_) in enumerate(zip(ir.arg_names, arguments)):
                inference.seed_argument(name, index, type_)
            if result is not types.none:
                inference.seed_return(result)
            inference.build_constraint()
            inference.propagate()
            typemap, returned, calltypes = inference.unify()
        if returned != result:
            raise TypeError(f"the function returns {returned}, not {result}")
        postproc.PostProcessor(ir).run(emit_dels=True)
        with ConfigStack().enter(self.flags):
            descriptor = funcdesc.PythonFunctionDescriptor.from_specialized_function(
                ir, typemap, returned, calltypes, mangler=_body_name, inline=False, noalias=False, abi_tags=()
            )
            library = _Library()
            with self.target.push_code_library(library):
                _Lower(self.target, library, descriptor, ir, metadata={}).lower()
        return library.module.get_global(descriptor.llvm_func_name)


@functools.cache
def numba_compiler() -> NumbaCompiler:
    """This process's compiler. RuntimeError when this version of Numba does not have the expected internals."""
    try:
        with global_compiler_lock:
            return NumbaCompiler()
    except (AttributeError, ImportError, TypeError) as error:
        raise RuntimeError(
            f"hloom drives Numba's type inference and lowering directly, and Numba {numba.__version__} does not "
            f"have them in the form expected ({error}); install a version that hloom has been tested with"
        ) from error
