"""Kernel source -> LLVM IR by Numba's whole front end, for kernels that one_pass.py refuses. Imports Numba."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

from numba.core import errors, types

from ...hlo.forking import Order, kept_out_of_forks
from .errors import KernelCompilationError
from .kernel import KernelSource
from .numba_dialect import numba_scope, numba_type
from .numba_internals import compiler_lock, compiler_lock_itself, numba_compiler, without_addresses

kept_out_of_forks(Order.COMPILER, lambda: compiler_lock_itself)  # a thread of the user may compile with Numba


def lower(kernel: KernelSource, scope: dict[str, object], arguments: list[str]) -> Any:
    """Lower a kernel with parameters of these types to the LLVM function `body` of a new module, in Numba's calling
    convention. Raises KernelCompilationError."""
    namespace: dict[str, Any] = {"__builtins__": {"range": range}, **numba_scope(scope)}
    result = types.none if kernel.convention == "kernel" else types.int64
    try:
        with compiler_lock:
            function = numba_compiler().lower(_function(kernel, namespace), list(map(numba_type, arguments)), result)
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


def text_of(module: Any) -> str:
    """The text of a module of a function that `lower` made: the same for equal kernels."""
    return without_addresses(str(module))
