"""Kernel source -> LLVM IR text.

There are two ways, both with Numba's typing rules and lowering: one_pass.py, which takes a few milliseconds and lowers
loop programs (the emitter's own, or what loops/reader.py reads in the text); and, for what these refuse, Numba's whole
front end (numba_internals.py), which also words the errors.
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import Any, Literal

import llvmlite.ir as llir
from numba.core import errors, types

from ...hlo.forking import Order, kept_out_of_forks
from ..loops.reader import NotALoopProgram, read
from .errors import KernelCompilationError
from .kernel import KernelSource, Parameter
from .numba_internals import Rules, compiler_lock, compiler_lock_itself, new_module, numba_compiler, without_addresses
from .one_pass import OnePass, Refused

kept_out_of_forks(Order.COMPILER, lambda: compiler_lock_itself)  # a thread of the user may compile with Numba

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


Way = Literal["one pass", "numba"]


def to_llvm(kernel: KernelSource, scope: dict[str, object], way: Way | None = None) -> str:
    """Lower a kernel to LLVM IR text that defines `kernel.symbol` with the machine-level signature of its convention.

    `scope` holds the names that the source may use besides `range`; it sees no others. `way` forces one of the two
    ways, for tests. Raises KernelCompilationError with the numbered source if the kernel does not compile.
    """
    arguments = [numba_type(parameter) for parameter in kernel.parameters]
    if kernel.convention == "kernel":
        arguments = [types.int64, types.int64, *arguments]
    function, by_numba = None, False
    if way != "numba":
        try:
            function = _by_one_pass(kernel, scope, arguments)
        except (Refused, errors.NumbaError, SyntaxError, TypeError, NotImplementedError):
            if way is not None:
                raise
    if function is None:
        function = _by_numba(kernel, scope, arguments)
        by_numba = True
    function.attributes.add("alwaysinline")  # first of all, so that LLVM simplifies it once and not twice
    leading = len(function.args) - len(arguments)
    if kernel.convention == "kernel":
        for argument in function.args[leading:]:
            if isinstance(argument.type, llir.PointerType):
                argument.add_attribute("noalias")
        _add_kernel_entry(function, leading, kernel.symbol)
    else:
        _add_native_entry(function, leading, kernel.symbol)
    return without_addresses(str(function.module)) if by_numba else str(function.module)


@functools.cache
def dialect_rules() -> Rules:
    """What Numba says about the operations of kernels; of this process."""
    return Rules(numba_compiler())


def _by_one_pass(kernel: KernelSource, scope: dict[str, object], arguments: list[Any]) -> Any:
    program = kernel.program
    if program is None:
        try:
            program = read(kernel.source, [str(argument) for argument in arguments], kernel.name)
        except NotALoopProgram as error:
            raise Refused(str(error)) from error
    result = None if kernel.convention == "kernel" else types.int64
    return OnePass(dialect_rules(), scope, new_module()).lower(program, arguments, result)


def _by_numba(kernel: KernelSource, scope: dict[str, object], arguments: list[Any]) -> Any:
    namespace: dict[str, Any] = {"__builtins__": {"range": range}, **scope}
    result = types.none if kernel.convention == "kernel" else types.int64
    try:
        with compiler_lock:
            function = numba_compiler().lower(_function(kernel, namespace), arguments, result)
    except (errors.NumbaError, SyntaxError, TypeError, NotImplementedError) as error:
        raise KernelCompilationError(kernel.name, kernel.source, str(error)) from error
    function.linkage = "internal"
    return function


def _function(kernel: KernelSource, namespace: dict[str, Any]) -> FunctionType:
    """The Python function that the source defines. Nothing in the source is executed for this."""
    module = compile(kernel.source, f"<hloom {kernel.name}>", "exec")
    for constant in module.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == kernel.name:
            return FunctionType(constant, namespace)
    raise TypeError(f"the source does not define {kernel.name}")


_I64 = llir.IntType(64)


def _call(builder: Any, function: Any, leading: int, values: list[Any]) -> Any:
    """Call a lowered function; the result, if it has one.

    In Numba's calling convention a leading pointer is for the result, another one for an exception, and the status is
    returned. Kernels cannot raise, so the status is ignored.
    """
    if not leading:
        return builder.call(function, values)
    slots = [builder.alloca(argument.type.pointee) for argument in function.args[:leading]]
    builder.call(function, [*slots, *values])
    return builder.load(slots[0])


def _add_kernel_entry(function: Any, leading: int, symbol: str) -> None:
    """`void symbol(int64 lo, int64 hi, int64 *args)`: loads each parameter from its slot and calls `function`."""
    kind = llir.FunctionType(llir.VoidType(), [_I64, _I64, _I64.as_pointer()])
    entry = llir.Function(function.module, kind, symbol)
    builder = llir.IRBuilder(entry.append_basic_block())
    lo, hi, slots = entry.args
    values = [lo, hi]
    for index, argument in enumerate(function.args[leading + 2 :]):
        slot = builder.gep(slots, [llir.Constant(_I64, index)])
        values.append(builder.load(builder.bitcast(slot, argument.type.as_pointer())))
    _call(builder, function, leading, values)
    builder.ret_void()


def _add_native_entry(function: Any, leading: int, symbol: str) -> None:
    """`int64 symbol(int64, ...)`: calls `function` and returns its result."""
    kind = llir.FunctionType(_I64, [_I64] * (len(function.args) - leading))
    entry = llir.Function(function.module, kind, symbol)
    builder = llir.IRBuilder(entry.append_basic_block())
    builder.ret(_call(builder, function, leading, list(entry.args)))
