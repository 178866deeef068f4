"""Compile kernel source to LLVM IR with Numba's public interface. Imports Numba, with all of its NumPy support.

`numba.njit` compiles the kernel's own text. A `numba.cfunc` around it reads the parameters from the table of words that
the runtime passes. `inspect_llvm()` is the code of both, and is stored and loaded as other kernels' code is.
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as llir
import numba
from numba import types
from numba.core import errors
from numba.extending import intrinsic

from ...hlo.support.forking import Order, fork_lock
from .errors import KernelCompilationError
from .kernel import KernelSource
from .llvm_backend import target_machine
from .numba_dialect import numba_scope, numba_type

_lock = fork_lock(Order.COMPILER)

_OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}, "boundscheck": False}
"""The options that `hloom.kernel_globals` documents."""


def lower(kernel: KernelSource, scope: dict[str, object], arguments: list[str], attributes: list[str]) -> str:
    """LLVM IR that defines `kernel.symbol` with the signature of the kernel's convention, and nothing else that can be
    seen from outside. `attributes`: of that function. Raises KernelCompilationError."""
    given = [numba_type(name) for name in arguments]
    try:
        with _lock:
            function: Any = _function(kernel, {"range": range, **numba_scope(scope)})
            if kernel.convention == "native":
                made = numba.cfunc(types.int64(*given), **_OPTIONS)(function)
                return _exporting(kernel.symbol, made, ["i64"] * len(given), "i64", attributes)
            compiled = numba.njit(tuple(given), **_OPTIONS)(function)
            (signature,) = compiled.nopython_signatures
            if signature.return_type != types.none:
                raise TypeError(f"the function returns {signature.return_type}, and not nothing")
            entry = _reading_words(compiled, arguments)
            made = numba.cfunc(types.void(types.int64, types.int64, _WORDS), **_OPTIONS)(entry)
            return _exporting(kernel.symbol, made, ["i64", "i64", "ptr"], "void", attributes)
    except (errors.NumbaError, SyntaxError, TypeError, NotImplementedError) as error:
        raise KernelCompilationError(kernel.name, kernel.source, str(error)) from error


def _function(kernel: KernelSource, namespace: dict[str, Any]) -> FunctionType:
    """The Python function that the source defines. Nothing in the source is executed for this."""
    module = compile(kernel.source, f"<hloom {kernel.name}>", "exec")
    for constant in module.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == kernel.name:
            unknown = [name for name in constant.co_names if name not in namespace]
            if unknown:  # Numba would look for them among Python's own
                raise TypeError(f"the source uses {', '.join(unknown)}")
            return FunctionType(constant, namespace)
    raise TypeError(f"the source does not define {kernel.name}")


_WORDS = types.CPointer(types.int64)


def _reading_words(compiled: Any, arguments: list[str]) -> Any:
    """`entry(lo, hi, words)`, which calls a compiled kernel with the parameters that a table of words has."""
    readers = {f"word{k}": _word(k, name) for k, name in enumerate(arguments[2:])}
    namespace: dict[str, Any] = {"kernel": compiled, **readers}
    values = ", ".join(["lo", "hi", *(f"{name}(words)" for name in readers)])
    exec(f"def entry(lo, hi, words):\n    kernel({values})\n", namespace)
    return namespace["entry"]


@functools.cache
def _word(number: int, name: str) -> Any:
    """An intrinsic that reads a parameter of a type from its place in the table."""
    type_ = numba_type(name)

    @intrinsic  # type: ignore[untyped-decorator]
    def word(typingctx: Any, words: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            slot = builder.gep(values[0], [llir.Constant(llir.IntType(64), number)])
            return builder.load(builder.bitcast(slot, context.get_value_type(type_).as_pointer()))

        return type_(words), codegen

    return word


def _exporting(symbol: str, made: Any, kinds: list[str], returned: str, attributes: list[str]) -> str:
    """The module of a C callback, with a function `symbol` that calls the code behind the callback. The callback itself
    prints exceptions, with the GIL, and a kernel has none."""
    text: str = made.inspect_llvm()
    inner = made.native_name.removeprefix("cfunc.")
    given = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(kinds))
    result = "ret void" if returned == "void" else "%value = load i64, ptr %result\n  ret i64 %value"
    text += f"""
define {returned} @"{symbol}"({given}) {" ".join(attributes)} {{
  %result = alloca i64
  %error = alloca ptr
  %status = call i32 @"{inner}"(ptr %result, ptr %error, {given})
  {result}
}}
"""
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        own = [v for v in (*module.functions, *module.global_variables) if not v.is_declaration and v.name != symbol]
        for number, value in enumerate(own):
            value.linkage, value.name = "internal", f"numba.{number}"  # equal kernels, equal text: Numba counts up
        module.name = symbol
        _remove_unused(module)
        called = [v.name for v in (*module.functions, *module.global_variables) if v.is_declaration]
        foreign = [name for name in called if not name.startswith("llvm.")]
        if foreign:
            raise TypeError(f"the code needs {', '.join(foreign)}, and a kernel has no memory or errors of Python")
        return str(module)


def _remove_unused(module: Any) -> None:
    """Remove the internal functions that nothing calls, and their declarations."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_strip_dead_prototype_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options()))
