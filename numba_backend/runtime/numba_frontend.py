"""Kernel source -> Numba's type inference and lowering -> LLVM IR text. The only module that knows Numba's internals.

Numba's own driver (`njit`) spends most of a small kernel's compile time on passes that a kernel cannot need: inlining
of closures, parfors, rewrites, SSA, reference counts, two code generations. Here a kernel goes through bytecode,
Numba IR, type inference and lowering, and nothing else; LLVM then optimises once (llvm_backend.py).

The typing and target contexts are our own and hold only the registrations that kernels use: numbers, ranges, pointers,
intrinsics. The global ones, which load all of Numba's NumPy support, stay untouched.
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
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
from .errors import KernelCompilationError
from .kernel import KernelSource, Parameter

NUMBA_TYPES: dict[str, Any] = {
    "pred": types.uint8, "s8": types.int8, "s16": types.int16, "s32": types.int32, "s64": types.int64,
    "u8": types.uint8, "u16": types.uint16, "u32": types.uint32, "u64": types.uint64,
    "f16": types.uint16, "bf16": types.uint16, "f32": types.float32, "f64": types.float64,
    "c64": types.complex64, "c128": types.complex128,
}  # fmt: skip


def numba_type(parameter: Parameter) -> Any:
    """The Numba type of a kernel parameter: `CPointer(float32)` for a pointer to f32."""
    element = NUMBA_TYPES[parameter.dtype]
    if parameter.kind == "pointer":
        return types.CPointer(element)  # type: ignore[attr-defined]
    return element


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
        """Nothing: what kernels need registers itself when this module imports it."""

    def post_lowering(self, module: Any, library: Any) -> None:
        rewrite_module(module, self.fastmath)


class _Library:
    """What Numba's lowering needs of a code library: it hands out an empty module and takes it back, filled."""

    def __init__(self) -> None:
        self.module: Any = None

    def create_ir_module(self, name: str) -> Any:
        module = llir.Module(name)
        module.triple, module.data_layout = llvm_backend.module_header()
        return module

    def add_ir_module(self, module: Any) -> None:
        self.module = module

    def add_linking_library(self, library: Any) -> None:
        raise errors.LoweringError("a kernel may only use what lowers in place (intrinsics), not compiled functions")


def _body_name(name: str, arguments: Any, **_: Any) -> str:
    """The symbol of the Numba function. It is internal to its object, so that all can have the same."""
    return "body"


class _Lower(lowering.Lower):  # type: ignore[misc]
    """Numba's lowering, without what only functions called from Python need."""

    def emit_environment_object(self) -> None:
        """Nothing: a kernel has no Python objects."""


class _Compiler:
    """The contexts, made once a process."""

    def __init__(self) -> None:
        fastmath = FastMathOptions({"contract"})
        self.flags = Flags()
        self.flags.no_compile = True
        self.flags.nrt = False
        self.flags.boundscheck = False
        self.flags.no_cpython_wrapper = True
        self.flags.no_cfunc_wrapper = True
        self.flags.error_model = "numpy"
        self.flags.fastmath = fastmath
        self.typing = _TypingContext()
        self._base = _TargetContext(self.typing, "cpu")
        self.target = self._base.subtarget(
            fastmath=fastmath, error_model=callconv.create_error_model("numpy", self._base), enable_nrt=False
        )
        self.typing.target = self.target
        self.target.refresh()

    def lower(self, function: Any, arguments: list[Any], result: Any) -> Any:
        """The llvmlite module that holds `function`, as the module's only definition, and its name."""
        identity = bytecode.FunctionIdentity.from_function(function)
        identity.unique_id, identity.unique_name = 0, "body"  # Numba counts; equal kernels must give equal objects
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
        return library.module, descriptor.llvm_func_name


@functools.cache
def _compiler() -> _Compiler:
    try:
        return _Compiler()
    except (AttributeError, ImportError, TypeError) as error:
        raise RuntimeError(
            f"hloom drives Numba's type inference and lowering directly, and Numba {numba.__version__} does not "
            f"have them in the form expected ({error}); install a version that hloom has been tested with"
        ) from error


def to_llvm(kernel: KernelSource, scope: dict[str, object]) -> str:
    """Lower a kernel to LLVM IR text that defines `kernel.symbol` with the machine-level signature of its convention.

    `scope` holds the names that the source may use besides `range`; nothing else is visible to it.
    Raises KernelCompilationError with the numbered source for syntax that Numba does not know and for typing errors.
    """
    with global_compiler_lock:
        compiler = _compiler()
        namespace: dict[str, Any] = {"__builtins__": {"range": range}, **scope}
        arguments = [numba_type(parameter) for parameter in kernel.parameters]
        result = types.int64
        if kernel.convention == "kernel":
            arguments = [types.int64, types.int64, *arguments]
            result = types.none
        try:
            module, name = compiler.lower(_function(kernel, namespace), arguments, result)
        except (errors.NumbaError, SyntaxError, TypeError, NotImplementedError) as error:
            raise KernelCompilationError(kernel.name, kernel.source, str(error)) from error
        function = module.get_global(name)
        function.linkage = "internal"
        if kernel.convention == "kernel":
            for argument in function.args[4:]:
                if isinstance(argument.type, llir.PointerType):
                    argument.add_attribute("noalias")
            _add_kernel_entry(module, function, kernel.symbol)
        else:
            _add_native_entry(module, function, kernel.symbol)
        return str(module)


def _function(kernel: KernelSource, namespace: dict[str, Any]) -> FunctionType:
    """The Python function that the source defines. Nothing of the source is executed to get it."""
    module = compile(kernel.source, f"<hloom {kernel.name}>", "exec")
    for constant in module.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == kernel.name:
            return FunctionType(constant, namespace)
    raise TypeError(f"the source does not define {kernel.name}")


_I64 = llir.IntType(64)


def _call(builder: Any, function: Any, values: list[Any]) -> Any:
    """Call a Numba function: result and exception slots first. Kernels cannot raise, so the status is not looked at."""
    result = builder.alloca(function.args[0].type.pointee)
    exception = builder.alloca(function.args[1].type.pointee)
    builder.call(function, [result, exception, *values])
    return result


def _add_kernel_entry(module: Any, function: Any, symbol: str) -> None:
    """`void symbol(int64 lo, int64 hi, int64 *args)`: loads each parameter from its slot and calls `function`."""
    entry = llir.Function(module, llir.FunctionType(llir.VoidType(), [_I64, _I64, _I64.as_pointer()]), symbol)
    builder = llir.IRBuilder(entry.append_basic_block())
    lo, hi, slots = entry.args
    values = [lo, hi]
    for index, argument in enumerate(function.args[4:]):
        slot = builder.gep(slots, [llir.Constant(_I64, index)])
        values.append(builder.load(builder.bitcast(slot, argument.type.as_pointer())))
    _call(builder, function, values)
    builder.ret_void()


def _add_native_entry(module: Any, function: Any, symbol: str) -> None:
    """`int64 symbol(int64, ...)`: calls `function` and returns its result."""
    entry = llir.Function(module, llir.FunctionType(_I64, [_I64] * (len(function.args) - 2)), symbol)
    builder = llir.IRBuilder(entry.append_basic_block())
    builder.ret(builder.load(_call(builder, function, list(entry.args))))


__all__ = ["NUMBA_TYPES", "numba_type", "to_llvm"]
