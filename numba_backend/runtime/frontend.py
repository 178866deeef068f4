"""Translate kernel source to LLVM IR text.

There are two ways, with the same typing rules: one_pass.py, which takes a few milliseconds, needs llvmlite only and
lowers loop programs (the emitter's own, or what loops/reader.py reads in the text); and Numba itself
(numba_frontend.py), for kernels that ask for it and for texts that the first way refuses.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

import llvmlite.ir as llir

from ..loops.reader import NotALoopProgram, read
from ..loops.statements import LoopProgram
from ..loops.typing import SHORT, pointer_to
from ..machine import this_machine
from .dialect_define import DialectError
from .kernel import KernelSource, Parameter
from .llvm_backend import host_features
from .llvm_values import NoSuchType, new_module
from .math.slow_path import add_attribute
from .one_pass import OnePass, Refused

Way = Literal["one pass", "numba"]

_HALVED = 64
"""A register size in bytes. LLVM by itself uses half of such registers on some processors."""


def type_of(parameter: Parameter) -> str:
    """The type of a kernel parameter: ``float32*`` for a pointer to f32."""
    element = SHORT[parameter.dtype]
    return pointer_to(element) if parameter.kind == "pointer" else element


def to_llvm(
    kernel: KernelSource,
    scope: dict[str, object],
    way: Way | None = None,
    features: frozenset[str] | None = None,
    register: int | None = None,
) -> str:
    """Lower a kernel to LLVM IR text that defines `kernel.symbol` with the machine-level signature of its convention.

    `scope` holds the names that the source may use besides `range`; it sees no others. `way` forces one of the two
    ways, for tests. `features`: what may be used of the processor; `register`: bytes of the vectors that short loops
    become, 0: none. None: as this machine has them.

    Raises KernelCompilationError with the numbered source if the kernel does not compile.
    """
    arguments = [type_of(parameter) for parameter in kernel.parameters]
    register = this_machine().register_bytes if register is None else register
    if kernel.convention == "kernel":
        arguments = ["int64", "int64", *arguments]
    program, refused = kernel.program, ""
    if program is None:
        try:
            program = read(kernel.source, arguments, kernel.name)
        except (NotALoopProgram, SyntaxError) as error:
            refused = str(error)
    width = (program.vector_bits if program else 0) or (8 * register if register >= _HALVED else 0)
    way = way or kernel.compiler
    if way == "numba":
        return _by_numba(kernel, scope, arguments, width)
    try:
        chosen = host_features() if features is None else features
        if program is None:
            raise Refused(refused)
        function = _by_one_pass(kernel, program, scope, arguments, chosen, register, width)
    except (Refused, DialectError, NoSuchType):  # errors that a text can cause
        if way is not None:
            raise
        return _by_numba(kernel, scope, arguments, width)
    function.attributes.add("alwaysinline")  # first of all, so that LLVM simplifies it once and not twice
    if kernel.convention == "kernel":
        for argument in function.args:
            if isinstance(argument.type, llir.PointerType):
                argument.add_attribute("noalias")
        _add_kernel_entry(function, kernel.symbol, width)
    else:
        _add_native_entry(function, kernel.symbol)
    text = str(function.module)
    _take_apart(function.module)
    return text


def _take_apart(module: Any) -> None:
    """Free the nodes of llvmlite's IR, thousands for a kernel: they refer to one another, so that otherwise the
    collector would have to find them at the end of the compilation."""
    for value in module.globals.values():
        if isinstance(value, llir.Function):
            for block in value.blocks:
                block.instructions.clear()
                block.terminator = None
            value.blocks.clear()
            value.args, value.return_value = (), None
    module.globals.clear()


def _by_numba(kernel: KernelSource, scope: dict[str, object], arguments: list[str], width: int) -> str:
    text: str = import_module(".numba_frontend", __package__).lower(kernel, scope, arguments, _attributes(width))
    return text


def _by_one_pass(
    kernel: KernelSource, program: LoopProgram, scope: dict[str, object], arguments: list[str],
    features: frozenset[str], register: int, width: int,
) -> Any:  # fmt: skip
    if kernel.convention != "kernel":  # pointers may alias
        return OnePass(scope, new_module(), features).lower(program, arguments, "int64")
    return OnePass(scope, new_module(), features, register, _attributes(width)).lower(program, arguments, None)


def _attributes(width: int) -> list[str]:
    """The attributes of functions that work on arrays. `width`: of their vectors in bits; 0: as LLVM thinks best."""
    # LLVM decides too late that vectors on the stack should be aligned: spills that crossed a cache line made kernels
    # half as fast, in threads with a stack that began at the wrong place.
    return ['"stackrealign"', *([f'"prefer-vector-width"="{width}"'] if width else [])]


_I64 = llir.IntType(64)


def _add_kernel_entry(function: Any, symbol: str, width: int) -> None:
    """`void symbol(int64 lo, int64 hi, int64 *args)`: loads each parameter from its slot and calls `function`. `width`:
    of its vectors in bits; 0: as LLVM thinks best."""
    kind = llir.FunctionType(llir.VoidType(), [_I64, _I64, _I64.as_pointer()])
    entry = llir.Function(function.module, kind, symbol)
    for attribute in _attributes(width):
        add_attribute(entry, attribute)
    builder = llir.IRBuilder(entry.append_basic_block())
    lo, hi, slots = entry.args
    values = [lo, hi]
    for index, argument in enumerate(function.args[2:]):
        slot = builder.gep(slots, [llir.Constant(_I64, index)])
        values.append(builder.load(builder.bitcast(slot, argument.type.as_pointer())))
    builder.call(function, values)
    builder.ret_void()


def _add_native_entry(function: Any, symbol: str) -> None:
    """`int64 symbol(int64, ...)`: calls `function` and returns its result."""
    kind = llir.FunctionType(_I64, [_I64] * len(function.args))
    entry = llir.Function(function.module, kind, symbol)
    builder = llir.IRBuilder(entry.append_basic_block())
    builder.ret(builder.call(function, list(entry.args)))
